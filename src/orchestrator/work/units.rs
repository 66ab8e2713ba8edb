//! Units: answers to their starts, their ends, and the comparison with runs at the orchestrator's
//! own start.

use crate::main_loop::action::Action;
use crate::main_loop::event::ReadingContext;
use crate::main_loop::log::{LogEntry, Problem};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::RunRow;
use archivist_core::model::{AnyId, DEPENDENCY, Lifecycle, Outcome, Owner, Reading, RunId};
use archivist_core::plan::{
    Ending, Evidence, LiveUnit, OpenRun, Repair, RunningUnit, StartError, Started, UnitSeen,
    UnitState, reconcile, recorded_outcome, running_unit, started, tidy, unit_state,
};
use archivist_core::unit::{UnitKind, UnitSpec};
use archivist_shared::bus::call::Reply;
use archivist_shared::systemd::{ErrorKind, Hint, LoadedUnit, ManagerError, Release};

/// systemd's answer to a start, as the plan takes it.
pub(crate) fn start_answer(result: &Result<(), ManagerError>) -> Result<(), StartError> {
    let error = match result {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    Err(match error.kind {
        ErrorKind::UnitExists => StartError::UnitExists,
        ErrorKind::Unreachable => StartError::Unreachable,
        ErrorKind::GoingDown => StartError::GoingDown,
        ErrorKind::Machine => StartError::Machine,
        ErrorKind::NoSuchUnit | ErrorKind::Busy | ErrorKind::Refused => StartError::Refused,
    })
}

/// Why systemd did not start a unit; empty if it did.
fn reason(result: &Result<(), ManagerError>) -> String {
    let error = result.as_ref().err();
    error.map(|error| error.why.clone()).unwrap_or_default()
}

impl Turn<'_> {
    pub(crate) fn hint(&mut self, hint: &Hint) -> TurnResult<()> {
        match hint {
            Hint::Exited {
                unit,
                code,
                status,
                result,
            } => {
                let (code, status, result) = (*code, *status, result.clone());
                let evidence = Evidence {
                    code,
                    status,
                    result,
                };
                self.look(unit, Some(evidence)).map(drop)
            }
            // There was no process, and there is no unit: this is the only evidence.
            Hint::JobRemoved { unit, result } if result == DEPENDENCY => {
                let evidence = Evidence {
                    code: 0,
                    status: 0,
                    result: result.clone(),
                };
                self.look(unit, Some(evidence)).map(drop)
            }
            Hint::JobRemoved { unit, result } if result != "done" => {
                self.look(unit, None).map(drop)
            }
            Hint::JobRemoved { unit, .. } => self.freeze_if_paused(unit),
            Hint::Removed { unit } => {
                if !self.look(unit, None)? {
                    self.actions.push(Action::Forget(unit.clone()));
                }
                Ok(())
            }
            Hint::Reloaded => {
                self.actions.push(Action::List);
                Ok(())
            }
            // Without systemd no work is possible; the service restarts and reconciles.
            Hint::Disconnected => {
                self.actions
                    .push(Action::Fail("lost the connection to systemd"));
                Ok(())
            }
        }
    }

    /// Queues the reading of a unit whose run has not ended. Returns whether there is such a run.
    fn look(&mut self, unit: &str, evidence: Option<Evidence>) -> TurnResult<bool> {
        if let Some(run) = self.tx.open_run(unit)? {
            self.actions.push(Action::Read {
                run: run.id,
                unit: unit.to_owned(),
                evidence,
            });
            Ok(true)
        } else if let Some(check) = self.tx.check_of_unit(unit)? {
            self.actions.push(Action::Read {
                run: check.id,
                unit: unit.to_owned(),
                evidence,
            });
            Ok(true)
        } else if let Some(transfer) = self.tx.transfer_of_unit(unit)? {
            self.actions.push(Action::Read {
                run: transfer.run,
                unit: unit.to_owned(),
                evidence,
            });
            Ok(true)
        } else {
            Ok(false)
        }
    }

    /// Queues the start of a unit whose run is recorded, with `stdin` as its standard input, and
    /// only as long as `watch` is declared.
    pub(crate) fn start(
        &mut self,
        run: RunId,
        mut spec: UnitSpec,
        stdin: Option<Vec<u8>>,
        stdout: Output,
        watch: Option<String>,
    ) {
        let has_input = stdin.is_some();
        spec.stdin = has_input.then(|| self.engine.input_path(&spec.name, run));
        self.actions.push(Action::Start {
            run,
            spec: Box::new(spec),
            stdin,
            stdout,
            watch,
        });
    }

    pub(crate) fn started(
        &mut self,
        id: RunId,
        result: &Result<(), ManagerError>,
    ) -> TurnResult<()> {
        let Some(run) = self.tx.open_run_by_id(id)? else {
            return self.check_started(id, result);
        };
        match started(start_answer(result)) {
            Started::Running => {
                self.tx.set_run_running(id)?;
                // The crawl or snapshot may have been cancelled in the meantime.
                if self.running_unit(&run)? == RunningUnit::Stop {
                    self.stop_unit(&run);
                }
                Ok(())
            }
            Started::Waiting => Ok(()),
            Started::Reconcile => {
                self.actions.push(Action::List);
                Ok(())
            }
            Started::Lost => {
                self.tx.forgive_attempt(&run)?;
                self.ended(&run, &Outcome::Lost, &Reading::default(), false)
            }
            Started::Failed => {
                let outcome = Outcome::NotStarted(reason(result));
                self.ended(&run, &outcome, &Reading::default(), false)
            }
            Started::Unable => {
                let outcome = Outcome::unable_to_start(&reason(result));
                self.ended(&run, &outcome, &Reading::default(), false)
            }
        }
    }

    pub(crate) fn read(
        &mut self,
        id: RunId,
        unit: &str,
        seen: &ReadingContext<'_>,
        result: &Result<Box<Reading>, ManagerError>,
    ) -> TurnResult<()> {
        let Some(run) = self.tx.open_run_by_id(id)? else {
            return self.check_read(id, seen, result);
        };
        let reading = match result {
            Ok(reading) => reading,
            // Without an answer there is no outcome: a lost connection is an event of its own.
            Err(error) => {
                self.log_problem(Problem::UnitNotRead(error.to_string()));
                return Ok(());
            }
        };
        let unit_seen = UnitSeen {
            reading,
            evidence: seen.evidence,
            early: seen.early,
            stopping: seen.stopping,
            leftover: self.is_leftover(unit, reading)?,
        };
        match unit_state(&unit_seen) {
            UnitState::Unknown => Ok(()),
            UnitState::NeverStarted => {
                self.ended(&run, &Outcome::Lost, &Reading::default(), false)?;
                let (unit, how) = (unit.to_owned(), Release::for_reading(reading));
                self.actions.push(Action::Release { unit, how });
                Ok(())
            }
            UnitState::Running => {
                if run.starting {
                    self.tx.set_run_running(id)?;
                }
                match self.running_unit(&run)? {
                    RunningUnit::Stop => self.stop_unit(&run),
                    RunningUnit::Freeze => self.freeze(&run)?,
                    RunningUnit::Thaw => self.thaw(&run),
                    RunningUnit::Leave => {}
                }
                Ok(())
            }
            UnitState::Ended {
                outcome,
                reading,
                loaded,
            } => self.ended(&run, &outcome, &reading, loaded),
        }
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
        self.actions.push(Action::Release { unit, how });
    }

    /// Whether the unit is the invocation of an earlier run, whose outcome is recorded.
    fn is_leftover(&self, unit: &str, reading: &Reading) -> TurnResult<bool> {
        let before = self.tx.ended_invocation(unit)?;
        Ok(before.is_some_and(|before| before == reading.invocation))
    }

    /// Records the end of a run and what follows from it.
    pub(crate) fn ended(
        &mut self,
        run: &RunRow,
        outcome: &Outcome,
        reading: &Reading,
        loaded: bool,
    ) -> TurnResult<()> {
        let ending = Ending {
            interrupted: run.interrupted,
            short_of_disk: run.short_of_disk,
            cancelled: self.tx.status_of(run.owner)? == Lifecycle::Cancelled,
            stopped: run.kind == UnitKind::Hook && reading.was_stopped,
            expired: self.is_expired(run),
        };
        let outcome = &recorded_outcome(outcome, ending);
        if !self.tx.end_run(run.id, outcome, reading, self.now)? {
            return Ok(());
        }
        let input = self.engine.input_path(&run.unit, run.id);
        self.actions.push(Action::Remove(input));
        self.log_end(run, outcome, reading)?;
        self.forgive_limit(run, outcome)?;
        self.forgive_late(run, outcome)?;
        let ended_at = reading.ended.or(Some(self.now));
        let started_at = reading.started.or(run.started_at);
        let run_ended = RunRow {
            outcome: Some(outcome.clone()),
            started_at,
            ended_at,
            ..run.clone()
        };
        self.settle(&run_ended)?;
        if loaded {
            self.thaw(run);
            let how = Release::for_reading(reading);
            self.actions.push(Action::Release {
                unit: run.unit.clone(),
                how,
            });
        } else {
            self.actions.push(Action::Forget(run.unit.clone()));
        }
        match run.owner {
            _ if run.kind == UnitKind::Hook => self.hook_ended(run),
            Owner::Crawl(id) => self.crawl_worker_ended(id, &run_ended),
            Owner::Snapshot(id) => self.snapshot_worker_ended(id, &run_ended),
        }?;
        let owners = [run.owner, Owner::Crawl(run.crawl)].map(AnyId::Owner);
        for of in owners.into_iter().chain([AnyId::Run(run.id)]) {
            if self.is_over(of)? {
                self.actions.push(Action::UnitsEnded(of));
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
            self.actions.push(Action::AwaitUnits { of, reply });
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
                self.actions.push(Action::StopSlice(unit.name.clone()));
            }
        }
        Ok(())
    }

    /// Compares open runs with loaded units.
    pub(crate) fn listed(
        &mut self,
        result: &Result<Vec<LoadedUnit>, ManagerError>,
    ) -> TurnResult<()> {
        let listed = match result {
            Ok(listed) => listed,
            Err(error) => {
                self.log_problem(Problem::UnitsNotListed(error.to_string()));
                let why = "failed to compare runs with units";
                self.actions.push(Action::Fail(why));
                return Ok(());
            }
        };
        let open = self.tx.open_runs()?;
        let checks = self.tx.started_checks()?;
        let transfers = self.tx.open_transfers()?;
        let of_transfers = transfers.iter().map(|run| (run.run, &run.unit, &run.boot));
        let of_runs = open.iter().map(|run| (run.id, &run.unit, &run.boot));
        let of_checks = checks.iter().map(|run| (run.id, &run.unit, &run.boot));
        let runs: Vec<OpenRun> = of_runs
            .chain(of_checks)
            .chain(of_transfers)
            .map(|(id, unit, boot)| OpenRun {
                id,
                unit: unit.clone(),
                unanswered: self.unanswered.contains(&id),
                boot: boot.clone(),
            })
            .collect();
        let live: Vec<LiveUnit> = listed
            .iter()
            .filter(|unit| self.engine.names.parse(&unit.name).is_some())
            .map(|unit| LiveUnit {
                unit: unit.name.clone(),
                active_state: unit.active_state.clone(),
            })
            .collect();
        let inputs = runs
            .iter()
            .map(|run| self.engine.input_path(&run.unit, run.id))
            .collect();
        self.actions.push(Action::KeepInputs(inputs));
        let (mut adopted, mut lost, mut stray) = (0, 0, 0);
        for repair in reconcile(&runs, &live, &self.engine.boot) {
            match repair {
                Repair::Adopt(id) | Repair::Check(id) => {
                    match repair {
                        Repair::Adopt(_) => adopted += 1,
                        _ => lost += 1,
                    }
                    let Some(run) = runs.iter().find(|run| run.id == id) else {
                        continue;
                    };
                    let unit = run.unit.clone();
                    self.actions.push(Action::Read {
                        run: id,
                        unit,
                        evidence: None,
                    });
                }
                Repair::Lose(id) => {
                    lost += 1;
                    let Some(run) = open.iter().find(|run| run.id == id) else {
                        self.check_lost(id)?;
                        self.transfer_lost(id)?;
                        continue;
                    };
                    self.tx.forgive_attempt(run)?;
                    self.ended(run, &Outcome::Lost, &Reading::default(), false)?;
                }
                Repair::Release(unit) => {
                    stray += 1;
                    self.actions.push(Action::Thaw(unit.clone()));
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
        self.stop_idle_slices(listed)?;
        if adopted + lost + stray > 0 {
            self.log(LogEntry::Recovered {
                adopted,
                lost,
                released: stray,
            });
        }
        Ok(())
    }
}
