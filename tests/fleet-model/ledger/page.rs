//! Pages: queued, recorded, given back.

use super::*;
use archivist_core::fleet::{CrawlSpec, Epoch, NewPage, Order, PageEnd, Record, Submit};
use archivist_core::model::ResultState;
use std::collections::BTreeSet;

impl Ledger {
    /// Queues the pages that a crawl does not have, and creates the crawl if it is new.
    pub(super) fn submit(&mut self, now: DbTime, submit: &Submit) -> Result<u64, NodeRefusal> {
        let id = submit.crawl;
        if let Some(spec) = &submit.spec
            && !self.crawls.contains_key(&id)
        {
            self.crawls.insert(id, CrawlRow::new(now, spec.clone()));
        }
        if !self.crawls.contains_key(&id) {
            return Err(NodeRefusal::UnknownCrawl { crawl: id });
        }
        Ok(self.insert(now, id, None, &submit.pages))
    }

    /// Inserts pages of a crawl, within its limits; those that it has are left out.
    fn insert(
        &mut self,
        now: DbTime,
        crawl: CrawlId,
        parent: Option<SnapshotId>,
        pages: &[NewPage],
    ) -> u64 {
        let mut inserted = 0;
        for page in pages {
            let is_archived = self.is_archived(crawl, &page.url);
            let Some(row) = self.crawls.get_mut(&crawl) else {
                break;
            };
            let is_full = row.spec.urls_max.is_some_and(|most| row.pages >= most);
            let is_open = row.state != CrawlState::Cancelled && !is_full;
            let mut of_crawl = self.pages.values().filter(|known| known.crawl == crawl);
            let is_known = of_crawl.any(|known| known.page.url == page.url);
            let is_left_out = row.spec.only_new && is_archived;
            if !is_open || is_known || is_left_out || page.depth > row.spec.max_depth {
                continue;
            }
            row.pages += 1;
            inserted += 1;
            let host = self.hosts.entry(page.host.clone());
            host.or_insert_with(|| HostRow { ready_at: now, ..HostRow::default() });
            let id = SnapshotId(self.next_page);
            self.next_page += 1;
            self.pages.insert(id, PageRow::new(crawl, parent, page.clone()));
        }
        inserted
    }

    /// Whether another crawl than `except` has archived a page completely, or is going to.
    fn is_archived(&self, except: CrawlId, url: &str) -> bool {
        let mut pages = self.pages.values();
        pages.any(|page| {
            let stays = !page.state.is_final() || page.complete;
            page.crawl != except && page.page.url == url && stays
        })
    }

    pub(super) fn record(&mut self, now: DbTime, me: NodeId, record: &Record) -> Fate {
        let Some(page) = self.pages.get(&record.page) else {
            return Fate::Stale;
        };
        if let PageState::Final(_, node) = page.state {
            let is_same = node == Some(me) && page.epoch == record.epoch;
            return if is_same { Fate::Already } else { Fate::Stale };
        }
        if !self.is_open_under(me, page, record.epoch) {
            return Fate::Stale;
        }
        let crawl = page.crawl;
        self.end(me, record);
        self.insert(now, crawl, Some(record.page), &record.children);
        Fate::Done
    }

    pub(super) fn end(&mut self, me: NodeId, record: &Record) {
        let Some(page) = self.pages.get_mut(&record.page) else {
            return;
        };
        let has = |state| record.results.iter().any(|result| result.state == state);
        let is_whole = record.end == PageEnd::Sealed && record.reason.is_none();
        page.state = PageState::Final(record.end, Some(me));
        page.epoch = record.epoch;
        page.order = Order::Run;
        page.has_directory = record.directory.is_some();
        page.copies.remove(&me);
        page.bytes = record.results.iter().map(|result| result.size).sum();
        page.failed = has(ResultState::Failed);
        page.complete = is_whole && has(ResultState::Succeeded);
        if let Some(crawl) = self.crawls.get_mut(&page.crawl) {
            crawl.bytes += page.bytes;
        }
    }

    /// Queues a final page again: the next record has all its results.
    pub(super) fn withdraw_end(&mut self, id: SnapshotId) {
        let Some(page) = self.pages.get_mut(&id).filter(|page| page.state.is_final()) else {
            return;
        };
        if let PageState::Final(_, Some(node)) = page.state
            && page.has_directory
        {
            page.copies.insert(node);
        }
        page.state = PageState::Queued;
        page.attempts = 0;
        page.has_directory = false;
        page.failed = false;
        page.complete = false;
        let bytes = std::mem::take(&mut page.bytes);
        if let Some(crawl) = self.crawls.get_mut(&page.crawl) {
            crawl.bytes -= bytes;
        }
    }

    /// Whether a node may speak about a page that is not final.
    fn is_open_under(&self, me: NodeId, page: &PageRow, epoch: Epoch) -> bool {
        let Some(host) = self.hosts.get(page.host()) else {
            return false;
        };
        let is_owner = host.owner == Some(me) && host.epoch == epoch;
        let is_open = page.state == PageState::Open(me) && page.epoch == epoch;
        // Only a claim that was forgotten in a failover leaves a page with an earlier epoch.
        let is_forgotten = page.epoch < epoch && (host.epoch < epoch || is_owner);
        is_open && is_owner || is_forgotten
    }

    /// Queues an open page again.
    pub(super) fn give_back(&mut self, me: NodeId, id: SnapshotId, epoch: Epoch) -> Fate {
        let Some(page) = self.pages.get(&id) else {
            return Fate::Stale;
        };
        let is_open = page.state == PageState::Open(me) && page.epoch == epoch;
        if is_open && self.is_open_under(me, page, epoch) {
            self.requeue(id);
            return Fate::Done;
        }
        let is_back = page.epoch == epoch && page.state == PageState::Queued;
        if is_back { Fate::Already } else { Fate::Stale }
    }

    /// Queues an open page again without counting its attempt; a cancelled one ends.
    pub(super) fn requeue(&mut self, id: SnapshotId) {
        if let Some(page) = self.pages.get_mut(&id) {
            page.state = PageState::Queued;
            page.attempts = page.attempts.saturating_sub(1);
        }
        self.end_if_cancelled(id);
    }

    /// Ends a page that no node works on if it or its crawl is cancelled.
    pub(super) fn end_if_cancelled(&mut self, id: SnapshotId) -> bool {
        let Some(page) = self.pages.get_mut(&id) else {
            return false;
        };
        let crawl = self.crawls.get(&page.crawl);
        let wanted = crawl.map_or(Order::Run, |crawl| page.wanted(crawl.state));
        let is_ended = wanted == Order::Cancel && !page.state.is_final();
        if is_ended {
            page.state = PageState::Final(PageEnd::Cancelled, None);
            page.order = Order::Run;
        }
        is_ended
    }
}

impl CrawlRow {
    fn new(now: DbTime, spec: CrawlSpec) -> CrawlRow {
        CrawlRow { spec, state: CrawlState::Running, added_at: now, pages: 0, bytes: 0 }
    }
}

impl PageRow {
    pub(super) fn new(crawl: CrawlId, parent: Option<SnapshotId>, page: NewPage) -> PageRow {
        PageRow {
            crawl,
            parent,
            page,
            state: PageState::Queued,
            order: Order::Run,
            epoch: Epoch(0),
            attempts: 0,
            has_directory: false,
            copies: BTreeSet::new(),
            bytes: 0,
            failed: false,
            complete: false,
        }
    }
}
