//! What a node does when it sees another generation of the database, which may be older than what the
//! node has: it compares its crawls and pages with those of the database by id and epoch, and sends what
//! the database lacks. All of it is safe to repeat.

use super::page::{CrawlSpec, LeasedPage};
use super::request::{NodeRequest, Record, Submit};
use super::value::Epoch;
use crate::model::{CrawlId, SnapshotId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of the requests in this file as entries of the outbox: they precede all others.
pub const RECALL: u64 = 0;
/// Crawls and pages in one [`Compare`].
pub const COMPARED: usize = 500;
/// Pages in one `Restore`: each has the outputs of its hooks.
pub const RESTORED: usize = 16;
/// Entries that were answered this long before the database last knew of the node are sent again, too,
/// next to 2 % of the time since, by which clocks may differ.
const SLACK: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compare {
    pub crawls: Vec<CrawlId>,
    /// Pages with the epoch of their record; 0 for a page that the node has not archived.
    pub pages: Vec<(SnapshotId, Epoch)>,
}

/// A page that the database lacks, or whose record it lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// As the node got it. Its number of attempts is not used.
    pub page: LeasedPage,
    /// How it ended; `None` for a page that the node has not archived, which is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A crawl. Crawls precede their pages.
    Crawl(CrawlId),
    Page(SnapshotId),
}

/// Returns the request that creates a crawl again.
pub fn crawl_again(crawl: CrawlId, spec: CrawlSpec) -> NodeRequest {
    NodeRequest::Submit(Submit { crawl, spec: Some(spec), pages: Vec::new() })
}

/// Returns how long ago the first entry was answered that is sent again to a database that last knew of
/// the node this long ago.
pub fn resent_since(forgot: Duration) -> Duration {
    forgot.saturating_add(SLACK + forgot / 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_grows_with_the_time_since_the_backup() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(resent_since(Duration::ZERO), SLACK);
        assert_eq!(resent_since(hours(100)), hours(102) + SLACK);
    }
}
