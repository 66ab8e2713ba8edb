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

    fn against_worker(&self, of_kind: u32) -> Option<Hindrance> {
        if let Some(why) = self.pressure {
            return Some(Hindrance::Pressure(why.to_owned()));
        }
        let limits = self.limits;
        if of_kind >= limits.workers_per_kind {
            return Some(Hindrance::KindFull(limits.workers_per_kind));
        }
        (self.crawls + self.snapshots >= limits.workers_max)
            .then_some(Hindrance::AllFull(limits.workers_max))
    }

    /// What stands against the start of another crawl.
    pub fn against_crawl(&self) -> Option<Hindrance> {
        self.against_worker(self.crawls)
    }

    /// What stands against the start of another snapshot, whatever its crawl and host.
    pub fn against_snapshot(&self) -> Option<Hindrance> {
        self.against_worker(self.snapshots)
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        workers_per_kind: 4,
        workers_max: 12,
        snapshots_per_crawl: 8,
        snapshots_per_host: 2,
        fast_checks: 2,
        slow_checks: 2,
    };

    /// Table of the spawn rule: due items, workers of the kind, workers of all kinds.
    #[test]
    fn spawn_rule() {
        let spawn = |due: i64, crawl_workers, total: u32| {
            let view = View {
                due_crawls: (0..due).map(CrawlId).collect(),
                crawl_workers,
                snapshot_workers: total - crawl_workers,
                ..View::default()
            };
            !decide(&view, &LIMITS).is_empty()
        };
        assert!(!spawn(0, 0, 0), "nothing to do");
        assert!(!spawn(9, 4, 4), "kind is full");
        assert!(!spawn(9, 3, 12), "all are full");
        assert!(spawn(1, 0, 0), "first worker");
        assert!(spawn(1, 3, 11), "one place left");
    }

    /// Pages of a host for each page.
    fn open(id: i64, running: u32, due: std::ops::Range<i64>) -> OpenCrawl {
        OpenCrawl {
            id: CrawlId(id),
            running,
            due: due.map(|id| page(id, id)).collect(),
        }
    }

    fn page(id: i64, host: i64) -> Due {
        Due {
            id: SnapshotId(id),
            host: HostId(host),
        }
    }

    fn started(decisions: &[Decision]) -> Vec<i64> {
        let ids = decisions.iter().map(|decision| match decision {
            Decision::StartSnapshot(id) => id.0,
            other => panic!("{other:?} is not due"),
        });
        ids.collect()
    }

    /// Host 1 takes no more, host 2 has to wait after each start, host 3 is free.
    #[test]
    fn one_host_does_not_hold_up_the_others() {
        let full = Host {
            running: 2,
            ..Host::default()
        };
        let slow = Host {
            delay: Duration::from_secs(5),
            ..Host::default()
        };
        let due = [
            (10, 1),
            (11, 1),
            (20, 2),
            (21, 2),
            (30, 3),
            (31, 3),
            (32, 3),
        ];
        let mut view = View {
            now: Time(1000),
            open_crawls: vec![OpenCrawl {
                id: CrawlId(1),
                running: 0,
                due: due.iter().map(|(id, host)| page(*id, *host)).collect(),
            }],
            hosts: [full, slow, Host::default()]
                .into_iter()
                .enumerate()
                .map(|(n, host)| (HostId(n as i64 + 1), host))
                .collect(),
            ..View::default()
        };
        assert_eq!(started(&decide(&view, &LIMITS)), [20, 30, 31]);
        let places = Places::of(&view, &LIMITS);
        assert_eq!(places.against_host(HostId(1)), Some(Hindrance::HostFull(2)));
        view.hosts.get_mut(&HostId(3)).unwrap().next_at = Time(1001);
        assert_eq!(started(&decide(&view, &LIMITS)), [20]);
        let places = Places::of(&view, &LIMITS);
        let until = Some(Hindrance::HostUntil(Time(1001)));
        assert_eq!(places.against_host(HostId(3)), until);
    }

    #[test]
    fn under_pressure_nothing_starts() {
        let view = View {
            pressure: Some("no space".into()),
            due_crawls: vec![CrawlId(1)],
            open_crawls: vec![open(2, 0, 1..9)],
            ..View::default()
        };
        assert_eq!(decide(&view, &LIMITS), []);
        let places = Places::of(&view, &LIMITS);
        let why = Some(Hindrance::Pressure("no space".into()));
        assert_eq!(places.against_crawl(), why);
        assert_eq!(places.against_snapshot(), why);
    }

    #[test]
    fn crawls_take_turns() {
        let view = View {
            crawl_workers: 2,
            open_crawls: vec![open(1, 0, 10..90), open(2, 0, 100..102)],
            ..View::default()
        };
        assert_eq!(started(&decide(&view, &LIMITS)), [10, 100, 11, 101]);
    }

    #[test]
    fn a_crawl_never_exceeds_its_own_limit() {
        let limits = Limits {
            workers_per_kind: 100,
            workers_max: 100,
            snapshots_per_crawl: 8,
            ..LIMITS
        };
        let view = View {
            open_crawls: vec![open(1, 5, 10..90)],
            ..View::default()
        };
        assert_eq!(decide(&view, &limits).len(), 3);
    }

    proptest! {
        #[test]
        fn limits_hold_for_every_view(
            crawl_workers in 0u32..20, per_kind in 0u32..10, max in 0u32..15, per_crawl in 0u32..10,
            due_crawls in 0i64..10, per_host in 1u32..4, at_hosts in prop::collection::vec((0u32..4, 0i64..3), 7),
            queues in prop::collection::vec((0u32..9, 0i64..20), 0..6),
        ) {
            let limits = Limits { workers_per_kind: per_kind, workers_max: max, snapshots_per_crawl: per_crawl, snapshots_per_host: per_host, ..LIMITS };
            let open_crawls: Vec<_> = queues.iter().enumerate()
                .map(|(n, (running, due))| open(n as i64, *running, n as i64 * 100..n as i64 * 100 + due))
                .collect();
            // Seven hosts; some are full, some are to be left alone.
            let mut open_crawls = open_crawls;
            for due in open_crawls.iter_mut().flat_map(|crawl| &mut crawl.due) {
                due.host = HostId(due.id.0 % 7);
            }
            let host = |(running, next): &(u32, i64)| Host {
                running: *running, next_at: Time(*next), ..Host::default()
            };
            let hosts: BTreeMap<HostId, Host> = (0..).map(HostId).zip(at_hosts.iter().map(host)).collect();
            let snapshot_workers = queues.iter().map(|(running, _)| running).sum();
            let view = View {
                crawl_workers, snapshot_workers, open_crawls,
                due_crawls: (1000..1000 + due_crawls).map(CrawlId).collect(), next_due: None,
                now: Time(1), pressure: None, hosts: hosts.clone(), checks: Checks::default(),
            };
            let decisions = decide(&view, &limits);
            let crawls = decisions.iter().filter(|d| matches!(d, Decision::StartCrawl(_))).count() as u32;
            let snapshots = decisions.len() as u32 - crawls;
            prop_assert!(crawls == 0 || crawl_workers + crawls <= per_kind);
            prop_assert!(snapshots == 0 || snapshot_workers + snapshots <= per_kind);
            prop_assert!(decisions.is_empty() || crawl_workers + snapshot_workers + crawls + snapshots <= max);
            for (id, host) in &hosts {
                let of_host = |d: &&Decision| matches!(d, Decision::StartSnapshot(s) if s.0 % 7 == id.0);
                let started = decisions.iter().filter(of_host).count() as u32;
                prop_assert!(started == 0 || (host.next_at <= Time(1) && host.running + started <= per_host));
            }
            for crawl in &view.open_crawls {
                let started = decisions.iter()
                    .filter(|d| matches!(d, Decision::StartSnapshot(id) if crawl.due.iter().any(|due| due.id == *id)))
                    .count() as u32;
                prop_assert!(started == 0 || crawl.running + started <= per_crawl);
            }
            // What could still start and is not started would be work left lying about.
            let room = crawl_workers + snapshot_workers + crawls + snapshots < max;
            if room && crawl_workers + crawls < per_kind {
                prop_assert_eq!(i64::from(crawls), due_crawls);
            }
        }
    }
}
