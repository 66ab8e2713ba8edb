//! Rows of deleted crawls and snapshots, whose directories are still to be removed.

use crate::database::rows::directory::row_of;
use crate::database::rows::unit::OPEN;
use crate::database::{DatabaseError, Result, Tx};
use archivist_core::model::{CrawlId, Owner, RunId, SnapshotId, Time};
use archivist_shared::archive::IMPORT_TAG;
use archivist_shared::bus::documents::work::Removed;
use std::path::PathBuf;

/// Failed attempts after which a removal is reported.
const REMOVAL_FAILURES: u32 = 3;

/// SQL condition on a row of `tag`: it names an imported file of which no page is left.
const UNUSED: &str = "name GLOB 'imported-*'
    AND NOT EXISTS (SELECT 1 FROM crawl_tag WHERE tag_id = tag.id)
    AND NOT EXISTS (SELECT 1 FROM snapshot_tag WHERE tag_id = tag.id)";

impl Tx<'_> {
    /// Deletes the rows of a snapshot that has ended, apart from its copy in the store. Its directory
    /// is removed later.
    pub fn delete_snapshot(&self, id: SnapshotId, now: Time) -> Result<()> {
        self.execute(
            "INSERT INTO deletion (owner, crawl_id, directory, identity, url_key, due_at)
             SELECT 's' || id, crawl_id, directory, identity, url_key, ?2 FROM snapshot
             WHERE id = ?1 AND directory IS NOT NULL",
            (id.0, now.0),
        )?;
        let owner = Owner::Snapshot(id).to_string();
        self.execute("DELETE FROM result WHERE owner = ?1", [&owner])?;
        self.execute("DELETE FROM run WHERE owner = ?1", [&owner])?;
        self.execute("DELETE FROM snapshot_tag WHERE snapshot_id = ?1", [id.0])?;
        self.execute("DELETE FROM snapshot WHERE id = ?1", [id.0])
    }

    /// Notes that a crawl is deleted with all of its pages. Its row stays until it has none.
    pub fn begin_deletion(&self, id: CrawlId, now: Time) -> Result<()> {
        self.execute(
            "INSERT INTO deletion (owner, crawl_id, directory, identity, due_at)
             SELECT 'c' || id, id, directory, identity, ?2 FROM crawl WHERE id = ?1
             ON CONFLICT DO NOTHING",
            (id.0, now.0),
        )
    }

    /// Deletes the row of a crawl without pages.
    pub fn delete_crawl(&self, id: CrawlId, now: Time) -> Result<()> {
        self.begin_deletion(id, now)?;
        let owner = Owner::Crawl(id).to_string();
        self.execute("DELETE FROM result WHERE owner = ?1", [&owner])?;
        self.execute("DELETE FROM run WHERE owner = ?1", [&owner])?;
        self.execute("DELETE FROM crawl_tag WHERE crawl_id = ?1", [id.0])?;
        self.execute("DELETE FROM crawl WHERE id = ?1", [id.0])?;
        // It was never started.
        self.execute("DELETE FROM deletion WHERE owner = ?1 AND directory IS NULL", [&owner])
    }

    pub fn is_being_deleted(&self, id: CrawlId) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM deletion WHERE owner = 'c' || ?1)", [id.0])
    }

    /// Returns how many deleted crawls and snapshots have files whose removal has failed at least
    /// [`REMOVAL_FAILURES`] times, and the first of them.
    pub fn failing_removals(&self) -> Result<Option<(u64, Owner)>> {
        let (count, first): (u64, Option<Owner>) = self.one(
            "SELECT count(*), min(owner) FROM deletion WHERE attempts >= ?1",
            [REMOVAL_FAILURES],
        )?;
        Ok(first.map(|first| (count, first)))
    }

    /// Returns a crawl that is being deleted and still has a row.
    pub fn half_deleted_crawl(&self) -> Result<Option<CrawlId>> {
        self.first(
            "SELECT crawl.id FROM deletion JOIN crawl ON crawl.id = CAST(substr(owner, 2) AS INTEGER)
             WHERE owner >= 'c' AND owner < 'd' ORDER BY owner LIMIT 1",
            [],
        )
    }

    /// Returns what keeps a crawl, or a page of `crawl`, from deletion: itself, the crawl of the page, or
    /// the first pinned page of the crawl.
    pub fn pin_of(&self, id: Owner, crawl: CrawlId) -> Result<Option<Owner>> {
        let is_pinned: Option<bool> = match id {
            Owner::Crawl(_) => None,
            Owner::Snapshot(page) => {
                self.first("SELECT pinned FROM snapshot WHERE id = ?1", [page.0])?
            }
        };
        if is_pinned == Some(true) {
            return Ok(Some(id));
        }
        let of_crawl: Option<bool> =
            self.first("SELECT pinned FROM crawl WHERE id = ?1", [crawl.0])?;
        match (of_crawl, id) {
            (Some(true), _) => Ok(Some(Owner::Crawl(crawl))),
            (_, Owner::Snapshot(_)) => Ok(None),
            (_, Owner::Crawl(_)) => {
                let page: Option<SnapshotId> = self.first(
                    "SELECT id FROM snapshot WHERE crawl_id = ?1 AND pinned ORDER BY id LIMIT 1",
                    [crawl.0],
                )?;
                Ok(page.map(Owner::Snapshot))
            }
        }
    }

    /// Sets the pin of a crawl or snapshot, for the user of this id, or removes it.
    pub fn set_pinned(&self, id: Owner, pinned_by: Option<u32>) -> Result<()> {
        let (table, id) = row_of(id);
        self.execute(
            &format!("UPDATE {table} SET pinned = ?2 IS NOT NULL, pinned_by = ?2 WHERE id = ?1"),
            (id, pinned_by),
        )
    }

    /// Returns the id of the user who keeps a crawl or snapshot itself from deletion.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuch`] if there is none.
    pub fn pinned_by(&self, owner: Owner) -> Result<Option<u32>> {
        let (table, id) = row_of(owner);
        let sql = format!("SELECT pinned_by FROM {table} WHERE id = ?1");
        let found: Option<Option<u32>> = self.first(&sql, [id])?;
        found.ok_or_else(|| DatabaseError::NoSuch(format!("{table} {owner}")))
    }

    /// Returns snapshots of a crawl, at most `count`.
    pub fn some_snapshots(&self, crawl: CrawlId, count: u32) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT id FROM snapshot WHERE crawl_id = ?1 ORDER BY id LIMIT ?2",
            (crawl.0, count),
        )
    }

    pub fn is_without_pages(&self, crawl: CrawlId) -> Result<bool> {
        self.one("SELECT NOT EXISTS (SELECT 1 FROM snapshot WHERE crawl_id = ?1)", [crawl.0])
    }

    /// Returns a unit that works for a crawl or one of its pages.
    pub fn unit_at_work(&self, crawl: CrawlId) -> Result<Option<String>> {
        let sql = format!(
            "SELECT unit FROM run INDEXED BY run_open WHERE {OPEN} AND crawl_id = ?1 LIMIT 1"
        );
        match self.first(&sql, [crawl.0])? {
            None => self.unit_of_entries(crawl),
            unit => Ok(unit),
        }
    }

    /// Returns the bytes of the files that hooks left for a snapshot, or for all of a crawl.
    pub fn bytes_of(&self, owner: Owner) -> Result<u64> {
        let (condition, value) = match owner {
            Owner::Crawl(id) => ("crawl_id = ?1", rusqlite::types::Value::from(id.0)),
            Owner::Snapshot(_) => ("owner = ?1", owner.to_string().into()),
        };
        let sql = format!("SELECT coalesce(sum(size), 0) FROM result WHERE {condition}");
        Ok(self.one::<i64>(&sql, [value])?.try_into().unwrap_or(0))
    }

    /// Returns the directories that may be removed now, at most `count`, each with its crawl: those of
    /// rows that are gone alone.
    pub fn deleted_directories(&self, now: Time, count: u32) -> Result<Vec<(CrawlId, Removed)>> {
        type DirectoryRow = (Owner, CrawlId, String, Option<String>, Option<String>);
        let rows: Vec<DirectoryRow> = self.all(
            "SELECT owner, crawl_id, directory, identity, url_key
             FROM deletion INDEXED BY deletion_due
             WHERE run_id IS NULL AND due_at <= ?1
                 AND (owner >= 'd' OR NOT EXISTS
                     (SELECT 1 FROM crawl WHERE id = CAST(substr(owner, 2) AS INTEGER)))
             ORDER BY due_at, owner LIMIT ?2",
            (now.0, count),
        )?;
        let removed = rows.into_iter().map(|(owner, crawl, directory, identity, url_key)| {
            let removed = Removed { owner, directory: PathBuf::from(directory), identity, url_key };
            (crawl, removed)
        });
        Ok(removed.collect())
    }

    /// Returns the number of deleted crawls and snapshots whose directories still exist.
    pub fn deletions(&self) -> Result<u64> {
        Ok(self.one::<i64>("SELECT count(*) FROM deletion", [])?.try_into().unwrap_or(0))
    }

    /// Whether the directory of a deleted crawl or snapshot still exists.
    pub fn has_deletions(&self) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM deletion)", [])
    }

    /// Whether there are others than those of a run.
    pub fn has_other_deletions(&self, run: RunId) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM deletion WHERE run_id IS NOT ?1)", [run.0])
    }

    /// Returns when the next directory is due that is not due yet.
    pub fn next_removal(&self, now: Time) -> Result<Option<Time>> {
        self.one(
            "SELECT min(due_at) FROM deletion INDEXED BY deletion_due
             WHERE run_id IS NULL AND due_at > ?1",
            [now.0],
        )
    }

    /// Whether a unit removes directories now.
    pub fn is_deleting(&self) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM deletion WHERE run_id IS NOT NULL)", [])
    }

    /// Records the run that removes these directories.
    pub fn begin_removal(&self, directories: &[Removed], run: RunId) -> Result<()> {
        for directory in directories {
            self.execute(
                "UPDATE deletion SET run_id = ?2 WHERE owner = ?1",
                (directory.owner.to_string(), run.0),
            )?;
        }
        Ok(())
    }

    /// A run removed its directories: nothing is known about their owners any more, nor about it.
    pub fn end_removal(&self, run: RunId) -> Result<()> {
        self.execute("DELETE FROM deletion WHERE run_id = ?1", [run.0])?;
        if !self.has_deletions()? {
            self.execute(&format!("DELETE FROM tag WHERE {UNUSED}"), [])?;
        }
        self.forget_runs_before(run)
    }

    /// A run ended before its work was done: its directories are due again at a time, after so many
    /// failed attempts.
    pub fn repeat_removal(&self, run: RunId, attempts: u32, due: Time) -> Result<()> {
        self.execute(
            "UPDATE deletion SET run_id = NULL, attempts = ?2, due_at = ?3 WHERE run_id = ?1",
            (run.0, attempts, due.0),
        )?;
        self.forget_runs_before(run)
    }

    /// Returns the failed attempts of the directories of a run.
    pub fn removal_attempts(&self, run: RunId) -> Result<u32> {
        self.one("SELECT coalesce(max(attempts), 0) FROM deletion WHERE run_id = ?1", [run.0])
    }

    /// Returns the first digits of the digests of imported files to which no page refers. The pages of a
    /// file have a tag that names it.
    pub fn unused_imports(&self) -> Result<Vec<String>> {
        let sql = format!("SELECT substr(name, {}) FROM tag WHERE {UNUSED}", IMPORT_TAG.len() + 1);
        self.all(&sql, [])
    }

    /// Deletes the runs of the same kind that have ended, apart from this one.
    pub(crate) fn forget_runs_before(&self, run: RunId) -> Result<()> {
        self.execute(
            "DELETE FROM run WHERE id <> ?1 AND status = 'ended'
             AND kind = (SELECT kind FROM run WHERE id = ?1)",
            [run.0],
        )
    }
}
