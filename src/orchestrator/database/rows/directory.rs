//! The directories of crawls and snapshots, the ids in their names, and the attempts that do not count.

use crate::database::{Database, Result, Tx};
use archivist_core::model::{CrawlId, IdMarks, Owner, RunId, SnapshotId};

/// Returns table and number of the row of a crawl or snapshot.
pub(crate) fn row_of(owner: Owner) -> (&'static str, i64) {
    match owner {
        Owner::Crawl(id) => ("crawl", id.0),
        Owner::Snapshot(id) => ("snapshot", id.0),
    }
}

impl Database {
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
        let rows: Vec<(String, i64)> = self.all("SELECT name, seq FROM sqlite_sequence", [])?;
        let mut marks = IdMarks::default();
        for (name, id) in rows {
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
        let ids =
            [("crawl", highest.crawl.0), ("snapshot", highest.snapshot.0), ("run", highest.run.0)];
        for (table, id) in ids {
            // The table has no key (SQLite's manual, AUTOINCREMENT).
            self.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
            self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, id))?;
        }
        // They may have been used since. The fleet reserves others.
        self.inner.execute("DELETE FROM crawl_ids", [])?;
        Ok(Some(known))
    }

    /// Records the identity that the directory of a crawl or snapshot must have.
    pub fn identify(&self, owner: Owner, identity: &str) -> Result<()> {
        let (table, id) = row_of(owner);
        self.execute(&format!("UPDATE {table} SET identity = ?2 WHERE id = ?1"), (id, identity))
    }

    /// Gives a crawl or snapshot another directory with another identity. Its results are queued
    /// again, because their files are not there.
    pub fn relocate(&self, owner: Owner, directory: &str, identity: &str) -> Result<()> {
        self.identify(owner, identity)?;
        let (table, id) = row_of(owner);
        self.execute(&format!("UPDATE {table} SET directory = ?2 WHERE id = ?1"), (id, directory))?;
        self.requeue_all_results(owner)?;
        Ok(())
    }

    /// The last start is not counted as an attempt.
    pub fn take_back_attempt(&self, owner: Owner) -> Result<()> {
        let (table, id) = row_of(owner);
        self.execute(
            &format!("UPDATE {table} SET attempts = max(attempts - 1, 0) WHERE id = ?1"),
            [id],
        )
    }
}
