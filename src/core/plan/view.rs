//! What the plan decides on the starts of workers from.

use super::Outlook;
use super::host_lease::HostLease;
use super::network::{HostNetwork, NetworkOutage};
use super::pressure::Allowance;
use crate::model::{CrawlId, SnapshotId, Time};
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
    pub lease: HostLease,
    pub network: HostNetwork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub id: SnapshotId,
    pub host: HostId,
}

/// A crawl whose setup is done, with the heads of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCrawl {
    pub id: CrawlId,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// Its due snapshots, by turns of its hosts, the oldest of each first; at most as many as could
    /// ever start.
    pub due: Vec<Due>,
}

/// Crawls and snapshots with and without workers, and what their starts depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub now: Time,
    pub allowance: Allowance,
    /// Crawls that have a worker.
    pub crawl_workers: u32,
    /// Snapshots that have a worker.
    pub snapshot_workers: u32,
    /// Due crawls without a worker, oldest first, at most as many as could ever start.
    pub due_crawls: Vec<CrawlId>,
    /// Crawls whose snapshots may start.
    pub open_crawls: Vec<OpenCrawl>,
    pub hosts: BTreeMap<HostId, Host>,
    /// The earliest time at which something that is not due yet becomes due.
    pub next_due: Option<Time>,
}

impl View {
    /// Whether a worker may start as far as slots are concerned.
    fn has_due(&self) -> bool {
        !self.due_crawls.is_empty() || self.open_crawls.iter().any(|crawl| !crawl.due.is_empty())
    }

    /// The outage for which pages wait.
    fn outage(&self) -> Option<&NetworkOutage> {
        let mut hosts = self.hosts.values();
        hosts.find_map(|host| host.network.outage())
    }

    /// Returns what is left to do.
    pub fn outlook(&self) -> Outlook {
        let is_blocked = self.allowance.is_outage || self.has_due();
        let pressure = self.allowance.pressure.clone().filter(|_| is_blocked);
        let outage = self.outage();
        let trial = outage.map(|outage| outage.next);
        Outlook {
            is_busy: self.crawl_workers > 0
                || self.snapshot_workers > 0
                || self.has_due()
                || outage.is_some()
                || self.next_due.is_some(),
            blocked: pressure.or_else(|| outage.map(ToString::to_string)),
            next: [self.next_due, trial].into_iter().flatten().min(),
        }
    }
}
