//! Pages whose lease has no time left, or is lost.

use crate::main_loop;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::notices;
use crate::work;
use archivist_core::model::{Owner, SnapshotId, Step};
use archivist_core::plan::Notice;

/// Reason of pages that wait because their lease was not renewed.
const LEASE_ENDED: &str = "the lease of its host was not renewed in time";
const LEASE_LOST: &str = "the fleet gave it to another node";

/// Stops the pages whose lease has no time left; they wait for its renewal. It precedes the
/// events of each turn, so that an orchestrator that was stopped for a while starts nothing
/// under an old lease.
pub(crate) fn keep_deadlines(turn: &mut Turn<'_>) -> TurnResult<()> {
    let boot = &turn.engine.boot;
    for page in turn.tx.pages_past_deadline(boot, turn.boottime)? {
        requeue_page(turn, page)?;
    }
    Ok(())
}

/// Stops a running page and queues it again, without counting the attempt. Hooks that this stops
/// run again: how they end says nothing about the page.
fn requeue_page(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    let (owner, now) = (Owner::Snapshot(id), Some(turn.now));
    let crawl = main_loop::snapshot_of(turn, id)?.crawl;
    turn.tx.step_snapshot(id, Step::Requeue, now, Some(LEASE_ENDED), turn.now)?;
    turn.tx.take_back_attempt(Owner::Snapshot(id))?;
    turn.tx.put_off_results(owner)?;
    work::stop_units_of(turn, owner)?;
    turn.changes.insert(Change::Snapshot { crawl, id });
    notices::announce_snapshot(turn, id, Notice::Changed)
}

/// Forgets the pages whose lease this node has no more, and stops those that run.
pub(super) fn discard_lost_pages(turn: &mut Turn<'_>) -> TurnResult<()> {
    for id in turn.tx.pages_without_lease()? {
        discard_page(turn, id)?;
    }
    Ok(())
}

pub(super) fn discard_page(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    turn.tx.clear_page_epoch(id)?;
    let page = main_loop::snapshot_of(turn, id)?;
    if page.status.is_final() {
        return Ok(());
    }
    work::cancel_snapshot(turn, page.crawl, id, LEASE_LOST)?;
    work::tidy_crawl(turn, page.crawl)
}
