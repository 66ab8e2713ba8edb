//! What follows for a crawl or a snapshot when its worker ends, and when a user cancels it.

use crate::main_loop::action::{CallerAction, EngineAction, ReplyAction, UnitAction};
use crate::main_loop::log::CrawlLog;
use crate::main_loop::turn::{Change, Turn, TurnError, TurnResult};
use crate::store::{RunRow, SnapshotWork};
use archivist_core::model::{CrawlId, Lifecycle, Outcome, Owner, ResultState, SnapshotId, Step};
use archivist_core::plan::{
    Abort, AfterCrawlWorker, AfterWorker, LOAD_INTERVAL, Notice, Settled, Uncounted, WithoutHooks,
    WorkerEnd, abort, after_crawl_worker, after_worker, incomplete_text, tidy,
};
use archivist_core::unit::UnitKind;
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

impl Turn<'_> {
    /// The end of the worker of this run.
    fn worker_end(&self, run: &RunRow, attempts: u32) -> TurnResult<WorkerEnd> {
        let owner = run.owner;
        let outcome = run.outcome.clone().unwrap_or(Outcome::Lost);
        let unfinished = self
            .tx
            .results(owner)?
            .iter()
            .any(|result| matches!(result.status, ResultState::Started | ResultState::Backoff));
        let (visit, refused) = self.visit_of(owner)?;
        Ok(WorkerEnd {
            attempts,
            unfinished,
            spent: self.engine.spent(run),
            was_paused: run.frozen,
            without_hooks: self.without_hooks(owner)?,
            visit,
            refused,
            uncounted: None,
            outcome,
        })
    }

    /// Why the end of this run is not a failed attempt, if so. The attempt is taken back.
    fn uncounted(
        &mut self,
        run: &RunRow,
        end: &WorkerEnd,
        directory: Option<&str>,
    ) -> TurnResult<Option<Uncounted>> {
        let found = match self.leave_taken(run, directory)? {
            Some(taken) => Some(taken),
            None => match self.outage(run, end) {
                None => self.lost_worker(run)?,
                outage => outage,
            },
        };
        if found.is_some() {
            self.tx.take_back_attempt(run.owner)?;
        }
        Ok(found)
    }

    /// Why the worker of this run failed, or one of its hooks has to run again, if that was for the
    /// machine.
    fn outage(&self, run: &RunRow, end: &WorkerEnd) -> Option<Uncounted> {
        if end.is_complete() {
            return None;
        }
        let (engine, outcome) = (self.engine, &end.outcome);
        let met = engine.shortage.met_outage(run.started_at, run.ended_at);
        let why = engine.load.outage.clone().or(met.map(str::to_owned));
        let why = why.or_else(|| outcome.is_failure_of_machine().then(|| outcome.to_string()))?;
        Some(Uncounted {
            why: format!("{why}; the attempt does not count"),
            delay: LOAD_INTERVAL,
        })
    }

    /// Why no hook ran for a page, if none did. Hooks of plugins that only accompany others do not
    /// count.
    fn without_hooks(&self, owner: Owner) -> TurnResult<Option<WithoutHooks>> {
        let Owner::Snapshot(_) = owner else {
            return Ok(None);
        };
        let crawl = self.crawl_for(owner)?;
        // A crawl without a plan has a reason of its own.
        let Ok(plan) = self.engine.plan(&crawl) else {
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

    pub(crate) fn snapshot_worker_ended(&mut self, id: SnapshotId, run: &RunRow) -> TurnResult<()> {
        let snapshot = self.snapshot_of(id)?;
        let owner = Owner::Snapshot(id);
        self.act(EngineAction::Dismiss(owner));
        let mut end = self.worker_end(run, snapshot.attempts)?;
        if snapshot.status == Lifecycle::Started || snapshot.status == Lifecycle::Paused {
            end.uncounted = self.uncounted(run, &end, snapshot.directory.as_deref())?;
        }
        let backoff = self.engine.backoff();
        let after = after_worker(snapshot.status, &end, &backoff, self.now, self.jitter);
        if after != AfterWorker::Nothing {
            self.end_visit(id, &end)?;
        }
        match after {
            AfterWorker::Nothing => {}
            AfterWorker::StayPaused { retry_at, reason } => {
                return Ok(self.tx.put_off_paused(owner, retry_at, Some(&reason))?);
            }
            AfterWorker::Step(mut settled) => {
                if settled.step == Step::Seal && end.is_complete() && self.end_retry(id)? {
                    // Why the retry failed is noted with the results that stay.
                    settled.reason = None;
                }
                self.step_snapshot(&snapshot, &settled)?;
            }
        }
        self.tidy_crawl(snapshot.crawl)
    }

    fn step_snapshot(&mut self, snapshot: &SnapshotWork, settled: &Settled) -> TurnResult<()> {
        let (id, crawl, owner) = (snapshot.id, snapshot.crawl, Owner::Snapshot(snapshot.id));
        let reason = settled.reason.as_deref();
        self.tx
            .step_snapshot(id, settled.step, settled.retry_at, reason, self.now)?;
        if settled.step != Step::Requeue {
            self.tx
                .fail_open_results(owner, reason.unwrap_or(HOOK_GONE), self.now)?;
            self.kill_hooks(owner)?;
        }
        self.log_snapshot(snapshot, settled.step, reason)?;
        if settled.step == Step::Seal {
            self.queue_copy(id)?;
        }
        self.changes.insert(Change::Snapshot { crawl, id });
        self.announce_snapshot(id, Notice::of(settled.step))
    }

    pub(crate) fn crawl_worker_ended(&mut self, id: CrawlId, run: &RunRow) -> TurnResult<()> {
        let crawl = self.crawl_of(id)?;
        let owner = Owner::Crawl(id);
        self.act(EngineAction::Dismiss(owner));
        let mut end = self.worker_end(run, crawl.attempts)?;
        if crawl.status == Lifecycle::Started || crawl.status == Lifecycle::Paused {
            end.uncounted = self.uncounted(run, &end, crawl.directory.as_deref())?;
        }
        let backoff = self.engine.backoff();
        let after = after_worker(crawl.status, &end, &backoff, self.now, self.jitter);
        let open = self.tx.awaits_pages(id)?;
        let aborted = self.tx.left_for(id, &WITH_CRAWL)?;
        match after_crawl_worker(after, self.now, open, aborted, crawl.status) {
            AfterCrawlWorker::Nothing => return self.tidy_crawl(id),
            AfterCrawlWorker::StayPaused { retry_at, reason } => {
                return Ok(self.tx.put_off_paused(owner, retry_at, Some(&reason))?);
            }
            AfterCrawlWorker::Requeue { retry_at, reason } => {
                let step = Step::Requeue;
                self.tx
                    .step_crawl(id, step, retry_at, reason.as_deref(), self.now)?;
                self.announce_crawl(id, Notice::of(step))?;
            }
            AfterCrawlWorker::Seal => self.seal_crawl(id)?,
            AfterCrawlWorker::GiveUp(reason) => self.give_up_crawl(id, &reason)?,
            AfterCrawlWorker::Cancel(reason) => self.cancel_crawl(id, &reason)?,
        }
        self.changes.insert(Change::Crawl(id));
        self.tidy_crawl(id)
    }

    fn seal_crawl(&mut self, id: CrawlId) -> TurnResult<()> {
        self.tx
            .fail_open_results(Owner::Crawl(id), HOOK_GONE, self.now)?;
        self.kill_hooks(Owner::Crawl(id))?;
        let failed = self.results_that("failed", id)?;
        let reason = (failed > 0).then(|| match failed {
            1 => "1 result failed".to_owned(),
            n => format!("{n} results failed"),
        });
        let left_out = self.tx.left_out(id)?.map(|(limit, pages)| match pages {
            1 => format!("{limit}, 1 page left out"),
            n => format!("{limit}, {n} pages left out"),
        });
        let incomplete = incomplete_text(self.tx.incomplete_pages(Some(id))?);
        let reason = [left_out, incomplete, reason]
            .into_iter()
            .flatten()
            .reduce(|a, b| format!("{a}; {b}"));
        self.tx
            .step_crawl(id, Step::Seal, None, reason.as_deref(), self.now)?;
        let log = CrawlLog::Sealed {
            succeeded: self.results_that("succeeded", id)?,
            failed,
            remark: reason,
        };
        self.log_crawl(id, log);
        self.crawl_closed(id)?;
        self.crawl_sealed(id)
    }

    /// How many results of a crawl have this status.
    fn results_that(&self, status: &str, crawl: CrawlId) -> TurnResult<u64> {
        let counts = self.tx.counts("result", Some(crawl))?;
        Ok(counts.get(status).copied().unwrap_or(0))
    }

    fn waiting_in(&self, crawl: CrawlId) -> TurnResult<u64> {
        let counts = self.tx.counts("snapshot", Some(crawl))?;
        Ok(counts.get("queued").copied().unwrap_or(0))
    }

    /// Seals a crawl that cannot continue, with the reason, and cancels its snapshots.
    pub(crate) fn give_up_crawl(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.tx
            .step_crawl(id, Step::Seal, None, Some(reason), self.now)?;
        let log = CrawlLog::GivenUp {
            succeeded: self.results_that("succeeded", id)?,
            failed: self.results_that("failed", id)?,
            reason: reason.to_owned(),
        };
        self.log_crawl(id, log);
        self.end_crawl(id, reason)?;
        self.crawl_closed(id)?;
        self.crawl_sealed(id)
    }

    /// Cancels a crawl and all its snapshots that are not final, in its whole fleet.
    pub(crate) fn cancel_crawl(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.cancel_in_fleet(id)?;
        self.cancel_crawl_here(id, reason)
    }

    /// Cancels a crawl and all its snapshots that are not final, on this machine.
    pub(crate) fn cancel_crawl_here(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.tx
            .step_crawl(id, Step::Cancel, None, Some(reason), self.now)?;
        self.log_crawl(id, CrawlLog::Cancelled(reason.to_owned()));
        self.end_crawl(id, reason)?;
        self.announce_crawl(id, Notice::Cancelled)
    }

    /// Cancels the open pages of a crawl, whose worker then runs the last hooks; see [`Abort`].
    pub(crate) fn abort(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        let crawl = self.crawl_of(id)?;
        let open = self.tx.has_open_snapshots(id)?;
        if abort(crawl.status, crawl.ready, open) == Abort::Crawl {
            return self.cancel_crawl(id, reason);
        }
        self.cancel_in_fleet(id)?;
        self.cancel_pages(id, reason)?;
        self.tx.set_foreground(id, None)?;
        self.changes.insert(Change::Crawl(id));
        self.announce_crawl(id, Notice::Changed)?;
        self.tidy_crawl(id)
    }

    /// Cancels as many waiting pages of a crawl as one turn may: those that never started first.
    pub(crate) fn cancel_some(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        let unbegun = self
            .tx
            .cancel_some_unbegun(id, reason, self.now, PAGES_PER_TURN)?;
        if unbegun == 0 {
            for page in self.tx.some_queued(id, BEGUN_PAGES_PER_TURN)? {
                self.cancel_snapshot(id, page, reason)?;
            }
        }
        Ok(())
    }

    /// Cancels the open pages of a crawl.
    ///
    /// # Errors
    /// If many pages wait, which further turns cancel in pieces before this step is repeated.
    fn cancel_pages(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        if self.waiting_in(id)? > FOLLOWED_PAGES_MAX {
            return Err(TurnError::ManyPages(id, reason.to_owned()));
        }
        for snapshot in self.tx.open_snapshots(id)? {
            self.cancel_snapshot(id, snapshot, reason)?;
        }
        Ok(())
    }

    /// Ends all units of a crawl that became final early.
    fn end_crawl(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.tx
            .fail_open_results(Owner::Crawl(id), reason, self.now)?;
        self.cancel_pages(id, reason)?;
        self.changes.insert(Change::Crawl(id));
        self.engine.forget(id);
        self.act(EngineAction::Dismiss(Owner::Crawl(id)));
        // systemd 257 does not stop a frozen unit.
        for unit in self.tx.units_once_frozen(id)? {
            self.act(UnitAction::Thaw(unit));
        }
        self.act(ReplyAction::Unpark);
        self.act(UnitAction::StopSlice(self.engine.names.crawl_slice(id)));
        if !self.tx.has_open_runs(id)? {
            self.act(CallerAction::ReleaseHolds(id));
        }
        Ok(())
    }

    /// Cancels one snapshot and stops its units.
    pub(crate) fn cancel_snapshot(
        &mut self,
        crawl: CrawlId,
        id: SnapshotId,
        reason: &str,
    ) -> TurnResult<()> {
        let owner = Owner::Snapshot(id);
        self.tx
            .step_snapshot(id, Step::Cancel, None, Some(reason), self.now)?;
        self.tx.fail_open_results(owner, reason, self.now)?;
        self.stop_units_of(owner)?;
        self.changes.insert(Change::Snapshot { crawl, id });
        self.announce_snapshot(id, Notice::Cancelled)
    }

    /// Stops the worker and the hooks of a snapshot, and rejects the token of the worker.
    pub(crate) fn stop_units_of(&mut self, owner: Owner) -> TurnResult<()> {
        for run in self.tx.open_runs_of(owner)? {
            self.thaw(&run);
            let (unit, how) = (run.unit, Release::Stop);
            self.act(UnitAction::Release { unit, how });
        }
        self.act(EngineAction::Dismiss(owner));
        self.act(ReplyAction::Unpark);
        Ok(())
    }

    pub(crate) fn kill_hooks(&mut self, owner: Owner) -> TurnResult<()> {
        for run in self.tx.open_runs_of(owner)? {
            if run.kind == UnitKind::Hook {
                self.thaw(&run);
                let (whom, signal) = (Whom::All, SIGKILL);
                self.act(UnitAction::Signal {
                    unit: run.unit,
                    whom,
                    signal,
                });
            }
        }
        Ok(())
    }

    /// Answers a crawl's worker when no snapshot is open, and stops the slice of a final crawl
    /// without units; see [`tidy`].
    pub(crate) fn tidy_crawl(&mut self, id: CrawlId) -> TurnResult<()> {
        let status = self.tx.status_of(Owner::Crawl(id))?;
        let open = self.tx.awaits_pages(id)?;
        let tidy = tidy(status, open, self.tx.has_open_runs(id)?);
        if tidy.snapshots_done {
            self.tx.release_crawl(id)?;
            self.act(ReplyAction::SnapshotsDone(id));
        }
        if tidy.stop_slice {
            self.engine.forget(id);
            self.act(UnitAction::StopSlice(self.engine.names.crawl_slice(id)));
            self.act(CallerAction::ReleaseHolds(id));
        }
        Ok(())
    }
}
