//! What the orchestrator keeps of the fleet: its leases, the pages that it was handed, and the
//! outbox. The orchestrator has the same as rows.

use super::{NodeLease, Outbox, Recall, Standing};
use archivist_core::fleet::{
    BootTime, Claim, Claimed, CrawlSpec, Delivery, Epoch, Fate, Generation, Holdings, HostKey,
    Item, Lease, LeasedPage, Memory, NodeId, NodeRefusal, NodeReply, NodeRequest, Order, Orders,
    OutboxEntry, RECALL, Record, Release, Renewed, resent_since,
};
use archivist_core::model::{CrawlId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Entries of the outbox in one [`Holdings`].
const ENTRIES_PER_LOOK: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    Waiting,
    /// The start was decided, and the unit is not known to have begun.
    Starting,
    Running,
}

impl PagePlace {
    fn has_unit(self) -> bool {
        self != PagePlace::Waiting
    }
}

/// A page that the node was handed and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeskPage {
    /// As handed.
    pub leased: LeasedPage,
    pub epoch: Epoch,
    /// Waiting or running.
    pub place: PagePlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageRight {
    /// The page runs on. The next look is due at this time.
    Until(BootTime),
    /// The deadline has passed: stop the page and queue it again without counting an attempt. It
    /// starts again if the lease is renewed.
    Ended,
    /// The lease is lost: stop the page, discard its results, and remove it from the queue.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Stop the unit. The page waits again; no attempt is counted.
    Requeue(SnapshotId),
    /// Stop the unit and discard its results: the page is gone, or waits under a later claim.
    Discard(SnapshotId),
    /// Stop the unit and record the page as cancelled.
    Cancel(SnapshotId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most leases.
    pub hosts: u32,
    /// Hosts that it works on concurrently.
    pub slots: u32,
    pub pages_per_host: u32,
    /// Delay between two starts on a host (HostDelay=).
    pub delay: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desk {
    pub node: Option<NodeId>,
    /// Generation of the database that the outbox was sent to.
    pub generation: Generation,
    pub leases: BTreeMap<HostKey, Lease>,
    /// Leases that are released and not acknowledged yet. Each waits for the entries of the outbox
    /// up to its number.
    pub releasing: BTreeMap<HostKey, (Release, u64)>,
    pub pages: BTreeMap<SnapshotId, DeskPage>,
    pub outbox: Outbox,
    pub orders: Orders,
    /// Whether orders, or hosts and with them no orders, came since the latest hello.
    pub has_orders: bool,
    /// Leased hosts of which no page starts, because they are for another node.
    pub leaving: BTreeSet<HostKey>,
    /// Crawls that have had pages here and are not closed.
    pub crawls: BTreeSet<CrawlId>,
    /// Crawls that have had pages here.
    pub specs: BTreeMap<CrawlId, CrawlSpec>,
    /// Pages that this node has archived, each with its latest end.
    pub archived: BTreeMap<SnapshotId, (LeasedPage, Record)>,
    /// What was not compared yet with a database of another generation.
    pub recall: Recall,
    /// What is remembered of the database; node, generation and leases are above.
    pub memory: Memory,
}

impl Desk {
    /// Stores a delivery. Returns the running pages that it ends.
    pub fn deliver(&mut self, now: BootTime, delivery: Delivery, room: Room) -> Vec<Stop> {
        let mut replaced = Vec::new();
        match delivery {
            Delivery::Welcomed { node, generation, forgot } => {
                self.welcomed(now, node, generation, forgot)
            }
            Delivery::Claimed { claimed, sent } => {
                replaced = self.claimed(now, claimed, sent, room);
            }
            Delivery::Renewed { renewed, sent, refilled } => {
                let hosts: Vec<_> = renewed.leases.iter().map(|lease| lease.host.clone()).collect();
                self.renewed(now, renewed, sent);
                if refilled {
                    self.release_idle(now, &hosts);
                }
                self.choose_leaving();
                self.release_leaving(now);
            }
            Delivery::Released { host, epoch, .. } => {
                let released = self.releasing.get(&host);
                if released.is_some_and(|(release, _)| release.epoch == epoch) {
                    self.releasing.remove(&host);
                }
            }
            Delivery::Answered { number, reply } if number == RECALL => self.recalled(&reply),
            Delivery::Answered { number, reply } => self.answered(now, number, &reply),
            Delivery::Refused { .. } => {}
        }
        replaced.extend(self.stops(now));
        replaced
    }

    fn welcomed(
        &mut self,
        now: BootTime,
        node: NodeId,
        generation: Generation,
        forgot: Option<Duration>,
    ) {
        if self.node.is_some_and(|former| former != node) {
            self.leases.clear();
            self.releasing.clear();
        }
        if self.node.is_some() && self.generation != generation {
            let since = resent_since(forgot.unwrap_or(Duration::MAX));
            self.outbox.resend(now.before(since));
            (self.memory.submitted, self.memory.recorded) = (None, None);
            let crawls = self.specs.keys().copied().map(Item::Crawl);
            let pages = self.archived.keys().chain(self.pages.keys());
            let pages = pages.copied().map(Item::Page);
            self.recall.begin(crawls.chain(pages));
        }
        self.node = Some(node);
        self.generation = generation;
        self.has_orders = false;
    }

    fn answered(&mut self, now: BootTime, number: u64, reply: &Result<NodeReply, NodeRefusal>) {
        match (self.outbox.request(number), reply) {
            (Some(NodeRequest::Record(record)), Ok(NodeReply::Recorded(Fate::Stale))) => {
                let (page, epoch) = (record.page, record.epoch);
                let own = self.archived.get(&page);
                if own.is_some_and(|(_, own)| own.epoch == epoch) {
                    self.archived.remove(&page);
                }
            }
            (Some(NodeRequest::Record(record)), Ok(NodeReply::Recorded(_)))
                if record.directory.is_some() =>
            {
                self.memory.recorded = Some((record.page, record.epoch));
            }
            (Some(NodeRequest::Submit(submit)), Ok(NodeReply::Submitted { .. })) => {
                self.memory.submitted = Some(submit.crawl);
            }
            (_, Ok(NodeReply::CrawlIds { first, count })) => {
                let last = CrawlId(first.0 + i64::from(*count) - 1);
                self.memory.given.crawl = self.memory.given.crawl.max(last);
            }
            _ => {}
        }
        match reply {
            Ok(NodeReply::Recorded(Fate::Stale) | NodeReply::GivenBack(Fate::Stale)) | Err(_) => {
                self.outbox.refused(number);
            }
            Ok(_) => self.outbox.answered(number, now),
        }
    }

    fn claimed(
        &mut self,
        now: BootTime,
        claimed: Claimed,
        sent: BootTime,
        room: Room,
    ) -> Vec<Stop> {
        let mut replaced = Vec::new();
        self.has_orders = true;
        self.specs.extend(claimed.crawls);
        for grant in claimed.hosts {
            let lease = Lease::granted(&grant, sent, now, room.delay);
            let epoch = lease.epoch;
            self.releasing.remove(&lease.host);
            self.leaving.remove(&lease.host);
            self.leases.insert(lease.host.clone(), lease);
            let pages = self.pages.values();
            let running = pages.filter(|page| page.place.has_unit());
            let running: BTreeSet<_> = running.map(|page| page.leased.id).collect();
            // A unit of an earlier epoch does not belong to the page that waits again.
            let again = grant.pages.iter().filter(|page| running.contains(&page.id));
            replaced.extend(again.map(|page| Stop::Discard(page.id)));
            self.take(grant.pages, epoch);
        }
        replaced
    }

    fn renewed(&mut self, now: BootTime, renewed: Renewed, sent: BootTime) {
        self.specs.extend(renewed.crawls);
        for renewal in renewed.leases {
            let lease = self.leases.get_mut(&renewal.host);
            if let Some(lease) = lease.filter(|lease| lease.epoch == renewal.epoch) {
                lease.renew(&renewal, sent, now);
                self.take(renewal.pages, renewal.epoch);
            }
        }
        for (host, epoch) in renewed.lost {
            if self.leases.get(&host).is_some_and(|lease| lease.epoch == epoch) {
                self.leases.remove(&host);
            }
        }
        self.memory.given = self.memory.given.or_higher(renewed.given);
        self.orders = renewed.orders;
        self.has_orders = true;
    }

    /// Queues pages; a page that the node has under the same epoch stays as it is.
    fn take(&mut self, pages: Vec<LeasedPage>, epoch: Epoch) {
        for leased in pages {
            let crawl = leased.crawl;
            let is_known = self.pages.get(&leased.id).map(|page| page.epoch) == Some(epoch);
            if is_known {
                continue;
            }
            if self.crawls.insert(crawl) {
                let closed = NodeRequest::CrawlClosed { crawl };
                self.outbox.withdraw(|request| *request == closed);
            }
            let page = DeskPage { epoch, place: PagePlace::Waiting, leased };
            let given = &mut self.memory.given;
            given.snapshot = given.snapshot.max(page.leased.id);
            self.archived.remove(&page.leased.id);
            self.pages.insert(page.leased.id, page);
        }
    }

    /// Returns the running pages that must stop now, and forgets pages whose lease is lost. The
    /// lease of a page that runs may have been given to this node again, under another epoch.
    pub fn stops(&mut self, now: BootTime) -> Vec<Stop> {
        let mut stops = Vec::new();
        let mut gone = Vec::new();
        for (id, page) in &mut self.pages {
            let lease = self.leases.get_mut(&page.leased.page.host);
            let runs = page.place.has_unit();
            let stop = match right(lease.as_deref(), page.epoch, now) {
                PageRight::Lost => {
                    gone.push(*id);
                    Some(Stop::Discard(*id))
                }
                PageRight::Ended => Some(Stop::Requeue(*id)),
                PageRight::Until(_) => {
                    let is_cancelled = order(&self.orders, page) == Order::Cancel;
                    is_cancelled.then_some(Stop::Cancel(*id))
                }
            };
            let Some(stop) = stop.filter(|_| runs) else {
                continue;
            };
            if let Some(lease) = lease.filter(|_| page.place == PagePlace::Starting) {
                // The unit may have begun at any time up to now.
                lease.started(now);
            }
            if matches!(stop, Stop::Requeue(_)) {
                page.place = PagePlace::Waiting;
            }
            stops.push(stop);
        }
        gone.iter().for_each(|id| drop(self.pages.remove(id)));
        stops
    }

    /// Returns the waiting pages that are cancelled: the node records them without a start.
    pub fn cancelled(&self) -> Vec<SnapshotId> {
        let pages = self.pages.values();
        let waiting = pages.filter(|page| page.place == PagePlace::Waiting);
        let cancelled = waiting.filter(|page| order(&self.orders, page) == Order::Cancel);
        cancelled.map(|page| page.leased.id).collect()
    }

    /// Returns whether a waiting page may start: its lease stands, the host is due and stays here, no
    /// user has paused it. Only when the time of a start is known, the next one can be decided.
    pub fn standing(&self, id: SnapshotId, now: BootTime) -> Option<Standing> {
        let page = self.pages.get(&id)?;
        let lease = self.leases.get(&page.leased.page.host)?;
        let runs = order(&self.orders, page) == Order::Run;
        let waits = page.place == PagePlace::Waiting && page.epoch == lease.epoch;
        let mut pages = self.pages.values();
        let is_starting = pages.any(|other| {
            other.place == PagePlace::Starting && other.leased.page.host == lease.host
        });
        let stays = self.has_orders && !self.orders.draining && !self.leaving.contains(&lease.host);
        (runs && waits && stays && !is_starting).then(|| lease.standing(now))
    }

    /// Notes the decision to start a page.
    pub fn start(&mut self, id: SnapshotId, now: BootTime) {
        if let Some(page) = self.pages.get_mut(&id) {
            page.place = PagePlace::Starting;
            if let Some(lease) = self.leases.get_mut(&page.leased.page.host) {
                lease.started(now);
            }
        }
    }

    /// Notes when the unit of a page really started.
    pub fn started(&mut self, id: SnapshotId, at: BootTime) {
        let Some(page) = self.pages.get_mut(&id) else {
            return;
        };
        if page.place == PagePlace::Starting {
            page.place = PagePlace::Running;
        }
        if let Some(lease) = self.leases.get_mut(&page.leased.page.host) {
            lease.started(at);
        }
    }

    /// The unit of a page did not begin, or was lost with the boot: the page waits again.
    pub fn requeue(&mut self, id: SnapshotId) {
        if let Some(page) = self.pages.get_mut(&id) {
            page.place = PagePlace::Waiting;
        }
    }

    /// The page has ended. Returns whether its record was put into the outbox. If its host is for
    /// another node, its lease ends.
    pub fn end(&mut self, record: Record, now: BootTime) -> bool {
        let Some(page) = self.pages.get(&record.page) else {
            return false;
        };
        let lease = self.leases.get(&page.leased.page.host);
        let is_recorded = page.epoch == record.epoch && is_recorded(lease, record.epoch);
        if is_recorded {
            if let Some(page) = self.pages.remove(&record.page) {
                let end = (page.leased, record.clone());
                self.archived.insert(record.page, end);
            }
            self.outbox.push(NodeRequest::Record(record));
            self.release_leaving(now);
        }
        is_recorded
    }

    /// Closes a crawl that has no page here: its last hooks have run.
    pub fn close(&mut self, crawl: CrawlId) {
        let has_pages = self.pages.values().any(|page| page.leased.crawl == crawl);
        if !has_pages && self.crawls.remove(&crawl) {
            self.outbox.push(NodeRequest::CrawlClosed { crawl });
        }
    }

    /// Ends the leases of those of `hosts` that have no page here. The caller has asked for pages of
    /// the hosts, and got none.
    fn release_idle(&mut self, now: BootTime, hosts: &[HostKey]) {
        for host in hosts {
            let mut pages = self.pages.values();
            if !pages.any(|page| page.leased.page.host == *host) {
                self.release(now, host);
            }
        }
    }

    /// Chooses the hosts for another node, as many as it ordered: those without a running page first.
    fn choose_leaving(&mut self) {
        let (waiting, running) = (self.hosts(|place| !place.has_unit()), self.running_hosts());
        self.leaving.retain(|host| self.leases.contains_key(host));
        let wanted = self.orders.hand_over.unwrap_or_default() as usize;
        let room = wanted.saturating_sub(self.leaving.len());
        let stays = |host: &&HostKey| waiting.contains(*host) && !self.leaving.contains(*host);
        let (busy, idle): (Vec<&HostKey>, Vec<&HostKey>) =
            self.leases.keys().filter(stays).partition(|host| running.contains(*host));
        let chosen: Vec<_> = idle.into_iter().chain(busy).take(room).cloned().collect();
        self.leaving.extend(chosen);
    }

    /// Ends the leases of the hosts that are for another node, while the node drains of all, if they
    /// have no running page.
    fn release_leaving(&mut self, now: BootTime) {
        let running = self.running_hosts();
        let leaves = |host: &&HostKey| {
            (self.orders.draining || self.leaving.contains(*host)) && !running.contains(*host)
        };
        let hosts: Vec<_> = self.leases.keys().filter(leaves).cloned().collect();
        for host in hosts {
            self.release(now, &host);
        }
    }

    fn running_hosts(&self) -> BTreeSet<HostKey> {
        self.hosts(PagePlace::has_unit)
    }

    fn hosts(&self, is_at: impl Fn(PagePlace) -> bool) -> BTreeSet<HostKey> {
        let pages = self.pages.values().filter(|page| is_at(page.place));
        pages.map(|page| page.leased.page.host.clone()).collect()
    }

    /// Ends the lease of a host, with the pages that wait for it here.
    fn release(&mut self, now: BootTime, host: &HostKey) {
        self.leaving.remove(host);
        if let Some(lease) = self.leases.remove(host) {
            let release = (lease.release(now), self.outbox.last());
            self.releasing.insert(host.clone(), release);
            self.pages.retain(|_, page| page.leased.page.host != *host);
        }
    }

    /// Returns what the fleet service needs to know. A release waits for the entries of its pages,
    /// because it gives back what is open.
    pub fn holdings(&self, now: BootTime, room: Room) -> Holdings {
        let entries: Vec<_> = match self.recall_request() {
            Some(request) => vec![OutboxEntry { number: RECALL, request }],
            None => {
                let entries = self.outbox.unanswered();
                entries.take(ENTRIES_PER_LOOK).cloned().collect()
            }
        };
        let taken = self.leases.len() + self.releasing.len();
        let free = room.hosts.saturating_sub(taken.try_into().unwrap_or(u32::MAX));
        let claim = Claim { hosts: free, pages_per_host: room.pages_per_host, delay: room.delay };
        let first = entries.first().map_or(u64::MAX, |entry| entry.number);
        let releases = self.releasing.values().filter(|(_, after)| *after < first);
        let releases = releases.map(|(release, _)| release.clone()).collect();
        let releasing = self.releasing.iter();
        let releasing = releasing.map(|(host, (release, _))| (host.clone(), release.epoch));
        Holdings {
            node: self.node,
            generation: self.generation,
            leases: self.leases.values().map(|lease| lease.held(now)).collect(),
            short: self.short(),
            refill: room.pages_per_host,
            claim: (free > 0 && !self.orders.draining && self.orders.hand_over.is_none())
                .then_some(claim),
            last_entry: self.outbox.last(),
            entries,
            releases,
            releasing: releasing.collect(),
            slots: if self.orders.draining { 0 } else { room.slots },
            drains: self.has_orders && self.orders.draining,
            memory: self.memory(),
        }
    }

    /// Returns the leased hosts without a page that waits.
    fn short(&self) -> Vec<HostKey> {
        let pages = self.pages.values();
        let waiting = pages.filter(|page| page.place == PagePlace::Waiting);
        let waiting: BTreeSet<_> = waiting.map(|page| &page.leased.page.host).collect();
        let hosts = self.leases.keys();
        let short = hosts.filter(|host| !waiting.contains(host) && !self.orders.draining);
        short.cloned().collect()
    }

    /// The machine has booted: no unit runs, deadlines have passed, last starts are unknown.
    pub fn rebooted(&mut self, now: BootTime) {
        self.outbox.rebooted(now);
        self.leases.values_mut().for_each(|lease| lease.rebooted(now));
        for (release, _) in self.releasing.values_mut() {
            release.pace = None;
        }
        for page in self.pages.values_mut() {
            page.place = PagePlace::Waiting;
        }
        self.has_orders = false;
    }
}

/// Returns what users want of a page: its own order, else that of its crawl.
fn order(orders: &Orders, page: &DeskPage) -> Order {
    let own = orders.pages.iter().find(|(id, _)| *id == page.leased.id);
    let crawl = orders.crawls.iter().find(|(id, _)| *id == page.leased.crawl);
    let crawl = crawl.map_or(Order::Run, |(_, order)| *order);
    own.map_or(crawl, |(_, order)| *order)
}

/// Returns what follows for a page that was handed to this node under `epoch`. `lease`: what the
/// node holds of its host.
fn right(lease: Option<&Lease>, epoch: Epoch, now: BootTime) -> PageRight {
    match lease {
        Some(lease) if lease.epoch != epoch => PageRight::Lost,
        Some(lease) if now < lease.deadline => PageRight::Until(lease.deadline),
        Some(_) => PageRight::Ended,
        None => PageRight::Lost,
    }
}

/// Returns whether the end of a page goes into the outbox: while the node has not learned that the
/// lease is lost, even after its deadline.
fn is_recorded(lease: Option<&Lease>, epoch: Epoch) -> bool {
    lease.is_some_and(|lease| lease.epoch == epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::fleet::Grant;

    #[test]
    fn rights_of_pages() {
        let grant = Grant {
            host: HostKey("a.example".into()),
            epoch: Epoch(3),
            lease: Duration::from_secs(300),
            due_in: Duration::ZERO,
            delay: Duration::ZERO,
            pages: Vec::new(),
        };
        let lease = Lease::granted(&grant, BootTime(1_000), BootTime(9_000), Duration::ZERO);
        let (now, end) = (BootTime(20_000), lease.deadline);
        let right = |epoch, now| super::right(Some(&lease), Epoch(epoch), now);
        assert_eq!(right(3, now), PageRight::Until(end));
        assert_eq!(right(3, end), PageRight::Ended);
        assert_eq!(right(2, now), PageRight::Lost);
        assert_eq!(super::right(None, Epoch(3), now), PageRight::Lost);
        assert!(is_recorded(Some(&lease), Epoch(3)));
        assert!(!is_recorded(Some(&lease), Epoch(2)));
        assert!(!is_recorded(None, Epoch(3)));
    }
}
