//! The orchestrator: events → view → decide → perform. It carries; the judgement is in
//! [`archivist_core::plan`], the memory in [`crate::store`], the processes in systemd.

mod archivebox;
mod backup;
mod calls;
mod clock;
mod deletion;
mod engine;
mod expiry;
mod fleet;
mod house;
mod indexing;
mod kinds;
mod machine;
mod main_loop;
mod notices;
mod orders;
mod process;
pub mod program;
mod programs;
mod query;
mod quota;
mod runner;
mod search;
pub mod store;
mod transfer;
mod unhealthy;
mod units;
mod watch;
mod work;

#[cfg(test)]
mod tests;

pub use process::error::OrchestratorError;
