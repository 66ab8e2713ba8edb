//! Why a crawl or a snapshot is not done, or has failed results: from its rows and the rules of the
//! plan.

use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::{reason, until};
use crate::programs;
use crate::work;
use archivist_core::model::{
    Lifecycle, Owner, REPLAY_HOLDS, ResultState, SnapshotId, Time, fidelity, replay_text,
    without_userinfo,
};
use archivist_core::plan::{
    Blocker, Places, View, against_host, errors_text, incomplete_text, partial_text,
};
use archivist_plugin::Skip;
use archivist_shared::bus::documents::report::{
    Alike, Crawl, Filter, HookResult, Reason, Snapshot, Why, sum_up,
};

/// Lines about results.
const RESULTS_SHOWN: u32 = 20;
/// Results of one state that are summed up in these lines, the newest.
const RESULTS_READ: u32 = 200;
/// Hosts of a crawl that are listed individually.
const HOSTS_SHOWN: usize = 5;

fn of(blocker: &Blocker) -> Reason {
    Reason {
        code: blocker.code().to_owned(),
        text: blocker.to_string(),
        until: match blocker {
            Blocker::HostUntil(time) => Some(*time),
            _ => None,
        },
    }
}

/// The state of a result, with its reason, and with the command that shows the output of a hook that
/// gave none.
pub(crate) fn of_result(result: &HookResult, logs: &str) -> Reason {
    let why = match (&result.error, result.status) {
        (Some(why), _) => format!(": {why}"),
        (None, ResultState::Backoff) => ": waiting for another run".to_owned(),
        (None, _) => String::new(),
    };
    let word = result.status.as_str();
    let (plugin, owner) = (&result.plugin, result.owner);
    // The hook gave no reason: its standard error may, of which the result has the end.
    let more = match (result.status, &result.output) {
        (ResultState::Failed, None) => {
            format!("; for its output: archivist logs {logs}")
        }
        _ => String::new(),
    };
    let text = format!("{plugin}/{} of {owner} {word}{why}{more}", result.hook);
    reason(word, text)
}

/// What results of a crawl or page, `asked` or one of its pages, have in common; `said` may have the reason of
/// the page.
fn of_sum(sum: &Alike<'_>, asked: Owner, said: &[Reason]) -> Reason {
    let owner = sum.owner;
    let start = format!("{owner} ");
    let is_said =
        |text: &str| text.contains(sum.reason) && (owner == asked || text.starts_with(&start));
    let said = said.iter().any(|reason| is_said(&reason.text)).then_some(sum.reason);
    reason(sum.status.as_str(), sum.text(&format!(" of {owner}"), said))
}

struct Item<'a> {
    id: Owner,
    status: Lifecycle,
    reason: Option<&'a str>,
    /// Whether it was saved without all of its parts, which other reasons name.
    is_partial: bool,
    attempts: u32,
    retry_at: Option<Time>,
}

pub(crate) fn why(turn: &Turn<'_>, id: Owner) -> TurnResult<Why> {
    let status = turn.tx.status_of(id)?;
    let filter = Filter::of(id);
    let allowance = main_loop::allowance(turn)?;
    let view = work::view(turn, &turn.engine.limits(), &allowance)?;
    let mut reasons = Vec::new();
    match id {
        Owner::Crawl(_) => {
            if let Some(crawl) = turn.tx.list_crawls(&filter)?.pop() {
                why_crawl(turn, &crawl, &view, &mut reasons)?;
            }
        }
        Owner::Snapshot(_) => {
            if let Some(snapshot) = turn.tx.list_snapshots(&filter)?.pop() {
                why_snapshot(turn, &snapshot, &view, &mut reasons)?;
                for part in turn.rooms.parts().why {
                    part(turn, snapshot.id, &mut reasons)?;
                }
            }
        }
    }
    let errors = why_results(turn, id, &mut reasons)?;
    let crawl = match id {
        Owner::Crawl(id) => id,
        Owner::Snapshot(id) => main_loop::snapshot_of(turn, id)?.crawl,
    };
    reasons.extend(work::why_reach(turn, crawl, &errors)?);
    programs::why_wanted(turn, id, &mut reasons)?;
    Ok(Why { id, status, reasons, node: None })
}

