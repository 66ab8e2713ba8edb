//! Everything about a crawl, snapshot or run, in the form of `systemctl status`.

use crate::display::block::Block;
use crate::display::listing::ROWS_MAX;
use crate::display::rows;
use crate::display::style::Style;
use crate::display::table::Table;
use crate::display::text;
use archivist_core::model::{
    Lifecycle, ResultState, Time, VERIFIER, is_http_error, recording_text, replay_text,
};
use archivist_core::plan::{errors_text, partial_text};
use archivist_core::text::{clean, human_size};
use archivist_shared::bus::documents::report::{
    Copy, Counts, Crawl, Details, HookResult, Run, Snapshot, sum_up,
};
use std::collections::BTreeMap;

mod run;

const BROWSER: &str = "chromium";

/// Returns the head, then the tables of a snapshot, or what failed of a crawl and its pages.
pub fn long(details: &Details, style: &Style) -> String {
    let mut out = short(details, style);
    match details {
        Details::Crawl { crawl, snapshots, results, .. } => {
            let is_failed = |result: &&HookResult| result.status == ResultState::Failed;
            let failed: Vec<HookResult> = results.iter().filter(is_failed).cloned().collect();
            let (failed, snapshots) = (newest(&failed), newest(snapshots));
            add(&mut out, &rows::results(failed, style, true), style);
            add(&mut out, &rows::snapshots(snapshots, style), style);
            out.push_str(&what_is_left_out(crawl, failed.len(), snapshots.len()));
        }
        Details::Snapshot { snapshot, results, runs, .. } => {
            let (alone, sums) = sum_up(results);
            add(&mut out, &rows::results(alone, style, false), style);
            for sum in sums {
                out.push_str(&format!("{}\n", clean(&sum.text("", snapshot.lack()))));
            }
            add(&mut out, &rows::runs(runs, style), style);
        }
        Details::Run { .. } => {}
    }
    out
}

fn add(out: &mut String, table: &Table, style: &Style) {
    if !table.is_empty() {
        out.push('\n');
        out.push_str(&table.render(style));
    }
}

/// The last rows of a table, as many as `archivist list` shows.
fn newest<T>(rows: &[T]) -> &[T] {
    &rows[rows.len().saturating_sub(ROWS_MAX as usize)..]
}

