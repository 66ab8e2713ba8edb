//! What the plugin wacz records, compared with the log of the server.

use crate::fixture::{Session, Site, Snapshot, TREE, WebServer, has};
use crate::front;
use crate::replay::has_wall;
use archivist_hooks::picture::{PictureFormat, compressed, is_whole};
use archivist_warc::wacz::Wacz;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// Bytes of the download of the site.
const DOWNLOAD_BYTES: usize = 65536;

/// Opens a page of a site with the plugin wacz. Returns its URL and the browser.
pub fn open_recorded(site: &Site, snap: &Snapshot, path: &str) -> (String, Session) {
    snap.select("wacz");
    let url = site.url(path);
    let mut session = Session::shared(snap, &[]);
    session.open(snap, &url, &[]);
    (url, session)
}

/// Opens a page of a site with or without the plugin wacz. Returns what the server saw.
fn visit(site: &Site, snap: &Snapshot, url: &str, is_recorded: bool) -> Vec<Value> {
    if is_recorded {
        snap.select("wacz");
    }
    let mut session = Session::shared(snap, &[("CHECK_SSL_VALIDITY", "no")]);
    session.open(snap, url, &[]);
    site.log("/done");
    if is_recorded {
        let ran = snap.run("wacz", url, &[]);
        ran.assert(0, "succeeded", "page.wacz");
    }
    session.tab().stopped(snap);
    site.log("")
}

fn name(request: &Value) -> String {
    let text = |name: &str| request[name].as_str().unwrap();
    format!("{} {}", text("method"), text("url"))
}

