//! What follows for a crawl or a snapshot when its worker ends, and when a user cancels it.

use crate::alert;
use crate::database::{RunRow, SnapshotWork};
use crate::fleet;
use crate::main_loop;
use crate::main_loop::action::{Awaited, CallerAction, ReplyAction, UnitAction};
use crate::main_loop::saved;
use crate::main_loop::turn::{Change, Turn, TurnError, TurnResult};
use crate::notices;
use crate::work::lost;
use crate::work::network;
use crate::work::pause;
use crate::work::taken;
use crate::work::visit;
use archivist_core::model::{CrawlId, Lifecycle, Outcome, Owner, ResultState, SnapshotId, Step};
use archivist_core::plan::{
    Abort, AfterCrawlWorker, AfterWorker, LOAD_INTERVAL, Notice, Settled, Uncounted, WithoutHooks,
    WorkerEnd, abort, after_crawl_worker, after_worker, incomplete_text, tidy,
};
use archivist_core::unit::UnitKind;
use archivist_shared::journal::message;
use archivist_shared::systemd::{Release, Whom};

const SIGKILL: i32 = 9;
/// With more waiting pages, followers of a crawl that ends receive one change and not one for each
/// page.
const FOLLOWED_PAGES_MAX: u64 = 200;
/// Pages that one turn cancels. The next turn takes the rest, so that other calls are answered in
/// between.
pub(crate) const PAGES_PER_TURN: usize = 500;
/// The same for pages that were started before and wait for a retry.
const BEGUN_PAGES_PER_TURN: usize = 100;
/// Reason of a failed result whose hook the worker did not have.
const HOOK_GONE: &str = "the hook does not exist any more";
/// Why pages are cancelled whose crawl is aborted: by a user, or because its command is gone.
pub(crate) const ABORTED: &str = "aborted by request";
pub(crate) const ABANDONED: &str = "the command that ran it in the foreground has ended";
/// Reasons with which pages are cancelled together with their crawl.
pub(crate) const WITH_CRAWL: [&str; 2] = [ABORTED, ABANDONED];

fn worker_end(turn: &Turn<'_>, run: &RunRow, attempts: u32) -> TurnResult<WorkerEnd> {
    let owner = run.owner;
    let outcome = run.outcome.clone().unwrap_or(Outcome::Lost);
    let unfinished = turn
        .tx
        .results(owner)?
        .iter()
        .any(|result| matches!(result.status, ResultState::Started | ResultState::Backoff));
    let (visit, refused) = visit::visit_of(turn, owner)?;
    Ok(WorkerEnd {
        attempts,
        unfinished,
        spent: turn.engine.spent(run),
        was_paused: run.frozen,
        without_hooks: without_hooks(turn, owner)?,
        visit,
        refused,
        uncounted: None,
        outcome,
    })
}

/// Why the end of this run is not a failed attempt, if so. The attempt is taken back.
fn uncounted(
    turn: &mut Turn<'_>,
    run: &RunRow,
    end: &WorkerEnd,
    directory: Option<&str>,
) -> TurnResult<Option<Uncounted>> {
    let found = match taken::leave_taken(turn, run, directory)? {
        Some(taken) => Some(taken),
        None => match outage(turn, run, end) {
            None => lost::lost_worker(turn, run)?,
            outage => outage,
        },
    };
    let found = match (run.owner, found) {
        (Owner::Snapshot(page), None) => network::without_network(turn, page, run)?,
        (_, found) => found,
    };
    if found.is_some() {
        turn.tx.take_back_attempt(run.owner)?;
    }
    Ok(found)
}

/// Why the worker of this run failed, or one of its hooks has to run again, if that was for the
/// machine.
fn outage(turn: &Turn<'_>, run: &RunRow, end: &WorkerEnd) -> Option<Uncounted> {
    if end.is_complete() {
        return None;
    }
    let (engine, outcome) = (turn.engine, &end.outcome);
    let met = engine.shortage.met_outage(run.started_at, run.ended_at);
    let why = engine.load.outage.clone().or(met.map(str::to_owned));
    let why = why.or_else(|| outcome.is_failure_of_machine().then(|| outcome.to_string()))?;
    Some(Uncounted { why: format!("{why}; the attempt does not count"), delay: LOAD_INTERVAL })
}

