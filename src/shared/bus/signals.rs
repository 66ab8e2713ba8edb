//! Signals of the interface for users, as values.

use archivist_core::model::{CrawlId, SnapshotId};
use archivist_core::plan::Notice;

/// A signal. Documents are JSON in the shapes of [`crate::bus::documents::notice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    Crawl {
        notice: Notice,
        id: CrawlId,
        document: String,
    },
    Pages {
        crawl: CrawlId,
        /// How many, and which.
        document: String,
    },
    /// A page changed, after it was queued.
    Snapshot {
        notice: Notice,
        id: SnapshotId,
        document: String,
    },
    /// The last open crawl has ended.
    Idle,
    Stopping,
}
