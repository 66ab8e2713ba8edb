//! What nodes send again to a database of another generation.

use super::*;
use crate::fleet::{Compare, Epoch, Known, Record, Restored, is_lacking};

impl Ledger {
    /// Returns what the database lacks of the crawls and pages of a node.
    pub(super) fn compare(&self, me: NodeId, compare: &Compare) -> Reply {
        let crawls = compare.crawls.iter().copied();
        let pages = compare.pages.iter();
        let lacking = pages.filter(|(id, own)| is_lacking(self.known(me, *id), *own));
        Reply::Lacks {
            crawls: crawls.filter(|id| !self.crawls.contains_key(id)).collect(),
            pages: lacking.map(|(id, _)| *id).collect(),
        }
    }

    fn known(&self, me: NodeId, id: SnapshotId) -> Option<Known> {
        self.pages.get(&id).map(|page| Known {
            epoch: page.epoch,
            is_open_here: page.state == PageState::Open(me),
        })
    }

    /// Puts pages back with their ids, and their records. Returns those that another page precludes.
    pub(super) fn restore(
        &mut self,
        now: DbTime,
        me: NodeId,
        pages: &[Restored],
    ) -> Vec<SnapshotId> {
        let mut refused = Vec::new();
        for restored in pages {
            if !self.put_back(now, restored) {
                refused.push(restored.page.id);
            } else if let Some(record) = &restored.record
                && is_lacking(self.known(me, record.page), record.epoch)
            {
                self.record_again(me, record);
            }
        }
        refused
    }

    /// Queues a page under its id, unless it is there. A page with its URL that was never handed to a node
    /// makes room: it was added from a list that was sent again. Returns whether the page is there.
    fn put_back(&mut self, now: DbTime, restored: &Restored) -> bool {
        let LeasedPage {
            id, crawl, parent, ..
        } = restored.page;
        let page = &restored.page.page;
        let is_same = |row: &PageRow| row.crawl == crawl && row.page.url == page.url;
        if let Some(row) = self.pages.get(&id) {
            return is_same(row);
        }
        if !self.crawls.contains_key(&crawl) {
            return false;
        }
        let twin = self.pages.iter().find(|(_, row)| is_same(row));
        let twin = twin.map(|(id, row)| (*id, row.epoch));
        match twin {
            Some((_, epoch)) if epoch > Epoch(0) => return false,
            Some((twin, _)) => drop(self.pages.remove(&twin)),
            None => {
                if let Some(row) = self.crawls.get_mut(&crawl) {
                    row.pages += 1;
                }
            }
        }
        let host = self.hosts.entry(page.host.clone());
        host.or_insert_with(|| HostRow {
            ready_at: now,
            ..HostRow::default()
        });
        self.pages
            .insert(id, PageRow::new(crawl, parent, page.clone()));
        true
    }

    /// Records the end of a page under an epoch that no later one precludes. If the page has an earlier
    /// end, this is the one after a retry.
    fn record_again(&mut self, me: NodeId, record: &Record) {
        self.withdraw_end(record.page);
        self.end(me, record);
    }
}
