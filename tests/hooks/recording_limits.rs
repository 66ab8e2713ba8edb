//! Recordings of pages that are large or endless, or that break off.

use crate::fixture::{Daemon, Session, Site, Snapshot, busy, has};
use crate::recording::{Recorded, faults, open_recorded, recorded};
use archivist_warc::{verify, wacz};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Most memory in bytes of the tab's program and the relay together.
const MEMORY_MAX_BYTES: u64 = 64 << 20;

/// A number that a full run sets in the environment.
fn number(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

/// Records a page until it is ready. Checks the file, whatever the page did.
fn record(site: &Site, path: &str, settings: &[(&str, &str)]) -> Recorded {
    let snap = Snapshot::new();
    snap.select("wacz");
    let url = site.url(path);
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, settings);
    snap.run("wacz", &url, settings).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    assert_sound(&snap);
    recorded(&snap)
}

#[track_caller]
fn assert_sound(snap: &Snapshot) {
    let file = File::open(snap.file("wacz/page.wacz")).unwrap();
    let report = verify::check(file).unwrap();
    assert_eq!(report.flaws, []);
}

/// Completes a recording that was cut off.
fn recover(snap: &Snapshot) -> wacz::Summary {
    let path = snap.file("wacz/page.wacz");
    let file = File::options().read(true).write(true).open(path);
    wacz::recover(file.unwrap()).unwrap()
}

fn reason<'a>(recorded: &'a Recorded, url: &str) -> &'a str {
    let row = recorded.rows.iter().find(|row| row["url"] == url);
    let row = row.unwrap_or_else(|| panic!("{url} is not in the list"));
    row["reason"].as_str().unwrap_or("none")
}

#[test]
fn answers_that_never_end_or_are_refused_are_named() {
    if !has(&["chromium"]) {
        return;
    }
    let site = Site::of_kinds();
    let settings = [("WACZ_MAX_BODY", "1m"), ("TIMEOUT", "20")];
    let recorded = record(&site, "odd", &settings);
    let reason = |path: &str| reason(&recorded, &site.url(path));
    assert_eq!(reason("loop?19"), "none");
    assert_eq!(reason("loop?20"), "net::ERR_TOO_MANY_REDIRECTS");
    assert_eq!(reason("head?200000"), "none");
    assert_eq!(reason("head?1000000"), "net::ERR_RESPONSE_HEADERS_TOO_BIG");
    let cut = "cut off: its body has more than 1048576 bytes";
    assert_eq!(reason("drip"), cut);
    let body = &recorded.bodies[&format!("GET {}", site.url("drip"))][0];
    assert_eq!(body.len(), 1 << 20);
}

/// A body may go past the page, as a blob does, or nothing may read it.
#[test]
fn every_body_that_a_server_sent_is_whole_or_named() {
    if !has(&["chromium"]) {
        return;
    }
    for (path, named) in [
        ("bodies", &["events", "large?begun", "refused"][..]),
        ("left", &["slow?kept", "slow?beacon"]),
        ("service", &[]),
    ] {
        let (site, snap) = (Site::of_kinds(), Snapshot::new());
        let (url, mut session) = open_recorded(&site, &snap, path);
        site.log("/done");
        let wacz = snap.run("wacz", &url, &[]);
        wacz.assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        assert_sound(&snap);
        let recorded = recorded(&snap);
        let missing = snap.json("wacz/recording.json")["missing"].clone();
        let missing = missing.as_array().unwrap();
        for fault in faults(&site.log(""), &recorded) {
            let is_of =
                |named: &&Value| fault.contains(&format!(" {} ", named["url"].as_str().unwrap()));
            let own = missing.iter().find(is_of);
            let own = own.unwrap_or_else(|| panic!("{path}: {fault}"));
            assert!(wacz.result()["missing"].to_string().contains(own["reason"].as_str().unwrap()));
        }
        let others = missing.iter().filter(|own| {
            let url = own["url"].as_str().unwrap();
            !named.iter().any(|named| url.ends_with(&format!("/{named}")))
        });
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&Value>::new(), "{path}");
        // The browser does not hold it until it is read.
        let again = recorded.rows.iter().filter(|row| row["isRepeated"] == true);
        let again: Vec<_> = again.map(|row| row["url"].as_str().unwrap()).collect();
        let large = site.url("large?30000000");
        assert_eq!(again, if path == "bodies" { vec![large.as_str()] } else { vec![] });
    }
}

