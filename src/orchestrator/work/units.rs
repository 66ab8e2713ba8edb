//! The kinds of units that archive pages: the workers of crawls and snapshots, and hooks.

use crate::main_loop::action::{ReplyAction, UnitAction};
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::store::{RunRow, UnitRow};
use crate::units::{Contents, Kind, UnitEnd};
use archivist_core::model::{AnyId, Lifecycle, Outcome, Owner};
use archivist_core::plan::{Ending, RunningUnit, recorded_outcome, running_unit, tidy};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::call::Reply;
use archivist_shared::systemd::{LoadedUnit, Release};

/// The worker of a crawl.
pub(crate) struct CrawlWorker;
/// The worker of a snapshot.
pub(crate) struct SnapshotWorker;
/// One run of a hook.
pub(crate) struct Hook;

impl Kind for CrawlWorker {
    fn lost(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.forgive_lost(run)
    }

    fn running(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.direct(run)
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        turn.outcome_of_work(run, end)
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let run = turn.settle_end(run, end)?;
        turn.crawl_worker_ended(run.crawl, &run)?;
        turn.tell_of_ended_units(&run)
    }

    /// Stops slices of final crawls, if an orchestrator ended before it did.
    fn reconciled(&self, turn: &mut Turn<'_>, listed: &[LoadedUnit]) -> TurnResult<()> {
        turn.stop_idle_slices(listed)
    }
}

impl Kind for SnapshotWorker {
    fn lost(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.forgive_lost(run)
    }

    fn running(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.direct(run)
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        turn.outcome_of_work(run, end)
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let run = turn.settle_end(run, end)?;
        if let Owner::Snapshot(id) = run.owner {
            turn.snapshot_worker_ended(id, &run)?;
        }
        turn.tell_of_ended_units(&run)
    }
}

impl Kind for Hook {
    fn lost(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.forgive_lost(run)
    }

    /// Freezes a hook that came up after it was paused.
    fn came_up(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.freeze_if_paused(&run.unit)
    }

    fn running(&self, turn: &mut Turn<'_>, run: &UnitRow) -> TurnResult<()> {
        turn.direct(run)
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        turn.outcome_of_work(run, end)
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let run = turn.settle_end(run, end)?;
        turn.forgive_lost_hook(&run, &end.outcome)?;
        turn.hook_ended(&run)?;
        turn.tell_of_ended_units(&run)
    }
}

