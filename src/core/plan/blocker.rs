//! The limits of starts, and what blocks a start.

use super::network::NetworkOutage;
use crate::model::{Pool, Time};

/// The limits of what runs concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workers of one kind (crawl, snapshot).
    pub workers_per_kind: u32,
    /// Workers of all kinds.
    pub workers_max: u32,
    pub snapshots_per_crawl: u32,
    /// Snapshots of one host, of all crawls together.
    pub snapshots_per_host: u32,
    pub fast_checks: u32,
    pub slow_checks: u32,
}

/// What blocks a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// Disk space or memory is short; the reason.
    Pressure(String),
    /// All slots for workers of this kind are taken; their number.
    KindFull(u32),
    /// All slots for workers are taken; their number.
    AllFull(u32),
    /// All slots that crawls may take are taken: the number of crawls, and of all slots. The other
    /// slots are reserved for their snapshots.
    HalfFull(u32, u32),
    /// All slots of its crawl are taken; their number.
    CrawlFull(u32),
    /// All slots of its host are taken; their number.
    HostFull(u32),
    /// No snapshot of its host starts before this time.
    HostUntil(Time),
    /// The machine does not reach the Internet.
    Network(NetworkOutage),
    /// The fleet has not leased its host to this node.
    NotLeased,
    HostLeaves,
    /// All slots of its pool are taken; their number.
    PoolFull(Pool, u32),
}

impl Blocker {
    pub fn code(&self) -> &'static str {
        match self {
            Blocker::Pressure(_) => "pressure",
            Blocker::KindFull(_) => "kind-full",
            Blocker::AllFull(_) => "all-full",
            Blocker::HalfFull(..) => "half-full",
            Blocker::CrawlFull(_) => "crawl-full",
            Blocker::HostFull(_) => "host-full",
            Blocker::HostUntil(_) => "host-delay",
            Blocker::Network(_) => "network",
            Blocker::NotLeased => "not-leased",
            Blocker::HostLeaves => "host-leaves",
            Blocker::PoolFull(..) => "pool-full",
        }
    }
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut full = |limit: u32, of: &str, key: &str| {
            write!(f, "waiting for a free slot: {limit} of {limit} {of} busy ({key}={limit})")
        };
        match self {
            Blocker::Pressure(why) => write!(f, "no start is possible: {why}"),
            Blocker::KindFull(limit) => full(*limit, "workers of its kind", "WorkersPerKind"),
            Blocker::AllFull(limit) => full(*limit, "workers", "WorkersMax"),
            Blocker::HalfFull(crawls, limit) => write!(
                f,
                "waiting for a free slot: {crawls} crawls busy, the other slots of WorkersMax={limit} are reserved for their pages"
            ),
            Blocker::CrawlFull(limit) => full(*limit, "pages of its crawl", "SnapshotsPerCrawl"),
            Blocker::HostFull(limit) => full(*limit, "pages of its host", "HostWorkers"),
            Blocker::PoolFull(Pool::Fast, limit) => full(*limit, "fast checks", "FastChecks"),
            Blocker::PoolFull(Pool::Slow, limit) => full(*limit, "slow checks", "SlowChecks"),
            Blocker::PoolFull(Pool::Alerts, limit) => {
                write!(f, "waiting for a free slot: {limit} of {limit} alerts busy")
            }
            Blocker::HostUntil(time) => write!(f, "its host gets no further page before {time}"),
            Blocker::Network(outage) => {
                write!(f, "no start is possible: {outage}; next trial after {}", outage.next)
            }
            Blocker::NotLeased => f.write_str("the fleet has not leased its host to this node"),
            Blocker::HostLeaves => f.write_str("its host goes to another node of the fleet"),
        }
    }
}
