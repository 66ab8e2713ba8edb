//! The rows of lists, and which of them to return.

use crate::store::{Counts, RunState};
use archivist_core::model::{Accounting, CrawlId, Lifecycle, Outcome, Owner, RunId};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::unit::UnitKind;
use std::collections::BTreeMap;

/// A crawl with its counts and tags.
#[derive(Clone, Debug)]
pub struct CrawlEntry {
    pub id: CrawlId,
    pub status: Lifecycle,
    /// Why it has its status, if that is not obvious.
    pub reason: Option<String>,
    /// The first of its URLs, with user name and password if it has any.
    pub url: String,
    pub max_depth: u32,
    pub tags: Vec<String>,
    /// The plugins that it is limited to; empty means all.
    pub plugins: Vec<String>,
    /// Settings, secrets included.
    pub config: BTreeMap<String, String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub retry_at: Option<Time>,
    pub attempts: u32,
    /// Its snapshots by status.
    pub snapshots: Counts,
    /// Its results by status, with those of its snapshots.
    pub results: Counts,
    pub directory: Option<String>,
}

/// A snapshot with its counts and tags.
#[derive(Clone, Debug)]
pub struct SnapshotEntry {
    pub id: SnapshotId,
    pub crawl: CrawlId,
    /// With user name and password if it has any.
    pub url: String,
    pub title: Option<String>,
    pub depth: u32,
    pub parent: Option<SnapshotId>,
    pub status: Lifecycle,
    pub reason: Option<String>,
    pub tags: Vec<String>,
    /// As the list of bookmarks states it.
    pub bookmarked_at: Option<String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub retry_at: Option<Time>,
    pub attempts: u32,
    /// Its results by status.
    pub results: Counts,
    pub directory: Option<String>,
}

/// A run with its accounting.
#[derive(Clone, Debug)]
pub struct RunEntry {
    pub id: RunId,
    pub unit: String,
    pub kind: UnitKind,
    pub owner: Owner,
    pub plugin: Option<String>,
    pub hook: Option<String>,
    pub attempt: u32,
    pub status: RunState,
    /// Of an open run: the outcome that is decided already.
    pub outcome: Option<Outcome>,
    pub invocation: Option<String>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// With user names and passwords in URLs.
    pub argv: Vec<String>,
    pub accounting: Accounting,
}

/// Which rows of a list to return.
#[derive(Clone, Debug)]
pub struct ListFilter {
    /// A status of the table; `open` stands for runs that have not ended.
    pub status: Option<String>,
    /// Only rows of this crawl or snapshot.
    pub owner: Option<Owner>,
    /// At most this many rows; 0 for all.
    pub limit: u32,
    /// Only rows with lower ids.
    pub before: Option<i64>,
    /// Only runs with higher ids; for the time line, which is sorted the other way round.
    pub after: Option<RunId>,
    /// Bytes of text after which the list ends. It has at least one row.
    pub bytes_max: usize,
}

impl Default for ListFilter {
    fn default() -> ListFilter {
        ListFilter {
            status: None,
            owner: None,
            limit: 0,
            before: None,
            after: None,
            bytes_max: usize::MAX,
        }
    }
}
