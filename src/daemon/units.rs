//! What becomes of units: their starts, their ends, and what is found at a start of our own.

use super::action::Action;
use super::event::{Evidence, Refusal};
use super::turn::{Change, Turn, TurnError, TurnResult};
use crate::bus::work::Ended;
use crate::journal::message;
use crate::manager::{ErrorKind, Hint, Listed, ManagerError, Release, Whom};
use crate::model::{CrawlId, Lifecycle, Outcome, Owner, Reading, RunId, SnapshotId, Step};
use crate::plan::{LiveUnit, OpenRun, Repair, WorkerEnd, reconcile, settle_worker};
use crate::store::RunRow;
use crate::unit::UnitKind;

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

impl Turn<'_> {
    pub(super) fn hint(&mut self, hint: &Hint) -> TurnResult<()> {
        match hint {
            Hint::Exited {
                unit,
                code,
                status,
                result,
            } => {
                let (code, status, result) = (*code, *status, result.clone());
                self.look(
                    unit,
                    Some(Evidence {
                        code,
                        status,
                        result,
                    }),
                )
            }
            Hint::JobRemoved { unit, result } if result != "done" => self.look(unit, None),
            Hint::JobRemoved { .. } => Ok(()),
            Hint::Removed { unit } => self.look(unit, None),
            Hint::Reloaded => {
                self.actions.push(Action::List);
                Ok(())
            }
            // Without systemd there is nothing to do; the service starts anew and reconciles.
            Hint::Disconnected => {
                self.actions
                    .push(Action::Fail("the connection to systemd is gone"));
                Ok(())
            }
        }
    }

    fn look(&mut self, unit: &str, evidence: Option<Evidence>) -> TurnResult<()> {
        if let Some(run) = self.tx.open_run(unit)? {
            let unit = unit.to_owned();
            self.actions.push(Action::Read {
                run: run.id,
                unit,
                evidence,
                adopt: false,
            });
        }
        Ok(())
    }

    pub(super) fn started(
        &mut self,
        id: RunId,
        unit: &str,
        result: &Result<(), ManagerError>,
    ) -> TurnResult<()> {
        let Some(run) = self.tx.open_run_by_id(id)? else {
            return Ok(());
        };
        match result {
            Ok(()) => {
                self.tx.set_run_running(id)?;
                // It may have come too late: somebody cancelled in between.
                if self.tx.status_of(run.owner)?.is_final() {
                    let unit = unit.to_owned();
                    self.actions.push(Action::Signal {
                        unit,
                        whom: Whom::All,
                        signal: SIGKILL,
                    });
                }
                Ok(())
            }
            Err(error) => match error.kind {
                // It is started again when the one before is gone.
                ErrorKind::UnitExists => Ok(()),
                // Nobody knows whether it got through: what is there will tell.
                ErrorKind::Unreachable => {
                    self.actions.push(Action::List);
                    Ok(())
                }
                _ => {
                    let why = Outcome::NotStarted(error.why.clone());
                    self.ended(&run, &why, &Reading::default(), false)
                }
            },
        }
    }

    pub(super) fn read(
        &mut self,
        id: RunId,
        unit: &str,
        evidence: Option<&Evidence>,
        result: &Result<Box<Reading>, ManagerError>,
        stopping: bool,
        adopt: bool,
    ) -> TurnResult<()> {
        let Some(run) = self.tx.open_run_by_id(id)? else {
            return Ok(());
        };
        let mut reading = match result {
            Ok(reading) => (**reading).clone(),
            // No answer is no outcome: the connection's end will be heard of.
            Err(error) => {
                tracing::warn!("{error}, ignoring");
                return Ok(());
            }
        };
        let gone = reading.load_state == "not-found";
        if gone && run.starting {
            return Ok(());
        }
        if !gone && self.is_leftover(unit, &reading)? {
            // At a start of ours nothing else can come of it: the run's own unit never was.
            return match adopt {
                true => self.ended(&run, &Outcome::Lost, &reading, true),
                false => Ok(()),
            };
        }
        if gone && let Some(evidence) = evidence {
            reading.exec_main_code = evidence.code;
            reading.exec_main_status = evidence.status;
            reading.result = evidence.result.clone();
            reading.active_state = "failed".to_owned();
        }
        let Some(outcome) = Outcome::of(&reading) else {
            if run.starting {
                self.tx.set_run_running(id)?;
            }
            return Ok(());
        };
        let killed = matches!(outcome, Outcome::Signal(_) | Outcome::Lost);
        if stopping && killed {
            // The machine goes down; what was under way is taken up after the next boot.
            return Ok(());
        }
        self.ended(&run, &outcome, &reading, !gone)
    }

    /// Whether what was read is the invocation before, whose outcome is recorded already.
    fn is_leftover(&self, unit: &str, reading: &Reading) -> TurnResult<bool> {
        let before = self.tx.ended_invocation(unit)?;
        Ok(before.is_some_and(|before| before == reading.invocation))
    }

    /// Records the end of a run and what follows from it.
    pub(super) fn ended(
        &mut self,
        run: &RunRow,
        outcome: &Outcome,
        reading: &Reading,
        loaded: bool,
    ) -> TurnResult<()> {
        if !self.tx.end_run(run.id, outcome, reading, self.now)? {
            return Ok(());
        }
        self.log_end(run, outcome);
        let ended_at = reading.ended.or(Some(self.now));
        let started_at = reading.started.or(run.started_at);
        let ended = Ended {
            outcome: outcome.clone(),
            started_at,
            ended_at,
        };
        self.actions.push(Action::Settle { run: run.id, ended });
        if loaded {
            let how = Release::for_reading(reading);
            self.actions.push(Action::Release {
                unit: run.unit.clone(),
                how,
            });
        }
        match run.owner {
            _ if run.kind == UnitKind::Hook => self.hook_ended(run),
            Owner::Crawl(id) => self.crawl_worker_ended(id, outcome),
            Owner::Snapshot(id) => self.snapshot_worker_ended(id, outcome),
        }
    }

    /// A hook whose worker will not come back for it: its crawl or snapshot is over.
    fn hook_ended(&mut self, run: &RunRow) -> TurnResult<()> {
        if self.tx.status_of(run.owner)?.is_final() {
            self.tx
                .fail_open_results(run.owner, "its crawl or snapshot was given up", self.now)?;
            self.tidy_crawl(run.crawl)?;
        }
        Ok(())
    }

    fn worker_end(&self, owner: Owner, attempts: u32, outcome: &Outcome) -> TurnResult<WorkerEnd> {
        let unfinished = self
            .tx
            .results(owner)?
            .iter()
            .any(|result| !result.status.is_final());
        Ok(WorkerEnd {
            outcome: outcome.clone(),
            stopped_by_hand: *outcome == Outcome::Signal(SIGTERM),
            attempts,
            unfinished,
        })
    }

    fn snapshot_worker_ended(&mut self, id: SnapshotId, outcome: &Outcome) -> TurnResult<()> {
        let snapshot = self.snapshot_of(id)?;
        let owner = Owner::Snapshot(id);
        self.actions.push(Action::Dismiss(owner));
        if snapshot.status == Lifecycle::Started {
            let end = self.worker_end(owner, snapshot.attempts, outcome)?;
            let settled = settle_worker(&end, &self.engine.backoff(), self.now, self.jitter);
            let reason = settled.reason.as_deref();
            self.tx
                .step_snapshot(id, settled.step, settled.retry_at, reason, self.now)?;
            if settled.step != Step::Requeue {
                self.tx
                    .fail_open_results(owner, reason.unwrap_or("not finished"), self.now)?;
                self.kill_hooks(owner)?;
            }
            self.log_snapshot(id, snapshot.crawl, settled.step, reason);
            self.changes.insert(Change::Snapshot {
                crawl: snapshot.crawl,
                id,
            });
        }
        self.tidy_crawl(snapshot.crawl)
    }

    fn crawl_worker_ended(&mut self, id: CrawlId, outcome: &Outcome) -> TurnResult<()> {
        let crawl = self.crawl_of(id)?;
        let owner = Owner::Crawl(id);
        self.actions.push(Action::Dismiss(owner));
        if crawl.status == Lifecycle::Started {
            let end = self.worker_end(owner, crawl.attempts, outcome)?;
            let settled = settle_worker(&end, &self.engine.backoff(), self.now, self.jitter);
            match settled.step {
                Step::Requeue => {
                    let reason = settled.reason.as_deref();
                    self.tx
                        .step_crawl(id, Step::Requeue, settled.retry_at, reason, self.now)?;
                }
                Step::Seal if settled.reason.is_none() => self.seal_crawl(id)?,
                Step::Seal => self.give_up_crawl(id, settled.reason.as_deref().unwrap_or(""))?,
                _ => self.cancel_crawl(id, settled.reason.as_deref().unwrap_or(""))?,
            }
            self.changes.insert(Change::Crawl(id));
        }
        self.tidy_crawl(id)
    }

    fn seal_crawl(&mut self, id: CrawlId) -> TurnResult<()> {
        let counts = self.tx.counts("result", Some(id))?;
        let failed = counts.get("failed").copied().unwrap_or(0);
        let reason = (failed > 0).then(|| match failed {
            1 => "1 result failed".to_owned(),
            n => format!("{n} results failed"),
        });
        self.tx
            .step_crawl(id, Step::Seal, None, reason.as_deref(), self.now)?;
        let remark = reason
            .map(|reason| format!(", {reason}"))
            .unwrap_or_default();
        tracing::info!(
            message_id = message::CRAWL_SEALED,
            archivist_crawl_id = id.0,
            "crawl {id} is complete{remark}"
        );
        Ok(())
    }

    /// Seals a crawl that cannot go on, with the reason, and gives up its snapshots.
    pub(super) fn give_up_crawl(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.tx
            .step_crawl(id, Step::Seal, None, Some(reason), self.now)?;
        tracing::error!(
            message_id = message::CRAWL_SEALED,
            archivist_crawl_id = id.0,
            "crawl {id} is given up: {reason}"
        );
        self.drop_open_snapshots(id, reason)?;
        self.changes.insert(Change::Crawl(id));
        self.tidy_crawl(id)
    }

    /// Cancels a crawl and everything of it that is not final.
    pub(super) fn cancel_crawl(&mut self, id: CrawlId, reason: &str) -> TurnResult<()> {
        self.tx
            .step_crawl(id, Step::Cancel, None, Some(reason), self.now)?;
        tracing::info!(
            message_id = message::CRAWL_CANCELLED,
            archivist_crawl_id = id.0,
            "crawl {id} is cancelled: {reason}"
        );
        self.tx
            .fail_open_results(Owner::Crawl(id), reason, self.now)?;
        self.drop_open_snapshots(id, reason)?;
        self.changes.insert(Change::Crawl(id));
        self.actions.push(Action::Dismiss(Owner::Crawl(id)));
        self.actions
            .push(Action::StopSlice(self.engine.names.crawl_slice(id)));
        Ok(())
    }

    fn drop_open_snapshots(&mut self, crawl: CrawlId, reason: &str) -> TurnResult<()> {
        use Lifecycle::*;
        for id in self.tx.snapshots_in(crawl, &[Queued, Started, Paused])? {
            self.cancel_snapshot(crawl, id, reason)?;
        }
        Ok(())
    }

    /// Cancels one snapshot and ends what runs of it.
    pub(super) fn cancel_snapshot(
        &mut self,
        crawl: CrawlId,
        id: SnapshotId,
        reason: &str,
    ) -> TurnResult<()> {
        let owner = Owner::Snapshot(id);
        self.tx
            .step_snapshot(id, Step::Cancel, None, Some(reason), self.now)?;
        self.tx.fail_open_results(owner, reason, self.now)?;
        for run in self.tx.open_runs_of(owner)? {
            self.actions.push(Action::Stop { unit: run.unit });
        }
        self.actions.push(Action::Dismiss(owner));
        self.changes.insert(Change::Snapshot { crawl, id });
        Ok(())
    }

    fn kill_hooks(&mut self, owner: Owner) -> TurnResult<()> {
        for run in self.tx.open_runs_of(owner)? {
            if run.kind == UnitKind::Hook {
                let (whom, signal) = (Whom::All, SIGKILL);
                self.actions.push(Action::Signal {
                    unit: run.unit,
                    whom,
                    signal,
                });
            }
        }
        Ok(())
    }

    /// Tells a crawl's worker that its snapshots are done, and once the crawl itself is over and
    /// nothing of it runs any more, lets its slice go.
    pub(super) fn tidy_crawl(&mut self, id: CrawlId) -> TurnResult<()> {
        if !self.tx.has_open_snapshots(id)? {
            self.actions.push(Action::SnapshotsDone(id));
        }
        if self.crawl_of(id)?.status.is_final() && !self.tx.has_open_runs(id)? {
            self.engine.forget(id);
            self.actions
                .push(Action::StopSlice(self.engine.names.crawl_slice(id)));
        }
        Ok(())
    }

    /// Compares what is remembered with what systemd has.
    pub(super) fn listed(&mut self, result: &Result<Vec<Listed>, ManagerError>) -> TurnResult<()> {
        let listed = match result {
            Ok(listed) => listed,
            Err(error) => {
                let text = format!("cannot compare runs with units: {error}");
                return Err(TurnError::Refused(Refusal::Failed(text)));
            }
        };
        let open = self.tx.open_runs()?;
        let runs: Vec<OpenRun> = open
            .iter()
            .map(|run| OpenRun {
                id: run.id,
                unit: run.unit.clone(),
                starting: run.starting,
                boot: run.boot.clone(),
            })
            .collect();
        let live: Vec<LiveUnit> = listed
            .iter()
            .map(|unit| LiveUnit {
                unit: unit.name.clone(),
                active_state: unit.active_state.clone(),
            })
            .collect();
        let (mut adopted, mut lost) = (0, 0);
        for repair in reconcile(&runs, &live, &self.engine.boot) {
            match repair {
                Repair::Adopt(id) => {
                    adopted += 1;
                    let Some(run) = open.iter().find(|run| run.id == id) else {
                        continue;
                    };
                    self.tx.set_run_running(id)?;
                    let unit = run.unit.clone();
                    let (evidence, adopt) = (None, true);
                    self.actions.push(Action::Read {
                        run: id,
                        unit,
                        evidence,
                        adopt,
                    });
                }
                Repair::Lose(id) => {
                    lost += 1;
                    let Some(run) = open.iter().find(|run| run.id == id) else {
                        continue;
                    };
                    self.ended(run, &Outcome::Lost, &Reading::default(), false)?;
                }
                Repair::Release(unit) => {
                    self.actions.push(Action::Release {
                        unit: unit.clone(),
                        how: Release::Stop,
                    });
                    self.actions.push(Action::Release {
                        unit,
                        how: Release::Reset,
                    });
                }
            }
        }
        if adopted + lost > 0 {
            tracing::info!(
                message_id = message::RECOVERED,
                archivist_adopted = adopted,
                archivist_lost = lost,
                "took up what was under way: {adopted} units adopted, {lost} lost"
            );
        }
        Ok(())
    }

    fn log_end(&self, run: &RunRow, outcome: &Outcome) {
        let id = match outcome {
            Outcome::Lost => message::RUN_LOST,
            Outcome::TimeLimit if run.kind == UnitKind::Hook => message::HOOK_TIME_LIMIT,
            Outcome::OutOfMemory if run.kind == UnitKind::Hook => message::HOOK_OUT_OF_MEMORY,
            Outcome::Exit(0) => return,
            _ if run.kind == UnitKind::Hook => return,
            _ => message::WORKER_DIED,
        };
        let snapshot = match run.owner {
            Owner::Snapshot(id) => Some(id.0),
            Owner::Crawl(_) => None,
        };
        tracing::warn!(
            message_id = id,
            archivist_crawl_id = run.crawl.0,
            archivist_snapshot_id = snapshot,
            archivist_plugin = run.plugin.as_deref(),
            archivist_hook = run.hook.as_deref(),
            archivist_unit = run.unit.as_str(),
            archivist_outcome = %outcome,
            "{}: {outcome}",
            run.unit
        );
    }

    fn log_snapshot(&self, id: SnapshotId, crawl: CrawlId, step: Step, reason: Option<&str>) {
        let (snapshot, crawl) = (id.0, crawl.0);
        match (step, reason) {
            (Step::Seal, None) => tracing::info!(
                archivist_crawl_id = crawl,
                archivist_snapshot_id = snapshot,
                "snapshot {id} is sealed"
            ),
            (Step::Seal, Some(reason)) => tracing::error!(
                message_id = message::SNAPSHOT_QUARANTINED,
                archivist_crawl_id = crawl,
                archivist_snapshot_id = snapshot,
                "snapshot {id} is put aside: {reason}"
            ),
            (_, reason) => tracing::warn!(
                archivist_crawl_id = crawl,
                archivist_snapshot_id = snapshot,
                "snapshot {id}: {}",
                reason.unwrap_or("its worker ended")
            ),
        }
    }
}
