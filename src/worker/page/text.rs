//! Formats sizes and times, and makes untrusted text displayable. Does not escape HTML.

use archivist_core::model::Time;
use archivist_core::text::{clean_to, human_span};
use maud::{Markup, html};

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

/// Returns how long something ran, if it started and ended: `0.3s`, `42s`, `3min 4s`.
pub fn took(from: Option<Time>, to: Option<Time>) -> Option<String> {
    Some(human_span(to?.until(from?)))
}

/// Formats a directory name such as `20261121` as a date. Other names stay unchanged.
pub fn day(directory: &str) -> String {
    if directory.len() == 8 && directory.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{}-{}-{}", &directory[..4], &directory[4..6], &directory[6..])
    } else {
        clean_to(directory, 40)
    }
}

/// Host name of a URL without `www.`.
pub fn host(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.map_or_else(String::new, |host| clean_to(host.trim_start_matches("www."), 100))
}

/// URL without scheme and trailing slash.
pub fn address(url: &str, max: usize) -> String {
    let bare = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    clean_to(bare.unwrap_or(url).trim_end_matches('/'), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_counts_are_formatted() {
        let took = |ms: i64| took(Some(Time(5)), Some(Time(5 + ms))).unwrap();
        assert_eq!(
            [300, 42_000, 184_000, 7_500_000].map(took),
            ["0.3s", "42s", "3min 4s", "2h 5min"]
        );
        assert_eq!(count(1, "file") + &count(0, "file"), "1 file0 files");
    }

    #[test]
    fn times_are_shown_with_exact_attribute() {
        let html = stamp(Time(1_795_253_105_123)).into_string();
        assert!(html.contains("datetime=\"2026-11-21T09:25:05.123Z\""), "{html}");
        assert!(html.ends_with(">2026-11-21 09:25 UTC</time>"), "{html}");
        assert_eq!(day("20261121"), "2026-11-21");
        assert_eq!(day("ääää"), "ääää");
    }

    #[test]
    fn hosts_and_addresses_are_short() {
        assert_eq!(host("https://www.example.com:8080/x"), "example.com");
        assert_eq!(host("nothing"), "");
        assert_eq!(address("https://example.com/a/", 12), "example.com/…");
        assert_eq!(address("javascript:x", 90), "javascript:x");
    }
}
