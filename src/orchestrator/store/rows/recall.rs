//! Rows about what a node sends again to a database of another generation, and what it remembers of the
//! database. The reference is `core/fleet/recall.rs`.

use crate::store::column::column;
use crate::store::{Result, Tx};
use archivist_core::fleet::{COMPARED, Epoch, HostKey, Item, LeasedPage, NewPage, RESTORED};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use rusqlite::{OptionalExtension, Row};

/// Kinds of rows.
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

impl Tx<'_> {
    /// Records that the end of a page is in the outbox.
    pub fn set_recorded(&self, id: SnapshotId, epoch: Epoch) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE snapshot SET epoch = 0, recorded = ?2 WHERE id = ?1")?
            .execute((id.0, epoch.0))?;
        Ok(())
    }

    /// Records that the database refused the end of a page under this epoch.
    pub fn withdraw_record(&self, id: SnapshotId, epoch: Epoch) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE snapshot SET recorded = 0 WHERE id = ?1 AND recorded = ?2")?
            .execute((id.0, epoch.0))?;
        Ok(())
    }

    /// Returns the epoch under which this node recorded a page; 0 if it did not.
    pub fn recorded(&self, id: SnapshotId) -> Result<Epoch> {
        let epoch = self
            .inner
            .prepare_cached("SELECT recorded FROM snapshot WHERE id = ?1")?
            .query_row([id.0], |row| row.get(0))
            .optional()?;
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
        let read = |row: &Row<'_>| {
            Ok(match row.get(0)? {
                CRAWL => Item::Crawl(column(row, 1)?),
                _ => Item::Page(column(row, 1)?),
            })
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.inner.prepare_cached(
            "SELECT kind, id FROM recall WHERE lacks = ?1 ORDER BY kind, id LIMIT ?2",
        )?;
        let rows = statement.query_map((lacks, limit), read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Notes the answer to the request with these items. `lacking`: those that the database lacks.
    pub fn recall_answered(&self, items: &[Item], lacking: &[Item]) -> Result<()> {
        let mut remove = self
            .inner
            .prepare_cached("DELETE FROM recall WHERE kind = ?1 AND id = ?2 AND lacks = ?3")?;
        let mut insert = self
            .inner
            .prepare_cached("INSERT OR IGNORE INTO recall VALUES (1, ?1, ?2)")?;
        for item in items {
            let (kind, id) = number(*item);
            for lacks in [false, true] {
                remove.execute((kind, id, lacks))?;
            }
            if lacking.contains(item) {
                insert.execute((kind, id))?;
            }
        }
        Ok(())
    }

    /// Returns a page of the fleet as the fleet gave it to this node.
    pub fn given_page(&self, id: SnapshotId) -> Result<Option<LeasedPage>> {
        let read = |row: &Row<'_>| {
            Ok(LeasedPage {
                id,
                crawl: column(row, 0)?,
                parent: None,
                page: NewPage {
                    url: row.get(1)?,
                    host: HostKey(row.get(2)?),
                    depth: row.get(3)?,
                    given: row.get(4)?,
                    title: row.get(5)?,
                    bookmarked_at: row.get(6)?,
                    tags: Vec::new(),
                },
                attempts: row.get(7)?,
            })
        };
        let page = self
            .inner
            .prepare_cached(
                "SELECT crawl_id, url, host.name, depth, given, title, bookmarked_at, attempts
                 FROM snapshot JOIN host ON host.id = host_id WHERE snapshot.id = ?1",
            )?
            .query_row([id.0], read)
            .optional()?;
        let Some(mut page) = page else {
            return Ok(None);
        };
        page.page.tags = self.tag_names(
            "SELECT name FROM snapshot_tag JOIN tag ON tag.id = tag_id WHERE snapshot_id = ?1 ORDER BY name",
            id.0,
        )?;
        Ok(Some(page))
    }

    /// Returns the tags of a crawl.
    pub fn crawl_tags(&self, id: CrawlId) -> Result<Vec<String>> {
        self.tag_names(
            "SELECT name FROM crawl_tag JOIN tag ON tag.id = tag_id WHERE crawl_id = ?1 ORDER BY name",
            id.0,
        )
    }

    fn tag_names(&self, sql: &str, id: i64) -> Result<Vec<String>> {
        let mut statement = self.inner.prepare_cached(sql)?;
        let rows = statement.query_map([id], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns what the database had in this generation.
    pub fn remembered(&self) -> Result<Remembered> {
        let read = |row: &Row<'_>| {
            let page: Option<i64> = row.get(3)?;
            let epoch: Option<i64> = row.get(4)?;
            Ok(Remembered {
                given: IdMarks {
                    crawl: column(row, 0)?,
                    snapshot: column(row, 1)?,
                    ..IdMarks::default()
                },
                submitted: row.get::<_, Option<i64>>(2)?.map(CrawlId),
                recorded: page.map(SnapshotId).zip(epoch.map(Epoch)),
            })
        };
        Ok(self
            .inner
            .prepare_cached(
                "SELECT given_crawl, given_page, submitted, recorded_page, recorded_epoch FROM fleet",
            )?
            .query_row([], read)
            .optional()?
            .unwrap_or_default())
    }

    /// Records what the database has now.
    pub fn remember(&self, now: &Remembered) -> Result<()> {
        let (page, epoch) = now.recorded.unzip();
        self.inner
            .prepare_cached(
                "UPDATE fleet SET given_crawl = ?1, given_page = ?2, submitted = ?3,
                     recorded_page = ?4, recorded_epoch = ?5",
            )?
            .execute((
                now.given.crawl.0,
                now.given.snapshot.0,
                now.submitted.map(|crawl| crawl.0),
                page.map(|page| page.0),
                epoch.map(|epoch| epoch.0),
            ))?;
        Ok(())
    }
}

fn number(item: Item) -> (i64, i64) {
    match item {
        Item::Crawl(id) => (CRAWL, id.0),
        Item::Page(id) => (PAGE, id.0),
    }
}
