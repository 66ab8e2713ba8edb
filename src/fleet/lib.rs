//! The database of a fleet: several machines that share one archive over PostgreSQL. Statements for
//! each operation, the schema, and the connection; and the fleet service of a machine, which carries
//! messages between the database and the orchestrator. Decisions are those of `archivist_core`.

pub mod connect;
pub mod ledger;
pub mod members;
pub mod node;
pub mod own_ids;
pub mod program;
pub mod schema;
pub mod serve;
pub mod view;
