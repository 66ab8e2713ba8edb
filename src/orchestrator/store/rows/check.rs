//! Rows of checks. A check is queued, then it has one unit, then a result. Its row is also its run:
//! the id comes from the sequence of runs, so that no check and run have the same id.

use crate::store::column::{column, optional};
use crate::store::{Result, StoreError, Tx, millis};
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Health, Outcome, Pool, Reading};
use archivist_core::model::{RunId, Time};
use archivist_core::plan::{CheckPool, Checks};
use rusqlite::{OptionalExtension, Row};
use std::time::Duration;

/// Where a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// Waits for a slot.
    Queued,
    /// Recorded with its unit; systemd has not answered the start yet.
    Starting,
    /// Its unit runs.
    Running,
    /// Its result is recorded.
    Done,
}

impl CheckState {
    const ALL: [CheckState; 4] = [
        CheckState::Queued,
        CheckState::Starting,
        CheckState::Running,
        CheckState::Done,
    ];

    /// Returns the name in the database and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckState::Queued => "queued",
            CheckState::Starting => "starting",
            CheckState::Running => "running",
            CheckState::Done => "done",
        }
    }

    /// Returns the state of this name, or `None` if the name is unknown.
    pub fn parse(text: &str) -> Option<CheckState> {
        let mut all = CheckState::ALL.into_iter();
        all.find(|state| state.as_str() == text)
    }
}

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

/// A check that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// Number of its row, printed as `r678`.
    pub id: RunId,
    /// Name of the watch.
    pub watch: String,
    /// Kind of check.
    pub kind: CheckKind,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// The request that its program reads, as JSON.
    pub request: String,
    /// Whether it waits for a slot.
    pub queued: bool,
    /// Whether systemd has not answered the start yet.
    pub starting: bool,
    /// Empty while it is queued.
    pub unit: String,
    /// Boot during which it was started; empty while it is queued.
    pub boot: String,
}

const COLUMNS: &str = "id, watch, kind, url, request, state, unit, boot";
const STARTED: &str = "state IN ('starting', 'running')";

fn read(row: &Row<'_>) -> rusqlite::Result<CheckRow> {
    let state: CheckState = column(row, 5)?;
    Ok(CheckRow {
        id: column(row, 0)?,
        watch: row.get(1)?,
        kind: column(row, 2)?,
        url: row.get(3)?,
        request: row.get(4)?,
        queued: state == CheckState::Queued,
        starting: state == CheckState::Starting,
        unit: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        boot: row.get::<_, Option<String>>(7)?.unwrap_or_default(),
    })
}

