//! What the index of full text search still lacks, and how far its build is.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx};
use archivist_core::model::search::{SearchBuild, SearchChange, SearchEntry};
use archivist_core::model::{Lifecycle, RunId, SnapshotId, Time, Unsaved};
use archivist_shared::bus::documents::report::SEARCH_QUEUED_MAX;

const ENDED: &str = "status IN ('sealed', 'cancelled') AND directory IS NOT NULL";

/// An entry, except for its tags.
struct EntryRow {
    id: SnapshotId,
    url: String,
    title: Option<String>,
    time: Time,
    status: Lifecycle,
    unsaved: Option<Unsaved>,
    directory: String,
}

columns! {
    EntryRow: id, url, title,
        time "visited_at", status, unsaved, directory
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchState {
    /// Number of the newest build.
    pub build: u64,
    /// The snapshot up to which the build has all; `None` if it is complete.
    pub built_to: Option<SnapshotId>,
    /// Failed attempts in a row.
    pub attempts: u32,
    /// When the next unit may start.
    pub due: Time,
    /// Whether a unit changes the index now.
    pub is_running: bool,
}

/// The work of one unit.
#[derive(Debug)]
pub struct SearchBatch {
    /// The part of a build; `None` for the index that is read.
    pub build: Option<SearchBuild>,
    pub changes: Vec<SearchChange>,
}

impl Tx<'_> {
    pub fn search_state(&self) -> Result<SearchState> {
        let (build, built_to, attempts, due, is_running): (i64, Option<i64>, u32, i64, bool) = self
            .one(
                "SELECT build, built_to, attempts, due_at, run_id IS NOT NULL FROM search_index",
                [],
            )?;
        Ok(SearchState {
            build: build.unsigned_abs(),
            built_to: built_to.map(SnapshotId),
            attempts,
            due: Time(due),
            is_running,
        })
    }

    pub fn has_search_work(&self) -> Result<bool> {
        self.one(
            "SELECT built_to IS NOT NULL OR EXISTS (SELECT 1 FROM search_queue) FROM search_index",
            [],
        )
    }

    /// Returns the number of snapshots that the index does not have as their rows are, at most
    /// [`SEARCH_QUEUED_MAX`].
    pub fn search_queued(&self) -> Result<u32> {
        self.one("SELECT count(*) FROM (SELECT 1 FROM search_queue LIMIT ?1)", [SEARCH_QUEUED_MAX])
    }

    /// Returns at most `count` snapshots that were deleted, and that the index has until a unit has taken
    /// them out.
    pub fn deleted_but_found(&self, count: usize) -> Result<Vec<SnapshotId>> {
        let ids: Vec<i64> = self.all(
            "SELECT snapshot_id FROM search_queue AS queued
             WHERE NOT EXISTS (SELECT 1 FROM snapshot WHERE id = queued.snapshot_id) LIMIT ?1",
            [count as i64],
        )?;
        Ok(ids.into_iter().map(SnapshotId).collect())
    }

    /// Begins another build of the index at a time, whatever there is. It has all that is queued.
    pub fn rebuild_search(&self, attempts: u32, due: Time) -> Result<()> {
        self.execute("DELETE FROM search_queue", [])?;
        self.execute(
            "UPDATE search_index SET build = build + 1, built_to = 0, attempts = ?1, due_at = ?2",
            (attempts, due.0),
        )
    }

    /// Returns the next changes, at most `count`, and records the run that makes them.
    pub fn begin_indexing(&self, run: RunId, count: u32) -> Result<SearchBatch> {
        let state = self.search_state()?;
        let (batch, next) = match state.built_to {
            Some(from) => {
                let entries = self.entries_after(from, count)?;
                let last = entries.last().map_or(from, |entry| entry.id);
                let build = SearchBuild {
                    number: state.build,
                    is_first: from.0 == 0,
                    is_last: entries.len() < count as usize,
                };
                let next = (!build.is_last).then_some(last.0);
                let changes = entries.into_iter().map(SearchChange::Put).collect();
                let build = Some(build);
                (SearchBatch { build, changes }, next)
            }
            None => {
                let changes = self.queued_changes(run, count)?;
                let build = None;
                (SearchBatch { build, changes }, None)
            }
        };
        self.execute(
            "UPDATE search_index SET run_id = ?1, next_to = ?2, run_build = build",
            (run.0, next),
        )?;
        Ok(batch)
    }

    /// Snapshots that ended, in the order of their ids.
    fn entries_after(&self, after: SnapshotId, count: u32) -> Result<Vec<SearchEntry>> {
        let sql = format!(
            "SELECT {} FROM snapshot WHERE id > ?1 AND {ENDED} ORDER BY id LIMIT ?2",
            EntryRow::COLUMNS
        );
        let rows: Vec<EntryRow> = self.all(&sql, (after.0, count))?;
        rows.into_iter().map(|row| self.search_entry(row)).collect()
    }

    /// Claims queued snapshots for a run. Those that were queued again to be archived get another row
    /// when they end.
    fn queued_changes(&self, run: RunId, count: u32) -> Result<Vec<SearchChange>> {
        let ids: Vec<i64> = self.all(
            "UPDATE search_queue SET run_id = ?1 WHERE snapshot_id IN (
                 SELECT snapshot_id FROM search_queue INDEXED BY search_queue_due
                 WHERE run_id IS NULL ORDER BY snapshot_id LIMIT ?2)
             RETURNING snapshot_id",
            (run.0, count),
        )?;
        let mut changes = Vec::new();
        for id in ids {
            let sql =
                format!("SELECT {} FROM snapshot WHERE id = ?1 AND {ENDED}", EntryRow::COLUMNS);
            if let Some(row) = self.first(&sql, [id])? {
                changes.push(SearchChange::Put(self.search_entry(row)?));
            } else if !self.one("SELECT EXISTS (SELECT 1 FROM snapshot WHERE id = ?1)", [id])? {
                changes.push(SearchChange::Delete(SnapshotId(id)));
            }
        }
        Ok(changes)
    }

    fn search_entry(&self, row: EntryRow) -> Result<SearchEntry> {
        let tags = self.all(
            "SELECT name FROM tag WHERE id IN (
                 SELECT tag_id FROM snapshot_tag WHERE snapshot_id = ?1
                 UNION SELECT tag_id FROM crawl_tag
                     WHERE crawl_id = (SELECT crawl_id FROM snapshot WHERE id = ?1))
             ORDER BY name",
            [row.id.0],
        )?;
        Ok(SearchEntry {
            id: row.id,
            url: row.url,
            title: row.title,
            time: row.time,
            tags,
            status: row.status,
            is_failure: row.unsaved.is_some_and(Unsaved::is_failure),
            directory: row.directory.into(),
        })
    }

    /// The unit made its changes. They are no part of a build that has begun meanwhile. The next unit may
    /// start at a time, and that of a build at once.
    pub fn end_indexing(&self, run: RunId, due: Time) -> Result<()> {
        self.execute("DELETE FROM search_queue WHERE run_id = ?1", [run.0])?;
        self.execute(
            "UPDATE search_index SET built_to = next_to
             WHERE run_id = ?1 AND run_build = build AND built_to IS NOT NULL",
            [run.0],
        )?;
        self.execute(
            "UPDATE search_index SET run_id = NULL, attempts = 0, due_at = iif(built_to IS NULL, ?2, 0)
             WHERE run_id = ?1",
            (run.0, due.0),
        )?;
        self.forget_runs_before(run)
    }

    /// The unit may have made none of its changes: they are due again at a time, after so many failed
    /// attempts.
    pub fn repeat_indexing(&self, run: RunId, attempts: u32, due: Time) -> Result<()> {
        self.execute("UPDATE search_queue SET run_id = NULL WHERE run_id = ?1", [run.0])?;
        self.execute(
            "UPDATE search_index SET run_id = NULL, attempts = ?2, due_at = ?3 WHERE run_id = ?1",
            (run.0, attempts, due.0),
        )?;
        self.forget_runs_before(run)
    }
}