/// How often each path was requested.
fn counts(log: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in log {
        let name = format!("{} {}", request["method"], request["path"]);
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// The values of a header in all requests that have it.
fn values(log: &[Value], name: &str) -> BTreeSet<String> {
    let headers = log.iter().filter_map(|sent| sent["headers"].as_object());
    let own = headers.flatten().filter(|(own, _)| own.eq_ignore_ascii_case(name));
    own.map(|(_, value)| value.to_string()).collect()
}

/// A recording: the list of its page, and all its bodies by method and URL.
pub struct Recorded {
    pub rows: Vec<Value>,
    pub bodies: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Recorded {
    /// The text of the page.
    pub fn text(&self) -> String {
        let text = self.bodies.keys().find(|name| name.contains(" urn:text:"));
        let (_, url) = text.expect("the text of the page").split_once(' ').unwrap();
        String::from_utf8_lossy(self.resource(url)).into_owned()
    }

    /// The body of a record that no server has sent.
    pub fn resource(&self, url: &str) -> &[u8] {
        let mut bodies = self.bodies.iter();
        let found = bodies.find(|(name, _)| name.ends_with(&format!(" {url}")));
        &found.unwrap_or_else(|| panic!("{url} is missing")).1[0]
    }
}

pub fn recorded(snap: &Snapshot) -> Recorded {
    recorded_in(snap, "wacz/page.wacz")
}

fn recorded_in(snap: &Snapshot, file: &str) -> Recorded {
    let wacz = Wacz::open(File::open(snap.file(file)).unwrap()).unwrap();
    let mut bodies: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut rows = Vec::new();
    for entry in wacz.entries() {
        let mut body = Vec::new();
        wacz.read(entry).unwrap().body.read_to_end(&mut body).unwrap();
        if entry.url.starts_with("urn:pageinfo:") {
            let info: Value = serde_json::from_slice(&body).unwrap();
            rows = info["requests"].as_array().unwrap().clone();
        }
        bodies.entry(format!("{} {}", entry.method, entry.url)).or_default().push(body);
    }
    Recorded { rows, bodies }
}

/// The records of a recording as they are in the file, without compression.
fn records(snap: &Snapshot) -> String {
    let file = snap.read("wacz/page.wacz");
    let first = file.windows(3).position(|three| three == b"\x1f\x8b\x08");
    let mut records = Vec::new();
    // The decoder fails where the directory of the file begins.
    let _ = MultiGzDecoder::new(&file[first.unwrap()..]).read_to_end(&mut records);
    String::from_utf8_lossy(&records).into_owned()
}

/// What the recording lacks of the requests that the server saw, as texts.
pub fn faults(seen: &[Value], recorded: &Recorded) -> Vec<String> {
    let mut faults = Vec::new();
    for sent in seen {
        let name = name(sent);
        let is_own = |row: &&Value| self::name(row) == name;
        match recorded.rows.iter().find(is_own) {
            None => faults.push(format!("{name} is not in the list")),
            Some(row) if row["status"] != sent["status"] => {
                faults.push(format!("{name} has status {}", row["status"]));
            }
            Some(row) => {
                let digest = sent["sha256"].as_str().unwrap();
                let bodies = recorded.bodies.get(&name).into_iter().flatten();
                let is_redirect = sent["status"] == 302;
                let is_head = sent["method"] == "HEAD";
                let mut bodies = bodies.map(|body| format!("{:x}", Sha256::digest(body)));
                if !is_head && !is_redirect && !bodies.any(|own| own == digest) {
                    faults.push(format!("{name} has another body: {row}"));
                }
            }
        }
    }
    faults
}

#[test]
fn every_request_of_a_page_is_recorded_and_none_is_repeated() {
    if !has(&["chromium"]) {
        return;
    }
    for path in ["all", "service"] {
        let (site, snap) = (Site::of_kinds(), Snapshot::new());
        let other = Site::of_kinds();
        let bare = visit(&other, &Snapshot::new(), &other.url(path), false);
        let url = site.url(path);
        let seen = visit(&site, &snap, &url, true);
        assert_eq!(counts(&seen), counts(&bare), "{path}");
        // Without a saved DOM, the text is that of the recorded document.
        snap.run("text", &site.url(path), &[]).assert(0, "succeeded", "text.txt");
        assert_eq!(snap.json("text/text.json")["source"], "wacz");
        for name in ["User-Agent", "sec-ch-ua"] {
            let values = values(&seen, name);
            assert_eq!(values, self::values(&bare, name), "{name}");
            assert_eq!(values.len(), 1, "{values:?}");
        }
        // Chromium requests the script of a service worker before the worker can be given an identity.
        for sent in seen.iter().chain(&bare) {
            let headers = sent["headers"].to_string();
            assert!(!headers.contains("Headless"), "{}: {headers}", sent["path"]);
        }
        let recorded = recorded(&snap);
        let faults = faults(&seen, &recorded);
        assert!(faults.is_empty(), "{path}: {faults:#?}");
        let text = recorded.resource(&format!("urn:text:{url}"));
        assert!(String::from_utf8_lossy(text).contains("done"), "{text:?}");
        if path == "all" {
            let file = "filename=\"a.txt\"\r\nContent-Type: application/octet-stream\r\n\r\ncontent of the file\r\n";
            assert!(records(&snap).contains(file));
        }
        let picture = recorded.resource(&format!("urn:view:{url}"));
        assert!(is_whole(picture, PictureFormat::Png));
    }
}

/// Chromium writes a picture of text fastest as a PNG, which the recorder makes small, and one of photographs
/// is small only as a WebP.
#[test]
fn recorded_picture_has_the_format_for_what_the_page_shows() {
    if !has(&["chromium"]) {
        return;
    }
    let site = Site::of_kinds();
    for (path, format) in [("sticky", PictureFormat::Png), ("noise", PictureFormat::Webp)] {
        let snap = Snapshot::new();
        let (url, mut session) = open_recorded(&site, &snap, path);
        snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        let recorded = recorded(&snap);
        let picture = recorded.resource(&format!("urn:view:{url}"));
        assert!(is_whole(picture, format), "{path}");
        assert_eq!(compressed(picture.to_vec()), picture, "{path}");
    }
}

/// Over HTTP/2, chromium also follows hints that precede the answer.
#[test]
fn every_request_over_http_2_is_recorded() {
    if !has(&["chromium"]) {
        return;
    }
    for path in ["all", "hinted"] {
        let site = Site::of_kinds();
        let front = front::start(site.host());
        let (url, snap) = (format!("{front}{path}"), Snapshot::new());
        let seen = visit(&site, &snap, &url, true);
        let faults = faults(&seen, &recorded(&snap));
        assert!(faults.is_empty(), "{path}: {faults:#?}");
        let requested: Vec<_> = counts(&seen).into_keys().collect();
        let least = if path == "all" { 45 } else { 3 };
        assert!(requested.len() >= least, "{requested:?}");
        let records = records(&snap);
        for line in ["WARC-Protocol: h2\r\n", "WARC-Protocol: tls/1.3\r\n"] {
            assert!(records.contains(line), "{path}: {line}");
        }
    }
}

/// Hooks that save the page change its size.
#[test]
fn the_recording_has_the_view_of_the_page_when_it_was_ready() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let (url, mut session) = open_recorded(&site, &snap, "resized");
    snap.run("screenshot", &url, &[]).assert(0, "succeeded", "screenshot.png");
    snap.run("dom", &url, &[]).assert(0, "succeeded", "output.html");
    let after = String::from_utf8(snap.read("dom/output.html")).unwrap();
    assert!(after.contains("<p id=\"p\">resized</p>"), "{after}");
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let recorded = recorded(&snap);
    let text = recorded.resource(&format!("urn:text:{url}"));
    assert_eq!(String::from_utf8_lossy(text).trim(), "as loaded");
}

/// The revealing of a page that is not at its end in time is given up.
#[test]
fn page_whose_revealing_is_given_up_is_seen_at_its_top() {
    if !has(&["chromium"]) {
        return;
    }
    let views = ["no", "yes"].map(|scroll| {
        let (site, snap) = (Site::of_kinds(), Snapshot::new());
        snap.select("wacz");
        let url = site.url("grows");
        let mut session = Session::shared(&snap, &[]);
        session.open(&snap, &url, &[("CHROMIUM_SCROLL", scroll)]);
        snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        recorded(&snap).resource(&format!("urn:view:{url}")).to_vec()
    });
    assert!(views[0] == views[1]);
}

/// Chromium leaves what stays in view while the page scrolls half a pixel off in some visits.
#[test]
fn two_visits_have_the_same_view() {
    if !has(&["chromium"]) {
        return;
    }
    let views = ["no", "yes", "yes", "yes", "yes"].map(|scroll| {
        let (site, snap) = (Site::of_kinds(), Snapshot::new());
        snap.select("wacz");
        let url = site.url("sticky");
        let mut session = Session::shared(&snap, &[]);
        session.open(&snap, &url, &[("CHROMIUM_SCROLL", scroll)]);
        snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        recorded(&snap).resource(&format!("urn:view:{url}")).to_vec()
    });
    let other = views.iter().filter(|view| **view != views[0]).count();
    assert_eq!(other, 0);
}

/// Runs `archivist recorded` as a hook does. Returns its exit status and output.
fn ask(snap: &Snapshot, args: &[&str]) -> (Option<i32>, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archivist"));
    command.arg("recorded").args(args);
    command.env("RECORDING", snap.file("wacz/recording.json"));
    let output = command.output().unwrap();
    (output.status.code(), output.stdout)
}

#[test]
fn hooks_print_from_the_recording() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    visit(&site, &snap, &site.url("all"), true);
    let (exit, body) = ask(&snap, &[&site.url("module.js#part")]);
    assert_eq!((exit, body.as_slice()), (Some(0), &b"import '/imported.js'"[..]));
    let (exit, head) = ask(&snap, &[&site.url("moved.png"), "--headers"]);
    let head = String::from_utf8(head).unwrap();
    assert!(exit == Some(0) && head.starts_with("302 Found\n"), "{head}");
    assert!(head.contains("Location: /arrived.png\n"), "{head}");
    // WACZ_REDACT=cookies is the default.
    assert!(head.contains("Set-Cookie: moved=1\n"), "{head}");
    let (_, head) = ask(&snap, &[&site.url("all"), "--headers"]);
    assert!(!String::from_utf8(head).unwrap().to_ascii_lowercase().contains("cookie"));
    let (exit, body) = ask(&snap, &[&site.url("never-requested")]);
    assert_eq!((exit, body.len()), (Some(1), 0));
}

#[test]
fn the_recording_of_a_killed_tab_is_completed() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let (url, mut session) = open_recorded(&site, &snap, "all");
    site.log("/done");
    let tab = session.tab();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(tab.pid()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    tab.ended();
    let ran = snap.run("wacz", &url, &[]);
    ran.assert(0, "succeeded", "page.wacz");
    let note = "the recording was cut off with the tab";
    assert_eq!(ran.result()["note"], note);
    let recorded = recorded(&snap);
    let body = &recorded.bodies[&format!("GET {}", site.url("module.js"))];
    assert_eq!(body[0], b"import '/imported.js'");
    // A second run reports the same.
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
}

#[test]
fn a_stream_is_cut_off_and_named() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let url = site.url("stream");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[("TIMEOUT", "20")]);
    let ran = snap.run("wacz", &url, &[]);
    ran.assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let recorded = recorded(&snap);
    let row = recorded.rows.iter().find(|row| row["type"] == "eventsource");
    let row = row.expect("the stream is in the list");
    assert_eq!(row["reason"], "it had not ended when the recording did");
    let body = &recorded.bodies[&format!("GET {}", site.url("events"))][0];
    assert!(body.starts_with(b"data: 0\n\ndata: 1\n\n"), "{body:?}");
}

