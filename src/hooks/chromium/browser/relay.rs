//! Shares one browser among many hooks: relays between the browser's pipe and a socket in the
//! output directory.
//!
//! `--remote-debugging-port=` is not used because every process on the machine can connect to
//! 127.0.0.1 and read the secret part of the address from `/json/version`: hooks of other crawls,
//! and pages in other browsers. Only the hooks of the same crawl can reach a socket in its
//! directory.

use super::cookies;
use super::routes::{ClientId, Outgoing, Routes};
use super::{Browser, Pipe};
use crate::chromium::cdp::frames::{Frame, Frames};
use crate::chromium::cdp::socket::through_directory;
use crate::chromium::cdp::{CdpError, Connection};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::visit::Seed;
use crate::visit::{self, SOCKET};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Largest message of the browser in bytes: the HTML that hooks may request (256 MiB), and half as
/// much for JSON escapes.
const ANSWER_MAX_BYTES: usize = 384 << 20;
/// Largest request of a hook in bytes.
const REQUEST_MAX_BYTES: usize = 4 << 20;
/// Bytes of unread messages of a client from which on the browser's pipe is not read. Together with
/// the messages that are being read and written, they bound the memory of the relay.
const UNREAD_MAX_BYTES: usize = 4 << 20;
/// Time that a client gets to make room for a message. The browser writes into a pipe, so all other
/// clients wait meanwhile: a client that takes longer is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// What a message without content costs a client of its bytes: the memory of its queue entry.
const MESSAGE_MIN_BYTES: usize = 64;
const CLIENTS_MAX: usize = 256;

/// A browser that is served on a socket until this value is dropped.
pub struct BrowserServer {
    /// Product name, version and user agent.
    pub browser: visit::BrowserInfo,
    pub socket: PathBuf,
    close: oneshot::Sender<()>,
    task: JoinHandle<String>,
}

impl BrowserServer {
    /// Starts a browser and waits until it answers on a socket in `directory`. The caller sets the
    /// deadline. Call this within a tokio runtime.
    pub async fn start(
        invocation: &Invocation,
        directory: &Path,
    ) -> Result<BrowserServer, Finding> {
        let socket = directory.join(SOCKET);
        let listener = bind(&socket).map_err(|error| {
            Finding::failed(format!("failed to listen at {}: {error}", socket.display()))
        })?;
        let seed = Seed::of(&invocation.settings);
        let (browser, pipe) = Browser::start(invocation, seed).await?;
        let (close, close_requested) = oneshot::channel();
        let mut task = tokio::spawn(serve(browser, pipe, listener, close_requested));
        let greeting = async {
            let browser = Connection::open(&socket, REQUEST_MAX_BYTES).await?.browser();
            let call = browser.call("Browser.getVersion", json!({}));
            let browser: visit::BrowserInfo = call.await?;
            Ok::<_, CdpError>(visit::BrowserInfo {
                has_profile: cookies::profile(invocation).is_some(),
                seed,
                ..browser
            })
        };
        let browser = tokio::select! {
            answer = greeting => answer,
            why = &mut task => return Err(gone(why)),
        };
        match browser {
            Ok(browser) => Ok(BrowserServer { browser, socket, close, task }),
            // The browser closed the connection: its exit gives the reason.
            Err(_) => Err(gone(task.await)),
        }
    }

    /// Waits until the browser exits by itself and returns the failure.
    pub async fn ended(&mut self) -> Finding {
        gone((&mut self.task).await)
    }

    /// Closes the browser and waits until it has exited.
    pub async fn close(self) {
        let _ = self.close.send(());
        let _ = self.task.await;
    }
}

