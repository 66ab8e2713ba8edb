//! Archives of pages, and archives that no page gives.

use super::*;
use crate::digest::sum_of;
use crate::pack::pack;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

fn page(directory: &Path) -> PathBuf {
    let page = directory.join("s7");
    fs::create_dir_all(page.join("wget/a.test")).unwrap();
    fs::write(page.join("index.html"), "<p>page").unwrap();
    fs::write(page.join("wget/a.test/new\nline"), "x".repeat(100_000)).unwrap();
    fs::write(page.join("wget").join("n".repeat(200)), "long").unwrap();
    fs::create_dir(page.join("empty")).unwrap();
    symlink("wget/a.test", page.join("link")).unwrap();
    page
}

fn opened(path: &Path) -> Directory {
    Directory::open(path).unwrap()
}

fn packed(page: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(page, &mut bytes).unwrap();
    bytes
}

#[test]
fn archive_of_the_restored_files_has_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let first = packed(&page(place.path()));
    let other = place.path().join("other/s7");
    fs::create_dir_all(&other).unwrap();
    unpack(&first[..], "s7", &opened(&other)).unwrap();
    assert_eq!(sum_of(&first[..]).unwrap(), sum_of(&packed(&other)[..]).unwrap());
    let target = fs::read_link(other.join("link")).unwrap();
    assert_eq!(target, Path::new("wget/a.test"));
    let times = [place.path().join("s7"), other];
    let [old, new] = times.map(|page| page.join("index.html").metadata().unwrap().mtime());
    assert_eq!(old, new);
}

#[test]
fn manifest_is_checked_by_sha256sum() {
    let place = tempfile::tempdir().unwrap();
    let bytes = packed(&page(place.path()));
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("a.tar"), &bytes).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let command =
            std::process::Command::new(program).args(arguments).current_dir(&out).output().unwrap();
        assert!(command.status.success(), "{command:?}");
    };
    run("tar", &["-xf", "a.tar"]);
    run("sha256sum", &["--check", "--strict", "s7.sha256"]);
}

#[test]
fn names_that_lead_out_are_refused() {
    let place = tempfile::tempdir().unwrap();
    for name in [
        "s8/x",
        "s7/../x",
        "x",
        "s7.sha256/x",
        "/s7/x",
        "s7",
        "s7/.stored.json",
        "s7/.restoring/x",
        "s7/.index.html.part",
    ] {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        let bytes = builder.into_inner().unwrap();
        let failure = unpack(&bytes[..], "s7", &opened(place.path())).unwrap_err();
        assert!(failure.differs, "{name}: {failure}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// One entry of an archive that is made by hand.
fn entry(
    builder: &mut tar::Builder<Vec<u8>>,
    kind: EntryType,
    name: &str,
    target: &str,
    content: &[u8],
) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o6777);
    header.set_size(content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

/// Unpacks entries into a page next to a victim, and returns the failure and the page.
fn unpacked(entries: &[(EntryType, &str, &str)]) -> (Result<()>, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("s7")).unwrap();
    fs::create_dir(place.path().join("victim")).unwrap();
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, target) in entries {
        let content = if *kind == EntryType::Regular { "x" } else { "" };
        entry(&mut builder, *kind, name, target, content.as_bytes());
    }
    let bytes = builder.into_inner().unwrap();
    let result = unpack(&bytes[..], "s7", &opened(&place.path().join("s7")));
    assert_eq!(fs::read_dir(place.path().join("victim")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    (result, place)
}

#[test]
fn links_that_leave_the_page_are_refused() {
    for target in ["..", "/etc/shadow", "../victim", "a/../../victim", "a/..", "../s7"] {
        let (result, place) =
            unpacked(&[(EntryType::Directory, "s7/a", ""), (EntryType::Symlink, "s7/up", target)]);
        let failure = result.unwrap_err();
        assert!(failure.differs && failure.text.contains("leads out"), "{failure}");
        assert!(fs::symlink_metadata(place.path().join("s7/up")).is_err(), "{target}");
    }
    let (result, _place) =
        unpacked(&[(EntryType::Directory, "s7/a", ""), (EntryType::Symlink, "s7/a/up", "../a/x")]);
    result.unwrap();
}

#[test]
fn links_in_the_middle_of_a_name_are_not_followed() {
    let (result, place) = unpacked(&[
        (EntryType::Directory, "s7/a", ""),
        (EntryType::Symlink, "s7/b", "a"),
        (EntryType::Regular, "s7/b/x", ""),
    ]);
    let failure = result.unwrap_err();
    assert!(failure.text.contains("Not a directory"), "{failure}");
    assert_eq!(fs::read_dir(place.path().join("s7/a")).unwrap().count(), 0);
    let (result, _place) =
        unpacked(&[(EntryType::Symlink, "s7/b", "a"), (EntryType::Regular, "s7/b", "")]);
    assert!(result.unwrap_err().text.contains("File exists"));
}

#[test]
fn only_files_directories_and_symbolic_links_are_accepted() {
    for kind in [
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Continuous,
        EntryType::GNUSparse,
        EntryType::XGlobalHeader,
        EntryType::XHeader,
        EntryType::new(b'V'),
    ] {
        let (result, place) = unpacked(&[(EntryType::Regular, "s7/a", ""), (kind, "s7/b", "s7/a")]);
        let failure = result.unwrap_err();
        assert!(failure.differs, "{kind:?}: {failure}");
        assert!(fs::symlink_metadata(place.path().join("s7/b")).is_err(), "{kind:?}");
    }
}

#[test]
fn restored_files_are_no_programs() {
    let (result, place) = unpacked(&[(EntryType::Regular, "s7/a", "")]);
    result.unwrap();
    let mode = fs::metadata(place.path().join("s7/a")).unwrap().mode();
    assert_eq!(mode & 0o7111, 0);
}

/// A header that says how long a name is, and a name without end. Counts what is read.
struct Endless {
    header: Vec<u8>,
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len();
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = *self.header.get(self.read + at).unwrap_or(&b'n');
        }
        self.read += count;
        assert!(self.read < 1 << 20, "a header decides what is read");
        Ok(count)
    }
}

#[test]
fn length_of_a_name_is_bounded_whatever_its_header_says() {
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(700_000_000);
        header.set_cksum();
        let mut archive = Endless { header: header.as_bytes().to_vec(), read: 0 };
        let place = tempfile::tempdir().unwrap();
        let failure = unpack(&mut archive, "s7", &opened(place.path())).unwrap_err();
        assert!(failure.differs, "{failure}");
        assert!(archive.read <= 1024, "{kind:?}: {} bytes", archive.read);
    }
}

