//! archivist: web archiving in which every worker and every hook is a systemd unit.
//!
//! Events in, [`plan`], actions out: systemd owns processes, SQLite owns memory, the plan owns
//! judgement, the daemon only carries. ARCHITECTURE.md has the map of the rooms below.

pub mod bus;
pub mod check;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod generate;
pub mod hook;
pub mod journal;
pub mod manager;
pub mod model;
pub mod page;
pub mod plan;
pub mod plugin;
pub mod service;
pub mod store;
pub mod unit;
pub mod watch;
pub mod worker;
