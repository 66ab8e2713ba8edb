//! What a turn reports: signals on the bus, lines for followers, log entries, reasons.

pub mod announce;
pub mod follow;
pub mod log;

pub(crate) use announce::{announce_crawl, announce_pages, announce_snapshot};
pub(crate) use follow::{Follow, tell, tell_of_changes};
pub(crate) use log::{log_end, log_result, log_skipped, log_snapshot};

use archivist_core::model::Time;
use archivist_shared::bus::documents::report::Reason;

/// A reason, as `archivist why` prints it.
pub(crate) fn reason(code: &str, text: impl Into<String>) -> Reason {
    Reason { code: code.to_owned(), text: text.into(), until: None }
}

pub(crate) fn until(code: &str, text: impl Into<String>, until: Time) -> Reason {
    Reason { until: Some(until), ..reason(code, text) }
}
