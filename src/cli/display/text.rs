//! Times, counts, states and names of hooks as the command line prints them.

use crate::display::style::{Style, Tone};
use archivist_core::model::{Lifecycle, ResultState, Time};
use archivist_core::text::{clean, human_span};
pub use archivist_core::text::{hook_label, short_hook};
use archivist_shared::bus::documents::report::{Counts, Status, Uses};
use nix::unistd::{Uid, User};
use std::time::Duration;

/// Fewest columns of a path that are shown for a whole host.
const SHORTEST_PATH: usize = 6;

/// Returns `text` in at most `width` columns, with `…` in place of its middle.
pub fn cut_middle(text: &str, width: usize) -> String {
    if console::measure_text_width(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    cut(text, room.div_ceil(2), room / 2)
}

/// The first and the last columns of a text, with `…` between them.
fn cut(text: &str, first: usize, last: usize) -> String {
    let fits = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        chars
            .take_while(|c| {
                used += console::measure_text_width(c.encode_utf8(&mut [0; 4]));
                used <= room
            })
            .collect::<Vec<_>>()
    };
    let head = fits(&mut text.chars(), first);
    let mut tail = fits(&mut text.chars().rev(), last);
    tail.reverse();
    head.into_iter().chain(['…']).chain(tail).collect()
}

/// Returns a URL in at most `width` columns: without `http://` if it does not fit, then with its host and
/// the end of its path, if there is room for both.
pub fn cut_url(url: &str, width: usize) -> String {
    if console::measure_text_width(url) <= width {
        return url.to_owned();
    }
    let url = ["https://", "http://"]
        .into_iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .unwrap_or(url);
    let Some((host, path)) = url.split_once('/') else {
        return cut_middle(url, width);
    };
    let rest = width.saturating_sub(console::measure_text_width(host) + 1);
    let is_whole = console::measure_text_width(path) <= rest;
    if rest < SHORTEST_PATH || is_whole {
        cut_middle(url, width)
    } else {
        // Pages of a site differ at the end.
        format!("{host}/{}", cut(path, 0, rest - 1))
    }
}

/// The name of a user; the id if this machine has none.
pub fn user(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or(uid.to_string(), |user| user.name)
}

/// Returns the time between `from` and `to`, or up to `now` without an end; empty without a start.
pub fn elapsed(from: Option<Time>, to: Option<Time>, now: Time) -> String {
    match from {
        Some(from) => human_span(to.unwrap_or(now).until(from)),
        None => String::new(),
    }
}

/// `3min 4s ago` or `in 2h 5min`.
pub fn relative(time: Time, now: Time) -> String {
    if time > now {
        format!("in {}", human_span(time.until(now)))
    } else if now.until(time) < Duration::from_secs(1) {
        "now".to_owned()
    } else {
        format!("{} ago", human_span(now.until(time)))
    }
}

/// `Sat 2026-11-21 10:25:05 CET`, as systemctl writes it.
pub fn stamp(time: Time, style: &Style) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_zoned(style.zone.clone())
        .strftime("%a %Y-%m-%d %H:%M:%S %Z")
        .to_string()
}

/// Returns a time for a list: relative on a terminal, RFC 3339 in a file.
pub fn when(time: Option<Time>, style: &Style) -> String {
    match (time, style.width) {
        (None, _) => String::new(),
        (Some(time), Some(_)) => relative(time, style.now),
        (Some(time), None) => time.to_string(),
    }
}

/// `Sat 2026-11-21 10:25:05 CET; 3min 4s ago`.
pub fn stamp_and_age(time: Time, style: &Style) -> String {
    format!("{}; {}", stamp(time, style), relative(time, style.now))
}

/// CPU time as systemctl writes it: `12ms`, `1.204s`, `2min 3.1s`.
pub fn cpu(micros: u64) -> String {
    match micros {
        0..1_000_000 => format!("{}ms", micros / 1000),
        1_000_000..60_000_000 => format!("{:.3}s", micros as f64 / 1e6),
        _ => format!("{}min {:.1}s", micros / 60_000_000, (micros % 60_000_000) as f64 / 1e6),
    }
}

