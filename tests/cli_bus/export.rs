//! `archivist export`: one WACZ of the recordings of several pages.

use super::{Bus, Cardboard, snapshot};
use archivist_core::model::{Lifecycle, SnapshotId};
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_warc::exchange::Exchange;
use archivist_warc::verify::check;
use archivist_warc::wacz::{About, Page, Recording, Wacz};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const TIME: &str = "2026-11-26T09:53:41.25Z";

/// A sealed page whose recording has `count` responses.
fn page(top: &Path, id: i64, count: usize) -> Snapshot {
    let directory = top.join("20261126/a.test").join(SnapshotId(id).to_string());
    fs::create_dir_all(directory.join("wacz")).unwrap();
    fs::write(directory.join("index.html"), "").unwrap();
    let url = format!("https://a.test/{id}");
    record(&directory.join("wacz/page.wacz"), &url, count);
    Snapshot {
        id: SnapshotId(id),
        url,
        directory: Some(directory.display().to_string()),
        ..snapshot(Lifecycle::Sealed)
    }
}

/// Writes a recording with `count` responses, of which the first is the page.
pub fn record(path: &Path, url: &str, count: usize) {
    let of = |number| match number {
        0 => url.to_owned(),
        _ => format!("{url}/{number}"),
    };
    let bodies: Vec<String> = (0..count).map(of).collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
    record_bodies(path, url, &bodies);
}

/// Writes a recording of responses with these bodies, of which the first is the page.
fn record_bodies(path: &Path, url: &str, bodies: &[&[u8]]) {
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true);
    let file = options.open(path).unwrap();
    let url = url.to_owned();
    let about = About { main_url: url.clone(), created: TIME.parse().unwrap(), ..About::default() };
    let mut recording = Recording::create(file, &about).unwrap();
    for (number, body) in bodies.iter().enumerate() {
        let exchange = Exchange {
            url: match number {
                0 => url.clone(),
                _ => format!("{url}/{number}"),
            },
            method: "GET".to_owned(),
            time: TIME.parse().unwrap(),
            request: Vec::new(),
            posted: None,
            status: 200,
            reason: "OK".to_owned(),
            response: vec![("content-type".to_owned(), "text/html".to_owned())],
            protocols: Vec::new(),
            address: None,
            kind: "document".to_owned(),
            truncated: None,
        };
        let length = body.len() as u64;
        recording.add(&exchange, &mut &**body, length).unwrap();
    }
    recording.add_page(Page {
        url,
        title: "A title".to_owned(),
        time: TIME.parse().unwrap(),
        text: Some("words".to_owned()),
    });
    recording.finish().unwrap();
}