/// Highest memory of a process in bytes, without that of its program file, which processes share.
fn peak(process: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let kibibytes = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        let value = value.unwrap().trim().trim_end_matches(" kB");
        value.parse::<u64>().unwrap()
    };
    (kibibytes("VmHWM:") - kibibytes("RssFile:")) << 10
}

/// RECORDER_BODY_BYTES sets its size, 1000000000 in a full run.
#[test]
fn a_large_body_is_recorded_in_bounded_memory() {
    if !has(&["chromium"]) {
        return;
    }
    let bytes = number("RECORDER_BODY_BYTES", 30_000_000);
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let url = site.url(&format!("reads?{bytes}"));
    // The page is ready when the body has ended, however slow the machine is.
    let settle = (60_000 + bytes / 1000).to_string();
    let settings = [
        ("WACZ_MAX_BODY", "0"),
        ("WACZ_MAX_SIZE", "0"),
        ("TIMEOUT", "3000"),
        ("CHROME_SETTLE_MS", &settle),
    ];
    let mut session = Session::start(&snap, &settings);
    let loaded = session.open(&snap, &url, &settings);
    assert_eq!(loaded, "page loaded http=200\n");
    // The page has got its body.
    let read = format!("/read?{bytes}");
    let log = site.log(&read);
    assert!(log.iter().any(|sent| sent["path"] == read.as_str()));
    snap.run("wacz", &url, &settings).assert(0, "succeeded", "page.wacz");
    let tab = session.tab();
    let peaks = [peak(session.browser()), peak(&tab)];
    println!("relay and tab: {peaks:?} bytes for a body of {bytes}");
    assert!(peaks.iter().sum::<u64>() <= MEMORY_MAX_BYTES, "{peaks:?}");
    tab.stopped(&snap);
    let file = wacz::Wacz::open(File::open(snap.file("wacz/page.wacz")).unwrap()).unwrap();
    let own = site.url(&format!("body?{bytes}"));
    let entry = file.entries().iter().find(|entry| entry.url == own);
    let mut body = file.read(entry.unwrap()).unwrap().body;
    let read = std::io::copy(&mut body, &mut std::io::sink()).unwrap();
    assert_eq!(read, bytes);
}

/// RECORDER_REQUESTS sets how many, 20100 in a full run.
#[test]
fn requests_beyond_the_bound_are_counted() {
    if !has(&["chromium"]) {
        return;
    }
    let requests = number("RECORDER_REQUESTS", 0);
    if requests == 0 {
        println!("skipped: takes minutes, set RECORDER_REQUESTS=20100");
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let url = site.url(&format!("many?{requests}"));
    // The page is ready when it has made its last request.
    let settings = [("TIMEOUT", "3000"), ("CHROME_SETTLE_MS", "900000")];
    let mut session = Session::start(&snap, &settings);
    session.open(&snap, &url, &settings);
    assert!(site.log("/done").iter().any(|sent| sent["path"] == "/done"));
    snap.run("wacz", &url, &settings).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    assert_sound(&snap);
    let recorded = recorded(&snap);
    assert_eq!(recorded.rows.len(), 20_000);
    let info = recorded.resource(&format!("urn:pageinfo:{url}"));
    let info: Value = serde_json::from_slice(info).unwrap();
    let left_out = info["leftOut"].as_u64().unwrap();
    // The page itself is one, too.
    assert!(left_out > requests - 20_000, "{left_out}");
}

#[test]
fn pages_that_leave_or_close_themselves_are_recorded() {
    if !has(&["chromium"]) {
        return;
    }
    let site = Site::of_kinds();
    let leaves = record(&site, "leaves", &[]);
    for path in ["leaves", "plain"] {
        assert_eq!(reason(&leaves, &site.url(path)), "none");
    }
    assert_whole_or_named(&leaves, &site.url("a.png"));
    let (url, snap) = (site.url("closes"), Snapshot::new());
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    session.tab().end();
    assert_sound(&snap);
    assert_whole_or_named(&recorded(&snap), &site.url("a.png"));
}

/// Chromium forgets the bodies of a page that has left: one whose stream was asked for too late, within
/// milliseconds of the end of the page, cannot be read any more. The list must then say so.
fn assert_whole_or_named(recorded: &Recorded, url: &str) {
    let reason = reason(recorded, url);
    let length = recorded.resource(url).len();
    let named = format!("the browser passed on {length} of ");
    let is_named = reason.starts_with(&named) && !reason.contains(&format!("of {length} bytes"));
    assert!(reason == "none" && length > 0 || is_named, "{url} with {length} bytes: {reason}");
}

/// Crashes the renderer of the snapshot's page.
fn crash(snap: &Snapshot) {
    let target = String::from_utf8(snap.read("chromium/target_id.txt")).unwrap();
    let socket = snap.crawl().join("chromium/cdp.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut send = |call: Value| {
        stream.write_all(call.to_string().as_bytes()).unwrap();
        stream.write_all(&[0]).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 && byte != [0] {
            answer.push(byte[0]);
        }
        serde_json::from_slice::<Value>(&answer).unwrap()
    };
    let params = json!({"targetId": target.trim(), "flatten": true});
    let attached = send(json!({"id": 1, "method": "Target.attachToTarget", "params": params}));
    let session = &attached["result"]["sessionId"];
    assert!(session.is_string(), "{attached}");
    send(json!({"id": 2, "method": "Page.crash", "sessionId": session, "params": {}}));
}

#[test]
fn the_recording_of_a_page_that_crashes_is_completed() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let (url, mut session) = open_recorded(&site, &snap, "all");
    site.log("/done");
    let tab = session.tab();
    crash(&snap);
    let (exit, text) = tab.ended();
    assert_eq!(exit, Some(1), "{text}");
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    assert_sound(&snap);
    assert_eq!(reason(&recorded(&snap), &site.url("module.js")), "none");
}