/// Chromium shows a PDF in a page of its own, under the address of the PDF.
#[test]
fn papers_in_a_page_are_recorded_as_they_were_sent() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let (url, mut session) = open_recorded(&site, &snap, "papers");
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let seen = site.log("");
    let recorded = recorded(&snap);
    let faults = faults(&seen, &recorded);
    assert!(faults.is_empty(), "{faults:#?}");
    let papers = seen.iter().filter(|sent| sent["path"].as_str().unwrap().contains(".pdf"));
    let names: Vec<_> = papers.map(name).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in names {
        assert_eq!(recorded.bodies[&name].len(), 1, "{name}");
    }
    let missing = snap.json("wacz/recording.json")["missing"].clone();
    let refused = json!([{"url": "http://127.0.0.1:10/", "reason": "net::ERR_CONNECTION_REFUSED"}]);
    assert_eq!(missing, refused);
    // No record is of another address than those that the servers were asked for.
    let is_asked = |name: &String| seen.iter().any(|sent| self::name(sent) == *name);
    let names = recorded.bodies.keys().filter(|name| !name.contains(" urn:"));
    let other: Vec<_> = names.filter(|name| !is_asked(name)).collect();
    assert!(other.is_empty(), "{other:?}");
    if has_wall() {
        let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
        ran.assert(0, "succeeded", "verify.json");
        let figures = &ran.result()["figures"];
        assert_eq!((&figures["missing"], &figures["flaws"]), (&json!(0), &json!(0)), "{figures}");
        assert_eq!(figures["resources"], 1.0, "{figures}");
    }
}

