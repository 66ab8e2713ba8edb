//! The end of a transfer, and what follows from it.

use crate::main_loop::action::Action;
use crate::main_loop::event::ReadingContext;
use crate::main_loop::log::{LogEntry, Problem, StoreLog};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::{STORE_TEST, TransferRow};
use crate::transfer::files::{CollectedTransfer, TransferEnd, record_path};
use crate::work::units::start_answer;
use archivist_core::model::{Outcome, Reading, RunId};
use archivist_core::plan::{Started, UnitSeen, UnitState, started, unit_state};
use archivist_core::store::{Copy, CopyState, End, Record, Retries, Task};
use archivist_shared::bus::call::Refusal;
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::{ManagerError, Release};

/// Pages that are kept for users after they were restored.
const RESTORED_MAX: u32 = 100;

impl Turn<'_> {
    pub(crate) fn transfer_started(
        &mut self,
        run: RunId,
        result: &Result<(), ManagerError>,
    ) -> TurnResult<()> {
        let Some(transfer) = self.tx.open_transfer(run)? else {
            return Ok(());
        };
        match started(start_answer(result)) {
            Started::Running => self.transfer_runs(&transfer),
            Started::Waiting => Ok(()),
            Started::Reconcile => {
                self.actions.push(Action::List);
                Ok(())
            }
            Started::Lost | Started::Unable => self.transfer_over(&transfer, &End::Lost),
            Started::Failed => {
                let why = result.as_ref().err().map(|error| error.why.clone());
                let outcome = Outcome::NotStarted(why.unwrap_or_default());
                self.transfer_over(&transfer, &End::Failed(outcome.to_string()))
            }
        }
    }

    fn transfer_runs(&mut self, transfer: &TransferRow) -> TurnResult<()> {
        let running = Copy {
            state: CopyState::Running,
            ..transfer.copy.clone()
        };
        Ok(self.tx.set_copy(transfer.snapshot, &running)?)
    }

    pub(crate) fn transfer_read(
        &mut self,
        run: RunId,
        seen: &ReadingContext<'_>,
        result: &Result<Box<Reading>, ManagerError>,
    ) -> TurnResult<()> {
        let Some(transfer) = self.tx.open_transfer(run)? else {
            return Ok(());
        };
        let reading = match result {
            Ok(reading) => reading,
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
            // Transfers of a page share the name of their unit.
            leftover: transfer.ended.as_ref() == Some(&reading.invocation),
        };
        match unit_state(&unit_seen) {
            UnitState::Unknown => {}
            UnitState::NeverStarted => {
                self.transfer_over(&transfer, &End::Lost)?;
                let how = Release::for_reading(reading);
                let unit = transfer.unit;
                self.actions.push(Action::Release { unit, how });
            }
            UnitState::Running => self.transfer_runs(&transfer)?,
            UnitState::Ended {
                outcome,
                reading,
                loaded,
            } => self
                .actions
                .push(Action::CollectTransfer(Box::new(TransferEnd {
                    run,
                    outcome,
                    reading: *reading,
                    loaded,
                }))),
        }
        Ok(())
    }

    /// The unit of a transfer has ended, and its record was read.
    pub(crate) fn transfer_collected(&mut self, collected: &CollectedTransfer) -> TurnResult<()> {
        let end = &collected.end;
        let Some(transfer) = self.tx.open_transfer(end.run)? else {
            return Ok(());
        };
        let how = end_of(&end.outcome, collected.record.as_ref());
        self.transfer_over(&transfer, &how)?;
        self.tx
            .note_invocation(transfer.snapshot, &end.reading.invocation)?;
        let unit = transfer.unit;
        self.actions.push(if end.loaded {
            let how = Release::for_reading(&end.reading);
            Action::Release { unit, how }
        } else {
            Action::Forget(unit)
        });
        Ok(())
    }

    /// The unit of a transfer is gone, with an earlier boot.
    pub(crate) fn transfer_lost(&mut self, run: RunId) -> TurnResult<()> {
        match self.tx.open_transfer(run)? {
            Some(transfer) => self.transfer_over(&transfer, &End::Lost),
            None => Ok(()),
        }
    }

    fn transfer_over(&mut self, transfer: &TransferRow, end: &End) -> TurnResult<()> {
        let (id, before) = (transfer.snapshot, &transfer.copy);
        let retries = Retries {
            backoff: self.engine.backoff(),
            now: self.now,
            jitter: self.jitter,
        };
        let after = before.ended(end, &retries);
        self.tx.set_copy(id, &after)?;
        if *end != End::Lost {
            self.log_transfer(transfer, &after);
        }
        let record = record_path(&self.engine.scope, transfer.run);
        let input = self.engine.input_path(&transfer.unit, transfer.run);
        self.actions.extend([record, input].map(Action::Remove));
        let ended = Ended::without_run(Outcome::Exit(0));
        let run = transfer.run;
        self.actions.push(Action::Settle { run, ended });
        self.actions.push(Action::StatusChanged);
        if before.task == Task::Get && after.is_local {
            self.tx.limit_restored(RESTORED_MAX, self.now)?;
            self.tx.put_off_snapshot(id, self.now, None)?;
        }
        self.answer_waiting(transfer, &after)
    }

    fn log_transfer(&mut self, transfer: &TransferRow, after: &Copy) {
        let (id, task) = (transfer.snapshot, transfer.copy.task);
        let log = match &after.reason {
            Some(reason) => StoreLog::Failed {
                unit: transfer.unit.clone(),
                reason: reason.clone(),
                retry_at: after.due_at,
            },
            None => StoreLog::Done,
        };
        self.log(LogEntry::Store(id, task, log));
    }

    /// Answers users that wait for restored files, or for the test of the store.
    fn answer_waiting(&mut self, transfer: &TransferRow, after: &Copy) -> TurnResult<()> {
        let id = transfer.snapshot;
        let failure = after.reason.clone();
        let answer = match (id, failure) {
            (STORE_TEST, None) => Ok(self.store_name().unwrap_or_default()),
            (STORE_TEST, Some(why)) => Err(Refusal::Failed(why)),
            _ if after.is_usable() => Ok(serde_json::to_string(&self.copy_document(id, after))?),
            // They are restored next.
            _ if after.state == CopyState::Waiting => return Ok(()),
            (_, why) => Err(Refusal::Failed(why.unwrap_or_default())),
        };
        self.actions.push(Action::CopyReady { id, answer });
        Ok(())
    }
}

/// What the end of the unit and the record say together: only a program that ended by itself did what
/// its record says.
fn end_of(outcome: &Outcome, record: Option<&Record>) -> End {
    match (outcome, record) {
        (Outcome::Exit(0), Some(record)) if record.error.is_none() => End::Recorded(record.clone()),
        (Outcome::Exit(1), Some(record)) if record.error.is_some() => End::Recorded(record.clone()),
        (Outcome::Lost | Outcome::Interrupted | Outcome::Stopped, _) => End::Lost,
        (Outcome::Exit(0), _) => End::Failed("the transfer ended without a record".to_owned()),
        (outcome, _) => End::Failed(outcome.to_string()),
    }
}
