//! Rows of alerts, and of the checks of watches, whose history has the alerts of the watch: what the run of each
//! is about, and what it found.

use crate::database::column::{Columns, columns};
use crate::database::{DatabaseError, Result, RunState, Tx};
use archivist_core::model::{CheckKind, CheckRecord, Pool, RunId, Time};
use archivist_core::plan::CheckPool;
use archivist_core::unit::UnitKind;
use std::time::Duration;

pub struct NewCheck<'a> {
    pub watch: &'a str,
    pub kind: CheckKind,
    /// Its URL, with user name and password if it has any.
    pub url: &'a str,
    /// The request that its program reads, as JSON.
    pub request: &'a str,
    pub keep: Duration,
    pub now: Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// Its run, printed as `r678`.
    pub id: RunId,
    pub watch: String,
    pub kind: CheckKind,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// The request that its program reads, as JSON.
    pub request: String,
    /// Whether its run waits, has a unit, or has ended.
    pub status: RunState,
}

columns! { CheckRow: id "run_id", watch, kind "check_result.kind", url, request, status }

fn unit_kind(kind: CheckKind) -> UnitKind {
    match kind {
        CheckKind::Alert => UnitKind::Alert,
        _ => UnitKind::Check,
    }
}

impl Tx<'_> {
    pub fn queue_check(&self, new: &NewCheck<'_>) -> Result<RunId> {
        let id = self.queue_run(unit_kind(new.kind), new.now)?;
        let keep = i64::try_from(new.keep.as_millis()).unwrap_or(i64::MAX / 2);
        self.execute(
            "INSERT INTO check_result (run_id, watch, kind, pool, url, request, keep_for)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                id.0,
                new.watch,
                new.kind.as_str(),
                new.kind.pool().as_str(),
                new.url,
                new.request,
                keep,
            ),
        )?;
        Ok(id)
    }

    /// Records the unit of a queued check before the unit starts.
    pub fn start_check(&self, id: RunId, unit: &str, boot: &str, now: Time) -> Result<()> {
        if self.start_queued(id, unit, boot, now)? {
            Ok(())
        } else {
            Err(DatabaseError::NoSuch(format!("queued check {id}")))
        }
    }

    pub fn drop_check(&self, id: RunId) -> Result<()> {
        self.execute(
            "DELETE FROM check_result WHERE run_id = ?1
             AND (SELECT status FROM run WHERE id = run_id) = 'queued'",
            [id.0],
        )
    }

    /// Records what a check found: whether the site is good, if that is known, and the record. Its
    /// run has ended.
    pub fn note_check(&self, id: RunId, (ok, record): (Option<bool>, &CheckRecord)) -> Result<()> {
        let response = record.response_ms;
        self.execute(
            "UPDATE check_result SET ok = ?2, status_code = ?3, response_ms = ?4, record = ?5,
                 request = ''
             WHERE run_id = ?1",
            (
                id.0,
                ok,
                record.status_code,
                response.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                serde_json::to_string(record)?,
            ),
        )?;
        self.keep_newest(id)
    }

    /// Returns a check that has not ended.
    pub fn open_check(&self, id: RunId) -> Result<Option<CheckRow>> {
        let sql = format!(
            "SELECT {} FROM check_result JOIN run ON run.id = run_id
             WHERE run_id = ?1 AND record IS NULL",
            CheckRow::COLUMNS
        );
        self.first(&sql, [id.0])
    }

    /// Returns how many checks of a pool run, and the first `heads` of its queue.
    pub fn check_pool(&self, pool: Pool, heads: u32) -> Result<CheckPool> {
        let running = self.one(
            "SELECT count(*) FROM run INDEXED BY run_open JOIN check_result ON run_id = run.id
             WHERE run.status IN ('starting', 'running') AND pool = ?1",
            [pool.as_str()],
        )?;
        let due = self.all(
            "SELECT run_id FROM check_result INDEXED BY check_pool JOIN run ON run.id = run_id
             WHERE pool = ?1 AND record IS NULL AND run.status = 'queued'
             ORDER BY run_id LIMIT ?2",
            (pool.as_str(), heads),
        )?;
        Ok(CheckPool { running, due })
    }
}
