//! Leases: claim, renew, release.

use super::hello::QUIET;
use super::*;
use archivist_core::fleet::{
    Claim, Claimed, CrawlSpecs, CrawlUse, Epoch, Grant, Held, Order, Pace, Release, Renew,
};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

impl Ledger {
    /// Leases up to `claim.hosts` hosts that have pages to hand out, those first that have
    /// waited longest.
    pub(super) fn claim(&mut self, now: DbTime, me: NodeId, claim: Claim) -> Claimed {
        self.cancel_lost_pages(now);
        if now < self.claims_from || self.is_draining(me) {
            return Claimed::default();
        }
        let free = self.hosts.iter().filter(|(_, row)| row.is_free(now));
        let due = free.filter(|(_, row)| row.due_at() <= now);
        let due = due.filter(|(host, _)| self.has_work(host));
        let mut due: Vec<_> = due.map(|(host, row)| (row.due_at(), host.clone())).collect();
        due.sort();
        let most = claim.hosts.try_into().unwrap_or(usize::MAX);
        let due = due.into_iter().take(most);
        let hosts: Vec<_> = due.filter_map(|(_, host)| self.grant(now, me, host, claim)).collect();
        let pages = hosts.iter().flat_map(|grant| &grant.pages);
        let crawls = self.specs(pages);
        Claimed { hosts, crawls }
    }

    fn grant(&mut self, now: DbTime, me: NodeId, host: HostKey, claim: Claim) -> Option<Grant> {
        let (generation, grace_end, lease) = (self.generation, self.claims_from, self.lease);
        let row = self.hosts.get_mut(&host)?;
        row.delay = row.delay.max(claim.delay);
        // The last start of an owner that did not release is unknown.
        if row.owner.is_some() {
            let end = row.lease_until.min(now);
            row.next_at = row.next_at.max(end.after(row.delay));
        }
        // The same for an owner that the database has forgotten.
        if generation.0 > 0 && row.epoch <= generation.floor() {
            row.next_at = row.next_at.max(grace_end.after(row.delay));
        }
        row.owner = Some(me);
        row.epoch = row.epoch.next(generation);
        row.lease_until = now.after(lease);
        let (epoch, delay, due_in) = (row.epoch, row.delay, row.start_at().since(now));
        for page in self.pages.values_mut().filter(|page| *page.host() == host) {
            if matches!(page.state, PageState::Open(_)) {
                page.state = PageState::Queued;
            }
        }
        let pages = self.hand(me, &host, epoch, claim.pages_per_host);
        Some(Grant { host, epoch, lease, due_in, delay, pages })
    }

    /// Extends leases, and hands out further pages.
    pub(super) fn renew(&mut self, now: DbTime, me: NodeId, renew: &Renew) -> Renewed {
        let mut reply = Renewed::default();
        if let Some(node) = self.nodes.get_mut(&me) {
            node.seen = now;
            node.wanting = renew.wanting;
            node.drains = renew.drains;
        }
        let refill = if self.is_draining(me) { 0 } else { renew.refill };
        for held in &renew.leases {
            let (host, epoch) = (held.host.clone(), held.epoch);
            let Some(due_in) = self.extend(now, me, held) else {
                reply.lost.push((host, epoch));
                continue;
            };
            let is_mine = |page: &&PageRow| {
                *page.host() == host && page.epoch == epoch && page.state == PageState::Open(me)
            };
            let open = self.pages.values().filter(is_mine).count();
            let room = refill.saturating_sub(open.try_into().unwrap_or(u32::MAX));
            reply.leases.push(Renewal {
                pages: self.hand(me, &host, epoch, room),
                host,
                epoch,
                lease: self.lease,
                due_in,
            });
        }
        let pages = reply.leases.iter().flat_map(|lease| &lease.pages);
        reply.crawls = self.specs(pages);
        reply.orders = self.orders(now, me);
        reply.given.crawl.0 = self.next_crawl - 1;
        reply.given.snapshot.0 = self.next_page - 1;
        reply
    }

