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

pub(crate) use begin::{begin_crawl, begin_snapshot, note_skipped};
pub(crate) use calls::work;
pub(crate) use disk::{measured, watch_disk};
pub(crate) use ends::{
    abort_crawl, cancel_crawl, cancel_crawl_here, cancel_snapshot, cancel_some, stop_units_of,
    tidy_crawl,
};
pub(crate) use ids::raise_ids;
pub(crate) use reach::why_reach;
pub(crate) use run_result::settle;
pub(crate) use units::await_units;
