use super::*;
use crate::wacz::bed;
use crate::wacz::bed::{packed_index, with_members};
use crate::wacz::read::Wacz;
use std::fs::File;
use std::sync::LazyLock;

const RECORD: &str = "WARC/1.1\nWARC-Type: response\nWARC-Record-ID: <urn:uuid:1>\nWARC-Target-URI: http://a.test/\n\
    WARC-Date: 2026-01-01T00:00:00Z\nContent-Type: application/http";

fn line(key: &str, number: usize) -> String {
    let url = format!("http://a.test/{number}");
    format!(
        "{key} 20260101000000 {{\"url\": \"{url}\", \"offset\": 0, \"length\": 9, \"filename\": \"data.warc.gz\"}}"
    )
}

/// Many lines: some keys have several, and some are as long as others are short.
static LINES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut lines: Vec<_> = (0..3000)
        .map(|number| {
            let path = "x".repeat(number * 7919 % 300);
            let query = ["", "?a=1", "?a=2", "/", "!"][number % 5];
            line(&format!("test,a)/{}/{path}{query}", number % 40), number)
        })
        .collect();
    lines.extend((0..500).map(|number| line("test,a)/many", number)));
    lines.sort();
    lines
});

static FILE: LazyLock<File> = LazyLock::new(|| {
    bed::wacz(&bed::packed(&bed::record(RECORD, b"HTTP/1.1 200 OK\r\n\r\n")), |_| ())
});

fn index(members: &[(&'static str, &[u8])]) -> Option<SortedIndex> {
    let wacz = Wacz::open(with_members(&FILE, members)).unwrap();
    SortedIndex::of(&wacz.members, 0)?.pop()
}

fn plain(text: &str) -> SortedIndex {
    index(&[("indexes/index.cdxj", text.as_bytes())]).unwrap()
}

fn packed(lines: &[String], edit: impl FnOnce(&str) -> String) -> Option<SortedIndex> {
    let (content, list) = packed_index(lines, 7);
    index(&[("indexes/index.cdx.gz", &content), ("indexes/index.idx", edit(&list).as_bytes())])
}

fn read(index: &SortedIndex, range: &LineRange) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    index.read(range, &mut |_, line| {
        found.push(String::from_utf8_lossy(line).trim_end().to_owned());
    })?;
    Ok(found)
}

#[test]
fn lines_of_a_range_are_those_of_the_whole_index() {
    let lines = &*LINES;
    let text = lines.join("\n");
    let windows = format!("!meta 0 {{}}\r\n{}\r\n\r\n\r\n", lines.join("\r\n"));
    let indexes = [plain(&text), plain(&windows), packed(lines, str::to_owned).unwrap()];
    let keys: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let other = ["", "a", "test,a)/many0", "test,a)/7/x", "zz"];
    for key in keys.iter().step_by(37).chain(&[keys[0], keys[keys.len() - 1]]).chain(&other) {
        for (range, next) in [(LineRange::of_key(key), ' '), (LineRange::of_queries(key), '?')] {
            let begin = format!("{key}{next}");
            let expected: Vec<_> = lines.iter().filter(|line| line.starts_with(&begin)).collect();
            for index in &indexes {
                let found = read(index, &range).unwrap();
                assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{} {begin}", index.name);
            }
        }
    }
    for index in &indexes {
        let mut all = read(index, &LineRange::all()).unwrap();
        all.retain(|line| !line.starts_with('!'));
        assert_eq!(&all, lines);
    }
}

#[test]
fn compressed_index_that_is_not_what_its_list_says_is_refuted() {
    let lines = &*LINES;
    let all = |edit: &dyn Fn(&str) -> String| {
        let index = packed(lines, edit);
        index.map(|index| read(&index, &LineRange::all()).map(|lines| lines.len()))
    };
    assert_eq!(all(&str::to_owned), Some(Ok(lines.len())));
    // A part less, another file, and another format.
    let without_last = |list: &str| {
        let (rest, _) = list.trim_end().rsplit_once('\n').unwrap();
        rest.to_owned()
    };
    assert_eq!(all(&without_last), None);
    assert_eq!(all(&|list| list.replace("index.cdx.gz", "other.gz")), None);
    assert_eq!(all(&|list| list.replace("gzip-1.0", "gzip-2.0")), None);
    let reason = |edit: &dyn Fn(&str) -> String| all(edit).unwrap().unwrap_err();
    let other_key = reason(&|list| list.replacen("test,a)/0", "test,a)/!", 1));
    assert_eq!(other_key, "the part at byte 0 begins with another line");
    let other_digest = reason(&|list| list.replacen("sha256:", "sha256:0", 1));
    assert_eq!(other_digest, "the part at byte 0 has another digest");
    let mut unordered = lines.clone();
    unordered.swap(3, 900);
    let index = packed(&unordered, str::to_owned).unwrap();
    assert_eq!(read(&index, &LineRange::all()), Err("not in order".to_owned()));
    let mut text = unordered.join("\n");
    text.push('\n');
    assert_eq!(read(&plain(&text), &LineRange::all()), Err("not in order".to_owned()));
}

#[test]
fn small_and_deflated_indexes_are_read_as_a_whole() {
    let lines = &*LINES;
    let (content, list) = packed_index(lines, 7);
    let members: [(&'static str, &[u8]); 2] =
        [("indexes/index.cdx.gz", &content), ("indexes/index.idx", list.as_bytes())];
    let members = Wacz::open(with_members(&FILE, &members)).unwrap().members;
    let bytes = content.len() as u64;
    assert!(SortedIndex::of(&members, bytes).is_some());
    assert!(SortedIndex::of(&members, bytes + 1).is_none());
    let mut deflated = members;
    deflated[1].method = Method::Deflate;
    assert!(SortedIndex::of(&deflated, 0).is_none());
    assert!(index(&[("indexes/index.cdx.gz", &content)]).is_none());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_index_is_read(
        text in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
        at in 0..400_usize,
        key in "[a-c)/]{0,3}",
    ) {
        let lines = &LINES[..20];
        let mut sorted = lines.join("\n").into_bytes();
        let at = at.min(sorted.len());
        sorted.splice(at..at, text.iter().copied());
        let ranges = [LineRange::of_key(&key), LineRange::of_queries(&key), LineRange::all()];
        for content in [&sorted, &text] {
            let (packed, list) = packed_index(lines, 7);
            for members in [
                &[("indexes/index.cdxj", &content[..])][..],
                &[("indexes/index.cdx.gz", &packed), ("indexes/index.idx", content)],
                &[("indexes/index.cdx.gz", content), ("indexes/index.idx", list.as_bytes())],
            ] {
                if let Some(index) = index(members) {
                    ranges.iter().for_each(|range| drop(read(&index, range)));
                }
            }
        }
    }
}