impl Turn<'_> {
    /// The row of a worker or hook, whose unit is known.
    fn work_of(&self, run: &UnitRow) -> TurnResult<RunRow> {
        let row = self.tx.run(run.id)?;
        row.ok_or_else(|| failed(format!("{} is neither a worker nor a hook", run.unit)))
    }

    fn forgive_lost(&mut self, run: &UnitRow) -> TurnResult<()> {
        Ok(self.tx.forgive_attempt(&self.work_of(run)?)?)
    }

    /// Stops or pauses a unit that runs, if its crawl or snapshot was cancelled or paused in the
    /// meantime.
    fn direct(&mut self, run: &UnitRow) -> TurnResult<()> {
        let row = self.work_of(run)?;
        match self.running_unit(&row)? {
            RunningUnit::Stop => self.stop_unit(&row),
            RunningUnit::Freeze => self.freeze(&row)?,
            RunningUnit::Thaw => self.thaw(&row),
            RunningUnit::Leave => {}
        }
        Ok(())
    }

    /// What is done with the unit of a run.
    fn running_unit(&self, run: &RunRow) -> TurnResult<RunningUnit> {
        let is_over = run.interrupted || self.tx.status_of(run.owner)?.is_final();
        let is_hook = run.kind == UnitKind::Hook;
        Ok(running_unit(
            is_hook,
            is_over,
            self.tx.is_paused(run.owner)?,
        ))
    }

    /// Stops a unit. It may have no process yet, which a signal would miss.
    fn stop_unit(&mut self, run: &RunRow) {
        self.thaw(run);
        let (unit, how) = (run.unit.clone(), Release::Stop);
        self.act(UnitAction::Release { unit, how });
    }

    /// The outcome to record for a worker or hook.
    fn outcome_of_work(&self, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        let run = self.work_of(run)?;
        let ending = Ending {
            interrupted: run.interrupted,
            short_of_disk: run.short_of_disk,
            cancelled: self.tx.status_of(run.owner)? == Lifecycle::Cancelled,
            stopped: run.kind == UnitKind::Hook && end.reading.was_stopped,
            expired: self.is_expired(&run),
        };
        Ok(recorded_outcome(&end.outcome, ending))
    }

    /// Logs the recorded end of a worker or hook, and answers the callers that wait for it. Returns
    /// its row.
    fn settle_end(&mut self, unit: &UnitRow, end: &UnitEnd) -> TurnResult<RunRow> {
        let run = RunRow {
            starting: unit.starting,
            ..self.work_of(unit)?
        };
        self.log_end(&run, &end.outcome, &end.reading)?;
        self.forgive_limit(&run, &end.outcome)?;
        self.forgive_late(&run, &end.outcome)?;
        self.settle(&run)?;
        Ok(run)
    }

    /// Answers the callers that wait for the units of the crawl or snapshot of a run that has ended,
    /// or for the run.
    fn tell_of_ended_units(&mut self, run: &RunRow) -> TurnResult<()> {
        let owners = [run.owner, Owner::Crawl(run.crawl)].map(AnyId::Owner);
        for of in owners.into_iter().chain([AnyId::Run(run.id)]) {
            if self.is_over(of)? {
                self.act(ReplyAction::UnitsEnded(of));
            }
        }
        Ok(())
    }

    /// Whether a crawl or snapshot is final and none of its units runs, or a run has ended.
    fn is_over(&self, of: AnyId) -> TurnResult<bool> {
        let (owner, runs) = match of {
            AnyId::Run(id) => return Ok(self.tx.open_run_by_id(id)?.is_none()),
            AnyId::Owner(Owner::Crawl(id)) => (Owner::Crawl(id), self.tx.has_open_runs(id)?),
            AnyId::Owner(owner) => (owner, !self.tx.open_runs_of(owner)?.is_empty()),
        };
        Ok(!runs && self.tx.status_of(owner)?.is_final())
    }

    /// Answers when a crawl or snapshot is final and none of its units runs, or a run has ended.
    pub(crate) fn await_units(&mut self, of: AnyId, reply: &Reply<()>) -> TurnResult<()> {
        if self.is_over(of)? {
            self.answer(reply);
        } else {
            let reply = reply.clone();
            self.act(ReplyAction::AwaitUnits { of, reply });
        }
        Ok(())
    }

    /// The run of a hook has ended; if its crawl or snapshot is final, its worker does not report
    /// it.
    fn hook_ended(&mut self, run: &RunRow) -> TurnResult<()> {
        if self.tx.status_of(run.owner)?.is_final() {
            self.tx.fail_open_results(
                run.owner,
                "its crawl or snapshot was cancelled or given up",
                self.now,
            )?;
            self.tidy_crawl(run.crawl)?;
        }
        Ok(())
    }

    /// Stops slices of final crawls, if an orchestrator ended before it did.
    fn stop_idle_slices(&mut self, listed: &[LoadedUnit]) -> TurnResult<()> {
        for unit in listed {
            let Some(id) = self.engine.names.crawl_of_slice(&unit.name) else {
                continue;
            };
            let crawl = self.tx.crawl(id)?;
            let status = crawl.map_or(Lifecycle::Cancelled, |crawl| crawl.status);
            if tidy(status, false, self.tx.has_open_runs(id)?).stop_slice {
                self.act(UnitAction::StopSlice(unit.name.clone()));
            }
        }
        Ok(())
    }
}