/// Says how to see the rest of a crawl.
fn what_is_left_out(crawl: &Crawl, failed: usize, snapshots: usize) -> String {
    let id = crawl.id;
    let all_failed = crawl.results.get(ResultState::Failed.as_str()).copied().unwrap_or(0);
    let cut = [
        (failed, all_failed, "failed results", format!("results {id} --status failed")),
        (snapshots, crawl.snapshots.values().sum(), "pages", format!("snapshots {id}")),
    ];
    let cut = cut.into_iter().filter(|(shown, all, ..)| (*shown as u64) < *all);
    let line = |(shown, all, what, list): (usize, u64, &str, String)| {
        format!("\nthe newest {shown} of {all} {what}; all: archivist list {list} --limit 0")
    };
    let lines: String = cut.map(line).collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// Returns the head, with the running units.
pub fn short(details: &Details, style: &Style) -> String {
    match details {
        Details::Crawl { crawl, runs, .. } => crawl_head(crawl, runs, style),
        Details::Snapshot { snapshot, results, runs, copy } => {
            snapshot_head(snapshot, results, runs, copy.as_ref(), style)
        }
        Details::Run { run, result } => run::head(run, result.as_deref(), style),
    }
}

fn title(id: &str, status: Lifecycle, reason: Option<&str>, text: &str, style: &Style) -> String {
    let dot = style.paint("●", text::tone_of_lifecycle(status, reason));
    format!("{dot} {id} {}\n", clean(text))
}

/// `sealed (its worker died 3 times) since Sat …; 3min ago`.
fn status(status: Lifecycle, reason: Option<&str>, since: Option<Time>, style: &Style) -> String {
    let mut out = status.to_string();
    if let Some(reason) = reason {
        out.push_str(&format!(" ({reason})"));
    }
    if let Some(since) = since {
        out.push_str(&format!(" since {}", text::stamp_and_age(since, style)));
    }
    out
}

/// Returns what keeps it from deletion, and how to end that.
fn pinned(is_pinned: bool) -> String {
    if is_pinned { "kept from deletion until archivist unpin".to_owned() } else { String::new() }
}

fn crawl_head(crawl: &Crawl, runs: &[Run], style: &Style) -> String {
    let reason = crawl.reason.as_deref();
    let since = match crawl.status {
        Lifecycle::Queued => None,
        _ => crawl.ended_at.or(crawl.started_at),
    };
    let mut block = Block::new();
    block.line("Status", status(crawl.status, reason, since, style));
    common(&mut block, style, crawl.created_at, crawl.retry_at, crawl.attempts);
    block.line("Took", took(crawl.started_at, crawl.ended_at, style));
    block.line("Depth", crawl.max_depth.to_string());
    block.line("Tags", crawl.tags.join(", "));
    block.line("Plugins", crawl.plugins.join(", "));
    for (key, value) in &crawl.config {
        match key.strip_prefix("wanted/") {
            Some(program) => block.line("Wanted", format!("{program}: {value}")),
            None => block.line("Set", format!("{key}={value}")),
        }
    }
    let users: Vec<String> = crawl.users.iter().map(|uid| text::user(*uid)).collect();
    block.line("Users", users.join(", "));
    block.line("Pinned", pinned(crawl.pinned));
    block.line("Nodes", crawl.nodes.join(", "));
    block.line("Pages", text::counts(&crawl.snapshots, &text::lifecycles()));
    block.line("Errors", errors_text(crawl.errors).unwrap_or_default());
    block.line("Partial", partial_text(crawl.partial).unwrap_or_default());
    block.line("Results", results(&crawl.results));
    block.line("Health", text::health(crawl.uses));
    block.line("Directory", crawl.directory.clone().unwrap_or_default());
    title(&crawl.id.to_string(), crawl.status, reason, &crawl.url, style)
        + &block.render()
        + &running(runs, style)
}

/// `OBJECT in STORE, verified …`, or what the copy waits for.
fn copy_line(copy: &Copy, style: &Style) -> String {
    let mut parts = Vec::new();
    if let (Some(object), Some(verified)) = (&copy.object, copy.verified_at) {
        let verified = text::stamp_and_age(verified, style);
        let (name, store) = (clean(&object.name), clean(&object.store));
        parts.push(format!("{name} in {store}, verified {verified}"));
    }
    if !copy.is_local {
        parts.push("local files removed".to_owned());
    }
    if copy.state != "idle" {
        parts.push(format!("{} {}", copy.task, clean(&copy.state)));
    }
    if let Some(reason) = &copy.reason {
        parts.push(clean(reason));
    }
    parts.join("; ")
}

/// How many requests a page made, and how many of them the recording has.
fn recording(snapshot: &Snapshot) -> String {
    let figures = snapshot.recording.as_ref();
    figures.and_then(recording_text).unwrap_or_default()
}

/// What the newest replay of the recording showed, and when.
fn replay(snapshot: &Snapshot, results: &[HookResult], style: &Style) -> String {
    let Some(text) = snapshot.replay.as_ref().and_then(replay_text) else {
        return String::new();
    };
    let of_verifier = results.iter().find(|result| result.plugin == VERIFIER);
    match of_verifier.and_then(|result| result.ended_at) {
        Some(at) => format!("{text}; {}", text::stamp_and_age(at, style)),
        None => text,
    }
}

/// `wget: 12.3K, favicon: 1.2K beyond the recording`: what hooks sent and received in addition to the
/// browser that recorded the page, by plugin. Empty if none did, or if the units have no counters.
fn beyond_recording(snapshot: &Snapshot, runs: &[Run]) -> String {
    if snapshot.recording.is_none() {
        return String::new();
    }
    let mut plugins: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        let used = &run.accounting;
        let bytes: u64 = [used.ip_in, used.ip_out].into_iter().flatten().sum();
        match run.plugin.as_deref() {
            Some(plugin) if plugin != BROWSER && bytes > 0 => {
                *plugins.entry(plugin).or_default() += bytes;
            }
            _ => {}
        }
    }
    if plugins.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = plugins
        .into_iter()
        .map(|(plugin, bytes)| format!("{plugin}: {}", human_size(bytes)))
        .collect();
    format!("{} beyond the recording", shown.join(", "))
}

