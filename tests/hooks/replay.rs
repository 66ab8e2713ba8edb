//! `archivist replay`: recordings of pages in files.

use crate::fixture;
use crate::fixture::{as_ordinary_user, has, open_to_all};
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Page, Recording};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const URL: &str = "https://a.test/";
const TIME: &str = "2026-11-26T09:00:00Z";

/// A recorded answer: URL, status, headers, body.
#[derive(Clone)]
struct Answer(&'static str, u16, &'static [(&'static str, &'static str)], Vec<u8>);

/// A page with a script, a picture, a fetch, a redirect and a frame of another site.
fn answers() -> Vec<Answer> {
    const HTML: &[(&str, &str)] = &[("Content-Type", "text/html; charset=utf-8")];
    const SCRIPT: &[(&str, &str)] = &[("Content-Type", "text/javascript")];
    const SVG: &[(&str, &str)] = &[("Content-Type", "image/svg+xml")];
    const DATA: &[(&str, &str)] = &[("Content-Type", "application/json")];
    let page = br#"<!doctype html><title>A page</title><h1>Recorded</h1><p id=out></p><img src=/picture>
        <iframe src="https://b.test/frame" width=300 height=60></iframe><script src=/app.js></script>"#;
    let app = br#"addEventListener("load", async () => {
        const answer = await fetch("/api?_=" + Date.now());
        const out = document.getElementById("out");
        out.textContent = (await answer.json()).said;
        const name = "cb" + Math.random().toString().slice(2);
        window[name] = (word) => { out.textContent += word; };
        document.body.append(Object.assign(document.createElement("script"), { src: "/jsonp?callback=" + name }));
    });"#;
    let picture = br#"<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><rect width="300" height="200" fill="teal"/></svg>"#;
    let other = br#"<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><circle r="90" cx="150" cy="100" fill="red"/></svg>"#;
    vec![
        Answer(URL, 200, HTML, page.to_vec()),
        Answer("https://a.test/app.js", 200, SCRIPT, app.to_vec()),
        Answer("https://a.test/picture", 302, &[("Location", "/teal.svg")], Vec::new()),
        Answer("https://a.test/teal.svg", 200, SVG, picture.to_vec()),
        Answer(
            "https://a.test/api?_=1795683600000",
            200,
            DATA,
            br#"{"said": "fetched words"}"#.to_vec(),
        ),
        Answer(
            "https://a.test/jsonp?callback=cb123",
            200,
            SCRIPT,
            br#"/**/ cb123(" called");"#.to_vec(),
        ),
        Answer("https://a.test/favicon.ico", 404, HTML, b"none".to_vec()),
        Answer(
            "https://b.test/frame",
            200,
            HTML,
            br#"<body style="background: gold">framed <img src=red.svg height=20>"#.to_vec(),
        ),
        Answer("https://b.test/red.svg", 200, SVG, other.to_vec()),
    ]
}

/// A directory with recordings, in which the user of hooks may write.
struct Shelf(tempfile::TempDir);

