//! Pausing: nothing of a crawl or snapshot is started, and its hooks are frozen. Workers are not
//! frozen, as they have a watchdog to answer; their calls of `Run` wait. The run of a page's worker
//! is marked, because its time limit continues.
//!
//! Frozen hooks are thawed before anything is sent to them: systemd refuses to stop a frozen unit
//! (257), and a frozen process takes no signal but SIGKILL. The time limit of a hook belongs to
//! systemd and continues; a hook that reaches it while frozen is run again.

use crate::main_loop::action::{ReplyAction, UnitAction};
use crate::main_loop::log::LogEntry;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::store::RunRow;
use archivist_core::model::{Outcome, Owner, Step};
use archivist_core::plan::{Notice, PAUSED, excuses_time_limit, pause, resume, resume_step};
use archivist_core::unit::UnitKind;

impl Turn<'_> {
    pub(crate) fn pause(&mut self, id: Owner) -> TurnResult<()> {
        if !self.is_wanted(id, "pause", pause)? {
            return Ok(());
        }
        self.step_owner(id, Step::Pause, Some(PAUSED))?;
        for run in self.runs_below(id)? {
            // A hook that is starting is frozen when its start is done.
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
        if !self.is_wanted(id, "resume", resume)? {
            return Ok(());
        }
        let attempts = match id {
            Owner::Crawl(id) => self.crawl_of(id)?.attempts,
            Owner::Snapshot(id) => self.snapshot_of(id)?.attempts,
        };
        let step = resume_step(attempts, self.tx.has_worker(id)?);
        self.step_owner(id, step, None)?;
        for run in self.runs_below(id)? {
            if run.may_be_frozen() && !self.tx.is_paused(run.owner)? {
                self.act(UnitAction::Thaw(run.unit));
            }
        }
        self.act(ReplyAction::Unpark);
        self.log(LogEntry::Resumed(id));
        Ok(())
    }

    fn step_owner(&mut self, id: Owner, step: Step, reason: Option<&str>) -> TurnResult<()> {
        let due = (step == Step::Resume).then_some(self.now);
        match id {
            Owner::Crawl(crawl) => {
                self.tx.step_crawl(crawl, step, due, reason, self.now)?;
                self.changes.insert(Change::Crawl(crawl));
                self.announce_crawl(crawl, Notice::of(step))?;
            }
            Owner::Snapshot(id) => {
                let crawl = self.snapshot_of(id)?.crawl;
                self.tx.step_snapshot(id, step, due, reason, self.now)?;
                self.changes.insert(Change::Snapshot { crawl, id });
                self.announce_snapshot(id, Notice::of(step))?;
            }
        }
        Ok(())
    }

    /// The open runs of a crawl and its snapshots, or of one snapshot.
    fn runs_below(&self, id: Owner) -> TurnResult<Vec<RunRow>> {
        let mut runs = self.tx.open_runs()?;
        runs.retain(|run| run.owner == id || Owner::Crawl(run.crawl) == id);
        Ok(runs)
    }

    /// Freezes a hook; never a worker or a slice.
    pub(crate) fn freeze(&mut self, run: &RunRow) -> TurnResult<()> {
        self.tx.note_paused(run.id)?;
        self.act(UnitAction::Freeze(run.unit.clone()));
        Ok(())
    }

    /// Freezes a unit that came up after it was paused: systemd freezes no unit that has a job.
    pub(crate) fn freeze_if_paused(&mut self, unit: &str) -> TurnResult<()> {
        let run = self.tx.open_run(unit)?;
        match run.filter(|run| run.kind == UnitKind::Hook) {
            Some(run) if self.tx.is_paused(run.owner)? => self.freeze(&run),
            _ => Ok(()),
        }
    }

    /// Thaws a unit that may be frozen, before it is ended.
    pub(crate) fn thaw(&mut self, run: &RunRow) {
        if run.may_be_frozen() {
            self.act(UnitAction::Thaw(run.unit.clone()));
        }
    }

    /// The orchestrator exits. If the machine is shutting down, no unit may stay frozen: it would
    /// not take the signal to end, and delay the shutdown.
    pub(crate) fn thaw_at_shutdown(&mut self) -> TurnResult<()> {
        let runs = self.tx.open_runs()?.into_iter();
        let frozen: Vec<String> = runs
            .filter(RunRow::may_be_frozen)
            .map(|run| run.unit)
            .collect();
        if !frozen.is_empty() {
            self.act(UnitAction::ThawAtShutdown(frozen));
        }
        Ok(())
    }

    /// A hook that reached its time limit while it was frozen runs again.
    pub(crate) fn forgive_limit(&self, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
        if excuses_time_limit(run.frozen, outcome)
            && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
        {
            self.tx.put_off_result(run.owner, plugin, hook)?;
        }
        Ok(())
    }
}
