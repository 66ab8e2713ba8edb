mod hostile;
mod kills;

use super::*;
use crate::marker::MARKER;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::sample::{deep, depths, poor};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

struct Bed {
    place: tempfile::TempDir,
}

impl Bed {
    fn new() -> Bed {
        Bed::at(tempfile::tempdir().unwrap())
    }

    fn at(place: tempfile::TempDir) -> Bed {
        fs::create_dir(place.path().join("store")).unwrap();
        let page = place.path().join("archive/20261123/a.test/s7");
        fs::create_dir_all(page.join("wget")).unwrap();
        fs::write(page.join("index.html"), "<p>page").unwrap();
        fs::write(page.join("wget/warc.gz"), vec![7; 300_000]).unwrap();
        Bed { place }
    }

    fn store(&self) -> PathBuf {
        self.place.path().join("store")
    }

    fn page(&self) -> PathBuf {
        self.place.path().join("archive/20261123/a.test/s7")
    }

    fn assignment(&self, task: Task, object: Option<&StoredObject>) -> Assignment {
        Assignment {
            task,
            store: self.store().to_str().unwrap().to_owned(),
            directory: self.page(),
            path: "20261123/a.test/s7".to_owned(),
            object: object.cloned(),
            reread: true,
        }
    }

    fn run(&self, task: Task, object: Option<&StoredObject>) -> Result<Option<StoredObject>> {
        perform(&self.assignment(task, object))
    }