/// The page loads the start of a sound of 4 MB.
#[test]
fn media_that_the_page_has_not_read_are_completed() {
    if !has(&["chromium"]) {
        return;
    }
    for (media, is_whole) in [("whole", true), ("as-played", false)] {
        let (site, snap) = (Site::of_kinds(), Snapshot::new());
        snap.select("wacz");
        let (url, settings) = (site.url("sound"), [("WACZ_MEDIA", media)]);
        let mut session = Session::shared(&snap, &[]);
        session.open(&snap, &url, &settings);
        snap.run("wacz", &url, &settings).assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        let log = site.log("");
        let sounds: Vec<_> = log.iter().filter(|sent| sent["path"] == "/long.wav").collect();
        let ranges: Vec<_> = sounds.iter().map(|sent| &sent["range"]).collect();
        let recorded = recorded(&snap);
        let own = site.url("long.wav");
        let rows: Vec<_> = recorded.rows.iter().filter(|row| row["url"] == own).collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(ranges[0], "bytes=0-");
        assert_eq!(ranges.len(), 1 + usize::from(is_whole), "{ranges:?}");
        if is_whole {
            let rest = ranges[1].as_str().unwrap();
            assert!(rest.starts_with("bytes=") && rest != "bytes=0-4000043", "{rest}");
        }
        let digest = sounds[0]["sha256"].as_str().unwrap();
        let bodies = &recorded.bodies[&format!("GET {own}")];
        let is_it = |body: &Vec<u8>| format!("{:x}", Sha256::digest(body)) == digest;
        assert_eq!(bodies.iter().any(is_it), is_whole, "{media}");
    }
}