/// A page of an imported file.
fn imported(top: &Path, id: i64, url: &str, file: &str) -> Snapshot {
    let directory = top.join("20261126/a.test").join(SnapshotId(id).to_string());
    fs::create_dir_all(directory.join("import")).unwrap();
    fs::write(directory.join("index.html"), "").unwrap();
    let reference = serde_json::json!({"file": file, "source": "site.wacz", "url": url});
    fs::write(directory.join("import/recording.json"), reference.to_string()).unwrap();
    Snapshot {
        id: SnapshotId(id),
        url: url.to_owned(),
        bookmarked_at: Some(TIME.to_owned()),
        directory: Some(directory.display().to_string()),
        ..snapshot(Lifecycle::Sealed)
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn recordings_of_all_pages_become_one_file() {
    let archive = tempfile::tempdir().unwrap();
    let queued = Snapshot { id: SnapshotId(5), ..snapshot(Lifecycle::Queued) };
    let cardboard = Arc::new(Cardboard::default());
    let pages = [queued, page(archive.path(), 4, 2), page(archive.path(), 3, 1)];
    *cardboard.pages.lock().unwrap() = pages.to_vec();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let to = tempfile::tempdir().unwrap();
    let path = to.path().join("x.wacz");
    let file = path.to_str().unwrap();
    // The same pages twice.
    let (code, stdout, stderr) = bus.run(&["export", "c1", "c1", "-o", file]);
    assert_eq!((code, stderr.as_str()), (3, "not exported: s5: is queued\n"));
    assert!(stdout.contains(": 2 pages, 3 records, "), "{stdout}");
    assert_eq!(names(to.path()), ["x.wacz"]);
    let report = check(File::open(&path).unwrap()).unwrap();
    assert_eq!((report.flaws, report.records), (Vec::new(), 9));
    let wacz = Wacz::open(File::open(&path).unwrap()).unwrap();
    let urls: Vec<_> = wacz.pages().iter().map(|page| page.url.as_str()).collect();
    assert_eq!(urls, ["https://a.test/3", "https://a.test/4"]);

    let arguments = ["export", "--tag", "t", "--url", "https://a.test/*", "-o", file];
    let (code, _, _) = bus.run(&arguments);
    assert_eq!(code, 3);
    let filter: Filter = serde_json::from_str(&cardboard.filter.lock().unwrap()).unwrap();
    assert_eq!(filter.tag.as_deref(), Some("t"));
    assert_eq!(filter.url.unwrap().to_string(), "https://a.test/*");
    let (code, _, stderr) = bus.run(&["export", "-o", file]);
    assert!(code == 2 && stderr.contains("<ID>"), "{stderr}");
}

#[test]
fn every_page_of_a_crawl_is_verified() {
    let archive = tempfile::tempdir().unwrap();
    let queued = Snapshot { id: SnapshotId(3), ..snapshot(Lifecycle::Queued) };
    let bare = page(archive.path(), 4, 1);
    let recordings = Path::new(bare.directory.as_ref().unwrap()).join("wacz");
    remove_tree(&recordings).unwrap();
    let cardboard = Arc::new(Cardboard::default());
    *cardboard.pages.lock().unwrap() = vec![queued, bare];
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let filter = || serde_json::from_str::<Filter>(&cardboard.filter.lock().unwrap()).unwrap();
    let (code, stdout, stderr) = bus.run(&["verify", "--no-namespace", "c1"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines, ["2 pages: 0 hold, 0 do not hold, 2 without a recording"]);
    assert_eq!((filter().after_page, filter().owner.unwrap().to_string()), (Some(0), "c1".into()));
    let (code, stdout, _) = bus.run(&["verify", "--no-namespace", "--tag", "t", "--json"]);
    assert_eq!((code, filter().tag.as_deref()), (0, Some("t")));
    let last: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["unrecorded"], 2);
    let (code, _, stderr) = bus.run(&["replay", "--headless", "--no-namespace", "c1"]);
    assert!(code == 1 && stderr.contains("no page of c1 has a recording"), "{stderr}");
    for wrong in [&["verify"][..], &["verify", "c1", "--all"]] {
        assert_eq!(bus.run(wrong).0, 2);
    }
}

#[test]
fn bodies_that_recordings_share_are_in_the_exported_file() {
    let archive = tempfile::tempdir().unwrap();
    let cardboard = Arc::new(Cardboard::default());
    let lines: Vec<String> =
        (0..50_000_u32).map(|n| format!("{:08x}, ", n.wrapping_mul(2_654_435_761))).collect();
    let body = lines.concat();
    let pages = [3, 4].map(|id| page_with(archive.path(), id, body.as_bytes()));
    let directories = pages.clone().map(|page| page.directory.unwrap());
    *cardboard.pages.lock().unwrap() = pages.to_vec();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let pool = archive.path().join(".bodies/0-");
    for directory in &directories {
        let (code, _, stderr) = bus.run(&["share-bodies", pool.to_str().unwrap(), directory]);
        assert_eq!(code, 0, "{stderr}");
    }
    let bodies = |directory: &String| names(&Path::new(directory).join("wacz/bodies"));
    assert_eq!(bodies(&directories[0]).len(), 1);
    assert_eq!(bodies(&directories[0]), bodies(&directories[1]));
    let to = archive.path().join("x.wacz");
    let export = || bus.run(&["export", "c1", "-o", to.to_str().unwrap()]);
    let (code, _, stderr) = export();
    assert_eq!((code, stderr.as_str()), (0, ""));
    let read = |wacz: &Wacz, url: &str| {
        let entry = wacz.entries().iter().find(|entry| entry.url == url);
        let mut text = String::new();
        let mut answer = wacz.read(entry.unwrap()).unwrap();
        answer.body.read_to_string(&mut text).unwrap();
        text
    };
    let wacz = Wacz::open(File::open(&to).unwrap()).unwrap();
    for url in ["https://a.test/3", "https://a.test/4"] {
        assert!(read(&wacz, url) == body);
    }
    assert_eq!(check(File::open(&to).unwrap()).unwrap().flaws, []);
    // A body that is gone is not left out in silence.
    remove_tree(&Path::new(&directories[0]).join("wacz/bodies")).unwrap();
    let (_, _, stderr) = export();
    assert!(stderr.contains("a shared body is missing"), "{stderr}");
}

/// A sealed page whose recording has one response with this body.
fn page_with(top: &Path, id: i64, body: &[u8]) -> Snapshot {
    let page = page(top, id, 1);
    let path = Path::new(page.directory.as_ref().unwrap()).join("wacz/page.wacz");
    fs::remove_file(&path).unwrap();
    record_bodies(&path, &page.url, &[body]);
    page
}

#[test]
fn failed_export_leaves_what_was_there() {
    let archive = tempfile::tempdir().unwrap();
    let damaged = page(archive.path(), 3, 1);
    let recording = Path::new(damaged.directory.as_ref().unwrap()).join("wacz/page.wacz");
    let cardboard = Arc::new(Cardboard::default());
    *cardboard.pages.lock().unwrap() = vec![damaged, page(archive.path(), 4, 400)];
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let to = tempfile::tempdir().unwrap();
    let path = to.path().join("x.wacz");
    fs::write(&path, "before").unwrap();
    let file = path.to_str().unwrap();
    // The kernel kills a reader whose file gets larger.
    let limited = |bytes: &str| {
        let command = bus.command(&["export", "c1", "-o", file]);
        let mut limit = Command::new("prlimit");
        limit.arg(format!("--fsize={bytes}")).arg(command.get_program());
        limit.args(command.get_args()).env_clear();
        limit.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limit.env("PATH", "/usr/bin").output().unwrap()
    };
    assert!(!limited("20000").status.success());
    assert_eq!(names(to.path()), ["x.wacz"]);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    // As a command leaves it that was killed.
    fs::write(to.path().join("x.wacz.partial"), "a part").unwrap();

    fs::write(&recording, "no archive").unwrap();
    let (code, _, stderr) = bus.run(&["export", "c1", "-o", file]);
    assert_eq!(code, 1);
    assert!(stderr.contains("s3: '") && stderr.contains("neither a WACZ"), "{stderr}");
    assert_eq!(names(to.path()), ["x.wacz"]);
    assert_eq!(fs::read(&path).unwrap(), b"before");

    fs::remove_file(&recording).unwrap();
    let (code, _, stderr) = bus.run(&["export", "c1", "-o", file]);
    assert_eq!((code, stderr.as_str()), (3, "not exported: s3: has no recording\n"));
    assert_eq!(check(File::open(&path).unwrap()).unwrap().flaws, []);
}

#[test]
fn file_of_imported_pages_is_exported_once() {
    let archive = tempfile::tempdir().unwrap();
    fs::create_dir(archive.path().join(".imported")).unwrap();
    let file = archive.path().join(".imported/0a.wacz");
    record(&file, "https://b.test/", 3);
    fs::write(archive.path().join("secret.wacz"), fs::read(&file).unwrap()).unwrap();
    let cardboard = Arc::new(Cardboard::default());
    let of = |id, url, file| imported(archive.path(), id, url, file);
    *cardboard.pages.lock().unwrap() = vec![
        of(3, "https://b.test/", "0a.wacz"),
        of(4, "https://b.test//1", "0a.wacz"),
        of(5, "https://b.test/", "../secret.wacz"),
        of(6, "https://b.test/", "0b.wacz"),
    ];
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let to = archive.path().join("x.wacz");
    let (code, stdout, stderr) = bus.run(&["export", "c1", "-o", to.to_str().unwrap()]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.contains(": 2 pages, 3 records, "), "{stdout}");
    let missing = "not exported: s5: has no recording\nnot exported: s6: has no recording\n";
    assert_eq!(stderr, missing);
    assert_eq!(check(File::open(&to).unwrap()).unwrap().flaws, []);
    let wacz = Wacz::open(File::open(&to).unwrap()).unwrap();
    let pages: Vec<_> = wacz.pages().iter().map(|page| (&*page.url, &*page.title)).collect();
    assert_eq!(pages, [("https://b.test/", "A title"), ("https://b.test//1", "")]);
}

#[test]
fn pages_become_files_that_lead_to_each_other() {
    let archive = tempfile::tempdir().unwrap();
    let queued = Snapshot { id: SnapshotId(5), ..snapshot(Lifecycle::Queued) };
    let body = b"<a href=/4>four</a><a href=/3/1>one</a><img src=/lost.png><script>bad()</script>";
    let built = page(archive.path(), 4, 1);
    let directory = Path::new(built.directory.as_ref().unwrap()).join("dom");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("output.html"), "<p>built</p>").unwrap();
    let cardboard = Arc::new(Cardboard::default());
    let pages = [queued, page_with(archive.path(), 3, body), built];
    *cardboard.pages.lock().unwrap() = pages.to_vec();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let to = tempfile::tempdir().unwrap();
    let path = to.path().join("copy");
    let directory = path.to_str().unwrap();
    let (code, stdout, stderr) = bus.run(&["export", "c1", "--html", directory]);
    assert_eq!((code, stderr.as_str()), (3, "not exported: s5: is queued\n"));
    let summary = "copy: 2 pages, 0 files, 1 address not in the recordings\n";
    assert!(stdout.ends_with(summary), "{stdout}");
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    let list = read("index.html");
    assert!(list.contains("pages/a-test-3-s3.html") && list.contains("pages/a-test-4-s4.html"));
    assert!(read("pages/a-test-4-s4.html").contains("<p>built</p>"));
    let three = read("pages/a-test-3-s3.html");
    assert!(three.contains("href=\"../pages/a-test-4-s4.html\"") && !three.contains("bad()"));
    assert!(three.contains("https://a.test/3/1\">one"), "{three}");

    // Nothing is written into a directory with files.
    let (code, _, stderr) = bus.run(&["export", "c1", "--html", directory]);
    assert!(code == 1 && stderr.contains("the directory is not empty"), "{stderr}");
    let (code, _, stderr) = bus.run(&["export", "c1", "--html", directory, "-o", "x.wacz"]);
    assert!(code == 2 && stderr.contains("cannot be used with"), "{stderr}");

    // A recording that cannot be read leaves nothing behind.
    let recording = Path::new(pages[1].directory.as_ref().unwrap()).join("wacz/page.wacz");
    fs::write(&recording, "no archive").unwrap();
    *cardboard.pages.lock().unwrap() = vec![pages[1].clone()];
    let other = to.path().join("other");
    let (code, _, stderr) = bus.run(&["export", "s3", "--html", other.to_str().unwrap()]);
    assert!(code == 1 && stderr.contains("neither a WACZ"), "{stderr}");
    assert_eq!(names(to.path()), ["copy"]);
}
