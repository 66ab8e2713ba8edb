//! The list of the parts of a compressed index (`index.idx`): the first key of each, and where its
//! gzip members are.

use serde::Deserialize;
use std::ops::Range;

/// Value of `format` in the first line, which other programs write, too.
const FORMAT: &str = "cdxj-gzip-1.0";
/// Largest part in bytes, as it is in the file.
const PART_MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) filename: String,
    pub(super) list: Vec<IndexPart>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexPart {
    /// How its first line begins: key and time.
    pub(super) begin: String,
    /// Offset in the compressed index.
    pub(super) offset: u64,
    /// Bytes in the compressed index.
    pub(super) length: u64,
    /// Digest of these bytes.
    pub(super) digest: Option<String>,
}

#[derive(Deserialize)]
struct Meta {
    format: String,
    filename: String,
}

#[derive(Deserialize)]
struct Place {
    offset: u64,
    length: u64,
    digest: Option<String>,
    filename: Option<String>,
}

impl Parts {
    /// Reads a list.
    ///
    /// # Errors
    /// The reason why parts cannot be found by it.
    pub(super) fn parse(text: &str) -> Result<Parts, String> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let meta = lines.next().and_then(|line| line.strip_prefix("!meta "));
        let meta = meta.and_then(|line| line.split_once(" {"));
        let (_, meta) = meta.ok_or("has no line '!meta'")?;
        let meta: Meta = of_json(meta)?;
        if meta.format != FORMAT {
            return Err(format!("has the format '{}'", meta.format));
        }
        let mut parts = Parts { filename: meta.filename, list: Vec::new() };
        for line in lines {
            parts.add(line)?;
        }
        Ok(parts)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let (begin, place) = line.split_once(" {").ok_or("line has no object")?;
        let place: Place = of_json(place)?;
        if place.filename.is_some_and(|name| name != self.filename) {
            return Err("names two indexes".to_owned());
        }
        if place.length == 0 || place.length > PART_MAX_BYTES {
            return Err(format!("has a part of {} bytes", place.length));
        }
        if place.offset != self.bytes() {
            return Err(format!("has a gap before byte {}", place.offset));
        }
        if self.list.last().is_some_and(|last| key(begin) < last.key()) {
            return Err("is not in order".to_owned());
        }
        self.list.push(IndexPart {
            begin: begin.to_owned(),
            offset: place.offset,
            length: place.length,
            digest: place.digest,
        });
        Ok(())
    }

    /// Bytes of all parts.
    pub(super) fn bytes(&self) -> u64 {
        let last = self.list.last();
        last.map_or(0, |last| last.offset.saturating_add(last.length))
    }

    /// The parts that may have lines from `begin` up to `end`. Without `end`, all that follow.
    pub(super) fn range(&self, begin: &[u8], end: Option<&[u8]>) -> Range<usize> {
        let before = |limit: &[u8]| self.list.partition_point(|part| part.begin.as_bytes() < limit);
        // The first line of a part may be one of those, and so may lines before it.
        let first = before(begin).saturating_sub(1);
        first..end.map_or(self.list.len(), before).max(first)
    }
}

impl IndexPart {
    pub(super) fn key(&self) -> &str {
        key(&self.begin)
    }
}

/// The key at the begin of a line.
fn key(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// The value of an object without its first brace.
fn of_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(&format!("{{{text}")).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#"!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}"#;

    fn list(lines: &[(&str, u64, u64)]) -> Result<Parts, String> {
        let lines = lines.iter().map(|(begin, offset, length)| {
            format!("{begin} {{\"offset\": {offset}, \"length\": {length}}}\n")
        });
        Parts::parse(&format!("{META}\n{}", lines.collect::<String>()))
    }

    #[test]
    fn parts_of_a_range_are_found() {
        let parts =
            list(&[("a 2020", 0, 5), ("b 2020", 5, 5), ("b 2021", 10, 5), ("c?x 2020", 15, 5)]);
        let parts = parts.unwrap();
        assert_eq!(parts.bytes(), 20);
        let range = |begin: &str, end: &str| parts.range(begin.as_bytes(), Some(end.as_bytes()));
        assert_eq!(range("a ", "a!"), 0..1);
        assert_eq!(range("b ", "b!"), 0..3);
        assert_eq!(range("c ", "c!"), 2..3);
        assert_eq!(range("c?", "c@"), 2..4);
        assert_eq!(range("z ", "z!"), 3..4);
        assert_eq!(range("0 ", "0!"), 0..0);
        assert_eq!(parts.range(b"", None), 0..4);
    }

    #[test]
    fn lists_that_lie_have_a_reason() {
        for (lines, expected) in [
            (&[("a 1", 1, 5)][..], "has a gap before byte 1"),
            (&[("a 1", 0, 5), ("b 1", 4, 5)], "has a gap before byte 4"),
            (&[("b 1", 0, 5), ("a 1", 5, 5)], "is not in order"),
            (&[("a 1", 0, 0)], "has a part of 0 bytes"),
            (&[("a 1", 0, 1 << 40)], "has a part of 1099511627776 bytes"),
        ] {
            assert_eq!(list(lines).unwrap_err(), expected);
        }
        assert!(Parts::parse("a 1 {}\n").is_err());
        assert!(Parts::parse(&META.replace("1.0", "2.0")).is_err());
        assert!(Parts::parse(&format!("{META}\na\tindex\t0\t5\n")).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_read(text in ".*", line in "[a-c ]{0,4} \\{\"offset\": [0-9]{1,20}, \"length\": [0-9]{1,20}\\}") {
            let _ = Parts::parse(&text);
            if let Ok(parts) = Parts::parse(&format!("{META}\n{line}\n{line}\n{text}")) {
                let _ = parts.range(b"a ", Some(b"b"));
            }
        }
    }
}
