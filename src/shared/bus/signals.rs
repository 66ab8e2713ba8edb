//! Signals of the interface for users, as values.

use archivist_core::model::{CrawlId, SnapshotId};
use archivist_core::plan::Notice;

/// A signal. Documents are JSON in the shapes of [`crate::bus::documents::notice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A crawl changed.
    Crawl {
        /// How.
        notice: Notice,
        /// Its id.
        id: CrawlId,
        /// Its state.
        document: String,
    },
    /// Pages were queued.
    Pages {
        /// Their crawl.
        crawl: CrawlId,
        /// How many, and which.
        document: String,
    },
    /// A page changed, after it was queued.
    Snapshot {
        /// How.
        notice: Notice,
        /// Its id.
        id: SnapshotId,
        /// Its state.
        document: String,
    },
    /// The last open crawl has ended.
    Idle,
    /// The orchestrator exits.
    Stopping,
}