    fn put(&self) -> StoredObject {
        self.run(Task::Put, None).unwrap().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let Ok(list) = fs::read_dir(self.store().join("20261123/a.test")) else {
            return Vec::new();
        };
        let names = list.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

fn local(page: &Path) -> Vec<String> {
    let list = fs::read_dir(page).unwrap();
    let mut names: Vec<_> = list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Older versions sealed such pages.
#[test]
fn page_of_any_depth_is_copied_removed_and_restored() {
    poor(module_path!(), "page_of_any_depth_is_copied_removed_and_restored", || {
        for (levels, name) in depths() {
            let bed = Bed::at(tempfile::tempdir_in("/dev/shm").unwrap());
            deep(&bed.page().join("wget"), levels, &name);
            let before = local(&bed.page());
            let object = bed.put();
            bed.run(Task::Drop, Some(&object)).unwrap();
            assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
            bed.run(Task::Get, Some(&object)).unwrap();
            assert_eq!(local(&bed.page()), before);
            assert_eq!(fs::read(bed.page().join("wget/warc.gz")).unwrap().len(), 300_000);
            let deepest = bed.page().join("wget").join(vec![name; levels.min(8)].join("/"));
            assert!(deepest.is_dir(), "{levels}");
            // What was restored fits.
            assert_eq!(bed.put().sha256, object.sha256);
            remove_tree(bed.place.path()).unwrap();
        }
    });
}

#[test]
fn copied_page_is_removed_and_restored() {
    let bed = Bed::new();
    let object = bed.put();
    assert_eq!(bed.names(), [format!("s7-{}.tar", object.sha256)]);
    bed.run(Task::Drop, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
    let stub = fs::read_to_string(bed.page().join("index.html")).unwrap();
    assert!(stub.contains("archivist open s7"), "{stub}");
    assert!(bed.run(Task::Put, None).is_err(), "a stub is no page");
    bed.run(Task::Get, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
    assert_eq!(fs::read(bed.page().join("wget/warc.gz")).unwrap(), vec![7; 300_000]);
    assert_eq!(bed.put(), object, "the same files have the same name");
}

/// The cards in the lists of the archive show it.
#[test]
fn small_picture_stays_and_is_replaced_by_the_restored_one() {
    let bed = Bed::new();
    let pictures = bed.page().join("screenshot");
    fs::create_dir(&pictures).unwrap();
    for name in ["screenshot.png", "thumbnail.webp"] {
        fs::write(pictures.join(name), name).unwrap();
    }
    let object = bed.put();
    for _ in 0..2 {
        bed.run(Task::Drop, Some(&object)).unwrap();
        assert_eq!(local(&bed.page()), [MARKER, "index.html", "screenshot"]);
        assert_eq!(local(&pictures), ["thumbnail.webp"]);
    }
    let page = fs::read_to_string(bed.page().join("index.html")).unwrap();
    assert!(page.contains("href=\"../../../index.html\""), "a way back: {page}");
    bed.run(Task::Get, Some(&object)).unwrap();
    assert_eq!(local(&pictures), ["screenshot.png", "thumbnail.webp"]);
    fs::write(pictures.join("thumbnail.webp"), vec![0; 2 << 20]).unwrap();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), [MARKER, "index.html"], "it is not small");
}

#[test]
fn repeated_transfer_finds_the_object_and_removes_leftovers() {
    let bed = Bed::new();
    let object = bed.put();
    let directory = bed.store().join("20261123/a.test");
    fs::write(directory.join(".s7-00.tar.part"), "half").unwrap();
    fs::write(directory.join(".s77-00.tar.part"), "of another page").unwrap();
    assert_eq!(bed.put(), object);
    let mut names = bed.names();
    names.sort();
    assert_eq!(names, [".s77-00.tar.part".to_owned(), format!("s7-{}.tar", object.sha256)]);
}

#[test]
fn copy_of_a_deleted_page_is_removed() {
    let bed = Bed::new();
    let object = bed.put();
    let directory = bed.store().join("20261123/a.test");
    fs::write(directory.join(".s7-00.tar.part"), "half").unwrap();
    fs::write(directory.join("s77-00.tar"), "of another page").unwrap();
    bed.run(Task::Delete, Some(&object)).unwrap();
    assert_eq!(bed.names(), ["s77-00.tar"]);
    bed.run(Task::Delete, Some(&object)).unwrap();
    remove_tree(&bed.store()).unwrap();
    assert!(bed.run(Task::Delete, Some(&object)).is_err(), "not mounted");
}

/// As of a new database that hands out the ids of an earlier one.
#[test]
fn another_page_of_the_same_path_leaves_the_copy_of_the_first() {
    let bed = Bed::new();
    let first = bed.put();
    fs::write(bed.page().join("index.html"), "<p>another page").unwrap();
    let second = bed.put();
    assert_eq!(bed.names().len(), 2);
    for (copy, text) in [(&first, "<p>page"), (&second, "<p>another page")] {
        bed.run(Task::Get, Some(copy)).unwrap();
        let index = fs::read_to_string(bed.page().join("index.html")).unwrap();
        assert_eq!(index, text);
    }
}

#[test]
fn damaged_object_is_replaced_by_the_next_copy() {
    let bed = Bed::new();
    let object = bed.put();
    let file = bed.store().join(&object.name);
    let mut bytes = fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    fs::write(&file, bytes).unwrap();
    let failure = bed.run(Task::Drop, Some(&object)).unwrap_err();
    assert!(failure.differs && failure.text.contains("is damaged"), "{failure}");
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
    assert_eq!(bed.put(), object);
    bed.run(Task::Drop, Some(&object)).unwrap();
}

#[test]
fn nothing_is_removed_without_an_intact_copy() {
    let bed = Bed::new();
    let object = bed.put();
    fs::write(bed.page().join("wget/warc.gz"), "changed").unwrap();
    let failure = bed.run(Task::Drop, Some(&object)).unwrap_err();
    assert!(failure.differs, "{failure}");
    fs::remove_file(bed.store().join(&object.name)).unwrap();
    let failure = bed.run(Task::Drop, Some(&object)).unwrap_err();
    assert!(failure.text.contains("is missing"), "{failure}");
    fs::write(bed.store().join(&object.name), "short").unwrap();
    let failure = bed.run(Task::Drop, Some(&object)).unwrap_err();
    assert!(failure.text.contains("another size"), "{failure}");
    remove_tree(&bed.store()).unwrap();
    let failure = bed.run(Task::Drop, Some(&object)).unwrap_err();
    assert!(!failure.differs && failure.text.starts_with("failed to open store"), "{failure}");
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
}

#[test]
fn interrupted_removal_and_restoration_continue() {
    let bed = Bed::new();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    // Killed while files were being removed: some are left next to the marker.
    fs::create_dir(bed.page().join("wget")).unwrap();
    fs::write(bed.page().join("wget/half"), "half").unwrap();
    bed.run(Task::Drop, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
    // Killed while files were being moved into place.
    fs::create_dir_all(bed.page().join(".restoring/wget")).unwrap();
    fs::create_dir(bed.page().join("wget")).unwrap();
    fs::write(bed.page().join("wget/old"), "old").unwrap();
    bed.run(Task::Get, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
    assert_eq!(local(&bed.page().join("wget")), ["warc.gz"]);
}

#[test]
fn damaged_object_restores_nothing() {
    let bed = Bed::new();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    let file = bed.store().join(&object.name);
    let mut bytes = fs::read(&file).unwrap();
    bytes[2000] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert!(bed.run(Task::Get, Some(&object)).is_err());
    fs::write(&file, &bytes[..4096]).unwrap();
    assert!(bed.run(Task::Get, Some(&object)).is_err());
    assert!(bed.page().join(MARKER).exists());
    assert!(!bed.page().join("wget").exists());
}

#[test]
fn store_is_tested_and_left_clean() {
    let bed = Bed::new();
    bed.run(Task::Test, None).unwrap();
    assert_eq!(fs::read_dir(bed.store()).unwrap().count(), 0);
    if !nix::unistd::Uid::effective().is_root() {
        fs::set_permissions(bed.store(), fs::Permissions::from_mode(0o500)).unwrap();
        assert!(bed.run(Task::Test, None).is_err());
    }
    remove_tree(&bed.store()).unwrap();
    let failure = bed.run(Task::Test, None).unwrap_err();
    assert!(failure.text.starts_with("failed to open store '"), "{failure}");
}