#[test]
fn longest_name_is_restored() {
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("s7");
    let deep = vec!["d".repeat(200); 15].join("/");
    fs::create_dir_all(page.join(&deep)).unwrap();
    fs::write(page.join(&deep).join("x"), "x").unwrap();
    symlink("t".repeat(4000), page.join("link")).unwrap();
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    unpack(&packed(&page)[..], "s7", &opened(&out)).unwrap();
    assert_eq!(fs::read(out.join(&deep).join("x")).unwrap(), b"x");
    assert_eq!(fs::read_link(out.join("link")).unwrap().as_os_str().len(), 4000);
}

/// Damages of an archive: bytes that change, with or without a correct sum of the header, and blocks
/// that are repeated, moved or missing.
#[derive(Clone, Debug)]
enum Damage {
    Byte(usize, u8),
    Kind(usize, u8),
    Text(usize, &'static str),
    Size(usize, u64),
    Swap(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let texts = ["s7/../x", "/x", "s7/l", "s7/l/x", "..", "../..", "/etc", "s7/.stored.json"];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<usize>(), prop::sample::select(&b"0123456789LKxgSVD\0"[..]))
            .prop_map(|(block, kind)| Damage::Kind(block, kind)),
        (any::<usize>(), prop::sample::select(texts.to_vec()))
            .prop_map(|(block, text)| Damage::Text(block, text)),
        (any::<usize>(), prop_oneof![0u64..100_000, any::<u64>()])
            .prop_map(|(block, size)| Damage::Size(block, size)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Damage::Swap(a, b)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Damage::Repeat(a, b)),
        any::<usize>().prop_map(Damage::Cut),
    ]
}

fn damaged(bytes: &mut Vec<u8>, damage: &Damage) {
    const BLOCK: usize = 512;
    let blocks = bytes.len() / BLOCK;
    if blocks == 0 {
        return;
    }
    let span = |block: usize| (block % blocks) * BLOCK..(block % blocks + 1) * BLOCK;
    let edit = |bytes: &mut Vec<u8>, block: usize, change: &dyn Fn(&mut tar::Header)| {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(&bytes[span(block)]);
        change(&mut header);
        header.set_cksum();
        bytes[span(block)].copy_from_slice(header.as_bytes());
    };
    match *damage {
        Damage::Byte(at, byte) => {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        Damage::Kind(block, kind) => edit(bytes, block, &|header| {
            header.set_entry_type(EntryType::new(kind));
        }),
        Damage::Text(block, text) => edit(bytes, block, &|header| {
            let old = header.as_old_mut();
            for field in [&mut old.name, &mut old.linkname] {
                field.fill(0);
                field[..text.len()].copy_from_slice(text.as_bytes());
            }
        }),
        Damage::Size(block, size) => edit(bytes, block, &|header| header.set_size(size)),
        Damage::Swap(a, b) => {
            let first = bytes[span(a)].to_vec();
            bytes.copy_within(span(b), span(a).start);
            bytes[span(b)].copy_from_slice(&first);
        }
        Damage::Repeat(from, to) => {
            let block = bytes[span(from)].to_vec();
            let at = span(to).start;
            bytes.splice(at..at, block);
        }
        Damage::Cut(at) => bytes.truncate(at % bytes.len()),
    }
}

/// No link below `top` leads out of it, and nothing is a device or a program. Returns the bytes of
/// all files.
fn assert_harmless(top: &Path) -> u64 {
    let mut bytes = 0;
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            let list = fs::read_dir(&path).unwrap();
            ahead.extend(list.map(|entry| entry.unwrap().path()));
        } else if about.is_symlink() {
            if let Ok(real) = path.canonicalize() {
                assert!(real.starts_with(top), "{path:?} leads to {real:?}");
            }
        } else {
            assert!(about.is_file() && about.mode() & 0o7111 == 0, "{path:?}");
            bytes += about.len();
        }
    }
    bytes
}

proptest::proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_archives_change_nothing_outside(damages in prop::collection::vec(damage(), 1..6)) {
        let place = tempfile::tempdir().unwrap();
        let page = page(place.path());
        symlink("wget", page.join("l")).unwrap();
        let mut bytes = packed(&page);
        for damage in &damages {
            damaged(&mut bytes, damage);
        }
        let out = place.path().join("out/s7");
        fs::create_dir_all(&out).unwrap();
        let _ = unpack(&bytes[..], "s7", &opened(&out));
        prop_assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        prop_assert_eq!(fs::read_dir(place.path().join("out")).unwrap().count(), 1);
        let out = out.canonicalize().unwrap();
        prop_assert!(assert_harmless(&out) <= bytes.len() as u64);
    }
}
