//! Records what a page requests, while it loads and is saved, in `SNAP_DIR/wacz/page.wacz`.
//!
//! The recorder has a connection of its own to the browser and a session of its own in the tab, so
//! that what it waits for delays nothing else. [`requests`] decides what to ask for and what is
//! complete; [`writer`] writes. When the page is ready, the tab looks at it for the recording, before
//! other hooks change its size. The hook `wacz` ends the recording by the file `ending`, and gets
//! `recording.json` in return.

mod calls;
mod events;
mod flight;
mod masks;
mod media;
mod requests;
mod rules;
mod spool;
mod targets;
#[cfg(test)]
mod tests;
mod writer;

use crate::visit::recording::Description;
pub use spool::Spool;
pub use writer::{COOKIES, Writer};

use crate::chromium::browser::cookies::Stored as StoredCookies;
use crate::chromium::browser::world::{Numbers, World};
use crate::chromium::cdp::frames::Frame;
use crate::chromium::cdp::{Call, CdpError, Connection, Message, Tap, id_in_start};
use crate::chromium::view::look::{Look, look};
use crate::page::secrets::LeftOut;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::visit;
use crate::visit::Seed;
use calls::Step;
use masks::Masks;
use nix::libc::O_NOFOLLOW;
use requests::Requests;
use rules::Rules;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use targets::HELD_MAX_BYTES;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

pub const PLUGIN: &str = "wacz";
pub const FILE: &str = "page.wacz";
/// What it has.
pub const RECORDING: &str = "recording.json";
/// Ends the recording when it appears; written by the hook `wacz`.
pub const ENDING: &str = "ending";

/// Time for bodies that are on their way when the recording ends.
const REST_TIMEOUT: Duration = Duration::from_secs(2);
/// Time to fetch what bodies lack.
const MEDIA_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for the browser to begin a recording. On a busy machine, a browser that was just started answers late.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Time to complete the file when the tab closes.
const END_TIMEOUT: Duration = Duration::from_secs(8);
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer in bytes while the tab looks at the page: a picture of a large viewport.
const LOOK_MAX_BYTES: usize = 256 << 20;
/// Time without a request of a worker after which a page with workers is quiet: they work on when the
/// page itself is ready.
const QUIET: Duration = Duration::from_millis(500);
/// Time limit of a page that never is.
const QUIET_MAX: Duration = Duration::from_secs(2);

pub struct RecordRequest<'a> {
    pub socket: &'a Path,
    pub target: &'a str,
    pub context: &'a str,
    /// Identity of the tab, see [`Rules::identity`].
    pub identity: Option<&'a Value>,
    /// Width and height of the viewport in pixels.
    pub window: (u32, u32),
    /// Seed of the browser.
    pub seed: Option<Seed>,
}

pub struct Recorder {
    looks: mpsc::Sender<Result<Look, String>>,
    /// See [`Requests::worker_activity`].
    activity: watch::Receiver<u64>,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
    files: FileSink,
}

/// Takes files that the tab has saved in place of a page, whose responses end before they get to the
/// recorder.
#[derive(Clone)]
pub struct FileSink {
    files: UnboundedSender<SavedFile>,
    file_max: u64,
}

struct SavedFile {
    paused: Value,
    path: PathBuf,
    recorded: oneshot::Sender<()>,
}

impl FileSink {
    /// Most bytes of a file.
    pub fn file_max(&self) -> u64 {
        self.file_max
    }

    /// Adds a file as the body of the stopped response `paused`. Chromium must not report the end of
    /// the request before this returns.
    pub async fn take(&self, paused: Value, path: &Path) {
        let (recorded, is_recorded) = oneshot::channel();
        let path = path.to_owned();
        let file = SavedFile { paused, path, recorded };
        // The recording may have ended.
        if self.files.send(file).is_ok() {
            let _ = is_recorded.await;
        }
    }
}