    /// Extends one lease, if it is still that of the node, and returns when a page may start.
    fn extend(&mut self, now: DbTime, me: NodeId, held: &Held) -> Option<Duration> {
        let in_grace = now < self.claims_from;
        let row = self.hosts.get_mut(&held.host)?;
        let is_mine = match held.epoch.cmp(&row.epoch) {
            // A lease that ended may have been given to another node in forgotten transactions.
            Ordering::Equal => row.owner == Some(me) && (row.lease_until > now || !in_grace),
            // A forgotten claim: only the owner of the highest epoch is alive.
            Ordering::Greater => in_grace && held.live,
            Ordering::Less => false,
        };
        if !is_mine {
            return None;
        }
        row.owner = Some(me);
        row.epoch = held.epoch;
        row.lease_until = row.lease_until.max(now.after(self.lease));
        row.keep_pace(now, held.pace);
        Some(row.start_at().since(now))
    }

    /// Ends a lease and gives back its open pages.
    pub(super) fn release(&mut self, now: DbTime, me: NodeId, release: &Release) -> Fate {
        let Some(row) = self.hosts.get_mut(&release.host) else {
            return Fate::Stale;
        };
        match (release.epoch.cmp(&row.epoch), row.owner) {
            (Ordering::Less, _) => return Fate::Stale,
            (Ordering::Equal, None) => return Fate::Already,
            (Ordering::Equal, Some(owner)) if owner != me => return Fate::Stale,
            _ => {}
        }
        row.owner = None;
        row.epoch = release.epoch;
        row.lease_until = row.lease_until.min(now);
        row.keep_pace(now, release.pace.unwrap_or_else(|| row.pace_of_start()));
        row.ready_at = now;
        let open = self.pages.iter().filter(|(_, page)| {
            *page.host() == release.host && matches!(page.state, PageState::Open(_))
        });
        let open: Vec<_> = open.map(|(id, _)| *id).collect();
        for id in open {
            self.requeue(id);
        }
        Fate::Done
    }

    /// Hands up to `room` pages of a host to a node.
    fn hand(&mut self, me: NodeId, host: &HostKey, epoch: Epoch, room: u32) -> Vec<LeasedPage> {
        let most = room.try_into().unwrap_or(usize::MAX);
        let ids: Vec<_> = self.waiting(host, epoch).take(most).collect();
        let mut handed = Vec::new();
        for id in ids {
            let Some(page) = self.pages.get_mut(&id) else {
                continue;
            };
            page.state = PageState::Open(me);
            page.epoch = epoch;
            page.attempts += 1;
            self.parts.insert((page.crawl, me), false);
            handed.push(LeasedPage {
                id,
                crawl: page.crawl,
                parent: page.parent,
                page: page.page.clone(),
                attempts: page.attempts,
            });
        }
        handed
    }

    /// Returns the pages of a leased host that wait, in order.
    fn waiting(&self, host: &HostKey, epoch: Epoch) -> impl Iterator<Item = SnapshotId> {
        let waits = move |page: &PageRow| match page.state {
            PageState::Queued => true,
            // Of an owner whose lease ended in forgotten transactions.
            PageState::Open(_) => page.epoch < epoch,
            PageState::Final(..) => false,
        };
        let pages = self.pages.iter();
        let pages = pages.filter(move |(_, page)| page.host() == host && waits(page));
        pages.filter(|(_, page)| self.runs(page)).map(|(id, _)| *id)
    }

    /// Returns whether a claim of a free host would bring pages: those that wait, and those that its
    /// lost owner had.
    fn has_work(&self, host: &HostKey) -> bool {
        let mut pages = self.pages.values();
        pages.any(|page| page.host() == host && !page.state.is_final() && self.runs(page))
    }

    /// Returns whether users want the page to run.
    fn runs(&self, page: &PageRow) -> bool {
        let crawl = self.crawls.get(&page.crawl);
        crawl.is_some_and(|crawl| page.wanted(crawl.state) == Order::Run)
    }

