//! Crawls of the fleet on this node: they begin with their first page here and end when all pages of
//! the fleet are recorded, or this node had none for a while. Users' commands about them go to the
//! fleet.

use crate::fleet::submit::CrawlDocument;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::rows::fleet::{FleetCrawl, GivenCrawl};
use archivist_core::fleet::{Command, CommandVerb, Order, Orders, Request};
use archivist_core::model::{CrawlId, FLEET, Lifecycle, Owner, Step, Time};
use archivist_core::plan::Notice;
use std::time::Duration;

/// How long a crawl without pages stays open on a node, so that its set-up (a browser, for example)
/// serves the next page.
pub(super) const LINGER: Duration = Duration::from_secs(60);
/// Reason of crawls and pages that were cancelled on another node.
const CANCELLED_IN_FLEET: &str = "cancelled in the fleet";

impl Turn<'_> {
    /// Queues a crawl that came with pages. It has no user of this machine: every writer of the
    /// database could name any.
    pub(super) fn add_given_crawl(
        &mut self,
        id: CrawlId,
        max_depth: u32,
        document: &CrawlDocument,
    ) -> TurnResult<()> {
        self.tx.add_given_crawl(
            &GivenCrawl {
                id,
                url: &document.url,
                max_depth,
                plugins: &document.plugins,
                config: &document.config,
                user: FLEET,
            },
            self.now,
        )?;
        for tag in &document.tags {
            self.tx.tag_crawl(id, tag)?;
        }
        if document.only_new {
            self.tx.set_only_new(id)?;
        }
        self.announce_crawl(id, Notice::Added)
    }

    /// Closes the crawls that had no page on this node for this long, or since they were added for
    /// [`LINGER`]: their last hooks run.
    pub(super) fn close_idle_crawls(&mut self, linger: Duration) -> TurnResult<()> {
        let since = self.now.before(linger);
        let added = self.now.before(LINGER);
        for id in self.tx.idle_fleet_crawls(since, added)? {
            self.close_in_fleet(id)?;
        }
        Ok(())
    }

    /// Closes the crawls whose pages are all recorded: no more come, so their set-up serves none.
    pub(super) fn close_done_crawls(&mut self, orders: &Orders) -> TurnResult<()> {
        let done = orders.used.iter().filter(|(_, used)| used.is_done);
        let done: Vec<CrawlId> = done.map(|(id, _)| *id).collect();
        for id in self.tx.idle_fleet_crawls(self.now, self.now)? {
            if done.contains(&id) {
                self.close_in_fleet(id)?;
            }
        }
        Ok(())
    }

    fn close_in_fleet(&mut self, id: CrawlId) -> TurnResult<()> {
        self.tx.set_fleet_crawl(id, FleetCrawl::Closing)?;
        let crawl = self.crawl_of(id)?;
        if crawl.attempts == 0 && crawl.status == Lifecycle::Queued {
            // None of its pages came here: there is no set-up to undo.
            self.tx.step_crawl(id, Step::Seal, None, None, self.now)?;
        }
        self.tidy_crawl(id)
    }

    /// Reports that the last hooks of a crawl of the fleet have run.
    pub(crate) fn crawl_closed(&mut self, crawl: CrawlId) -> TurnResult<()> {
        if self.tx.fleet_crawl(crawl)? == FleetCrawl::No {
            return Ok(());
        }
        self.tx.set_fleet_crawl(crawl, FleetCrawl::Closing)?;
        self.send_to_fleet(&Request::CrawlClosed { crawl })
    }

    /// A crawl has pages again: what was reported of its end is not true any more.
    pub(super) fn withdraw_close(&mut self, crawl: CrawlId) -> TurnResult<()> {
        Ok(self.tx.withdraw(&Request::CrawlClosed { crawl })?)
    }

    /// Reports that a user cancelled a crawl of the fleet on this node.
    pub(crate) fn cancel_in_fleet(&mut self, id: CrawlId) -> TurnResult<()> {
        if self.tx.fleet_crawl(id)? == FleetCrawl::No {
            return Ok(());
        }
        self.tx.set_fleet_crawl(id, FleetCrawl::Closing)?;
        self.send_to_fleet(&Request::Command(Command {
            verb: CommandVerb::Cancel,
            target: Owner::Crawl(id),
        }))
    }

    /// Brings crawls and pages into the state that the fleet wants.
    pub(super) fn obey(&mut self, orders: &Orders) -> TurnResult<()> {
        for (crawl, used) in &orders.used {
            let began = Time(self.now.0 - i64::try_from(used.age.as_millis()).unwrap_or(i64::MAX));
            self.tx.set_fleet_use(*crawl, used.bytes, began)?;
        }
        let crawls = orders.crawls.iter();
        let crawls = crawls.map(|(id, order)| (Owner::Crawl(*id), *order));
        let pages = orders.pages.iter();
        let pages = pages.map(|(id, order)| (Owner::Snapshot(*id), *order));
        for (owner, order) in crawls.chain(pages) {
            let known = self.state_in_fleet(owner)?;
            match (known, order) {
                (None, _) => {}
                (Some(status), Order::Cancel) if !status.is_final() => {
                    self.cancel_for_fleet(owner)?;
                }
                (Some(Lifecycle::Queued | Lifecycle::Started), Order::Pause) => {
                    self.pause(owner)?;
                }
                (Some(Lifecycle::Paused), Order::Run) => self.resume(owner)?,
                (Some(_), _) => {}
            }
        }
        Ok(())
    }

    fn cancel_for_fleet(&mut self, owner: Owner) -> TurnResult<()> {
        match owner {
            Owner::Crawl(id) => self.cancel_crawl_here(id, CANCELLED_IN_FLEET),
            Owner::Snapshot(id) => {
                let crawl = self.snapshot_of(id)?.crawl;
                self.cancel_snapshot(crawl, id, CANCELLED_IN_FLEET)?;
                self.tidy_crawl(crawl)
            }
        }
    }
}
