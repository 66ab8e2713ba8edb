//! Rows about what a node sends again to a database of another generation, and what it remembers of the
//! database. The reference is `tests/fleet-model/recall.rs`.

use crate::database::column::{FromRow, column};
use crate::database::{Result, Tx};
use archivist_core::fleet::{COMPARED, Epoch, Item, LeasedPage, NewPage, RESTORED};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use rusqlite::Row;

const CRAWL: i64 = 0;
const PAGE: i64 = 1;

/// What the database of the fleet had in this generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Highest ids that it has given to any node.
    pub given: IdMarks,
    /// Crawl of the latest pages that it acknowledged.
    pub submitted: Option<CrawlId>,
    /// Latest page whose record it acknowledged.
    pub recorded: Option<(SnapshotId, Epoch)>,
}

impl FromRow for Remembered {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Remembered> {
        let page: Option<SnapshotId> = column(row, 3)?;
        Ok(Remembered {
            given: IdMarks {
                crawl: column(row, 0)?,
                snapshot: column(row, 1)?,
                ..IdMarks::default()
            },
            submitted: column(row, 2)?,
            recorded: page.zip(column(row, 4)?),
        })
    }
}

impl FromRow for LeasedPage {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<LeasedPage> {
        Ok(LeasedPage {
            id: column(row, 0)?,
            crawl: column(row, 1)?,
            parent: None,
            page: NewPage {
                url: column(row, 2)?,
                host: column(row, 3)?,
                depth: column(row, 4)?,
                given: column(row, 5)?,
                title: column(row, 6)?,
                bookmarked_at: column(row, 7)?,
                tags: Vec::new(),
            },
            attempts: column(row, 8)?,
        })
    }
}

impl Tx<'_> {
    pub fn set_recorded(&self, id: SnapshotId, epoch: Epoch) -> Result<()> {
        self.execute("UPDATE snapshot SET epoch = 0, recorded = ?2 WHERE id = ?1", (id.0, epoch.0))
    }

    /// Records that the database refused the end of a page under this epoch.
    pub fn withdraw_record(&self, id: SnapshotId, epoch: Epoch) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET recorded = 0 WHERE id = ?1 AND recorded = ?2",
            (id.0, epoch.0),
        )
    }

    /// Returns the epoch under which this node recorded a page; 0 if it did not.
    pub fn recorded(&self, id: SnapshotId) -> Result<Epoch> {
        let epoch = self.first("SELECT recorded FROM snapshot WHERE id = ?1", [id.0])?;
        Ok(Epoch(epoch.unwrap_or_default()))
    }

    /// Begins to compare all crawls and pages of the fleet. Pages that the fleet gave to this node are
    /// among them, and those that it took away since are not.
    pub fn begin_recall(&self) -> Result<()> {
        self.inner.execute_batch(
            "DELETE FROM recall;
             INSERT INTO recall SELECT 0, 0, id FROM crawl WHERE fleet IN ('open', 'closing');
             INSERT INTO recall SELECT 0, 1, snapshot.id FROM snapshot
                 JOIN crawl ON crawl.id = snapshot.crawl_id
                 WHERE crawl.fleet IN ('open', 'closing') AND snapshot.replaced = 0
                     AND (snapshot.recorded > 0 OR snapshot.epoch > 0);",
        )?;
        Ok(())
    }

    /// Returns the items of the next request, as `Recall::next`.
    pub fn next_recall(&self) -> Result<Option<(bool, Vec<Item>)>> {
        let lacking = self.recall_items(true, RESTORED)?;
        match lacking.first() {
            Some(crawl @ Item::Crawl(_)) => Ok(Some((true, vec![*crawl]))),
            Some(Item::Page(_)) => Ok(Some((true, lacking))),
            None => {
                let items = self.recall_items(false, COMPARED)?;
                Ok((!items.is_empty()).then_some((false, items)))
            }
        }
    }

    fn recall_items(&self, lacks: bool, limit: usize) -> Result<Vec<Item>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows: Vec<(i64, i64)> = self.all(
            "SELECT kind, id FROM recall WHERE lacks = ?1 ORDER BY kind, id LIMIT ?2",
            (lacks, limit),
        )?;
        let items = rows.into_iter().map(|(kind, id)| match kind {
            CRAWL => Item::Crawl(CrawlId(id)),
            _ => Item::Page(SnapshotId(id)),
        });
        Ok(items.collect())
    }

    /// Notes the answer to the request with these items. `lacking`: those that the database lacks.
    pub fn recall_answered(&self, items: &[Item], lacking: &[Item]) -> Result<()> {
        for item in items {
            let (kind, id) = number(*item);
            for lacks in [false, true] {
                self.execute(
                    "DELETE FROM recall WHERE kind = ?1 AND id = ?2 AND lacks = ?3",
                    (kind, id, lacks),
                )?;
            }
            if lacking.contains(item) {
                self.execute("INSERT OR IGNORE INTO recall VALUES (1, ?1, ?2)", (kind, id))?;
            }
        }
        Ok(())
    }

    /// Returns a page of the fleet as the fleet gave it to this node.
    pub fn given_page(&self, id: SnapshotId) -> Result<Option<LeasedPage>> {
        let page = self.first(
            "SELECT snapshot.id, crawl_id, url, host.name, depth, given, title, bookmarked_at, attempts
             FROM snapshot JOIN host ON host.id = host_id WHERE snapshot.id = ?1",
            [id.0],
        )?;
        let Some::<LeasedPage>(mut page) = page else {
            return Ok(None);
        };
        page.page.tags = self.tags("snapshot", id.0)?;
        Ok(Some(page))
    }

    pub fn crawl_tags(&self, id: CrawlId) -> Result<Vec<String>> {
        self.tags("crawl", id.0)
    }

    pub fn remembered(&self) -> Result<Remembered> {
        let found = self.first(
            "SELECT given_crawl, given_page, submitted, recorded_page, recorded_epoch FROM fleet",
            [],
        )?;
        Ok(found.unwrap_or_default())
    }

    pub fn remember(&self, now: &Remembered) -> Result<()> {
        let (page, epoch) = now.recorded.unzip();
        self.execute(
            "UPDATE fleet SET given_crawl = ?1, given_page = ?2, submitted = ?3,
             recorded_page = ?4, recorded_epoch = ?5",
            (
                now.given.crawl.0,
                now.given.snapshot.0,
                now.submitted.map(|crawl| crawl.0),
                page.map(|page| page.0),
                epoch.map(|epoch| epoch.0),
            ),
        )
    }
}

fn number(item: Item) -> (i64, i64) {
    match item {
        Item::Crawl(id) => (CRAWL, id.0),
        Item::Page(id) => (PAGE, id.0),
    }
}
