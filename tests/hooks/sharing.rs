//! Recordings that share bodies (`WACZ_DEDUPE`): the second visit is small, and each visit is whole without
//! the other.

use crate::fixture::{Session, Snapshot, open_to_all};
use crate::replay::{archivist, has_wall, verified};
use archivist_hooks::bodies;
use archivist_plugin::files::remove::remove_tree;
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Page, Recording};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes that do not get smaller by compression.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

/// Serves a page with a script and data until the test ends. Each response has a header of its own.
fn serve() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let (kind, body) = match first.split(' ').nth(1).unwrap_or_default() {
                "/" => ("text/html", PAGE.as_bytes().to_vec()),
                "/app.js" => ("text/javascript", SCRIPT.as_bytes().to_vec()),
                "/data" => ("application/octet-stream", noise(1, 300_000)),
                _ => ("text/plain", Vec::new()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
                 Cache-Control: no-store\r\nX-Answer: {number}\r\nConnection: close\r\n\r\n"
            );
            // The browser may have closed a connection that it opened in advance.
            let _ = stream.write_all(&[head.into_bytes(), body].concat());
        }
    });
    format!("http://{address}/")
}

const PAGE: &str = "<!doctype html><title>A page</title><h1>Words of the page</h1><p id=out></p>\
    <script src=/app.js></script>";
const SCRIPT: &str = "fetch('/data').then((answer) => answer.arrayBuffer()).then((data) => {\
    const sum = new Uint8Array(data).reduce((sum, byte) => (sum + byte) % 65521, 0);\
    document.getElementById('out').textContent = 'sum ' + sum; });";

/// Records the page, and returns the directory of the snapshot.
fn visit(url: &str) -> Snapshot {
    let snap = Snapshot::new();
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, url, &[]);
    snap.run("wacz", url, &[]).assert(0, "succeeded", "page.wacz");
    session.tab().stopped(&snap);
    snap
}

fn bytes(snap: &Snapshot) -> u64 {
    fs::metadata(snap.file("wacz/page.wacz")).unwrap().len()
}

