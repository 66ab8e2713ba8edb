//! Entries of lists that are kept without a visit, and wait for the unit that writes their directories.

use crate::database::rows::unit::OPEN;
use crate::database::{DatabaseError, Result, Tx};
use archivist_core::model::{CrawlId, Lifecycle, ResultState, RunId, SnapshotId, Step, Time};
use archivist_shared::bus::documents::report::HookResult;

/// SQL condition on a crawl: it has an entry that waits, or whose directory is being written.
pub(crate) const HAS_ENTRIES: &str =
    "EXISTS (SELECT 1 FROM entry JOIN snapshot AS page ON page.id = snapshot_id
    WHERE entry.crawl_id = crawl.id AND page.status = 'queued')";

impl Tx<'_> {
    /// Notes that these pages of a crawl are entries that are kept without a visit.
    pub fn add_entries(&self, crawl: CrawlId, pages: &[SnapshotId]) -> Result<()> {
        let pages: Vec<i64> = pages.iter().map(|page| page.0).collect();
        self.execute(
            "INSERT INTO entry (snapshot_id, crawl_id) SELECT value, ?1 FROM json_each(?2)",
            (crawl.0, serde_json::to_string(&pages)?),
        )
    }

    /// Whether a page is an entry that waits for the unit that writes its directory.
    pub fn is_entry(&self, page: SnapshotId) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM entry WHERE snapshot_id = ?1)", [page.0])
    }

    /// Whether the unit of some entries has not ended.
    pub fn is_writing_entries(&self) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM entry INDEXED BY entry_run WHERE run_id IS NOT NULL)",
            [],
        )
    }

    /// Returns a crawl whose pages may start, and that has entries.
    pub fn crawl_with_entries(&self) -> Result<Option<CrawlId>> {
        let sql = format!(
            "SELECT id FROM crawl INDEXED BY crawl_started
             WHERE status = 'started' AND phase = 'snapshots' AND {HAS_ENTRIES}
             ORDER BY id LIMIT 1"
        );
        self.first(&sql, [])
    }

    /// Whether a crawl has entries that may be written now, or are being written.
    pub fn has_ready_entries(&self, crawl: CrawlId) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM crawl WHERE id = ?1 AND status = 'started'
                 AND phase = 'snapshots' AND {HAS_ENTRIES})"
        );
        self.one(&sql, [crawl.0])
    }

    /// Returns the entries of a crawl that wait, oldest first, at most `limit`.
    pub fn waiting_entries(&self, crawl: CrawlId, limit: u32) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT snapshot_id FROM entry JOIN snapshot ON snapshot.id = snapshot_id
             WHERE entry.crawl_id = ?1 AND run_id IS NULL AND status = 'queued'
             ORDER BY snapshot_id LIMIT ?2",
            (crawl.0, limit),
        )
    }

    /// Records that the unit of this run writes the directories of these entries: page, directory and
    /// identity.
    pub fn begin_entries(&self, run: RunId, pages: &[(i64, String, String)]) -> Result<()> {
        let pages = serde_json::to_string(pages)?;
        self.execute(
            "UPDATE snapshot SET directory = value ->> 1, identity = value ->> 2
             FROM json_each(?1) WHERE snapshot.id = value ->> 0",
            [&pages],
        )?;
        self.execute(
            "UPDATE entry SET run_id = ?2
             WHERE snapshot_id IN (SELECT value ->> 0 FROM json_each(?1))",
            (&pages, run.0),
        )
    }

    /// Seals the entries of a run whose unit has written their directories, with this result, of which
    /// owner and id are ignored. Returns their pages. Entries that were paused meanwhile wait again.
    pub fn seal_entries(
        &self,
        run: RunId,
        result: &HookResult,
        now: Time,
    ) -> Result<Vec<SnapshotId>> {
        let sealed = Lifecycle::Queued.apply(Step::Seal);
        let sealed = sealed.map_err(|source| DatabaseError::Illegal {
            what: format!("entries of {run}"),
            source,
        })?;
        debug_assert_eq!(result.status, ResultState::NoResults);
        self.execute(
            "INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, output,
                 attempts, started_at, ended_at)
             SELECT 's' || id, snapshot.crawl_id, id, ?2, ?3, ?4, ?5, 1, ?6, ?7
             FROM entry JOIN snapshot ON id = snapshot_id
             WHERE run_id = ?1 AND snapshot.status = 'queued'
             ON CONFLICT DO UPDATE SET status = excluded.status, output = excluded.output,
                 error = NULL, attempts = attempts + 1, ended_at = excluded.ended_at",
            (
                run.0,
                &result.plugin,
                &result.hook,
                result.status.as_str(),
                &result.output,
                result.started_at.unwrap_or(now).0,
                result.ended_at.unwrap_or(now).0,
            ),
        )?;
        let pages = self.all(
            "UPDATE snapshot SET status = ?2, retry_at = NULL, reason = NULL,
                 attempts = attempts + 1, started_at = ?3, ended_at = ?4, changed_at = ?4,
                 unsaved = 'visit'
             WHERE status = 'queued' AND id IN (SELECT snapshot_id FROM entry WHERE run_id = ?1)
             RETURNING id",
            (run.0, sealed.as_str(), result.started_at.unwrap_or(now).0, now.0),
        )?;
        self.leave_entries(run)?;
        Ok(pages)
    }

    pub fn crawl_of_entries(&self, run: RunId) -> Result<Option<CrawlId>> {
        self.first("SELECT crawl_id FROM entry WHERE run_id = ?1 LIMIT 1", [run.0])
    }

    pub fn entry_attempts(&self, run: RunId) -> Result<u32> {
        self.one("SELECT coalesce(max(attempts), 0) FROM entry WHERE run_id = ?1", [run.0])
    }

    /// The unit of a run has failed: its entries wait again.
    pub fn repeat_entries(&self, run: RunId, attempts: u32) -> Result<()> {
        self.execute("UPDATE entry SET attempts = ?2 WHERE run_id = ?1", (run.0, attempts))?;
        self.leave_entries(run)
    }

    /// The entries of a run become pages like all others, each with a worker of its own.
    pub fn end_entries(&self, run: RunId) -> Result<()> {
        self.execute("DELETE FROM entry WHERE run_id = ?1", [run.0])
    }

    /// The same for all entries of a crawl.
    pub fn end_entries_of(&self, crawl: CrawlId) -> Result<()> {
        self.execute("DELETE FROM entry WHERE crawl_id = ?1 AND run_id IS NULL", [crawl.0])
    }

    fn leave_entries(&self, run: RunId) -> Result<()> {
        self.execute(
            "DELETE FROM entry WHERE run_id = ?1
                 AND (SELECT status FROM snapshot WHERE id = snapshot_id) IN ('sealed', 'cancelled')",
            [run.0],
        )?;
        self.execute("UPDATE entry SET run_id = NULL WHERE run_id = ?1", [run.0])
    }

    /// Returns the unit that writes directories of entries of a crawl.
    pub(super) fn unit_of_entries(&self, crawl: CrawlId) -> Result<Option<String>> {
        let sql = format!(
            "SELECT unit FROM entry JOIN run ON run.id = run_id
             WHERE entry.crawl_id = ?1 AND run.{OPEN} LIMIT 1"
        );
        self.first(&sql, [crawl.0])
    }
}
