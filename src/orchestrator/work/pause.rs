//! Pausing: nothing of a crawl or snapshot is started, and its hooks are frozen. Workers are not
//! frozen, as they have a watchdog to answer; their calls of `Run` wait. The run of a page's worker
//! is marked, because its time limit continues.
//!
//! Frozen hooks are thawed before anything is sent to them: systemd refuses to stop a frozen unit
//! (257), and a frozen process takes no signal but SIGKILL. The time limit of a hook belongs to
//! systemd and continues; a hook that reaches it while frozen is run again.

use crate::database::RunRow;
use crate::main_loop;
use crate::main_loop::action::{ReplyAction, UnitAction};
use crate::main_loop::turn::invalid;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::notices;
use archivist_core::model::Lifecycle;
use archivist_core::model::{Outcome, Owner, Step};
use archivist_core::plan::Wanted;
use archivist_core::plan::{Notice, PAUSED, excuses_time_limit, pause, resume, resume_step};
use archivist_core::unit::UnitKind;

pub(crate) fn pause_owner(turn: &mut Turn<'_>, id: Owner) -> TurnResult<()> {
    if !is_wanted(turn, id, "pause", pause)? {
        return Ok(());
    }
    step_owner(turn, id, Step::Pause, Some(PAUSED))?;
    for run in runs_below(turn, id)? {
        // A hook that is starting is frozen when its start is done.
        if run.kind == UnitKind::Hook && !run.starting {
            freeze(turn, &run)?;
        }
        if run.kind == UnitKind::SnapshotWorker {
            turn.tx.note_paused(run.id)?;
        }
    }
    turn.log(move || tracing::info!("{id} is paused"));
    Ok(())
}

pub(crate) fn resume_owner(turn: &mut Turn<'_>, id: Owner) -> TurnResult<()> {
    if !is_wanted(turn, id, "resume", resume)? {
        return Ok(());
    }
    let attempts = match id {
        Owner::Crawl(id) => main_loop::crawl_of(turn, id)?.attempts,
        Owner::Snapshot(id) => main_loop::snapshot_of(turn, id)?.attempts,
    };
    let step = resume_step(attempts, turn.tx.has_worker(id)?);
    step_owner(turn, id, step, None)?;
    for run in runs_below(turn, id)? {
        if run.may_be_frozen() && !turn.tx.is_paused(run.owner)? {
            turn.act(UnitAction::Thaw(run.unit));
        }
    }
    turn.act(ReplyAction::Unpark);
    turn.log(move || tracing::info!("{id} is resumed"));
    Ok(())
}

fn step_owner(turn: &mut Turn<'_>, id: Owner, step: Step, reason: Option<&str>) -> TurnResult<()> {
    let due = (step == Step::Resume).then_some(turn.now);
    match id {
        Owner::Crawl(crawl) => {
            turn.tx.step_crawl(crawl, step, due, reason, turn.now)?;
            turn.changes.insert(Change::Crawl(crawl));
            notices::announce_crawl(turn, crawl, Notice::of(step))?;
        }
        Owner::Snapshot(id) => {
            let crawl = main_loop::snapshot_of(turn, id)?.crawl;
            turn.tx.step_snapshot(id, step, due, reason, turn.now)?;
            turn.changes.insert(Change::Snapshot { crawl, id });
            notices::announce_snapshot(turn, id, Notice::of(step))?;
        }
    }
    Ok(())
}

/// The open runs of a crawl and its snapshots, or of one snapshot.
fn runs_below(turn: &Turn<'_>, id: Owner) -> TurnResult<Vec<RunRow>> {
    let mut runs = turn.tx.open_runs()?;
    runs.retain(|run| run.owner == id || Owner::Crawl(run.crawl) == id);
    Ok(runs)
}

/// Freezes a hook; never a worker or a slice.
pub(crate) fn freeze(turn: &mut Turn<'_>, run: &RunRow) -> TurnResult<()> {
    turn.tx.note_paused(run.id)?;
    turn.act(UnitAction::Freeze(run.unit.clone()));
    Ok(())
}

/// Freezes a unit that came up after it was paused: systemd freezes no unit that has a job.
pub(crate) fn freeze_if_paused(turn: &mut Turn<'_>, unit: &str) -> TurnResult<()> {
    let run = turn.tx.open_run(unit)?;
    match run.filter(|run| run.kind == UnitKind::Hook) {
        Some(run) if turn.tx.is_paused(run.owner)? => freeze(turn, &run),
        _ => Ok(()),
    }
}

/// Thaws a unit that may be frozen, before it is ended.
pub(crate) fn thaw(turn: &mut Turn<'_>, run: &RunRow) {
    if run.may_be_frozen() {
        turn.act(UnitAction::Thaw(run.unit.clone()));
    }
}

/// The orchestrator exits. If the machine is shutting down, no unit may stay frozen: it would
/// not take the signal to end, and delay the shutdown.
pub(crate) fn thaw_at_shutdown(turn: &mut Turn<'_>) -> TurnResult<()> {
    let runs = turn.tx.open_runs()?.into_iter();
    let frozen: Vec<String> = runs.filter(RunRow::may_be_frozen).map(|run| run.unit).collect();
    if !frozen.is_empty() {
        turn.act(UnitAction::ThawAtShutdown(frozen));
    }
    Ok(())
}

/// A hook that reached its time limit while it was frozen runs again.
pub(crate) fn forgive_limit(turn: &Turn<'_>, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
    if excuses_time_limit(run.frozen, outcome)
        && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
    {
        turn.tx.put_off_result(run.owner, plugin, hook)?;
    }
    Ok(())
}

/// Whether a request of a user has to be carried out.
///
/// # Errors
/// If its crawl or snapshot is final.
pub(crate) fn is_wanted(
    turn: &Turn<'_>,
    id: Owner,
    verb: &str,
    decide: fn(Lifecycle) -> Wanted,
) -> TurnResult<bool> {
    let status = turn.tx.status_of(id)?;
    match decide(status) {
        Wanted::Go => Ok(true),
        Wanted::Already => Ok(false),
        Wanted::Final => Err(invalid(format!("{id} is {status}, there is nothing to {verb}"))),
    }
}
