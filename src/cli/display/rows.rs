//! Tables of crawls, snapshots, results, runs, web hosts and tags.

use crate::display::style::{Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use archivist_core::model::{EXIT_SKIPPED, Outcome, Time, fidelity, in_percent, is_http_error};
use archivist_core::text::{human_size, human_span};
use archivist_shared::bus::documents::report::{
    Counts, Crawl, HookResult, Host, Run, Snapshot, Tag,
};
use std::time::Duration;

fn count(counts: &Counts, states: &[&str]) -> u64 {
    states.iter().filter_map(|state| counts.get(*state)).sum()
}

/// Returns `3/20` (ended of all); empty if there are none.
fn done_of_all(counts: &Counts, done: &[&str]) -> String {
    match counts.values().sum::<u64>() {
        0 => String::new(),
        all => format!("{}/{all}", count(counts, done)),
    }
}

const RESULTS_DONE: [&str; 4] = ["succeeded", "failed", "skipped", "noresults"];

fn failed(counts: &Counts) -> Cell {
    bad(count(counts, &["failed"]))
}

fn bad(count: u64) -> Cell {
    match count {
        0 => Cell::default(),
        n => Cell::toned(n.to_string(), Tone::Bad),
    }
}

/// Failed results of a crawl, its incomplete pages, and those that show an error of their server: a page
/// may end before it has any result, and hooks succeed in saving an error.
fn failed_of_crawl(crawl: &Crawl) -> Cell {
    bad(count(&crawl.results, &["failed"]) + crawl.incomplete + crawl.errors)
}

fn partial(count: u64) -> Cell {
    match count {
        0 => Cell::default(),
        n => Cell::toned(n.to_string(), Tone::Busy),
    }
}

fn pinned(is_pinned: bool) -> Cell {
    if is_pinned { "yes".into() } else { Cell::default() }
}

pub fn crawls(crawls: &[Crawl], style: &Style) -> Table {
    let mut table = Table::new(
        "ID  STATUS  PINNED?  PAGES  RESULTS?  FAILED  PARTIAL  ADDED?  NODES…?  TAGS…?  URL…  REASON…",
    );
    for crawl in crawls {
        let tone = text::tone_of_lifecycle(crawl.status, crawl.reason.as_deref());
        table.row([
            crawl.id.to_string().into(),
            Cell::toned(crawl.status.as_str(), tone),
            pinned(crawl.pinned),
            done_of_all(&crawl.snapshots, &["sealed", "cancelled"]).into(),
            done_of_all(&crawl.results, &RESULTS_DONE).into(),
            failed_of_crawl(crawl),
            partial(crawl.partial),
            text::when(Some(crawl.created_at), style).into(),
            crawl.nodes.join(",").into(),
            crawl.tags.join(",").into(),
            crawl.url.as_str().into(),
            crawl.reason.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}

pub fn http(status: Option<u16>) -> Cell {
    match status {
        Some(status) if is_http_error(status) => Cell::toned(status.to_string(), Tone::Bad),
        Some(status) => status.to_string().into(),
        None => Cell::default(),
    }
}

/// Whether the page has a recording, and how much of it a replay shows, if that was verified.
fn replay(snapshot: &Snapshot) -> Cell {
    let Some(_) = snapshot.recording else {
        return Cell::default();
    };
    match snapshot.replay.as_ref().and_then(fidelity) {
        Some(share) => in_percent(share).into(),
        None => "yes".into(),
    }
}

/// When a page was visited; `None` before.
pub fn visited_at(snapshot: &Snapshot) -> Option<Time> {
    snapshot.directory.as_ref().map(|_| snapshot.visited_at)
}

pub fn snapshots(snapshots: &[Snapshot], style: &Style) -> Table {
    let mut table = Table::new(
        "ID  CRAWL?  DEPTH?  STATUS  PINNED?  HTTP  REPLAY?  RESULTS?  FAILED  VISITED  NODE?  URL…  TITLE…?  REASON…",
    );
    for snapshot in snapshots {
        let tone = text::tone_of_lifecycle(snapshot.status, snapshot.lack());
        table.row([
            snapshot.id.to_string().into(),
            snapshot.crawl.to_string().into(),
            snapshot.depth.to_string().into(),
            Cell::toned(snapshot.status.as_str(), tone),
            pinned(snapshot.pinned),
            http(snapshot.http_status),
            replay(snapshot),
            done_of_all(&snapshot.results, &RESULTS_DONE).into(),
            failed(&snapshot.results),
            text::when(visited_at(snapshot), style).into(),
            snapshot.node.as_deref().unwrap_or_default().into(),
            snapshot.url.as_str().into(),
            snapshot.title.as_deref().unwrap_or_default().into(),
            snapshot.lacks().into(),
        ]);
    }
    table
}

/// `with_owner` adds a column with the id of the crawl or snapshot.
pub fn results<'a>(
    results: impl IntoIterator<Item = &'a HookResult>,
    style: &Style,
    with_owner: bool,
) -> Table {
    let mut table = Table::new("OF  HOOK  STATUS  TRIES?  TIME?  SIZE?  OUTPUT…  WHY…");
    for result in results {
        let tries = match result.attempts {
            0 | 1 => String::new(),
            n => n.to_string(),
        };
        let size = match result.size {
            0 => String::new(),
            n => human_size(n),
        };
        let why = result.error.as_deref();
        // The output of a failed hook is often its error: print it once.
        let output = result.output.as_deref().filter(|output| why != Some(*output));
        table.row([
            if with_owner { result.owner.to_string().into() } else { Cell::default() },
            text::hook_label(&result.plugin, &result.hook).into(),
            Cell::toned(result.status.as_str(), text::tone_of_result(result.status)),
            tries.into(),
            text::elapsed(result.started_at, result.ended_at, style.now).into(),
            size.into(),
            output.unwrap_or_default().into(),
            why.unwrap_or_default().into(),
        ]);
    }
    table
}

pub fn runs(runs: &[Run], style: &Style) -> Table {
    let mut table = Table::new("ID  UNIT…  TRY?  STATUS  OUTCOME…  TIME  CPU?  MEMORY?");
    for run in runs {
        let outcome = match &run.outcome {
            Some(outcome) if outcome.is_success() => Cell::toned("success", Tone::Good),
            Some(Outcome::Exit(EXIT_SKIPPED)) => Cell::toned("exit code 10 (skipped)", Tone::Dim),
            Some(outcome) => Cell::toned(outcome.to_string(), Tone::Bad),
            None => Cell::default(),
        };
        let tone = match run.status.as_str() {
            "ended" => Tone::Plain,
            _ => Tone::Busy,
        };
        table.row([
            run.id.to_string().into(),
            run.unit.as_str().into(),
            run.attempt.to_string().into(),
            Cell::toned(run.status.as_str(), tone),
            outcome,
            text::elapsed(run.started_at, run.ended_at, style.now).into(),
            run.accounting.cpu_usec.map(text::cpu).unwrap_or_default().into(),
            run.accounting.memory_peak.map(human_size).unwrap_or_default().into(),
        ]);
    }
    table
}

pub fn hosts(hosts: &[Host], style: &Style) -> Table {
    let mut table = Table::new(
        "HOST…  PAGES?  RESULTS  FAILED  HEALTH  LAST?  OPEN  NODE  LEASED  DELAY  ASKED…",
    );
    for host in hosts {
        let health = host.uses.health();
        let delay = match host.delay_ms {
            0 => String::new(),
            millis => human_span(Duration::from_millis(millis)),
        };
        // A fleet has no results by host.
        let with_results = |count: u64| match host.open {
            None => count.to_string().into(),
            Some(_) => Cell::default(),
        };
        table.row([
            host.name.as_str().into(),
            with_results(host.pages),
            with_results(host.uses.all()),
            match host.uses.failed {
                0 => Cell::default(),
                n => Cell::toned(n.to_string(), Tone::Bad),
            },
            health.map(|n| format!("{n}%")).unwrap_or_default().into(),
            text::when(host.used_at, style).into(),
            host.open.map(|n| n.to_string()).unwrap_or_default().into(),
            host.node.as_deref().unwrap_or_default().into(),
            text::when(host.leased_until, style).into(),
            delay.into(),
            host.asked.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}

pub fn tags(tags: &[Tag], _: &Style) -> Table {
    let mut table = Table::new("TAG…  PAGES");
    let mut tags: Vec<&Tag> = tags.iter().collect();
    tags.sort_by(|a, b| a.name.cmp(&b.name));
    for tag in tags {
        table.row([tag.name.as_str().into(), tag.pages.to_string().into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_shared::bus::documents::report::{Figures, Uses};
    use serde_json::{Value, json};

    fn style() -> Style {
        Style::plain(sample::NOW)
    }

    #[test]
    fn a_crawl_is_one_row() {
        let crawl = Crawl {
            snapshots: Counts::from([("sealed".into(), 3), ("queued".into(), 17)]),
            results: Counts::from([("succeeded".into(), 25), ("failed".into(), 2)]),
            ..sample::crawl(12)
        };
        assert_eq!(
            crawls(&[crawl], &style()).render(&style()),
            "ID   STATUS  PAGES  RESULTS  FAILED  ADDED                     TAGS  URL\n\
             c12  sealed  3/20   27/27    2       2026-11-21T09:24:04.123Z  news  https://example.com/\n"
        );
    }

    #[test]
    fn a_reason_is_printed_once() {
        let said = Some("Connection refused".to_owned());
        let failed = HookResult {
            output: said.clone(),
            error: said,
            size: 0,
            ..sample::result(3, "wget", "on_Snapshot__06_wget.bg")
        };
        assert_eq!(
            results(&[failed], &style(), false).render(&style()),
            "HOOK  STATUS     TIME  WHY\n\
             wget  succeeded  1.2s  Connection refused\n"
        );
    }

    #[test]
    fn snapshots_results_and_runs() {
        let elsewhere = Snapshot { node: Some("web2".into()), ..sample::snapshot(3) };
        let text = snapshots(&[elsewhere], &style()).render(&style());
        assert!(text.contains("  NODE  URL") && text.contains("  web2  https:"), "{text}");
        let text = snapshots(&[sample::snapshot(3)], &style()).render(&style());
        assert!(text.contains("Example \u{fffd}[31mDomain"), "{text}");
        let text = results(&[sample::result(3, "wget", "on_Snapshot__06_wget.bg")], &style(), true)
            .render(&style());
        assert_eq!(
            text,
            "OF  HOOK  STATUS     TIME  SIZE   OUTPUT\n\
             s3  wget  succeeded  1.2s  12.1K  screenshot.png\n"
        );
        let text = runs(&[sample::run(7, "wget", "x")], &style()).render(&style());
        assert_eq!(
            text,
            "ID  UNIT                            TRY  STATUS  OUTCOME  TIME  CPU     MEMORY\n\
             r7  archivist-hook-wget-s3.service  1    ended   success  1.2s  1.204s  12.5M\n"
        );
    }

    #[test]
    fn list_marks_pages_that_replay() {
        let cell = |recording: Option<Value>, figures: Option<Value>| {
            let of = |value: Value| Figures::of(value.as_object().unwrap());
            let page = Snapshot {
                recording: recording.map(of),
                replay: figures.map(of),
                ..sample::snapshot(3)
            };
            super::replay(&page)
        };
        let verified = Some(json!({"fidelity": 0.9876}));
        assert_eq!(cell(None, None), Cell::default());
        assert_eq!(cell(Some(json!({})), None), "yes".into());
        assert_eq!(cell(Some(json!({})), verified.clone()), "98.7 %".into());
        assert_eq!(cell(None, verified), Cell::default(), "the recording was lost");
    }

    #[test]
    fn http_status_of_pages_is_a_column() {
        let page = |http_status| Snapshot { http_status, ..sample::snapshot(3) };
        let text = snapshots(&[page(Some(404)), page(None)], &style()).render(&style());
        let cells: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().take(5).collect()).collect();
        assert_eq!(cells[0], ["ID", "CRAWL", "DEPTH", "STATUS", "HTTP"]);
        assert_eq!(cells[1], ["s3", "c1", "0", "sealed", "404"]);
        assert_eq!(cells[2][3..], ["sealed", "2/2"]);
    }

    #[test]
    fn hosts_and_their_health() {
        let host = |name: &str, failed: u64| Host {
            name: name.into(),
            pages: 3,
            uses: Uses { succeeded: 2, failed },
            used_at: Some(sample::NOW),
            last_result: 9,
            delay_ms: failed * 1500,
            asked: (failed > 0).then(|| "too many requests\u{1b}[31m".into()),
            open: None,
            node: None,
            leased_until: None,
        };
        let text = hosts(&[host("a.example", 0), host("b.example", 1)], &style());
        assert_eq!(
            text.render(&style()),
            "HOST       PAGES  RESULTS  FAILED  HEALTH  LAST                      DELAY  ASKED\n\
             a.example  3      2                100%    2026-11-21T09:25:05.123Z\n\
             b.example  3      3        1       66%     2026-11-21T09:25:05.123Z  1.5s   too many requests\u{fffd}[31m\n"
        );
        let leased = Host {
            open: Some(7),
            node: Some("web2".into()),
            leased_until: Some(sample::NOW),
            used_at: None,
            uses: Uses::default(),
            ..host("a.example", 0)
        };
        assert_eq!(
            hosts(&[leased], &style()).render(&style()),
            "HOST       OPEN  NODE  LEASED\n\
             a.example  7     web2  2026-11-21T09:25:05.123Z\n"
        );
    }

    /// A line that wraps puts the reason of one page under the URL of the next one.
    #[test]
    fn rows_fit_the_narrowest_usual_terminal() {
        let style = Style { width: Some(80), ..style() };
        let long = |word: &str| Some(format!("{word}: 'https://cdn.example/{}'", "a/".repeat(40)));
        let page = Snapshot {
            pinned: true,
            http_status: Some(200),
            recording: Some(Figures::default()),
            results: Counts::from([("succeeded".into(), 12), ("failed".into(), 1)]),
            title: long("title"),
            reason: long("not recorded"),
            node: Some("web2".into()),
            ..sample::snapshot(123_456)
        };
        let crawl = Crawl {
            pinned: true,
            partial: 21,
            incomplete: 12,
            errors: 3,
            snapshots: Counts::from([("sealed".into(), 465)]),
            results: Counts::from([("succeeded".into(), 12_345), ("failed".into(), 123)]),
            tags: vec!["a long name of a tag".into()],
            reason: long("limit"),
            ..sample::crawl(12_345)
        };
        let result = HookResult {
            attempts: 3,
            output: long("output"),
            error: long("why"),
            ..sample::result(123_456, "chromium", "on_Snapshot__10_chromium_tab.bg")
        };
        let run = sample::run(1_234_567, "parse_netscape_urls", "on_Snapshot__71_parse.bg");
        let tables = [
            snapshots(&[page], &style),
            crawls(&[crawl], &style),
            results(&[result], &style, true),
            runs(&[run], &style),
        ];
        for table in tables {
            let text = table.render(&style);
            assert!(text.lines().all(|line| console::measure_text_width(line) <= 80), "{text}");
        }
    }
}
