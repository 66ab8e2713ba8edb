//! Turns units into rows: below the worker of a crawl its hooks and pages in order of start, below
//! the worker of a page its hooks.

use super::scale::offset;
use crate::display::text;
use archivist_core::model::{EXIT_SKIPPED, Outcome, Owner, ResultState, Time};
use archivist_core::text::human_size;
use archivist_shared::bus::documents::report::Span;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Worker,
    Foreground,
    Background,
}

/// Result, shown as a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    /// It succeeded without output, or was skipped.
    Empty,
    Bad,
    Running,
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub level: usize,
    pub label: String,
    /// The head of a page or crawl.
    pub is_head: bool,
    pub shape: Shape,
    pub state: State,
    /// State in one or two words.
    pub word: String,
    /// When the unit was queued for its start.
    pub asked: Option<Time>,
    pub from: Option<Time>,
    pub ready: Option<Time>,
    /// `None` while the unit runs.
    pub to: Option<Time>,
    pub cpu_usec: Option<u64>,
    pub memory: Option<u64>,
    pub tip: String,
}

/// When a unit enters the picture.
fn begin(span: &Span) -> Time {
    let known = span.started_at.or(span.recorded_at).or(span.ended_at);
    known.unwrap_or_default()
}

/// Returns the rows of a crawl, or of one page of it.
pub fn rows(subject: Owner, spans: &[Span]) -> Vec<Row> {
    let mut pages: BTreeMap<Owner, Vec<&Span>> = BTreeMap::new();
    let mut blocks: Vec<Vec<&Span>> = Vec::new();
    for span in spans {
        match span.owner {
            Owner::Crawl(_) => blocks.push(vec![span]),
            page => pages.entry(page).or_default().push(span),
        }
    }
    for mut page in pages.into_values() {
        page.sort_by_key(|span| (begin(span), span.id));
        blocks.push(page);
    }
    blocks.sort_by_key(|block| (begin(block[0]), block[0].id));
    let of_crawl = matches!(subject, Owner::Crawl(_));
    // A retry counts attempts from 1 again: number all attempts of a hook here.
    let mut attempts: BTreeMap<_, u32> = BTreeMap::new();
    let blocks = blocks.into_iter().flatten();
    let row = |span: &Span| {
        let what = (span.owner, span.plugin.clone(), span.hook.clone());
        let attempt = attempts.entry(what).or_default();
        *attempt += 1;
        row(span, of_crawl, *attempt)
    };
    blocks.map(row).collect()
}

fn row(span: &Span, of_crawl: bool, attempt: u32) -> Row {
    let is_hook = span.kind == "hook";
    let level = match span.owner {
        Owner::Crawl(_) => usize::from(is_hook),
        Owner::Snapshot(_) => usize::from(of_crawl) + usize::from(is_hook),
    };
    let queued = span.page.as_ref().map(|page| page.created_at);
    let (state, word) = judged(span);
    Row {
        level,
        label: label(span, attempt),
        is_head: !is_hook,
        shape: shape(span),
        state,
        word,
        asked: queued.filter(|_| attempt == 1).or(span.recorded_at),
        from: span.started_at.or(span.ended_at),
        ready: span.ready_at,
        to: span.ended_at,
        cpu_usec: span.cpu_usec,
        memory: span.memory_peak,
        tip: tip(span),
    }
}

fn label(span: &Span, attempt: u32) -> String {
    let attempt = match attempt {
        1 => String::new(),
        attempt => format!(" (attempt {attempt})"),
    };
    let name = match (&span.plugin, &span.hook, &span.page) {
        (Some(plugin), Some(hook), _) => text::hook_label(plugin, hook),
        (_, _, Some(page)) => format!("{} {}", span.owner, page.url),
        _ => span.owner.to_string(),
    };
    name + &attempt
}

fn shape(span: &Span) -> Shape {
    // As the names of hooks say, archivist-hooks(7).
    let hook = span.hook.as_deref().unwrap_or_default();
    if span.kind != "hook" {
        Shape::Worker
    } else if hook.split('.').any(|part| part == "bg") || hook.contains("__background") {
        Shape::Background
    } else {
        Shape::Foreground
    }
}

fn judged(span: &Span) -> (State, String) {
    if span.status != "ended" {
        return (State::Running, span.status.clone());
    }
    let Some(outcome) = &span.outcome else {
        return (State::Unknown, "unknown".to_owned());
    };
    match span.verdict {
        Some(ResultState::Succeeded) => return (State::Good, "succeeded".to_owned()),
        Some(state @ (ResultState::Skipped | ResultState::NoResults)) => {
            return (State::Empty, state.to_string());
        }
        Some(ResultState::Failed) if outcome.is_success() => {
            return (State::Bad, "failed".to_owned());
        }
        _ => {}
    }
    let state = match outcome {
        Outcome::Lost => State::Unknown,
        Outcome::Exit(EXIT_SKIPPED) | Outcome::Interrupted | Outcome::Stopped | Outcome::Late => {
            State::Empty
        }
        outcome if outcome.is_success() => State::Good,
        _ => State::Bad,
    };
    (state, word(outcome))
}

