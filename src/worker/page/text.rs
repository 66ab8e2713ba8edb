//! Formats sizes and times, and makes untrusted text displayable. Does not escape HTML.

use archivist_core::model::Time;
use maud::{Markup, html};

/// Untrusted text on one line of at most `max` characters, without control characters and without
/// characters that change the direction of adjacent text.
pub fn shown(text: &str, max: usize) -> String {
    let clean = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let mut chars = text.trim().chars();
    let mut out: String = chars.by_ref().take(max).map(clean).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// `512 bytes`, `1.5 kB`, `20 MB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1000 {
        let noun = if bytes == 1 { "byte" } else { "bytes" };
        return format!("{bytes} {noun}");
    }
    let (mut value, mut unit) = (bytes as f64 / 1000.0, 0);
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 {
        format!("{value:.1} {}", UNITS[unit])
    } else {
        format!("{value:.0} {}", UNITS[unit])
    }
}

/// `1 file`, `3 files`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// `2026-11-21 09:25 UTC`, with the exact time as attribute and tooltip.
pub fn stamp(time: Time) -> Markup {
    let exact = time.to_string();
    let (day, clock) = exact.split_once('T').unwrap_or((&exact, ""));
    let minute = clock.get(..5).unwrap_or(clock);
    html! { time datetime=(exact) title=(exact) { (day) " " (minute) " UTC" } }
}

/// `0.3 s`, `42 s`, `3 min 4 s`.
pub fn took(from: Option<Time>, to: Option<Time>) -> Option<String> {
    let span = to?.until(from?);
    let seconds = span.as_secs();
    Some(match seconds {
        0..10 => format!("{:.1} s", span.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    })
}

/// Formats a directory name such as `20261121` as a date. Other names stay unchanged.
pub fn day(directory: &str) -> String {
    if directory.len() == 8 && directory.bytes().all(|byte| byte.is_ascii_digit()) {
        format!(
            "{}-{}-{}",
            &directory[..4],
            &directory[4..6],
            &directory[6..]
        )
    } else {
        shown(directory, 40)
    }
}

/// Host name of a URL without `www.`.
pub fn host(url: &str) -> String {
    let host = url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    host.map_or_else(String::new, |host| {
        shown(host.trim_start_matches("www."), 100)
    })
}

/// URL without scheme and trailing slash.
pub fn address(url: &str, max: usize) -> String {
    let bare = ["https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    shown(bare.unwrap_or(url).trim_end_matches('/'), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_spans_and_counts_are_formatted() {
        let sizes = [0, 1, 999, 1000, 9940, 9960, 999_499, 999_501, 1_500_000_000].map(size);
        let wanted = [
            "0 bytes",
            "1 byte",
            "999 bytes",
            "1.0 kB",
            "9.9 kB",
            "10 kB",
            "999 kB",
            "1.0 MB",
            "1.5 GB",
        ];
        assert_eq!(sizes, wanted);
        assert!(size(u64::MAX).ends_with(" PB"));
        let took = |ms: i64| took(Some(Time(5)), Some(Time(5 + ms))).unwrap();
        assert_eq!(
            [300, 42_000, 184_000, 7_500_000].map(took),
            ["0.3 s", "42 s", "3 min 4 s", "2 h 5 min"]
        );
        assert_eq!(count(1, "file") + &count(0, "file"), "1 file0 files");
    }

    #[test]
    fn times_are_shown_with_exact_attribute() {
        let html = stamp(Time(1_795_253_105_123)).into_string();
        assert!(
            html.contains("datetime=\"2026-11-21T09:25:05.123Z\""),
            "{html}"
        );
        assert!(html.ends_with(">2026-11-21 09:25 UTC</time>"), "{html}");
        assert_eq!(day("20261121"), "2026-11-21");
        assert_eq!(day("ääää"), "ääää");
    }

    #[test]
    fn direction_and_control_characters_are_replaced() {
        assert_eq!(
            shown(" a\u{202e}gpj.exe\n\0 ", 20),
            "a\u{fffd}gpj.exe \u{fffd}"
        );
        assert_eq!(shown("ääää", 2), "ää…");
        assert_eq!(host("https://www.example.com:8080/x"), "example.com");
        assert_eq!(host("nothing"), "");
        assert_eq!(address("https://example.com/a/", 12), "example.com/…");
        assert_eq!(address("javascript:x", 90), "javascript:x");
    }
}
