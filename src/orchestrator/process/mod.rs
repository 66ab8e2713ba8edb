//! The process of the orchestrator: its start, its loop, its end, and its place among others.

pub mod database_check;
pub mod error;
pub mod event_sources;
pub mod exit;
pub mod gate;
pub mod orchestrator;
pub mod run;
pub mod setup;
pub mod startup_wait;
