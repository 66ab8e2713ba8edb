//! Which pages wait for the store, and users that wait for pages.

use crate::bus::call::{Answer, Reply};
use crate::database::SnapshotWork;
use crate::main_loop;
use crate::main_loop::action::{Awaited, LoopAction, ReplyAction};
use crate::main_loop::event::Event;
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::transfer::report;
use crate::transfer::rows::STORE_TEST;
use archivist_core::model::SnapshotId;
use archivist_core::store::{Copy, CopyStatus, Refused, Task};
use std::time::Duration;

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
    turn.act(LoopAction::Again(Event::of(move |turn| fill_store(turn, to))));
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

/// The restored files of a snapshot, or the end of the test of the store, for which users wait.
pub(super) fn files_of(id: SnapshotId) -> Awaited {
    Awaited::new("files", id)
}

/// A call about the store.
pub(crate) enum StoreCall {
    /// Restore the files of a snapshot that only the store has.
    /// Gets the JSON of [`Copy`](archivist_shared::bus::documents::report::Copy) when the files are there.
    Fetch { id: SnapshotId },
    /// Gets the name of the store when the test has succeeded; an empty text without a store.
    Test { user: u32 },
}

impl Order for StoreCall {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        match self {
            StoreCall::Fetch { id } => fetch(turn, *id, reply),
            StoreCall::Test { .. } => test_store(turn, reply),
        }
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        match self {
            StoreCall::Fetch { .. } => UserCall::of_all("Store.Fetch"),
            StoreCall::Test { user } => UserCall::of("Store.Test", *user),
        }
    }
}

/// Restores the files of a page for a user.
fn fetch(turn: &mut Turn<'_>, id: SnapshotId, reply: &Reply) -> TurnResult<Option<Answer>> {
    main_loop::snapshot_of(turn, id)?;
    let copy = turn.tx.copy(id)?.unwrap_or(Copy { is_local: true, ..Copy::default() });
    let refused = |Refused::NoObject| failed(format!("the store has no copy of {id}"));
    let requested = copy.requested(turn.now).map_err(refused)?;
    if copy.object.is_some() {
        turn.tx.set_copy(id, &requested)?;
    }
    if copy.is_usable() {
        return Ok(Some(Answer::json(&report::copy_document(id, &requested))?));
    }
    turn.act(ReplyAction::Await(files_of(id), reply.clone()));
    Ok(None)
}

fn test_store(turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
    if turn.engine.settings.store.is_none() {
        return Ok(Some(Answer::Text(String::new())));
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
    turn.act(ReplyAction::Await(files_of(STORE_TEST), reply.clone()));
    Ok(None)
}