#[test]
fn nothing_is_recorded_without_the_plugin() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    snap.select("wacz");
    let url = site.url("plain");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[("WACZ_ENABLED", "false")]);
    session.tab().stopped(&snap);
    assert_eq!(std::fs::read_dir(snap.file("wacz")).unwrap().count(), 0);
    let ran = snap.run("wacz", &url, &[]);
    let reason = "the page was not recorded: its hook chromium_tab did not run, or could not begin";
    ran.assert(1, "failed", reason);
}

#[test]
fn a_download_is_recorded_and_a_site_that_is_down_is_not() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    let url = site.url("download");
    session.open(&snap, &url, &[]);
    session.tab().stopped(&snap);
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    let body = recorded(&snap).resource(&url).len();
    assert_eq!(body, DOWNLOAD_BYTES);
    let times = site.requests().into_iter();
    assert_eq!(times.filter(|path| path == "/download").count(), 1);

    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    session.open(&snap, &url, &[]);
    session.tab().stopped(&snap);
    let reason = "failed to load the page in chromium: net::ERR_CONNECTION_REFUSED";
    snap.run("wacz", &url, &[]).assert(10, "skipped", reason);
}

/// The tab is open again for a retry of another hook, after the page has changed or is gone.
#[test]
fn complete_recording_outlasts_the_retry_of_another_hook() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let url = site.url("page/1");
    visit(&site, &snap, &url, true);
    let before = snap.read("wacz/page.wacz");
    drop(site);
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    session.tab().stopped(&snap);
    assert!(snap.read("wacz/page.wacz") == before);
    assert_eq!(snap.json("wacz/recording.json")["isComplete"], true);
}

