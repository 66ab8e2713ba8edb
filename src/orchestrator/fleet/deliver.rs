//! Replies of the fleet's database: leases with pages, orders, and what became of requests.

use crate::fleet::row_check::{PageTexts, Refused, check_id, document_of};
use crate::main_loop::log::Problem;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::store::rows::fleet::{FleetCrawl, GivenPage, NodeRow};
use crate::store::rows::lease::NodeOrders;
use archivist_core::fleet::{
    BootTime, Claimed, CrawlSpec, Delivery, Epoch, Fate, KEEP, KEEP_LONG, Lease, LeasedPage,
    PageEnd, PageTimes, RECALL, Record, Refusal, Renewal, Renewed, Reply, Request,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, PageUrl, Step};
use archivist_core::plan::{HostId, Notice};
use std::time::Duration;

impl Turn<'_> {
    /// Stores a reply of the database.
    pub(crate) fn deliver(&mut self, delivery: &Delivery) -> TurnResult<()> {
        match delivery {
            Delivery::Welcomed {
                node,
                generation,
                forgot,
            } => self.welcomed(
                NodeRow {
                    node: *node,
                    generation: *generation,
                },
                *forgot,
            ),
            Delivery::Claimed { claimed, sent } => self.claimed(claimed, *sent),
            Delivery::Renewed {
                renewed,
                sent,
                refilled,
            } => self.renewed(renewed, *sent, *refilled),
            Delivery::Released { host, epoch, .. } => {
                let host = self.tx.host(&host.0)?;
                Ok(self.tx.remove_lease(host, *epoch)?)
            }
            Delivery::Answered { number, reply } if *number == RECALL => self.recalled(reply),
            Delivery::Answered { number, reply } => self.answered(*number, reply),
            Delivery::Refused { refusal, .. } => {
                self.log_problem(Problem::FleetRefused(refusal.to_string()));
                Ok(())
            }
        }
    }

    /// Until its orders come, the node starts no page: its users may have cancelled pages meanwhile.
    fn welcomed(&mut self, row: NodeRow, forgot: Option<Duration>) -> TurnResult<()> {
        self.engine.node_orders.set(None);
        match self.tx.node()? {
            Some(known) if known == row => return Ok(()),
            Some(known) => {
                if known.generation != row.generation {
                    self.begin_recall(forgot)?;
                }
                if known.node != row.node {
                    self.tx.remove_leases()?;
                    self.discard_lost_pages()?;
                }
            }
            None => self.may_join()?,
        }
        Ok(self.tx.set_node(row)?)
    }

    /// # Errors
    /// If a crawl of this machine alone is not finished: its hosts have no leases.
    fn may_join(&self) -> TurnResult<()> {
        let counts = self.tx.counts("crawl", None)?;
        let open = Lifecycle::ALL.iter().filter(|status| !status.is_final());
        let open: u64 = open.filter_map(|status| counts.get(status.as_str())).sum();
        if open == 0 {
            return Ok(());
        }
        Err(invalid(format!(
            "{open} crawls of this machine are not finished: wait for them, or cancel them, before it joins a fleet"
        )))
    }

    fn claimed(&mut self, claimed: &Claimed, sent: BootTime) -> TurnResult<()> {
        if self.engine.node_orders.get().is_none() {
            // A node with leases renews them first, so there is none that orders could be about.
            self.engine.node_orders.set(Some(NodeOrders {
                draining: false,
                claims_none: false,
            }));
        }
        let refused = self.take_crawls(&claimed.crawls)?;
        for grant in &claimed.hosts {
            let delay = self.engine.settings.host_delay;
            let lease = Lease::granted(grant, sent, self.boot_time(), delay);
            let host = self.set_lease(&lease)?;
            self.take_pages(&grant.pages, host, lease.epoch, &refused)?;
        }
        self.discard_lost_pages()
    }

    fn renewed(&mut self, renewed: &Renewed, sent: BootTime, refilled: bool) -> TurnResult<()> {
        self.learn_ids(renewed.given)?;
        let refused = self.take_crawls(&renewed.crawls)?;
        for renewal in &renewed.leases {
            self.renew(renewal, sent, &refused)?;
        }
        for (host, epoch) in &renewed.lost {
            let host = self.tx.host(&host.0)?;
            self.tx.remove_lease(host, *epoch)?;
        }
        self.discard_lost_pages()?;
        let is_current = !self.tx.has_unanswered_command()?;
        if is_current {
            self.obey(&renewed.orders)?;
            self.close_done_crawls(&renewed.orders)?;
        }
        let draining = renewed.orders.draining;
        if is_current || self.engine.node_orders.get().is_some() {
            self.engine.node_orders.set(Some(NodeOrders {
                draining,
                claims_none: renewed.orders.hand_over.is_some(),
            }));
        }
        if refilled {
            let hosts = renewed.leases.iter().map(|renewal| &renewal.host);
            self.release_idle(&hosts.collect::<Vec<_>>())?;
        }
        self.choose_leaving(renewed.orders.hand_over.unwrap_or_default())?;
        self.release_leaving()?;
        if draining {
            // No more pages come.
            self.close_idle_crawls(Duration::ZERO)?;
        }
        Ok(())
    }

    fn renew(&mut self, renewal: &Renewal, sent: BootTime, refused: &Refused) -> TurnResult<()> {
        let id = self.tx.host(&renewal.host.0)?;
        let boot = &self.engine.boot;
        let Some(deadline) = self.tx.lease_deadline(id, renewal.epoch, boot)? else {
            return Ok(());
        };
        let mut lease = Lease {
            host: renewal.host.clone(),
            epoch: renewal.epoch,
            deadline,
            next_at: BootTime(0),
            blocked_until: BootTime(0),
            delay: self.host_view(id)?.delay,
        };
        lease.renew(renewal, sent, self.boot_time());
        self.set_lease(&lease)?;
        self.take_pages(&renewal.pages, id, renewal.epoch, refused)
    }

    fn set_lease(&mut self, lease: &Lease) -> TurnResult<HostId> {
        let host = self.tx.host(&lease.host.0)?;
        let next_at = self.now.after(lease.next_at.until(self.boot_time()));
        self.tx.set_lease(host, lease, &self.engine.boot, next_at)?;
        Ok(host)
    }

    /// The database answered an entry of the outbox.
    fn answered(&mut self, number: u64, reply: &Result<Reply, Refusal>) -> TurnResult<()> {
        if let Ok(reply) = reply {
            self.learn_answer(number, reply)?;
        }
        match reply {
            Ok(Reply::CrawlIds { first, count }) => {
                let last = CrawlId(first.0.saturating_add(i64::from(*count) - 1));
                check_id(last.0).map_err(|why| {
                    invalid(format!(
                        "the fleet's database reserves the id {first}: {why}"
                    ))
                })?;
                self.tx.reserve_crawl_ids(*first, last)?;
            }
            // A database that forgets this answer must not get the entry again.
            Ok(Reply::Recorded(Fate::Stale) | Reply::GivenBack(Fate::Stale)) => {
                return Ok(self.tx.remove_entry(number)?);
            }
            Ok(_) => {}
            Err(refusal) => {
                self.log_problem(Problem::FleetRefused(refusal.to_string()));
                return Ok(self.tx.remove_entry(number)?);
            }
        }
        self.tx.entry_answered(number, self.now)?;
        let (before, long_before) = (self.now.before(KEEP), self.now.before(KEEP_LONG));
        Ok(self.tx.prune_outbox(before, long_before)?)
    }

    /// Returns the crawls that this node cannot take.
    fn take_crawls(&mut self, crawls: &[(CrawlId, CrawlSpec)]) -> TurnResult<Refused> {
        let mut refused = Refused::new();
        for (id, spec) in crawls {
            if let Some(why) = self.take_crawl(*id, spec)? {
                self.log_problem(Problem::FleetCrawlUnreadable(*id, why.clone()));
                refused.insert(*id, why);
            }
        }
        Ok(refused)
    }

    /// Queues pages. A page that cannot be read, or whose crawl cannot, ends as failed in the fleet;
    /// the others are taken.
    fn take_pages(
        &mut self,
        pages: &[LeasedPage],
        host: HostId,
        epoch: Epoch,
        refused: &Refused,
    ) -> TurnResult<()> {
        for page in pages {
            match self.readable(page, refused)? {
                Ok(url) => self.take_page(page, &url, host, epoch)?,
                Err(why) => {
                    let is_crawl_here = !refused.contains_key(&page.crawl);
                    self.refuse_page(page, epoch, why, is_crawl_here)?;
                }
            }
        }
        Ok(())
    }

    fn refuse_page(
        &mut self,
        page: &LeasedPage,
        epoch: Epoch,
        why: String,
        is_crawl_here: bool,
    ) -> TurnResult<()> {
        let crawl = page.crawl;
        if !is_crawl_here {
            self.withdraw_close(crawl)?;
        }
        self.send_to_fleet(&Request::Record(Record {
            page: page.id,
            epoch,
            end: PageEnd::Sealed,
            reason: Some(why),
            directory: None,
            results: Vec::new(),
            children: Vec::new(),
            times: PageTimes::default(),
        }))?;
        if !is_crawl_here {
            // No hook of it runs here.
            self.send_to_fleet(&Request::CrawlClosed { crawl })?;
        }
        Ok(())
    }

    /// Queues a page. A page that the node has under the same epoch stays as it is.
    fn take_page(
        &mut self,
        leased: &LeasedPage,
        url: &PageUrl,
        host: HostId,
        epoch: Epoch,
    ) -> TurnResult<()> {
        let known = self.tx.page_epoch(leased.id)?;
        if known.is_some_and(|(known, _)| known == epoch) {
            return Ok(());
        }
        let (id, page) = (leased.id, &leased.page);
        let texts = PageTexts::of(page);
        if known.is_some() {
            // It ran under an earlier lease, which was lost in between.
            self.discard_page(id)?;
        }
        if let Some(former) = self.tx.page_of_url(leased.crawl, url.as_str(), id)? {
            // The database lost it in a failover, and the node that added it sent it again.
            self.discard_page(former)?;
            self.tx.set_replaced(former)?;
        }
        let row = GivenPage {
            id,
            crawl: leased.crawl,
            url: url.as_str(),
            title: texts.title.as_deref(),
            bookmarked_at: texts.bookmarked_at.as_deref(),
            depth: page.depth,
            given: page.given,
            attempts: leased.attempts.saturating_sub(1),
            epoch,
        };
        let before = self.tx.add_given_page(&row, host, self.now)?;
        if before.is_some_and(Lifecycle::is_final) {
            self.tx
                .step_snapshot(id, Step::Retry, Some(self.now), None, self.now)?;
            self.tx.requeue_results(Owner::Snapshot(id), None)?;
        }
        if page.given && before.is_none() {
            // Its host may be in a network that the pages so far did not open.
            self.engine.ways.borrow_mut().remove(&leased.crawl);
        }
        for tag in &texts.tags {
            self.tx.tag_snapshot(id, tag)?;
        }
        self.tx.set_paged_at(leased.crawl, self.now)?;
        self.changes.insert(Change::Snapshot {
            crawl: leased.crawl,
            id,
        });
        self.announce_snapshot(id, Notice::Added)
    }

    /// Adds a crawl of the fleet, or reopens it. Returns why it cannot, if so.
    fn take_crawl(&mut self, id: CrawlId, spec: &CrawlSpec) -> TurnResult<Option<String>> {
        if let Err(why) = check_id(id.0) {
            return Ok(Some(why));
        }
        match self.tx.crawl(id)? {
            None => match document_of(spec) {
                Ok(document) => self.add_given_crawl(id, spec.max_depth, &document)?,
                Err(why) => return Ok(Some(why)),
            },
            Some(known) => {
                let other = self.why_other_crawl(id, &known.url, spec)?;
                if other.is_some() {
                    return Ok(other);
                }
                self.tx.set_fleet_crawl(id, FleetCrawl::Open)?;
                if known.status.is_final() {
                    self.tx
                        .step_crawl(id, Step::Retry, Some(self.now), None, self.now)?;
                }
            }
        }
        self.withdraw_close(id)?;
        self.changes.insert(Change::Crawl(id));
        Ok(None)
    }

    /// The time on CLOCK_BOOTTIME.
    pub(super) fn boot_time(&self) -> BootTime {
        BootTime(self.machine.unsigned_abs())
    }
}