impl Recorder {
    /// Begins a recording, if the plugin `wacz` runs for this page. One that is complete stays: the tab is
    /// open again for a retry of other hooks, because the files of hooks that are retried are moved
    /// away before. A recording that cannot begin is only logged: the page is saved without it, and the
    /// hook `wacz` fails.
    pub async fn start(invocation: &Invocation, request: &RecordRequest<'_>) -> Option<Recorder> {
        let directory = invocation.sibling(PLUGIN, "");
        if !directory.is_dir() || !invocation.settings.flag("WACZ_ENABLED") {
            return None;
        }
        let before = Description::read(&directory.join(RECORDING));
        if before.is_some_and(|it| it.is_complete && it.url == invocation.url && it.has_answers()) {
            return None;
        }
        let starting = timeout(START_TIMEOUT, Recording::begin(invocation, &directory, request));
        let begun =
            starting.await.unwrap_or_else(|_| Err(Finding::failed("chromium did not answer")));
        match begun {
            Ok(recording) => {
                let (end, ended) = oneshot::channel();
                let (looks, looked) = mpsc::channel(1);
                let (files, saved) = unbounded_channel();
                let file_max = recording.requests.body_max();
                let activity = recording.activity.subscribe();
                let task = tokio::spawn(recording.run(looked, saved, ended));
                Some(Recorder { looks, activity, end, task, files: FileSink { files, file_max } })
            }
            Err(finding) => {
                let reason = finding.output_str.escape_debug().to_string();
                eprintln!("failed to record the page: {reason}, ignoring");
                None
            }
        }
    }

    /// Keeps what the page looks like now, or why that is not known.
    pub async fn look(&mut self, request: &RecordRequest<'_>) {
        self.until_quiet().await;
        let looking = async {
            let connection = Connection::open(request.socket, LOOK_MAX_BYTES).await?;
            let session = connection.attach(request.target).await?;
            look(&session, request.target, None).await
        };
        let looked = timeout(LOOK_TIMEOUT, looking).await;
        let looked = looked.unwrap_or_else(|_| {
            let seconds = LOOK_TIMEOUT.as_secs();
            Err(Finding::failed(format!("chromium did not answer within {seconds} s")))
        });
        // The browser is gone if the recording has ended.
        let _ = self.looks.send(looked.map_err(|finding| finding.output_str)).await;
    }

    async fn until_quiet(&mut self) {
        let end = Instant::now() + QUIET_MAX;
        if *self.activity.borrow_and_update() > 0 {
            while Instant::now() < end && timeout(QUIET, self.activity.changed()).await.is_ok() {}
        }
    }

    /// Where the tab puts files in place of a page.
    pub fn files(&self) -> FileSink {
        self.files.clone()
    }

    /// Completes the recording, if the hook `wacz` has not.
    pub async fn end(self) {
        let _ = self.end.send(());
        if timeout(END_TIMEOUT, self.task).await.is_err() {
            eprintln!("failed to complete the recording in time, ignoring");
        }
    }
}

/// A body, or why it cannot be stored.
enum Stored {
    Bytes(Spool),
    Failed(String),
}

struct Recording {
    tap: Tap,
    requests: Requests,
    writer: Writer,
    bodies: BTreeMap<String, Stored>,
    /// Bytes of `bodies`.
    stored: u64,
    /// Most bytes of the recording, and of bodies that wait.
    most: u64,
    directory: PathBuf,
    activity: watch::Sender<u64>,
}

