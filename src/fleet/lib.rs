//! The database of a fleet: several machines that share one archive over PostgreSQL. Statements for
//! each operation, the schema, and the connection; and the fleet service of a machine, which carries
//! messages between the database and the orchestrator. Decisions are those of `archivist_core`.
//!
//! # The parts of a fleet
//!
//! `src/core/fleet/` has the protocol between the machines of a fleet and their PostgreSQL database;
//! its module documentation is the specification. PostgreSQL leases hosts to nodes, and each node works
//! on the pages of its hosts as on pages of its own. The fleet service (`src/fleet/node/`) carries
//! requests and replies between the statements (`src/fleet/ledger/`) and the orchestrator
//! (`src/orchestrator/fleet/`), which has no network. Without `[Fleet]` in the configuration, nothing
//! of it runs.
//!
//! | file | decides | run by |
//! |---|---|---|
//! | `lease.rs` | until when a lease holds, and when its host may be visited next | orchestrator |
//! | `outbox.rs` | which requests are sent, in which order, and for how long they are kept | orchestrator |
//! | `service.rs` | when to connect, renew, claim and send | fleet service |
//! | `memory.rs` | whether the database went back behind what a node remembers | fleet service, as SQL |
//! | `recall.rs` | what a node sends to a database of another generation | orchestrator |
//!
//! `HostLease::of` (`core/plan/host_lease.rs`) keeps the politeness of a host: it compares the deadline
//! of the lease with CLOCK_BOOTTIME, so neither the wall clock nor the fleet service nor the network
//! can bring two starts too close.
//!
//! The package `tests/fleet-model/` has both sides of the protocol as values, and no program links it:
//! `ledger/` is what the database does for each request, the reference for the SQL, and the rest is
//! what a reply changes at a node and what the node wants next, the reference for the rows of the
//! orchestrator. Its `simulation/` has machines and their faults, checks the invariants after each
//! step, and proves that it finds errors: each deliberate one must be found.
//!
//! A host changes hands between two pages (`orchestrator/orders/release.rs`): its lease ends as soon as
//! no page of it runs, and the release carries its delay. That happens to all hosts while the node
//! drains, and to some if the database orders it, because another node wants hosts and has fewer
//! (`HAND_OVER` in `ledger/`).
//!
//! A failover or `archivist fleet restored` begins another generation of the database. Each node then
//! compares the ids and epochs of its crawls and pages with the rows (`orchestrator/orders/recall.rs`,
//! `fleet/ledger/recall.rs`), sends those that are missing or older, and then the entries of its outbox
//! that were answered after the database last knew of it. Within a generation, a hello that the
//! database contradicts ends the sessions of all nodes: the database was restored, and no administrator
//! has declared that yet.

pub mod connect;
pub mod ledger;
pub mod members;
pub mod node;
pub mod own_ids;
pub mod program;
pub mod schema;
pub mod serve;
pub mod view;
