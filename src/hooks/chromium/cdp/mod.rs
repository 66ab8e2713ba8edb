//! A client of the Chrome DevTools Protocol (CDP) over the browser's socket or pipe.
//!
//! A [`Connection`] carries any number of [`Session`]s: that of the browser, and one for each
//! attached tab. Calls of all sessions run concurrently. A session delivers the events that its
//! [`Events`] subscribe to; the connection drops all others.

pub(crate) mod console;
pub(crate) mod frames;
pub(crate) mod isolated_world;
pub(crate) mod posted;
pub(crate) mod socket;
pub(crate) mod stream;
mod tap;

use crate::process::finding::Finding;
use archivist_core::lock;
use frames::{Frame, Frames};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use tap::{Call, Message, Tap};

/// Unread events of a session after which the session ends. A page can cause events faster than a
/// busy machine reads them.
const UNREAD_EVENTS_MAX: usize = 65_536;
const CLOSED: &str = "the browser closed it";
const CRASHED: &str = "Inspector.targetCrashed";
/// The browser attached a session to a frame or worker of a tab.
pub const ATTACHED: &str = "Target.attachedToTarget";
pub const DETACHED: &str = "Target.detachedFromTarget";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
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
    #[error("failed to parse chromium's answer to {method}: {reason}")]
    Garbled { method: String, reason: String },
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
    pub params: Value,
}

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

/// A connection to a browser. Dropping it and all its sessions closes the socket or pipe.
#[derive(Clone)]
pub struct Connection(Arc<Wire>);

struct Wire {
    unsent: mpsc::UnboundedSender<Vec<u8>>,
    routes: Arc<Mutex<Routes>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Wire {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

#[derive(Default)]
struct Routes {
    last: u64,
    calls: HashMap<u64, PendingCall>,
    subscriptions: HashMap<Option<String>, Subscription>,
    ended: HashMap<String, CdpError>,
    closed: Option<CdpError>,
}

struct PendingCall {
    session: Option<String>,
    method: String,
    answer: oneshot::Sender<Result<Vec<u8>, CdpError>>,
}

struct Subscription {
    methods: HashSet<&'static str>,
    events: mpsc::Sender<CdpEvent>,
}

impl Connection {
    /// Connects to the socket of a browser. Answers above `most` bytes are refused. Call this
    /// within a tokio runtime.
    pub async fn open(socket: &Path, most: usize) -> Result<Connection, CdpError> {
        let connected = socket::through_directory(socket, |path| {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        });
        let stream = connected.map_err(|error| {
            CdpError::Gone(format!("failed to connect to '{}': {error}", socket.display()))
        })?;
        let (reader, writer) = stream.into_split();
        Ok(Connection::over(reader, writer, most))
    }

    /// Uses both directions of a stream that leads to a browser. Answers above `most` bytes are
    /// refused. Call this within a tokio runtime.
    pub fn over<R, W>(reader: R, writer: W, most: usize) -> Connection
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let routes = Arc::new(Mutex::new(Routes::default()));
        let (unsent, waiting) = mpsc::unbounded_channel();
        let tasks = [
            tokio::spawn(read_all(Frames::new(reader, most), routes.clone())),
            tokio::spawn(write_all(writer, waiting)),
        ];
        let wire = Wire { unsent, routes, tasks };
        Connection(Arc::new(wire))
    }

    pub fn browser(&self) -> Session {
        Session { connection: self.clone(), id: None }
    }

    pub async fn attach(&self, target: &str) -> Result<Session, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Attached {
            session_id: String,
        }
        let params = json!({"targetId": target, "flatten": true});
        let attaching = self.browser();
        let attached: Attached = attaching.call("Target.attachToTarget", params).await?;
        Ok(self.session(attached.session_id))
    }

    /// The session with this id, to which the browser attached by itself.
    pub fn session(&self, id: String) -> Session {
        Session { connection: self.clone(), id: Some(id) }
    }
}

