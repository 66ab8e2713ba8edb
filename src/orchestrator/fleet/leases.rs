//! Deadlines of leases, and pages whose lease is lost.

use crate::crawl;
use crate::main_loop;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::store::RunRow;
use crate::store::rows::lease::Leases;
use crate::work;
use archivist_core::model::{Outcome, Owner, SnapshotId, Step, Time};
use archivist_core::plan::{Clocks, Host, HostId, Notice};

/// Reason of pages that wait because their lease was not renewed.
const LEASE_ENDED: &str = "the lease of its host was not renewed in time";
/// Reason of pages whose lease was lost.
const LEASE_LOST: &str = "the fleet gave it to another node";

/// Whether pages need leases now, and the clocks.
pub(crate) fn leases<'a>(turn: &'a Turn<'_>) -> TurnResult<Leases<'a>> {
    Ok(Leases {
        are_needed: turn.tx.node()?.is_some(),
        boot: &turn.engine.boot,
        clocks: Clocks {
            now: turn.now,
            machine: turn.machine,
        },
        orders: turn.engine.node_orders.get(),
    })
}

/// Returns a host with the configured delay.
pub(crate) fn host_view(turn: &Turn<'_>, id: HostId) -> TurnResult<Host> {
    let pace = turn.engine.settings.host_delay;
    Ok(turn.tx.host_view(id, pace, &leases(turn)?)?)
}

/// Returns the time on CLOCK_BOOTTIME, in milliseconds, from which on no hook of a page starts: the
/// end of the lease of its host. `None` outside of a fleet.
pub(crate) fn not_after(turn: &Turn<'_>, page: Option<SnapshotId>) -> TurnResult<Option<u64>> {
    let Some(page) = page else {
        return Ok(None);
    };
    let deadline = turn.tx.page_deadline(page, &turn.engine.boot)?;
    Ok(deadline.map(|deadline| deadline.0))
}

/// Stops the pages whose lease has no time left; they wait for its renewal. It precedes the
/// events of each turn, so that an orchestrator that was stopped for a while starts nothing
/// under an old lease.
pub(crate) fn keep_deadlines(turn: &mut Turn<'_>) -> TurnResult<()> {
    let boot = &turn.engine.boot;
    for page in turn.tx.pages_past_deadline(boot, turn.machine)? {
        requeue_page(turn, page)?;
    }
    Ok(())
}

/// Returns when [`keep_deadlines`] has to be called next, as far as is known.
pub(crate) fn next_deadline(turn: &Turn<'_>) -> TurnResult<Option<Time>> {
    let clocks = leases(turn)?.clocks;
    let next = turn.tx.next_deadline(&turn.engine.boot, turn.machine)?;
    Ok(next.map(|deadline| clocks.wall(deadline)))
}

/// Stops a running page and queues it again, without counting the attempt. Hooks that this stops
/// run again: how they end says nothing about the page.
fn requeue_page(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    let (owner, now) = (Owner::Snapshot(id), Some(turn.now));
    let crawl = main_loop::snapshot_of(turn, id)?.crawl;
    turn.tx
        .step_snapshot(id, Step::Requeue, now, Some(LEASE_ENDED), turn.now)?;
    turn.tx.take_back_attempt(Owner::Snapshot(id))?;
    turn.tx.put_off_results(owner)?;
    work::stop_units_of(turn, owner)?;
    turn.changes.insert(Change::Snapshot { crawl, id });
    crawl::announce_snapshot(turn, id, Notice::Changed)
}

/// Whether the time has passed from which on a run is not executed.
pub(crate) fn is_expired(turn: &Turn<'_>, run: &RunRow) -> bool {
    let now = turn.machine.unsigned_abs();
    run.not_after.is_some_and(|end| now >= end)
}

/// Lets a hook run again, without counting the attempt, that was not executed because the lease of
/// its host had ended. The page is stopped if the lease was not renewed since.
pub(crate) fn forgive_late(turn: &Turn<'_>, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
    if *outcome == Outcome::Late
        && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
    {
        turn.tx.put_off_uncounted(run.owner, plugin, hook)?;
    }
    Ok(())
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
