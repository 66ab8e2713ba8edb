//! Pins: crawls and snapshots that are kept from deletion.

use crate::main_loop;
use crate::main_loop::action::CallerAction;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use archivist_core::model::Owner;

/// Pins a crawl or snapshot for the user of this id, or removes its pin. Returns whether that changes anything.
/// A pin stays that of the user who set it first, unless root sets it, too.
///
/// # Errors
/// If there is none, or its crawl is being deleted.
pub(crate) fn pin(
    turn: &mut Turn<'_>,
    id: Owner,
    pinned_by: Option<u32>,
    dry_run: bool,
) -> TurnResult<bool> {
    let before = turn.tx.pinned_by(id)?;
    let is_of_root = pinned_by == Some(0) && before != pinned_by;
    let is_change = is_of_root || before.is_some() != pinned_by.is_some();
    let crawl = match id {
        Owner::Crawl(crawl) => crawl,
        Owner::Snapshot(page) => main_loop::snapshot_of(turn, page)?.crawl,
    };
    if turn.tx.is_being_deleted(crawl)? {
        return Err(invalid(format!("{crawl} is being deleted")));
    }
    if is_change && !dry_run {
        turn.tx.set_pinned(id, pinned_by)?;
        turn.act(CallerAction::StatusChanged);
    }
    Ok(is_change)
}
