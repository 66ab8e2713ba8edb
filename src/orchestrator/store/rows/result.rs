//! Rows of results: one per owner, plugin and hook.

use crate::store::column::{column, counter, json, optional};
use crate::store::{Result, Tx};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId, Time, Verdict};
use archivist_core::model::{OutputFile, Uses};
use rusqlite::{OptionalExtension, Row};
use std::collections::BTreeMap;

/// How a hook ended, as its result records it.
pub struct Finished<'a> {
    /// State and reason.
    pub verdict: &'a Verdict,
    /// Output as the hook states it.
    pub output: Option<&'a str>,
    /// Files that the hook left.
    pub files: &'a [OutputFile],
    /// Bytes of all files.
    pub size: u64,
}

/// The result of one hook for one crawl or snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRow {
    /// Later results have higher numbers.
    pub id: i64,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// Name of the plugin.
    pub plugin: String,
    /// Name of the hook's file without its last extension.
    pub hook: String,
    /// From queued to a final state, such as succeeded.
    pub status: ResultState,
    /// What the hook reports that it made.
    pub output: Option<String>,
    /// Why it failed or was skipped.
    pub error: Option<String>,
    /// Files that the hook left.
    pub files: Vec<OutputFile>,
    /// Bytes of all files.
    pub size: u64,
    /// Attempts so far.
    pub attempts: u32,
    /// When it started; `None` before.
    pub started_at: Option<Time>,
    /// When it ended; `None` before.
    pub ended_at: Option<Time>,
}

pub(crate) const COLUMNS: &str =
    "owner, plugin, hook, status, output, error, files, size, attempts, started_at, ended_at, id";

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<ResultRow> {
    Ok(ResultRow {
        owner: column(row, 0)?,
        plugin: row.get(1)?,
        hook: row.get(2)?,
        status: column(row, 3)?,
        output: row.get(4)?,
        error: row.get(5)?,
        files: json(row, 6)?,
        size: counter(row, 7)?.unwrap_or(0),
        attempts: row.get(8)?,
        started_at: optional(row, 9)?,
        ended_at: optional(row, 10)?,
        id: row.get(11)?,
    })
}

fn ids(owner: Owner, crawl: CrawlId) -> (i64, Option<i64>) {
    match owner {
        Owner::Crawl(id) => (id.0, None),
        Owner::Snapshot(SnapshotId(id)) => (crawl.0, Some(id)),
    }
}