impl Tx<'_> {
    /// Returns the next id of the sequence that runs and checks share.
    pub(crate) fn draw_run_id(&self) -> Result<RunId> {
        self.inner
            .prepare_cached(
                "INSERT INTO sqlite_sequence (name, seq)
                 SELECT 'run', 0 WHERE NOT EXISTS
                     (SELECT 1 FROM sqlite_sequence WHERE name = 'run')",
            )?
            .execute([])?;
        let id = self
            .inner
            .prepare_cached(
                "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'run' RETURNING seq",
            )?
            .query_row([], |row| column(row, 0))?;
        Ok(id)
    }

    /// Queues a check. Returns `None` if a check of the same watch, kind and URL is queued or
    /// running.
    pub fn queue_check(&self, new: &NewCheck<'_>) -> Result<Option<RunId>> {
        if self.open_check_of(new.watch, new.kind, new.url)?.is_some() {
            return Ok(None);
        }
        let id = self.draw_run_id()?;
        let keep = i64::try_from(new.keep.as_millis()).unwrap_or(i64::MAX / 2);
        self.inner
            .prepare_cached(
                "INSERT INTO check_result
                     (id, watch, kind, pool, url, request, queued_at, keep_for)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((
                id.0,
                new.watch,
                new.kind.as_str(),
                new.kind.pool().as_str(),
                new.url,
                new.request,
                new.now.0,
                keep,
            ))?;
        Ok(Some(id))
    }

    /// Returns the check of a watch, kind and URL that is queued or running.
    pub fn open_check_of(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<RunId>> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT id FROM check_result WHERE watch = ?1 AND kind = ?2 AND url = ?3
                     AND state <> 'done' AND kind <> 'alert'",
            )?
            .query_row((watch, kind.as_str(), url), |row| column(row, 0))
            .optional()?)
    }

    /// Records the unit of a queued check before the unit starts.
    pub fn start_check(&self, id: RunId, unit: &str, boot: &str, now: Time) -> Result<()> {
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE check_result SET state = 'starting', unit = ?2, boot = ?3,
                     started_at = ?4, epoch = ?5
                 WHERE id = ?1 AND state = 'queued'",
            )?
            .execute((id.0, unit, boot, now.0, self.epoch))?;
        match rows {
            1 => Ok(()),
            _ => Err(StoreError::NoSuch(format!("queued check {id}"))),
        }
    }

    /// Queues a check again whose start was recorded and not made.
    pub fn requeue_check(&self, id: RunId) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE check_result SET state = 'queued', unit = NULL, boot = NULL,
                     started_at = NULL, epoch = NULL
                 WHERE id = ?1 AND state = 'starting'",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Deletes a queued check.
    pub fn drop_check(&self, id: RunId) -> Result<()> {
        self.inner
            .prepare_cached("DELETE FROM check_result WHERE id = ?1 AND state = 'queued'")?
            .execute([id.0])?;
        Ok(())
    }

    /// Records that systemd accepted the start.
    pub fn set_check_running(&self, id: RunId) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE check_result SET state = 'running' WHERE id = ?1 AND state = 'starting'",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Records the result of a check: how its unit ended, if it had one, whether the site is good,
    /// if that is known, and what the check found. Returns `false` if the check was done already.
    pub fn end_check(
        &self,
        id: RunId,
        outcome: Option<&Outcome>,
        reading: &Reading,
        (ok, record): (Option<bool>, &CheckRecord),
        now: Time,
    ) -> Result<bool> {
        let ended = reading.ended.unwrap_or(now);
        let done = self
            .inner
            .prepare_cached(
                "UPDATE check_result SET state = 'done', outcome = ?2, invocation = ?3,
                     started_at = coalesce(?4, started_at), ended_at = ?5,
                     ok = ?6, status_code = ?7, response_ms = ?8, record = ?9, request = ''
                 WHERE id = ?1 AND state <> 'done' RETURNING 1",
            )?
            .query_row(
                rusqlite::params![
                    id.0,
                    outcome.map(serde_json::to_string).transpose()?,
                    Some(&reading.invocation).filter(|id| !id.is_empty()),
                    millis(reading.started),
                    ended.0,
                    ok,
                    record.status_code,
                    record
                        .response_ms
                        .map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                    serde_json::to_string(record)?,
                ],
                |_| Ok(()),
            )
            .optional()?;
        if done.is_some() {
            self.keep_newest(id)?;
        }
        Ok(done.is_some())
    }

    fn one_check(&self, condition: &str, value: impl rusqlite::ToSql) -> Result<Option<CheckRow>> {
        let sql = format!("SELECT {COLUMNS} FROM check_result WHERE {condition}");
        Ok(self
            .inner
            .prepare_cached(&sql)?
            .query_row([value], read)
            .optional()?)
    }

    /// Returns a check that is not done.
    pub fn open_check(&self, id: RunId) -> Result<Option<CheckRow>> {
        self.one_check("id = ?1 AND state <> 'done'", id.0)
    }

    /// Returns the check that a unit belongs to, if it is not done.
    pub fn check_of_unit(&self, unit: &str) -> Result<Option<CheckRow>> {
        self.one_check(&format!("unit = ?1 AND {STARTED}"), unit)
    }

    /// Returns the checks that are starting or running.
    pub fn started_checks(&self) -> Result<Vec<CheckRow>> {
        let sql = format!("SELECT {COLUMNS} FROM check_result WHERE {STARTED} ORDER BY id");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns for each pool how many checks run, and the first `heads` of its queue.
    pub fn checks(&self, heads: u32) -> Result<Checks> {
        let lane = |pool: Pool| -> Result<CheckPool> {
            let running = self
                .inner
                .prepare_cached(
                    "SELECT count(*) FROM check_result INDEXED BY check_unit
                     WHERE state IN ('starting', 'running') AND pool = ?1",
                )?
                .query_row([pool.as_str()], |row| row.get(0))?;
            let mut statement = self.inner.prepare_cached(
                "SELECT id FROM check_result INDEXED BY check_queue
                 WHERE pool = ?1 AND state = 'queued' ORDER BY id LIMIT ?2",
            )?;
            let rows = statement.query_map((pool.as_str(), heads), |row| column(row, 0))?;
            let due = rows.collect::<rusqlite::Result<_>>()?;
            Ok(CheckPool { running, due })
        };
        Ok(Checks {
            fast: lane(Pool::Fast)?,
            slow: lane(Pool::Slow)?,
            alerts: lane(Pool::Alerts)?,
        })
    }

    /// Returns how many checks of all pools are queued, and how many are starting or running.
    pub fn check_counts(&self) -> Result<(u64, u64)> {
        let count = |condition: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM check_result WHERE {condition}");
            let n: i64 = self
                .inner
                .prepare_cached(&sql)?
                .query_row([], |r| r.get(0))?;
            Ok(n.max(0) as u64)
        };
        Ok((count("state = 'queued'")?, count(STARTED)?))
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