    /// Ends the cancelled pages of owners that lost their leases: no node will record them.
    fn cancel_lost_pages(&mut self, now: DbTime) {
        let is_lost = |page: &PageRow| {
            let host = self.hosts.get(page.host());
            matches!(page.state, PageState::Open(_)) && host.is_some_and(|host| host.is_free(now))
        };
        let lost = self.pages.iter().filter(|(_, page)| is_lost(page));
        let lost: Vec<_> = lost.map(|(id, _)| *id).collect();
        for id in lost {
            self.end_if_cancelled(id);
        }
    }

    fn is_draining(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_none_or(|node| node.draining)
    }

    fn orders(&self, now: DbTime, me: NodeId) -> Orders {
        let mine = self.parts.iter();
        let mine = mine.filter(|((_, node), closed)| *node == me && !**closed);
        let crawls: Vec<_> =
            mine.filter_map(|((id, _), _)| Some((*id, self.crawls.get(id)?))).collect();
        let open = self.pages.iter().filter(|(_, page)| page.state == PageState::Open(me));
        let pages = open.filter_map(|(id, page)| {
            let crawl = self.crawls.get(&page.crawl)?.state;
            let wanted = page.wanted(crawl);
            (wanted != crawl.order()).then_some((*id, wanted))
        });
        Orders {
            crawls: crawls.iter().map(|(id, crawl)| (*id, crawl.state.order())).collect(),
            used: crawls.iter().map(|(id, crawl)| (*id, self.used(now, *id, crawl))).collect(),
            pages: pages.collect(),
            draining: self.is_draining(me),
            hand_over: self.hand_over(now, me),
        }
    }

    /// Returns the number of hosts that a node hands over to the one that wants some and has the
    /// fewest; `None` if the difference between both is less than two hosts.
    fn hand_over(&self, now: DbTime, me: NodeId) -> Option<u32> {
        let held = |node: NodeId| {
            let mut hosts = 0;
            for host in self.hosts.values() {
                hosts += u32::from(host.owner == Some(node) && host.lease_until > now);
            }
            hosts
        };
        let alive = self.nodes.iter().filter(|(_, node)| {
            node.name.is_some() && !node.ended && !node.draining && now.since(node.seen) < QUIET
        });
        let alive: Vec<_> = alive.map(|(id, node)| (held(*id), *id, node.wanting)).collect();
        let wanting = alive.iter().filter(|(hosts, _, wanting)| hosts < wanting);
        let (least, _, wanted) = wanting.min_by_key(|(hosts, id, _)| (*hosts, *id))?;
        let (mine, ..) = alive.iter().find(|(_, id, _)| *id == me)?;
        let most = alive.iter().max_by_key(|(hosts, id, _)| (*hosts, Reverse(*id)));
        let difference = mine.checked_sub(*least).filter(|difference| *difference > 1)?;
        let has_most = most.is_some_and(|(_, id, _)| *id == me);
        Some(if has_most { (difference / 2).min(wanted - least) } else { 0 })
    }

    fn used(&self, now: DbTime, id: CrawlId, crawl: &CrawlRow) -> CrawlUse {
        let mut pages = self.pages.values().filter(|page| page.crawl == id);
        CrawlUse {
            bytes: crawl.bytes,
            age: now.since(crawl.added_at),
            is_done: crawl.pages > 0 && pages.all(|page| page.state.is_final()),
        }
    }

    fn specs<'a>(&self, pages: impl Iterator<Item = &'a LeasedPage>) -> CrawlSpecs {
        let ids: BTreeSet<_> = pages.map(|page| page.crawl).collect();
        let specs = ids.into_iter();
        specs.filter_map(|id| Some((id, self.crawls.get(&id)?.spec.clone()))).collect()
    }
}

impl HostRow {
    /// Adopts what the owner knows of the host.
    fn keep_pace(&mut self, now: DbTime, pace: Pace) {
        self.next_at = self.next_at.max(now.after(pace.next_in));
        if !pace.blocked_for.is_zero() {
            self.blocked_until = self.blocked_until.max(now.after(pace.blocked_for));
        }
        self.delay = pace.delay;
    }

    /// Returns the pace if a page started just now.
    fn pace_of_start(&self) -> Pace {
        Pace { next_in: self.delay, blocked_for: Duration::ZERO, delay: self.delay }
    }
}
