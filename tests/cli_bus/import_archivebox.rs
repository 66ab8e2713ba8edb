//! `archivist import` of a directory: what of ArchiveBox is queued, what is staged for the workers, and what is
//! refused. The database has tests in the orchestrator; these directories have files about their snapshots.

use super::{Bus, Cardboard, crawl, snapshot};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::{AddOptions, Snapshot};
use archivist_shared::staged::{RECORD, StagedPage, name_of};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

const INDEX: &str = r#"{"url": "http://a.test/#2021-04-20T10:00:00", "title": "A", "tags": "x, y",
    "timestamp": "1618912800.5", "history": {
        "dom": [{"status": "succeeded", "output": "output.html",
            "start_ts": "2021-04-20T10:00:01", "end_ts": "2021-04-20T10:00:02"}],
        "pdf": [{"status": "succeeded", "output": "output.pdf"}]}}"#;

struct Bed {
    top: tempfile::TempDir,
    cardboard: Arc<Cardboard>,
    bus: Bus,
}

impl Bed {
    fn new() -> Option<Bed> {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("archivist/archive")).unwrap();
        let page = top.path().join("box/archive/1618912800.5");
        fs::create_dir_all(&page).unwrap();
        fs::write(page.join("index.json"), INDEX).unwrap();
        fs::write(page.join("output.html"), "<p>kept").unwrap();
        symlink("/etc/passwd", page.join("output.pdf")).unwrap();
        let cardboard = Arc::new(Cardboard::default());
        let bus = Bus::start(&cardboard)?;
        Some(Bed { top, cardboard, bus })
    }

    fn import(&self, arguments: &[&str], directory: &str) -> Output {
        let path = self.top.path().join(directory);
        let arguments = [&["import"], arguments, &[path.to_str().unwrap()]].concat();
        let mut command = self.bus.command(&arguments);
        command.env("XDG_DATA_HOME", self.top.path()).output().unwrap()
    }

    fn staged(&self) -> PathBuf {
        self.top.path().join("archivist/archive/.importing")
    }

    fn queued(&self) -> String {
        self.cardboard.urls.lock().unwrap().clone()
    }
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_and_results_are_staged_for_the_worker() {
    let Some(bed) = Bed::new() else { return };
    let dry = bed.import(&["--dry-run"], "box");
    assert_eq!(dry.status.code(), Some(3), "{}", text(&dry));
    assert!(text(&dry).contains("ArchiveBox: 1 snapshot, 2 results, 2 tags"));
    assert_eq!((bed.queued().as_str(), names(&bed.staged()).len()), ("", 0));

    let output = bed.import(&["--tag", "z"], "box");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    for part in ["dom: 1 taken", "pdf: 1 without files", "output.pdf: a symbolic link"] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    let line: serde_json::Value = serde_json::from_str(bed.queued().trim()).unwrap();
    assert_eq!(line["url"], "http://a.test/");
    assert_eq!(line["bookmarked_at"], "2021-04-20T10:00:00.5Z");
    assert_eq!(line["tags"], serde_json::json!(["x", "y"]));
    let options = bed.cardboard.options.lock().unwrap().clone();
    let options: AddOptions = serde_json::from_str(&options).unwrap();
    assert_eq!(
        (options.plugins, options.tags),
        (vec!["import".into(), "text".into()], vec!["z".to_owned()])
    );
    let page = bed.staged().join(&options.config["IMPORT_STAGED"]).join(name_of("http://a.test/"));
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
    let Some(bed) = Bed::new() else { return };
    let (open, abandoned) = ("a".repeat(32), "b".repeat(32));
    for name in [&open, &abandoned] {
        fs::create_dir_all(bed.staged().join(name)).unwrap();
    }
    let mut known = crawl(Lifecycle::Queued);
    known.config.insert("IMPORT_STAGED".to_owned(), open.clone());
    *bed.cardboard.crawls.lock().unwrap() = vec![known];
    *bed.cardboard.pages.lock().unwrap() = vec![Snapshot {
        url: "http://a.test/".to_owned(),
        bookmarked_at: Some("2021-04-20T10:00:00.5Z".to_owned()),
        ..snapshot(Lifecycle::Queued)
    }];
    let output = bed.import(&[], "box");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("0 taken, 1 known"), "{}", text(&output));
    assert_eq!(bed.queued(), "");
    assert_eq!(names(&bed.staged()), [".lock", open.as_str()]);
}

#[test]
fn other_directories_and_second_commands_are_refused() {
    let Some(bed) = Bed::new() else { return };
    fs::create_dir(bed.top.path().join("other")).unwrap();
    let other = bed.import(&[], "other");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other).contains("no data directory of ArchiveBox"), "{}", text(&other));
    let missing = bed.import(&[], "missing");
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing));
    fs::create_dir(bed.staged()).unwrap();
    let lock = fs::File::create(bed.staged().join(".lock")).unwrap();
    lock.lock().unwrap();
    let second = bed.import(&[], "box");
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another command imports"), "{}", text(&second));
    assert_eq!((bed.queued().as_str(), names(&bed.staged()).len()), ("", 1));
}

#[test]
fn long_index_is_named() {
    let Some(bed) = Bed::new() else { return };
    let page = bed.top.path().join("box/archive/1700000000");
    fs::create_dir(&page).unwrap();
    let index = fs::File::create(page.join("index.json")).unwrap();
    index.set_len((16 << 20) + 1).unwrap();
    fs::create_dir(bed.top.path().join("box/archive/1700000001")).unwrap();
    let dry = text(&bed.import(&["--dry-run"], "box"));
    for fault in [
        "archive/1700000000: its index is longer than 16 MiB",
        "archive/1700000001: no snapshot: it has neither a row in the database nor an index",
    ] {
        assert!(dry.contains(fault), "{dry}");
    }
}