fn snapshot_head(
    snapshot: &Snapshot,
    of_hooks: &[HookResult],
    runs: &[Run],
    copy: Option<&Copy>,
    style: &Style,
) -> String {
    let reason = snapshot.lack();
    let since = match snapshot.status {
        Lifecycle::Queued => None,
        _ => snapshot.ended_at.or(snapshot.started_at),
    };
    let mut block = Block::new();
    block.line("Title", snapshot.title.clone().unwrap_or_default());
    block.line("Status", status(snapshot.status, reason, since, style));
    let visited = rows::visited_at(snapshot);
    let visited = visited.map(|time| text::stamp_and_age(time, style));
    block.line("Visited", visited.unwrap_or_default());
    common(&mut block, style, snapshot.created_at, snapshot.retry_at, snapshot.attempts);
    block.line("Took", took(snapshot.started_at, snapshot.ended_at, style));
    block.line("HTTP", snapshot.http_status.map(http).unwrap_or_default());
    block.line("Recorded", recording(snapshot));
    for part in &snapshot.missing {
        block.line("Missing", clean(part));
    }
    block.line("Network", beyond_recording(snapshot, runs));
    block.line("Replay", replay(snapshot, of_hooks, style));
    let parent = match snapshot.parent {
        Some(parent) => format!(", found by {parent}"),
        None => String::new(),
    };
    block.line("Crawl", format!("{}, depth {}{parent}", snapshot.crawl, snapshot.depth));
    block.line("Pinned", pinned(snapshot.pinned));
    block.line("Node", snapshot.node.clone().unwrap_or_default());
    block.line("Older", snapshot.older_copies.join(", "));
    block.line("Tags", snapshot.tags.join(", "));
    // The date of an imported page is that of its visit.
    let bookmarked = snapshot.bookmarked_at.as_deref().filter(|text| {
        let time = text.parse::<jiff::Timestamp>().map(Time::from);
        time.ok() != Some(snapshot.visited_at)
    });
    block.line("Bookmarked", clean(bookmarked.unwrap_or_default()));
    if let Some(step) = snapshot.current_step {
        block.line("Step", step.to_string());
    }
    for (key, value) in &snapshot.config {
        block.line("Set", format!("{key}={value}"));
    }
    block.line("Results", results(&snapshot.results));
    block.line("Health", text::health(snapshot.uses));
    block.line("Directory", snapshot.directory.clone().unwrap_or_default());
    if let Some(copy) = copy {
        block.line("Store", copy_line(copy, style));
    }
    title(&snapshot.id.to_string(), snapshot.status, reason, &snapshot.url, style)
        + &block.render()
        + &running(runs, style)
}

fn http(status: u16) -> String {
    if is_http_error(status) {
        format!("{status} (the server sent an error instead of the page)")
    } else {
        status.to_string()
    }
}

fn common(block: &mut Block, style: &Style, created: Time, retry: Option<Time>, attempts: u32) {
    block.line("Added", text::stamp_and_age(created, style));
    if let Some(retry) = retry {
        block.line("Next try", text::stamp_and_age(retry, style));
    }
    if attempts > 1 {
        block.line("Attempts", attempts.to_string());
    }
}

pub fn took(started: Option<Time>, ended: Option<Time>, style: &Style) -> String {
    match ended {
        Some(_) => text::elapsed(started, ended, style.now),
        None => String::new(),
    }
}

fn results(counts: &Counts) -> String {
    text::counts(counts, &text::result_states())
}

/// Returns the running units as a tree.
pub fn running(runs: &[Run], style: &Style) -> String {
    let running: Vec<_> = runs.iter().filter(|run| run.status != "ended").collect();
    let Some(last) = running.len().checked_sub(1) else {
        return String::new();
    };
    let mut out = format!("{:>10}: {}\n", "Running", running.len());
    for (at, run) in running.iter().enumerate() {
        let branch = if at == last { "└─" } else { "├─" };
        let since = text::elapsed(run.started_at, None, style.now);
        let state = match run.status.as_str() {
            "running" => since,
            other => format!("{other} {since}"),
        };
        out.push_str(&format!("{:12}{branch} {} {}\n", "", clean(&run.unit), state.trim_end()));
    }
    out
}

#[cfg(test)]
mod tests;
