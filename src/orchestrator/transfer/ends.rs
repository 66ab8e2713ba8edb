//! The end of a transfer, and what follows from it.

use crate::main_loop::action::{CallerAction, FileAction, ReplyAction};
use crate::main_loop::log::{LogEntry, StoreLog};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::{STORE_TEST, TransferRow, UnitRow};
use crate::transfer::files::{self, record_path};
use crate::units::{Contents, Kind, ReadFiles, UnitEnd};
use archivist_core::model::Outcome;
use archivist_core::plan::Started;
use archivist_core::store::{Copy, CopyStatus, End, Record, Retries, Task};
use archivist_shared::bus::call::Refusal;
use archivist_shared::bus::documents::work::Ended;

/// Pages that are kept for users after they were restored.
const RESTORED_MAX: u32 = 100;

/// A transfer between the archive and its store.
pub(crate) struct Transfer;

impl Kind for Transfer {
    /// What the machine lacks for every start speaks against no store.
    fn not_started(&self, started: Started, why: String) -> Outcome {
        match started {
            Started::Failed => Outcome::NotStarted(why),
            _ => Outcome::Lost,
        }
    }

    fn files(&self, _turn: &Turn<'_>, run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        Ok(Some(files::of_transfer(run.id)))
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let Some(transfer) = turn.tx.open_transfer(run.id)? else {
            return Ok(());
        };
        let record = contents.and_then(|contents| contents.downcast_ref::<Option<Record>>());
        let how = end_of(&end.outcome, record.and_then(Option::as_ref));
        turn.transfer_ended(&transfer, &run.unit, &how)
    }
}

impl Turn<'_> {
    fn transfer_ended(&mut self, transfer: &TransferRow, unit: &str, end: &End) -> TurnResult<()> {
        let (id, before) = (transfer.snapshot, &transfer.copy);
        let retries = Retries {
            backoff: self.engine.backoff(),
            now: self.now,
            jitter: self.jitter,
        };
        let after = before.ended(end, &retries);
        self.tx.set_copy(id, &after)?;
        self.tx.forget_transfers(transfer)?;
        if *end != End::Lost {
            self.log_transfer(transfer, unit, &after);
        }
        let record = record_path(&self.engine.scope, transfer.run);
        self.act(FileAction::Remove(record));
        let ended = Ended::without_run(Outcome::Exit(0));
        let run = transfer.run;
        self.act(ReplyAction::Settle { run, ended });
        self.act(CallerAction::StatusChanged);
        if before.task == Task::Get && after.is_local {
            self.tx.limit_restored(RESTORED_MAX, self.now)?;
            self.tx.put_off_snapshot(id, self.now, None)?;
        }
        self.answer_waiting(transfer, &after)
    }

    fn log_transfer(&mut self, transfer: &TransferRow, unit: &str, after: &Copy) {
        let (id, task) = (transfer.snapshot, transfer.copy.task);
        let log = match &after.reason {
            Some(reason) => StoreLog::Failed {
                unit: unit.to_owned(),
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
            _ if after.status == CopyStatus::Waiting => return Ok(()),
            (_, why) => Err(Refusal::Failed(why.unwrap_or_default())),
        };
        self.act(ReplyAction::CopyReady { id, answer });
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
