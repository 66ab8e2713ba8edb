//! Transfers that are killed at each byte that they write or read, and before each operation.

use super::*;
use crate::backend::{Content, Reader, Store, StoredEntry};
use crate::task::{drop, get, put};
use archivist_plugin::files::remove::remove_tree;
use std::cell::Cell;
use std::io::{self, Read, Write};

/// A store whose client is killed after a number of bytes or operations. Nothing happens after that,
/// no cleanup either.
struct Killed<'s> {
    inner: &'s dyn Store,
    bytes: Cell<u64>,
    operations: Cell<u64>,
    is_dead: Cell<bool>,
}

impl<'s> Killed<'s> {
    fn after_bytes(inner: &'s dyn Store, bytes: u64) -> Killed<'s> {
        Killed {
            inner,
            bytes: Cell::new(bytes),
            operations: Cell::new(u64::MAX),
            is_dead: Cell::new(false),
        }
    }

    fn before_operation(inner: &'s dyn Store, number: u64) -> Killed<'s> {
        Killed { operations: Cell::new(number), ..Killed::after_bytes(inner, u64::MAX) }
    }

    fn count_operation(&self) -> Result<()> {
        self.is_dead.set(self.is_dead.get() || self.operations.get() == 0);
        if self.is_dead.get() {
            return Err(TransferFailure::new("killed"));
        }
        self.operations.set(self.operations.get() - 1);
        Ok(())
    }

    /// Returns how many of `wanted` bytes may pass before the kill.
    fn allowed_bytes(&self, wanted: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.get()).unwrap_or(usize::MAX);
        if self.is_dead.get() || left == 0 {
            self.is_dead.set(true);
            return Err(io::Error::other("killed"));
        }
        Ok(wanted.min(left))
    }

    fn count_bytes(&self, passed: usize) {
        self.bytes.set(self.bytes.get() - passed as u64);
    }
}

struct Counted<'k, T> {
    stream: T,
    killed: &'k Killed<'k>,
}

impl Write for Counted<'_, &mut dyn Write> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let allowed = self.killed.allowed_bytes(bytes.len())?;
        self.stream.write_all(&bytes[..allowed])?;
        self.killed.count_bytes(allowed);
        Ok(allowed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for Counted<'_, &mut dyn Read> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.killed.allowed_bytes(buffer.len())?;
        let passed = self.stream.read(&mut buffer[..allowed])?;
        self.killed.count_bytes(passed);
        Ok(passed)
    }
}

impl Store for Killed<'_> {
    fn list(&self, directory: &str) -> Result<Vec<StoredEntry>> {
        self.count_operation()?;
        self.inner.list(directory)
    }

    fn resumes(&self) -> bool {
        self.inner.resumes()
    }

    fn write(&self, name: &str, size: u64, content: Content<'_>) -> Result<()> {
        self.count_operation()?;
        self.inner.write(name, size, &mut |stream| content(&mut Counted { stream, killed: self }))
    }

    fn read(&self, name: &str, reader: Reader<'_>) -> Result<()> {
        self.count_operation()?;
        self.inner.read(name, &mut |stream| reader(&mut Counted { stream, killed: self }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.count_operation()?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.count_operation()?;
        self.inner.remove(name)
    }
}

impl Bed {
    /// A page whose archive has a few thousand bytes.
    fn small() -> Bed {
        let bed = Bed::new();
        fs::write(bed.page().join("wget/warc.gz"), vec![7; 700]).unwrap();
        bed
    }

    fn open(&self) -> Box<dyn Store> {
        backend::open(self.store().to_str().unwrap()).unwrap()
    }

    /// Names in the store without those of unfinished transfers.
    fn objects(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !name.starts_with('.'));
        names
    }
}