#[test]
fn what_wget_fetched_is_a_recording() {
    if !has(&["wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let url = site.url("");
    let wget = snap.run("wget", &url, &[]);
    assert_eq!(wget.result()["status"], "succeeded", "{:?}", wget.records);
    let description = snap.json("wget/recording.json");
    assert_eq!(description["url"], url.as_str());
    assert_eq!(description["recorder"], "wget");
    assert_eq!(description["isComplete"], true);
    assert_eq!(description["missing"], serde_json::json!([]));
    let recorded = recorded_in(&snap, "wget/page.wacz");
    let requests = site.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for path in requests {
        let url = site.url(path.trim_start_matches('/'));
        assert!(recorded.bodies.contains_key(&format!("GET {url}")), "{url}");
    }
    let page = Path::new(wget.result()["output_str"].as_str().unwrap()).to_owned();
    let picture = page.with_file_name("logo.png");
    let picture = snap.read(&format!("wget/{}", picture.display()));
    let logo = format!("GET {}", site.url("logo.png"));
    assert!(recorded.bodies[&logo] == [picture]);
    let file = File::open(snap.file("wget/page.wacz")).unwrap();
    let report = archivist_warc::verify::check(file).unwrap();
    assert!(report.flaws.is_empty(), "{:?}", report.flaws);

    // A login, whose cookies are secrets, and an answer that ends early.
    let url = site.url("login");
    snap.run("wget", &url, &[]);
    let bytes = snap.read("wget/page.wacz");
    assert!(!bytes.windows(11).any(|part| part == b"club=member"));
    let cut = WebServer::start("21-no-content");
    for path in ["/short", "/cut-chunk"] {
        let url = cut.url(path);
        let wget = snap.run("wget", &url, &[]);
        assert_eq!(wget.result()["status"], "succeeded", "{:?}", wget.records);
        let description = snap.json("wget/recording.json");
        assert_eq!(description["missing"][0]["url"], url.as_str(), "{path}");
        let recorded = recorded_in(&snap, "wget/page.wacz");
        let body = String::from_utf8_lossy(&recorded.bodies[&format!("GET {url}")][0]).into_owned();
        assert!(body.contains("shown"), "{path}: {body}");
    }
    let coded = WebServer::start("51-requisites");
    for path in ["/brotli", "/zstd"] {
        let url = coded.url(path);
        snap.run("wget", &url, &[]);
        let recorded = recorded_in(&snap, "wget/page.wacz");
        let body = String::from_utf8_lossy(&recorded.bodies[&format!("GET {url}")][0]).into_owned();
        assert!(body.contains("shown"), "{path}: {body}");
    }
    // The user wants none.
    let none = Snapshot::new();
    none.run("wget", &site.url("page/1"), &[("WACZ_ENABLED", "false")]);
    assert!(!none.file("wget/page.wacz").exists());
}

#[test]
fn recording_is_replayed_by_the_hook_verify() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("all");
    let on = [("VERIFY_ENABLED", "true")];
    let ran = snap.run("verify", &url, &on);
    ran.assert(10, "skipped", "the page has no recording");
    visit(&site, &snap, &url, true);
    let requested = site.log("").len();
    let ran = snap.run("verify", &url, &on);
    ran.assert(0, "succeeded", "verify.json");
    let figures = &ran.result()["figures"];
    let document = snap.json("verify/verify.json");
    assert_eq!(document["url"], url.as_str());
    assert_eq!(figures["exact"], document["requests"]["exact"]);
    assert!(figures["exact"].as_u64().unwrap() > 30, "{document}");
    assert_eq!(figures["flaws"], 0, "{document}");
    let shares = ["resources", "text", "picture"].map(|name| figures[name].as_f64().unwrap());
    let lowest = shares.into_iter().fold(1.0, f64::min);
    assert_eq!(figures["fidelity"].as_f64(), Some(lowest), "{document}");
    assert!(lowest > 0.8, "{document}");
    assert_eq!(site.log("").len(), requested, "the replay reached the site");
}

#[test]
fn parts_of_files_are_replayed_as_they_were_asked_for() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("ranges");
    visit(&site, &snap, &url, true);
    let text = String::from_utf8(recorded(&snap).resource(&format!("urn:text:{url}")).to_vec());
    let text = text.unwrap();
    let lines: Vec<_> = text.trim_end().lines().collect();
    assert_eq!((lines.len(), lines.last()), (18, Some(&"sought 450 of 500")), "{text}");
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    ran.assert(0, "succeeded", "verify.json");
    let document = snap.json("verify/verify.json");
    assert_eq!(document["requests"]["missing"], 0, "{document}");
    assert_eq!(document["text"], 1.0, "{text} {document}");
}

/// The page redirects to itself until it has a cookie, which is another one then.
#[test]
fn cookies_that_scripts_read_are_those_of_the_replay() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("cookies");
    visit(&site, &snap, &url, true);
    let text = recorded(&snap).resource(&format!("urn:text:{url}")).to_vec();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("region=eu7") && text.contains("way=b8"), "{text}");
    let records = records(&snap);
    assert!(!records.contains("ofservers") && !records.contains("\r\nCookie:"));
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    ran.assert(0, "succeeded", "verify.json");
    let document = snap.json("verify/verify.json");
    let requests = &document["requests"];
    assert_eq!((&requests["missing"], &requests["fuzzy"]), (&0.into(), &0.into()), "{document}");
    assert_eq!(document["text"], 1.0, "{text} {document}");
}

