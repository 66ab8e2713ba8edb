//! The directories of crawls and snapshots, the ids in their names, and the attempts that do not count.

use crate::store::{Result, Store, Tx};
use archivist_core::model::{CrawlId, IdMarks, Owner, RunId, SnapshotId};

impl Store {
    /// Whether a hook has ever succeeded, so that the archive has files.
    pub fn has_archived(&self) -> Result<bool> {
        Ok(self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM plugin_use WHERE succeeded > 0)")?
            .query_row([], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Returns the highest ids that were handed out.
    pub fn highest_ids(&self) -> Result<IdMarks> {
        let mut marks = IdMarks::default();
        let mut statement = self
            .inner
            .prepare_cached("SELECT name, seq FROM sqlite_sequence")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (name, id): (String, i64) = (row.get(0)?, row.get(1)?);
            match name.as_str() {
                "crawl" => marks.crawl = CrawlId(id),
                "snapshot" => marks.snapshot = SnapshotId(id),
                "run" => marks.run = RunId(id),
                _ => {}
            }
        }
        Ok(marks)
    }

    /// Hands out only ids above these from now on. Returns the highest ones so far if they were lower.
    pub fn raise_ids(&self, marks: IdMarks) -> Result<Option<IdMarks>> {
        let known = self.highest_ids()?;
        let highest = known.or_higher(marks);
        if highest == known {
            return Ok(None);
        }
        let ids = [
            ("crawl", highest.crawl.0),
            ("snapshot", highest.snapshot.0),
            ("run", highest.run.0),
        ];
        for (table, id) in ids {
            // The table has no key (SQLite's manual, AUTOINCREMENT).
            self.inner
                .prepare_cached("DELETE FROM sqlite_sequence WHERE name = ?1")?
                .execute([table])?;
            self.inner
                .prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)")?
                .execute((table, id))?;
        }
        // They may have been used since. The fleet reserves others.
        self.inner.execute("DELETE FROM crawl_ids", [])?;
        Ok(Some(known))
    }

    /// Records the identity that the directory of a crawl or snapshot must have.
    pub fn identify(&self, owner: Owner, identity: &str) -> Result<()> {
        let (sql, id) = match owner {
            Owner::Crawl(id) => ("UPDATE crawl SET identity = ?2 WHERE id = ?1", id.0),
            Owner::Snapshot(id) => ("UPDATE snapshot SET identity = ?2 WHERE id = ?1", id.0),
        };
        self.inner.prepare_cached(sql)?.execute((id, identity))?;
        Ok(())
    }

    /// Gives a crawl or snapshot another directory with another identity. Its results are queued
    /// again, because their files are not there.
    pub fn relocate(&self, owner: Owner, directory: &str, identity: &str) -> Result<()> {
        self.identify(owner, identity)?;
        let (sql, id) = match owner {
            Owner::Crawl(id) => ("UPDATE crawl SET directory = ?2 WHERE id = ?1", id.0),
            Owner::Snapshot(id) => ("UPDATE snapshot SET directory = ?2 WHERE id = ?1", id.0),
        };
        self.inner.prepare_cached(sql)?.execute((id, directory))?;
        self.requeue_all_results(owner)?;
        Ok(())
    }

    /// The last start is not counted as an attempt.
    pub fn take_back_attempt(&self, owner: Owner) -> Result<()> {
        let (sql, id) = match owner {
            Owner::Crawl(id) => (
                "UPDATE crawl SET attempts = max(attempts - 1, 0) WHERE id = ?1",
                id.0,
            ),
            Owner::Snapshot(id) => (
                "UPDATE snapshot SET attempts = max(attempts - 1, 0) WHERE id = ?1",
                id.0,
            ),
        };
        self.inner.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }
}
