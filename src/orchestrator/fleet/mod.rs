//! The seam to a fleet: leases of hosts with deadlines, the pages that come with them, and the
//! outbox, as rows. The rules are in `core/fleet`; `Desk` in `reference` is the model of this room. The
//! orchestrator knows nothing else about fleets, and never the database.

pub mod commands;
pub mod leases;
pub mod outbox;
pub mod submit;

pub(crate) use commands::{cancel_in_fleet, crawl_closed, retry_in_fleet, send_command};
pub(crate) use leases::{forgive_late, is_expired, not_after};
pub(crate) use outbox::send_to_fleet;
pub(crate) use submit::{add_fleet_crawl, send_entries, send_pages};
