use super::*;
use crate::page::groups::lists_of;
use crate::page::{ListEntry, ListKind, versions};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_plugin::sample::{deep, depths, poor};
use std::os::unix::fs::PermissionsExt;

struct Bed {
    top: tempfile::TempDir,
}

impl Bed {
    fn new() -> Bed {
        let bed = Bed { top: tempfile::tempdir().unwrap() };
        fs::create_dir_all(bed.path("20261126/a.test/c1")).unwrap();
        bed
    }

    fn path(&self, below: &str) -> PathBuf {
        self.top.path().join(below)
    }

    /// A sealed page, which is on the lists of its day, its crawl, its site, its tag and the archive.
    fn page(&self, id: i64) -> PathBuf {
        let directory = format!("20261126/a.test/s{id}");
        let path = self.path(&directory);
        fs::create_dir_all(path.join("wget")).unwrap();
        fs::write(path.join("index.html"), "<p>page").unwrap();
        fs::write(path.join("wget/a.html"), "<p>page").unwrap();
        let identity = format!(r#"{{"id": "s{id}", "token": "T{id}"}}"#);
        fs::write(path.join(".identity.json"), identity).unwrap();
        let entry = ListEntry {
            id: SnapshotId(id),
            url: format!("https://a.test/{id}"),
            title: None,
            archived_at: Time(id),
            visited_at: None,
            directory,
            screenshot: None,
            succeeded: 1,
            failed: 0,
            unsaved: None,
            tags: vec![format!("tag of {}", id % 2)],
            partial: false,
            version: None,
        };
        let index = ArchiveIndex::open(self.top.path()).unwrap();
        let add = |name: &str, kind, directory: &str| {
            index.add_all(name, kind, directory, &[(&entry, None)]).unwrap()
        };
        add("c1", ListKind::Crawl("c1".into()), "20261126/a.test/c1");
        for (name, kind, directory) in lists_of(&entry) {
            add(&name, kind, &directory);
        }
        index.write_groups().unwrap();
        let day = add("20261126", ListKind::Day("20261126".into()), "20261126");
        index.add_newest(&[&entry], "20261126", day.total).unwrap();
        path
    }

    fn removed(&self, owner: &str, token: &str) -> Removed {
        Removed {
            owner: owner.parse().unwrap(),
            directory: self.path(&format!("20261126/a.test/{owner}")),
            identity: Some(token.to_owned()),
            url_key: None,
        }
    }

    fn remove(&self, directories: Vec<Removed>, is_last: bool) -> bool {
        let lists = [(CrawlId(1), self.path("20261126/a.test/c1"))];
        remove_all(&ToRemove {
            archive: self.top.path().to_owned(),
            directories,
            lists: lists.into(),
            imported: vec!["0a1b".to_owned()],
            is_last,
        })
        .unwrap()
    }

    fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    fn names(&self, below: &str) -> Vec<String> {
        let names = fs::read_dir(self.path(below)).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn files_and_entries_in_lists_are_removed() {
    let bed = Bed::new();
    (1..=3).for_each(|id| drop(bed.page(id)));
    assert!(bed.remove(vec![bed.removed("s1", "T1")], false));
    assert!(bed.remove(vec![bed.removed("s2", "T2")], true));
    assert_eq!(bed.names("20261126/a.test"), ["c1", "s3"]);
    let (day, crawl) = ("20261126/index.html", "20261126/a.test/c1/index.html");
    for list in ["index.html", day, crawl, "sites/a.test/index.html", "tags/tag of 1/index.html"] {
        let page = bed.read(list);
        assert!(page.contains("a.test/3"), "{list}: {page}");
        assert!(!page.contains("a.test/1") && !page.contains("a.test/2"), "{list}: {page}");
    }
    assert_eq!(bed.names(".index/stale"), [""; 0], "no list waits");
    assert_eq!(bed.names("tags"), ["tag of 1"], "a tag without pages has no list");
    assert!(!bed.read("tags.html").contains("tag of 0"));
}

#[test]
fn crawl_goes_with_its_lists_and_empty_directories() {
    let bed = Bed::new();
    bed.page(1);
    let crawl = Removed { identity: None, ..bed.removed("c1", "") };
    assert!(bed.remove(vec![bed.removed("s1", "T1"), crawl], true));
    assert!(!bed.path("20261126").exists());
    assert!(!bed.path(".index/c1").exists());
    assert!(!bed.read("index.html").contains("a.test/1"));
}

#[test]
fn snapshot_leaves_the_list_of_its_url() {
    let bed = Bed::new();
    let key = "test,a)/";
    let list = versions::list_of_key(key);
    let shown = bed.path(&versions::directory_of(&list));
    let other = archivist_shared::bus::documents::work::OtherVersion {
        id: SnapshotId(9),
        directory: bed.path("20261126/a.test/s9"),
        at: Time(9),
        http_status: None,
        ended_at: None,
    };
    for id in 1..=3 {
        bed.page(id);
        let entry = ListEntry {
            id: SnapshotId(id),
            url: "https://a.test/".to_owned(),
            title: None,
            archived_at: Time(id),
            visited_at: None,
            directory: format!("20261126/a.test/s{id}"),
            screenshot: None,
            succeeded: 1,
            failed: 0,
            unsaved: None,
            tags: Vec::new(),
            partial: false,
            version: None,
        };
        let index = ArchiveIndex::open(bed.top.path()).unwrap();
        let others = std::slice::from_ref(&other);
        index.add_version(&list, &entry, false, others).unwrap();
    }
    let of_url =
        |id: &str, token| Removed { url_key: Some(key.to_owned()), ..bed.removed(id, token) };
    assert!(bed.remove(vec![of_url("s2", "T2")], true));
    let read = |name: &str| fs::read_to_string(shown.join(name)).unwrap();
    assert!(read("s1.html").contains("20261126/a.test/s3/index.html"));
    assert!(read("s3.html").contains("20261126/a.test/s1/index.html"));
    assert!(!read("index.html").contains("a.test/s2"), "{}", read("index.html"));
    assert!(!shown.join("s2.html").exists());
    assert!(bed.remove(vec![of_url("s1", "T1")], true));
    assert!(!bed.path("urls").exists(), "one snapshot is left");
    assert!(bed.remove(vec![of_url("s3", "T3")], true));
    assert!(!bed.path(".index/urls").exists());
}

#[test]
fn imported_file_goes_with_its_last_page() {
    let bed = Bed::new();
    bed.page(1);
    fs::create_dir(bed.path(".imported")).unwrap();
    for name in ["0a1b77.wacz", "0a1c88.warc.gz", ".partial"] {
        fs::write(bed.path(".imported").join(name), "").unwrap();
    }
    assert!(bed.remove(vec![bed.removed("s1", "T1")], false));
    assert_eq!(bed.names(".imported").len(), 3, "more is deleted later");
    assert!(bed.remove(Vec::new(), true));
    assert_eq!(bed.names(".imported"), [".partial", "0a1c88.warc.gz"]);
}

#[test]
fn body_goes_with_the_last_recording_that_has_it() {
    let bed = Bed::new();
    let kept = |name: &str| bed.path(".bodies/0-/ab").join(name);
    fs::create_dir_all(bed.path(".bodies/0-/ab")).unwrap();
    let share = |id: i64, name: &str| {
        let bodies = bed.path(&format!("20261126/a.test/s{id}/wacz/bodies"));
        fs::create_dir_all(&bodies).unwrap();
        if !kept(name).exists() {
            fs::write(kept(name), name).unwrap();
        }
        fs::hard_link(kept(name), bodies.join(name)).unwrap();
    };
    (1..=3).for_each(|id| drop(bed.page(id)));
    share(1, "ab1");
    share(1, "ab2");
    share(2, "ab2");
    fs::write(kept(".new-7-ab3"), "is written").unwrap();
    let old = fs::File::create(kept(".new-8-ab4")).unwrap();
    let days_ago = std::time::SystemTime::now() - 2 * WRITING_MAX;
    old.set_modified(days_ago).unwrap();
    assert!(bed.remove(vec![bed.removed("s1", "T1")], false));
    assert_eq!(bed.names(".bodies/0-/ab").len(), 4, "more is deleted later");
    assert!(bed.remove(vec![bed.removed("s3", "T3")], true));
    assert_eq!(bed.names(".bodies/0-/ab"), [".new-7-ab3", "ab2"]);
    let own = bed.read("20261126/a.test/s2/wacz/bodies/ab2");
    assert_eq!(own, "ab2", "the other page has its body");
    fs::remove_file(kept(".new-7-ab3")).unwrap();
    assert!(bed.remove(vec![bed.removed("s2", "T2")], true));
    assert!(!bed.path(".bodies/0-").exists());
    fs::write(bed.path(".bodies/file"), "").unwrap();
    assert!(bed.remove(Vec::new(), true), "a file is no directory of bodies");
}

#[test]
fn directory_of_another_page_stays() {
    let bed = Bed::new();
    let path = bed.page(1);
    assert!(bed.remove(vec![bed.removed("s1", "another")], true));
    assert!(path.join("wget/a.html").exists());
    assert!(bed.read("20261126/index.html").contains("a.test/1"));
    fs::remove_file(path.join(".identity.json")).unwrap();
    assert!(bed.remove(vec![bed.removed("s1", "T1")], true));
    assert!(path.exists(), "whose it is cannot be known");
    fs::write(path.join(".stored.json"), "{}").unwrap();
    assert!(bed.remove(vec![bed.removed("s1", "T1")], true));
    assert!(!path.exists(), "its files were in the store alone");
}

#[test]
fn nothing_outside_of_the_archive_is_removed() {
    let bed = Bed::new();
    let other = tempfile::tempdir().unwrap();
    for directory in
        [other.path().to_owned(), bed.path("20261126/../../s1"), bed.top.path().to_owned()]
    {
        let removed = Removed { identity: None, directory, ..bed.removed("s1", "T1") };
        bed.remove(vec![removed], false);
    }
    assert!(other.path().exists() && bed.path("20261126/a.test/c1").exists());
}

#[test]
fn removal_that_was_killed_is_repeated() {
    let bed = Bed::new();
    let path = bed.page(1);
    // Killed while it removed files, and before it wrote lists.
    mark_lists(&ToRemove {
        archive: bed.top.path().to_owned(),
        directories: vec![bed.removed("s1", "T1")],
        lists: Default::default(),
        imported: Vec::new(),
        is_last: true,
    })
    .unwrap();
    fs::rename(&path, path.with_file_name(".deleted-s1")).unwrap();
    assert!(bed.remove(vec![bed.removed("s1", "T1")], true));
    assert_eq!(bed.names("20261126/a.test"), ["c1"]);
    assert!(!bed.read("index.html").contains("a.test/1"));
    assert!(bed.remove(vec![bed.removed("s1", "T1")], true), "nothing is left");
}

#[test]
fn directory_without_permissions_is_removed() {
    let bed = Bed::new();
    let path = bed.page(1);
    fs::set_permissions(path.join("wget"), fs::Permissions::from_mode(0o000)).unwrap();
    assert!(bed.remove(vec![bed.removed("s1", "T1")], true));
    assert!(!path.exists());
}

#[test]
fn directory_of_any_depth_is_removed() {
    poor(module_path!(), "directory_of_any_depth_is_removed", || {
        for (levels, name) in depths() {
            let bed = Bed { top: tempfile::tempdir_in("/dev/shm").unwrap() };
            fs::create_dir_all(bed.path("20261126/a.test/c1")).unwrap();
            let path = bed.page(1);
            deep(&path.join("wget"), levels, &name);
            assert!(bed.remove(vec![bed.removed("s1", "T1")], true), "{levels}");
            assert_eq!(bed.names("20261126/a.test"), ["c1"]);
        }
    });
}
