//! Which workers to start now, and when to look again.

use crate::model::{CrawlId, SnapshotId, Time};
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
}

/// A crawl that is started and set up, with the heads of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCrawl {
    pub id: CrawlId,
    /// Its snapshots that have a worker.
    pub running: u32,
    /// Its due snapshots, oldest first, at most as many as could ever start.
    pub due: Vec<SnapshotId>,
}

/// What a decision is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Crawls that have a worker.
    pub crawl_workers: u32,
    /// Snapshots that have a worker.
    pub snapshot_workers: u32,
    /// Due crawls without a worker, oldest first, at most as many as could ever start.
    pub due_crawls: Vec<CrawlId>,
    pub open_crawls: Vec<OpenCrawl>,
    /// The earliest time at which something that is not due yet becomes due.
    pub next_due: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    StartCrawl(CrawlId),
    StartSnapshot(SnapshotId),
}

/// The spawn rule: one more worker of a kind for `queued` items of it when there are `workers` of
/// the kind and `total` of all kinds, each of which serves `per_worker` items. The checks and
/// their order are those of ArchiveBox's orchestrator.
pub fn should_spawn(queued: u32, workers: u32, total: u32, limits: &Limits) -> bool {
    /// Items that one worker serves.
    const PER_WORKER: u32 = 1;
    if queued == 0 || workers >= limits.workers_per_kind || total >= limits.workers_max {
        return false;
    }
    // An item stays with its worker until it is done, so what is being served counts as queued.
    let items = queued + workers;
    !(workers > 0 && items <= workers * PER_WORKER)
}

/// Decides on all starts that the limits allow, in the order in which they are to be made:
/// crawls first, then snapshots of the crawls in turn, so that a long crawl starves no other.
pub fn decide(view: &View, limits: &Limits) -> Vec<Decision> {
    let mut decisions = Vec::new();
    let mut crawls = view.crawl_workers;
    let mut snapshots = view.snapshot_workers;

    let mut due = view.due_crawls.iter();
    while should_spawn(due.len() as u32, crawls, crawls + snapshots, limits) {
        let Some(id) = due.next() else { break };
        decisions.push(Decision::StartCrawl(*id));
        crawls += 1;
    }

    let mut queues: Vec<(u32, std::slice::Iter<'_, SnapshotId>)> = view
        .open_crawls
        .iter()
        .map(|crawl| (crawl.running, crawl.due.iter()))
        .collect();
    loop {
        // The crawl with the fewest running snapshots is next; equals in the order of their ids.
        let next = queues
            .iter_mut()
            .filter(|(running, due)| *running < limits.snapshots_per_crawl && due.len() > 0)
            .min_by_key(|(running, _)| *running);
        let Some((running, due)) = next else { break };
        if !should_spawn(due.len() as u32, snapshots, crawls + snapshots, limits) {
            break;
        }
        let Some(id) = due.next() else { break };
        decisions.push(Decision::StartSnapshot(*id));
        *running += 1;
        snapshots += 1;
    }
    decisions
}

/// Counts idleness for `--exit-on-idle`: done when nothing is pending, running or due later, for
/// `timeout` on end. A timeout of zero means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    pub timeout: Duration,
    pub since: Option<Time>,
}

