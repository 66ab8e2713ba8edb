//! The kinds of units that archive pages: the workers of crawls and snapshots, and hooks.

use crate::bus::call::{Answer, Reply};
use crate::database::{RunRow, UnitRow};
use crate::fleet;
use crate::main_loop::action::{Awaited, ReplyAction, UnitAction};
use crate::main_loop::due::{Due, DueResult};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::notices;
use crate::units::Kind;
use crate::work::ends;
use crate::work::lost;
use crate::work::pause;
use crate::work::run_result;
use crate::work::view;
use archivist_core::model::{AnyId, Lifecycle, Outcome, Owner};
use archivist_core::plan::{Allowance, Ending, RunningUnit, recorded_outcome, running_unit, tidy};
use archivist_core::unit::UnitKind;
use archivist_shared::systemd::{LoadedUnit, Release};

pub(crate) struct CrawlWorker;
pub(crate) struct SnapshotWorker;
pub(crate) struct Hook;

/// What the kinds of units that archive pages do each in its own way; the rest is [`Kind`] for all
/// of them.
trait Work: Sync {
    /// Which units may start now, as [`Kind::due`].
    fn due(&self, _turn: &Turn<'_>, _allowance: &Allowance) -> DueResult {
        Ok(Due::default())
    }

    /// A job of the unit is done, as [`Kind::came_up`].
    fn came_up(&self, _turn: &mut Turn<'_>, _run: &UnitRow) -> TurnResult<()> {
        Ok(())
    }

    /// The end is recorded and logged: what follows from it for its crawl or snapshot.
    fn ended(&self, turn: &mut Turn<'_>, run: &RunRow, end: &UnitEnd) -> TurnResult<()>;

    /// The runs were compared with the units that systemd has, as [`Kind::reconciled`].
    fn reconciled(&self, _turn: &mut Turn<'_>, _listed: &[LoadedUnit]) -> TurnResult<()> {
        Ok(())
    }
}

impl<W: Work> Kind for W {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        Work::due(self, turn, allowance)
    }

    fn lost(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        forgive_lost(turn, run)
    }

    fn came_up(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        Work::came_up(self, turn, run)
    }

    fn running(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        direct(turn, run)
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        outcome_of_work(turn, run, end)
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let run = settle_end(turn, run, end)?;
        Work::ended(self, turn, &run, end)?;
        tell_of_ended_units(turn, &run)
    }

    fn reconciled(&self, turn: &mut Turn<'_>, listed: &[LoadedUnit]) -> TurnResult<()> {
        Work::reconciled(self, turn, listed)
    }
}

impl Work for CrawlWorker {
    /// The workers of snapshots, too: they share slots with those of crawls.
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        view::due(turn, allowance)
    }

    fn ended(&self, turn: &mut Turn<'_>, run: &RunRow, _end: &UnitEnd) -> TurnResult<()> {
        ends::crawl_worker_ended(turn, run.crawl, run)
    }

    /// Stops slices of final crawls, if an orchestrator ended before it did.
    fn reconciled(&self, turn: &mut Turn<'_>, listed: &[LoadedUnit]) -> TurnResult<()> {
        stop_idle_slices(turn, listed)
    }
}

impl Work for SnapshotWorker {
    fn ended(&self, turn: &mut Turn<'_>, run: &RunRow, _end: &UnitEnd) -> TurnResult<()> {
        match run.owner {
            Owner::Snapshot(id) => ends::snapshot_worker_ended(turn, id, run),
            Owner::Crawl(_) => Ok(()),
        }
    }
}

impl Work for Hook {
    /// Freezes a hook that came up after it was paused.
    fn came_up(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        pause::freeze_if_paused(turn, &run.unit)
    }

    fn ended(&self, turn: &mut Turn<'_>, run: &RunRow, end: &UnitEnd) -> TurnResult<()> {
        lost::forgive_lost_hook(turn, run, &end.outcome)?;
        hook_ended(turn, run)
    }
}

/// The row of a worker or hook, whose unit is known.
fn work_of(turn: &Turn<'_>, run: &UnitRow) -> TurnResult<RunRow> {
    let row = turn.tx.run(run.id)?;
    row.ok_or_else(|| failed(format!("{} is neither a worker nor a hook", run.unit)))
}

fn forgive_lost(turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
    Ok(turn.tx.forgive_attempt(&work_of(turn, run)?)?)
}

/// Stops or pauses a unit that runs, if its crawl or snapshot was cancelled or paused in the
/// meantime.
fn direct(turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
    let row = work_of(turn, run)?;
    match direction(turn, &row)? {
        RunningUnit::Stop => stop_unit(turn, &row),
        RunningUnit::Freeze => pause::freeze(turn, &row)?,
        RunningUnit::Thaw => pause::thaw(turn, &row),
        RunningUnit::Leave => {}
    }
    Ok(())
}