/// A small file system, which is unmounted on drop.
struct Small(PathBuf);

impl Small {
    /// `None` if the caller may not mount.
    fn mount(directory: PathBuf) -> Option<Small> {
        let mut mounting = Command::new("mount");
        mounting.args(["-t", "tmpfs", "-o", "size=60k,mode=777", "tmpfs"]);
        let mounted = mounting.arg(&directory).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Small(directory))
    }

    fn grow(&self) {
        let mut mounting = Command::new("mount");
        mounting.args(["-o", "remount,size=10m"]).arg(&self.0);
        assert!(mounting.status().unwrap().success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounting = Command::new("umount").args(["--lazy"]).arg(&self.0).status();
        assert!(unmounting.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_disk_that_fills_is_the_reason_of_what_is_missing() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let Some(small) = Small::mount(snap.file("wacz")) else {
        println!("skipped: the caller may not mount a file system");
        return;
    };
    let url = site.url("all");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    site.log("/done");
    // Its output is not on the full disk, as that of a unit.
    let (log, start) = (snap.file("wacz.log"), Instant::now());
    let stdout = File::create(&log).unwrap();
    let exit = snap.spawn("wacz", &url, &[], stdout.into()).wait().unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    let ran = snap.ran(exit.code(), &text, start.elapsed());
    let reason = "recording: No space left on device (os error 28)";
    ran.assert(1, "failed", reason);
    assert!(ran.elapsed < busy(10), "{:?}", ran.elapsed);
    session.tab().stopped(&snap);
    let description = snap.json("wacz/recording.json");
    assert_eq!(description["error"], reason);
    small.grow();
    let summary = recover(&snap);
    assert!(summary.entries >= description["kept"].as_u64().unwrap());
    assert_sound(&snap);
}

/// RECORDER_KILLS sets how often, 200 in a full run.
#[test]
fn the_file_of_a_tab_that_is_killed_at_any_time_is_readable() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let url = site.url("all");
    let _session = Session::shared(&snap, &[]);
    let mut entries = 0;
    for round in 0..number("RECORDER_KILLS", 10) {
        let seen = site.log("").len() as u64;
        let mut tab = snap.spawn("chromium_tab", &url, &[], Stdio::null());
        // The page has some 50 requests.
        site.log(&(seen + 1 + round * 7 % 50).to_string());
        kill(Pid::from_raw(tab.id() as i32), Signal::SIGKILL).unwrap();
        tab.wait().unwrap();
        let summary = recover(&snap);
        entries += summary.entries;
        assert_sound(&snap);
    }
    assert!(entries > 0);
}