impl Recording {
    async fn begin(
        invocation: &Invocation,
        directory: &Path,
        request: &RecordRequest<'_>,
    ) -> Result<Recording, Finding> {
        let settings = &invocation.settings;
        let limit = |key: &str| match settings.size(key) {
            0 => u64::MAX,
            most => most,
        };
        let rules = Rules {
            identity: request.identity.cloned(),
            numbers: request.seed.map(|_| Numbers::new(&invocation.url)),
            body_max: limit("WACZ_MAX_BODY"),
            completes_media: settings.text("WACZ_MEDIA") != "as-played",
            left_out: LeftOut::of_recording(settings),
            masks: Arc::default(),
        };
        let most = limit("WACZ_MAX_SIZE");
        let (tap, requests, world) = attach(request, rules, &invocation.url).await?;
        for name in [FILE, RECORDING, ENDING] {
            match fs::remove_file(directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(name, &error));
                }
                _ => {}
            }
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .custom_flags(O_NOFOLLOW)
            .open(directory.join(FILE))
            .map_err(|error| failed(FILE, &error))?;
        // The hook `wacz` completes a file that no process has locked.
        file.try_lock().map_err(|error| failed(FILE, &error))?;
        let masks = requests.masks();
        let writer = Writer::start(file, FILE, &invocation.url, most, Some(&world), masks)
            .map_err(|error| failed(FILE, &error))?;
        write(directory, &Description::begun(&invocation.url, FILE))?;
        Ok(Recording {
            tap,
            requests,
            writer,
            bodies: BTreeMap::new(),
            stored: 0,
            most,
            directory: directory.to_owned(),
            activity: watch::Sender::default(),
        })
    }

    /// Records until the hook `wacz` or the tab ends the recording, or the browser is gone.
    async fn run(
        mut self,
        mut looked: mpsc::Receiver<Result<Look, String>>,
        mut saved: UnboundedReceiver<SavedFile>,
        mut ended: oneshot::Receiver<()>,
    ) {
        let ending = self.directory.join(ENDING);
        let asked = visit::appears(&ending);
        let mut asked = std::pin::pin!(asked);
        let mut is_asked = false;
        loop {
            tokio::select! {
                frame = self.tap.next() => match frame {
                    Ok(frame) => self.take(&frame).await,
                    Err(_) => break,
                },
                Some(look) = looked.recv() => self.writer.look(look).await,
                Some(file) = saved.recv() => self.take_file(file),
                _ = &mut asked => {
                    is_asked = true;
                    self.complete().await;
                    break;
                }
                _ = &mut ended => break,
            }
        }
        let _ = fs::remove_file(&ending);
        let until = Instant::now() + REST_TIMEOUT;
        while !self.requests.is_idle() {
            match timeout_at(until, self.tap.next()).await {
                Ok(Ok(frame)) => self.take(&frame).await,
                _ => break,
            }
        }
        let steps = self.requests.finish();
        self.carry_out(steps).await;
        let left_out = self.requests.left_out;
        let is_stopped = self.requests.stops_all();
        let mut description = Description { is_stopped, ..self.writer.end(left_out).await };
        // The hook `wacz` asks for the recording of a page alone.
        if !is_asked && !description.has_answers() {
            description.error.get_or_insert_with(|| "no server answered".to_owned());
            if let Err(error) = fs::remove_file(self.directory.join(FILE)) {
                eprintln!("failed to remove {FILE}, which has no answer: {error}, ignoring");
            }
        }
        if let Err(finding) = write(&self.directory, &description) {
            eprintln!("{}, ignoring", finding.output_str.escape_debug());
        }
    }

    async fn complete(&mut self) {
        let until = Instant::now() + MEDIA_TIMEOUT;
        let steps = self.requests.complete();
        self.carry_out(steps).await;
        while self.requests.is_completing() {
            match timeout_at(until, self.tap.next()).await {
                Ok(Ok(frame)) => self.take(&frame).await,
                _ => break,
            }
        }
    }

    async fn take(&mut self, frame: &Frame) {
        let steps = match frame {
            Frame::Message(bytes) => match Message::parse(bytes) {
                Some(message) => self.requests.take(&message),
                None => return,
            },
            Frame::TooLarge(start) => match id_in_start(start) {
                Some(call) => self.requests.too_large(call),
                None => return,
            },
        };
        self.carry_out(steps).await;
        let activity = self.requests.worker_activity();
        self.activity.send_if_modified(|last| std::mem::replace(last, activity) != activity);
    }

    fn take_file(&mut self, file: SavedFile) {
        let opened = File::open(&file.path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, opened)) => {
                let Some((request, kept)) = self.requests.adopt(&file.paused, length) else {
                    return;
                };
                drop(self.remove(&request));
                let spool = Stored::Bytes(Spool::of(opened, kept));
                self.bodies.insert(request, spool);
                self.stored += kept;
            }
            Err(error) => eprintln!("failed to record the file: {error}, ignoring"),
        }
        let _ = file.recorded.send(());
    }

    async fn carry_out(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                // The next message says that the connection is closed.
                Step::Send(call) => drop(self.tap.send(&call)),
                Step::Append { request, bytes } => self.append(request, &bytes),
                Step::Join { from, to } => self.join(&from, to),
                Step::Clear { request } => drop(self.remove(&request)),
                Step::Keep { body, mut exchange, mut row } => {
                    let body = body.and_then(|request| self.remove(&request));
                    let spool = match body {
                        Some(Stored::Bytes(spool)) => spool,
                        Some(Stored::Failed(reason)) => {
                            exchange.truncated =
                                Some(archivist_warc::exchange::Truncated::Unspecified);
                            row.reason = Some(reason);
                            Spool::default()
                        }
                        None => Spool::default(),
                    };
                    self.writer.add(exchange, spool, row).await;
                }
                Step::Name(row) => self.writer.name(row).await,
            }
        }
    }

    fn append(&mut self, request: String, bytes: &[u8]) {
        let is_full = self.stored.saturating_add(bytes.len() as u64) > self.most;
        let new = || Stored::Bytes(Spool::default());
        let stored = self.bodies.entry(request).or_insert_with(new);
        let Stored::Bytes(spool) = stored else { return };
        let appended = if is_full {
            Err(format!(
                "the bodies that are being received have WACZ_MAX_SIZE={} bytes",
                self.most
            ))
        } else {
            let appended = spool.append(bytes, &self.directory);
            appended.map_err(|error| format!("failed to store its body: {error}"))
        };
        match appended {
            Ok(()) => self.stored += bytes.len() as u64,
            Err(reason) => {
                self.stored -= spool.length();
                *stored = Stored::Failed(reason);
            }
        }
    }

    /// Moves a body to the end of another.
    fn join(&mut self, from: &str, to: String) {
        let reason = match self.remove(from) {
            Some(Stored::Bytes(rest)) => match self.append_all(rest, &to) {
                Ok(()) => return,
                Err(error) => format!("failed to read its body: {error}"),
            },
            Some(Stored::Failed(reason)) => reason,
            None => return,
        };
        self.remove(&to);
        self.bodies.insert(to, Stored::Failed(reason));
    }

    fn append_all(&mut self, body: Spool, to: &str) -> io::Result<()> {
        let mut reader = body.into_reader()?;
        let mut piece = vec![0; 1 << 16];
        loop {
            match reader.read(&mut piece)? {
                0 => return Ok(()),
                length => self.append(to.to_owned(), &piece[..length]),
            }
        }
    }

    fn remove(&mut self, request: &str) -> Option<Stored> {
        let stored = self.bodies.remove(request)?;
        if let Stored::Bytes(spool) = &stored {
            self.stored -= spool.length();
        }
        Some(stored)
    }
}

