//! What the node remembers of the database of the fleet, and what it sends again to one of another
//! generation, which lost transactions or was restored from a backup. The rules are in
//! `core/fleet/recall.rs` and `core/fleet/memory.rs`.

use crate::fleet::submit::CrawlDocument;
use crate::main_loop::log::Problem;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::rows::recall::Remembered;
use archivist_core::fleet::{
    Compare, CrawlSpec, Entry, Fate, Item, Memory, RECALL, Refusal, Reply, Request, Restored,
    crawl_again, resent_since,
};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use std::time::Duration;

impl Turn<'_> {
    /// The database has another generation: everything that it may lack is compared, and what it answered
    /// since it last knew of this node is sent again.
    pub(super) fn begin_recall(&mut self, forgot: Option<Duration>) -> TurnResult<()> {
        let since = resent_since(forgot.unwrap_or(Duration::MAX));
        self.tx.send_again(self.now.before(since))?;
        self.tx.begin_recall()?;
        let remembered = self.tx.remembered()?;
        Ok(self.tx.remember(&Remembered {
            given: remembered.given,
            ..Remembered::default()
        })?)
    }

    /// Returns the next request about what the database may lack, as an entry of the outbox.
    pub(super) fn recall_entry(&self) -> TurnResult<Option<Entry>> {
        let request = match self.tx.next_recall()? {
            None => return Ok(None),
            Some((false, items)) => Request::Compare(self.compare(&items)?),
            Some((true, items)) => self.lacking(&items)?,
        };
        Ok(Some(Entry {
            number: RECALL,
            request,
        }))
    }

    fn compare(&self, items: &[Item]) -> TurnResult<Compare> {
        let mut compare = Compare::default();
        for item in items {
            match item {
                Item::Crawl(id) => compare.crawls.push(*id),
                Item::Page(id) => compare.pages.push((*id, self.tx.recorded(*id)?)),
            }
        }
        Ok(compare)
    }

    fn lacking(&self, items: &[Item]) -> TurnResult<Request> {
        let mut pages = Vec::new();
        for item in items {
            match item {
                Item::Crawl(id) => return Ok(crawl_again(*id, self.spec_of(*id)?)),
                Item::Page(id) => pages.extend(self.page_again(*id)?),
            }
        }
        Ok(Request::Restore { pages })
    }

    fn spec_of(&self, id: CrawlId) -> TurnResult<CrawlSpec> {
        let crawl = self.crawl_of(id)?;
        let only_new = self.tx.is_only_new(id)?;
        let document = CrawlDocument {
            url: crawl.url,
            plugins: crawl.plugins,
            config: crawl.config,
            tags: self.tx.crawl_tags(id)?,
            only_new,
        };
        Ok(CrawlSpec {
            max_depth: crawl.max_depth,
            urls_max: None,
            only_new,
            document: serde_json::to_string(&document)?,
        })
    }

    fn page_again(&self, id: SnapshotId) -> TurnResult<Option<Restored>> {
        let Some(page) = self.tx.given_page(id)? else {
            return Ok(None);
        };
        let epoch = self.tx.recorded(id)?;
        let mut record = None;
        if epoch.0 > 0 {
            record = self.record_of(id, epoch)?;
        }
        if let (Some(record), Some(ended)) = (&mut record, self.tx.snapshot_ended_at(id)?) {
            record.times.ended_ago = self.now.until(ended);
        }
        Ok(Some(Restored { page, record }))
    }

    /// The database answered the request of [`Turn::recall_entry`].
    pub(super) fn recalled(&mut self, reply: &Result<Reply, Refusal>) -> TurnResult<()> {
        let Some((_, items)) = self.tx.next_recall()? else {
            return Ok(());
        };
        let mut lacking = Vec::new();
        match reply {
            Ok(Reply::Lacks { crawls, pages }) => {
                lacking.extend(crawls.iter().copied().map(Item::Crawl));
                lacking.extend(pages.iter().copied().map(Item::Page));
            }
            Ok(Reply::Restored { refused }) => {
                for page in refused {
                    self.log_problem(Problem::FleetRefused(format!(
                        "{page} of this node: the database has another page with its id or URL; its files stay"
                    )));
                }
            }
            Ok(_) => {}
            Err(refusal) => self.log_problem(Problem::FleetRefused(refusal.to_string())),
        }
        Ok(self.tx.recall_answered(&items, &lacking)?)
    }

    /// Notes what the database has, from its answer to an entry of the outbox.
    pub(super) fn learn_answer(&mut self, number: u64, reply: &Reply) -> TurnResult<()> {
        let is_about_rows = matches!(
            reply,
            Reply::Recorded(_) | Reply::Submitted { .. } | Reply::CrawlIds { .. }
        );
        if !is_about_rows {
            return Ok(());
        }
        let before = self.tx.remembered()?;
        let mut now = before;
        match (self.tx.entry(number)?, reply) {
            (Some(Request::Record(record)), Reply::Recorded(Fate::Stale)) => {
                self.tx.withdraw_record(record.page, record.epoch)?;
            }
            (Some(Request::Record(record)), Reply::Recorded(_)) => {
                now.recorded = Some((record.page, record.epoch));
            }
            (Some(Request::Submit(submit)), Reply::Submitted { .. }) => {
                now.submitted = Some(submit.crawl);
            }
            (_, Reply::CrawlIds { first, count }) => {
                let last = CrawlId(first.0 + i64::from(*count) - 1);
                now.given.crawl = now.given.crawl.max(last);
            }
            _ => {}
        }
        self.remember(before, now)
    }

    /// Notes the highest ids that the fleet has given.
    pub(super) fn learn_ids(&mut self, given: IdMarks) -> TurnResult<()> {
        let before = self.tx.remembered()?;
        let now = Remembered {
            given: before.given.or_higher(given),
            ..before
        };
        self.remember(before, now)
    }

    fn remember(&self, before: Remembered, now: Remembered) -> TurnResult<()> {
        if now != before {
            self.tx.remember(&now)?;
        }
        Ok(())
    }

    /// Returns what the next hello says of the database; `None` before the first welcome.
    pub(super) fn memory(&self) -> TurnResult<Option<Memory>> {
        let Some(node) = self.tx.node()? else {
            return Ok(None);
        };
        let Remembered {
            given,
            submitted,
            recorded,
        } = self.tx.remembered()?;
        let leases = self.tx.leases(&self.engine.boot)?.into_iter();
        Ok(Some(Memory {
            node: node.node,
            generation: node.generation,
            given,
            submitted,
            recorded,
            claimed: leases.map(|lease| (lease.name, lease.epoch)).collect(),
            highest: self.tx.highest_ids()?.or_higher(given),
        }))
    }
}
