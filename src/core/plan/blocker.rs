//! The limits of starts, and what blocks a start.

use crate::model::{Pool, Time};

/// How much may go on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workers of one kind (crawl, snapshot).
    pub workers_per_kind: u32,
    /// Workers of all kinds.
    pub workers_max: u32,
    /// Snapshots of one crawl.
    pub snapshots_per_crawl: u32,
    /// Snapshots of one host, of all crawls together.
    pub snapshots_per_host: u32,
    /// Checks of the fast pool.
    pub fast_checks: u32,
    /// Checks of the slow pool.
    pub slow_checks: u32,
}

/// What stands against a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// Disk or memory are short; in words.
    Pressure(String),
    /// As many workers of its kind as there may be are at work.
    KindFull(u32),
    /// As many workers of all kinds as there may be are at work.
    AllFull(u32),
    /// As many crawls, of so many workers of all kinds, as leave places to their snapshots.
    HalfFull(u32, u32),
    /// As many snapshots of its crawl as there may be are at work.
    CrawlFull(u32),
    /// As many snapshots of its host as there may be are at work.
    HostFull(u32),
    /// Its host is left alone until then.
    HostUntil(Time),
    /// As many checks of its pool as there may be are at work.
    PoolFull(Pool, u32),
}

impl Blocker {
    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Blocker::Pressure(_) => "pressure",
            Blocker::KindFull(_) => "kind-full",
            Blocker::AllFull(_) => "all-full",
            Blocker::HalfFull(..) => "half-full",
            Blocker::CrawlFull(_) => "crawl-full",
            Blocker::HostFull(_) => "host-full",
            Blocker::HostUntil(_) => "host-delay",
            Blocker::PoolFull(..) => "pool-full",
        }
    }
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut full = |limit: u32, of: &str, key: &str| {
            write!(
                f,
                "waiting for a free slot: {limit} of {limit} {of} busy ({key}={limit})"
            )
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
        }
    }
}