/// Writes `recording.json`.
pub fn write(directory: &Path, description: &Description) -> Result<(), Finding> {
    let write = || visit::write_in(directory, RECORDING, description);
    let written = write().or_else(|_| {
        // A full disk has room for it without the older one.
        fs::remove_file(directory.join(RECORDING))?;
        write()
    });
    written.map_err(|error| failed(RECORDING, &error))
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> Finding {
    Finding::failed(format!("failed to write {name}: {error}"))
}

/// Attaches to the tab and, for shared workers, which belong to no tab, to the browser. Before the first
/// request, the tab is empty: no page can notice what it is asked.
async fn attach(
    request: &RecordRequest<'_>,
    mut rules: Rules,
    url: &str,
) -> Result<(Tap, Requests, World), CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attached {
        session_id: String,
    }
    // Answers are bodies in base64.
    let most = usize::try_from(HELD_MAX_BYTES * 3 / 2).unwrap_or(usize::MAX);
    let mut tap = Tap::open(request.socket, most)?;
    let call = |id, session, method, params| Call { id, session, method, params };
    let root = call(1, None, "Target.attachToBrowserTarget", json!({}));
    let Attached { session_id: root } = tap.call(&root).await?;
    // Those of all contexts are attached and wait, also if they belong to another page.
    let shared = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
        "filter": [{"type": "shared_worker"}, {"exclude": true}]});
    let shared = call(2, Some(root.clone()), "Target.setAutoAttach", shared);
    let _: Value = tap.call(&shared).await?;
    let tab = json!({"targetId": request.target, "flatten": true});
    let Attached { session_id: tab } =
        tap.call(&call(3, None, "Target.attachToTarget", tab)).await?;
    // Before the first request, these are the cookies of the persona.
    let own = json!({"browserContextId": request.context});
    let own = call(4, Some(root.clone()), "Storage.getCookies", own);
    let StoredCookies { cookies } = tap.call(&own).await?;
    rules.masks = Arc::new(Masks::new(cookies, url));
    let asked = call(5, Some(tab.clone()), "Runtime.evaluate", World::question());
    let asked: Value = tap.call(&asked).await?;
    let world = World::of(&asked, request.window, request.identity);
    let world = World { seed: request.seed, ..world };
    let mut requests = Requests::new(rules, &root, request.context, 5);
    let mut last = 0;
    for step in requests.attach(&tab, request.target, "page") {
        if let Step::Send(call) = step {
            tap.send(&call)?;
            last = call.id;
        }
    }
    let _: Value = tap.answer(last).await?;
    Ok((tap, requests, world))
}
