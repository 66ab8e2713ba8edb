//! What the plan decides from.

use super::checks::Checks;
use super::host_lease::HostLease;
use crate::model::{CrawlId, SnapshotId, Time};
use crate::store::Transfers;
use std::collections::BTreeMap;
use std::time::Duration;

/// Number of a web server's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub i64);

/// A host with pages that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Name of the host, as in URLs.
    pub name: String,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// No snapshot of it starts before this time.
    pub next_at: Time,
    /// Minimum time from one start to the next.
    pub delay: Duration,
    /// Whether this machine may start its pages.
    pub lease: HostLease,
}

/// A snapshot that may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The snapshot.
    pub id: SnapshotId,
    /// Host of its URL.
    pub host: HostId,
}

/// A crawl whose setup is done, with the heads of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCrawl {
    /// The crawl.
    pub id: CrawlId,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// Its due snapshots, by turns of its hosts, the oldest of each first; at most as many as could
    /// ever start.
    pub due: Vec<Due>,
}

/// Everything that the plan decides from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Wall-clock time of this turn.
    pub now: Time,
    /// Why nothing may be started.
    pub pressure: Option<String>,
    /// The machine can do no work at all.
    pub is_outage: bool,
    /// Crawls that have a worker.
    pub crawl_workers: u32,
    /// Snapshots that have a worker.
    pub snapshot_workers: u32,
    /// Due crawls without a worker, oldest first, at most as many as could ever start.
    pub due_crawls: Vec<CrawlId>,
    /// Crawls whose snapshots may start.
    pub open_crawls: Vec<OpenCrawl>,
    /// The hosts of the due snapshots.
    pub hosts: BTreeMap<HostId, Host>,
    /// Running and due checks, by pool.
    pub checks: Checks,
    /// Running and due transfers to and from the store.
    pub transfers: Transfers,
    /// The earliest time at which something that is not due yet becomes due.
    pub next_due: Option<Time>,
}

impl View {
    /// Whether there is work, now or later: without it, an orchestrator that stands by may leave.
    pub fn is_busy(&self) -> bool {
        self.crawl_workers > 0
            || self.snapshot_workers > 0
            || !self.due_crawls.is_empty()
            || self.open_crawls.iter().any(|crawl| !crawl.due.is_empty())
            || self.next_due.is_some()
            || self.checks.is_busy()
            || self.transfers.is_busy()
    }

    /// Why nothing is started although something is due, or why nothing could be.
    pub fn blocked(&self) -> Option<&str> {
        let due = self.is_outage
            || !self.due_crawls.is_empty()
            || !self.checks.slow.due.is_empty()
            || self.open_crawls.iter().any(|crawl| !crawl.due.is_empty());
        self.pressure.as_deref().filter(|_| due)
    }
}
