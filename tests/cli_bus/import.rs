//! `archivist import`: a file of another program becomes one of the archive.

use super::export::record;
use super::{Bus, Cardboard, snapshot};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::{AddOptions, Snapshot};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

const WARC: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:ID>\r\n\
    WARC-Target-URI: URL\r\nWARC-Date: TIME\r\n\
    Content-Type: application/http;msgtype=response\r\nContent-Length: 47\r\n\r\n\
    HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>\r\n\r\n";

fn response(url: &str, time: &str) -> String {
    let id = format!("{url} {time}");
    WARC.replace("URL", url).replace("TIME", time).replace("ID", &id)
}

struct Bed {
    top: tempfile::TempDir,
    cardboard: Arc<Cardboard>,
    bus: Bus,
}

impl Bed {
    fn new() -> Option<Bed> {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("archivist/archive")).unwrap();
        let cardboard = Arc::new(Cardboard::default());
        // No page of the tag that the file gets.
        *cardboard.pages.lock().unwrap() = vec![snapshot(Lifecycle::Sealed)];
        let bus = Bus::start(&cardboard)?;
        Some(Bed { top, cardboard, bus })
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.top.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn import(&self, path: &Path) -> Output {
        let mut command = self.bus.command(&["import", path.to_str().unwrap()]);
        command.env("XDG_DATA_HOME", self.top.path()).output().unwrap()
    }

    /// The names of the imported files.
    fn imported(&self) -> Vec<String> {
        let directory = self.top.path().join("archivist/archive/.imported");
        let entries = fs::read_dir(directory).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn pages_of_a_file_are_added_with_their_times_and_once() {
    let Some(bed) = Bed::new() else { return };
    let records = [
        response("http://a.test/#x", "2020-01-02T03:04:05Z"),
        response("http://a.test/b", "2020-01-02T03:04:06Z"),
    ];
    let file = bed.file("site.warc", records.concat().as_bytes());
    let output = bed.import(&file);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sent = bed.cardboard.urls.lock().unwrap().clone();
    let sent: Vec<serde_json::Value> =
        sent.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = &sent[1]["bookmarked_at"];
    assert_eq!((sent.len(), time.as_str()), (2, Some("2020-01-02T03:04:06Z")));
    let options = bed.cardboard.options.lock().unwrap().clone();
    let options: AddOptions = serde_json::from_str(&options).unwrap();
    assert_eq!(options.plugins, ["import"]);
    assert_eq!(options.config["IMPORT_SOURCE"], "site.warc");
    assert_eq!(bed.imported(), [options.config["IMPORT_FILE"].clone()]);
    assert!(options.config["IMPORT_FILE"].starts_with(&options.tags[0]["imported-".len()..]));

    let known = sent.iter().map(|line| Snapshot {
        url: line["url"].as_str().unwrap().to_owned(),
        bookmarked_at: line["bookmarked_at"].as_str().map(str::to_owned),
        ..snapshot(Lifecycle::Sealed)
    });
    *bed.cardboard.pages.lock().unwrap() = known.collect();
    bed.cardboard.urls.lock().unwrap().clear();
    let output = bed.import(&file);
    assert!(output.stdout.starts_with(b"nothing new"), "{}", stderr(&output));
    assert_eq!(bed.cardboard.urls.lock().unwrap().len(), 0);
    assert_eq!(bed.imported().len(), 1);
}

#[test]
fn bad_files_have_a_reason_and_leave_nothing() {
    let Some(bed) = Bed::new() else { return };
    let good = bed.top.path().join("good.wacz");
    record(&good, "https://a.test/", 3);
    let good = fs::read(good).unwrap();
    let replaced = |from: &[u8], to: &[u8]| -> Vec<u8> {
        let at = good.windows(from.len()).rposition(|window| window == from).unwrap();
        [&good[..at], to, &good[at + from.len()..]].concat()
    };
    for (name, content, reason) in [
        ("text", b"no recording at all".to_vec(), "has no page to archive"),
        ("name", replaced(b"pages/pages.jsonl", b"../../pages.jsonl"), "leads out of the archive"),
        ("zip", b"PK\x03\x04 and nothing else".to_vec(), "has no directory"),
        ("empty", response("http://a.test/", "").into_bytes(), "has no page"),
    ] {
        let output = bed.import(&bed.file(name, &content));
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(stderr(&output).contains(reason), "{name}: {}", stderr(&output));
        assert_eq!(bed.imported(), [""; 0], "{name}");
    }
    // The whole records of a file that was cut off.
    let output = bed.import(&bed.file("cut", &good[..good.len() - 900]));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("was not finished"), "{}", stderr(&output));
    assert_eq!(bed.imported().len(), 1);
}
