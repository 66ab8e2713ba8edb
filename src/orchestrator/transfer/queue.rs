//! Which pages wait for the store, and users that wait for pages.

use crate::main_loop;
use crate::main_loop::action::{LoopAction, ReplyAction};
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::store::{STORE_TEST, SnapshotWork};
use crate::transfer::report;
use archivist_core::model::SnapshotId;
use archivist_core::store::{Copy, CopyStatus, Refused, Task};
use archivist_shared::bus::call::Reply;
use std::time::Duration;

/// Pages that one turn looks at.
const PAGES_PER_TURN: u32 = 2_000;
/// When a page that is retried looks again whether its files were restored.
const RESTORE_PAUSE: Duration = Duration::from_secs(10);
/// Reason of a page that waits for that.
const RESTORING: &str = "waiting for its files from the store";

/// The store, as rows name it.
pub(super) fn store_name(turn: &Turn<'_>) -> Option<String> {
    let store = turn.engine.settings.store.as_ref();
    store.map(ToString::to_string)
}

/// Queues the copy of a page that was sealed. Without a store, an earlier copy is outdated: the
/// page is copied when there is a store again.
pub(crate) fn queue_copy(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    let before = turn.tx.copy(id)?;
    if turn.engine.settings.store.is_none() && before.is_none() {
        return Ok(());
    }
    let copy = before.unwrap_or_default().sealed(turn.now);
    Ok(turn.tx.set_copy(id, &copy)?)
}

/// Queues sealed pages that the store does not have: it was configured later, or changed. A turn
/// looks at a part of the archive.
pub(crate) fn fill_store(turn: &mut Turn<'_>, after: i64) -> TurnResult<()> {
    let Some(store) = store_name(turn) else {
        return Ok(());
    };
    let Some(to) = turn.tx.snapshots_up_to(after, PAGES_PER_TURN)? else {
        return Ok(());
    };
    for id in turn.tx.not_in_store((after, to), &store)? {
        let copy = match turn.tx.copy(id)? {
            None => Copy::default().sealed(turn.now),
            Some(copy) => copy.moved(&store, turn.now),
        };
        turn.tx.set_copy(id, &copy)?;
    }
    turn.act(LoopAction::Again(Event::FillStore(to)));
    Ok(())
}

/// Whether a page that is retried has its files. If not, they are restored first, and the page
/// waits.
pub(crate) fn has_local_files(turn: &mut Turn<'_>, snapshot: &SnapshotWork) -> TurnResult<bool> {
    let Some(copy) = turn.tx.copy(snapshot.id)? else {
        return Ok(true);
    };
    if copy.is_usable() {
        return Ok(true);
    }
    match copy.requested(turn.now) {
        Ok(requested) => {
            turn.tx.set_copy(snapshot.id, &requested)?;
            let again = turn.now.after(RESTORE_PAUSE);
            turn.tx.put_off_snapshot(snapshot.id, again, Some(RESTORING))?;
            Ok(false)
        }
        // Nothing is left of it anywhere: it is archived from the start.
        Err(Refused::NoObject) => Ok(true),
    }
}

/// Restores the files of a page for a user.
pub(crate) fn fetch(turn: &mut Turn<'_>, id: SnapshotId, reply: &Reply<String>) -> TurnResult<()> {
    main_loop::snapshot_of(turn, id)?;
    let copy = turn.tx.copy(id)?.unwrap_or(Copy { is_local: true, ..Copy::default() });
    let refused = |Refused::NoObject| failed(format!("the store has no copy of {id}"));
    let requested = copy.requested(turn.now).map_err(refused)?;
    if copy.object.is_some() {
        turn.tx.set_copy(id, &requested)?;
    }
    let reply = reply.clone();
    if copy.is_usable() {
        let text = serde_json::to_string(&report::copy_document(id, &requested))?;
        turn.answer_text(&reply, text);
    } else {
        turn.act(ReplyAction::AwaitCopy { id, reply });
    }
    Ok(())
}

/// Tests the store for a user.
pub(crate) fn test_store(turn: &mut Turn<'_>, reply: &Reply<String>) -> TurnResult<()> {
    if turn.engine.settings.store.is_none() {
        turn.answer_text(reply, String::new());
        return Ok(());
    }
    let copy = turn.tx.copy(STORE_TEST)?.unwrap_or_default();
    if copy.status == CopyStatus::Idle {
        let waiting = Copy {
            status: CopyStatus::Waiting,
            task: Task::Test,
            due_at: Some(turn.now),
            ..Copy::default()
        };
        turn.tx.set_copy(STORE_TEST, &waiting)?;
    }
    turn.act(ReplyAction::AwaitCopy { id: STORE_TEST, reply: reply.clone() });
    Ok(())
}