impl Idle {
    /// Takes note of `view`; answers when to look again, or `None` while there is work.
    pub fn observe(&mut self, view: &View, now: Time) -> Option<Time> {
        let busy = view.crawl_workers > 0
            || view.snapshot_workers > 0
            || !view.due_crawls.is_empty()
            || view.open_crawls.iter().any(|crawl| !crawl.due.is_empty())
            || view.next_due.is_some();
        if busy {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        Some(since.after(self.timeout))
    }

    /// Whether it has lasted long enough.
    pub fn is_over(&self, now: Time) -> bool {
        let Some(since) = self.since else {
            return false;
        };
        !self.timeout.is_zero() && now >= since.after(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        workers_per_kind: 4,
        workers_max: 12,
        snapshots_per_crawl: 8,
    };

    /// Table of the spawn rule: queued, workers of the kind, workers of all kinds.
    #[test]
    fn spawn_rule() {
        let spawn = |q, w, t| should_spawn(q, w, t, &LIMITS);
        assert!(!spawn(0, 0, 0), "nothing to do");
        assert!(!spawn(9, 4, 4), "kind is full");
        assert!(!spawn(9, 3, 12), "all are full");
        assert!(spawn(1, 0, 0), "first worker");
        assert!(spawn(1, 3, 11), "one place left");
    }

    fn open(id: i64, running: u32, due: std::ops::Range<i64>) -> OpenCrawl {
        OpenCrawl {
            id: CrawlId(id),
            running,
            due: due.map(SnapshotId).collect(),
        }
    }

    #[test]
    fn crawls_take_turns() {
        let view = View {
            crawl_workers: 2,
            open_crawls: vec![open(1, 0, 10..90), open(2, 0, 100..102)],
            ..View::default()
        };
        let ids: Vec<_> = decide(&view, &LIMITS)
            .into_iter()
            .map(|decision| match decision {
                Decision::StartSnapshot(id) => id.0,
                Decision::StartCrawl(_) => panic!("no crawl is due"),
            })
            .collect();
        assert_eq!(ids, [10, 100, 11, 101]);
    }

    #[test]
    fn a_crawl_never_exceeds_its_own_limit() {
        let limits = Limits {
            workers_per_kind: 100,
            workers_max: 100,
            snapshots_per_crawl: 8,
        };
        let view = View {
            open_crawls: vec![open(1, 5, 10..90)],
            ..View::default()
        };
        assert_eq!(decide(&view, &limits).len(), 3);
    }

    #[test]
    fn idleness_must_last() {
        let mut idle = Idle {
            timeout: Duration::from_secs(3),
            since: None,
        };
        let nothing = View::default();
        let future = View {
            next_due: Some(Time(99_000)),
            ..View::default()
        };
        assert_eq!(idle.observe(&nothing, Time(1000)), Some(Time(4000)));
        assert!(!idle.is_over(Time(3999)));
        assert!(idle.is_over(Time(4000)));
        assert_eq!(
            idle.observe(&future, Time(3500)),
            None,
            "future work keeps it alive"
        );
        assert!(!idle.is_over(Time(9000)));
        let never = Idle {
            timeout: Duration::ZERO,
            since: Some(Time(0)),
        };
        assert!(!never.is_over(Time(i64::MAX)));
    }

    proptest! {
        #[test]
        fn limits_hold_for_every_view(
            crawl_workers in 0u32..20, per_kind in 0u32..10, max in 0u32..15, per_crawl in 0u32..10,
            due_crawls in 0i64..10, queues in prop::collection::vec((0u32..9, 0i64..20), 0..6),
        ) {
            let limits = Limits { workers_per_kind: per_kind, workers_max: max, snapshots_per_crawl: per_crawl };
            let open_crawls: Vec<_> = queues.iter().enumerate()
                .map(|(n, (running, due))| open(n as i64, *running, n as i64 * 100..n as i64 * 100 + due))
                .collect();
            let snapshot_workers = queues.iter().map(|(running, _)| running).sum();
            let view = View {
                crawl_workers, snapshot_workers, open_crawls,
                due_crawls: (1000..1000 + due_crawls).map(CrawlId).collect(), next_due: None,
            };
            let decisions = decide(&view, &limits);
            let crawls = decisions.iter().filter(|d| matches!(d, Decision::StartCrawl(_))).count() as u32;
            let snapshots = decisions.len() as u32 - crawls;
            prop_assert!(crawls == 0 || crawl_workers + crawls <= per_kind);
            prop_assert!(snapshots == 0 || snapshot_workers + snapshots <= per_kind);
            prop_assert!(decisions.is_empty() || crawl_workers + snapshot_workers + crawls + snapshots <= max);
            for crawl in &view.open_crawls {
                let started = decisions.iter()
                    .filter(|d| matches!(d, Decision::StartSnapshot(id) if crawl.due.contains(id)))
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
