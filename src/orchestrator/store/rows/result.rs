//! Rows of results: one per owner, plugin and hook.

use crate::store::{Result, StoreError, Tx};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId, Time, Verdict};
use archivist_shared::bus::documents::report::{File, HookResult, Uses};
use rusqlite::{OptionalExtension, Row};
use std::collections::BTreeMap;

/// The end of a hook, to be written into its result.
pub struct Finished<'a> {
    pub verdict: &'a Verdict,
    pub output: Option<&'a str>,
    pub files: &'a [File],
    pub size: u64,
}

pub(crate) const COLUMNS: &str =
    "owner, plugin, hook, status, output, error, files, size, attempts, started_at, ended_at, id";

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<(HookResult, String, String, String)> {
    let (owner, status, files): (String, String, String) = (row.get(0)?, row.get(3)?, row.get(6)?);
    let result = HookResult {
        id: row.get(11)?,
        owner: Owner::Crawl(CrawlId(0)),
        plugin: row.get(1)?,
        hook: row.get(2)?,
        status: ResultState::Queued,
        output: row.get(4)?,
        error: row.get(5)?,
        files: Vec::new(),
        size: row.get::<_, i64>(7)?.max(0) as u64,
        attempts: row.get(8)?,
        started_at: row.get::<_, Option<i64>>(9)?.map(Time),
        ended_at: row.get::<_, Option<i64>>(10)?.map(Time),
    };
    Ok((result, owner, status, files))
}

/// Completes what [`read`] could not parse inside rusqlite.
pub(crate) fn complete(row: (HookResult, String, String, String)) -> Result<HookResult> {
    let (result, owner, status, files) = row;
    let corrupt = |what, text: &str| StoreError::Corrupt {
        what,
        text: text.to_owned(),
    };
    Ok(HookResult {
        owner: owner.parse().map_err(|_| corrupt("id", &owner))?,
        status: ResultState::parse(&status).ok_or_else(|| corrupt("status", &status))?,
        files: serde_json::from_str(&files)?,
        ..result
    })
}

fn ids(owner: Owner, crawl: CrawlId) -> (i64, Option<i64>) {
    match owner {
        Owner::Crawl(id) => (id.0, None),
        Owner::Snapshot(SnapshotId(id)) => (crawl.0, Some(id)),
    }
}

impl Tx<'_> {
    /// How often hooks of each plugin came to something, counted as it happened.
    pub fn uses(&self) -> Result<BTreeMap<String, Uses>> {
        let mut statement = self
            .inner
            .prepare_cached("SELECT plugin, succeeded, failed FROM plugin_use")?;
        let rows = statement.query_map([], |row| {
            let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.max(0) as u64);
            let (succeeded, failed) = (count(1)?, count(2)?);
            Ok((row.get(0)?, Uses { succeeded, failed }))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn results(&self, owner: Owner) -> Result<Vec<HookResult>> {
        let sql = format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 ORDER BY id");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([owner.to_string()], read)?;
        rows.map(|row| complete(row?)).collect()
    }

    pub fn result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<Option<HookResult>> {
        let sql =
            format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 AND plugin = ?2 AND hook = ?3");
        let row = self
            .inner
            .prepare_cached(&sql)?
            .query_row((owner.to_string(), plugin, hook), read)
            .optional()?;
        row.map(complete).transpose()
    }

    /// Counts the attempt, before the hook is started.
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
                     (owner, crawl_id, snapshot_id, plugin, hook, status, attempts, started_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'started', 1, ?6)
                 ON CONFLICT DO UPDATE SET status = 'started', attempts = attempts + 1,
                     started_at = ?6, ended_at = NULL, error = NULL, output = NULL
                 RETURNING attempts",
            )?
            .query_row(
                (owner.to_string(), crawl, snapshot, plugin, hook, now.0),
                |row| row.get(0),
            )?;
        Ok(attempts)
    }

    /// Writes a result that needs no run, such as a plugin that is skipped.
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

    /// Writes the end of a hook. A result that is final already stays as it is; `false` then.
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

    /// Puts a result that is being worked on off to another attempt.
    pub fn put_off_result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'backoff'
                 WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            )?
            .execute((owner.to_string(), plugin, hook))?;
        Ok(())
    }

    /// Ends the results of an owner that are not final: it will not go on with them.
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

    /// Queues all results of an owner once more.
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

    /// Pages that a retry may be for, at most `limit` of those with ids above `after` and up to `to`, in their
    /// order. Of a crawl: those that are over. Without one: sealed pages, of crawls that were not cancelled, with a
    /// failed result, or one of `hook`: a plugin or a hook.
    pub fn snapshots_to_retry(
        &self,
        crawl: Option<CrawlId>,
        hook: Option<&str>,
        (after, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<(CrawlId, SnapshotId)>> {
        // "+": by id. By crawl or state it would look at all pages of these.
        self.inner
            .prepare_cached(
                "SELECT s.crawl_id, s.id FROM snapshot s
                 WHERE s.id > ?3 AND s.id <= ?4 AND CASE WHEN ?1 IS NULL
                     THEN +s.status = 'sealed'
                         AND (SELECT status FROM crawl WHERE id = s.crawl_id) <> 'cancelled'
                         AND EXISTS (SELECT 1 FROM result r
                             WHERE r.owner = 's' || s.id AND r.status = 'failed'
                                 AND (?2 IS NULL OR r.plugin = ?2 OR r.hook = ?2))
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
                ),
                |row| Ok((CrawlId(row.get(0)?), SnapshotId(row.get(1)?))),
            )?
            .map(|row| Ok(row?))
            .collect()
    }

    /// Queues failed and skipped results once more; `hook` is a plugin, a hook, or all.
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
