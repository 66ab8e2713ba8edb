//! Times as bookmark files and exports write them.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// Longest text that may be a time.
const TEXT_MAX: usize = 64;
/// Seconds from 1601, from which Chromium counts, to 1970.
const SINCE_1601: i64 = 11_644_473_600;

/// Returns a time in UTC as in RFC 3339, or a date: of numbers since 1970 in seconds, milliseconds,
/// microseconds or nanoseconds, of microseconds since 1601, and of texts as in RFC 3339, ISO 8601 and RFC
/// 2822. An empty text for the number 0, which stands for no time. `None` if the text is no time.
pub fn moment(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_MAX {
        return None;
    }
    let whole = text.split('.').next().unwrap_or_default();
    if whole.bytes().all(|byte| byte.is_ascii_digit()) && !whole.is_empty() {
        return of_number(whole);
    }
    let iso = text.strip_suffix(" UTC").unwrap_or(text);
    let time = iso.parse::<Timestamp>().ok().or_else(|| in_utc(iso)).or_else(|| {
        let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
        parser.parse_timestamp(text).ok()
    });
    time.map(|time| time.to_string()).or_else(|| Some(text.parse::<Date>().ok()?.to_string()))
}

/// A time without a zone.
fn in_utc(text: &str) -> Option<Timestamp> {
    if !text.contains(':') {
        return None;
    }
    let time: DateTime = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn of_number(digits: &str) -> Option<String> {
    let number: i64 = digits.parse().ok()?;
    if number == 0 {
        return Some(String::new());
    }
    let time = match number.ilog10() {
        ..=10 => Timestamp::from_second(number),
        11..=13 => Timestamp::from_millisecond(number),
        14..=15 => Timestamp::from_microsecond(number),
        16 => Timestamp::from_microsecond(number - SINCE_1601 * 1_000_000),
        17.. => Timestamp::from_nanosecond(i128::from(number)),
    };
    Some(time.ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::moment;
    use proptest::prelude::*;

    #[test]
    fn times_of_all_sources_are_the_same() {
        let time = Some("2023-11-14T22:13:20Z");
        for text in [
            "1700000000",
            " 1700000000 ",
            "1700000000.0",
            "1700000000000",
            "1700000000000000",
            "13344473600000000",
            "1700000000000000000",
            "2023-11-14T22:13:20Z",
            "2023-11-14T22:13:20.000Z",
            "2023-11-14T23:13:20+0100",
            "2023-11-14 22:13:20+00:00",
            "2023-11-14 22:13:20",
            "2023-11-14 22:13:20 UTC",
            "Tue, 14 Nov 2023 22:13:20 GMT",
        ] {
            assert_eq!(moment(text).as_deref(), time, "{text}");
        }
        assert_eq!(moment("2023-11-14").as_deref(), Some("2023-11-14"));
        assert_eq!(moment("0").as_deref(), Some(""));
        for text in ["", "t", "yesterday", "-5", "99999999999999999999"] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    proptest! {
        /// What is a time is one that is read as itself.
        #[test]
        fn any_text_is_a_time_or_not(text in "[0-9]{1,20}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?[0-9:.+Z]{0,12}|.{0,20}") {
            if let Some(time) = moment(&text).filter(|time| !time.is_empty()) {
                prop_assert_eq!(moment(&time), Some(time));
            }
        }
    }
}
