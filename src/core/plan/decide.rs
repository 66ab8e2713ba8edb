//! Which workers to start now, and when to look again.

use super::checks::{Checks, decide_checks};
use crate::model::{CrawlId, Pool, RunId, SnapshotId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

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

/// Number of a web server's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub i64);

/// What is known of a host whose pages wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// No snapshot of it is to be started before this time.
    pub next_at: Time,
    /// From one start to the next.
    pub delay: Duration,
}

/// A page whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub id: SnapshotId,
    pub host: HostId,
}

/// A crawl that is started and set up, with the heads of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCrawl {
    pub id: CrawlId,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// Its due snapshots: its hosts take turns, and of each the oldest come first; at most as many
    /// as could ever start.
    pub due: Vec<Due>,
}

/// What a decision is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub now: Time,
    /// Why nothing at all is to be started.
    pub pressure: Option<String>,
    /// Crawls that have a worker.
    pub crawl_workers: u32,
    /// Snapshots that have a worker.
    pub snapshot_workers: u32,
    /// Due crawls without a worker, oldest first, at most as many as could ever start.
    pub due_crawls: Vec<CrawlId>,
    pub open_crawls: Vec<OpenCrawl>,
    /// The hosts of the due snapshots.
    pub hosts: BTreeMap<HostId, Host>,
    pub checks: Checks,
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
    }

    /// Why nothing is started although something is due.
    pub fn blocked(&self) -> Option<&str> {
        let due = !self.due_crawls.is_empty()
            || !self.checks.slow.due.is_empty()
            || self.open_crawls.iter().any(|crawl| !crawl.due.is_empty());
        self.pressure.as_deref().filter(|_| due)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    StartCrawl(CrawlId),
    StartSnapshot(SnapshotId),
    StartCheck(RunId),
}

/// What stands against a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
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

impl Hindrance {
    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Hindrance::Pressure(_) => "pressure",
            Hindrance::KindFull(_) => "kind-full",
            Hindrance::AllFull(_) => "all-full",
            Hindrance::HalfFull(..) => "half-full",
            Hindrance::CrawlFull(_) => "crawl-full",
            Hindrance::HostFull(_) => "host-full",
            Hindrance::HostUntil(_) => "host-delay",
            Hindrance::PoolFull(..) => "pool-full",
        }
    }
}

impl std::fmt::Display for Hindrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut full = |limit: u32, of: &str, key: &str| {
            write!(
                f,
                "a free place is awaited: {limit} {of} are at work ({key}={limit})"
            )
        };
        match self {
            Hindrance::Pressure(why) => write!(f, "nothing is started now: {why}"),
            Hindrance::KindFull(limit) => full(*limit, "workers of its kind", "WorkersPerKind"),
            Hindrance::AllFull(limit) => full(*limit, "workers", "WorkersMax"),
            Hindrance::HalfFull(crawls, limit) => write!(
                f,
                "a free place is awaited: {crawls} crawls are at work, the rest of WorkersMax={limit} is their pages'"
            ),
            Hindrance::CrawlFull(limit) => full(*limit, "pages of its crawl", "SnapshotsPerCrawl"),
            Hindrance::HostFull(limit) => full(*limit, "pages of its host", "HostWorkers"),
            Hindrance::PoolFull(Pool::Fast, limit) => full(*limit, "fast checks", "FastChecks"),
            Hindrance::PoolFull(Pool::Slow, limit) => full(*limit, "slow checks", "SlowChecks"),
            Hindrance::PoolFull(Pool::Alerts, limit) => {
                write!(f, "a free place is awaited: {limit} alerts are at work")
            }
            Hindrance::HostUntil(time) => write!(f, "its host is left alone until {time}"),
        }
    }
}

/// The places that are taken, as starts are decided on.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    limits: &'a Limits,
    now: Time,
    pressure: Option<&'a str>,
    crawls: u32,
    snapshots: u32,
    hosts: BTreeMap<HostId, Host>,
}

