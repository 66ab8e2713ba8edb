//! What a turn reports: signals on the bus, lines for followers, log entries, reasons.

pub mod announce;
pub mod follow;
pub mod log;
pub mod reason;

pub(crate) use announce::{announce_crawl, announce_pages, announce_snapshot};
pub(crate) use follow::{follow, tell, tell_of_changes};
pub(crate) use log::{log_end, log_snapshot};
