//! A browser that many hooks use: its pipe on one side, a socket in its directory on the other.
//!
//! Why not `--remote-debugging-port=`: the network is the machine's, and whoever can open a
//! connection to 127.0.0.1 learns the unguessable part of the address from `/json/version`, a
//! hook of another crawl as well as a page that another browser shows. A socket in a directory
//! is seen by the hooks of its crawl only.

use super::browser::{Browser, Pipe};
use super::cdp::Client;
use super::frames::{Frame, Frames};
use super::routes::{ClientId, Outgoing, Routes};
use super::session::{SOCKET, through_directory};
use crate::chromium::session;
use crate::process::invocation::Invocation;
use crate::process::record::Finding;
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

/// The largest message of a browser that is passed on, in bytes: the HTML that hooks may ask
/// for, and room for what JSON makes longer.
const MOST_ANSWER: usize = 384 << 20;
/// The largest request of a hook.
const MOST_REQUEST: usize = 4 << 20;
/// Messages that a client may leave unread before it is given up.
const UNREAD: usize = 4096;
/// Clients at one time.
const MOST_CLIENTS: usize = 256;

/// A browser that is served at a socket, until this is dropped.
pub struct Served {
    /// Name and version.
    pub browser: session::Browser,
    /// Where it is reached.
    pub socket: PathBuf,
    close: oneshot::Sender<()>,
    task: JoinHandle<String>,
}

impl Served {
    /// Starts a browser and waits until it answers at a socket in `directory`. To be given a
    /// deadline, and to be called within a runtime.
    pub async fn start(it: &Invocation, directory: &Path) -> Result<Served, Finding> {
        let socket = directory.join(SOCKET);
        let listener = bind(&socket).map_err(|error| {
            Finding::failed(format!("failed to listen at {}: {error}", socket.display()))
        })?;
        let (browser, pipe) = Browser::start(it)?;
        let (close, told) = oneshot::channel();
        let mut task = tokio::spawn(serve(browser, pipe, listener, told));
        let greeting = async {
            let mut client = Client::connect(&socket, MOST_REQUEST).await?;
            client.call("Browser.getVersion", json!({})).await
        };
        let browser = tokio::select! {
            answer = greeting => answer,
            why = &mut task => return Err(gone(why)),
        };
        match browser {
            Ok(browser) => Ok(Served {
                browser,
                socket,
                close,
                task,
            }),
            // It hung up: its end says more.
            Err(_) => Err(gone(task.await)),
        }
    }

    /// Until the browser ends by itself, which is a failure; never ready before.
    pub async fn ended(&mut self) -> Finding {
        gone((&mut self.task).await)
    }

    /// Closes the browser in order.
    pub async fn close(self) {
        let _ = self.close.send(());
        let _ = self.task.await;
    }
}

fn gone(why: Result<String, tokio::task::JoinError>) -> Finding {
    Finding::failed(why.unwrap_or_else(|error| format!("the browser's relay failed: {error}")))
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

enum Input {
    Said(ClientId, Vec<u8>),
    Left(ClientId),
    Browser(Frame),
}

/// Carries messages until the browser has ended; why it did.
async fn serve(
    mut browser: Browser,
    pipe: Pipe,
    listener: UnixListener,
    mut close: oneshot::Receiver<()>,
) -> String {
    let (heard, mut hearing) = mpsc::channel(16);
    let (orders, waiting) = mpsc::unbounded_channel();
    tokio::spawn(write_all(pipe.0, waiting));
    tokio::spawn(read_browser(pipe.1, heard.clone()));
    let mut relay = Relay {
        routes: Routes::default(),
        clients: BTreeMap::new(),
        orders,
        heard,
        last: 0,
    };
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => relay.join(stream),
            Some(input) = hearing.recv() => relay.take(input),
            why = browser.ended() => return why,
            _ = &mut close => {
                let order = relay.routes.own("Browser.close", json!({}));
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
    heard: mpsc::Sender<Input>,
    last: ClientId,
}

impl Relay {
    fn join(&mut self, stream: UnixStream) {
        if self.clients.len() >= MOST_CLIENTS {
            return;
        }
        self.last += 1;
        let (id, heard) = (self.last, self.heard.clone());
        let (reader, mut writer) = stream.into_split();
        let (sender, mut unsent) = mpsc::channel::<Vec<u8>>(UNREAD);
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
            let mut frames = Frames::new(reader, MOST_REQUEST);
            while let Ok(Some(Frame::Message(message))) = frames.next().await {
                if heard.send(Input::Said(id, message)).await.is_err() {
                    return;
                }
            }
            let _ = heard.send(Input::Left(id)).await;
        });
        self.clients.insert(id, sender);
        self.routes.joined(id);
    }

    fn take(&mut self, input: Input) {
        match input {
            // One that was given up may still have said something.
            Input::Said(id, message) if self.clients.contains_key(&id) => {
                let to = self.routes.take_request(id, &message);
                self.send(to);
            }
            Input::Said(..) => {}
            Input::Left(id) => self.leave(id),
            Input::Browser(Frame::Message(message)) => {
                for to in self.routes.take_message(&message) {
                    self.send(to);
                }
            }
            Input::Browser(Frame::TooLarge(start)) => {
                if let Some(to) = self.routes.too_large(&start) {
                    self.send(to);
                }
            }
        }
    }

    fn leave(&mut self, id: ClientId) {
        self.clients.remove(&id);
        for order in self.routes.left(id) {
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

async fn read_browser(pipe: tokio::process::ChildStdout, heard: mpsc::Sender<Input>) {
    let mut frames = Frames::new(pipe, MOST_ANSWER);
    while let Ok(Some(frame)) = frames.next().await {
        if heard.send(Input::Browser(frame)).await.is_err() {
            return;
        }
    }
}