impl Tx<'_> {
    /// Returns how often hooks of each plugin succeeded and failed, also in attempts that were
    /// retried.
    pub fn uses(&self) -> Result<BTreeMap<String, Uses>> {
        let mut statement = self
            .inner
            .prepare_cached("SELECT plugin, succeeded, failed FROM plugin_use")?;
        let rows = statement.query_map([], |row| {
            let uses = Uses {
                succeeded: counter(row, 1)?.unwrap_or(0),
                failed: counter(row, 2)?.unwrap_or(0),
            };
            Ok((row.get(0)?, uses))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns all results of a crawl or snapshot.
    pub fn results(&self, owner: Owner) -> Result<Vec<ResultRow>> {
        let sql = format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 ORDER BY id");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([owner.to_string()], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the result of one hook.
    pub fn result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<Option<ResultRow>> {
        let sql =
            format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 AND plugin = ?2 AND hook = ?3");
        Ok(self
            .inner
            .prepare_cached(&sql)?
            .query_row((owner.to_string(), plugin, hook), read)
            .optional()?)
    }

    /// Records a result as started and counts the attempt, before the hook starts. Returns the
    /// number of attempts.
    pub fn start_result(
        &self,
        owner: Owner,
        crawl: CrawlId,
        plugin: &str,
        hook: &str,
        now: Time,
    ) -> Result<u32> {
        let (crawl, snapshot) = ids(owner, crawl);
        let attempts = self
            .inner
            .prepare_cached(
                "INSERT INTO result
                     (owner, crawl_id, snapshot_id, plugin, hook, status, attempts, started_at, visit)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'started', 1, ?6,
                     coalesce((SELECT visit FROM snapshot WHERE id = ?3), 0))
                 ON CONFLICT DO UPDATE SET status = 'started', attempts = attempts + 1,
                     visit = excluded.visit, started_at = ?6, ended_at = NULL, error = NULL, output = NULL
                 RETURNING attempts",
            )?
            .query_row(
                (owner.to_string(), crawl, snapshot, plugin, hook, now.0),
                |row| row.get(0),
            )?;
        Ok(attempts)
    }

    /// Records a result without a run, such as that of a skipped plugin.
    pub fn note_result(
        &self,
        owner: Owner,
        crawl: CrawlId,
        plugin: &str,
        hook: &str,
        verdict: &Verdict,
        now: Time,
    ) -> Result<()> {
        let (crawl, snapshot) = ids(owner, crawl);
        self.inner
            .prepare_cached(
                "INSERT INTO result
                     (owner, crawl_id, snapshot_id, plugin, hook, status, error, ended_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET status = ?6, error = ?7, ended_at = ?8",
            )?
            .execute((
                owner.to_string(),
                crawl,
                snapshot,
                plugin,
                hook,
                verdict.state.as_str(),
                verdict.error.as_deref(),
                now.0,
            ))?;
        Ok(())
    }

    /// Records how a hook ended. Returns `false` if the result was final already; it stays as it
    /// is.
    pub fn finish_result(
        &self,
        owner: Owner,
        plugin: &str,
        hook: &str,
        finished: &Finished<'_>,
        now: Time,
    ) -> Result<bool> {
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE result SET status = ?4, error = ?5, output = ?6, files = ?7, size = ?8,
                     ended_at = ?9
                 WHERE owner = ?1 AND plugin = ?2 AND hook = ?3
                     AND status IN ('queued', 'started', 'backoff')",
            )?
            .execute((
                owner.to_string(),
                plugin,
                hook,
                finished.verdict.state.as_str(),
                finished.verdict.error.as_deref(),
                finished.output,
                serde_json::to_string(finished.files)?,
                i64::try_from(finished.size).unwrap_or(i64::MAX),
                now.0,
            ))?;
        Ok(rows == 1)
    }

    /// Schedules another attempt for a started result.
    pub fn put_off_result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'backoff'
                 WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            )?
            .execute((owner.to_string(), plugin, hook))?;
        Ok(())
    }

    /// Schedules another run for a started result, and takes back its attempt: the hook was not
    /// executed.
    pub fn put_off_uncounted(&self, owner: Owner, plugin: &str, hook: &str) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'backoff', attempts = max(attempts - 1, 0)
                 WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            )?
            .execute((owner.to_string(), plugin, hook))?;
        Ok(())
    }

    /// Schedules another attempt for all started results of an owner: no worker gets the end of
    /// their latest run.
    pub fn put_off_results(&self, owner: Owner) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'backoff' WHERE owner = ?1 AND status = 'started'",
            )?
            .execute([owner.to_string()])?;
        Ok(())
    }

    /// Fails all results of an owner that are not final. Returns how many these were.
    pub fn fail_open_results(&self, owner: Owner, error: &str, now: Time) -> Result<usize> {
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE result SET status = 'failed', error = ?2, ended_at = ?3
                 WHERE owner = ?1 AND status IN ('queued', 'started', 'backoff')",
            )?
            .execute((owner.to_string(), error, now.0))?;
        Ok(rows)
    }

    /// Queues all results of an owner again. Returns how many these were.
    pub fn requeue_all_results(&self, owner: Owner) -> Result<usize> {
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE result SET status = 'queued', error = NULL, output = NULL,
                     started_at = NULL, ended_at = NULL, attempts = 0
                 WHERE owner = ?1",
            )?
            .execute([owner.to_string()])?;
        Ok(rows)
    }

    /// Returns snapshots that a retry may apply to, in the order of their ids: at most `limit` of
    /// those with ids above `after` and up to `to`. Of a crawl: its final snapshots. Without a
    /// crawl: the sealed snapshots, except those of cancelled crawls; of these, if `failed`, only
    /// those that are incomplete or have a failed result, and those that were cancelled because their
    /// crawl was given up. `hook`, the name of a plugin or hook, limits it to results of that.
    pub fn snapshots_to_retry(
        &self,
        crawl: Option<CrawlId>,
        (failed, hook): (bool, Option<&str>),
        (after, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<(CrawlId, SnapshotId)>> {
        // "+" makes SQLite search by id; with an index of crawl or status it reads all of their
        // rows.
        self.inner
            .prepare_cached(
                "SELECT s.crawl_id, s.id FROM snapshot s
                 WHERE s.id > ?3 AND s.id <= ?4 AND CASE WHEN ?1 IS NULL
                     THEN (+s.status = 'sealed'
                             AND (SELECT status FROM crawl WHERE id = s.crawl_id) <> 'cancelled'
                             AND (NOT ?6 OR (?2 IS NULL AND s.reason IS NOT NULL)
                                 OR EXISTS (SELECT 1 FROM result r
                                     WHERE r.owner = 's' || s.id AND r.status = 'failed'
                                         AND (?2 IS NULL OR r.plugin = ?2 OR r.hook = ?2))))
                         OR (+s.status = 'cancelled' AND ?6 AND ?2 IS NULL
                             AND s.reason = (SELECT reason FROM crawl
                                 WHERE id = s.crawl_id AND status = 'sealed'))
                     ELSE +s.crawl_id = ?1 AND +s.status IN ('sealed', 'cancelled') END
                 ORDER BY s.id LIMIT ?5",
            )?
            .query_map(
                (
                    crawl.map(|crawl| crawl.0),
                    hook,
                    after,
                    to,
                    i64::try_from(limit).unwrap_or(i64::MAX),
                    failed,
                ),
                |row| Ok((column(row, 0)?, column(row, 1)?)),
            )?
            .map(|row| Ok(row?))
            .collect()
    }

    /// Queues failed and skipped results of an owner again, or all results of `hook`, the name of a
    /// plugin or hook. Returns how many these were.
    pub fn requeue_results(&self, owner: Owner, hook: Option<&str>) -> Result<usize> {
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE result SET status = 'queued', error = NULL, output = NULL,
                     started_at = NULL, ended_at = NULL, attempts = 0
                 WHERE owner = ?1 AND (?2 IS NULL OR plugin = ?2 OR hook = ?2)
                     AND (status IN ('failed', 'skipped') OR ?2 IS NOT NULL)
                     AND status NOT IN ('queued', 'started')",
            )?
            .execute((owner.to_string(), hook))?;
        Ok(rows)
    }
}
