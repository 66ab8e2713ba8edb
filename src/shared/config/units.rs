//! Quantities as systemd writes them: time spans (systemd.time(7)) and sizes to the base of 1024.

use std::time::Duration;

/// Names of the units of time with their microseconds.
const SPANS: [(&[&str], u64); 8] = [
    (&["usec", "us", "µs", "μs"], 1),
    (&["msec", "ms"], 1_000),
    (&["seconds", "second", "sec", "s"], 1_000_000),
    (&["minutes", "minute", "min", "m"], 60_000_000),
    (&["hours", "hour", "hr", "h"], 3_600_000_000),
    (&["days", "day", "d"], 86_400_000_000),
    (&["weeks", "week", "w"], 604_800_000_000),
    (&["months", "month", "M"], 2_629_800_000_000),
];

/// What a time span may look like, for messages.
pub const SPAN_ALLOWED: &str = "a time span like 90, 30s, 5min 3s or 1.5h";

/// What a size may look like, for messages.
pub const SIZE_ALLOWED: &str = "a size in bytes, or with K, M, G or T (1024-based) like 64M";

/// `5min 3s`, `1.5h`, `90` (seconds).
pub fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (whole, micros, after) = decimal(rest)?;
        let after = after.trim_start();
        let end = after
            .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "" => 1_000_000,
            name => SPANS.iter().find(|(names, _)| names.contains(&name))?.1,
        };
        let part = whole
            .checked_mul(unit)?
            .checked_add(fraction_of(micros, unit))?;
        total = total.checked_add(part)?;
        rest = after.trim_start();
    }
    Some(Duration::from_micros(total))
}

/// `64M`, `1.5G`, `4096`, `10KB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let (whole, micros, unit) = decimal(text.trim())?;
    let unit = unit.trim_start();
    let unit = if unit == "B" {
        ""
    } else {
        unit.strip_suffix('B').unwrap_or(unit)
    };
    let unit = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    whole
        .checked_mul(unit)?
        .checked_add(fraction_of(micros, unit))
}

/// A decimal number at the start of `text`: whole part, millionths, rest.
fn decimal(text: &str) -> Option<(u64, u64, &str)> {
    let digits = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
    let n = digits(text);
    let whole = text[..n].parse().ok()?;
    let rest = &text[n..];
    let Some(fraction) = rest.strip_prefix('.') else {
        return Some((whole, 0, rest));
    };
    let n = digits(fraction);
    let micros = match &fraction[..n.min(6)] {
        "" => return None,
        some => format!("{some:0<6}").parse().ok()?,
    };
    Some((whole, micros, &fraction[n..]))
}

fn fraction_of(micros: u64, unit: u64) -> u64 {
    u64::try_from(u128::from(micros) * u128::from(unit) / 1_000_000).unwrap_or(u64::MAX)
}

/// The span in the words of systemd: `1h 2min 3s`, `250ms`.
pub fn show_span(span: Duration) -> String {
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
    if parts.is_empty() {
        "0".to_owned()
    } else {
        parts.join(" ")
    }
}

/// The size with the largest unit that divides it: `64M`.
pub fn show_size(bytes: u64) -> String {
    for (name, unit) in [
        ("T", 1u64 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
    ] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_systemd() {
        let seconds = |text| parse_span(text).map(|d| d.as_secs_f64());
        for (text, want) in [
            ("90", 90.0),
            ("5min 3s", 303.0),
            ("5min3s", 303.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("2 days", 172_800.0),
            ("1h 1", 3601.0),
            ("0", 0.0),
        ] {
            assert_eq!(seconds(text), Some(want), "{text}");
        }
        for bad in [
            "",
            "x",
            "5 parsecs",
            "-3",
            "1..2",
            "1.",
            "infinity",
            "99999999999999w",
        ] {
            assert_eq!(parse_span(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        for (text, want) in [
            ("0", 0),
            ("4096", 4096),
            ("64M", 64 << 20),
            ("1.5G", 3 << 29),
            ("10 KB", 10 << 10),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Some(want), "{text}");
        }
        for bad in ["", "M", "64X", "-1", "1 2", "99999999T"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn shown_values_read_back() {
        for span in [0, 1, 250_000, 3_000_000, 43_200_000_000, 90_061_000_001] {
            let span = Duration::from_micros(span);
            assert_eq!(parse_span(&show_span(span)), Some(span));
        }
        for size in [0, 5, 1024, 64 << 20, (1 << 30) + 1] {
            assert_eq!(parse_size(&show_size(size)), Some(size));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_quantity_reads_back_and_any_text_is_survived(micros: u64, bytes: u64, text in ".{0,40}", near in "[0-9. ]{0,24}[a-zA-Zµ]{0,5}") {
            let span = Duration::from_micros(micros);
            assert_eq!(parse_span(&show_span(span)), Some(span));
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes));
            for text in [text, near] {
                let _ = (parse_span(&text), parse_size(&text));
            }
        }
    }
}
