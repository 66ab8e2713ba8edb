//! A connection of which one task reads everything, in the order in which the browser sent it:
//! events of all sessions and answers. Nothing is read ahead, so the browser waits for a task that
//! is slow, instead of filling memory.

use super::frames::{Frame, Frames};
use super::socket::through_directory;
use super::{CLOSED, CdpError, write_all};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: u64,
    /// Session id; `None` for the browser.
    pub session: Option<String>,
    pub method: &'static str,
    pub params: Value,
}

/// A message of the browser, whose content is not parsed.
#[derive(Deserialize)]
pub struct Message<'a> {
    /// Number of the request that this answers.
    pub id: Option<u64>,
    /// Name of the event.
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    pub session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Parses a message. `None` if it does not follow the protocol.
    pub fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        serde_json::from_slice(bytes).ok()
    }

    /// Parameters of the event. `None` if they do not follow the protocol.
    pub fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }

    /// Result of the call, or why the browser refused it.
    pub fn result<T: Deserialize<'a>>(&self) -> Result<T, String> {
        match (self.result, self.error) {
            (Some(result), _) => {
                serde_json::from_str(result.get()).map_err(|error| error.to_string())
            }
            (None, Some(error)) => Err(error.get().to_owned()),
            (None, None) => Err("no result".to_owned()),
        }
    }
}

/// The connection. Dropping it closes the socket.
pub struct Tap {
    frames: Frames<OwnedReadHalf>,
    /// Messages that came before an answer that was waited for.
    passed_over: VecDeque<Frame>,
    unsent: mpsc::UnboundedSender<Vec<u8>>,
    writer: JoinHandle<()>,
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl Tap {
    /// Connects to the socket of a browser. Messages above `most` bytes are cut off. Call this
    /// within a tokio runtime.
    pub fn open(socket: &Path, most: usize) -> Result<Tap, CdpError> {
        let stream = through_directory(socket, |path| {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        })?;
        let (reader, writer) = stream.into_split();
        let (unsent, waiting) = mpsc::unbounded_channel();
        Ok(Tap {
            frames: Frames::new(reader, most),
            passed_over: VecDeque::new(),
            unsent,
            writer: tokio::spawn(write_all(writer, waiting)),
        })
    }

    /// Makes a call. Its answer is one of the next messages.
    pub fn send(&self, call: &Call) -> Result<(), CdpError> {
        let mut request = json!({"id": call.id, "method": call.method, "params": call.params});
        if let Some(session) = &call.session {
            request["sessionId"] = session.as_str().into();
        }
        let mut message = request.to_string().into_bytes();
        message.push(0);
        let sent = self.unsent.send(message);
        sent.map_err(|_| CdpError::Gone(CLOSED.to_owned()))
    }

    /// Waits for the next message, or the start of one that is too large. Cancel safe.
    pub async fn next(&mut self) -> Result<Frame, CdpError> {
        match self.passed_over.pop_front() {
            Some(frame) => Ok(frame),
            None => self.receive().await,
        }
    }

    async fn receive(&mut self) -> Result<Frame, CdpError> {
        let frame = self.frames.next().await?;
        frame.ok_or_else(|| CdpError::Gone(CLOSED.to_owned()))
    }

    /// Makes a call and waits for its answer, see [`Tap::answer`].
    pub async fn call<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, CdpError> {
        self.send(call)?;
        self.answer(call.id).await
    }

    /// Waits for the answer to a call. [`Tap::next`] returns the messages before it: a worker that one of
    /// them reports stands still until its reader lets it run.
    pub async fn answer<T: DeserializeOwned>(&mut self, call: u64) -> Result<T, CdpError> {
        loop {
            let frame = self.receive().await?;
            if let Frame::Message(bytes) = &frame
                && let Some(message) = Message::parse(bytes)
                && message.id == Some(call)
            {
                return message
                    .result()
                    .map_err(|message| CdpError::Refused { method: "a call".to_owned(), message });
            }
            self.passed_over.push_back(frame);
        }
    }
}
