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
