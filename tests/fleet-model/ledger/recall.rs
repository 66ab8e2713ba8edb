//! What nodes send again to a database of another generation.

use super::*;
use archivist_core::fleet::{Compare, Epoch, Record, Restored};

impl Ledger {
    /// Returns what the database lacks of the crawls and pages of a node.
    pub(super) fn compare(&self, me: NodeId, compare: &Compare) -> NodeReply {
        let crawls = compare.crawls.iter().copied();
        let pages = compare.pages.iter();
        let lacking = pages.filter(|(id, own)| is_lacking(self.known(me, *id), *own));
        NodeReply::Lacks {
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
        let LeasedPage { id, crawl, parent, .. } = restored.page;
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
        host.or_insert_with(|| HostRow { ready_at: now, ..HostRow::default() });
        self.pages.insert(id, PageRow::new(crawl, parent, page.clone()));
        true
    }

    /// Records the end of a page under an epoch that no later one precludes. If the page has an earlier
    /// end, this is the one after a retry.
    fn record_again(&mut self, me: NodeId, record: &Record) {
        self.withdraw_end(record.page);
        self.end(me, record);
    }
}

/// A page as the database has it, for the node that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Epoch under which the page was last handed to a node, or recorded.
    epoch: Epoch,
    /// It is open, and handed to the node that asks.
    is_open_here: bool,
}

/// Returns whether the database lacks what a node has of a page: the page, or its record under the epoch
/// `own`, which is 0 if the node has none. A page that was handed out or recorded later is not lacking.
fn is_lacking(known: Option<Known>, own: Epoch) -> bool {
    match known {
        None => true,
        Some(known) => known.epoch < own || known.epoch == own && known.is_open_here,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_later_than_the_row_is_lacking() {
        let known = |epoch, is_open_here| Some(Known { epoch: Epoch(epoch), is_open_here });
        for (row, own, lacks) in [
            (None, 0, true),
            (None, 7, true),
            (known(0, false), 0, false),
            (known(0, false), 7, true),
            (known(6, true), 7, true),
            (known(6, false), 7, true),
            // Handed to the node, which has recorded it since.
            (known(7, true), 7, true),
            // Recorded, and maybe retried since.
            (known(7, false), 7, false),
            // Another node has it, or has recorded it.
            (known(8, false), 7, false),
        ] {
            assert_eq!(is_lacking(row, Epoch(own)), lacks, "{row:?} {own}");
        }
    }
}
