//! Pages that the rules of `Retention=` delete: which are due, and which must be looked at.

use crate::database::rows::complete::SAVED;
use crate::database::rows::ended::{EndedPage, TAGGED};
use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Time};
use archivist_core::plan::{AgingPage, RetentionReview, RetentionRule};

/// Versions of a page that are read to find the newest one that was saved.
const VERSIONS_READ: u32 = 1_000;
/// Older versions that are looked at when a page ends.
const OLDER_READ: u32 = 10;

/// How far the pages were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionState {
    /// The rules as of then.
    pub rules: String,
    /// After a change of the rules: the page up to which all were looked at.
    pub swept_to: Option<i64>,
}

impl Tx<'_> {
    /// Returns the rules that the rows are about.
    pub fn retention_state(&self) -> Result<RetentionState> {
        let (rules, swept_to) = self.one("SELECT rules, swept_to FROM retention", [])?;
        Ok(RetentionState { rules, swept_to })
    }

    /// Records other rules: all pages must be looked at.
    pub fn set_retention(&self, rules: &str) -> Result<()> {
        self.execute("UPDATE retention SET rules = ?1, swept_to = 0", [rules])
    }

    /// Returns the count of what is deleted at once, if one is due, in progress, or holds a rule.
    pub fn retention_review(&self) -> Result<Option<RetentionReview>> {
        let review: Option<String> = self.one("SELECT review FROM retention", [])?;
        Ok(review.map(|review| serde_json::from_str(&review).unwrap_or_default()))
    }

    /// Records the count of what is deleted at once; `None` ends it.
    pub fn set_retention_review(&self, review: Option<&RetentionReview>) -> Result<()> {
        let review = review.map(serde_json::to_string).transpose()?;
        self.execute("UPDATE retention SET review = ?1", [review])
    }

    /// Records the page up to which all were looked at; `None` for all.
    pub fn set_swept_to(&self, page: Option<i64>) -> Result<()> {
        self.execute("UPDATE retention SET swept_to = ?1", [page])
    }

    /// Deletes entries of the queue, at most `count`, which no rule needs any more. Returns how many.
    pub fn clear_retention_queue(&self, count: u32) -> Result<usize> {
        self.execute(
            "DELETE FROM retention_crawl WHERE crawl_id IN
                 (SELECT crawl_id FROM retention_crawl LIMIT ?1)",
            [count],
        )?;
        self.change(
            "DELETE FROM retention_queue WHERE snapshot_id IN
                 (SELECT snapshot_id FROM retention_queue LIMIT ?1)",
            [count],
        )
    }

    /// Returns when the first page is due.
    pub fn next_expiry(&self) -> Result<Option<Time>> {
        self.one("SELECT min(due_at) FROM retention_queue", [])
    }

    /// Returns pages that are due, at most `count`.
    pub fn due_expiries(&self, now: Time, count: u32) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT snapshot_id FROM retention_queue INDEXED BY retention_due
             WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2",
            (now.0, count),
        )
    }

    /// Records when a page is looked at again; `None` for never, unless something changes.
    pub fn set_expiry(&self, page: SnapshotId, due: Option<Time>) -> Result<()> {
        match due {
            Some(due) => self.execute(
                "INSERT INTO retention_queue VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET due_at = excluded.due_at",
                (page.0, due.0),
            ),
            None => self.execute("DELETE FROM retention_queue WHERE snapshot_id = ?1", [page.0]),
        }
    }

    /// Returns a crawl whose pages must be looked at, and the page up to which they were.
    pub fn aging_crawl(&self) -> Result<Option<(CrawlId, i64)>> {
        self.first("SELECT crawl_id, swept_to FROM retention_crawl ORDER BY crawl_id LIMIT 1", [])
    }

    /// Records the page of a crawl up to which all were looked at; `None` for all.
    pub fn set_crawl_swept_to(&self, crawl: CrawlId, page: Option<i64>) -> Result<()> {
        match page {
            Some(page) => self.execute(
                "UPDATE retention_crawl SET swept_to = ?2 WHERE crawl_id = ?1",
                (crawl.0, page),
            ),
            None => self.execute("DELETE FROM retention_crawl WHERE crawl_id = ?1", [crawl.0]),
        }
    }

    /// Returns pages after this one, of a crawl or of all, at most `count`.
    pub fn pages_after(
        &self,
        crawl: Option<CrawlId>,
        after: i64,
        count: u32,
    ) -> Result<Vec<SnapshotId>> {
        match crawl {
            Some(crawl) => self.all(
                "SELECT id FROM snapshot INDEXED BY snapshot_crawl
                 WHERE crawl_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                (crawl.0, after, count),
            ),
            None => self
                .all("SELECT id FROM snapshot WHERE id > ?1 ORDER BY id LIMIT ?2", (after, count)),
        }
    }

    /// Returns what the rules require to know about a page.
    pub fn aging_page(&self, page: &EndedPage) -> Result<AgingPage> {
        let mut tags = self.tags("snapshot", page.id.0)?;
        tags.extend(self.tags("crawl", page.crawl.0)?);
        Ok(AgingPage {
            ended_at: page.ended_at,
            is_dated: page.is_dated(),
            is_newest: self.is_newest_version(page)?,
            tags,
        })
    }

    /// Whether the page is the newest version that was saved, or, if none was, the newest one.
    fn is_newest_version(&self, page: &EndedPage) -> Result<bool> {
        if page.status != Lifecycle::Sealed {
            return Ok(false);
        }
        let has = |which: &str, condition: &str| {
            self.one::<bool>(
                &format!(
                    "SELECT EXISTS (SELECT 1 FROM (
                         SELECT * FROM snapshot WHERE url_key = ?1 AND {which}
                         ORDER BY visited_at DESC, id DESC LIMIT {VERSIONS_READ}) WHERE {condition})"
                ),
                (&page.url_key, page.visited_at.0, page.id.0, page.latest.0),
            )
        };
        // A page of the future, or whose time is not known, does not replace another one.
        const NEWER: &str = "(visited_at, id) > (?2, ?3) AND doubt = 0 AND created_at <= ?4";
        if page.is_saved() {
            return Ok(!has(NEWER, SAVED)?);
        }
        Ok(!has(NEWER, "status = 'sealed'")?
            && !has("(visited_at, id) < (?2, ?3) AND ?4 IS NOT NULL", SAVED)?)
    }

    /// Queues the older versions of a page that has ended which may go because of it: the newest of them,
    /// the newest that was saved, and those that have too many newer versions.
    pub fn look_at_older_versions(&self, page: &EndedPage, rules: &[RetentionRule]) -> Result<()> {
        let (key, time, id) = (&page.url_key, page.visited_at.0, page.id.0);
        for which in [SAVED, "status = 'sealed'"] {
            let sql = format!(
                "INSERT INTO retention_queue SELECT id, 0 FROM (
                     SELECT * FROM snapshot WHERE url_key = ?1 AND (visited_at, id) < (?2, ?3)
                     ORDER BY visited_at DESC, id DESC LIMIT {VERSIONS_READ})
                 WHERE {which} LIMIT 1 ON CONFLICT DO UPDATE SET due_at = 0"
            );
            self.execute(&sql, (key, time, id))?;
            for rule in rules {
                let Some(kept) = rule.versions else { continue };
                let sql = format!(
                    "INSERT INTO retention_queue SELECT id, 0 FROM snapshot AS s
                     WHERE url_key = ?1 AND (visited_at, id) < (?2, ?3) AND {which} AND {TAGGED}
                     ORDER BY visited_at DESC, id DESC LIMIT {OLDER_READ} OFFSET ?5
                     ON CONFLICT DO UPDATE SET due_at = 0"
                );
                let tag = rule.tag.as_deref();
                self.execute(&sql, (key, time, id, tag, kept - 1))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, NewCrawl, NewSnapshot};

    /// A version that was not saved does not replace an older one that was.
    #[test]
    fn newest_version_is_the_newest_that_was_saved() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let mut ids = Vec::new();
        for time in 1..=4 {
            let crawl = tx.add_crawl(&NewCrawl {
                url: "https://a.test/",
                max_depth: 0,
                plugins: &[],
                config: &Default::default(),
                user: 0,
                now: Time(time),
            });
            let page =
                NewSnapshot { url: "https://a.test/", host: "a.test", ..NewSnapshot::default() };
            let added = tx.add_snapshots(crawl.unwrap(), None, &[page], Time(time));
            ids.push(added.unwrap()[0].0);
        }
        tx.execute("UPDATE snapshot SET status = 'sealed'", []).unwrap();
        let newest = |tx: &Tx<'_>| {
            let is_newest = |id: &SnapshotId| {
                let page = tx.ended_page(*id, Time(9)).unwrap().unwrap();
                tx.aging_page(&page).unwrap().is_newest
            };
            let mut newest = ids.iter().filter(|id| is_newest(id));
            let found = newest.next().unwrap().0;
            assert!(newest.next().is_none());
            found
        };
        assert_eq!(newest(&tx), 4, "none was saved");
        tx.execute("UPDATE snapshot SET unsaved = NULL WHERE id < 4", []).unwrap();
        assert_eq!(newest(&tx), 3);
        tx.execute("UPDATE snapshot SET unsaved = 'error' WHERE id = 3", []).unwrap();
        assert_eq!(newest(&tx), 2);
        tx.execute("UPDATE snapshot SET status = 'cancelled' WHERE id = 2", []).unwrap();
        assert_eq!(newest(&tx), 1);
    }
}
