//! Which workers to start now.

use super::blocker::{Blocker, Limits};
use super::host_lease::HostLease;
use super::network::HostNetwork;
use super::view::{Due, Host, HostId, View};
use crate::model::{CrawlId, SnapshotId, Time};
use std::collections::{BTreeMap, VecDeque};

/// A start that the orchestrator must make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    StartCrawl(CrawlId),
    StartSnapshot(SnapshotId),
}

/// The slots that are taken, including those of the starts decided so far.
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
    /// Counts the slots that are taken according to the view.
    pub fn of(view: &'a View, limits: &'a Limits) -> Places<'a> {
        Places {
            limits,
            now: view.now,
            pressure: view.allowance.pressure.as_deref(),
            crawls: view.crawl_workers,
            snapshots: view.snapshot_workers,
            hosts: view.hosts.clone(),
        }
    }

    fn against_kind(&self, at_work: u32) -> Option<Blocker> {
        if let Some(why) = self.pressure {
            return Some(Blocker::Pressure(why.to_owned()));
        }
        let limit = self.limits.workers_per_kind;
        (at_work >= limit).then_some(Blocker::KindFull(limit))
    }

    fn against_all(&self) -> Option<Blocker> {
        let limit = self.limits.workers_max;
        (self.crawls + self.snapshots >= limit).then_some(Blocker::AllFull(limit))
    }

    /// What blocks the start of another crawl. A crawl waits for its snapshots, so crawls take at
    /// most half of all slots.
    pub fn against_crawl(&self) -> Option<Blocker> {
        let limit = self.limits.workers_max;
        let full = self.crawls >= (limit / 2).max(1);
        self.against_kind(self.crawls)
            .or_else(|| self.against_all())
            .or_else(|| full.then_some(Blocker::HalfFull(self.crawls, limit)))
    }

    /// What blocks the start of another snapshot, apart from its crawl and host. One snapshot may
    /// always run: resumed crawls may have taken all slots, and would wait for ever.
    pub fn against_snapshot(&self) -> Option<Blocker> {
        let first = self.snapshots == 0;
        self.against_kind(self.snapshots).or_else(|| self.against_all().filter(|_| !first))
    }

    /// What blocks another snapshot of a crawl with this number of running snapshots.
    pub fn against_crawls_snapshot(&self, running: u32) -> Option<Blocker> {
        let limit = self.limits.snapshots_per_crawl;
        (running >= limit).then_some(Blocker::CrawlFull(limit))
    }

    /// What blocks another snapshot of a host.
    pub fn against_host(&self, id: HostId) -> Option<Blocker> {
        self.hosts.get(&id).and_then(|host| against_host(host, self.limits, self.now))
    }

    fn take_snapshot(&mut self, host: HostId) {
        self.snapshots += 1;
        let Some(host) = self.hosts.get_mut(&host) else {
            return;
        };
        host.running += 1;
        host.next_at = host.next_at.max(self.now.after(host.delay));
        if matches!(host.network, HostNetwork::Trial(_)) {
            // One page tries for all.
            for host in self.hosts.values_mut() {
                if let HostNetwork::Trial(outage) = &host.network {
                    host.network = HostNetwork::Down(outage.clone());
                }
            }
        }
    }
}

/// What blocks another snapshot of this host.
pub fn against_host(host: &Host, limits: &Limits, now: Time) -> Option<Blocker> {
    if !host.lease.allows(now) {
        let leaves = host.lease == HostLease::Leaving;
        return Some(if leaves { Blocker::HostLeaves } else { Blocker::NotLeased });
    }
    if let Some(outage) = host.network.outage() {
        return Some(Blocker::Network(outage.clone()));
    }
    if host.next_at > now {
        return Some(Blocker::HostUntil(host.next_at));
    }
    let limit = limits.snapshots_per_host;
    (host.running >= limit).then_some(Blocker::HostFull(limit))
}

/// Decides on all starts of workers that the limits allow, in the order in which they are made:
/// crawls, then snapshots of the crawls in turn, so that a long crawl starves no other.
///
/// The rules and their order are those of ArchiveBox's orchestrator: an item is due, its kind has a
/// free slot, and so have all kinds together. Each worker serves one item.
pub fn decide(view: &View, limits: &Limits) -> Vec<Decision> {
    let mut decisions = Vec::new();
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
        // The crawl with the fewest running snapshots is next; of equals, the one with the lowest
        // id.
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
