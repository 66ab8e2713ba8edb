//! What a node does when it sees another generation of the database, which may be older than what the
//! node has: it compares its crawls and pages with those of the database by id and epoch, and sends what
//! the database lacks. All of it is safe to repeat.

use super::desk::Desk;
use super::memory::Memory;
use super::page::{CrawlSpec, LeasedPage};
use super::request::{Record, Request, Submit};
use super::value::Epoch;
use super::{Refusal, Reply};
use crate::model::{CrawlId, SnapshotId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Number of the requests in this file as entries of the outbox: they precede all others.
pub const RECALL: u64 = 0;
/// Crawls and pages in one [`Compare`].
pub const COMPARED: usize = 500;
/// Pages in one `Restore`: each has the outputs of its hooks.
pub const RESTORED: usize = 16;
/// Entries that were answered this long before the database last knew of the node are sent again, too,
/// next to 2 % of the time since, by which clocks may differ.
const SLACK: Duration = Duration::from_secs(60);

/// Crawls and pages of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compare {
    /// Crawls.
    pub crawls: Vec<CrawlId>,
    /// Pages with the epoch of their record; 0 for a page that the node has not archived.
    pub pages: Vec<(SnapshotId, Epoch)>,
}

/// A page that the database lacks, or whose record it lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// As the node got it. Its number of attempts is not used.
    pub page: LeasedPage,
    /// How it ended; `None` for a page that the node has not archived, which is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
}

/// Something that the node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A crawl. Crawls precede their pages.
    Crawl(CrawlId),
    /// A page.
    Page(SnapshotId),
}

/// What was not compared yet, and what the database lacks (`true`). On disk, each is a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recall {
    items: BTreeMap<Item, bool>,
}

impl Recall {
    /// Begins again with everything that the node has.
    pub fn begin(&mut self, items: impl Iterator<Item = Item>) {
        self.items = items.map(|item| (item, false)).collect();
    }

    /// Returns the items of the next request: those that the database lacks first, in the order of
    /// [`Item`]. `true`: they are sent, one crawl or at most [`RESTORED`] pages; else they are compared.
    pub fn next(&self) -> Option<(bool, Vec<Item>)> {
        let with = |lacks: bool| {
            let items = self.items.iter();
            items.filter(move |(_, state)| **state == lacks)
        };
        let mut lacking = with(true).map(|(item, _)| *item);
        match lacking.next() {
            Some(crawl @ Item::Crawl(_)) => Some((true, vec![crawl])),
            Some(page) => {
                let pages = std::iter::once(page).chain(lacking);
                Some((true, pages.take(RESTORED).collect()))
            }
            None => {
                let items: Vec<_> = with(false).map(|(item, _)| *item).take(COMPARED).collect();
                (!items.is_empty()).then_some((false, items))
            }
        }
    }

    /// Notes the answer to the request with these items. `lacking`: those that the database lacks.
    pub fn answered(&mut self, items: &[Item], lacking: &[Item]) {
        self.items.retain(|item, _| !items.contains(item));
        let lacking = lacking.iter().filter(|item| items.contains(item));
        self.items.extend(lacking.map(|item| (*item, true)));
    }
}

/// Returns the request that creates a crawl again.
pub fn crawl_again(crawl: CrawlId, spec: CrawlSpec) -> Request {
    Request::Submit(Submit {
        crawl,
        spec: Some(spec),
        pages: Vec::new(),
    })
}

impl Desk {
    /// The database answered the request of [`Desk::recall_request`].
    pub(super) fn recalled(&mut self, reply: &Result<Reply, Refusal>) {
        let Some((_, items)) = self.recall.next() else {
            return;
        };
        let mut lacking = Vec::new();
        if let Ok(Reply::Lacks { crawls, pages }) = reply {
            lacking.extend(crawls.iter().copied().map(Item::Crawl));
            lacking.extend(pages.iter().copied().map(Item::Page));
        }
        self.recall.answered(&items, &lacking);
    }

    /// Returns the next request about what the database may lack, if any.
    pub(super) fn recall_request(&self) -> Option<Request> {
        let (sends, items) = self.recall.next()?;
        if let (true, [Item::Crawl(id)]) = (sends, &items[..]) {
            let spec = self.specs.get(id).cloned().unwrap_or_default();
            return Some(crawl_again(*id, spec));
        }
        if sends {
            let pages = items.iter().filter_map(|item| match item {
                Item::Crawl(_) => None,
                Item::Page(id) => self.restored(*id),
            });
            return Some(Request::Restore {
                pages: pages.collect(),
            });
        }
        let mut compare = Compare::default();
        for item in items {
            match item {
                Item::Crawl(id) => compare.crawls.push(id),
                Item::Page(id) => {
                    let record = self.archived.get(&id).map(|(_, record)| record.epoch);
                    compare.pages.push((id, record.unwrap_or_default()));
                }
            }
        }
        Some(Request::Compare(compare))
    }

    fn restored(&self, id: SnapshotId) -> Option<Restored> {
        if let Some((page, record)) = self.archived.get(&id) {
            return Some(Restored {
                page: page.clone(),
                record: Some(record.clone()),
            });
        }
        let page = self.pages.get(&id)?.leased.clone();
        Some(Restored { page, record: None })
    }

    /// Returns what the next hello says of the database.
    pub fn memory(&self) -> Option<Memory> {
        let leases = self.leases.values();
        Some(Memory {
            node: self.node?,
            generation: self.generation,
            claimed: leases
                .map(|lease| (lease.host.clone(), lease.epoch))
                .collect(),
            highest: self.memory.given,
            ..self.memory.clone()
        })
    }
}

/// Returns how long ago the first entry was answered that is sent again to a database that last knew of
/// the node this long ago.
pub fn resent_since(forgot: Duration) -> Duration {
    forgot.saturating_add(SLACK + forgot / 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_sent_before_more_is_compared() {
        let crawl = Item::Crawl(CrawlId(7));
        let page = |id: i64| Item::Page(SnapshotId(id));
        let mut recall = Recall::default();
        recall.begin((1..=700).map(page).chain([crawl]));
        let (sends, first) = recall.next().unwrap();
        assert!(!sends && first.len() == COMPARED && first[0] == crawl);
        let lacking: Vec<_> = [crawl].into_iter().chain((5..=24).map(page)).collect();
        recall.answered(&first, &lacking);
        let mut sent = Vec::new();
        while let Some((true, items)) = recall.next() {
            recall.answered(&items, &[]);
            sent.push(items);
        }
        let pages: Vec<_> = (5..=24).map(page).collect();
        let (some, rest) = pages.split_at(RESTORED);
        assert_eq!(sent, [vec![crawl], some.to_vec(), rest.to_vec()]);
        let (sends, rest) = recall.next().unwrap();
        assert!(!sends && rest.len() == 701 - COMPARED);
        recall.answered(&rest, &[]);
        assert_eq!(recall.next(), None);
    }

    #[test]
    fn slack_grows_with_the_time_since_the_backup() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(resent_since(Duration::ZERO), SLACK);
        assert_eq!(resent_since(hours(100)), hours(102) + SLACK);
    }
}
