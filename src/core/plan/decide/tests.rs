use super::super::network::Network;
use super::super::pressure::Allowance;
use super::super::view::OpenCrawl;
use super::*;
use proptest::prelude::*;
use std::time::Duration;

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
fn worker_starts_by_due_items_and_limits() {
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

/// With places for crawls alone, all would wait for their pages.
#[test]
fn crawls_reserve_slots_for_their_pages() {
    let started = |most: u32, crawls: u32, pages: u32| {
        let limits = Limits { workers_max: most, ..LIMITS };
        let view = View {
            due_crawls: (100..109).map(CrawlId).collect(),
            open_crawls: (0..crawls.into()).map(|n| open(n, 0, 9 * n..9 * n + 9)).collect(),
            crawl_workers: crawls,
            snapshot_workers: pages,
            ..View::default()
        };
        let decisions = decide(&view, &limits);
        let crawls =
            decisions.iter().filter(|start| matches!(start, Decision::StartCrawl(_))).count();
        (crawls, decisions.len() - crawls)
    };
    assert_eq!(started(1, 0, 0), (1, 0));
    assert_eq!(started(1, 1, 0), (0, 1));
    assert_eq!(started(1, 1, 1), (0, 0));
    assert_eq!(started(4, 0, 0), (2, 0));
    assert_eq!(started(4, 2, 0), (0, 2));
    assert_eq!(started(12, 0, 0), (4, 0), "of its kind");
    // They were paused, and are resumed.
    assert_eq!(started(4, 4, 0), (0, 1));
    assert_eq!(started(4, 4, 1), (0, 0));
}

fn open(id: i64, running: u32, due: std::ops::Range<i64>) -> OpenCrawl {
    OpenCrawl { id: CrawlId(id), running, due: due.map(|id| page(id, id)).collect() }
}

fn page(id: i64, host: i64) -> Due {
    Due { id: SnapshotId(id), host: HostId(host) }
}

fn started(decisions: &[Decision]) -> Vec<i64> {
    let ids = decisions.iter().map(|decision| match decision {
        Decision::StartSnapshot(id) => id.0,
        Decision::StartCrawl(id) => panic!("{id} is not due"),
    });
    ids.collect()
}

/// Hosts 1 to 3 are on the Internet, which the machine does not reach; host 4 is its own.
#[test]
fn one_page_tries_whether_the_network_is_back() {
    let mut network = Network::default();
    network.is_down(SnapshotId(9), "names cannot be resolved", Time(1000));
    let trial = network.outage().unwrap().next;
    let view = |network: &Network, now| View {
        now,
        open_crawls: (1..5)
            .map(|host| OpenCrawl {
                id: CrawlId(host),
                running: 0,
                due: vec![page(host * 10, host), page(host * 10 + 1, host)],
            })
            .collect(),
        hosts: (1..5)
            .map(|host| {
                let network = network.of_host(host < 4, now);
                (HostId(host), Host { network, ..Host::default() })
            })
            .collect(),
        ..View::default()
    };
    let waiting = view(&network, Time(1000));
    assert_eq!(started(&decide(&waiting, &LIMITS)), [40, 41]);
    let why = Places::of(&waiting, &LIMITS).against_host(HostId(2)).unwrap();
    assert!(why.to_string().contains("names cannot be resolved"), "{why}");
    let outlook = waiting.outlook();
    assert_eq!(outlook.next, Some(trial));
    assert!(outlook.blocked.unwrap().starts_with("the network is down since"));
    assert_eq!(started(&decide(&view(&network, trial), &LIMITS)), [10, 40, 41]);
    network.is_up();
    assert_eq!(started(&decide(&view(&network, trial), &LIMITS)), [10, 20, 30, 40]);
    assert_eq!(view(&network, trial).outlook().blocked, None);
}

/// Host 1 takes no more, host 2 has to wait after each start, host 3 is free.
#[test]
fn blocked_host_does_not_delay_other_hosts() {
    let full = Host { running: 2, ..Host::default() };
    let slow = Host { delay: Duration::from_secs(5), ..Host::default() };
    let due = [(10, 1), (11, 1), (20, 2), (21, 2), (30, 3), (31, 3), (32, 3)];
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
    assert_eq!(places.against_host(HostId(1)), Some(Blocker::HostFull(2)));
    view.hosts.get_mut(&HostId(3)).unwrap().next_at = Time(1001);
    assert_eq!(started(&decide(&view, &LIMITS)), [20]);
    let places = Places::of(&view, &LIMITS);
    let until = Some(Blocker::HostUntil(Time(1001)));
    assert_eq!(places.against_host(HostId(3)), until);
}

#[test]
fn under_pressure_nothing_starts() {
    let view = View {
        allowance: Allowance { pressure: Some("no space".into()), is_outage: false },
        due_crawls: vec![CrawlId(1)],
        open_crawls: vec![open(2, 0, 1..9)],
        ..View::default()
    };
    assert_eq!(decide(&view, &LIMITS), []);
    let places = Places::of(&view, &LIMITS);
    let why = Some(Blocker::Pressure("no space".into()));
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
    let limits =
        Limits { workers_per_kind: 100, workers_max: 100, snapshots_per_crawl: 8, ..LIMITS };
    let view = View { open_crawls: vec![open(1, 5, 10..90)], ..View::default() };
    assert_eq!(decide(&view, &limits).len(), 3);
}

proptest! {
    #[test]
    fn decisions_respect_limits_for_every_view(
        crawl_workers in 0u32..20, per_kind in 0u32..10, max in 1u32..15, per_crawl in 0u32..10,
        due_crawls in 0i64..10, per_host in 1u32..4, at_hosts in prop::collection::vec((0u32..4, 0i64..3), 7),
        queues in prop::collection::vec((0u32..9, 0i64..20), 0..6),
    ) {
        let limits = Limits { workers_per_kind: per_kind, workers_max: max, snapshots_per_crawl: per_crawl, snapshots_per_host: per_host, ..LIMITS };
        let open_crawls: Vec<_> = queues.iter().enumerate()
            .map(|(n, (running, due))| open(n as i64, *running, n as i64 * 100..n as i64 * 100 + due))
            .collect();
        // Seven hosts; some have no free slot, some are delayed.
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
            now: Time(1), allowance: Allowance::default(), hosts: hosts.clone(),
        };
        let decisions = decide(&view, &limits);
        let crawls = decisions.iter().filter(|d| matches!(d, Decision::StartCrawl(_))).count() as u32;
        let snapshots = decisions.len() as u32 - crawls;
        prop_assert!(crawls == 0 || crawl_workers + crawls <= per_kind.min((max / 2).max(1)));
        prop_assert!(snapshots == 0 || snapshot_workers + snapshots <= per_kind);
        let all = crawl_workers + snapshot_workers + crawls + snapshots;
        prop_assert!(decisions.is_empty() || all <= max || (snapshot_workers + snapshots == 1 && snapshots == 1));
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
        if room && crawl_workers + crawls < per_kind.min((max / 2).max(1)) {
            prop_assert_eq!(i64::from(crawls), due_crawls);
        }
    }
}