/// Why no hook ran for a page, if none did. Hooks of plugins that only accompany others do not
/// count.
fn without_hooks(turn: &Turn<'_>, owner: Owner) -> TurnResult<Option<WithoutHooks>> {
    let Owner::Snapshot(_) = owner else {
        return Ok(None);
    };
    let crawl = main_loop::crawl_for(turn, owner)?;
    // A crawl without a plan has a reason of its own.
    let Ok(plan) = turn.engine.plan(&crawl) else {
        return Ok(None);
    };
    let mut hooks = plan.snapshot.iter();
    if hooks.any(|hook| hook.plugin.schema.accompanies.is_empty()) {
        return Ok(None);
    }
    Ok(Some(match plan.skipped.first() {
        Some((plugin, _, why)) => WithoutHooks::AllSkipped(format!("{plugin}: {why}")),
        None => WithoutHooks::NoPlugin,
    }))
}

pub(super) fn snapshot_worker_ended(
    turn: &mut Turn<'_>,
    id: SnapshotId,
    run: &RunRow,
) -> TurnResult<()> {
    let snapshot = main_loop::snapshot_of(turn, id)?;
    let owner = Owner::Snapshot(id);
    turn.remember(move |engine| engine.dismiss(owner));
    let mut end = worker_end(turn, run, snapshot.attempts)?;
    if snapshot.status == Lifecycle::Started || snapshot.status == Lifecycle::Paused {
        end.uncounted = uncounted(turn, run, &end, snapshot.directory.as_deref())?;
    }
    let backoff = turn.engine.backoff();
    let after = after_worker(snapshot.status, &end, &backoff, turn.now, turn.jitter);
    if after != AfterWorker::Nothing {
        visit::end_visit(turn, id, &end)?;
    }
    if end.is_complete() {
        network::ends(turn, &snapshot, end.visit.is_some())?;
    }
    match after {
        AfterWorker::Nothing => {}
        AfterWorker::StayPaused { retry_at, reason } => {
            return Ok(turn.tx.put_off_paused(owner, retry_at, Some(&reason))?);
        }
        AfterWorker::Step(mut settled) => {
            if settled.step == Step::Seal && end.is_complete() && visit::end_retry(turn, id)? {
                // Why the retry failed is noted with the results that stay.
                settled.reason = None;
            }
            step_snapshot(turn, &snapshot, &settled)?;
        }
    }
    tidy_crawl(turn, snapshot.crawl)
}

fn step_snapshot(
    turn: &mut Turn<'_>,
    snapshot: &SnapshotWork,
    settled: &Settled,
) -> TurnResult<()> {
    let (id, crawl, owner) = (snapshot.id, snapshot.crawl, Owner::Snapshot(snapshot.id));
    let mut reason = settled.reason.clone();
    if settled.step != Step::Requeue {
        let why = reason.as_deref().unwrap_or(HOOK_GONE);
        turn.tx.fail_open_results(owner, why, turn.now)?;
        kill_hooks(turn, owner)?;
    }
    if settled.step == Step::Seal {
        let judgement = saved::judge_page(turn, id, reason.as_deref())?;
        turn.tx.seal_snapshot(id, &judgement, turn.now)?;
        reason = judgement.reason;
    } else {
        let (step, due) = (settled.step, settled.retry_at);
        turn.tx.step_snapshot(id, step, due, reason.as_deref(), turn.now)?;
    }
    notices::log_snapshot(turn, snapshot, settled.step, reason.as_deref())?;
    if settled.step == Step::Seal {
        page_sealed(turn, id)?;
    }
    turn.changes.insert(Change::Snapshot { crawl, id });
    notices::announce_snapshot(turn, id, Notice::of(settled.step))
}

/// What other rooms do about a page that was sealed.
pub(super) fn page_sealed(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    turn.rooms.parts().sealed.iter().try_for_each(|follow| follow(turn, id))
}

pub(super) fn crawl_worker_ended(turn: &mut Turn<'_>, id: CrawlId, run: &RunRow) -> TurnResult<()> {
    let crawl = main_loop::crawl_of(turn, id)?;
    let owner = Owner::Crawl(id);
    turn.remember(move |engine| engine.dismiss(owner));
    let mut end = worker_end(turn, run, crawl.attempts)?;
    if crawl.status == Lifecycle::Started || crawl.status == Lifecycle::Paused {
        end.uncounted = uncounted(turn, run, &end, crawl.directory.as_deref())?;
    }
    let backoff = turn.engine.backoff();
    let after = after_worker(crawl.status, &end, &backoff, turn.now, turn.jitter);
    let open = turn.tx.awaits_pages(id)?;
    let aborted = turn.tx.left_for(id, &WITH_CRAWL)?;
    match after_crawl_worker(after, turn.now, open, aborted, crawl.status) {
        AfterCrawlWorker::Nothing => return tidy_crawl(turn, id),
        AfterCrawlWorker::StayPaused { retry_at, reason } => {
            return Ok(turn.tx.put_off_paused(owner, retry_at, Some(&reason))?);
        }
        AfterCrawlWorker::Requeue { retry_at, reason } => {
            let step = Step::Requeue;
            turn.tx.step_crawl(id, step, retry_at, reason.as_deref(), turn.now)?;
            notices::announce_crawl(turn, id, Notice::of(step))?;
        }
        AfterCrawlWorker::Seal => seal_crawl(turn, id)?,
        AfterCrawlWorker::GiveUp(reason) => give_up_crawl(turn, id, &reason)?,
        AfterCrawlWorker::Cancel(reason) => cancel_crawl(turn, id, &reason)?,
    }
    turn.changes.insert(Change::Crawl(id));
    tidy_crawl(turn, id)
}