impl Shelf {
    fn new() -> Shelf {
        let top = tempfile::tempdir().unwrap();
        open_to_all(top.path());
        Shelf(top)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a recording with these answers and resources.
    fn record(&self, name: &str, answers: &[Answer], resources: &[(&str, &str, &[u8])]) -> PathBuf {
        let path = self.path(name);
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let time = TIME.parse().unwrap();
        let about = About {
            software: "test".to_owned(),
            title: "A page".to_owned(),
            main_url: URL.to_owned(),
            created: time,
        };
        let mut recording = Recording::create(file, &about).unwrap();
        for Answer(url, status, headers, body) in answers {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let exchange = Exchange {
                url: (*url).to_owned(),
                method: "GET".to_owned(),
                time,
                request: Vec::new(),
                posted: None,
                status: *status,
                reason: String::new(),
                response: headers.iter().map(owned).collect(),
                protocols: Vec::new(),
                address: None,
                kind: "other".to_owned(),
                truncated: None,
            };
            let length = body.len() as u64;
            recording.add(&exchange, &mut body.as_slice(), length).unwrap();
        }
        for (kind, media_type, body) in resources {
            let url = format!("urn:{kind}:{URL}");
            recording.add_resource(&url, media_type, time, body).unwrap();
        }
        recording.add_page(Page {
            url: URL.to_owned(),
            title: "A page".to_owned(),
            time,
            text: None,
        });
        recording.finish().unwrap();
        path
    }
}

/// Runs archivist as an ordinary user without a display. Returns its exit status, output and errors.
pub fn archivist(args: &[&str]) -> (i32, String, String) {
    let mut command = as_ordinary_user(&fixture::archivist());
    let output = command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Whether this machine has the programs and user namespaces; otherwise prints why not.
pub fn has_wall() -> bool {
    let mut namespace = as_ordinary_user(Path::new("/usr/bin/unshare"));
    namespace.args(["--user", "--map-current-user", "--net", "true"]);
    let has_namespaces = namespace.status().is_ok_and(|status| status.success());
    if !has_namespaces {
        println!("skipped: an ordinary user gets no network namespace here");
    }
    has_namespaces && has(&["chromium"])
}

fn urls(list: &Value) -> Vec<&str> {
    let listed = list.as_array().unwrap().iter();
    listed.map(|one| one["url"].as_str().unwrap()).collect()
}

#[test]
fn recorded_page_is_replayed_and_its_requests_are_counted() {
    if !has_wall() {
        return;
    }
    let shelf = Shelf::new();
    let file = shelf.record("page.wacz", &answers(), &[]);
    let picture = shelf.path("page.png");
    let (code, stdout, stderr) = archivist(&[
        "replay",
        file.to_str().unwrap(),
        "--headless",
        "--json",
        "--screenshot",
        picture.to_str().unwrap(),
    ]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["recorded"], TIME);
    assert_eq!(document["exact"], 7, "{stdout}");
    // The time in the URL differs in each replay.
    assert_eq!(document["by_rule"][0]["reason"], "cache-breaking", "{stdout}");
    assert_eq!((&document["fuzzy"], &document["missing"]), (&2.into(), &0.into()));
    assert_eq!(document["by_rule"][1]["reason"], "callback", "{stdout}");
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let lost: Vec<_> = answers().into_iter().filter(|one| !one.0.ends_with("teal.svg")).collect();
    let file = shelf.record("less.wacz", &lost, &[]);
    let (code, stdout, _) = archivist(&["replay", file.to_str().unwrap(), "--headless", "--json"]);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 0);
    assert_eq!(urls(&document["not_answered"]), ["https://a.test/teal.svg"]);
}

#[test]
fn replay_without_display_recording_or_page_says_what_to_do() {
    let shelf = Shelf::new();
    let file = shelf.record("page.wacz", &answers(), &[]);
    let (code, _, stderr) = archivist(&["replay", file.to_str().unwrap()]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("archivist replay --headless"), "{stderr}");
    let missing = shelf.path("missing.wacz");
    let (code, _, stderr) = archivist(&["replay", missing.to_str().unwrap(), "--headless"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("is no file, no URL and no id"), "{stderr}");
    let text = shelf.path("text.wacz");
    fs::write(&text, "no recording").unwrap();
    let (code, _, stderr) = archivist(&["replay", text.to_str().unwrap(), "--headless"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("failed to read '"), "{stderr}");
    let whole = fs::read(&file).unwrap();
    fs::write(&text, &whole[..whole.len() / 3]).unwrap();
    let (code, _, stderr) = archivist(&["replay", text.to_str().unwrap(), "--headless"]);
    assert_ne!(code, 101, "{stderr}");
}

/// Runs `archivist verify --json`. Returns the exit status and the document.
pub fn verified(file: &Path, options: &[&str]) -> (i32, Value) {
    let args = [&["verify", file.to_str().unwrap(), "--json"], options].concat();
    let (code, stdout, stderr) = archivist(&args);
    assert_eq!(stderr, "");
    (code, serde_json::from_str(&stdout).unwrap())
}

#[test]
fn recording_is_verified_and_each_change_of_it_is_seen() {
    if !has_wall() {
        return;
    }
    let shelf = Shelf::new();
    let whole = answers();
    // What is seen of the page when it is recorded, in a small viewport.
    let first = shelf.record("first.wacz", &whole, &[]);
    let seen = shelf.path("seen.png");
    let (code, _, stderr) = archivist(&[
        "replay",
        first.to_str().unwrap(),
        "--headless",
        "--screenshot",
        seen.to_str().unwrap(),
    ]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let seen = fs::read(&seen).unwrap();
    let rows = whole.iter().map(|Answer(url, status, ..)| {
        serde_json::json!({"url": url, "method": "GET", "status": status})
    });
    let list = serde_json::json!({"url": URL, "requests": rows.collect::<Vec<_>>()}).to_string();
    let evidence: [(&str, &str, &[u8]); 3] = [
        ("text", "text/plain", b"Recorded\n\nfetched words called"),
        ("view", "image/png", &seen),
        ("pageinfo", "application/json", list.as_bytes()),
    ];
    let record = |name: &str, answers: &[Answer]| shelf.record(name, answers, &evidence);
    let changed = |url: &str, change: &dyn Fn(&mut Answer)| {
        let mut answers = whole.clone();
        change(answers.iter_mut().find(|one| one.0 == url).unwrap());
        answers
    };

    let file = record("whole.wacz", &whole);
    let (code, proof) = verified(&file, &[]);
    assert_eq!((code, &proof["holds"]), (0, &true.into()), "{proof}");
    for figure in ["resources", "text"] {
        assert_eq!(proof[figure], 1.0, "{proof}");
    }
    assert!(proof["picture"].as_f64().unwrap() > 0.999, "{proof}");
    assert_eq!(proof["flaws"], serde_json::json!([]), "{proof}");

    // One body exchanged: of data, which the text shows, and of a picture.
    let other = changed("https://a.test/api?_=1795683600000", &|one| {
        one.3 = br#"{"said": "other words"}"#.to_vec();
    });
    let (code, proof) = verified(&record("body.wacz", &other), &[]);
    assert_eq!(code, 1, "{proof}");
    assert!(proof["text"].as_f64().unwrap() < 0.8, "{proof}");
    let red = whole.iter().find(|one| one.0.ends_with("red.svg")).unwrap().3.clone();
    let other = changed("https://a.test/teal.svg", &|one| one.3 = red.clone());
    let (code, proof) = verified(&record("picture.wacz", &other), &["--least", "99"]);
    assert_eq!(code, 1, "{proof}");
    assert!(proof["picture"].as_f64().unwrap() < 0.99, "{proof}");

    // The same without a new digest.
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    let damaged = shelf.path("damaged.wacz");
    fs::write(&damaged, bytes).unwrap();
    let (code, stdout, stderr) = archivist(&["verify", damaged.to_str().unwrap()]);
    assert_eq!(code, 1, "{stdout}{stderr}");

    // One resource removed, which the list of the recorder has, and which the page wants.
    let less: Vec<_> = whole.iter().filter(|one| !one.0.ends_with("red.svg")).cloned().collect();
    let (code, proof) = verified(&record("less.wacz", &less), &["--least", "0"]);
    assert_eq!((code, &proof["holds"]), (1, &false.into()), "{proof}");
    assert_eq!(urls(&proof["requests"]["not_answered"]), ["https://b.test/red.svg"]);
    let flaw = "GET https://b.test/red.svg: listed as recorded, but not in the file";
    assert_eq!(proof["flaws"], serde_json::json!([flaw]));

    // One redirect changed, to another resource of the recording.
    let other =
        changed("https://a.test/picture", &|one| one.2 = &[("Location", "https://b.test/red.svg")]);
    let (code, proof) = verified(&record("redirect.wacz", &other), &[]);
    assert_eq!(code, 1, "{proof}");
    let not_requested = serde_json::json!(["https://a.test/teal.svg"]);
    assert_eq!(proof["not_requested"], not_requested, "{proof}");
}
