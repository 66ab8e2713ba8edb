use super::*;
use crate::source::Part;
use jiff::Timestamp;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

fn part(bytes: &[u8]) -> Part {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Part::new(&Arc::new(file), 0, bytes.len() as u64)
}

fn entry(name: &'static str, content: &[u8], offset: usize) -> Entry {
    Entry {
        name,
        method: Method::Store,
        crc: 0,
        packed: content.len() as u64,
        size: content.len() as u64,
        offset: offset as u64,
    }
}

fn sample() -> Vec<u8> {
    let mut file = Vec::new();
    let mut entries = Vec::new();
    for (name, content) in [("archive/a", &b"first"[..]), ("b", b"second one")] {
        let entry = entry(name, content, file.len());
        file.extend(local_header(&entry, Timestamp::UNIX_EPOCH));
        file.extend_from_slice(content);
        entries.push(entry);
    }
    let end = ends(&entries, file.len() as u64, Timestamp::UNIX_EPOCH);
    file.extend(end);
    file
}

fn reason(bytes: &[u8]) -> String {
    match directory(&part(bytes)) {
        Ok(members) => format!("members: {}", members.map_or(0, |members| members.len())),
        Err(error) => error.to_string(),
    }
}

/// Replaces the last occurrence of bytes, which is that in the directory.
fn changed(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).rposition(|part| part == from);
    let mut file = file.to_vec();
    let at = at.unwrap();
    file[at..at + to.len()].copy_from_slice(to);
    file
}

#[test]
fn members_are_read() {
    let file = part(&sample());
    let members = directory(&file).unwrap().unwrap();
    let read = |member: &Member| {
        let mut content = String::new();
        member.content().read_to_string(&mut content).unwrap();
        (member.name.clone(), content)
    };
    let read: Vec<_> = members.iter().map(read).collect();
    let expected = [("archive/a", "first"), ("b", "second one")];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(read, expected);
    let first = first_member(&file).unwrap();
    let data = PLACEHOLDER_BYTES as u64 + 9;
    assert_eq!((first.name.as_str(), first.data), ("archive/a", data));
    assert!(!first.is_open);
}

/// A reader may conclude from the directory that a local header has no extra field.
#[test]
fn entries_of_the_directory_have_an_extra_field_as_their_local_headers() {
    let length_at = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let file = sample();
    let starts = |signature: u32| -> Vec<usize> {
        let signature = signature.to_le_bytes();
        let windows = file.windows(4).enumerate();
        windows.filter(|(_, window)| **window == signature).map(|(at, _)| at).collect()
    };
    assert_eq!((starts(LOCAL).len(), starts(CENTRAL).len()), (2, 2));
    for at in starts(LOCAL) {
        assert_eq!(length_at(&file, at + 28), 4 + EXTRA64_BYTES);
    }
    for at in starts(CENTRAL) {
        let extra = length_at(&file, at + 30);
        assert_eq!(extra, 8);
        let start = at + CENTRAL_BYTES + usize::from(length_at(&file, at + 28));
        // Its own length is that of the field, so readers of extra fields pass over it.
        assert_eq!(length_at(&file, start), EXTRA_ROOM);
        assert_eq!(length_at(&file, start + 2), extra - 4);
    }
}

#[test]
fn lies_of_the_directory_have_a_reason() {
    let file = sample();
    assert_eq!(reason(&file), "members: 2");
    for (from, to, expected) in [
        (&b"archive/a"[..], &b"archi/../"[..], "leads out of the archive"),
        (b"archive/a", b"/rchive/a", "leads out of the archive"),
        (b"archive/a", b"archive/b", "has another name in its header"),
        // The size of the second member, stored and packed.
        (
            b"\x0a\0\0\0\x0a\0\0\0",
            b"\xff\0\0\0\xff\0\0\0",
            "ends behind the begin of the directory",
        ),
        (b"\x05\0\0\0\x05\0\0\0", b"\x06\0\0\0\x05\0\0\0", "with two different sizes"),
        (b"\x05\0\0\0\x05\0\0\0", b"\xa0\0\0\0\xa0\0\0\0", "ends behind"),
        (b"\x05\0\0\0\x05\0\0\0", b"\x30\0\0\0\x30\0\0\0", "'archive/a' and 'b' overlap"),
        (b"PK\x01\x02", b"PK\x09\x02", "member 2: is missing"),
        (b"\x02\0\x02\0", b"\x03\0\x03\0", "member 3: is missing"),
    ] {
        let reason = reason(&changed(&file, from, to));
        assert!(reason.contains(expected), "{reason} / {expected}");
    }
    for end in 0..file.len() {
        assert_eq!(reason(&file[..end]), "members: 0", "{end}");
    }
}

/// Members, offsets and counts that 32 or 16 bits do not hold, without the bytes of such a file.
#[test]
fn large_files_have_64_bit_sizes() {
    let large = 5 << 30;
    let file: File = tempfile::tempfile().unwrap();
    let mut one = entry("archive/a", b"", 0);
    (one.size, one.packed) = (large, large);
    let header = local_header(&one, Timestamp::UNIX_EPOCH);
    let two = Entry { offset: header.len() as u64 + large, ..entry("b", b"", 0) };
    let write = |bytes: &[u8], at| {
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
        at + bytes.len() as u64
    };
    write(&header, 0);
    let at = write(&local_header(&two, Timestamp::UNIX_EPOCH), two.offset);
    let length = write(&ends(&[one, two], at, Timestamp::UNIX_EPOCH), at);
    let members = directory(&Part::new(&Arc::new(file), 0, length));
    let members = members.unwrap().unwrap();
    assert_eq!((members[0].size, members[1].size), (large, 0));
}

proptest::proptest! {
    #[test]
    fn any_change_is_read(
        changes in proptest::collection::vec((0_usize..300, proptest::num::u8::ANY), 1..6)
    ) {
        let mut file = sample();
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(Some(members)) = directory(&part(&file)) {
            for member in members {
                let _ = member.bytes(1 << 20);
            }
        }
    }
}

#[test]
fn packed_files_are_read_by_name() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&sample()).unwrap();
    let packed = PackedFiles::open(file).unwrap().unwrap();
    assert_eq!(packed.names().collect::<Vec<_>>(), ["archive/a", "b"]);
    assert!(packed.read("missing", 100).is_none());
    let reason = |most| packed.read("b", most).unwrap().unwrap_err().to_string();
    assert!(reason(9).contains("has 10 bytes, and at most 9 are read"));
    // The sample has no checksums.
    assert!(reason(10).contains("another CRC-32"));
    let mut text = tempfile::tempfile().unwrap();
    text.write_all(b"PK\x03\x04 and nothing else").unwrap();
    assert!(PackedFiles::open(text).unwrap().is_none());
}
