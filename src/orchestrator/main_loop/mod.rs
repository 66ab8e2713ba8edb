//! The loop: events in, one transaction for a batch of them, actions out.

pub mod action;
pub mod clock;
pub mod commands;
pub mod crawl_plan;
pub mod database_check;
pub mod effects;
pub mod engine;
pub mod error;
pub mod event;
pub mod event_sources;
pub mod exit;
pub mod fact_reader;
pub mod facts;
pub mod input_files;
pub mod live;
pub mod log;
pub mod measure;
pub mod new_plugins;
pub mod notify;
pub mod orchestrator;
pub mod perform;
pub mod prepare;
pub mod replies;
pub mod rows;
pub mod run;
pub mod setup;
pub mod signals;
pub mod starts;
pub mod transaction;
pub mod turn;
pub mod wait;

pub(crate) use rows::{
    crawl_directory, crawl_for, crawl_of, crawl_of_owner, directory, has_lost_directory,
    result_state, snapshot_of, view,
};