/// The session of a tab, or of the browser.
#[derive(Clone)]
pub struct Session {
    connection: Connection,
    id: Option<String>,
}

impl Session {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Calls a method and waits for its answer.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, CdpError> {
        self.begin(method, params)?.await
    }

    /// Calls a method at once, before the future is polled that waits for its answer. Fails if the
    /// session has ended.
    pub fn begin<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<impl Future<Output = Result<T, CdpError>> + use<T>, CdpError> {
        let (answer, answered) = oneshot::channel();
        self.send(method, params, Some(answer))?;
        let method = method.to_owned();
        Ok(async move {
            let closed = || CdpError::Gone(CLOSED.to_owned());
            let message = answered.await.map_err(|_| closed())??;
            parse_answer(&method, &message)
        })
    }

    /// Calls a method without waiting for its answer, which is dropped. Fails if the session has
    /// ended.
    pub fn post(&self, method: &str, params: Value) -> Result<(), CdpError> {
        self.send(method, params, None)
    }

    /// Ends this session, which was attached by [`Connection::attach`].
    pub async fn detach(&self) -> Result<(), CdpError> {
        let params = json!({"sessionId": self.id});
        let browser = self.connection.browser();
        let detaching = browser.call::<Ignored>("Target.detachFromTarget", params);
        detaching.await.map(drop)
    }

    /// Subscribes to events of this session, instead of its earlier subscription.
    pub fn events(&self, methods: &[&'static str]) -> Events {
        let (sender, received) = mpsc::channel(UNREAD_EVENTS_MAX);
        let subscription =
            Subscription { methods: methods.iter().copied().collect(), events: sender };
        let mut routes = self.routes();
        if routes.why_ended(&self.id).is_none() {
            routes.subscriptions.insert(self.id.clone(), subscription);
        }
        drop(routes);
        Events { session: self.clone(), received }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        lock(&self.connection.0.routes)
    }

    fn send(
        &self,
        method: &str,
        params: Value,
        answer: Option<oneshot::Sender<Result<Vec<u8>, CdpError>>>,
    ) -> Result<(), CdpError> {
        let mut routes = self.routes();
        if let Some(error) = routes.why_ended(&self.id) {
            return Err(error);
        }
        routes.last += 1;
        let id = routes.last;
        let mut request = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.id {
            request["sessionId"] = session.as_str().into();
        }
        if let Some(answer) = answer {
            let call = PendingCall { session: self.id.clone(), method: method.to_owned(), answer };
            routes.calls.insert(id, call);
        }
        let mut message = request.to_string().into_bytes();
        message.push(0);
        let sent = self.connection.0.unsent.send(message);
        sent.map_err(|_| CdpError::Gone(CLOSED.to_owned()))
    }
}

pub struct Events {
    session: Session,
    received: mpsc::Receiver<CdpEvent>,
}

impl Events {
    /// Waits for the next event. Fails when the session has ended and all its events were read.
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<CdpEvent, CdpError> {
        match self.received.recv().await {
            Some(event) => Ok(event),
            None => {
                let ended = self.session.routes().why_ended(&self.session.id);
                Err(ended.unwrap_or(CdpError::Closed("the page caused too many events")))
            }
        }
    }
}

impl Routes {
    fn why_ended(&self, session: &Option<String>) -> Option<CdpError> {
        let own = session.as_ref().and_then(|session| self.ended.get(session));
        own.or(self.closed.as_ref()).cloned()
    }

    fn take(&mut self, message: Vec<u8>) {
        let Ok(head) = serde_json::from_slice::<Head>(&message) else {
            return;
        };
        let session = head.session.as_deref().map(str::to_owned);
        match (head.id, head.method.as_deref()) {
            (Some(id), _) => self.answer(id, Ok(message)),
            (None, Some(CRASHED)) => {
                self.end_session(session, "the page's renderer process crashed");
            }
            (None, Some(DETACHED)) => {
                let named = ended_session(&message).or(session);
                self.end_session(named, "the tab was closed");
            }
            (None, Some(method)) => {
                let method = method.to_owned();
                self.deliver(session, method, &message);
            }
            (None, None) => {}
        }
    }

