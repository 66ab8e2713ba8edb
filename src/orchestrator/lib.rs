//! The orchestrator: events → view → decide → perform. It carries; the judgement is in
//! [`archivist_core::plan`], the memory in [`crate::database`], the processes in systemd.

mod alert;
mod archivebox;
mod backup;
mod bus;
mod calls;
mod clock;
pub mod database;
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
mod service;
mod transfer;
mod unhealthy;
mod units;
mod verification;
mod watch;
mod work;

#[cfg(test)]
mod tests;

pub use process::error::OrchestratorError;