fn why_crawl(turn: &Turn<'_>, crawl: &Crawl, view: &View, to: &mut Vec<Reason>) -> TurnResult<()> {
    let item = Item {
        id: Owner::Crawl(crawl.id),
        status: crawl.status,
        reason: crawl.reason.as_deref(),
        is_partial: crawl.incomplete + crawl.errors + crawl.partial > 0,
        attempts: crawl.attempts,
        retry_at: crawl.retry_at,
    };
    if crawl.status == Lifecycle::Sealed
        && let Some((limit, pages)) = turn.tx.left_out(crawl.id)?
    {
        let id = crawl.id;
        let setting = limit.split('=').next().unwrap_or_default();
        let text = format!(
            "{limit}: {pages} pages left out; to archive them without this limit: archivist retry {id} --set {setting}=0"
        );
        to.push(reason("limit", text));
    }
    let is_open = why_item(turn, &item, to)?;
    why_incomplete(turn, crawl, to)?;
    let id = crawl.id;
    if let Some(text) = errors_text(crawl.errors) {
        let text = format!("{text}; to list them: archivist list snapshots {id} --http 400-599");
        to.push(reason("errors", text));
    }
    if let Some(text) = partial_text(crawl.partial) {
        let text = format!("{text}; to list them: archivist list snapshots {id} --status partial");
        to.push(reason("missing", text));
    }
    if !is_open {
        return Ok(());
    }
    let limits = turn.engine.limits();
    let places = Places::of(view, &limits);
    match crawl.status {
        Lifecycle::Queued => why_waiting(turn, &item, places.against_crawl(), to)?,
        Lifecycle::Started => {
            why_running(turn, item.id, to)?;
            if turn.tx.has_ready_entries(crawl.id)? {
                to.push(reason("entries", work::why_entries(turn)?));
            } else {
                why_pages(turn, crawl, view, to);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds the pages of a crawl that ended before their work was done.
fn why_incomplete(turn: &Turn<'_>, crawl: &Crawl, to: &mut Vec<Reason>) -> TurnResult<()> {
    let Some(text) = incomplete_text(crawl.incomplete) else {
        return Ok(());
    };
    let id = crawl.id;
    to.push(reason("incomplete", format!("{text}; to retry: archivist retry {id}")));
    for page in turn.tx.first_incomplete(id, RESULTS_SHOWN)? {
        let url = without_userinfo(&page.url);
        let text = format!("{} {url}: {}", page.id, page.reason);
        to.push(reason("incomplete", text));
    }
    Ok(())
}

/// What the queued pages of a crawl wait for.
fn why_pages(turn: &Turn<'_>, crawl: &Crawl, view: &View, to: &mut Vec<Reason>) {
    let queued = crawl.snapshots.get("queued").copied().unwrap_or(0);
    if queued == 0 {
        return;
    }
    let waiting = match queued {
        1 => "1 page waits".to_owned(),
        many => format!("{many} pages wait"),
    };
    let limits = turn.engine.limits();
    let places = Places::of(view, &limits);
    let Some(open) = view.open_crawls.iter().find(|open| open.id == crawl.id) else {
        let text = format!("{waiting} for the setup of the crawl");
        return to.push(reason("setup", text));
    };
    to.push(reason("queued", waiting));
    let blocker =
        places.against_snapshot().or_else(|| places.against_crawls_snapshot(open.running));
    to.extend(blocker.iter().map(of));
    let hosts = view.hosts.values();
    let blocked = hosts.filter_map(|host| {
        let blocker = against_host(host, &limits, view.now)?;
        let mut reason = of(&blocker);
        reason.text = format!("{}: {}", host.name, reason.text);
        Some(reason)
    });
    to.extend(blocked.take(HOSTS_SHOWN));
}

fn why_snapshot(
    turn: &Turn<'_>,
    snapshot: &Snapshot,
    view: &View,
    to: &mut Vec<Reason>,
) -> TurnResult<()> {
    let id = Owner::Snapshot(snapshot.id);
    let item = Item {
        id,
        status: snapshot.status,
        reason: snapshot.lack(),
        is_partial: !snapshot.missing.is_empty(),
        attempts: snapshot.attempts,
        retry_at: snapshot.retry_at,
    };
    // The worker of a page that was given up may not have made one.
    let directory = snapshot.directory.as_deref();
    let directory = directory.filter(|_| snapshot.reason.is_none());
    if let Some(directory) = directory
        && main_loop::has_lost_directory(turn, snapshot.status, Some(directory))
    {
        let text = format!(
            "its directory '{directory}' was removed; to archive it again: archivist retry {id}"
        );
        to.push(reason("removed", text));
        return Ok(());
    }
    let replay = turn.tx.shown_by_replay(snapshot.id)?.unwrap_or_default();
    if fidelity(&replay).is_some_and(|share| share < REPLAY_HOLDS) {
        let shown = replay_text(&replay).unwrap_or_default();
        let text = format!(
            "its replay does not hold: {shown}; to record it again: archivist retry --all {id}"
        );
        to.push(reason("replay", text));
    }
    let is_open = why_item(turn, &item, to)?;
    let parts = snapshot.missing.iter();
    to.extend(
        parts.map(|part| reason("missing", format!("parts of the page are missing: {part}"))),
    );
    if !is_open {
        return Ok(());
    }
    let crawl = main_loop::crawl_of(turn, snapshot.crawl)?;
    if snapshot.status == Lifecycle::Started {
        why_running(turn, id, to)?;
    }
    match crawl.status {
        Lifecycle::Paused => {
            let text = format!("its crawl is paused; to continue: archivist resume {}", crawl.id);
            to.push(reason("paused", text));
            return Ok(());
        }
        Lifecycle::Queued => {
            let text = format!("its crawl {0} has not started; see: archivist why {0}", crawl.id);
            to.push(reason("crawl", text));
            return Ok(());
        }
        _ if snapshot.status != Lifecycle::Queued => return Ok(()),
        _ => {}
    }
    if turn.tx.is_entry(snapshot.id)? && turn.tx.has_ready_entries(crawl.id)? {
        to.push(reason("entries", work::why_entries(turn)?));
        return Ok(());
    }
    let Some(open) = view.open_crawls.iter().find(|open| open.id == crawl.id) else {
        let text = format!("waiting for the setup of its crawl {}", crawl.id);
        to.push(reason("setup", text));
        return Ok(());
    };
    let limits = turn.engine.limits();
    let places = Places::of(view, &limits);
    let (blocker, host) = against_its_host(turn, snapshot.id, &limits)?;
    let blocker = places
        .against_snapshot()
        .or_else(|| places.against_crawls_snapshot(open.running))
        .or(blocker);
    why_waiting(turn, &item, blocker, to)?;
    if let Some(asked) = host {
        to.push(asked);
    }
    Ok(())
}

/// What blocks another snapshot of this snapshot's host, and what the host requested.
fn against_its_host(
    turn: &Turn<'_>,
    id: SnapshotId,
    limits: &archivist_core::plan::Limits,
) -> TurnResult<(Option<Blocker>, Option<Reason>)> {
    let id = turn.tx.host_of(id)?;
    let host = main_loop::host_view(turn, id)?;
    let asked = turn
        .tx
        .host_asked(id)?
        .filter(|_| host.next_at > turn.now)
        .map(|asked| reason("host-asked", format!("{}: {asked}", host.name)));
    Ok((against_host(&host, limits, turn.now), asked))
}

/// Adds the recorded reason. Returns whether the item is still queued or started.
fn why_item(turn: &Turn<'_>, item: &Item<'_>, to: &mut Vec<Reason>) -> TurnResult<bool> {
    let id = item.id;
    let recorded = item.reason.unwrap_or_default();
    match item.status {
        Lifecycle::Cancelled => {
            to.push(reason("cancelled", recorded));
        }
        Lifecycle::Paused => {
            to.push(reason("paused", format!("{recorded}; to continue: archivist resume {id}")));
        }
        Lifecycle::Sealed
            if item.attempts >= turn.engine.backoff().attempts && !recorded.is_empty() =>
        {
            let text = format!("{recorded}; to retry: archivist retry {id}");
            to.push(reason("quarantined", text));
        }
        Lifecycle::Sealed if recorded.is_empty() && item.is_partial => {}
        Lifecycle::Sealed if recorded.is_empty() => to.push(reason("done", "done")),
        Lifecycle::Sealed => to.push(reason("done", format!("done, but {recorded}"))),
        Lifecycle::Queued | Lifecycle::Started => return Ok(true),
    }
    Ok(false)
}

/// Adds why a queued item waits.
fn why_waiting(
    turn: &Turn<'_>,
    item: &Item<'_>,
    blocker: Option<Blocker>,
    to: &mut Vec<Reason>,
) -> TurnResult<()> {
    if let Some(time) = item.retry_at.filter(|time| *time > turn.now) {
        let recorded = item.reason.unwrap_or("delayed");
        let text = format!("{recorded}; next attempt after {time}");
        to.push(until("back-off", text, time));
    }
    if turn.tx.has_worker(item.id)? {
        to.push(reason("leaving", "the worker of the last attempt has not ended yet"));
    }
    to.extend(blocker.iter().map(of));
    if to.is_empty() {
        to.push(reason("turn", "others are ahead in the queue"));
    }
    Ok(())
}

fn why_running(turn: &Turn<'_>, id: Owner, to: &mut Vec<Reason>) -> TurnResult<()> {
    let runs = turn.tx.open_runs_of(id)?;
    let hooks = runs.iter().filter(|run| run.hook.is_some());
    for run in hooks.clone() {
        let since = run.started_at.map(|time| format!(" since {time}")).unwrap_or_default();
        to.push(reason("running", format!("{} runs{since}", run.unit)));
    }
    if hooks.count() == 0 {
        let text = if runs.is_empty() {
            "its worker is starting".to_owned()
        } else {
            format!("its worker {} is running", runs[0].unit)
        };
        to.push(reason("running", text));
    }
    Ok(())
}

/// Adds failed results, then those that wait for another run, then skipped ones; of many the
/// newest. Returns the errors of failed hooks whose pages got no answer.
fn why_results(turn: &Turn<'_>, id: Owner, to: &mut Vec<Reason>) -> TurnResult<Vec<String>> {
    let counts = turn.tx.result_counts(id)?;
    let mut bad = Vec::new();
    let mut count = 0;
    for state in [ResultState::Failed, ResultState::Backoff, ResultState::Skipped] {
        count += counts.get(state.as_str()).copied().unwrap_or(0);
        let filter = Filter {
            status: Some(state.as_str().to_owned()),
            limit: RESULTS_READ,
            ..Filter::of(id)
        };
        let results = turn.tx.list_results(&filter)?;
        bad.extend(results.into_iter().rev());
    }
    let (mut alone, mut sums) = sum_up(&bad);
    alone.truncate(RESULTS_SHOWN as usize);
    sums.truncate(RESULTS_SHOWN as usize - alone.len());
    let shown = alone.len() + sums.iter().map(|sum| sum.hooks.len()).sum::<usize>();
    let of_sums: Vec<Reason> = sums.iter().map(|sum| of_sum(sum, id, to)).collect();
    to.extend(alone.iter().map(|result| {
        let logs = format!("{} --hook {}", result.owner, result.plugin);
        of_result(result, &logs)
    }));
    to.extend(of_sums);
    let waits = |result: &&HookResult| Skip::is_for_program(result.error.as_deref());
    if let Some(result) = bad.iter().find(waits).filter(|_| turn.engine.settings.is_in_fleet()) {
        // On one machine, the hook runs when the program appears.
        let text = format!(
            "a fleet runs no single hook of a page that has ended; when the nodes have the program: archivist retry {}",
            result.owner
        );
        to.push(reason("program", text));
    }
    match count.saturating_sub(shown as u64) {
        0 => {}
        more => to.push(reason("more", format!("{more} more results failed or were skipped"))),
    }
    let mut said = Vec::new();
    let failed = bad.into_iter().filter(|result| result.status == ResultState::Failed);
    for result in failed.take(RESULTS_SHOWN as usize) {
        // A page whose server answered is within reach.
        let is_answered = match result.owner {
            Owner::Snapshot(page) => turn.tx.visit(page)?.answer.is_some(),
            Owner::Crawl(_) => false,
        };
        said.extend(result.error.or(result.output).filter(|_| !is_answered));
    }
    Ok(said)
}
