//! Reads how long an overloaded server wants to be left alone (Retry-After; RFC 9110, section
//! 10.2.3).

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Forms of a date without its weekday (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850, asctime.
const FORMS: [&str; 4] =
    ["%d %b %Y %H:%M:%S", "%d-%b-%y %H:%M:%S", "%d-%b-%Y %H:%M:%S", "%b %d %H:%M:%S %Y"];
/// Years in the future from which on a year of two digits is one of the past.
const FUTURE_YEARS_MAX: i16 = 50;

/// Returns the seconds that a server with this status asks to wait, or `None` if the status is
/// neither 429 nor 503, or the value is invalid or past. `date` is the value of Date, by which the
/// server counts; without that, `now` is.
pub fn retry_after(
    status: u16,
    value: Option<&str>,
    date: Option<&str>,
    now: Timestamp,
) -> Option<u64> {
    let text = value?.trim();
    if !matches!(status, 429 | 503) || text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let from = date.and_then(|date| http_date(date, now)).unwrap_or(now);
    let until = http_date(text, now)?;
    u64::try_from(until.as_second() - from.as_second()).ok()
}

/// Parses a date of HTTP. The weekday says nothing new and is ignored.
fn http_date(text: &str, now: Timestamp) -> Option<Timestamp> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_weekday = |word: &str| {
        let name = word.trim_end_matches(',').to_ascii_lowercase();
        let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        name.len() >= 3 && days.iter().any(|day| name.starts_with(day))
    };
    let words = match words.split_first() {
        Some((first, rest)) if is_weekday(first) => rest,
        _ => words.as_slice(),
    };
    let words = match words.split_last() {
        Some((zone, rest)) if ["GMT", "UTC", "UT", "Z", "+0000"].contains(zone) => rest,
        _ => words,
    };
    let rest = words.join(" ");
    let time = FORMS.iter().find_map(|form| DateTime::strptime(form, &rest).ok())?;
    let has_short_year = rest
        .split(' ')
        .next()
        .and_then(|date| date.rsplit_once('-'))
        .is_some_and(|(_, year)| year.len() == 2);
    let time = if has_short_year { near(time, now)? } else { time };
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The year with the same last two digits that is at most 50 years in the future.
fn near(time: DateTime, now: Timestamp) -> Option<DateTime> {
    let this_year = now.to_zoned(TimeZone::UTC).year();
    let latest = this_year + FUTURE_YEARS_MAX;
    let century = |years: i16| time.checked_add((100 * i64::from(years)).years()).ok();
    let candidates = [1, 0, -1].into_iter().filter_map(century);
    candidates.filter(|time| time.year() <= latest).max_by_key(|time| time.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(value: &str) -> Option<u64> {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        retry_after(503, Some(value), None, now)
    }

    #[test]
    fn seconds_and_all_forms_of_dates_are_read() {
        for (value, want) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sat, 21 Nov 2026 12:01:30 GMT", Some(90)),
            ("Saturday, 21-Nov-26 12:01:30 GMT", Some(90)),
            ("Sat Nov 21 12:01:30 2026", Some(90)),
            ("Sun Dec  6 12:00:00 2026", Some(15 * 86_400)),
            ("Sun, 06 Dec 2026 12:00:00 GMT", Some(15 * 86_400)),
            // Not exact, and clear.
            ("Mon, 21 Nov 2026 12:01:30 GMT", Some(90)),
            ("21 Nov 2026 12:01:30 UTC", Some(90)),
            ("Sat, 21-Nov-2026 12:01:30 GMT", Some(90)),
            ("Saturday, 21-Nov-70 12:00:00 GMT", Some(1_388_534_400)),
            // Past or invalid.
            ("Sat, 21 Nov 2026 11:00:00 GMT", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("-5", None),
            ("soon", None),
            ("", None),
            ("Sat, 31 Feb 2026 12:00:00 GMT", None),
        ] {
            assert_eq!(after(value), want, "{value}");
        }
    }

    #[test]
    fn only_overloaded_servers_are_believed() {
        let of = |status| retry_after(status, Some("5"), None, Timestamp::UNIX_EPOCH);
        assert_eq!((of(429), of(503)), (Some(5), Some(5)));
        assert_eq!((of(200), of(301), of(500)), (None, None, None));
        assert_eq!(retry_after(429, None, None, Timestamp::UNIX_EPOCH), None);
    }

    /// The clock of the server may be wrong.
    #[test]
    fn date_is_relative_to_that_of_the_server() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let date = Some("Fri, 01 Jan 2021 00:00:00 GMT");
        let until = Some("Fri, 01 Jan 2021 00:00:08 GMT");
        assert_eq!(retry_after(429, until, date, now), Some(8));
        assert_eq!(retry_after(429, until, Some("today"), now), None);
    }

    proptest::proptest! {
        #[test]
        fn any_value_is_read(
            value in "[-+0-9A-Za-z,: ]{0,40}|.{0,40}",
            date in "(Sun|Mon|Friday), [0-9]{1,2}[- ](Jan|Feb|Dec)[- ][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            year in 1970i64..9000,
        ) {
            let now = Timestamp::from_second((year - 1970) * 31_556_952).unwrap();
            let _ = retry_after(503, Some(&value), Some(&date), now);
            let _ = retry_after(429, Some(&date), Some(&value), now);
        }
    }
}