fn seal_crawl(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    turn.tx.fail_open_results(Owner::Crawl(id), HOOK_GONE, turn.now)?;
    kill_hooks(turn, Owner::Crawl(id))?;
    let failed = results_that(turn, "failed", id)?;
    let reason = (failed > 0).then(|| match failed {
        1 => "1 result failed".to_owned(),
        n => format!("{n} results failed"),
    });
    let left_out = turn.tx.left_out(id)?.map(|(limit, pages)| match pages {
        1 => format!("{limit}, 1 page left out"),
        n => format!("{limit}, {n} pages left out"),
    });
    let incomplete = incomplete_text(turn.tx.incomplete_pages(Some(id))?);
    let reason =
        [left_out, incomplete, reason].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"));
    turn.tx.step_crawl(id, Step::Seal, None, reason.as_deref(), turn.now)?;
    let succeeded = results_that(turn, "succeeded", id)?;
    notices::log_skipped(turn, id, Owner::Crawl(id), None)?;
    turn.log(move || {
        tracing::info!(
            message_id = message::CRAWL_SEALED,
            archivist_crawl_id = id.0,
            archivist_succeeded = succeeded,
            archivist_failed = failed,
            "crawl {id} is complete{}",
            reason.iter().map(|text| format!(", {text}")).collect::<String>()
        )
    });
    fleet::crawl_closed(turn, id)?;
    alert::crawl_sealed(turn, id)
}

/// How many results of a crawl have this status.
fn results_that(turn: &Turn<'_>, status: &str, crawl: CrawlId) -> TurnResult<u64> {
    let counts = turn.tx.counts("result", Some(crawl))?;
    Ok(counts.get(status).copied().unwrap_or(0))
}

fn waiting_in(turn: &Turn<'_>, crawl: CrawlId) -> TurnResult<u64> {
    let counts = turn.tx.counts("snapshot", Some(crawl))?;
    Ok(counts.get("queued").copied().unwrap_or(0))
}

/// Seals a crawl that cannot continue, with the reason, and cancels its snapshots.
pub(super) fn give_up_crawl(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    turn.tx.step_crawl(id, Step::Seal, None, Some(reason), turn.now)?;
    let succeeded = results_that(turn, "succeeded", id)?;
    let failed = results_that(turn, "failed", id)?;
    let why = reason.to_owned();
    turn.log(move || {
        tracing::error!(
            message_id = message::CRAWL_SEALED,
            archivist_crawl_id = id.0,
            archivist_succeeded = succeeded,
            archivist_failed = failed,
            "crawl {id} is given up: {why}"
        )
    });
    end_crawl(turn, id, reason)?;
    fleet::crawl_closed(turn, id)?;
    alert::crawl_sealed(turn, id)
}

/// Cancels a crawl and all its snapshots that are not final, in its whole fleet.
pub(crate) fn cancel_crawl(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    fleet::cancel_in_fleet(turn, id)?;
    cancel_crawl_here(turn, id, reason)
}

/// Cancels a crawl and all its snapshots that are not final, on this machine.
pub(crate) fn cancel_crawl_here(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    turn.tx.step_crawl(id, Step::Cancel, None, Some(reason), turn.now)?;
    let why = reason.to_owned();
    turn.log(move || log_cancelled(id, &why));
    end_crawl(turn, id, reason)?;
    notices::announce_crawl(turn, id, Notice::Cancelled)
}

/// Writes the log entry of a cancelled crawl, after the commit.
pub(crate) fn log_cancelled(id: CrawlId, reason: &str) {
    tracing::info!(
        message_id = message::CRAWL_CANCELLED,
        archivist_crawl_id = id.0,
        "crawl {id} is cancelled: {reason}"
    );
}

/// Cancels the open pages of a crawl, whose worker then runs the last hooks; see [`Abort`].
pub(crate) fn abort_crawl(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    let crawl = main_loop::crawl_of(turn, id)?;
    let open = turn.tx.has_open_snapshots(id)?;
    if abort(crawl.status, crawl.ready, open) == Abort::Crawl {
        return cancel_crawl(turn, id, reason);
    }
    fleet::cancel_in_fleet(turn, id)?;
    cancel_pages(turn, id, reason)?;
    turn.tx.set_foreground(id, None)?;
    turn.changes.insert(Change::Crawl(id));
    notices::announce_crawl(turn, id, Notice::Changed)?;
    tidy_crawl(turn, id)
}

