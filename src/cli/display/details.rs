//! `archivist show`: everything about a crawl, snapshot or run, in the form of `systemctl status`.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::server::{Server, decode};
use crate::display::rows;
use crate::display::style;
use crate::display::style::Style;
use crate::display::table::Table;
use crate::display::text;
use crate::verb::list::LIMIT;
use crate::verb::{standard_error, suppressed};
use archivist_config::Scope;
use archivist_core::model::{
    AnyId, Lifecycle, Owner, ResultState, RunId, Time, VERIFIER, is_http_error, recording_text,
    replay_text,
};
use archivist_core::plan::{errors_text, partial_text};
use archivist_core::text::{clean, human_size};
use archivist_shared::bus::documents::report::{
    Copy, Counts, Crawl, Details, HookResult, Run, Snapshot,
};
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;

#[path = "details/run.rs"]
mod run;

const BROWSER: &str = "chromium";

/// Show everything about a crawl, snapshot or run
///
/// Show its state and the reason for it, its results with their output or error, and its runs with
/// unit name, CPU time and peak memory. A snapshot has the HTTP status of its document, if a hook
/// reported one, and a recorded one the bytes that plugins sent and received beyond the recording. Of a
/// crawl, show the newest 50 failed results and the newest 50 pages, each in one line; archivist list has
/// all of them, and --json up to 1000 snapshots, results and runs.
#[derive(Args)]
pub struct ShowArgs {
    /// A crawl (c12), a snapshot (s345) or a run (r678)
    #[arg(value_name = "ID")]
    id: AnyId,
    #[command(flatten)]
    local: Local,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: ShowArgs, scope: &Scope) -> Result<Exit, Failure> {
    let answer = fetch(args.id, args.local, scope).await?;
    let details: Details = decode(&answer)?;
    let suppressed = suppressed::messages(details.runs(), scope);
    if args.json {
        let mut document: Value = decode(&answer)?;
        note_of_runs(&mut document, details.runs(), &suppressed);
        style::print_document(&format!("{document:#}\n"))?;
        return Ok(Exit::Done);
    }
    let text = long(&details, &Style::of_stdout());
    let files = standard_error::lines(details.runs());
    let gap = if files.is_empty() { "" } else { "\n" };
    let suppressed = what_is_suppressed(details.runs(), &suppressed);
    style::say(&(text + gap + &files + &suppressed))?;
    Ok(Exit::Done)
}

/// Adds `suppressed`, and `stderr`, the file with the end of the standard error of a failed hook, to the
/// runs in the document.
fn note_of_runs(document: &mut Value, known: &[Run], suppressed: &BTreeMap<RunId, u64>) {
    let kinds = document.as_object_mut().into_iter().flat_map(|kinds| kinds.values_mut());
    let runs = kinds.filter_map(|kind| kind.get_mut("runs")?.as_array_mut());
    for run in runs.flatten() {
        let id = run.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        if let Some(messages) = id.and_then(|id| suppressed.get(&id)) {
            run["suppressed"] = (*messages).into();
        }
        let known = known.iter().find(|known| Some(known.id) == id);
        if let Some(file) = known.and_then(standard_error::file) {
            run["stderr"] = file.to_string_lossy().into();
        }
    }
}

/// Returns a line for each run whose messages are not all in the journal.
fn what_is_suppressed(runs: &[Run], suppressed: &BTreeMap<RunId, u64>) -> String {
    let line = |run: &Run| {
        let messages = suppressed.get(&run.id)?;
        let (id, unit) = (run.id, clean(&run.unit));
        Some(format!(
            "{id} ({unit}) wrote more than its LogRateLimitBurst= to the journal: {messages} messages suppressed\n"
        ))
    };
    let lines: String = runs.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Queries the document about `id`. Runs are known to their machine alone.
pub async fn fetch(id: AnyId, local: Local, scope: &Scope) -> Result<String, Failure> {
    let fleet = Fleet::reach(scope, local).await?;
    if let (AnyId::Owner(id), Some(fleet)) = (id, fleet) {
        let details = of_fleet(id, &fleet, scope).await?;
        return serde_json::to_string(&details)
            .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")));
    }
    let server = Server::reach(scope).await?;
    let id = id.to_string();
    server.call(|| server.proxy().show(&id)).await
}

/// Queries the fleet, and this machine, which knows more of what it works on. A crawl that was just
/// added may not have reached the fleet.
async fn of_fleet(id: Owner, fleet: &Fleet, scope: &Scope) -> Result<Details, Failure> {
    let wide = fleet.show(id).await;
    let here = match Server::reach(scope).await {
        Ok(server) => {
            let id = id.to_string();
            server.ask(|| server.proxy().show(&id)).await
        }
        Err(failure) => Err(failure),
    };
    match (wide, here) {
        (Ok(wide), Ok(here)) => Ok(merged(wide, here, |node| fleet.is_here(node))),
        (Ok(wide), Err(_)) => Ok(wide),
        (Err(failure), Ok(here)) if !failure.is_unreachable() => Ok(here),
        (Err(failure), _) => Err(failure),
    }
}

/// Returns what the fleet knows, with the runs of this machine; of a page on this machine, what the
/// machine knows.
fn merged(wide: Details, here: Details, is_here: impl Fn(Option<&str>) -> bool) -> Details {
    match (wide, here) {
        (
            Details::Crawl { crawl, snapshots, results, .. },
            Details::Crawl { crawl: known, runs, .. },
        ) => Details::Crawl {
            crawl: Crawl { directory: known.directory, users: known.users, ..crawl },
            snapshots,
            results,
            runs,
        },
        (
            Details::Snapshot { snapshot, .. },
            Details::Snapshot { snapshot: known, results, runs, copy },
        ) if is_here(snapshot.node.as_deref()) => Details::Snapshot {
            snapshot: Snapshot {
                node: snapshot.node,
                older_copies: snapshot.older_copies,
                parent: snapshot.parent,
                ..known
            },
            results,
            runs,
            copy,
        },
        (wide, _) => wide,
    }
}

/// Lines `   Label: text`, with the labels right-aligned as in systemctl.
pub struct Block {
    lines: Vec<(&'static str, String)>,
}

impl Block {
    pub fn new() -> Block {
        Block { lines: Vec::new() }
    }

    /// Adds a line, unless its text is empty.
    pub fn line(&mut self, label: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.lines.push((label, text));
        }
    }

    pub fn render(&self) -> String {
        self.lines.iter().map(|(label, text)| format!("{label:>10}: {}\n", clean(text))).collect()
    }
}

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
        Details::Snapshot { results, runs, .. } => {
            add(&mut out, &rows::results(results, style, false), style);
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
    &rows[rows.len().saturating_sub(LIMIT as usize)..]
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
#[path = "details/tests.rs"]
mod tests;
