//! The loop: events in, one transaction for a batch of them, actions out.

pub mod action;
pub mod clock;
pub mod crawl_plan;
pub mod database_check;
pub mod engine;
pub mod error;
pub mod event;
pub mod event_sources;
pub mod exit;
pub mod fact_reader;
pub mod facts;
pub mod input_files;
pub mod log;
pub mod new_plugins;
pub mod notify;
pub mod orchestrator;
pub mod perform;
pub mod prepare;
pub mod rows;
pub mod run;
pub mod setup;
pub mod signals;
pub mod starts;
pub mod turn;
pub mod wait;
