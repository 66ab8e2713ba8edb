//! `archivist import` of a directory: what of ArchiveBox is queued, what is staged for the workers, and what is
//! refused. The database has tests in the orchestrator; these directories have files about their snapshots.

use super::import_bed::{Bed, names, text};
use super::{crawl, snapshot};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::Snapshot;
use archivist_shared::staged::{RECORD, StagedPage};
use std::fs;
use std::os::unix::fs::symlink;

const INDEX: &str = r#"{"url": "http://a.test/#2021-04-20T10:00:00", "title": "A", "tags": "x, y",
    "timestamp": "1618912800.5", "history": {
        "dom": [{"status": "succeeded", "output": "output.html",
            "start_ts": "2021-04-20T10:00:01", "end_ts": "2021-04-20T10:00:02"}],
        "pdf": [{"status": "succeeded", "output": "output.pdf"}]}}"#;

/// A bed with a data directory of ArchiveBox.
fn bed() -> Option<Bed> {
    let bed = Bed::new()?;
    let page = "box/archive/1618912800.5";
    bed.file(&format!("{page}/index.json"), INDEX);
    bed.file(&format!("{page}/output.html"), "<p>kept");
    symlink("/etc/passwd", bed.top.path().join(page).join("output.pdf")).unwrap();
    Some(bed)
}

#[test]
fn files_and_results_are_staged_for_the_worker() {
    let Some(bed) = bed() else { return };
    let dry = bed.import(&["--dry-run", "box"]);
    assert_eq!(dry.status.code(), Some(3), "{}", text(&dry));
    assert!(text(&dry).contains("ArchiveBox: 1 snapshot, 2 results, 2 tags"));
    assert_eq!((bed.sent().len(), names(&bed.staging()).len()), (0, 0));

    let output = bed.import(&["--tag", "z", "box"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    for part in ["dom: 1 taken", "pdf: 1 without files", "output.pdf: a symbolic link"] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    let sent = bed.sent();
    let [line] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(line["url"], "http://a.test/");
    assert_eq!(line["bookmarked_at"], "2021-04-20T10:00:00.5Z");
    assert_eq!(line["tags"], serde_json::json!(["x", "y"]));
    let options = bed.options();
    assert_eq!(
        (options.plugins, options.tags),
        (vec!["import".into(), "text".into()], vec!["z".to_owned()])
    );
    let page = bed.staged("http://a.test/");
    assert_eq!(names(&page), ["dom", "import", RECORD, "pdf"]);
    assert_eq!(names(&page.join("pdf")), [""; 0]);
    assert_eq!(fs::read_to_string(page.join("dom/output.html")).unwrap(), "<p>kept");
    assert_eq!(names(&page.join("import")), ["archivebox.json", "index.json"]);
    let record = fs::read_to_string(page.join(RECORD)).unwrap();
    let record: StagedPage = serde_json::from_str(&record).unwrap();
    let states: Vec<&str> =
        record.results.iter().map(|result| result.verdict.state.as_str()).collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&"succeeded") && states.contains(&"failed"));
}

