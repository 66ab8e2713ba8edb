//! Index lines (CDXJ): key, time, and a JSON object with the place of the record.

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, Write};

/// Lines of each part of a compressed index, as other programs have it.
const PART_LINES: usize = 300;
pub(crate) const LINE_MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) time: Timestamp,
    pub(crate) record: Record,
}

/// The object of a line. Others write numbers as texts, and so does this program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Empty for a record of the WARC file itself, which other programs list, too.
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mime: Option<String>,
    #[serde(default, with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(default, with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
    #[serde(default, with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    pub(crate) filename: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<String>,
    #[serde(default, rename = "requestBody", skip_serializing_if = "Option::is_none")]
    pub(crate) posted: Option<String>,
    /// The time of the record with fractions of a second, which distinguishes a redirect from the
    /// answer that it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
}

mod number {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(u64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(value: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&value.unwrap_or_default())
    }

    /// A number, also as a text; `None` for `-`, which is that of an unknown status.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(match Value::deserialize(from)? {
            Value::Number(number) => Some(number),
            Value::Text(text) => text.parse().ok(),
            Value::Other(_) => None,
        })
    }
}

impl Line {
    /// The line as text, without its end.
    pub(crate) fn text(&self) -> String {
        let record = serde_json::to_string(&self.record).unwrap_or_default();
        format!("{} {} {record}", self.key, stamp(self.time))
    }
}

/// A time in 14 digits.
fn stamp(time: Timestamp) -> String {
    time.strftime("%Y%m%d%H%M%S").to_string()
}

/// The time of 4 to 17 digits: years, or more, down to milliseconds.
fn time_of(digits: &str) -> Option<Timestamp> {
    if !(4..=17).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let least = "00000101000000000";
    let whole = format!("{digits}{}", &least[digits.len()..]);
    let part = |range: std::ops::Range<usize>| whole[range].parse::<i16>().ok();
    let small = |range| part(range).and_then(|part| i8::try_from(part).ok());
    let date = DateTime::new(
        part(0..4)?,
        small(4..6)?,
        small(6..8)?,
        small(8..10)?,
        small(10..12)?,
        small(12..14)?.min(59),
        i32::from(part(14..17)?) * 1_000_000,
    );
    let zoned = date.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

/// Reads a line.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn parse(line: &str) -> Result<Line, String> {
    let mut parts = line.splitn(3, ' ');
    let (Some(key), Some(time), Some(record)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("not a key, a time and an object".to_owned());
    };
    let time = time_of(time).ok_or_else(|| format!("not a time: '{time}'"))?;
    let record: Record = serde_json::from_str(record).map_err(|error| error.to_string())?;
    let date = record.date.as_deref().and_then(|date| date.parse().ok());
    Ok(Line { key: key.to_owned(), time: date.unwrap_or(time), record })
}

/// Key and URL of a line, without its other values. `None` if it is not one.
pub(crate) fn key_and_url(line: &str) -> Option<(&str, Cow<'_, str>)> {
    #[derive(Deserialize)]
    struct Own<'a> {
        #[serde(borrow)]
        url: Cow<'a, str>,
    }
    let mut parts = line.splitn(3, ' ');
    let (key, _, record) = (parts.next()?, parts.next()?, parts.next()?);
    let own: Own = serde_json::from_str(record).ok()?;
    Some((key, own.url))
}

#[derive(Default)]
pub(crate) struct Packed {
    /// The list of the index's parts, in which viewers search.
    pub(crate) parts: String,
    pub(crate) count: u64,
}

/// Writes lines, which must be sorted, as a compressed index whose parts can be read one by one.
/// `name` is that of the compressed index.
pub(crate) fn pack(
    mut lines: impl Iterator<Item = io::Result<String>>,
    name: &str,
    to: &mut dyn Write,
) -> io::Result<Packed> {
    let meta = serde_json::json!({"format": "cdxj-gzip-1.0", "filename": name});
    let mut packed = Packed { parts: format!("!meta 0 {meta}\n"), count: 0 };
    let mut offset = 0;
    loop {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut first = None;
        for line in lines.by_ref().take(PART_LINES) {
            let line = line?;
            encoder.write_all(line.as_bytes())?;
            encoder.write_all(b"\n")?;
            packed.count += 1;
            first.get_or_insert(line);
        }
        // No bytes at all are no gzip file, so an empty index has one member, too.
        if first.is_none() && offset > 0 {
            return Ok(packed);
        }
        let bytes = encoder.finish()?;
        to.write_all(&bytes)?;
        let Some(first) = first else {
            return Ok(packed);
        };
        let digest = crate::digest::of(&bytes);
        let place = serde_json::json!({"offset": offset, "length": bytes.len(), "digest": digest});
        let key = first.split(" {").next().unwrap_or_default();
        packed.parts.push_str(&format!("{key} {place}\n"));
        offset += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn lines_of_this_program_and_others_are_read() {
        let ours = Line {
            key: "com,example)/".to_owned(),
            time: at("2026-11-26T09:53:41.25Z"),
            record: Record {
                url: "https://example.com/".to_owned(),
                status: Some(200),
                offset: Some(7),
                length: Some(9),
                filename: "data.warc.gz".to_owned(),
                date: Some("2026-11-26T09:53:41.25Z".to_owned()),
                ..Record::default()
            },
        };
        assert!(ours.text().starts_with("com,example)/ 20261126095341 {"));
        assert_eq!(parse(&ours.text()), Ok(ours));
        let theirs = r#"com,example)/ 20210102030405 {"url": "http://example.com/", "status": 301, "length": "12", "offset": 34, "filename": "a.warc", "x": [1], "requestBody": "a=1"}"#;
        let line = parse(theirs).unwrap();
        assert_eq!(line.time, at("2021-01-02T03:04:05Z"));
        let record = line.record;
        assert_eq!((record.status, record.length, record.offset), (Some(301), Some(12), Some(34)));
        let unknown = r#"- 2021 {"url": "x", "status": "-", "length": null, "filename": "a.warc"}"#;
        let record = parse(unknown).unwrap().record;
        assert_eq!((record.status, record.length), (None, None));
    }

    #[test]
    fn line_that_is_none_has_a_reason() {
        for line in ["", "!meta 0 {}", "key 2021", "key 20219 {}", "key 20211332 {}", "key 2021 {}"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(time_of("20210102030405678"), Some(at("2021-01-02T03:04:05.678Z")));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line in ".*", digits in "[0-9]{0,20}", object in "[{}:,\"a-z0-9-]{0,40}") {
            let _ = parse(&line);
            let _ = parse(&format!("key {digits} {object}"));
        }
    }
}
