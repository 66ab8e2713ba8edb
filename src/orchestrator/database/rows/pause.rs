//! Paused crawls and snapshots, and the runs that were open then.

use crate::database::rows::directory::row_of;
use crate::database::{Result, Tx, millis};
use archivist_core::model::{CrawlId, Owner, RunId, Time};

/// SQL condition on a row of `run`: neither its crawl nor its snapshot is paused.
pub(crate) const AWAKE: &str =
    "(SELECT c.status FROM crawl c WHERE c.id = run.crawl_id) <> 'paused'
     AND coalesce((SELECT s.status FROM snapshot s WHERE s.id = run.snapshot_id), '') <> 'paused'";

/// SQL condition on a row of `run` that is the worker of a crawl: it waits for paused snapshots
/// only.
pub(crate) const WAITS_FOR_PAUSED: &str =
    "(SELECT c.phase FROM crawl c WHERE c.id = run.crawl_id) = 'snapshots'
     AND EXISTS (SELECT 1 FROM tally WHERE kind = 'snapshot' AND crawl_id = run.crawl_id
                 AND status = 'paused' AND n > 0)
     AND NOT EXISTS (SELECT 1 FROM tally WHERE kind = 'snapshot' AND crawl_id = run.crawl_id
                     AND status IN ('queued', 'started') AND n > 0)";

impl Tx<'_> {
    /// Whether a crawl or snapshot, or the crawl of a snapshot, is paused.
    pub fn is_paused(&self, owner: Owner) -> Result<bool> {
        let (sql, id) = match owner {
            Owner::Crawl(id) => {
                ("SELECT EXISTS (SELECT 1 FROM crawl WHERE id = ?1 AND status = 'paused')", id.0)
            }
            Owner::Snapshot(id) => (
                "SELECT EXISTS (SELECT 1 FROM snapshot s JOIN crawl c ON c.id = s.crawl_id
                 WHERE s.id = ?1 AND 'paused' IN (s.status, c.status))",
                id.0,
            ),
        };
        self.one(sql, [id])
    }

    pub fn has_worker(&self, owner: Owner) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM run INDEXED BY run_open
             WHERE owner = ?1 AND kind <> 'hook' AND status IN ('starting', 'running'))",
            [owner.to_string()],
        )
    }

    /// Records that a run of a worker or hook is paused. The unit of a hook is then frozen and must
    /// be thawed before it is stopped. A paused run that reaches its time limit is not blamed for
    /// it.
    pub fn note_paused(&self, id: RunId) -> Result<()> {
        self.execute("UPDATE run SET frozen = 1 WHERE id = ?1", [id.0])
    }

    /// Returns the units of a crawl's hooks that were ever frozen, including those of ended runs:
    /// the orchestrator may have died between recording the end and releasing the unit.
    pub fn units_once_frozen(&self, crawl: CrawlId) -> Result<Vec<String>> {
        self.all(
            "SELECT DISTINCT unit FROM run WHERE crawl_id = ?1 AND frozen = 1 AND kind = 'hook'",
            [crawl.0],
        )
    }

    /// Sets when a paused crawl or snapshot that lost its worker may have the next one, and why.
    pub fn put_off_paused(
        &self,
        owner: Owner,
        retry_at: Option<Time>,
        reason: Option<&str>,
    ) -> Result<()> {
        let (table, id) = row_of(owner);
        self.execute(
            &format!(
                "UPDATE {table} SET retry_at = ?2, reason = ?3 WHERE id = ?1 AND status = 'paused'"
            ),
            (id, millis(retry_at), reason),
        )
    }
}
