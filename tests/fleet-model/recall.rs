//! What a node sends again to a database of another generation, as a value.

use super::Desk;
use archivist_core::fleet::{
    COMPARED, Compare, Item, Memory, NodeRefusal, NodeReply, NodeRequest, RESTORED, Restored,
    crawl_again,
};
use archivist_core::model::SnapshotId;
use std::collections::BTreeMap;

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

impl Desk {
    /// The database answered the request of [`Desk::recall_request`].
    pub(super) fn recalled(&mut self, reply: &Result<NodeReply, NodeRefusal>) {
        let Some((_, items)) = self.recall.next() else {
            return;
        };
        let mut lacking = Vec::new();
        if let Ok(NodeReply::Lacks { crawls, pages }) = reply {
            lacking.extend(crawls.iter().copied().map(Item::Crawl));
            lacking.extend(pages.iter().copied().map(Item::Page));
        }
        self.recall.answered(&items, &lacking);
    }

    /// Returns the next request about what the database may lack, if any.
    pub(super) fn recall_request(&self) -> Option<NodeRequest> {
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
            return Some(NodeRequest::Restore { pages: pages.collect() });
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
        Some(NodeRequest::Compare(compare))
    }

    fn restored(&self, id: SnapshotId) -> Option<Restored> {
        if let Some((page, record)) = self.archived.get(&id) {
            return Some(Restored { page: page.clone(), record: Some(record.clone()) });
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
            claimed: leases.map(|lease| (lease.host.clone(), lease.epoch)).collect(),
            highest: self.memory.given,
            ..self.memory.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::CrawlId;

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
}
