//! The end of leases: of hosts without a page, of hosts that go to another node, and of all while the
//! node drains.

use crate::database::rows::lease::{LeaseRow, ReleasedLease};
use crate::fleet;
use crate::main_loop::action::ReplyAction;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::orders::holdings;
use crate::orders::lost;
use archivist_core::fleet::{HostKey, Release};

/// Ends the leases of those of `hosts` that have no page here.
pub(crate) fn release_idle(turn: &mut Turn<'_>, hosts: &[&HostKey]) -> TurnResult<()> {
    for lease in turn.tx.leases(&turn.engine.boot)? {
        if hosts.contains(&&lease.name) && !turn.tx.has_leased_pages(lease.host, false)? {
            release(turn, &lease)?;
        }
    }
    Ok(())
}

/// Releases the hosts that have no running page, at the stop of the fleet service, so that other
/// nodes need not wait for the end of their leases. What runs continues.
pub(crate) fn release_unused(turn: &mut Turn<'_>) -> TurnResult<()> {
    for lease in turn.tx.leases(&turn.engine.boot)? {
        release_unless_running(turn, &lease)?;
    }
    lost::discard_lost_pages(turn)
}

/// Chooses hosts with waiting pages for another node, so that `count` are leaving: first those that
/// have no running page, because they can leave at once.
pub(crate) fn choose_leaving(turn: &mut Turn<'_>, count: u32) -> TurnResult<()> {
    if count == 0 {
        return Ok(());
    }
    let leases = turn.tx.leases(&turn.engine.boot)?;
    let leaving = leases.iter().filter(|lease| lease.leaves).count();
    let (mut idle, mut running) = (Vec::new(), Vec::new());
    for lease in leases.iter().filter(|lease| lease.has_queued && !lease.leaves) {
        let is_running = turn.tx.has_leased_pages(lease.host, true)?;
        let list = if is_running { &mut running } else { &mut idle };
        list.push(lease.host);
    }
    let room = (count as usize).saturating_sub(leaving);
    for host in idle.into_iter().chain(running).take(room) {
        turn.tx.set_leaving(host)?;
    }
    Ok(())
}

/// Releases the hosts that are for another node, while the node drains all, if they have no running
/// page. Their waiting pages go with them.
pub(crate) fn release_leaving(turn: &mut Turn<'_>) -> TurnResult<()> {
    let orders = turn.engine.node_orders.get();
    let draining = orders.is_some_and(|orders| orders.draining);
    let leases = turn.tx.leases(&turn.engine.boot)?;
    for lease in leases.iter().filter(|lease| lease.leaves || draining) {
        release_unless_running(turn, lease)?;
    }
    lost::discard_lost_pages(turn)
}

fn release_unless_running(turn: &mut Turn<'_>, lease: &LeaseRow) -> TurnResult<()> {
    if turn.tx.has_leased_pages(lease.host, true)? {
        return Ok(());
    }
    release(turn, lease)
}

/// Ends a lease. It is sent after what the outbox has about its pages, because it gives back what is
/// open.
fn release(turn: &mut Turn<'_>, lease: &LeaseRow) -> TurnResult<()> {
    let release = Release {
        host: lease.name.clone(),
        epoch: lease.epoch,
        pace: Some(holdings::pace_of(turn, lease)?),
    };
    let after = turn.tx.last_entry()?;
    turn.tx.release_lease(lease.host, &ReleasedLease { release, after })?;
    turn.act(ReplyAction::Settle(fleet::outbox(), Ok(None)));
    Ok(())
}
