//! Pins: crawls and snapshots that are kept from deletion.

use crate::main_loop;
use crate::main_loop::action::CallerAction;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use archivist_core::model::Owner;

/// Sets or removes the pin of a crawl or snapshot. Returns whether that changes anything.
///
/// # Errors
/// If there is none, or its crawl is being deleted.
pub(crate) fn pin(turn: &mut Turn<'_>, id: Owner, pinned: bool, dry_run: bool) -> TurnResult<bool> {
    let is_change = turn.tx.is_pinned(id)? != pinned;
    let crawl = match id {
        Owner::Crawl(crawl) => crawl,
        Owner::Snapshot(page) => main_loop::snapshot_of(turn, page)?.crawl,
    };
    if turn.tx.is_being_deleted(crawl)? {
        return Err(invalid(format!("{crawl} is being deleted")));
    }
    if is_change && !dry_run {
        turn.tx.set_pinned(id, pinned)?;
        turn.act(CallerAction::StatusChanged);
    }
    Ok(is_change)
}
