//! The end of the membership in a fleet. What this node archived stays as history of the machine.

use crate::main_loop::turn::{Turn, TurnResult, invalid};

/// Forgets the fleet.
///
/// # Errors
/// If the node holds a lease, has something to send, or a crawl of the fleet is open here.
pub(crate) fn leave_fleet(turn: &mut Turn<'_>) -> TurnResult<()> {
    let leases = turn.tx.leases(&turn.engine.boot)?.len() + turn.tx.released_leases()?.len();
    if leases > 0 {
        return Err(invalid(format!("{leases} hosts of the fleet are leased")));
    }
    if !turn.tx.unanswered_entries(1)?.is_empty() {
        return Err(invalid("not everything was sent to the fleet yet"));
    }
    if let Some(crawl) = turn.tx.open_fleet_crawl()? {
        return Err(invalid(format!("crawl {crawl} of the fleet has not ended here")));
    }
    Ok(turn.tx.leave_fleet()?)
}
