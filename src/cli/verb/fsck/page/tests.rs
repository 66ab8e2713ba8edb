//! Tests of the comparison of one page.

use super::*;
use crate::sample;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::File;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

#[test]
fn recording_is_a_file_in_the_directory_of_its_plugin() {
    let top = tempfile::tempdir().unwrap();
    let wacz = top.path().join("wacz");
    assert_eq!(recording(top.path()), None);
    fs::create_dir(&wacz).unwrap();
    symlink("/etc/passwd", wacz.join("page.wacz")).unwrap();
    assert_eq!(recording(top.path()), None, "a link");
    fs::remove_file(wacz.join("page.wacz")).unwrap();
    fs::write(wacz.join("page.wacz"), "").unwrap();
    assert_eq!(recording(top.path()), Some(wacz.join("page.wacz")));
}

/// A page with two files of `wget`, one of `title`, and digests.
struct Bed {
    top: TempDir,
    page: Page,
}

impl Bed {
    fn new() -> Bed {
        let top = tempfile::tempdir().unwrap();
        let mut snapshot = sample::snapshot(3);
        let directory = top.path().join("s3");
        snapshot.directory = Some(directory.to_string_lossy().into_owned());
        let mut bed = Bed { top, page: Page { snapshot, results: Vec::new(), copy: None } };
        bed.put(".identity.json", r#"{"id": "s3", "url": "http://a.test/", "token": "00"}"#);
        bed.result("wget", 1000, &[("a.test/index.html", "page"), ("page.warc.gz", "warc")]);
        bed.result("title", 1000, &[("title.txt", "Title")]);
        bed.hash(2000);
        bed
    }

    fn directory(&self) -> std::path::PathBuf {
        self.top.path().join("s3")
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn result(&mut self, plugin: &str, ended_at: i64, files: &[(&str, &str)]) {
        for (path, content) in files {
            self.put(&format!("{plugin}/{path}"), content);
        }
        let files = files.iter().map(|(path, content)| File {
            path: (*path).to_owned(),
            mimetype: String::new(),
            size: content.len() as u64,
        });
        self.page.results.push(HookResult {
            files: files.collect(),
            ended_at: Some(Time(ended_at)),
            ..sample::result(3, plugin, "hook")
        });
    }

    /// What the plugin `hashes` does.
    fn hash(&mut self, ended_at: i64) {
        let mut files = Vec::new();
        for result in &self.page.results {
            for file in &result.files {
                let path = format!("{}/{}", result.plugin, file.path);
                let content = fs::read(self.directory().join(&path)).unwrap();
                let hash = format!("{:x}", Sha256::digest(content));
                files.push(json!({"path": path, "hash": hash, "size": file.size}));
            }
        }
        let text = json!({"files": files}).to_string();
        self.result("hashes", ended_at, &[("hashes.json", &text)]);
    }

    fn check(&self) -> (Vec<Finding>, Checked) {
        self.page.check(true).unwrap()
    }

    /// The kind of each finding, the end of its path, and whether it is repaired.
    fn found(&self) -> Vec<(Kind, String, bool)> {
        let (findings, _) = self.check();
        let top = self.top.path().to_string_lossy().into_owned() + "/";
        let short = |finding: Finding| {
            assert_eq!(finding.id, Some(Owner::Snapshot(self.page.snapshot.id)));
            let path = finding.path.strip_prefix(&top).unwrap().to_owned();
            (finding.kind, path, finding.repair.is_some())
        };
        findings.into_iter().map(short).collect()
    }
}

#[test]
fn page_as_its_rows_say_has_no_finding() {
    let bed = Bed::new();
    let (findings, checked) = bed.check();
    assert_eq!(findings, []);
    assert_eq!((checked.pages, checked.files, checked.digests), (1, 4, 3));
}

#[test]
fn missing_short_and_damaged_files_are_found_and_not_replaced() {
    let bed = Bed::new();
    fs::remove_file(bed.directory().join("title/title.txt")).unwrap();
    bed.put("wget/page.warc.gz", "war");
    bed.put("wget/a.test/index.html", "paGe");
    let path = |path: &str| format!("s3/{path}");
    assert_eq!(
        bed.found(),
        [
            (Kind::File, path("title/title.txt"), false),
            (Kind::Size, path("wget/page.warc.gz"), false),
            (Kind::Digest, path("wget/a.test/index.html"), false),
        ]
    );
    let (quick, checked) = bed.page.check(false).unwrap();
    assert_eq!((quick.len(), checked.digests), (2, 0));
}

#[test]
fn missing_directory_is_archived_again() {
    let mut bed = Bed::new();
    remove_tree(&bed.directory()).unwrap();
    assert_eq!(bed.found(), [(Kind::Directory, "s3".to_owned(), true)]);
    // The page as it was is in the store, and another visit would replace it.
    bed.page.copy = Some(Copy {
        id: bed.page.snapshot.id,
        state: "idle".to_owned(),
        task: Default::default(),
        due_at: None,
        attempts: 0,
        reason: None,
        object: Some(StoredObject {
            store: "/srv".into(),
            name: "d/h/s3-00.tar".into(),
            ..StoredObject::default()
        }),
        verified_at: None,
        is_local: true,
    });
    assert_eq!(bed.found(), [(Kind::Directory, "s3".to_owned(), false)]);
    assert!(bed.check().0[0].what.ends_with("the store has it: d/h/s3-00.tar in /srv"));
    // A page that was given up may never have had one.
    bed.page.snapshot.reason = Some("given up after 3 attempts".to_owned());
    assert_eq!(bed.found(), []);
}

#[test]
fn directory_of_another_page_is_found() {
    let bed = Bed::new();
    bed.put(".identity.json", r#"{"id": "s9", "url": "http://b.test/", "token": "00"}"#);
    assert_eq!(bed.found(), [(Kind::Directory, "s3".to_owned(), true)]);
    let what = &bed.check().0[0].what;
    assert_eq!(what, "it is the directory of s9 'http://b.test/'");
}

#[test]
fn files_in_the_store_alone_are_not_missing() {
    let bed = Bed::new();
    remove_tree(&bed.directory().join("wget")).unwrap();
    bed.put(STORED_MARKER, "{}");
    let (findings, checked) = bed.check();
    assert_eq!((findings.len(), checked.stored), (0, 1));
}

/// A hook may remove and replace files of an earlier one of its plugin, and a retry those that were
/// hashed.
#[test]
fn files_of_earlier_hooks_of_a_plugin_may_change() {
    let mut bed = Bed::new();
    bed.result("wget", 3000, &[("a.test/index.html", "another page")]);
    fs::remove_file(bed.directory().join("wget/page.warc.gz")).unwrap();
    assert_eq!(bed.found(), []);
    bed.put("wget/a.test/index.html", "page");
    assert_eq!(bed.found(), [(Kind::Size, "s3/wget/a.test/index.html".to_owned(), false)]);
}

#[test]
fn links_of_hooks_are_not_followed() {
    let bed = Bed::new();
    let outside = bed.top.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("title.txt"), "Title").unwrap();
    remove_tree(&bed.directory().join("title")).unwrap();
    symlink(&outside, bed.directory().join("title")).unwrap();
    fs::remove_file(bed.directory().join("wget/page.warc.gz")).unwrap();
    symlink("/etc/passwd", bed.directory().join("wget/page.warc.gz")).unwrap();
    let found = bed.found();
    let kinds: Vec<Kind> = found.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [Kind::File, Kind::File], "{found:?}");
}