/// The page shows a cookie of the persona, and asks for an address with its value.
#[test]
fn values_of_a_persona_are_masked_and_the_page_is_replayed() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let file = snap.file("cookies.txt");
    let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\t";
    let cookies =
        ["member\tAnna-77/Xy9", "way\tlong-ago1"].map(|cookie| format!("{line}{cookie}\n"));
    let text = format!("{}#HttpOnly_{line}key\tofpersona\n", cookies.concat());
    fs::write(&file, text).unwrap();
    let url = site.url("cookies");
    let settings = [("COOKIES_FILE", file.to_str().unwrap()), ("WACZ_REDACT", "no")];
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &settings);
    site.log("/done");
    snap.run("wacz", &url, &settings).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let asked = "/data?region=eu7&way=b8&member=Anna-77%2FXy9";
    assert!(site.requests().iter().any(|path| path == asked), "{:?}", site.requests());
    let text = recorded(&snap).resource(&format!("urn:text:{url}")).to_vec();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("region=eu7; way=b8") && text.contains("member="), "{text}");
    let all =
        [records(&snap), String::from_utf8(snap.read("wacz/recording.json")).unwrap()].concat();
    for value in ["Anna-77", "Xy9", "long-ago1", "ofpersona"] {
        assert!(!all.contains(value), "{value}");
    }
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    ran.assert(0, "succeeded", "verify.json");
    let document = snap.json("verify/verify.json");
    let requests = &document["requests"];
    assert_eq!((&requests["missing"], &requests["fuzzy"]), (&0.into(), &0.into()), "{document}");
    assert_eq!(
        (&document["text"], &document["flaws"]),
        (&1.0.into(), &serde_json::json!([])),
        "{text} {document}"
    );
}

/// A replay is compared with what the page really was: scripts that failed, and requests that no server
/// answered, do so again.
#[test]
fn what_failed_in_the_recording_is_no_fault_of_its_replay() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("broken");
    // The browser keeps 1,000 messages of a page. The rules for consent write none.
    let rules = TREE.join("autoconsent").display().to_string();
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[("CHROMIUM_CONSENT_RULES", &rules)]);
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let recorded = recorded(&snap);
    let info = recorded.resource(&format!("urn:pageinfo:{url}"));
    let info: Value = serde_json::from_slice(info).unwrap();
    let errors = ["wrote 7", "Uncaught ReferenceError: nothing is not defined"];
    assert_eq!(info["errors"], serde_json::json!(errors));
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    ran.assert(0, "succeeded", "verify.json");
    let document = snap.json("verify/verify.json");
    assert!(document["requests"]["failed"].as_u64() >= Some(2), "{document}");
    assert_eq!(document["requests"]["missing"], 0, "{document}");
    assert_eq!(document["errors"], serde_json::json!([]), "{document}");
    assert_eq!(document["resources"], 1.0, "{document}");
}

