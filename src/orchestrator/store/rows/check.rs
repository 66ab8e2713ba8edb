//! Rows of checks: what the run of each is about, and what it found.

use crate::store::column::{column, counter, optional};
use crate::store::rows::unit::RunState;
use crate::store::{Result, StoreError, Tx, millis};
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Health, Pool};
use archivist_core::model::{RunId, Time};
use archivist_core::plan::CheckPool;
use archivist_core::unit::UnitKind;
use rusqlite::{OptionalExtension, Row};
use std::time::Duration;

/// A check to be queued.
pub struct NewCheck<'a> {
    /// Name of the watch.
    pub watch: &'a str,
    /// Kind of check.
    pub kind: CheckKind,
    /// Its URL, with user name and password if it has any.
    pub url: &'a str,
    /// The request that its program reads, as JSON.
    pub request: &'a str,
    /// How long to keep its result.
    pub keep: Duration,
    /// Time of the turn.
    pub now: Time,
}

/// A check that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// Its run, printed as `r678`.
    pub id: RunId,
    /// Name of the watch.
    pub watch: String,
    /// Kind of check.
    pub kind: CheckKind,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// The request that its program reads, as JSON.
    pub request: String,
    /// Whether its run waits, has a unit, or has ended.
    pub status: RunState,
}

fn read(row: &Row<'_>) -> rusqlite::Result<CheckRow> {
    Ok(CheckRow {
        id: column(row, 0)?,
        watch: row.get(1)?,
        kind: column(row, 2)?,
        url: row.get(3)?,
        request: row.get(4)?,
        status: column(row, 5)?,
    })
}

/// The kind of the unit of a check.
fn unit_kind(kind: CheckKind) -> UnitKind {
    match kind {
        CheckKind::Alert => UnitKind::Alert,
        _ => UnitKind::Check,
    }
}

