//! The rows of lists, and which of them to return.

use crate::store::{Counts, RunState};
use archivist_core::model::{Accounting, CrawlId, HttpRange, Lifecycle, Outcome, Owner, RunId};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::unit::UnitKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// A crawl with its counts and tags.
#[derive(Clone, Debug)]
pub struct CrawlEntry {
    /// Number of its row, printed as `c12`.
    pub id: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Why it has its status, if that is not obvious.
    pub reason: Option<String>,
    /// The first of its URLs, with user name and password if it has any.
    pub url: String,
    /// Links to follow from the given pages.
    pub max_depth: u32,
    /// Its tags.
    pub tags: Vec<String>,
    /// The plugins that it is limited to; empty means all.
    pub plugins: Vec<String>,
    /// Settings, secrets included.
    pub config: BTreeMap<String, String>,
    /// When it was queued.
    pub created_at: Time,
    /// When it started; `None` before.
    pub started_at: Option<Time>,
    /// When it ended; `None` before.
    pub ended_at: Option<Time>,
    /// Not started before this time.
    pub retry_at: Option<Time>,
    /// Attempts so far.
    pub attempts: u32,
    /// Its snapshots by status.
    pub snapshots: Counts,
    /// Its snapshots that ended before their work was done.
    pub incomplete: u64,
    /// Its results by status, with those of its snapshots.
    pub results: Counts,
    /// Its directory; `None` before the first start.
    pub directory: Option<String>,
}

/// A snapshot with its counts and tags.
#[derive(Clone, Debug)]
pub struct SnapshotEntry {
    /// Number of its row, printed as `s345`.
    pub id: SnapshotId,
    /// Its crawl.
    pub crawl: CrawlId,
    /// With user name and password if it has any.
    pub url: String,
    /// Title of the page, if known.
    pub title: Option<String>,
    /// Number of links from a page that the user added.
    pub depth: u32,
    /// Page that links to it; `None` for a page that the user added.
    pub parent: Option<SnapshotId>,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Why it has its status, if that is not obvious.
    pub reason: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// As the list of bookmarks states it.
    pub bookmarked_at: Option<String>,
    /// When it was queued.
    pub created_at: Time,
    /// When it started; `None` before.
    pub started_at: Option<Time>,
    /// When it ended; `None` before.
    pub ended_at: Option<Time>,
    /// Not started before this time.
    pub retry_at: Option<Time>,
    /// Attempts so far.
    pub attempts: u32,
    /// Its results by status.
    pub results: Counts,
    /// Its directory; `None` before the first start.
    pub directory: Option<String>,
    /// HTTP status of its document; `None` if no hook reported one.
    pub http_status: Option<u16>,
    /// Settings of the page alone, secrets included.
    pub config: BTreeMap<String, String>,
}

/// A run with its accounting.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Number of its row, printed as `r678`.
    pub id: RunId,
    /// Name of its unit.
    pub unit: String,
    /// Kind of its unit.
    pub kind: UnitKind,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// Name of the plugin; `None` for workers.
    pub plugin: Option<String>,
    /// Name of the hook; `None` for workers.
    pub hook: Option<String>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Starting, running or ended.
    pub status: RunState,
    /// Of an open run: the outcome that is decided already.
    pub outcome: Option<Outcome>,
    /// InvocationID of the unit, once known.
    pub invocation: Option<String>,
    /// When it started; `None` before.
    pub started_at: Option<Time>,
    /// When it ended; `None` before.
    pub ended_at: Option<Time>,
    /// With user names and passwords in URLs.
    pub argv: Vec<String>,
    /// CPU time, memory and traffic; known after the end.
    pub accounting: Accounting,
    /// Run of the worker that asked for it; `None` for the worker of a crawl.
    pub parent: Option<RunId>,
    /// Working directory, if it is not that of systemd.
    pub directory: Option<String>,
    /// Time limit that systemd enforces.
    pub limit: Option<Duration>,
}

/// Which rows of a list to return.
#[derive(Clone, Debug)]
pub struct ListFilter {
    /// A status of the table; `open` stands for runs that have not ended.
    pub status: Option<String>,
    /// Only rows of this crawl or snapshot.
    pub owner: Option<Owner>,
    /// Only pages whose documents have these HTTP statuses.
    pub http: Option<HttpRange>,
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
            http: None,
            limit: 0,
            before: None,
            after: None,
            bytes_max: usize::MAX,
        }
    }
}