/// The recording keeps what a hook makes the page request, such as a picture for paper, and the replay is
/// not expected to ask for it.
#[test]
fn what_printing_requests_is_recorded_and_not_expected_of_a_replay() {
    if !has_wall() {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("printed");
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    snap.run("pdf", &url, &[]).assert(0, "succeeded", "output.pdf");
    session.tab().stopped(&snap);
    snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
    let picture = site.url("print.png");
    assert!(!recorded(&snap).resource(&picture).is_empty());
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    let figures = ran.result()["figures"].clone();
    assert_eq!(figures["fidelity"], 1.0, "{figures}");
}

/// The paths that a page with random URLs asked for, in their order, and the figures of its replay.
fn replayed_random(settings: &[(&str, &str)]) -> (Vec<String>, Value) {
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url("random");
    snap.select("wacz");
    let mut session = Session::shared(&snap, settings);
    session.open(&snap, &url, settings);
    snap.run("wacz", &url, settings).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let paths = site.requests().into_iter();
    let mut random: Vec<_> = paths.filter(|path| path.starts_with("/data")).collect();
    random.sort();
    let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
    ran.assert(0, "succeeded", "verify.json");
    (random, ran.result()["figures"].clone())
}

#[test]
fn page_with_a_seed_asks_for_the_same_random_urls_in_its_replay() {
    if !has_wall() {
        return;
    }
    let (first, seeded) = replayed_random(&[]);
    let different: BTreeSet<_> = first.iter().collect();
    assert_eq!(different.len(), 4, "{first:?}");
    assert_eq!(
        (&seeded["fuzzy"], &seeded["missing"], &seeded["fidelity"]),
        (&0.into(), &0.into(), &1.0.into()),
        "{seeded}"
    );
    let (second, off) = replayed_random(&[("WACZ_SEED", "off")]);
    assert_eq!(second.len(), 4);
    assert_eq!(
        seeded["exact"].as_u64().unwrap() - off["exact"].as_u64().unwrap(),
        4,
        "{seeded}, {off}"
    );
    assert_eq!(off["fuzzy"].as_u64().unwrap() + off["missing"].as_u64().unwrap(), 4, "{off}");
    let (third, _) = replayed_random(&[]);
    assert!(first != third, "a new seed for each recording: {first:?}");
}

/// The recording of a visit on a machine with these settings, its URL and the text of the page.
fn recorded_with(path: &str, settings: &[(&str, &str)]) -> (Snapshot, String, String) {
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let url = site.url(path);
    snap.select("wacz");
    let mut session = Session::shared(&snap, settings);
    session.open(&snap, &url, settings);
    snap.run("wacz", &url, settings).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    let text = recorded(&snap).resource(&format!("urn:text:{url}")).to_vec();
    (snap, url, String::from_utf8(text).unwrap())
}

/// What `verify` finds of a recording on another machine.
fn verified_elsewhere(snap: &Snapshot, url: &str) -> Value {
    let elsewhere = [
        ("VERIFY_ENABLED", "true"),
        ("TZ", "America/New_York"),
        ("ACCEPT_LANGUAGE", "fr"),
        ("RESOLUTION", "2500,1400"),
    ];
    snap.run("verify", url, &elsewhere).assert(0, "succeeded", "verify.json");
    snap.json("verify/verify.json")
}

/// Addresses that scripts make of zone, languages, screen, colours and chance are the same in a replay on
/// another machine.
#[test]
fn replay_is_in_the_world_of_the_visit() {
    if !has_wall() {
        return;
    }
    let settings = [
        ("TZ", "Asia/Kolkata"),
        ("ACCEPT_LANGUAGE", "de-AT,de"),
        ("RESOLUTION", "1000,700"),
        ("CHROME_ARGS_EXTRA", r#"["--force-prefers-reduced-motion"]"#),
        ("WACZ_SEED", "17"),
    ];
    let (snap, url, text) = recorded_with("world", &settings);
    let document = verified_elsewhere(&snap, &url);
    let world = recorded(&snap).resource(&format!("urn:world:{url}")).to_vec();
    let world: Value = serde_json::from_slice(&world).unwrap();
    assert_eq!(
        world,
        serde_json::json!({"timeZone": "Asia/Calcutta", "locale": "en-US", "languages": ["de-AT", "de"],
            "viewport": [1000, 700], "screen": [1920, 1080], "deviceScale": 1.0, "colorScheme": "light",
            "reducedMotion": "reduce", "seed": 17})
    );
    assert!(text.contains("Asia/Calcutta en-US 0.5 de-AT,de -330"), "{text}");
    let requests = &document["requests"];
    assert_eq!((&requests["missing"], &requests["fuzzy"]), (&0.into(), &0.into()), "{document}");
    assert_eq!(document["text"], 1.0, "{text} {document}");
}

/// A page cannot find out that its random numbers are repeated in a replay.
#[test]
fn seed_leaves_no_traces() {
    if !has(&["chromium"]) {
        return;
    }
    let (_, _, seeded) = recorded_with("traces", &[]);
    let (_, _, off) = recorded_with("traces", &[("WACZ_SEED", "off")]);
    assert_eq!(seeded, off);
    assert!(seeded.contains("function random() { [native code] }"), "{seeded}");
    assert!(seeded.contains(" 27"), "frames draw numbers of their own: {seeded}");
}

/// `crypto` has no seed. The answers are those of the ids of the visit, but no rule chooses between two.
#[test]
fn requests_with_other_ids_are_answered_by_rule() {
    if !has_wall() {
        return;
    }
    let (snap, url, text) = recorded_with("ids", &[]);
    assert_eq!(text.trim(), "200 200 200 200 200 200");
    let document = verified_elsewhere(&snap, &url);
    let requests = &document["requests"];
    assert_eq!((&requests["fuzzy"], &requests["missing"]), (&4.into(), &2.into()), "{document}");
    let rules = requests["by_rule"].as_array().unwrap();
    assert!(rules.iter().all(|one| one["reason"] == "id"), "{document}");
    let missing = requests["not_answered"].as_array().unwrap();
    assert!(
        missing.iter().all(|one| one["url"].as_str().unwrap().contains("/item/")),
        "{document}"
    );
}