impl<'a> Places<'a> {
    pub fn of(view: &'a View, limits: &'a Limits) -> Places<'a> {
        Places {
            limits,
            now: view.now,
            pressure: view.pressure.as_deref(),
            crawls: view.crawl_workers,
            snapshots: view.snapshot_workers,
            hosts: view.hosts.clone(),
        }
    }

    fn against_kind(&self, at_work: u32) -> Option<Hindrance> {
        if let Some(why) = self.pressure {
            return Some(Hindrance::Pressure(why.to_owned()));
        }
        let limit = self.limits.workers_per_kind;
        (at_work >= limit).then_some(Hindrance::KindFull(limit))
    }

    fn against_all(&self) -> Option<Hindrance> {
        let limit = self.limits.workers_max;
        (self.crawls + self.snapshots >= limit).then_some(Hindrance::AllFull(limit))
    }

    /// What stands against the start of another crawl. A crawl waits for its snapshots, so crawls take half of all places at
    /// most.
    pub fn against_crawl(&self) -> Option<Hindrance> {
        let limit = self.limits.workers_max;
        let full = self.crawls >= (limit / 2).max(1);
        self.against_kind(self.crawls)
            .or_else(|| self.against_all())
            .or_else(|| full.then_some(Hindrance::HalfFull(self.crawls, limit)))
    }

    /// What stands against the start of another snapshot, whatever its crawl and host. There is a place for one, though crawls
    /// that were resumed may have taken all: they would wait for ever.
    pub fn against_snapshot(&self) -> Option<Hindrance> {
        let first = self.snapshots == 0;
        self.against_kind(self.snapshots)
            .or_else(|| self.against_all().filter(|_| !first))
    }

    /// What stands against another snapshot of a crawl that has so many at work.
    pub fn against_crawls_snapshot(&self, running: u32) -> Option<Hindrance> {
        let limit = self.limits.snapshots_per_crawl;
        (running >= limit).then_some(Hindrance::CrawlFull(limit))
    }

    /// What stands against another snapshot of a host.
    pub fn against_host(&self, id: HostId) -> Option<Hindrance> {
        self.hosts
            .get(&id)
            .and_then(|host| against_host(host, self.limits, self.now))
    }

    fn take_snapshot(&mut self, host: HostId) {
        self.snapshots += 1;
        if let Some(host) = self.hosts.get_mut(&host) {
            host.running += 1;
            host.next_at = host.next_at.max(self.now.after(host.delay));
        }
    }
}

/// What stands against another snapshot of this host.
pub fn against_host(host: &Host, limits: &Limits, now: Time) -> Option<Hindrance> {
    if host.next_at > now {
        return Some(Hindrance::HostUntil(host.next_at));
    }
    let limit = limits.snapshots_per_host;
    (host.running >= limit).then_some(Hindrance::HostFull(limit))
}

/// Decides on all starts that the limits allow, in the order in which they are to be made:
/// checks of watches first, which have pools of their own, then crawls, then snapshots of the crawls in turn, so that a long crawl starves no other.
///
/// The checks and their order are those of ArchiveBox's orchestrator: something is due, its kind
/// has a place, all kinds together have one. Each worker serves one item.
pub fn decide(view: &View, limits: &Limits) -> Vec<Decision> {
    let (fast, slow) = (limits.fast_checks, limits.slow_checks);
    let checks = decide_checks(&view.checks, fast, slow, view.pressure.is_some());
    let mut decisions: Vec<_> = checks.into_iter().map(Decision::StartCheck).collect();
    let mut places = Places::of(view, limits);
    for id in &view.due_crawls {
        if places.against_crawl().is_some() {
            break;
        }
        decisions.push(Decision::StartCrawl(*id));
        places.crawls += 1;
    }

    let mut queues: Vec<(u32, VecDeque<Due>)> = view
        .open_crawls
        .iter()
        .map(|crawl| (crawl.running, crawl.due.iter().copied().collect()))
        .collect();
    while places.against_snapshot().is_none() {
        // The crawl with the fewest running snapshots is next; equals in the order of their ids.
        let next = queues
            .iter_mut()
            .filter(|(running, _)| places.against_crawls_snapshot(*running).is_none())
            .filter_map(|(running, due)| {
                let free = |due: &Due| places.against_host(due.host).is_none();
                let place = due.iter().position(free)?;
                Some((running, due, place))
            })
            .min_by_key(|(running, ..)| **running);
        let Some((running, due, place)) = next else {
            break;
        };
        let Some(due) = due.remove(place) else { break };
        decisions.push(Decision::StartSnapshot(due.id));
        *running += 1;
        places.take_snapshot(due.host);
    }
    decisions
}

#[cfg(test)]
mod tests;