/// What is done with the unit of a run.
fn direction(turn: &Turn<'_>, run: &RunRow) -> TurnResult<RunningUnit> {
    let is_over = run.interrupted || turn.tx.status_of(run.owner)?.is_final();
    let is_hook = run.kind == UnitKind::Hook;
    Ok(running_unit(is_hook, is_over, turn.tx.is_paused(run.owner)?))
}

/// Stops a unit. It may have no process yet, which a signal would miss.
fn stop_unit(turn: &mut Turn<'_>, run: &RunRow) {
    pause::thaw(turn, run);
    let (unit, how) = (run.unit.clone(), Release::Stop);
    turn.act(UnitAction::Release { unit, how });
}

/// The outcome to record for a worker or hook.
fn outcome_of_work(turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
    let run = work_of(turn, run)?;
    let ending = Ending {
        interrupted: run.interrupted,
        short_of_disk: run.short_of_disk,
        cancelled: turn.tx.status_of(run.owner)? == Lifecycle::Cancelled,
        stopped: run.kind == UnitKind::Hook && end.reading.was_stopped,
        expired: fleet::is_expired(turn, &run),
    };
    Ok(recorded_outcome(&end.outcome, ending))
}

/// Logs the recorded end of a worker or hook, and answers the callers that wait for it. Returns
/// its row.
fn settle_end(turn: &mut Turn<'_>, unit: &UnitRow, end: &UnitEnd) -> TurnResult<RunRow> {
    let run = RunRow { starting: unit.starting, ..work_of(turn, unit)? };
    notices::log_end(turn, &run, &end.outcome, &end.reading)?;
    pause::forgive_limit(turn, &run, &end.outcome)?;
    fleet::forgive_late(turn, &run, &end.outcome)?;
    run_result::settle(turn, &run)?;
    Ok(run)
}

/// Answers the callers that wait for the units of the crawl or snapshot of a run that has ended,
/// or for the run.
fn tell_of_ended_units(turn: &mut Turn<'_>, run: &RunRow) -> TurnResult<()> {
    let owners = [run.owner, Owner::Crawl(run.crawl)].map(AnyId::Owner);
    for of in owners.into_iter().chain([AnyId::Run(run.id)]) {
        if is_over(turn, of)? {
            turn.act(ReplyAction::Settle(end_of_units(of), Ok(None)));
        }
    }
    Ok(())
}

fn end_of_units(of: AnyId) -> Awaited {
    Awaited::new("units", of)
}

/// Whether a crawl or snapshot is final and none of its units runs, or a run has ended.
fn is_over(turn: &Turn<'_>, of: AnyId) -> TurnResult<bool> {
    let (owner, runs) = match of {
        AnyId::Run(id) => return Ok(turn.tx.open_run_by_id(id)?.is_none()),
        AnyId::Owner(Owner::Crawl(id)) => (Owner::Crawl(id), turn.tx.has_open_runs(id)?),
        AnyId::Owner(owner) => (owner, !turn.tx.open_runs_of(owner)?.is_empty()),
    };
    Ok(!runs && turn.tx.status_of(owner)?.is_final())
}

/// Answers when a crawl or snapshot is final and none of its units runs, or a run has ended.
pub(crate) fn await_units(
    turn: &mut Turn<'_>,
    of: AnyId,
    reply: &Reply,
) -> TurnResult<Option<Answer>> {
    if is_over(turn, of)? {
        return Ok(Some(Answer::Done));
    }
    turn.act(ReplyAction::Await(end_of_units(of), reply.clone()));
    Ok(None)
}

/// The run of a hook has ended; if its crawl or snapshot is final, its worker does not report
/// it.
fn hook_ended(turn: &mut Turn<'_>, run: &RunRow) -> TurnResult<()> {
    if turn.tx.status_of(run.owner)?.is_final() {
        turn.tx.fail_open_results(
            run.owner,
            "its crawl or snapshot was cancelled or given up",
            turn.now,
        )?;
        ends::tidy_crawl(turn, run.crawl)?;
    }
    Ok(())
}

/// Stops slices of final crawls, if an orchestrator ended before it did.
fn stop_idle_slices(turn: &mut Turn<'_>, listed: &[LoadedUnit]) -> TurnResult<()> {
    for unit in listed {
        let Some(id) = turn.engine.names.crawl_of_slice(&unit.name) else {
            continue;
        };
        let crawl = turn.tx.crawl(id)?;
        let status = crawl.map_or(Lifecycle::Cancelled, |crawl| crawl.status);
        if tidy(status, false, turn.tx.has_open_runs(id)?).stop_slice {
            turn.act(UnitAction::StopSlice(unit.name.clone()));
        }
    }
    Ok(())
}
