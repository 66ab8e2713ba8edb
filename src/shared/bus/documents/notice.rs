//! Documents of the signals. They are small, and their URLs have neither user name, password, query
//! nor fragment: what a client writes to a log holds no secret. Fields may be added; names and types
//! do not change.

use super::report::Counts;
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Time};
use serde::{Deserialize, Serialize};

/// A crawl at the time of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlNotice {
    /// Its id, such as `c12`.
    pub id: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Reason for the state, if it is not obvious.
    pub reason: Option<String>,
    /// First of its URLs.
    pub url: String,
    /// Number of snapshots by status.
    pub snapshots: Counts,
    /// Number of results by status.
    pub results: Counts,
    /// When it changed.
    pub at: Time,
}

/// A snapshot at the time of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotNotice {
    /// Its id, such as `s345`.
    pub id: SnapshotId,
    /// Its crawl.
    pub crawl: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Reason for the state, if it is not obvious.
    pub reason: Option<String>,
    /// Address of the page.
    pub url: String,
    /// Its results by status.
    pub results: Counts,
    /// When it changed.
    pub at: Time,
}

/// Pages that were queued together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesNotice {
    /// Their crawl.
    pub crawl: CrawlId,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: SnapshotId,
    /// The last of them. Pages of other crawls may have ids in between.
    pub last: SnapshotId,
    /// When they were queued.
    pub at: Time,
}
