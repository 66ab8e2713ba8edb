//! Shares one browser among many hooks: relays between the browser's pipe and a socket in the
//! output directory.
//!
//! `--remote-debugging-port=` is not used because every process on the machine can connect to
//! 127.0.0.1 and read the secret part of the address from `/json/version`: hooks of other crawls,
//! and pages in other browsers. Only the hooks of the same crawl can reach a socket in its
//! directory.

use super::browser::{Browser, Pipe};
use super::cdp::{CdpError, Connection};
use super::cookies;
use super::frames::{Frame, Frames};
use super::routes::{ClientId, Outgoing, Routes};
use super::session::{SOCKET, through_directory};
use crate::chromium::session;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Largest message of the browser in bytes: the HTML that hooks may request (256 MiB), and half as
/// much for JSON escapes.
const ANSWER_MAX_BYTES: usize = 384 << 20;
/// Largest request of a hook in bytes.
const REQUEST_MAX_BYTES: usize = 4 << 20;
/// Unread messages after which a client is disconnected.
const UNREAD_MAX: usize = 4096;
/// Largest number of concurrent clients.
const CLIENTS_MAX: usize = 256;

/// A browser that is served on a socket until this value is dropped.
pub struct BrowserServer {
    /// Product name, version and user agent.
    pub browser: session::BrowserInfo,
    /// Path of the socket.
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
        let (browser, pipe) = Browser::start(invocation)?;
        let (close, close_requested) = oneshot::channel();
        let mut task = tokio::spawn(serve(browser, pipe, listener, close_requested));
        let greeting = async {
            let browser = Connection::open(&socket, REQUEST_MAX_BYTES)
                .await?
                .browser();
            let call = browser.call("Browser.getVersion", json!({}));
            let browser: session::BrowserInfo = call.await?;
            Ok::<_, CdpError>(session::BrowserInfo {
                has_profile: cookies::profile(invocation).is_some(),
                ..browser
            })
        };
        let browser = tokio::select! {
            answer = greeting => answer,
            why = &mut task => return Err(gone(why)),
        };
        match browser {
            Ok(browser) => Ok(BrowserServer {
                browser,
                socket,
                close,
                task,
            }),
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
    Message(Frame),
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
    tokio::spawn(write_all(pipe.0, waiting));
    tokio::spawn(read_browser(pipe.1, inputs.clone()));
    let mut relay = Relay {
        routes: Routes::default(),
        clients: BTreeMap::new(),
        orders,
        inputs,
        last: 0,
    };
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => relay.join(stream),
            Some(input) = received.recv() => relay.take(input),
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
    clients: BTreeMap<ClientId, mpsc::Sender<Vec<u8>>>,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    inputs: mpsc::Sender<RelayInput>,
    last: ClientId,
}

impl Relay {
    fn join(&mut self, stream: UnixStream) {
        if self.clients.len() >= CLIENTS_MAX {
            return;
        }
        self.last += 1;
        let (id, inputs) = (self.last, self.inputs.clone());
        let (reader, mut writer) = stream.into_split();
        let (sender, mut unsent) = mpsc::channel::<Vec<u8>>(UNREAD_MAX);
        tokio::spawn(async move {
            while let Some(message) = unsent.recv().await {
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
        self.clients.insert(id, sender);
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
            RelayInput::Message(Frame::Message(message)) => {
                for to in self.routes.take_message(&message) {
                    self.send(to);
                }
            }
            RelayInput::Message(Frame::TooLarge(start)) => {
                if let Some(to) = self.routes.too_large(&start) {
                    self.send(to);
                }
            }
        }
    }

    fn leave(&mut self, id: ClientId) {
        self.clients.remove(&id);
        for order in self.routes.remove_client(id) {
            self.send(order);
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Browser(message) => {
                let _ = self.orders.send(message);
            }
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

async fn read_browser(pipe: tokio::process::ChildStdout, inputs: mpsc::Sender<RelayInput>) {
    let mut frames = Frames::new(pipe, ANSWER_MAX_BYTES);
    while let Ok(Some(frame)) = frames.next().await {
        if inputs.send(RelayInput::Message(frame)).await.is_err() {
            return;
        }
    }
}
