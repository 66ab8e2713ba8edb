//! The seam to a fleet: leases of hosts with deadlines, the pages that come with them, and the
//! outbox, as rows. The rules are in `core/fleet`; `BusContext` in `reference` is the model of this room. The
//! orchestrator knows nothing else about fleets, and never the database.

pub mod commands;
pub mod leases;
pub mod submit;

pub(crate) use commands::{cancel_in_fleet, crawl_closed, retry_in_fleet, send_command};
pub(crate) use leases::{forgive_late, is_expired, not_after};
pub(crate) use submit::{add_fleet_crawl, send_entries, send_pages};

use crate::main_loop::action::{Awaited, ReplyAction};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::fleet::NodeRequest;

/// A new entry of the outbox, for which the fleet service waits.
pub(crate) fn outbox() -> Awaited {
    Awaited::new("outbox", "")
}

/// Reports something to the database of the fleet. The request is written in the transaction of the change that it
/// reports.
pub(crate) fn send_to_fleet(turn: &mut Turn<'_>, request: &NodeRequest) -> TurnResult<()> {
    turn.tx.add_to_outbox(request)?;
    turn.act(ReplyAction::Settle(outbox(), Ok(None)));
    Ok(())
}