/// Cancels as many waiting pages of a crawl as one turn may: those that never started first.
pub(crate) fn cancel_some(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    let unbegun = turn.tx.cancel_some_unbegun(id, reason, turn.now, PAGES_PER_TURN)?;
    if unbegun == 0 {
        for page in turn.tx.some_queued(id, BEGUN_PAGES_PER_TURN)? {
            cancel_snapshot(turn, id, page, reason)?;
        }
    }
    Ok(())
}

/// Cancels the open pages of a crawl.
///
/// # Errors
/// If many pages wait, which further turns cancel in pieces before this step is repeated.
fn cancel_pages(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    if waiting_in(turn, id)? > FOLLOWED_PAGES_MAX {
        return Err(TurnError::ManyPages(id, reason.to_owned()));
    }
    for snapshot in turn.tx.open_snapshots(id)? {
        cancel_snapshot(turn, id, snapshot, reason)?;
    }
    Ok(())
}

/// Ends all units of a crawl that became final early.
fn end_crawl(turn: &mut Turn<'_>, id: CrawlId, reason: &str) -> TurnResult<()> {
    turn.tx.fail_open_results(Owner::Crawl(id), reason, turn.now)?;
    cancel_pages(turn, id, reason)?;
    turn.changes.insert(Change::Crawl(id));
    turn.engine.forget(id);
    turn.remember(move |engine| engine.dismiss(Owner::Crawl(id)));
    // systemd 257 does not stop a frozen unit.
    for unit in turn.tx.units_once_frozen(id)? {
        turn.act(UnitAction::Thaw(unit));
    }
    turn.act(ReplyAction::Unpark);
    turn.act(UnitAction::StopSlice(turn.engine.names.crawl_slice(id)));
    if !turn.tx.has_open_runs(id)? {
        turn.act(CallerAction::ReleaseHolds(id));
    }
    Ok(())
}

/// Cancels one snapshot and stops its units.
pub(crate) fn cancel_snapshot(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    id: SnapshotId,
    reason: &str,
) -> TurnResult<()> {
    let owner = Owner::Snapshot(id);
    turn.tx.step_snapshot(id, Step::Cancel, None, Some(reason), turn.now)?;
    turn.tx.fail_open_results(owner, reason, turn.now)?;
    stop_units_of(turn, owner)?;
    turn.changes.insert(Change::Snapshot { crawl, id });
    notices::announce_snapshot(turn, id, Notice::Cancelled)
}

/// Stops the worker and the hooks of a snapshot, and rejects the token of the worker.
pub(crate) fn stop_units_of(turn: &mut Turn<'_>, owner: Owner) -> TurnResult<()> {
    for run in turn.tx.open_runs_of(owner)? {
        pause::thaw(turn, &run);
        let (unit, how) = (run.unit, Release::Stop);
        turn.act(UnitAction::Release { unit, how });
    }
    turn.remember(move |engine| engine.dismiss(owner));
    turn.act(ReplyAction::Unpark);
    Ok(())
}

pub(super) fn kill_hooks(turn: &mut Turn<'_>, owner: Owner) -> TurnResult<()> {
    for run in turn.tx.open_runs_of(owner)? {
        if run.kind == UnitKind::Hook {
            pause::thaw(turn, &run);
            let (whom, signal) = (Whom::All, SIGKILL);
            turn.act(UnitAction::Signal { unit: run.unit, whom, signal });
        }
    }
    Ok(())
}

/// The end of the last open page of a crawl, for which its worker waits.
pub(super) fn end_of_pages(crawl: CrawlId) -> Awaited {
    Awaited::new("pages", crawl)
}

/// Answers a crawl's worker when no snapshot is open, and stops the slice of a final crawl
/// without units; see [`tidy`].
pub(crate) fn tidy_crawl(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    let status = turn.tx.status_of(Owner::Crawl(id))?;
    let open = turn.tx.awaits_pages(id)?;
    let tidy = tidy(status, open, turn.tx.has_open_runs(id)?);
    if tidy.snapshots_done {
        turn.tx.release_crawl(id)?;
        turn.act(ReplyAction::Settle(end_of_pages(id), Ok(None)));
    }
    if tidy.stop_slice {
        turn.engine.forget(id);
        turn.act(UnitAction::StopSlice(turn.engine.names.crawl_slice(id)));
        turn.act(CallerAction::ReleaseHolds(id));
    }
    Ok(())
}
