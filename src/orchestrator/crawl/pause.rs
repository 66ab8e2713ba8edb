//! Pausing: nothing of a crawl or snapshot is started any more, and its hooks are frozen. Their
//! workers are not, as they have a watchdog to answer; what they ask to be run waits. That of a page
//! is marked, as its time limit goes on meanwhile.
//!
//! Frozen hooks are thawed before anything is sent to them: systemd refuses to stop a frozen unit
//! (257), and a frozen process takes no signal but SIGKILL. Their time limit, which belongs to
//! systemd, goes on meanwhile; a hook that it ends is run once more.

use crate::main_loop::action::Action;
use crate::main_loop::log::LogEntry;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::store::RunRow;
use archivist_core::model::{Lifecycle, Outcome, Owner, Step};
use archivist_core::plan::Settled;
use archivist_core::unit::UnitKind;

const PAUSED: &str = "paused by request";

impl Turn<'_> {
    pub(crate) fn pause(&mut self, id: Owner) -> TurnResult<()> {
        if self.is_already(id, "pause", |status| status == Lifecycle::Paused)? {
            return Ok(());
        }
        self.step_owner(id, Step::Pause, Some(PAUSED))?;
        for run in self.runs_below(id)? {
            // One that is not up yet is frozen when it is.
            if run.kind == UnitKind::Hook && !run.starting {
                self.freeze(&run)?;
            }
            if run.kind == UnitKind::SnapshotWorker {
                self.tx.note_paused(run.id)?;
            }
        }
        self.log(LogEntry::Paused(id));
        Ok(())
    }

    pub(crate) fn resume(&mut self, id: Owner) -> TurnResult<()> {
        let goes_on = |status| matches!(status, Lifecycle::Queued | Lifecycle::Started);
        if self.is_already(id, "resume", goes_on)? {
            return Ok(());
        }
        // A worker of an attempt before a retry is on its way out, and none of this one.
        let attempts = match id {
            Owner::Crawl(id) => self.crawl_of(id)?.attempts,
            Owner::Snapshot(id) => self.snapshot_of(id)?.attempts,
        };
        let step = if attempts > 0 && self.tx.has_worker(id)? {
            Step::Continue
        } else {
            Step::Resume
        };
        self.step_owner(id, step, None)?;
        for run in self.runs_below(id)? {
            if run.may_be_frozen() && !self.tx.is_paused(run.owner)? {
                self.actions.push(Action::Thaw(run.unit));
            }
        }
        self.actions.push(Action::Unpark);
        self.log(LogEntry::Resumed(id));
        Ok(())
    }

    /// Whether what a caller asks for is so already, as when an answer was lost and the call is made
    /// again. What is over is refused in words for the caller.
    pub(crate) fn is_already(
        &self,
        id: Owner,
        verb: &str,
        is_so: impl Fn(Lifecycle) -> bool,
    ) -> TurnResult<bool> {
        let status = self.tx.status_of(id)?;
        match is_so(status) {
            false if status.is_final() => Err(invalid(format!(
                "{id} is {status}, there is nothing to {verb}"
            ))),
            already => Ok(already),
        }
    }

    fn step_owner(&mut self, id: Owner, step: Step, reason: Option<&str>) -> TurnResult<()> {
        let due = (step == Step::Resume).then_some(self.now);
        match id {
            Owner::Crawl(crawl) => {
                self.tx.step_crawl(crawl, step, due, reason, self.now)?;
                self.changes.insert(Change::Crawl(crawl));
            }
            Owner::Snapshot(id) => {
                let crawl = self.snapshot_of(id)?.crawl;
                self.tx.step_snapshot(id, step, due, reason, self.now)?;
                self.changes.insert(Change::Snapshot { crawl, id });
            }
        }
        Ok(())
    }

    /// What runs for a crawl and its snapshots, or for one snapshot.
    fn runs_below(&self, id: Owner) -> TurnResult<Vec<RunRow>> {
        let mut runs = self.tx.open_runs()?;
        runs.retain(|run| run.owner == id || Owner::Crawl(run.crawl) == id);
        Ok(runs)
    }

    /// Freezes a hook; never a worker or a slice.
    pub(crate) fn freeze(&mut self, run: &RunRow) -> TurnResult<()> {
        self.tx.note_paused(run.id)?;
        self.actions.push(Action::Freeze(run.unit.clone()));
        Ok(())
    }

    /// A unit came up, and may have been paused before it did: systemd freezes none that has a
    /// job.
    pub(crate) fn freeze_if_paused(&mut self, unit: &str) -> TurnResult<()> {
        let run = self.tx.open_run(unit)?;
        match run.filter(|run| run.kind == UnitKind::Hook) {
            Some(run) if self.tx.is_paused(run.owner)? => self.freeze(&run),
            _ => Ok(()),
        }
    }

    /// Makes a unit as frozen as it is to be: the orchestrator before us may have died between
    /// its record and its call, and what was paused meanwhile may have started since.
    pub(crate) fn adjust(&mut self, run: &RunRow) -> TurnResult<()> {
        if run.kind != UnitKind::Hook {
            return Ok(());
        }
        if self.tx.is_paused(run.owner)? {
            return self.freeze(run);
        }
        self.thaw(run);
        Ok(())
    }

    /// Thaws a unit that was ever to be frozen: before it is ended.
    pub(crate) fn thaw(&mut self, run: &RunRow) {
        if run.may_be_frozen() {
            self.actions.push(Action::Thaw(run.unit.clone()));
        }
    }

    /// We are asked to leave. Should the machine go down, nothing may stay frozen: it would not
    /// take the signal to end, and hold the shutdown up.
    pub(crate) fn thaw_at_shutdown(&mut self) -> TurnResult<()> {
        let runs = self.tx.open_runs()?.into_iter();
        let frozen: Vec<String> = runs
            .filter(RunRow::may_be_frozen)
            .map(|run| run.unit)
            .collect();
        if !frozen.is_empty() {
            self.actions.push(Action::ThawAtShutdown(frozen));
        }
        Ok(())
    }

    /// The time limit of a hook went on while it was frozen: it has its time in another run.
    pub(crate) fn forgive_limit(&self, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
        if run.frozen
            && *outcome == Outcome::TimeLimit
            && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
        {
            self.tx.put_off_result(run.owner, plugin, hook)?;
        }
        Ok(())
    }

    /// What is paused lost its worker: it stays paused, and has another one after it is resumed.
    /// Whether that is all.
    pub(crate) fn stays_paused(&self, owner: Owner, settled: &Settled) -> TurnResult<bool> {
        if settled.step != Step::Requeue || self.tx.status_of(owner)? != Lifecycle::Paused {
            return Ok(false);
        }
        let reason = match &settled.reason {
            Some(reason) => format!("{PAUSED}; {reason}"),
            None => PAUSED.to_owned(),
        };
        self.tx
            .put_off_paused(owner, settled.retry_at, Some(&reason))?;
        Ok(true)
    }
}