/// What a command staged that was killed before it queued it is removed; what a queued crawl has stays.
#[test]
fn what_is_known_stays_and_what_was_abandoned_goes() {
    let Some(bed) = bed() else { return };
    let (open, abandoned) = ("a".repeat(32), "b".repeat(32));
    for name in [&open, &abandoned] {
        fs::create_dir_all(bed.staging().join(name)).unwrap();
    }
    let mut known = crawl(Lifecycle::Queued);
    known.config.insert("IMPORT_STAGED".to_owned(), open.clone());
    *bed.cardboard.crawls.lock().unwrap() = vec![known];
    *bed.cardboard.pages.lock().unwrap() = vec![Snapshot {
        url: "http://a.test/".to_owned(),
        bookmarked_at: Some("2021-04-20T10:00:00.5Z".to_owned()),
        ..snapshot(Lifecycle::Queued)
    }];
    let output = bed.import(&["box"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("0 taken, 1 known"), "{}", text(&output));
    assert_eq!(bed.sent().len(), 0);
    assert_eq!(names(&bed.staging()), [".lock", open.as_str()]);
}

#[test]
fn other_directories_and_second_commands_are_refused() {
    let Some(bed) = bed() else { return };
    fs::create_dir(bed.top.path().join("other")).unwrap();
    let other = bed.import(&["other"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other).contains("no data directory of ArchiveBox"), "{}", text(&other));
    let missing = bed.import(&["missing"]);
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing));
    fs::create_dir(bed.staging()).unwrap();
    let lock = fs::File::create(bed.staging().join(".lock")).unwrap();
    lock.lock().unwrap();
    let second = bed.import(&["box"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another command imports"), "{}", text(&second));
    assert_eq!((bed.sent().len(), names(&bed.staging()).len()), (0, 1));
}

#[test]
fn long_index_is_named() {
    let Some(bed) = bed() else { return };
    let page = bed.top.path().join("box/archive/1700000000");
    fs::create_dir(&page).unwrap();
    let index = fs::File::create(page.join("index.json")).unwrap();
    index.set_len((16 << 20) + 1).unwrap();
    fs::create_dir(bed.top.path().join("box/archive/1700000001")).unwrap();
    let dry = text(&bed.import(&["--dry-run", "box"]));
    for fault in [
        "archive/1700000000: its index is longer than 16 MiB",
        "archive/1700000001: no snapshot: it has neither a row in the database nor an index",
    ] {
        assert!(dry.contains(fault), "{dry}");
    }
}

/// As 0.2.4 leaves it: no database, and its own words and times in the files about the snapshots.
#[test]
fn directory_that_is_older_than_the_database_is_taken() {
    let Some(bed) = Bed::new() else { return };
    let old = r#"{"url": "http://old.test/", "domain": "old.test", "timestamp": "1550000000", "title": "Old",
        "tags": "birds", "sources": ["x.html"],
        "latest": {"wget": "old.test/index.html", "pdf": "output.pdf", "screenshot": null}, "history": {
        "wget": [{"timestamp": "1550000100", "status": "succeded", "duration": "1500", "cmd": ["wget"],
            "output": "old.test/index.html"}],
        "pdf": [{"timestamp": "1550000102", "status": "succeded", "duration": "900", "cmd": ["chrome"],
            "output": "output.pdf"}],
        "screenshot": [{"timestamp": "1550000103", "status": "failed", "duration": "10", "cmd": ["chrome"],
            "output": "Failed to screenshot"}]}}"#;
    let list = format!(
        r#"{{"info": "ArchiveBox Index", "num_links": 2, "links": [{old},
            {{"url": "http://lost.test/", "timestamp": "1550000001", "title": "Lost", "tags": "birds"}}]}}"#
    );
    bed.file("0.2.4/index.json", list.as_bytes());
    bed.file("0.2.4/archive/1550000000/index.json", old.as_bytes());
    bed.file("0.2.4/archive/1550000000/old.test/index.html", b"<title>Old</title><p>pelican");
    bed.file("0.2.4/archive/1550000000/output.pdf", b"PDF");
    let output = bed.import(&["0.2.4"]);
    let report = "2 taken, 0 known, 1 without a directory, 0 with files left out, 0 refused";
    assert!(text(&output).contains(report), "{}", text(&output));
    let mut lines = bed.sent();
    lines.sort_by_key(|line| line["url"].to_string());
    let page = |url: &str, title: &str, time: &str| serde_json::json!({"url": url, "title": title, "tags": ["birds"], "bookmarked_at": time});
    assert_eq!(
        lines,
        [
            page("http://lost.test/", "Lost", "2019-02-12T19:33:21Z"),
            page("http://old.test/", "Old", "2019-02-12T19:33:20Z"),
        ]
    );
    let page = bed.staged("http://old.test/");
    assert_eq!(fs::read(page.join("pdf/output.pdf")).unwrap(), b"PDF");
    let record = fs::read_to_string(page.join(RECORD)).unwrap();
    let record: StagedPage = serde_json::from_str(&record).unwrap();
    let mut results: Vec<String> = record
        .results
        .iter()
        .map(|result| format!("{}={}", result.plugin, result.verdict.state.as_str()))
        .collect();
    results.sort();
    assert_eq!(results, ["pdf=succeeded", "screenshot=failed", "wget=succeeded"]);
    let wget = record.results.iter().find(|result| result.plugin == "wget").unwrap();
    let times = [wget.started_at, wget.ended_at].map(|time| time.unwrap().to_string());
    assert_eq!(times, ["2019-02-12T19:35:00.000Z", "2019-02-12T19:35:01.500Z"]);
}
