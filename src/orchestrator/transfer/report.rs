//! What users see of copies.

use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::{reason, until};
use crate::transfer::queue;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::store::{Copy, CopyStatus, Task};
use archivist_shared::bus::documents::report::{
    self, Details, Metrics, Reason, Status, StoreStatus,
};

pub(super) fn copy_document(id: SnapshotId, copy: &Copy) -> report::Copy {
    report::Copy {
        id,
        state: copy.status.as_str().to_owned(),
        task: copy.task,
        due_at: copy.due_at,
        attempts: copy.attempts,
        reason: copy.reason.clone(),
        object: copy.object.clone(),
        verified_at: copy.verified_at,
        is_local: copy.is_local,
    }
}

/// Adds the copy of a page.
pub(crate) fn details(turn: &Turn<'_>, details: &mut Details) -> TurnResult<()> {
    if let Details::Snapshot { copy, snapshot, .. } = details {
        let id = snapshot.id;
        *copy = turn.tx.copy(id)?.map(|copy| copy_document(id, &copy));
    }
    Ok(())
}

/// Adds the store as a whole.
pub(crate) fn status(turn: &Turn<'_>, status: &mut Status) -> TurnResult<()> {
    status.deleting_copies = turn.tx.deleted_copies()?;
    status.store = store_status(turn)?;
    Ok(())
}

pub(crate) fn metrics(turn: &Turn<'_>, metrics: &mut Metrics) -> TurnResult<()> {
    metrics.store = store_status(turn)?;
    Ok(())
}

/// None without a store.
fn store_status(turn: &Turn<'_>) -> TurnResult<Option<StoreStatus>> {
    let Some(store) = queue::store_name(turn) else {
        return Ok(None);
    };
    let counts = turn.tx.copy_counts()?;
    let failed = turn.tx.first_failed_copy()?;
    let next = failed.as_ref().and_then(|(_, _, due)| *due);
    let reason = failed.map(|(id, why, _)| format!("{id}: {}", why.unwrap_or_default()));
    Ok(Some(StoreStatus {
        store,
        keep_local: turn.engine.settings.keep_local.to_string(),
        waiting: counts.waiting,
        failed: counts.failed,
        running: counts.running,
        reason,
        next,
    }))
}

/// Adds what a sealed page waits for, and where its files are.
pub(crate) fn why_copy(turn: &Turn<'_>, id: SnapshotId, to: &mut Vec<Reason>) -> TurnResult<()> {
    let status = turn.tx.status_of(Owner::Snapshot(id))?;
    let Some(copy) = turn.tx.copy(id)?.filter(|_| status == Lifecycle::Sealed) else {
        return Ok(());
    };
    let what = match copy.task {
        Task::Put => "its copy to the store",
        Task::Drop => "the removal of its local files",
        Task::Get => "its restoration from the store",
        Task::Delete => "its removal from the store",
        Task::Test => "the test of the store",
    };
    match (copy.status, &copy.reason, copy.due_at) {
        (CopyStatus::Waiting, Some(why), Some(due)) => {
            let attempts = copy.attempts;
            let text = format!("{what} failed: {why}; attempt {attempts}, next after {due}");
            to.push(until("store-failed", text, due));
        }
        (CopyStatus::Waiting, None, _) if queue::store_name(turn).is_none() => {
            let text = format!("{what} waits until there is a store (Store= in [Fleet])");
            to.push(reason("store", text));
        }
        (CopyStatus::Waiting, ..) => to.push(reason("store", format!("{what} waits for a slot"))),
        (CopyStatus::Running, ..) => {
            let unit = turn.engine.names.store(Some(id));
            to.push(reason("store", format!("{what} runs: {unit}")));
        }
        (CopyStatus::Idle, Some(why), _) => {
            to.push(reason("store-failed", format!("{what} failed: {why}")));
        }
        (CopyStatus::Idle, None, _) => {}
    }
    if !copy.is_local {
        let text =
            format!("its files are in the store alone; to restore them: archivist open {id}");
        to.push(reason("store", text));
    }
    Ok(())
}
