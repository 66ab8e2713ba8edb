//! The orchestrator: events → view → decide → perform. It carries; the judgement is in
//! [`archivist_core::plan`], the memory in [`crate::store`], the processes in systemd.

mod backup;
mod crawl;
mod fleet;
mod kinds;
mod main_loop;
pub mod program;
mod programs;
mod query;
mod runner;
pub mod store;
mod transfer;
mod units;
mod watch;
mod work;

#[cfg(test)]
mod tests;

pub use main_loop::error::OrchestratorError;
