//! Transfers as a kind of unit: which are due, and what follows from the end of one.

use crate::bus::call::Refusal;
use crate::database::UnitRow;
use crate::deletion;
use crate::main_loop;
use crate::main_loop::action::{CallerAction, FileAction, LoopAction, ReplyAction};
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, Event, UnitEnd};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::transfer::begin::begin_transfer;
use crate::transfer::files::{self, record_path};
use crate::transfer::queue;
use crate::transfer::report;
use crate::transfer::rows::{STORE_TEST, TransferRow};
use crate::units::{Kind, ReadFiles};
use archivist_core::model::Outcome;
use archivist_core::plan::{Allowance, Outlook, Started};
use archivist_core::store::{Copy, CopyStatus, End, Record, Task, decide_transfers};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::journal::message;

/// Pages that are kept for users after they were restored.
const RESTORED_MAX: u32 = 100;

pub(crate) struct Transfer;

impl Kind for Transfer {
    /// Transfers wait for neither space nor memory: some of them make space.
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        let transfers = turn.tx.transfers(main_loop::keep_local(turn), turn.now)?;
        let starts = if allowance.is_outage { Vec::new() } else { decide_transfers(&transfers) };
        Ok(Due {
            starts: starts
                .into_iter()
                .map(|id| DueUnit::of(format!("the transfer of {id}"), id, begin_transfer))
                .collect(),
            outlook: Outlook { is_busy: transfers.is_busy(), blocked: None, next: transfers.next },
        })
    }

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
        transfer_ended(turn, &transfer, &run.unit, &how)
    }
}

fn transfer_ended(
    turn: &mut Turn<'_>,
    transfer: &TransferRow,
    unit: &str,
    end: &End,
) -> TurnResult<()> {
    let (id, before) = (transfer.snapshot, &transfer.copy);
    let retries = turn.retries();
    let after = before.ended(end, &retries);
    // A crawl whose pages are deleted may have waited for its end.
    if turn.tx.half_deleted_crawl()?.is_some() {
        turn.act(LoopAction::Again(Event::of(deletion::delete_some)));
    }
    if before.task == Task::Delete && after.status == CopyStatus::Idle {
        turn.tx.forget_copy(transfer)?;
    } else {
        turn.tx.set_copy(id, &after)?;
        turn.tx.forget_transfers(transfer)?;
    }
    if *end != End::Lost {
        log_transfer(turn, transfer, unit, &after);
    }
    let record = record_path(&turn.engine.scope, transfer.run);
    turn.act(FileAction::Remove(record));
    turn.settle(transfer.run, &Ended::without_run(Outcome::Exit(0)))?;
    turn.act(CallerAction::StatusChanged);
    if before.task == Task::Get && after.is_local {
        turn.tx.limit_restored(RESTORED_MAX, turn.now)?;
        turn.tx.put_off_snapshot(id, turn.now, None)?;
    }
    answer_waiting(turn, transfer, &after)
}

fn log_transfer(turn: &mut Turn<'_>, transfer: &TransferRow, unit: &str, after: &Copy) {
    let (id, task) = (transfer.snapshot, transfer.copy.task);
    let what = match task {
        Task::Put => format!("copy of {id} to the store"),
        Task::Drop => format!("removal of the local files of {id}"),
        Task::Get => format!("restoration of {id} from the store"),
        Task::Delete => format!("removal of {id} from the store"),
        Task::Test => "test of the store".to_owned(),
    };
    let (unit, reason, retry_at) = (unit.to_owned(), after.reason.clone(), after.due_at);
    turn.log(move || {
        let Some(reason) = reason else {
            tracing::info!(archivist_snapshot_id = id.0, "{what} is complete");
            return;
        };
        let next = retry_at.map_or(String::new(), |time| format!("; next attempt after {time}"));
        tracing::warn!(
            message_id = message::TRANSFER_FAILED,
            archivist_snapshot_id = id.0,
            archivist_unit = unit.as_str(),
            archivist_reason = reason.as_str(),
            "{what} failed: {reason}{next}"
        );
    });
}

/// Answers users that wait for restored files, or for the test of the store.
fn answer_waiting(turn: &mut Turn<'_>, transfer: &TransferRow, after: &Copy) -> TurnResult<()> {
    let id = transfer.snapshot;
    let failure = after.reason.clone();
    let answer = match (id, failure) {
        (STORE_TEST, None) => Ok(queue::store_name(turn).unwrap_or_default()),
        (STORE_TEST, Some(why)) => Err(Refusal::Failed(why)),
        _ if after.is_usable() => Ok(serde_json::to_string(&report::copy_document(id, after))?),
        // They are restored next.
        _ if after.status == CopyStatus::Waiting => return Ok(()),
        (_, why) => Err(Refusal::Failed(why.unwrap_or_default())),
    };
    turn.act(ReplyAction::Settle(queue::files_of(id), answer.map(Some)));
    Ok(())
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
