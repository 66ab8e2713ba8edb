//! Workers and their hooks, from the record to the end of the unit.

pub mod begin;
pub mod calls;
pub mod disk;
pub mod ends;
pub mod environment;
pub mod host_delay;
pub mod ids;
pub mod index;
pub mod index_files;
pub mod lost;
pub mod persona;
pub mod persona_access;
pub mod persona_files;
pub mod pressure;
pub mod reach;
pub mod run_result;
pub mod taken;
pub mod units;
pub mod visit;
pub mod way_out;

pub(crate) use units::{CrawlWorker, Hook, SnapshotWorker};