/// Returns an outcome in one or two words; the tip has the whole outcome.
fn word(outcome: &Outcome) -> String {
    match outcome {
        outcome if outcome.is_success() => "",
        Outcome::TimeLimit => "time limit",
        Outcome::Watchdog => "watchdog",
        Outcome::DiskLimit => "disk limit",
        Outcome::Interrupted => "interrupted",
        Outcome::Stopped => "stopped",
        Outcome::Killed => "killed",
        Outcome::Late | Outcome::NotStarted(_) => "not started",
        Outcome::Lost => "lost",
        outcome => return outcome.to_string(),
    }
    .to_owned()
}

/// Returns everything known about a unit, in one line.
fn tip(span: &Span) -> String {
    let mut words = vec![span.unit.clone()];
    if let Some(page) = &span.page {
        words.extend(page.title.clone().filter(|title| !title.is_empty()));
        words.push(format!("{}, depth {}", page.url, page.depth));
    }
    if let Some(started) = span.started_at {
        let since = |at: Time| offset(at.0.saturating_sub(started.0).max(0));
        words.push(format!("started {started}"));
        words.extend(span.ready_at.map(|at| format!("ready after {}", since(at))));
        words.extend(span.ended_at.map(|at| format!("ended after {}", since(at))));
    }
    if let (Some(asked), Some(started)) = (span.recorded_at, span.started_at) {
        let wait = started.0.saturating_sub(asked.0).max(0);
        words.push(format!("systemd took {} to start it", offset(wait)));
    }
    words.extend(span.cpu_usec.map(|cpu| format!("{} CPU", text::cpu(cpu))));
    let memory = span.memory_peak.map(human_size);
    words.extend(memory.map(|memory| format!("{memory} memory at its peak")));
    words.extend(span.outcome.as_ref().map(ToString::to_string));
    words.extend(span.verdict.map(|verdict| format!("result {verdict}")));
    words.join("; ")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, RunId, SnapshotId};
    use archivist_shared::bus::documents::report::SpanPage;

    pub const CRAWL: Owner = Owner::Crawl(CrawlId(1));

    pub fn page(id: i64) -> Owner {
        Owner::Snapshot(SnapshotId(id))
    }

    /// A unit that ran from `from` to `to` milliseconds.
    pub fn span(id: i64, kind: &str, owner: Owner, from: i64, to: i64) -> Span {
        let hook = (kind == "hook").then(|| "on_Snapshot__06_wget.finite.bg".to_owned());
        Span {
            id: RunId(id),
            unit: format!("archivist-{kind}-{id}.service"),
            kind: kind.into(),
            owner,
            plugin: hook.as_ref().map(|_| "wget".into()),
            hook,
            attempt: 1,
            status: "ended".into(),
            outcome: Some(Outcome::Exit(0)),
            verdict: (kind == "hook").then_some(ResultState::Succeeded),
            recorded_at: Some(Time(from - 5)),
            started_at: Some(Time(from)),
            ready_at: None,
            ended_at: Some(Time(to)),
            cpu_usec: Some(20_000),
            memory_peak: Some(13_107_200),
            page: (kind == "snapshot").then(|| SpanPage {
                url: "https://a/<script>\u{202e}".into(),
                title: Some("A & B".into()),
                depth: 0,
                created_at: Time(10),
            }),
        }
    }

    #[test]
    fn a_page_stays_together_below_its_worker() {
        let spans = [
            span(1, "crawl", CRAWL, 0, 900),
            span(2, "hook", CRAWL, 20, 890),
            span(3, "snapshot", page(1), 100, 500),
            span(4, "snapshot", page(2), 110, 600),
            span(5, "hook", page(2), 120, 300),
            span(6, "hook", page(1), 130, 400),
            span(7, "hook", CRAWL, 700, 800),
        ];
        let rows = rows(CRAWL, &spans);
        let shown: Vec<_> =
            rows.iter().map(|row| format!("{}{}", "-".repeat(row.level), row.label)).collect();
        let first = "-s1 https://a/<script>\u{202e}";
        let second = "-s2 https://a/<script>\u{202e}";
        assert_eq!(shown, ["c1", "-wget", first, "--wget", second, "--wget", "-wget (attempt 2)"]);
        assert_eq!(rows[2].asked, Some(Time(10)), "since it was queued");
        assert_eq!(rows[3].asked, Some(Time(125)));
        let alone = super::rows(page(1), &spans[2..3]);
        assert_eq!(alone[0].level, 0);
    }

    #[test]
    fn how_units_ended() {
        let judged_as = |verdict, outcome: Outcome| {
            let mut span = span(1, "hook", CRAWL, 0, 1);
            (span.verdict, span.outcome) = (verdict, Some(outcome));
            judged(&span)
        };
        use ResultState::{Failed, NoResults, Succeeded};
        let want = [
            // A daemon that was message to end.
            (Some(Succeeded), Outcome::Signal(15), State::Good, "succeeded"),
            (Some(NoResults), Outcome::Exit(0), State::Empty, "noresults"),
            (Some(Failed), Outcome::Exit(0), State::Bad, "failed"),
            (Some(Failed), Outcome::TimeLimit, State::Bad, "time limit"),
            (None, Outcome::Exit(0), State::Good, ""),
            (None, Outcome::Lost, State::Unknown, "lost"),
            (None, Outcome::NotStarted("x".into()), State::Bad, "not started"),
        ];
        for (verdict, outcome, state, word) in want {
            assert_eq!(judged_as(verdict, outcome), (state, word.to_owned()));
        }
        let mut open = span(1, "hook", CRAWL, 0, 1);
        (open.status, open.outcome, open.verdict) = ("running".into(), None, None);
        assert_eq!(judged(&open).0, State::Running);
    }
}