fn gone(why: Result<String, tokio::task::JoinError>) -> Finding {
    Finding::failed(why.unwrap_or_else(|error| format!("failed to relay to the browser: {error}")))
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = through_directory(socket, |path| std::os::unix::net::UnixListener::bind(path))?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

enum RelayInput {
    Request(ClientId, Vec<u8>),
    Disconnected(ClientId),
}

/// Relays messages until the browser exits. Returns the reason for its exit.
async fn serve(
    mut browser: Browser,
    pipe: Pipe,
    listener: UnixListener,
    mut close: oneshot::Receiver<()>,
) -> String {
    let (inputs, mut received) = mpsc::channel(16);
    let (orders, waiting) = mpsc::unbounded_channel();
    // Messages may be large, so none is read ahead of the one that waits here.
    let (frames, mut messages) = mpsc::channel(1);
    tokio::spawn(write_all(pipe.0, waiting));
    tokio::spawn(read_browser(pipe.1, frames));
    let mut relay = Relay {
        routes: Routes::default(),
        clients: BTreeMap::new(),
        orders,
        inputs,
        last: 0,
        held: None,
    };
    loop {
        let room = relay.held.as_ref().map(Held::room);
        tokio::select! {
            Ok((stream, _)) = listener.accept() => relay.join(stream),
            Some(input) = received.recv() => relay.take(input),
            Some(frame) = messages.recv(), if room.is_none() => relay.take_frame(frame),
            room = until_there_is(room) => relay.release(room),
            why = browser.ended() => return why,
            _ = &mut close => {
                let order = relay.routes.own_request("Browser.close", json!({}));
                relay.send(order);
                browser.end().await;
                return "chromium was closed".to_owned();
            }
        }
    }
}

struct Relay {
    routes: Routes,
    clients: BTreeMap<ClientId, Client>,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    inputs: mpsc::Sender<RelayInput>,
    last: ClientId,
    /// The message of the browser that its client has no room for.
    held: Option<Held>,
}

struct Client {
    unsent: mpsc::UnboundedSender<(Vec<u8>, OwnedSemaphorePermit)>,
    /// Bytes that may be added to `unsent`.
    room: Arc<Semaphore>,
}

impl Client {
    /// Queues a message, or returns it if there is no room.
    fn try_send(&self, message: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.room.clone().try_acquire_many_owned(cost(&message)) {
            // The task that writes ends with the connection, which the reader reports.
            Ok(room) => drop(self.unsent.send((message, room))),
            Err(_) => return Err(message),
        }
        Ok(())
    }
}

/// Bytes of room that a message takes. One that is longer than all room waits for an empty queue.
fn cost(message: &[u8]) -> u32 {
    let bytes = message.len().clamp(MESSAGE_MIN_BYTES, UNREAD_MAX_BYTES);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A message that waits for room.
struct Held {
    client: ClientId,
    message: Vec<u8>,
    room: Arc<Semaphore>,
    until: Instant,
}

impl Held {
    fn room(&self) -> (Arc<Semaphore>, u32, Instant) {
        (self.room.clone(), cost(&self.message), self.until)
    }
}

/// Waits for the room of a held message. Returns `None` at the end of its time. Pends if there is no
/// held message.
async fn until_there_is(
    wanted: Option<(Arc<Semaphore>, u32, Instant)>,
) -> Option<OwnedSemaphorePermit> {
    match wanted {
        Some((room, cost, until)) => {
            let acquired = timeout_at(until, room.acquire_many_owned(cost)).await;
            acquired.ok().and_then(Result::ok)
        }
        None => std::future::pending().await,
    }
}

impl Relay {
    fn join(&mut self, stream: UnixStream) {
        if self.clients.len() >= CLIENTS_MAX {
            return;
        }
        self.last += 1;
        let (id, inputs) = (self.last, self.inputs.clone());
        let (reader, mut writer) = stream.into_split();
        let (sender, mut unsent) = mpsc::unbounded_channel::<(Vec<u8>, OwnedSemaphorePermit)>();
        tokio::spawn(async move {
            while let Some((message, _room)) = unsent.recv().await {
                let sent = async {
                    writer.write_all(&message).await?;
                    writer.write_all(&[0]).await
                };
                if sent.await.is_err() {
                    break;
                }
            }
        });
        tokio::spawn(async move {
            let mut frames = Frames::new(reader, REQUEST_MAX_BYTES);
            while let Ok(Some(Frame::Message(message))) = frames.next().await {
                if inputs.send(RelayInput::Request(id, message)).await.is_err() {
                    return;
                }
            }
            let _ = inputs.send(RelayInput::Disconnected(id)).await;
        });
        let client = Client { unsent: sender, room: Arc::new(Semaphore::new(UNREAD_MAX_BYTES)) };
        self.clients.insert(id, client);
        self.routes.add_client(id);
    }

    fn take(&mut self, input: RelayInput) {
        match input {
            // A client that was disconnected may have a request in the queue.
            RelayInput::Request(id, message) if self.clients.contains_key(&id) => {
                let to = self.routes.take_request(id, &message);
                self.send(to);
            }
            RelayInput::Request(..) => {}
            RelayInput::Disconnected(id) => self.leave(id),
        }
    }

    /// Passes on a message of the browser, or holds it until its client has room.
    fn take_frame(&mut self, frame: Frame) {
        let outgoing = match frame {
            Frame::Message(message) => self.routes.take_message(&message),
            Frame::TooLarge(start) => self.routes.too_large(&start).into_iter().collect(),
        };
        for to in outgoing {
            match to {
                Outgoing::Client(id, message) => self.send_or_hold(id, message),
                order => self.send(order),
            }
        }
    }

    fn send_or_hold(&mut self, id: ClientId, message: Vec<u8>) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        if let Err(message) = client.try_send(message) {
            self.held = Some(Held {
                client: id,
                message,
                room: client.room.clone(),
                until: Instant::now() + READ_TIMEOUT,
            });
        }
    }

    /// Sends the held message, or disconnects its client if there is still no room.
    fn release(&mut self, room: Option<OwnedSemaphorePermit>) {
        let Some(held) = self.held.take() else { return };
        match (room, self.clients.get(&held.client)) {
            (Some(room), Some(client)) => drop(client.unsent.send((held.message, room))),
            (None, Some(_)) => {
                let seconds = READ_TIMEOUT.as_secs();
                eprintln!(
                    "a client has not read its messages within {seconds} s, disconnecting it"
                );
                self.leave(held.client);
            }
            (_, None) => {}
        }
    }

    fn leave(&mut self, id: ClientId) {
        self.clients.remove(&id);
        // What is held for it is of no use, and nothing else makes room.
        self.held.take_if(|held| held.client == id);
        for order in self.routes.remove_client(id) {
            self.send(order);
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Browser(message) => {
                let _ = self.orders.send(message);
            }
            // A refusal. A client that makes requests without reading answers is not waited for.
            Outgoing::Client(id, message) => {
                let client = self.clients.get(&id);
                if client.is_some_and(|client| client.try_send(message).is_err()) {
                    self.leave(id);
                }
            }
        }
    }
}

async fn write_all(
    mut pipe: tokio::process::ChildStdin,
    mut orders: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(mut message) = orders.recv().await {
        message.push(0);
        if pipe.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn read_browser(pipe: tokio::process::ChildStdout, messages: mpsc::Sender<Frame>) {
    let mut frames = Frames::new(pipe, ANSWER_MAX_BYTES);
    while let Ok(Some(frame)) = frames.next().await {
        if messages.send(frame).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const EVENT_BYTES: usize = 1 << 20;

    /// A relay with one client, which is attached to the session `S`; the end of the client; the
    /// requests to the browser.
    async fn relay() -> (Relay, Frames<UnixStream>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let mut relay = Relay {
            routes: Routes::default(),
            clients: BTreeMap::new(),
            orders,
            inputs: mpsc::channel(16).0,
            last: 0,
            held: None,
        };
        let (near, far) = UnixStream::pair().unwrap();
        relay.join(near);
        let request = json!({"id": 7, "method": "Target.attachToTarget"}).to_string();
        relay.take(RelayInput::Request(1, request.into_bytes()));
        relay.take_frame(message(json!({"id": 1, "result": {"sessionId": "S"}})));
        let mut far = Frames::new(far, 2 * EVENT_BYTES);
        assert_eq!(next(&mut far).await["id"], 7);
        (relay, far, ordered)
    }

    fn message(message: Value) -> Frame {
        Frame::Message(message.to_string().into_bytes())
    }

    fn event(number: usize) -> Frame {
        let padding = "x".repeat(EVENT_BYTES);
        message(json!({"method": "E", "sessionId": "S", "params": {"n": number, "x": padding}}))
    }

    async fn next(far: &mut Frames<UnixStream>) -> Value {
        match far.next().await.unwrap().unwrap() {
            Frame::Message(message) => serde_json::from_slice(&message).unwrap(),
            Frame::TooLarge(_) => panic!("a message is too large"),
        }
    }

    #[tokio::test]
    async fn client_that_reads_late_gets_every_message() {
        let (mut relay, mut far, _ordered) = relay().await;
        let mut sent = 0;
        while relay.held.is_none() {
            relay.take_frame(event(sent));
            sent += 1;
        }
        assert!(sent * EVENT_BYTES <= UNREAD_MAX_BYTES + EVENT_BYTES, "{sent}");
        for number in 0..2 * sent {
            assert_eq!(next(&mut far).await["params"]["n"], number);
            if let Some(held) = &relay.held {
                let room = until_there_is(Some(held.room())).await;
                relay.release(room);
                relay.take_frame(event(sent));
                sent += 1;
            }
        }
    }

    #[tokio::test]
    async fn client_that_reads_nothing_is_disconnected() {
        let (mut relay, _far, mut ordered) = relay().await;
        let attached = ordered.recv().await.unwrap();
        assert!(String::from_utf8_lossy(&attached).contains("attachToTarget"));
        while relay.held.is_none() {
            relay.take_frame(event(0));
        }
        let (room, cost, _) = relay.held.as_ref().unwrap().room();
        let room = until_there_is(Some((room, cost, Instant::now()))).await;
        relay.release(room);
        assert!(relay.clients.is_empty() && relay.held.is_none());
        let detached = ordered.recv().await.unwrap();
        assert!(String::from_utf8_lossy(&detached).contains("detachFromTarget"));
    }
}
