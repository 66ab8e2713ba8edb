//! Workers and their hooks, from the record to the end of the unit.

pub mod begin;
pub mod bounds;
pub mod calls;
mod certificate;
pub mod children;
pub mod disk;
pub mod ends;
pub mod entries;
pub mod host_delay;
pub mod limits;
pub mod lost;
mod network;
pub mod pause;
pub mod reach;
pub mod run_result;
pub mod taken;
pub mod units;
pub mod view;
pub mod visit;

pub(crate) use entries::{Entries, why as why_entries};
pub(crate) use units::{CrawlWorker, Hook, SnapshotWorker};

pub(crate) use disk::{measured, watch_disk};
pub(crate) use ends::{
    abort_crawl, cancel_crawl, cancel_crawl_here, cancel_snapshot, cancel_some, stop_units_of,
    tidy_crawl,
};
pub(crate) use limits::{amend, check_settings, refuse_own};
pub(crate) use pause::{is_wanted, pause_owner, resume_owner, thaw, thaw_at_shutdown};
pub(crate) use reach::why_reach;
pub(crate) use run_result::{is_held, settle};
pub(crate) use units::await_units;
pub(crate) use view::view;
