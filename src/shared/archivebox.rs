//! What the readers of a data directory of ArchiveBox print: one JSON object a line. One reads the
//! database, the other the files that ArchiveBox keeps next to the pages.

use archivist_core::model::Time;
use serde::{Deserialize, Serialize};

/// Longest text of a field in bytes; longer ones are cut.
pub const FIELD_MAX: usize = 8 << 10;

/// Files of the database in the order in which its reader gets them through standard input: the database
/// and its write-ahead log, which has what was not written to it yet. Each is preceded by its length in
/// bytes, as a `u64` in little endian; a file that is missing has none.
pub const DATABASE_FILES: [&str; 2] = ["index.sqlite3", "index.sqlite3-wal"];
/// The last byte, which is sent only if none of the files changed meanwhile.
pub const UNCHANGED: u8 = b'.';

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxLine {
    Snapshot(BoxSnapshot),
    /// A part that cannot be read, and why. The rest follows.
    Fault(String),
    Unusable(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoxSnapshot {
    /// Its UUID in hexadecimal digits without dashes; empty if unknown.
    pub id: String,
    /// Its URL, without the time that ArchiveBox adds to distinguish it.
    pub url: String,
    /// Its timestamp, which is also the name of its directory.
    pub timestamp: String,
    pub title: Option<String>,
    /// Time of the bookmark, as RFC 3339.
    pub bookmarked_at: Option<String>,
    pub tags: Vec<String>,
    /// Its results in the order of their times.
    pub results: Vec<BoxResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoxResult {
    /// Name of the extractor or plugin.
    pub extractor: String,
    /// State, in the words of ArchiveBox.
    pub status: String,
    /// Path of the output, a text or an error.
    pub output: String,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// Returns the URL without the time that versions before 0.8 add to further snapshots of the same URL:
/// `#2021-04-20T10:00:00`, with or without a zone.
pub fn without_time(url: &str) -> &str {
    let Some((before, after)) = url.rsplit_once('#') else {
        return url;
    };
    let shape: String = after.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let Some(rest) = shape.strip_prefix("0000-00-00T00:00:00") else {
        return url;
    };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches('0'),
        None => rest,
    };
    match rest {
        "" | "Z" | "+00:00" | "-00:00" => before,
        _ => url,
    }
}

/// Returns the time of a timestamp such as `1618912800.123456`, if it is one of the years in which
/// ArchiveBox accepts it.
pub fn time_of(timestamp: &str) -> Option<String> {
    let (whole, fraction) = timestamp.split_once('.').unwrap_or((timestamp, ""));
    let seconds: i64 = whole.parse().ok().filter(|seconds| *seconds > 0)?;
    // Versions before 0.2 appended a number to equal timestamps, which is a fraction as well.
    let digits: String = fraction.chars().take(6).collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{digits:0<6}").parse().ok()?;
    let total = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    let time = jiff::Timestamp::from_microsecond(total).ok()?;
    // 1995 to 2035
    (788_918_400..2_051_222_400).contains(&seconds).then(|| time.to_string())
}

/// Returns when a snapshot was bookmarked: what ArchiveBox says, or else the time of its timestamp. 0.9 has left
/// out the fractions of seconds of older snapshots, which the timestamp still has: without them, a directory
/// that was imported before would be new.
pub fn bookmarked_at(said: Option<jiff::Timestamp>, timestamp: &str) -> Option<String> {
    let exact = time_of(timestamp);
    let Some(said) = said else {
        return exact;
    };
    let is_cut = exact
        .as_deref()
        .and_then(moment)
        .is_some_and(|exact| exact.as_second() == said.as_second());
    exact.filter(|_| is_cut && said.subsec_nanosecond() == 0).or_else(|| Some(said.to_string()))
}

/// Returns a time as Django writes it, in UTC although it does not say so, as RFC 3339.
pub fn moment(text: &str) -> Option<jiff::Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time);
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_seconds_stay() {
        for (said, timestamp, expected) in [
            ("2021-04-20 10:00:00", "1618912800.5", "2021-04-20T10:00:00.5Z"),
            ("2021-04-20 10:00:01", "1618912800.5", "2021-04-20T10:00:01Z"),
            ("2021-04-20 10:00:00.25", "1618912800.5", "2021-04-20T10:00:00.25Z"),
            ("", "1618912800.5", "2021-04-20T10:00:00.5Z"),
            ("2021-04-20 10:00:00", "x", "2021-04-20T10:00:00Z"),
        ] {
            let found = bookmarked_at(moment(said), timestamp);
            assert_eq!(found.as_deref(), Some(expected), "{said} {timestamp}");
        }
    }

    #[test]
    fn time_at_the_end_of_a_url_goes() {
        for (url, expected) in [
            ("http://a.test/#2021-04-20T10:00:00", "http://a.test/"),
            ("http://a.test/#2021-04-20T10:00:00+00:00", "http://a.test/"),
            ("http://a.test/#2021-04-20T10:00:00.123456Z", "http://a.test/"),
            ("http://a.test/#2021-04-20", "http://a.test/#2021-04-20"),
            ("http://a.test/#x2021-04-20T10:00:00", "http://a.test/#x2021-04-20T10:00:00"),
            ("http://a.test/", "http://a.test/"),
        ] {
            assert_eq!(without_time(url), expected);
        }
    }

    #[test]
    fn times_are_in_utc() {
        let read = |text: &str| moment(text).map(|time| time.to_string());
        let expected = Some("2021-04-20T10:00:00.5Z".to_owned());
        assert_eq!(read("2021-04-20 10:00:00.500000"), expected);
        assert_eq!(read("2021-04-20T10:00:00.5"), expected);
        assert_eq!(read("2021-04-20T12:00:00.5+02:00"), expected);
        assert_eq!(read("yesterday"), None);
        assert_eq!(time_of("1618912800.5"), expected);
        for bad in ["1", "0", "-5", "99999999999", "1618912800.x", "é"] {
            assert_eq!(time_of(bad), None, "{bad}");
        }
    }
}
