//! Time spans in the syntax of systemd.time(7).

use super::decimal::Decimal;
use std::time::Duration;

/// Names of the units of time, with their microseconds.
const UNITS: [(&[&str], u64); 9] = [
    (&["usec", "us", "µs", "μs"], 1),
    (&["msec", "ms"], 1_000),
    (&["seconds", "second", "sec", "s"], 1_000_000),
    (&["minutes", "minute", "min", "m"], 60_000_000),
    (&["hours", "hour", "hr", "h"], 3_600_000_000),
    (&["days", "day", "d"], 86_400_000_000),
    (&["weeks", "week", "w"], 604_800_000_000),
    (&["months", "month", "M"], 2_629_800_000_000),
    (&["years", "year", "y"], 31_557_600_000_000),
];

/// What [`parse_span`] accepts, for error messages.
pub const SPAN_ALLOWED: &str = "a time span like 90, 30s, 5min 3s or 1.5h";

/// Reads a time span: `5min 3s`, `1.5h`, `90` (seconds).
pub fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = Decimal::read(rest)?;
        let after = after.trim_start();
        let end =
            after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "" => 1_000_000,
            name => UNITS.iter().find(|(names, _)| names.contains(&name))?.1,
        };
        total = total.checked_add(number.times(unit)?)?;
        rest = after.trim_start();
    }
    Some(Duration::from_micros(total))
}

/// Returns a time span that [`parse_span`] and systemd read back exactly: `1h 2min 3s`, `250ms`.
pub fn exact_span(span: Duration) -> String {
    let mut rest = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (name, unit) in [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
        ("us", 1),
    ] {
        if rest >= unit {
            parts.push(format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join(" ") }
}

/// Returns a time span rounded for people, in at most two units: `0.3s`, `42s`, `3min 4s`, `2h
/// 5min`, `3d 1h`.
pub fn human_span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", span.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}min {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_span_accepts_the_spans_of_systemd() {
        let seconds = |text| parse_span(text).map(|d| d.as_secs_f64());
        for (text, want) in [
            ("90", 90.0),
            ("5min 3s", 303.0),
            ("5min3s", 303.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("2 days", 172_800.0),
            ("1h 1", 3601.0),
            ("1year", 31_557_600.0),
            ("2y 1M", 65_745_000.0),
            ("0", 0.0),
        ] {
            assert_eq!(seconds(text), Some(want), "{text}");
        }
        for bad in ["", "x", "5 parsecs", "-3", "1..2", "1.", "infinity", "99999999999999w"] {
            assert_eq!(parse_span(bad), None, "{bad}");
        }
    }

    #[test]
    fn exact_span_reads_back() {
        for span in [0, 1, 250_000, 3_000_000, 43_200_000_000, 90_061_000_001] {
            let span = Duration::from_micros(span);
            assert_eq!(parse_span(&exact_span(span)), Some(span));
        }
    }

    #[test]
    fn human_span_has_at_most_two_units() {
        let spans = [300, 9_960, 42_000, 184_000, 7_500_000, 262_800_000]
            .map(|ms| human_span(Duration::from_millis(ms)));
        assert_eq!(spans, ["0.3s", "10.0s", "42s", "3min 4s", "2h 5min", "3d 1h"]);
    }

    proptest::proptest! {
        #[test]
        fn any_span_reads_back_and_no_text_panics(micros: u64, text in ".{0,40}", near in "[0-9. ]{0,24}[a-zA-Zµ]{0,5}") {
            let span = Duration::from_micros(micros);
            assert_eq!(parse_span(&exact_span(span)), Some(span));
            let _ = (parse_span(&text), parse_span(&near));
        }
    }
}
