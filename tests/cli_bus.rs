//! The built binary against an orchestrator of cardboard on a bus of its own: what travels, what
//! is printed, and the exit statuses. Skipped, and said so, where there is no dbus-daemon.

mod bus_restart;
mod export;
mod foreground;
mod import;
mod import_archivebox;
mod import_bed;
mod import_lists;
mod import_saved;
mod lists;
mod metrics;
mod paging;
mod plot;
mod status;
mod terminal;
mod versions;
mod watches;

use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId, Time};
use archivist_shared::bus::documents::report::{
    AddOptions, Added, Crawl, CrawlEvent, Details, Filter, HookResult, ROWS_MAX, Refused, Snapshot,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The calls that the orchestrator received, and the streams that it will return.
#[derive(Default)]
struct Cardboard {
    urls: Mutex<String>,
    options: Mutex<String>,
    filter: Mutex<String>,
    /// Snapshots of each list; one that is sealed if there are none.
    pages: Mutex<Vec<Snapshot>>,
    /// Crawls of lists, in place of that of the last call.
    crawls: Mutex<Vec<Crawl>>,
    /// Calls about watches, in words.
    calls: Mutex<Vec<String>>,
    refused: Vec<Refused>,
    /// Texts of the streams, the last one first.
    streams: Mutex<Vec<String>>,
    /// Keeps the last stream open, as that of a running crawl.
    open: Mutex<Vec<std::os::unix::net::UnixStream>>,
    /// STATUS= lines of the next answers, the last one first, which is repeated.
    lines: Mutex<Vec<String>>,
}

impl Cardboard {
    fn say(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }

    fn said(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

struct Face(Arc<Cardboard>);

#[zbus::interface(name = "org.archivist1.Manager")]
impl Face {
    fn add(&self, urls: zbus::OwnedFd, options: &str) -> zbus::fdo::Result<String> {
        let mut text = String::new();
        std::fs::File::from(OwnedFd::from(urls)).read_to_string(&mut text).unwrap();
        let accepted = text.lines().count() as u64 - self.0.refused.len() as u64;
        *self.0.urls.lock().unwrap() = text;
        *self.0.options.lock().unwrap() = options.to_owned();
        let refused = self.0.refused.clone();
        let crawl = CrawlId(1);
        Ok(json(&Added { crawl, accepted, refused, known: 0, completed: 0, joined: None }))
    }

    /// Releases the hold at once, so that the command does not wait after the end.
    fn run(
        &self,
        urls: zbus::OwnedFd,
        options: &str,
    ) -> zbus::fdo::Result<(String, zbus::OwnedFd)> {
        Ok((self.add(urls, options)?, self.hold("c1", true)))
    }

    fn hold(&self, _crawl: &str, _cancel: bool) -> zbus::OwnedFd {
        let (_, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        OwnedFd::from(theirs).into()
    }

    fn show(&self, _id: &str) -> String {
        json(&Details::Snapshot {
            snapshot: snapshot(Lifecycle::Sealed),
            results: Vec::new(),
            runs: Vec::new(),
            copy: None,
        })
    }

    fn list(&self, what: &str, filter: &str) -> zbus::fdo::Result<String> {
        *self.0.filter.lock().unwrap() = filter.to_owned();
        let read: Filter = serde_json::from_str(filter).unwrap();
        Ok(match what {
            "timeline" => json(&plot::piece(&read)),
            "results" if read.owner == Some(paging::LONG) => json(&paging::piece(&read)),
            "crawls" if read.owner == Some(Owner::Crawl(CrawlId(9))) => "[]".to_owned(),
            "crawls" if !self.0.crawls.lock().unwrap().is_empty() => {
                json(&*self.0.crawls.lock().unwrap())
            }
            "crawls" => {
                let options = self.0.options.lock().unwrap();
                let options: Option<AddOptions> = serde_json::from_str(&options).ok();
                json(&[Crawl {
                    config: options.unwrap_or_default().config,
                    ..crawl(Lifecycle::Sealed)
                }])
            }
            "snapshots" if !self.0.pages.lock().unwrap().is_empty() => {
                json(&*self.0.pages.lock().unwrap())
            }
            "snapshots" if read.owner.is_none() && read.url.is_some() => {
                json(&versions::snapshots())
            }
            "snapshots" => json(&[snapshot(Lifecycle::Sealed)]),
            "versions" => json(&versions::all()),
            "runs" => json(&[foreground::run()]),
            _ => json(&[hook(ResultState::Failed)]),
        })
    }

    fn cancel(&self, id: &str) -> zbus::fdo::Result<()> {
        match id {
            "c1" => Ok(()),
            _ => Err(zbus::fdo::Error::Failed(format!("there is no {id}"))),
        }
    }

    fn unknown_settings(&self, _names: Vec<String>) -> String {
        "[]".to_owned()
    }

    fn await_units(&self, id: &str) -> zbus::fdo::Result<()> {
        Err(zbus::fdo::Error::Failed(format!("{id} has units")))
    }

    fn retry(&self, _id: &str, hook: &str) -> zbus::fdo::Result<u32> {
        Err(zbus::fdo::Error::InvalidArgs(format!("there is no hook '{hook}'")))
    }

    fn status(&self) -> String {
        status::answer(&self.0)
    }

    fn metrics(&self) -> String {
        json(&metrics::answer())
    }

    fn register(&self, command: &str) -> zbus::OwnedFd {
        self.0.say(format!("register {command}"));
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        self.0.open.lock().unwrap().push(ours);
        OwnedFd::from(theirs).into()
    }

    fn watch_status(&self) -> zbus::OwnedFd {
        self.watch("")
    }

    fn watch(&self, _crawl: &str) -> zbus::OwnedFd {
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut streams = self.0.streams.lock().unwrap();
        let text = streams.pop().unwrap_or_default();
        ours.write_all(text.as_bytes()).unwrap();
        if streams.is_empty() && !text.contains(r#""status":"sealed","reason":null,"url"#) {
            self.0.open.lock().unwrap().push(ours);
        }
        OwnedFd::from(theirs).into()
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap()
}

fn crawl(status: Lifecycle) -> Crawl {
    Crawl {
        id: CrawlId(1),
        status,
        reason: None,
        url: "https://a/".into(),
        max_depth: 0,
        tags: Vec::new(),
        plugins: Vec::new(),
        config: Default::default(),
        created_at: Time(0),
        started_at: Some(Time(1000)),
        ended_at: Some(Time(3500)),
        retry_at: None,
        attempts: 1,
        snapshots: Default::default(),
        incomplete: 0,
        errors: 0,
        partial: 0,
        results: Default::default(),
        uses: Default::default(),
        directory: None,
        nodes: Vec::new(),
        pinned: false,
        users: Default::default(),
    }
}

fn snapshot(status: Lifecycle) -> Snapshot {
    Snapshot {
        id: SnapshotId(3),
        crawl: CrawlId(1),
        url: "https://a/".into(),
        title: None,
        depth: 0,
        parent: None,
        status,
        reason: None,
        tags: Vec::new(),
        visited_at: Time(1000),
        created_at: Time(0),
        started_at: Some(Time(1000)),
        ended_at: None,
        retry_at: None,
        attempts: 1,
        results: Default::default(),
        uses: Default::default(),
        directory: None,
        current_step: None,
        http_status: None,
        unsaved: None,
        config: Default::default(),
        node: None,
        older_copies: Vec::new(),
        pinned: false,
        bookmarked_at: None,
        recording: None,
        replay: None,
        missing: Vec::new(),
    }
}

fn hook(status: ResultState) -> HookResult {
    HookResult {
        id: None,
        owner: Owner::Snapshot(SnapshotId(3)),
        plugin: "wget".into(),
        hook: "on_Snapshot__06_wget.finite.bg".into(),
        status,
        output: None,
        error: (status == ResultState::Failed).then(|| "exit code 8".into()),
        files: Vec::new(),
        size: 0,
        attempts: 1,
        started_at: Some(Time(1000)),
        ended_at: Some(Time(2200)),
        figures: Default::default(),
    }
}

/// The lines of a stream in which the only hook comes out as `result`.
fn stream(result: ResultState) -> [String; 5] {
    [
        json(&CrawlEvent::Crawl { crawl: crawl(Lifecycle::Started) }),
        json(&CrawlEvent::Snapshot { snapshot: snapshot(Lifecycle::Started) }),
        json(&CrawlEvent::Hook { result: hook(result) }),
        json(&CrawlEvent::Snapshot { snapshot: snapshot(Lifecycle::Sealed) }),
        json(&CrawlEvent::Crawl { crawl: crawl(Lifecycle::Sealed) }),
    ]
    .map(|line| line + "\n")
}

/// A bus that ends with the test.
struct Bus {
    daemon: Child,
    address: String,
}

/// Serves until the test's process ends.
fn serve(address: &str, face: Face, ready: &std::sync::mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _connection = zbus::connection::Builder::address(address)
            .serve_at("/org/archivist1", watches::WatchesFace(Arc::clone(&face.0)))
            .serve_at("/org/archivist1", face)
            .name("org.archivist1")
            .build()
            .await
            .unwrap();
        ready.send(()).unwrap();
        std::future::pending::<()>().await;
    });
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Bus {
    fn start(cardboard: &Arc<Cardboard>) -> Option<Bus> {
        Bus::start_with(cardboard, &[])
    }

    /// The same with further arguments of dbus-daemon.
    fn start_with(cardboard: &Arc<Cardboard>, arguments: &[String]) -> Option<Bus> {
        let mut daemon = match Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
        {
            Ok(daemon) => daemon,
            Err(error) => {
                eprintln!("skipped: dbus-daemon: {error}");
                return None;
            }
        };
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        // A restarted bus has another id.
        let address = address.trim().split(",guid=").next();
        let address = address.unwrap_or_default().to_owned();
        let face = Face(Arc::clone(cardboard));
        let (ready, served) = std::sync::mpsc::channel();
        let at = address.clone();
        std::thread::spawn(move || serve(&at, face, &ready));
        served.recv().unwrap();
        Some(Bus { daemon, address })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archivist"));
        command
            .env_clear()
            .env("HOME", Path::new("/nonexistent"))
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .arg("--user")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

#[test]
fn add_sends_lines_and_options_and_locates_what_is_refused() {
    let cardboard = Arc::new(Cardboard {
        refused: vec![Refused { line: 2, text: "nonsense".into(), why: "not a URL".into() }],
        ..Cardboard::default()
    });
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&list, "# mine\n\nhttps://a/$(x)%n${HOME}\nnonsense\n").unwrap();
    let file = list.path().to_str().unwrap();
    let (code, stdout, stderr) = bus.run(&[
        "add",
        "--depth",
        "1",
        "--tag",
        "a",
        "--tag",
        "b",
        "--plugins",
        "wget,title",
        "--set",
        "WGET_ARGS=--x=y",
        "--file",
        file,
    ]);
    assert_eq!((code, stdout.as_str()), (3, "queued 1 URL as c1\n"), "{stderr}");
    assert_eq!(stderr, "line 4: 'nonsense' refused: not a URL\n");
    assert_eq!(*cardboard.urls.lock().unwrap(), "https://a/$(x)%n${HOME}\nnonsense\n");
    let options: AddOptions = serde_json::from_str(&cardboard.options.lock().unwrap()).unwrap();
    assert_eq!((options.depth, options.tags.len()), (1, 2));
    assert_eq!(options.plugins, ["wget", "title"]);
    assert_eq!(options.config["WGET_ARGS"], "--x=y");

    let (code, _, stderr) = bus.run(&["add", "x", "nonsense"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.starts_with("argument 2: 'nonsense' refused"), "{stderr}");
    let (code, _, stderr) = bus.run(&["add", "nonsense"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_hundred_thousand_lines_from_standard_input() {
    let cardboard = Arc::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let mut child = bus
        .command(&["add", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = (0..100_000).map(|n| format!("https://example.com/{n}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let added: Added = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), added.accepted), (Some(0), 100_000));
    assert_eq!(*cardboard.urls.lock().unwrap(), lines);
}

#[test]
fn wait_shows_lines_and_survives_a_restart_of_the_orchestrator() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let whole = stream(ResultState::Succeeded);
    // The first stream breaks off in the middle of a line.
    let cut = whole[..2].concat() + &whole[2][..20];
    *cardboard.streams.lock().unwrap() = vec![whole.concat(), cut];
    let (code, stdout, stderr) = bus.run(&["add", "--wait", "https://a/"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stdout,
        "queued 1 URL as c1\n\
         c1 started\n\
         s3 https://a/ started\n\
         s3 https://a/ wget succeeded 1.2s\n\
         s3 https://a/ sealed\n\
         c1 sealed\n\
         c1 sealed: 1 page, results: 1 succeeded, in 2.5s\n\
         see: archivist --user show c1\n"
    );
}

#[test]
fn wait_ends_with_three_when_a_hook_failed() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    *cardboard.streams.lock().unwrap() = vec![stream(ResultState::Failed).concat()];
    let (code, stdout, stderr) = bus.run(&["add", "--wait", "--json", "https://a/"]);
    assert_eq!(code, 3, "{stderr}");
    let documents: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents.len(), 6);
    assert_eq!(documents[0]["crawl"], "c1");
    assert_eq!(documents[3]["event"], "hook");
}

#[test]
fn a_crawl_that_ended_before_the_stream_is_reported() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let mut over = crawl(Lifecycle::Sealed);
    over.snapshots.insert("sealed".into(), 1);
    over.results.insert("failed".into(), 1);
    let line = json(&CrawlEvent::Crawl { crawl: over }) + "\n";
    *cardboard.streams.lock().unwrap() = vec![line];
    let (code, stdout, stderr) = bus.run(&["add", "--wait", "https://a/"]);
    assert_eq!(code, 3, "{stderr}");
    let failed = "s3 https://a/ wget failed 1.2s: exit code 8\n";
    assert!(stdout.contains(failed), "{stdout}");
    assert!(stdout.contains("1 page, results: 1 failed"), "{stdout}");
}

#[test]
fn an_interrupt_detaches() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    *cardboard.streams.lock().unwrap() = vec![stream(ResultState::Succeeded)[..2].concat()];
    let mut child = bus
        .command(&["add", "--wait", "https://a/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // When the page is shown, the command waits for the answer to its interrupt.
    assert!(lines.any(|line| line.unwrap().contains("s3 https://a/ started")));
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("detached: the crawl continues"), "{stderr}");
}

#[test]
fn lists_and_refusals() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let (code, stdout, _) = bus.run(&["list", "crawls", "--status", "sealed", "--limit", "0"]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("ID  STATUS  ADDED"), "{stdout}");
    let filter: Filter = serde_json::from_str(&cardboard.filter.lock().unwrap()).unwrap();
    assert_eq!((filter.status.as_deref(), filter.limit), (Some("sealed"), ROWS_MAX));

    let (code, stdout, _) = bus.run(&["list", "results", "s3", "--json"]);
    assert_eq!(code, 0);
    let results: Vec<HookResult> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(results[0].plugin, "wget");

    let (code, _, stderr) = bus.run(&["cancel", "c9"]);
    assert_eq!((code, stderr.as_str()), (1, "archivist: there is no c9\n"));
    let (code, stdout, _) = bus.run(&["cancel", "c1"]);
    assert_eq!((code, stdout.as_str()), (0, "c1 cancelled\n"));
    let (code, _, stderr) = bus.run(&["cancel", "--wait", "c1"]);
    assert_eq!((code, stderr.as_str()), (1, "archivist: c1 has units\n"));
    let (code, _, stderr) = bus.run(&["cancel", "c9", "s3"]);
    let both = "archivist: there is no c9\narchivist: there is no s3\n";
    assert_eq!((code, stderr.as_str()), (1, both));
    let (code, _, stderr) = bus.run(&["retry", "s3", "--hook", "x"]);
    assert_eq!((code, stderr.as_str()), (2, "archivist: there is no hook 'x'\n"));
    // The rows of cardboard have no directory yet.
    let (code, _, stderr) = bus.run(&["open", "s3"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.starts_with("archivist: s3 has no page yet: "), "{stderr}");
    // An instance without an orchestrator.
    let (code, _, stderr) = bus.run(&["status", "--instance", "news"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("org.archivist1.news"), "{stderr}");
}