    fn answer(&mut self, id: u64, answer: Result<Vec<u8>, CdpError>) {
        if let Some(call) = self.calls.remove(&id) {
            // The caller may have stopped waiting.
            let _ = call.answer.send(answer);
        }
    }

    fn deliver(&mut self, session: Option<String>, method: String, message: &[u8]) {
        let Some(subscription) = self.subscriptions.get(&session) else {
            return;
        };
        if !subscription.methods.contains(method.as_str()) {
            return;
        }
        let Ok(EventMessage { params }) = serde_json::from_slice(message) else {
            return;
        };
        if subscription.events.try_send(CdpEvent { method, params }).is_err() {
            self.subscriptions.remove(&session);
        }
    }

    fn end_session(&mut self, session: Option<String>, reason: &'static str) {
        let Some(session) = session else { return };
        let error = CdpError::Closed(reason);
        self.ended.insert(session.clone(), error.clone());
        let session = Some(session);
        self.subscriptions.remove(&session);
        let calls = self.calls.iter();
        let lost: Vec<u64> =
            calls.filter(|(_, call)| call.session == session).map(|(id, _)| *id).collect();
        for id in lost {
            self.answer(id, Err(error.clone()));
        }
    }

    fn close(&mut self, reason: String) {
        let error = CdpError::Gone(reason);
        self.closed = Some(error.clone());
        self.subscriptions.clear();
        for (_, call) in self.calls.drain() {
            let _ = call.answer.send(Err(error.clone()));
        }
    }
}

async fn read_all<R>(mut frames: Frames<R>, routes: Arc<Mutex<Routes>>)
where
    R: AsyncRead + Unpin,
{
    let reason = loop {
        match frames.next().await {
            Ok(Some(Frame::Message(message))) => lock(&routes).take(message),
            Ok(Some(Frame::TooLarge(start))) => {
                let mut routes = lock(&routes);
                if let Some(id) = id_in_start(&start) {
                    let method = routes.calls.get(&id).map(|call| call.method.clone());
                    routes.answer(id, Err(CdpError::TooLarge(method.unwrap_or_default())));
                }
            }
            Ok(None) => break CLOSED.to_owned(),
            // It was closed before all requests were read.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                break CLOSED.to_owned();
            }
            Err(error) => break error.to_string(),
        }
    };
    lock(&routes).close(reason);
}

async fn write_all<W>(mut writer: W, mut unsent: mpsc::UnboundedReceiver<Vec<u8>>)
where
    W: AsyncWrite + Unpin,
{
    while let Some(message) = unsent.recv().await {
        // The reader reports that the connection is closed.
        if writer.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// Id of an answer of which only the start is known. Answers start with their id.
pub fn id_in_start(start: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(start);
    let digits = text.strip_prefix("{\"id\":")?;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    digits[..end].parse().ok()
}

/// Session that a `Target.detachedFromTarget` names.
fn ended_session(message: &[u8]) -> Option<String> {
    let event: EventMessage = serde_json::from_slice(message).ok()?;
    Some(event.params["sessionId"].as_str()?.to_owned())
}

fn parse_answer<T: DeserializeOwned>(method: &str, message: &[u8]) -> Result<T, CdpError> {
    let method = method.to_owned();
    let reply: Reply<T> = match serde_json::from_slice(message) {
        Ok(reply) => reply,
        Err(error) => {
            return Err(CdpError::Garbled { method, reason: error.to_string() });
        }
    };
    match reply {
        Reply { result: Some(result), .. } => Ok(result),
        Reply { error, .. } => Err(CdpError::Refused {
            method,
            message: error.map_or_else(|| "no reason given".to_owned(), |error| error.message),
        }),
    }
}

impl From<io::Error> for CdpError {
    fn from(error: io::Error) -> CdpError {
        CdpError::Gone(error.to_string())
    }
}

#[cfg(test)]
mod tests;
