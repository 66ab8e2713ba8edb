//! The seam to a fleet: leases of hosts with deadlines, the pages that come with them, and the
//! outbox, as rows. The rules are in `core/fleet`, whose `Desk` is the reference for this room. The
//! orchestrator knows nothing else about fleets, and never the database.

mod commands;
mod crawls;
mod deliver;
mod holdings;
mod leases;
mod leave;
mod outbox;
mod recall;
mod release;
mod row_check;
mod submit;

pub(crate) use commands::{retry_in_fleet, send_command};
pub(crate) use crawls::{cancel_in_fleet, crawl_closed};
pub(crate) use holdings::node_call;
pub(crate) use leases::{
    forgive_late, host_view, is_expired, keep_deadlines, leases, next_deadline, not_after,
};
pub(crate) use outbox::report_ended_pages;
pub(crate) use submit::{add_fleet_crawl, send_entries, send_pages};
