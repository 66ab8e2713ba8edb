//! A client of the Chrome DevTools Protocol (CDP) for one tab, over the browser's socket.
//!
//! It has only what these hooks need: one call at a time, and the few events that they wait for.

use super::frames::{Frame, Frames};
use crate::process::finding::Finding;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Events that a caller waits for. The client drops all others.
const KEPT: [&str; 5] = [
    "Page.loadEventFired",
    "Network.responseReceived",
    "Emulation.virtualTimeBudgetExpired",
    CRASHED,
    DETACHED,
];
const CRASHED: &str = "Inspector.targetCrashed";
const DETACHED: &str = "Target.detachedFromTarget";
const DIALOG: &str = "Page.javascriptDialogOpening";

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CdpError {
    /// The connection to the browser is closed.
    #[error("lost the connection to chromium: {0}")]
    Gone(String),
    /// The page's renderer process crashed, or another client closed the tab.
    #[error("{0}")]
    Closed(&'static str),
    /// The browser returned an error.
    #[error("chromium refused {method}: {message}")]
    Refused { method: String, message: String },
    /// The answer exceeds the limit of this connection.
    #[error("chromium's answer to {0} is too large")]
    TooLarge(String),
    /// The answer does not follow the protocol.
    #[error("failed to parse chromium's answer to {method}: {source}")]
    Garbled {
        method: String,
        source: serde_json::Error,
    },
}

impl From<io::Error> for CdpError {
    fn from(error: io::Error) -> CdpError {
        CdpError::Gone(error.to_string())
    }
}

impl From<CdpError> for Finding {
    fn from(error: CdpError) -> Finding {
        Finding::failed(error.to_string())
    }
}

/// An event: a message from the browser that answers no call.
#[derive(Debug)]
pub struct CdpEvent {
    /// Name of the event, such as `Page.loadEventFired`.
    pub method: String,
    /// Parameters of the event.
    pub params: Value,
}

/// The fields of a message that decide where it goes.
#[derive(Deserialize)]
pub struct Head<'a> {
    pub id: Option<u64>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    pub session: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Reply<T> {
    result: Option<T>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

#[derive(Deserialize)]
struct EventMessage {
    params: Value,
}

/// The result of a call whose fields are not needed.
pub type Ignored = IgnoredAny;

/// A connection to a browser, attached to the session of at most one tab.
pub struct Client {
    frames: Frames<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    last: u64,
    events: VecDeque<CdpEvent>,
    session: Option<String>,
}

impl Client {
    /// Connects to the socket of a browser. Answers above `most` bytes are refused.
    pub async fn connect(socket: &Path, most: usize) -> Result<Client, CdpError> {
        let connected = super::session::through_directory(socket, |path| {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        });
        let stream = connected.map_err(|error| {
            CdpError::Gone(format!(
                "failed to connect to '{}': {error}",
                socket.display()
            ))
        })?;
        let (reader, writer) = stream.into_split();
        Ok(Client {
            frames: Frames::new(reader, most),
            writer,
            last: 0,
            events: VecDeque::new(),
            session: None,
        })
    }

    /// Attaches to a tab. All later calls go to this tab.
    pub async fn attach(&mut self, target: &str) -> Result<(), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Attached {
            session_id: String,
        }
        let params = json!({"targetId": target, "flatten": true});
        let attached: Attached = self.call("Target.attachToTarget", params).await?;
        self.session = Some(attached.session_id);
        Ok(())
    }

    /// Calls a method and waits for its answer.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<T, CdpError> {
        let id = self.send(method, params).await?;
        loop {
            let message = match self.frame().await? {
                Frame::Message(message) => message,
                Frame::TooLarge(_) => return Err(CdpError::TooLarge(method.to_owned())),
            };
            if self.take(&message).await? == Some(id) {
                return answer(method, &message);
            }
        }
    }

    /// Waits for the next event of [`KEPT`].
    pub async fn event(&mut self) -> Result<CdpEvent, CdpError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Frame::Message(message) = self.frame().await? {
                self.take(&message).await?;
            }
        }
    }

    /// Removes and returns the events that arrived during calls.
    pub fn events_so_far(&mut self) -> impl Iterator<Item = CdpEvent> + '_ {
        self.events.drain(..)
    }

    async fn frame(&mut self) -> Result<Frame, CdpError> {
        let frame = self.frames.next().await?;
        frame.ok_or_else(|| CdpError::Gone("the browser closed it".to_owned()))
    }

    async fn send(&mut self, method: &str, params: Value) -> Result<u64, CdpError> {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        let mut message = request.to_string().into_bytes();
        message.push(0);
        self.writer.write_all(&message).await?;
        Ok(self.last)
    }

    /// Processes one message and returns its id if it is an answer.
    ///
    /// Dialogs are dismissed immediately, because a page that opens one stops until it is closed.
    async fn take(&mut self, message: &[u8]) -> Result<Option<u64>, CdpError> {
        let garbled = |source| CdpError::Garbled {
            method: "an event".to_owned(),
            source,
        };
        let head: Head = serde_json::from_slice(message).map_err(garbled)?;
        match head.method.as_deref() {
            None => return Ok(head.id),
            Some(CRASHED) => return Err(CdpError::Closed("the page's renderer process crashed")),
            Some(DETACHED) => return Err(CdpError::Closed("the tab was closed")),
            Some(DIALOG) => {
                let refuse = json!({"accept": false});
                self.send("Page.handleJavaScriptDialog", refuse).await?;
            }
            Some(method) if KEPT.contains(&method) => {
                let event: EventMessage = serde_json::from_slice(message).map_err(garbled)?;
                let (method, params) = (method.to_owned(), event.params);
                self.events.push_back(CdpEvent { method, params });
            }
            Some(_) => {}
        }
        Ok(None)
    }
}

fn answer<T: DeserializeOwned>(method: &str, message: &[u8]) -> Result<T, CdpError> {
    let method = method.to_owned();
    let reply: Reply<T> = match serde_json::from_slice(message) {
        Ok(reply) => reply,
        Err(source) => return Err(CdpError::Garbled { method, source }),
    };
    match reply {
        Reply {
            result: Some(result),
            ..
        } => Ok(result),
        Reply { error, .. } => Err(CdpError::Refused {
            method,
            message: error.map_or_else(|| "no reason given".to_owned(), |error| error.message),
        }),
    }
}