impl Tx<'_> {
    /// Queues a check. Returns `None` if a check of the same watch, kind and URL is queued or
    /// running.
    pub fn queue_check(&self, new: &NewCheck<'_>) -> Result<Option<RunId>> {
        if self.open_check_of(new.watch, new.kind, new.url)?.is_some() {
            return Ok(None);
        }
        let id = self.queue_run(unit_kind(new.kind), new.now)?;
        let keep = i64::try_from(new.keep.as_millis()).unwrap_or(i64::MAX / 2);
        self.inner
            .prepare_cached(
                "INSERT INTO check_result (run_id, watch, kind, pool, url, request, keep_for)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                id.0,
                new.watch,
                new.kind.as_str(),
                new.kind.pool().as_str(),
                new.url,
                new.request,
                keep,
            ))?;
        Ok(Some(id))
    }

    /// Returns the check of a watch, kind and URL that is queued or running.
    pub fn open_check_of(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<RunId>> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT run_id FROM check_result WHERE watch = ?1 AND kind = ?2 AND url = ?3
                     AND record IS NULL AND kind <> 'alert'",
            )?
            .query_row((watch, kind.as_str(), url), |row| column(row, 0))
            .optional()?)
    }

    /// Records the unit of a queued check before the unit starts.
    pub fn start_check(&self, id: RunId, unit: &str, boot: &str, now: Time) -> Result<()> {
        if self.start_queued(id, unit, boot, now)? {
            Ok(())
        } else {
            Err(StoreError::NoSuch(format!("queued check {id}")))
        }
    }

    /// Deletes a queued check.
    pub fn drop_check(&self, id: RunId) -> Result<()> {
        self.inner
            .prepare_cached(
                "DELETE FROM check_result WHERE run_id = ?1
                     AND (SELECT status FROM run WHERE id = run_id) = 'queued'",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Records what a check found that needed no unit.
    pub fn end_check_at_once(
        &self,
        id: RunId,
        found: (Option<bool>, &CheckRecord),
        now: Time,
    ) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE run SET status = 'ended', ended_at = ?2 WHERE id = ?1")?
            .execute((id.0, now.0))?;
        self.note_check(id, found)
    }

    /// Records what a check found: whether the site is good, if that is known, and the record. Its
    /// run has ended.
    pub fn note_check(&self, id: RunId, (ok, record): (Option<bool>, &CheckRecord)) -> Result<()> {
        let response = record.response_ms;
        self.inner
            .prepare_cached(
                "UPDATE check_result SET ok = ?2, status_code = ?3, response_ms = ?4, record = ?5,
                     request = ''
                 WHERE run_id = ?1",
            )?
            .execute((
                id.0,
                ok,
                record.status_code,
                response.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                serde_json::to_string(record)?,
            ))?;
        self.keep_newest(id)
    }

    /// Returns a check that has not ended.
    pub fn open_check(&self, id: RunId) -> Result<Option<CheckRow>> {
        let found = self
            .inner
            .prepare_cached(
                "SELECT run_id, watch, check_result.kind, url, request, status
                 FROM check_result JOIN run ON run.id = run_id
                 WHERE run_id = ?1 AND record IS NULL",
            )?
            .query_row([id.0], read)
            .optional()?;
        Ok(found)
    }

    /// Returns how many checks of a pool run, and the first `heads` of its queue.
    pub fn check_pool(&self, pool: Pool, heads: u32) -> Result<CheckPool> {
        let running = self
            .inner
            .prepare_cached(
                "SELECT count(*) FROM run INDEXED BY run_open JOIN check_result ON run_id = run.id
                 WHERE run.status IN ('starting', 'running') AND pool = ?1",
            )?
            .query_row([pool.as_str()], |row| row.get(0))?;
        let mut statement = self.inner.prepare_cached(
            "SELECT run_id FROM check_result INDEXED BY check_pool JOIN run ON run.id = run_id
             WHERE pool = ?1 AND record IS NULL AND run.status = 'queued'
             ORDER BY run_id LIMIT ?2",
        )?;
        let rows = statement.query_map((pool.as_str(), heads), |row| column(row, 0))?;
        let due = rows.collect::<rusqlite::Result<_>>()?;
        Ok(CheckPool { running, due })
    }

    /// Returns how many checks of all pools are queued, and how many are starting or running.
    pub fn check_counts(&self) -> Result<(u64, u64)> {
        let counts = self
            .inner
            .prepare_cached(
                "SELECT sum(run.status = 'queued'), sum(run.status IN ('starting', 'running'))
                 FROM check_result INDEXED BY check_pool JOIN run ON run.id = run_id
                 WHERE record IS NULL",
            )?
            .query_row([], |row| Ok((counter(row, 0)?, counter(row, 1)?)))?;
        Ok((counts.0.unwrap_or(0), counts.1.unwrap_or(0)))
    }

    /// Returns the health of a site of a watch.
    pub fn health(&self, watch: &str, url: &str) -> Result<Health> {
        let health = self
            .inner
            .prepare_cached(
                "SELECT failures, failing_since, down_since FROM watch
                 WHERE name = ?1 AND url = ?2",
            )?
            .query_row((watch, url), |row| {
                Ok(Health {
                    failures: row.get(0)?,
                    failing_since: optional(row, 1)?,
                    down_since: optional(row, 2)?,
                })
            })
            .optional()?;
        Ok(health.unwrap_or_default())
    }

    /// Stores the state of a site.
    pub fn set_health(&self, watch: &str, url: &str, health: &Health) -> Result<()> {
        self.inner
            .prepare_cached(
                "INSERT INTO watch (name, url, failures, failing_since, down_since)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET failures = excluded.failures,
                     failing_since = excluded.failing_since, down_since = excluded.down_since",
            )?
            .execute((
                watch,
                url,
                health.failures,
                millis(health.failing_since),
                millis(health.down_since),
            ))?;
        Ok(())
    }

    /// Makes a crawl skip pages that the archive has.
    pub fn set_only_new(&self, crawl: CrawlId) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE crawl SET only_new = 1 WHERE id = ?1")?
            .execute([crawl.0])?;
        Ok(())
    }

    /// Returns whether a crawl leaves out pages that the archive has.
    pub fn is_only_new(&self, crawl: CrawlId) -> Result<bool> {
        Ok(self
            .inner
            .prepare_cached("SELECT only_new FROM crawl WHERE id = ?1")?
            .query_row([crawl.0], |row| row.get(0))?)
    }
}
