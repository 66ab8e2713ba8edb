//! Real servers whose objects were replaced: nothing is written outside of the page, nothing more than
//! its row says, and no file appears that is not the one that was copied.

use crate::bed::{Bed, PROGRAM};
use archivist_core::store::{Compared, Comparison, Found, StoredObject, Task};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tar::{Builder, EntryType, Header};

/// Longest time until a hostile object is refused.
const PATIENCE: Duration = Duration::from_secs(60);

/// An entry of a hostile archive: type, name, target of a link, bytes.
type StoredEntry<'e> = (EntryType, &'e str, &'e str, usize);

fn archive(entries: &[StoredEntry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target, size) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o4777);
        header.set_size(*size as u64);
        // As it is: the crate refuses names that lead out of the directory.
        let bytes = header.as_old_mut();
        bytes.name[..name.len()].copy_from_slice(name.as_bytes());
        bytes.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        builder.append(&header, &vec![b'x'; *size][..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn files(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path, about.len());
        }
    }
    found
}

/// Replaces the object of a page in every way, and restores the page each time.
fn is_held(bed: &Bed) {
    let own = bed.packed();
    let object = bed.run(Task::Put, None).object.unwrap();
    assert_eq!(bed.run(Task::Drop, Some(&object)).error, None);
    let outside = bed.place.path().join("archive");
    let before = files(&outside);
    let large = usize::try_from(object.size).unwrap();
    let mut damaged = own.clone();
    damaged[large / 2] ^= 1;
    let longer = [own.as_slice(), &[0; 40_000_000]].concat();
    let objects: Vec<(&str, Vec<u8>)> = vec![
        ("damaged", damaged),
        ("longer", longer),
        ("shorter", own[..large - 1024].to_vec()),
        ("empty", Vec::new()),
        ("larger", archive(&[(EntryType::Regular, "s7/evil.html", "", large * 4)])),
        ("above", archive(&[(EntryType::Regular, "s7/../../escaped.html", "", 10)])),
        ("absolute", archive(&[(EntryType::Regular, "/tmp/archivist-escaped", "", 10)])),
        ("another page", archive(&[(EntryType::Regular, "s8/index.html", "", 10)])),
        ("marker", archive(&[(EntryType::Regular, "s7/.stored.json", "", 10)])),
        (
            "through a link",
            archive(&[
                (EntryType::Symlink, "s7/up", "..", 0),
                (EntryType::Regular, "s7/up/escaped.html", "", 10),
            ]),
        ),
        ("out", archive(&[(EntryType::Symlink, "s7/shadow", "/etc/shadow", 0)])),
        ("hard link", archive(&[(EntryType::Link, "s7/shadow", "/etc/shadow", 0)])),
        ("device", archive(&[(EntryType::Block, "s7/disk", "", 0)])),
        ("pipe", archive(&[(EntryType::Fifo, "s7/pipe", "", 0)])),
        ("sparse", archive(&[(EntryType::GNUSparse, "s7/sparse", "", 512)])),
        ("no archive", vec![b'x'; large]),
    ];
    for (what, content) in &objects {
        bed.replace(&object.name, content);
        is_refused(bed, &object, what);
        assert_eq!(files(&outside), before, "{what}");
        let differs = |found: &Found| matches!(found, Found::Differs(_));
        assert!(compared(bed, &object).iter().all(differs), "{what}");
    }
    assert!(!Path::new("/tmp/archivist-escaped").exists());
    bed.replace(&object.name, &own);
    assert_eq!(compared(bed, &object), [Found::Intact]);
    assert_eq!(bed.run(Task::Get, Some(&object)).error, None);
    let content = fs::read(bed.page().join("wget/warc.gz")).unwrap();
    assert_eq!(content, vec![7; 3_000_000]);
}

/// The files of the page stay in the store, and no more than the row says is received.
fn is_refused(bed: &Bed, object: &StoredObject, what: &str) {
    let begin = Instant::now();
    let record = bed.run(Task::Get, Some(object));
    assert!(record.error.is_some(), "{what}: it was restored");
    assert!(begin.elapsed() < PATIENCE, "{what}: {:?}", begin.elapsed());
    let mut names: Vec<_> =
        fs::read_dir(bed.page()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".stored.json", "index.html"], "{what}");
}

/// What `archivist fsck --download` finds about a copy.
fn compared(bed: &Bed, object: &StoredObject) -> Vec<Found> {
    let comparison =
        Comparison { store: bed.store.clone(), objects: vec![object.clone()], read_max: u64::MAX };
    let mut child = Command::new(PROGRAM)
        .arg("compare")
        .env("CREDENTIALS_DIRECTORY", bed.place.path().join("keys"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(&comparison).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let found = lines.lines().map(|line| {
        let compared: Compared = serde_json::from_str(line).unwrap();
        compared.found
    });
    found.filter(|found| *found != Found::Extra).collect()
}

#[test]
fn objects_of_openssh_are_held() {
    let Some(bed) = Bed::openssh() else { return };
    is_held(&bed);
}

#[test]
fn objects_of_a_server_of_s3_are_held() {
    let Some(bed) = Bed::s3() else { return };
    is_held(&bed);
}

#[test]
fn objects_of_another_server_of_s3_are_held() {
    let Some(bed) = Bed::s3rver() else { return };
    is_held(&bed);
}

/// An object without end, and names that no transfer gives.
#[test]
fn files_of_openssh_that_are_none_are_held() {
    let Some(bed) = Bed::openssh() else { return };
    let object = bed.run(Task::Put, None).object.unwrap();
    assert_eq!(bed.run(Task::Drop, Some(&object)).error, None);
    let root = bed.files().unwrap();
    let file = root.join(&object.name);
    let own = fs::read(&file).unwrap();
    for target in ["/dev/zero", "/dev/urandom", "/etc/shadow", "/nowhere", "."] {
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(target, &file).unwrap();
        is_refused(&bed, &object, target);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    is_refused(&bed, &object, "a directory");
    fs::remove_dir(&file).unwrap();
    fs::write(&file, own).unwrap();
    // What looks like leftovers of transfers of this page is removed in its directory alone.
    let directory = file.parent().unwrap();
    fs::write(root.join("victim"), "kept").unwrap();
    for name in [".s7-\n.part", ".s7-..\\..\\victim.part", ".s7-\u{202e}.part"] {
        fs::write(directory.join(name), "x").unwrap();
    }
    assert_eq!(bed.run(Task::Get, Some(&object)).error, None);
    let record = bed.run(Task::Put, None);
    assert_eq!(record.object.as_ref(), Some(&object), "{record:?}");
    assert_eq!(fs::read(root.join("victim")).unwrap(), b"kept");
}