/// `3 queued, 1 started, 20 sealed`, in the order of `states`.
pub fn counts(counts: &Counts, states: &[&str]) -> String {
    let known = states.iter().filter_map(|state| Some((*state, *counts.get(*state)?)));
    let other = counts
        .iter()
        .filter(|(state, _)| !states.contains(&state.as_str()))
        .map(|(state, count)| (state.as_str(), *count));
    let words: Vec<_> = known
        .chain(other)
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// `97%: 1 of 33 failed`; empty without any. Next to it, the results are counted by state.
pub fn health(uses: Uses) -> String {
    match uses.health() {
        Some(percent) => format!("{percent}%: {} of {} failed", uses.failed, uses.all()),
        None => String::new(),
    }
}

pub fn lifecycles() -> [&'static str; 5] {
    Lifecycle::ALL.map(Lifecycle::as_str)
}

pub fn result_states() -> [&'static str; 7] {
    ResultState::ALL.map(ResultState::as_str)
}

pub fn tone_of_lifecycle(status: Lifecycle, reason: Option<&str>) -> Tone {
    match status {
        Lifecycle::Sealed if reason.is_some() => Tone::Bad,
        Lifecycle::Sealed => Tone::Good,
        Lifecycle::Started => Tone::Busy,
        Lifecycle::Cancelled => Tone::Bad,
        Lifecycle::Queued | Lifecycle::Paused => Tone::Plain,
    }
}

pub fn tone_of_result(status: ResultState) -> Tone {
    match status {
        ResultState::Succeeded => Tone::Good,
        ResultState::Started | ResultState::Backoff => Tone::Busy,
        ResultState::Failed => Tone::Bad,
        ResultState::Skipped | ResultState::NoResults => Tone::Dim,
        ResultState::Queued => Tone::Plain,
    }
}

/// `expires in 12 days, 2026-12-07 … (in 12d)`, or `expired 3 days ago, …`.
pub fn expiry(end: Time, style: &Style) -> String {
    let day = Duration::from_secs(86_400);
    let stamp = stamp_and_age(end, style);
    let (left, over) = (end.until(style.now), style.now.until(end));
    let days = |span: Duration| match span.as_secs() / day.as_secs() {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    if over > Duration::ZERO {
        format!("expired {} ago, {stamp}", days(over))
    } else {
        format!("expires in {}, {stamp}", days(left))
    }
}

/// Returns in which network hooks run, what they may reach, and whether address filters work.
pub fn network(status: &Status) -> String {
    let kept = match status.address_filter {
        Some(false) => "; address filters have no effect here",
        _ => "",
    };
    clean(&status.network) + kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_in_the_middle() {
        assert_eq!(cut_middle("https://example.com/", 40), "https://example.com/");
        assert_eq!(cut_middle("https://example.com/a/b", 11), "https…m/a/b");
        assert_eq!(cut_middle("日本語日本語", 7), "日…語");
        assert_eq!(cut_url("https://example.com/a/b", 23), "https://example.com/a/b");
        assert_eq!(cut_url("https://example.com/a/b", 22), "example.com/a/b");
        let long = "http://books.example/guide/start.html";
        assert_eq!(cut_url(long, 24), "books.example/…tart.html");
        assert_eq!(cut_url(long, 14), "books.e…t.html");
        for width in 1..20 {
            let cut = cut_middle("日本語abcdefghijklmnop日本語", width);
            assert!(console::measure_text_width(&cut) <= width, "{cut} in {width}");
        }
    }

    #[test]
    fn times() {
        let now = Time(1_795_253_105_123);
        assert_eq!(relative(Time(now.0 - 184_000), now), "3min 4s ago");
        assert_eq!(relative(Time(now.0 + 60_000), now), "in 1min 0s");
        assert_eq!(relative(now, now), "now");
        assert_eq!(stamp(now, &Style::plain(now)), "Sat 2026-11-21 09:25:05 UTC");
        assert_eq!(when(Some(now), &Style::plain(now)), "2026-11-21T09:25:05.123Z");
    }

    #[test]
    fn amounts() {
        assert_eq!([12_345, 1_204_000, 123_100_000].map(cpu), ["12ms", "1.204s", "2min 3.1s"]);
        let some =
            Counts::from([("started".into(), 1), ("queued".into(), 3), ("sealed".into(), 0)]);
        assert_eq!(counts(&some, &lifecycles()), "3 queued, 1 started");
        assert_eq!(counts(&Counts::new(), &lifecycles()), "none");
    }
}
