//! Objects that the store has replaced, and what hooks leave under names of transfers.

use super::*;
use crate::backend::{Content, Reader, Store, StoredEntry};
use crate::task::get;
use std::cell::Cell;
use std::io::{self, Read};
use tar::{Builder, EntryType, Header};

fn entry(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, target: &str, size: usize) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size as u64);
    let content = vec![b'x'; size];
    if kind == EntryType::Symlink {
        builder.append_link(&mut header, name, target).unwrap();
    } else {
        builder.append_data(&mut header, name, &content[..]).unwrap();
    }
}

#[test]
fn nothing_of_a_replaced_object_stays() {
    let bed = Bed::new();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    let file = bed.store().join(&object.name);
    let outside = bed.place.path().join("archive/20261123/a.test");
    let all = [
        (EntryType::Regular, "s7/evil.html", "", 50_000),
        (EntryType::Symlink, "s7/up", "..", 0),
        (EntryType::Regular, "s7/up/escaped.html", "", 50_000),
        (EntryType::Symlink, "s7/shadow", "/etc/shadow", 0),
        (EntryType::Symlink, "s7/up/linkout", "/etc/passwd", 0),
    ];
    for count in 1..=all.len() {
        let mut builder = Builder::new(Vec::new());
        for (kind, name, target, size) in &all[..count] {
            entry(&mut builder, *kind, name, target, *size);
        }
        fs::write(&file, builder.into_inner().unwrap()).unwrap();
        let failure = bed.run(Task::Get, Some(&object)).unwrap_err();
        assert!(failure.differs, "{failure}");
        assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
        assert_eq!(local(&outside), ["s7"]);
        assert_eq!(local(&bed.store()), [".ids", "20261123"]);
    }
}

/// A store whose objects never end: an archive with one file of a size that is a lie, or zeros.
struct Endless {
    head: Vec<u8>,
    read: Cell<u64>,
}

impl Endless {
    fn new(name: &str) -> Endless {
        let mut header = Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_mode(0o644);
        header.set_size(1 << 50);
        header.set_cksum();
        Endless { head: header.as_bytes().to_vec(), read: Cell::new(0) }
    }
}

impl Store for Endless {
    fn list(&self, _: &str) -> Result<Vec<StoredEntry>> {
        Ok(Vec::new())
    }

    fn resumes(&self) -> bool {
        false
    }

    fn write(&self, _: &str, _: u64, content: Content<'_>) -> Result<()> {
        content(&mut io::sink())
    }

    fn read(&self, _: &str, reader: Reader<'_>) -> Result<()> {
        let mut content = (&self.head[..]).chain(io::repeat(b'x'));
        let mut counted = Counted { content: &mut content, read: &self.read };
        reader(&mut counted)
    }

    fn rename(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    fn remove(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

struct Counted<'c> {
    content: &'c mut dyn Read,
    read: &'c Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        assert!(self.read.get() < 1 << 24, "nothing ends it");
        Ok(count)
    }
}

#[test]
fn object_without_end_is_read_up_to_the_size_in_the_row() {
    let bed = Bed::new();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    let store = Endless::new("s7/evil");
    let assignment = bed.assignment(Task::Get, Some(&object));
    get::get(&store, &assignment).unwrap_err();
    assert!(store.read.get() <= object.size + 1, "{:?}", store.read);
    assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
    let store = Endless::new("s7/evil");
    read_back(&store, &object.name, object.size).unwrap();
    assert_eq!(store.read.get(), object.size + 1);
}

#[test]
fn longer_object_is_damaged() {
    let bed = Bed::new();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    let file = bed.store().join(&object.name);
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(0);
    fs::write(&file, bytes).unwrap();
    let failure = bed.run(Task::Get, Some(&object)).unwrap_err();
    assert!(failure.differs, "{failure}");
    assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
}

/// What a hook can leave does not prevent the copy of its page, and is in no archive.
#[test]
fn names_of_transfers_that_a_hook_made_are_not_believed() {
    let bed = Bed::new();
    let object = bed.put();
    let page = bed.page();
    fs::write(page.join(MARKER), "garbage").unwrap();
    fs::create_dir_all(page.join(".restoring/sub")).unwrap();
    fs::write(page.join("victim"), "kept").unwrap();
    std::os::unix::fs::symlink("victim", page.join(".index.html.part")).unwrap();
    let with_victim = bed.put();
    assert_ne!(with_victim, object);
    fs::remove_file(page.join("victim")).unwrap();
    assert_eq!(bed.put(), object);
    if nix::unistd::Uid::effective().is_root() {
        // A marker that is right in all but its owner.
        fs::write(page.join(MARKER), serde_json::to_vec(&object).unwrap()).unwrap();
        assert!(bed.run(Task::Put, None).is_err());
        std::os::unix::fs::chown(page.join(MARKER), Some(1), None).unwrap();
        assert_eq!(bed.put(), object);
    }
    bed.run(Task::Drop, Some(&object)).unwrap();
    assert_eq!(local(&page), [MARKER, "index.html"]);
    bed.run(Task::Get, Some(&object)).unwrap();
    assert_eq!(local(&page), ["index.html", "wget"]);
}

#[test]
fn page_is_written_to_no_link_of_a_hook() {
    let bed = Bed::new();
    let page = bed.page();
    fs::write(bed.place.path().join("outside"), "kept").unwrap();
    let outside = bed.place.path().join("outside");
    std::os::unix::fs::symlink(&outside, page.join(".index.html.part")).unwrap();
    std::os::unix::fs::symlink(&outside, page.join("..stored.json.part")).unwrap();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"kept");
}

#[test]
fn links_are_packed_so_that_they_can_be_restored() {
    let bed = Bed::new();
    let page = bed.page();
    std::os::unix::fs::symlink(page.join("wget/warc.gz"), page.join("wget/absolute")).unwrap();
    let object = bed.put();
    bed.run(Task::Drop, Some(&object)).unwrap();
    bed.run(Task::Get, Some(&object)).unwrap();
    let target = fs::read_link(page.join("wget/absolute")).unwrap();
    assert_eq!(target, Path::new("../wget/warc.gz"));
    std::os::unix::fs::symlink("/etc/passwd", page.join("out")).unwrap();
    let failure = bed.run(Task::Put, None).unwrap_err();
    assert!(failure.text.contains("leads out of the page"), "{failure}");
}
