//! Pages as files (`standalone`, `archivist export --html`), in a browser without a network: they look as they were
//! recorded.

use crate::fixture::{Ran, Session, Snapshot, WebServer, as_ordinary_user, has, open_to_all};
use crate::replay::has_wall;
use archivist_hooks::picture::{Picture, similarity};
use archivist_hooks::standalone::FIRST;
use archivist_warc::wacz::Wacz;
use serde_json::json;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

/// Records a page in the browser with its HTML after scripts, and writes it as files. Returns how similar they are to
/// the recording.
fn saved(session: &mut Session, snap: &Snapshot, url: &str) -> (f64, Ran) {
    snap.select("wacz");
    session.open(snap, url, &[]);
    for hook in ["dom", "wacz"] {
        let ran = snap.run(hook, url, &[]);
        assert_eq!(ran.exit, Some(0), "{hook} of {url}: {:?}", ran.records);
    }
    session.tab().stopped(snap);
    let ran = snap.run("standalone", url, &[]);
    ran.assert(0, "succeeded", FIRST);
    (compare(&open(snap), &snap.file("standalone")), ran)
}

/// How similar the files of wget's recording are to that of the browser.
fn figure_of_wget(browser: &Snapshot, url: &str) -> f64 {
    let snap = Snapshot::new();
    snap.run("wget", url, &[]);
    snap.run("standalone", url, &[]).assert(0, "succeeded", FIRST);
    compare(&open(browser), &snap.file("standalone"))
}

/// The recording of the browser.
fn open(snap: &Snapshot) -> Wacz {
    Wacz::open(File::open(snap.file("wacz/page.wacz")).unwrap()).unwrap()
}

/// How similar the first file is to the picture in a recording.
fn compare(recording: &Wacz, directory: &Path) -> f64 {
    let shown = recording.first_page().unwrap();
    let view = recording.of_url(&format!("urn:view:{}", shown.url));
    let mut recorded = Vec::new();
    recording.read(view.last().unwrap()).unwrap().body.read_to_end(&mut recorded).unwrap();
    let recorded = Picture::decode(&recorded).unwrap();
    let own = picture(directory, recorded.width, recorded.height);
    similarity(&recorded, &Picture::decode(&own).unwrap())
}

/// A picture of the first file, by a browser in a network namespace of its own.
fn picture(directory: &Path, width: usize, height: usize) -> Vec<u8> {
    let scratch = tempfile::tempdir().unwrap();
    open_to_all(scratch.path());
    open_to_all(directory);
    let path = scratch.path().join("picture.png");
    let script = "ip link set lo up 2>/dev/null; exec \"$@\"";
    let mut command = as_ordinary_user(Path::new("unshare"));
    command.args(["--user", "--map-current-user", "--net", "sh", "-c", script, "sh", "chromium"]);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", scratch.path().join("profile").display()));
    command.arg(format!("--window-size={width},{height}"));
    command.arg(format!("--screenshot={}", path.display()));
    command.arg(format!("file://{}", directory.join(FIRST).display()));
    command.env("HOME", scratch.path()).env("TMPDIR", scratch.path());
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
    fs::read(path).unwrap()
}

#[test]
fn page_from_disk_looks_as_recorded() {
    if !has_wall() || !has(&["wget"]) {
        return;
    }
    let web = WebServer::start("65-html-export");
    for path in ["/", "/static"] {
        let (snap, url) = (Snapshot::new(), web.url(path));
        let mut session = Session::shared(&snap, &[]);
        let (figure, ran) = saved(&mut session, &snap, &url);
        // The recorded picture has lost some of its pixels' colours.
        assert!(figure > 0.95, "{path}: {figure}, {:?}", ran.records);
        assert_eq!(ran.result()["figures"]["absent"], 0, "{path}");
        assert!(ran.result()["figures"]["lacks"].is_null(), "{path}");
        let small = snap.run("standalone", &url, &[("STANDALONE_MAX_SIZE", "1")]);
        small.assert(0, "succeeded", FIRST);
        assert_eq!(small.result()["figures"], json!({"files": 0, "absent": 0}));
        let note = small.result()["note"].as_str().unwrap();
        assert!(note.ends_with("left out, for which STANDALONE_MAX_SIZE has no room"), "{note}");
        if path == "/static" {
            let figure = figure_of_wget(&snap, &url);
            assert!(figure > 0.95, "of wget: {figure}");
        }
    }
}

#[test]
fn page_without_a_recording_and_file_in_place_of_a_page_have_no_copy() {
    let snap = Snapshot::new();
    let none = snap.run("standalone", "http://127.0.0.1:1/", &[]);
    none.assert(0, "noresults", "the page has no recording");
    if !has(&["wget"]) {
        return;
    }
    let web = WebServer::start("65-html-export");
    let picture = web.url("/red.png");
    snap.run("wget", &picture, &[]);
    let file = snap.run("standalone", &picture, &[]);
    file.assert(0, "noresults", "the page is no HTML, so it opens as the file that it is");
    assert!(!snap.file("standalone").join(FIRST).exists());
    fs::write(snap.file("wget/page.wacz"), "no file of this kind").unwrap();
    assert_eq!(snap.run("standalone", &picture, &[]).result()["status"], "failed");
}

#[test]
fn page_that_the_browser_did_not_load_is_skipped_for_its_reason() {
    if !has(&["chromium"]) {
        return;
    }
    let snap = Snapshot::new();
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    // A port that browsers do not ask, which says nothing about the site.
    let url = "http://127.0.0.1:9/";
    session.open(&snap, url, &[]);
    session.tab().stopped(&snap);
    let reason = "failed to load the page in chromium: net::ERR_UNSAFE_PORT";
    snap.run("standalone", url, &[]).assert(10, "skipped", reason);
    assert!(!snap.file("wacz/page.wacz").exists(), "no server answered");
    snap.run("wacz", url, &[]).assert(10, "skipped", reason);
}

/// Judges the URLs of the file `STANDALONE_PAGES`, one a line: prints the figures of the browser's recording and of
/// wget's.
#[test]
fn pages_of_a_list_look_as_recorded() {
    let Some(list) = std::env::var_os("STANDALONE_PAGES") else {
        return;
    };
    for (number, url) in fs::read_to_string(list).unwrap().lines().enumerate() {
        let snap = Snapshot::new();
        let mut session = Session::shared(&snap, &[]);
        let judge = || {
            let (figure, ran) = saved(&mut session, &snap, url);
            (figure, ran.result()["figures"].clone(), figure_of_wget(&snap, url))
        };
        // A page that cannot be recorded is one of the list.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(judge)) {
            Ok((figure, counts, of_wget)) => {
                println!("{figure:.4} {of_wget:.4} {counts}: {number} {url}");
            }
            Err(_) => println!("FAILED {number} {url}"),
        }
    }
}
