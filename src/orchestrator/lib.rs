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
#[cfg(feature = "retention")]
mod expiry;
mod fleet;
mod house;
#[cfg(feature = "search")]
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
#[cfg(feature = "quota")]
mod quota;
mod runner;
#[cfg(feature = "search")]
mod search;
mod service;
#[cfg(feature = "store")]
mod transfer;
mod units;
#[cfg(feature = "verification")]
mod verification;
#[cfg(feature = "watches")]
mod watch;
mod work;

#[cfg(test)]
mod tests;

pub use process::error::OrchestratorError;
