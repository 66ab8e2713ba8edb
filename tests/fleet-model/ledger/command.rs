//! Commands of users.

use super::*;
use archivist_core::fleet::{Command, CommandVerb, Order, PageEnd};
use archivist_core::model::Owner;

impl Ledger {
    /// Carries out a command, as a whole: in pieces, it changes the same.
    pub(super) fn command(&mut self, command: Command) -> Result<(), NodeRefusal> {
        match command.target {
            Owner::Crawl(id) => self.command_crawl(id, command.verb),
            Owner::Snapshot(id) => self.command_page(id, command.verb),
        }
    }

    fn command_crawl(&mut self, id: CrawlId, verb: CommandVerb) -> Result<(), NodeRefusal> {
        let crawl = self.crawls.get_mut(&id);
        let crawl = crawl.ok_or(NodeRefusal::UnknownCrawl { crawl: id })?;
        crawl.state = match (verb, crawl.state) {
            (CommandVerb::Cancel, _) => CrawlState::Cancelled,
            (CommandVerb::Pause, CrawlState::Running) => CrawlState::Paused,
            (CommandVerb::Resume, CrawlState::Paused) => CrawlState::Running,
            (CommandVerb::Retry, CrawlState::Cancelled) => CrawlState::Running,
            (_, state) => state,
        };
        let pages = self.pages.iter().filter(|(_, page)| page.crawl == id);
        let pages: Vec<_> = pages.map(|(id, _)| *id).collect();
        for page in pages {
            let is_open = self.pages.get(&page).is_some_and(PageRow::is_open);
            match verb {
                CommandVerb::Cancel if !is_open => {
                    self.end_if_cancelled(page);
                }
                CommandVerb::Retry if self.pages.get(&page).is_some_and(PageRow::lacks) => {
                    self.retry(page);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn command_page(&mut self, id: SnapshotId, verb: CommandVerb) -> Result<(), NodeRefusal> {
        let page = self.pages.get_mut(&id);
        let page = page.ok_or(NodeRefusal::UnknownPage { page: id })?;
        if verb == CommandVerb::Retry {
            self.retry(id);
            return Ok(());
        }
        if page.state.is_final() {
            return Ok(());
        }
        page.order = match (verb, page.order) {
            (_, Order::Cancel) | (CommandVerb::Cancel, _) => Order::Cancel,
            (CommandVerb::Pause, _) => Order::Pause,
            _ => Order::Run,
        };
        if !page.is_open() {
            self.end_if_cancelled(id);
        }
        Ok(())
    }

    /// Queues a final page again. The crawl continues if it was cancelled.
    fn retry(&mut self, id: SnapshotId) {
        let Some(page) = self.pages.get(&id).filter(|page| page.state.is_final()) else {
            return;
        };
        let crawl = page.crawl;
        self.withdraw_end(id);
        if let Some(crawl) = self.crawls.get_mut(&crawl)
            && crawl.state == CrawlState::Cancelled
        {
            crawl.state = CrawlState::Running;
        }
    }
}

impl PageRow {
    fn is_open(&self) -> bool {
        matches!(self.state, PageState::Open(_))
    }

    /// Whether a retry of its crawl is about the page: it was cancelled, or has a failed result.
    fn lacks(&self) -> bool {
        self.failed || matches!(self.state, PageState::Final(PageEnd::Cancelled, _))
    }
}