/// Shares the bodies of a snapshot as its worker, and lets the user of the hooks read them, as the group of
/// the hooks does. Returns what the program logs.
fn share(pool: &Path, snapshot: &Path) -> String {
    let shared = Command::new(env!("CARGO_BIN_EXE_archivist"))
        .args(["share-bodies", text(pool), text(snapshot)])
        .output()
        .unwrap();
    let log = String::from_utf8(shared.stderr).unwrap();
    assert!(shared.status.success(), "{log}");
    let bodies = snapshot.join("wacz/bodies");
    open_to_all(&snapshot.join("wacz/page.wacz"));
    open_to_all(&bodies);
    for body in fs::read_dir(&bodies).unwrap() {
        open_to_all(&body.unwrap().path());
    }
    log
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All bodies of a recording by method and URL, of which nothing contradicts itself.
fn answers(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = || File::open(path).unwrap();
    assert_eq!(bodies::check(path, file()).unwrap().flaws, []);
    let wacz = bodies::open(path, file()).unwrap();
    let read = |entry| {
        let mut body = Vec::new();
        wacz.read(entry).unwrap().body.read_to_end(&mut body).unwrap();
        body
    };
    let entries = wacz.entries().iter();
    entries.map(|entry| (format!("{} {}", entry.method, entry.url), read(entry))).collect()
}

#[test]
fn second_recording_is_small_and_whole_without_the_first() {
    if !has_wall() {
        return;
    }
    let url = serve();
    let archive = tempfile::tempdir().unwrap();
    let pool = archive.path().join(".bodies/0-");
    let first = visit(&url);
    let said = share(&pool, &first.file(""));
    assert!(said.contains(" 0 of them with earlier ones"), "{said}");
    let second = visit(&url);
    let file = second.file("wacz/page.wacz");
    let (whole, before) = (bytes(&second), answers(&file));
    share(&pool, &second.file(""));
    let small = bytes(&second);
    assert!(small * 100 <= whole * 15, "{small} of {whole} bytes");
    // The first is deleted, and so is what only the archive has.
    drop(first);
    remove_tree(&pool).unwrap();
    assert!(answers(&file) == before);
    let (code, proof) = verified(&file, &[]);
    assert_eq!((code, &proof["holds"]), (0, &true.into()), "{proof}");
    assert_eq!(proof["flaws"], serde_json::json!([]), "{proof}");
    assert_eq!((&proof["requests"]["missing"], &proof["text"]), (&0.into(), &1.0.into()));
    let description = second.file("wacz/recording.json");
    let data = format!("{url}data");
    let (code, head, _) =
        archivist(&["recorded", &data, "--headers", "--recording", text(&description)]);
    assert!(code == 0 && head.contains("application/octet-stream"), "{head}");
    // A recording without one of its bodies does not pass.
    for body in fs::read_dir(second.file("wacz/bodies")).unwrap() {
        let (path, aside) = (body.unwrap().path(), archive.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        let (code, proof) = verified(&file, &[]);
        assert_ne!(code, 0, "{proof}");
        assert_ne!(proof["flaws"], serde_json::json!([]), "{proof}");
        fs::rename(&aside, &path).unwrap();
    }
}

/// A recording with long bodies, of which each is that of `count` more.
fn record(snapshot: &Path, count: u32) -> PathBuf {
    fs::create_dir_all(snapshot.join("wacz")).unwrap();
    let path = snapshot.join("wacz/page.wacz");
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(true);
    let about = About { main_url: "https://a.test/0".to_owned(), ..About::default() };
    let mut recording = Recording::create(file.open(&path).unwrap(), &about).unwrap();
    for number in 0..count {
        let exchange = Exchange {
            url: format!("https://a.test/{number}"),
            method: "GET".to_owned(),
            time: about.created,
            request: Vec::new(),
            posted: None,
            status: 200,
            reason: "OK".to_owned(),
            response: vec![("content-type".to_owned(), "image/png".to_owned())],
            protocols: Vec::new(),
            address: None,
            kind: "image".to_owned(),
            truncated: None,
        };
        let body = noise(number, 3_000 + 100 * number as usize);
        let length = body.len() as u64;
        recording.add(&exchange, &mut &body[..], length).unwrap();
    }
    recording.add_page(Page {
        url: about.main_url,
        title: String::new(),
        time: about.created,
        text: None,
    });
    recording.finish().unwrap();
    path
}

/// RECORDER_KILLS sets how often, 200 in a full run.
#[test]
fn recording_is_whole_whenever_its_sharing_is_killed() {
    let archive = tempfile::tempdir().unwrap();
    let pool = archive.path().join(".bodies/0-");
    let snapshot = |name: &str| archive.path().join(name);
    let earlier = snapshot("s1");
    let file = record(&earlier, 20);
    let before = answers(&file);
    let start = Instant::now();
    share(&pool, &earlier);
    let whole = start.elapsed();
    let kills = std::env::var("RECORDER_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let later = snapshot("s2");
    for round in 0..kills {
        // Half of its bodies are in the archive already.
        if round % 2 == 0 {
            record(&later, 40);
        }
        let mut sharing = Command::new(env!("CARGO_BIN_EXE_archivist"))
            .args(["share-bodies", text(&pool), text(&later)])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kill_at = Instant::now() + whole * 2 * round / kills;
        while Instant::now() < kill_at && sharing.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        sharing.kill().unwrap();
        sharing.wait().unwrap();
        let now = answers(&later.join("wacz/page.wacz"));
        assert_eq!(now.len(), 40, "round {round}");
        assert!(before.iter().all(|(name, body)| now.get(name) == Some(body)), "round {round}");
        assert!(answers(&file) == before, "round {round}");
    }
    share(&pool, &later);
    let bodies = later.join("wacz/bodies");
    assert_eq!(fs::read_dir(bodies).unwrap().count(), 40);
    assert_eq!(fs::read_dir(later.join("wacz")).unwrap().count(), 2);
}