#[test]
fn copy_killed_at_any_byte_leaves_no_object() {
    let bed = Bed::small();
    let store = bed.open();
    let assignment = bed.assignment(Task::Put, None);
    let size = put::sum_of_archive(&bed.page()).unwrap().size;
    assert!(size > 2_000, "{size} bytes");
    // Each byte is written; while it is read back, the store has the whole.
    let while_reading = (size..2 * size).step_by(61);
    for bytes in (0..size).chain(while_reading) {
        let killed = Killed::after_bytes(store.as_ref(), bytes);
        put::put(&killed, &assignment).unwrap_err();
        assert_eq!(bed.objects(), [""; 0], "killed after {bytes} bytes");
    }
    let object = bed.put();
    assert_eq!(bed.names(), [format!("s7-{}.tar", object.sha256)]);
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
}

#[test]
fn killed_copy_is_continued_and_verified_as_a_whole() {
    let bed = Bed::small();
    let store = bed.open();
    let assignment = bed.assignment(Task::Put, None);
    let begin = || {
        put::put(&Killed::after_bytes(store.as_ref(), 1_500), &assignment).unwrap_err();
        let names = bed.names();
        assert_eq!(names.len(), 1, "{names:?}");
        bed.store().join("20261123/a.test").join(&names[0])
    };
    let part = begin();
    assert_eq!(fs::metadata(&part).unwrap().len(), 1_500);
    // What is kept is not written again, so its damage is found when the object is read back.
    let mut bytes = fs::read(&part).unwrap();
    bytes[700] ^= 1;
    fs::write(&part, &bytes).unwrap();
    let failure = put::put(store.as_ref(), &assignment).unwrap_err();
    assert!(failure.text.starts_with("failed to verify"), "{failure}");
    assert_eq!(bed.names(), [""; 0]);
    // Longer than the object, as no transfer leaves it.
    let part = begin();
    fs::write(&part, vec![7; 100_000]).unwrap();
    bed.put();
    remove_tree(&bed.store().join("20261123")).unwrap();
    begin();
    let object = bed.put();
    assert_eq!(bed.names(), [format!("s7-{}.tar", object.sha256)]);
}

#[test]
fn copy_killed_before_any_operation_leaves_a_whole_object_or_none() {
    let bed = Bed::small();
    let store = bed.open();
    let assignment = bed.assignment(Task::Put, None);
    for number in 0.. {
        let killed = Killed::before_operation(store.as_ref(), number);
        if let Ok(object) = put::put(&killed, &assignment) {
            assert!(number >= 4, "list, write, read and rename are operations");
            assert_eq!(bed.names(), [format!("s7-{}.tar", object.sha256)]);
            break;
        }
        assert_eq!(bed.objects(), [""; 0], "killed before operation {number}");
    }
}

#[test]
fn removal_killed_at_any_byte_removes_nothing() {
    let bed = Bed::small();
    let (store, object) = (bed.open(), bed.put());
    let assignment = bed.assignment(Task::Drop, Some(&object));
    for bytes in 0..object.size {
        let killed = Killed::after_bytes(store.as_ref(), bytes);
        drop::drop(&killed, &assignment).unwrap_err();
        assert_eq!(local(&bed.page()), ["index.html", "wget"], "after {bytes} bytes");
    }
    drop::drop(store.as_ref(), &assignment).unwrap();
    assert_eq!(local(&bed.page()), [MARKER, "index.html"]);
}

#[test]
fn restoration_killed_at_any_byte_shows_no_file() {
    let bed = Bed::small();
    let (store, object) = (bed.open(), bed.put());
    bed.run(Task::Drop, Some(&object)).unwrap();
    let assignment = bed.assignment(Task::Get, Some(&object));
    for bytes in 0..object.size {
        let killed = Killed::after_bytes(store.as_ref(), bytes);
        get::get(&killed, &assignment).unwrap_err();
        assert!(bed.page().join(MARKER).exists(), "after {bytes} bytes");
        assert!(!bed.page().join("wget").exists(), "after {bytes} bytes");
    }
    bed.run(Task::Get, Some(&object)).unwrap();
    assert_eq!(local(&bed.page()), ["index.html", "wget"]);
}
