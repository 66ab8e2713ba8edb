//! `archivist import`: a file of another program becomes one of the archive.

use super::export::record;
use super::import_bed::{Bed, names, text};
use super::snapshot;
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::Snapshot;
use archivist_shared::staged::{RECORD, StagedPage, name_of};
use std::fs;

const WARC: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:ID>\r\n\
    WARC-Target-URI: URL\r\nWARC-Date: TIME\r\n\
    Content-Type: application/http;msgtype=response\r\nContent-Length: 47\r\n\r\n\
    HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>\r\n\r\n";

fn response(url: &str, time: &str) -> String {
    let id = format!("{url} {time}");
    WARC.replace("URL", url).replace("TIME", time).replace("ID", &id)
}

/// A bed whose archive has a page, but none of the tag that the file gets.
fn bed() -> Option<Bed> {
    let bed = Bed::new()?;
    *bed.cardboard.pages.lock().unwrap() = vec![snapshot(Lifecycle::Sealed)];
    Some(bed)
}

/// The names of the imported files.
fn imported(bed: &Bed) -> Vec<String> {
    names(&bed.top.path().join("archivist/archive/.imported"))
}

#[test]
fn pages_of_a_file_are_added_with_their_times_and_once() {
    let Some(bed) = bed() else { return };
    let records = [
        response("http://a.test/#x", "2020-01-02T03:04:05Z"),
        response("http://a.test/b", "2020-01-02T03:04:06Z"),
    ];
    let file = bed.file("site.warc", records.concat());
    let output = bed.import(&[&file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let sent = bed.sent();
    let time = &sent[1]["bookmarked_at"];
    assert_eq!((sent.len(), time.as_str()), (2, Some("2020-01-02T03:04:06Z")));
    let options = bed.options();
    assert_eq!(options.plugins, ["import"]);
    assert_eq!(options.config["IMPORT_SOURCE"], "site.warc");
    assert_eq!(imported(&bed), [options.config["IMPORT_FILE"].clone()]);
    assert!(options.config["IMPORT_FILE"].starts_with(&options.tags[0]["imported-".len()..]));

    let known = sent.iter().map(|line| Snapshot {
        url: line["url"].as_str().unwrap().to_owned(),
        bookmarked_at: line["bookmarked_at"].as_str().map(str::to_owned),
        ..snapshot(Lifecycle::Sealed)
    });
    *bed.cardboard.pages.lock().unwrap() = known.collect();
    let output = bed.import(&[&file]);
    assert!(output.stdout.starts_with(b"nothing new"), "{}", text(&output));
    assert_eq!(bed.sent().len(), 0);
    assert_eq!(imported(&bed).len(), 1);
}

#[test]
fn pages_have_the_text_and_picture_of_their_recording() {
    let Some(bed) = bed() else { return };
    let html = |url: &str, time: &str, body: &str| {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
        let head = WARC.split("Content-Length").next().unwrap();
        let head =
            head.replace("URL", url).replace("TIME", time).replace("ID", &format!("{url} {time}"));
        format!("{head}Content-Length: {}\r\n\r\n{http}\r\n\r\n", http.len())
    };
    let picture = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:p>\r\n\
        WARC-Target-URI: urn:thumbnail:http://a.test/\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n\
        Content-Type: image/jpeg\r\nContent-Length: 6\r\n\r\n";
    let picture = [picture.as_bytes(), b"\xff\xd8\xffjpg", b"\r\n\r\n"].concat();
    let first = html("http://a.test/", "2020-01-02T03:04:05Z", "<title>A</title><p>Quokka<br>one");
    let again = html("http://a.test/", "2021-01-02T03:04:05Z", "<html lang=de><p>Beutelmaus");
    let empty = response("http://b.test/", "2020-01-02T03:04:05Z");
    let file = bed.file(
        "site.warc",
        [first.as_bytes(), again.as_bytes(), empty.as_bytes(), &picture].concat(),
    );

    let output = bed.import(&["--dry-run", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let printed = text(&output);
    assert!(printed.contains("site.warc': a recording of 3 pages\n'A', http://a.test/, of 2020-01-02T03:04:05Z, with text and picture\nhttp://a.test/, of 2021-01-02T03:04:05Z, with text and picture\nhttp://b.test/, of 2020"), "{printed}");
    assert_eq!((bed.sent().len(), imported(&bed).len(), names(&bed.staging()).len()), (0, 0, 0));

    let output = bed.import(&[&file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    // A crawl has a URL once; what was sent is that of the last one.
    let sent = bed.sent();
    assert_eq!((sent.len(), sent[0]["bookmarked_at"].as_str()), (1, Some("2021-01-02T03:04:05Z")));
    let crawls = names(&bed.staging());
    let crawls: Vec<_> = crawls.iter().filter(|name| *name != ".lock").collect();
    assert_eq!(crawls.len(), 2);
    let staged = bed.staged("http://a.test/");
    let read = |path: &str| fs::read_to_string(staged.join(path)).unwrap();
    assert_eq!(read("text/text.txt"), "Beutelmaus\n");
    assert!(read("text/text.json").contains("\"language\": \"de\""));
    assert_eq!(fs::read(staged.join("screenshot/screenshot.jpg")).unwrap(), b"\xff\xd8\xffjpg");
    let record: StagedPage = serde_json::from_str(&read(RECORD)).unwrap();
    let results: Vec<_> =
        record.results.iter().map(|result| (&*result.plugin, result.output.as_deref())).collect();
    assert_eq!(results, [("text", Some("text.txt")), ("screenshot", Some("screenshot.jpg"))]);
    let other =
        crawls.iter().find(|name| ***name != bed.options().config["IMPORT_STAGED"]).unwrap();
    let other = bed.staging().join(other);
    let first = fs::read_to_string(other.join(name_of("http://a.test/")).join("text/text.txt"));
    assert_eq!(first.unwrap(), "Quokka\none\n");
    assert!(!other.join(name_of("http://b.test/")).exists(), "nothing is known of it");
}

#[test]
fn bad_files_have_a_reason_and_leave_nothing() {
    let Some(bed) = bed() else { return };
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
        let output = bed.import(&[&bed.file(name, &content)]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(text(&output).contains(reason), "{name}: {}", text(&output));
        assert_eq!(imported(&bed), [""; 0], "{name}");
    }
    // The whole records of a file that was cut off.
    let output = bed.import(&[&bed.file("cut", &good[..good.len() - 900])]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("was not finished"), "{}", text(&output));
    assert_eq!(imported(&bed).len(), 1);
}
