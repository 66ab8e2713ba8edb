//! Rows of watches: the health of each site, and its checks, whose rows are those of alerts, too.

use crate::alert::CheckRow;
use crate::database::column::{Columns, FromRow, column, columns};
use crate::database::lists::ListQuery;
use crate::database::{Result, RunState, Tx, millis};
use archivist_core::model::{
    CheckKind, CheckRecord, CrawlId, Health, Outcome, RunId, Time, without_userinfo,
};
use archivist_shared::bus::documents::report::SiteHealth;
use archivist_shared::bus::documents::watches::{Check, HistoryFilter};
use rusqlite::{Row, params_from_iter};
use std::time::Duration;

/// Milliseconds of eight days: the time between two weekly checks, and a day.
const WEEK: i64 = 8 * 86_400_000;

const CHECKS: &str = "SELECT c.run_id, c.watch, c.kind, c.url, run.status, run.recorded_at,
        run.started_at, run.ended_at, run.unit, run.outcome, c.ok, c.record
    FROM check_result AS c JOIN run ON run.id = c.run_id";

/// SQL query for columns of `last`, the newest status check of each site that has a result. `?1` is [`WEEK`], `?2`
/// the time: results that are older than a week and than their retention are of sites that are not checked
/// any more. It jumps from one watch, kind and URL to the next, because each has thousands of results.
fn newest_status_checks(columns: &str, condition: &str) -> String {
    format!(
        "WITH RECURSIVE site (id) AS (
             SELECT (SELECT run_id FROM check_result INDEXED BY check_history
                     ORDER BY watch, kind, url, run_id LIMIT 1)
             UNION ALL
             SELECT (SELECT next.run_id FROM check_result AS next INDEXED BY check_history
                     WHERE (next.watch, next.kind, next.url) > (own.watch, own.kind, own.url)
                     ORDER BY next.watch, next.kind, next.url, next.run_id LIMIT 1)
             FROM site JOIN check_result AS own ON own.run_id = site.id
         )
         SELECT {columns} FROM site
         JOIN check_result AS first ON first.run_id = site.id
         JOIN check_result AS last ON last.run_id = (
             SELECT ended.run_id FROM check_result AS ended INDEXED BY check_history
             WHERE ended.watch = first.watch AND ended.kind = 'status'
                 AND ended.url = first.url AND ended.record IS NOT NULL
             ORDER BY ended.run_id DESC LIMIT 1)
         JOIN run ON run.id = last.run_id
         LEFT JOIN watch ON watch.name = last.watch AND watch.url = last.url
         WHERE first.kind = 'status' AND run.ended_at + max(last.keep_for, ?1) > ?2 {condition}"
    )
}

columns! { Health: failures, failing_since, down_since }

impl FromRow for Check {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Check> {
        Ok(Check {
            id: column(row, 0)?,
            watch: column(row, 1)?,
            kind: column(row, 2)?,
            url: without_userinfo(&column::<String>(row, 3)?),
            state: column::<RunState>(row, 4)?.as_str().to_owned(),
            queued_at: column(row, 5)?,
            started_at: column(row, 6)?,
            ended_at: column(row, 7)?,
            unit: column(row, 8)?,
            outcome: column(row, 9)?,
            ok: column(row, 10)?,
            record: column::<Option<_>>(row, 11)?.unwrap_or_default(),
        })
    }
}

impl FromRow for SiteHealth {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<SiteHealth> {
        let record: Option<CheckRecord> = column(row, 3)?;
        Ok(SiteHealth {
            watch: column(row, 0)?,
            is_down: column(row, 1)?,
            response_ms: column(row, 2)?,
            certificate_expires: record.and_then(|record| record.certificate_expires),
        })
    }
}

impl Tx<'_> {
    /// Returns the check of a watch, kind and URL that is queued or running.
    pub fn open_check_of(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<RunId>> {
        self.first(
            "SELECT run_id FROM check_result WHERE watch = ?1 AND kind = ?2 AND url = ?3
             AND record IS NULL AND kind <> 'alert'",
            (watch, kind.as_str(), url),
        )
    }

    /// Returns the checks of a watch that are queued or running.
    pub fn open_checks_of_watch(&self, watch: &str) -> Result<Vec<CheckRow>> {
        let sql = format!(
            "SELECT {} FROM check_result JOIN run ON run.id = run_id
             WHERE watch = ?1 AND record IS NULL AND check_result.kind <> 'alert' ORDER BY run_id",
            CheckRow::COLUMNS
        );
        self.all(&sql, [watch])
    }

    /// Whether a user has ended a run that its unit has not left yet.
    pub fn is_interrupted(&self, id: RunId) -> Result<bool> {
        let interrupted = serde_json::to_string(&Outcome::Interrupted)?;
        let sql = "SELECT count(*) FROM run WHERE id = ?1 AND outcome = ?2";
        let count: i64 = self.one(sql, (id.0, interrupted))?;
        Ok(count > 0)
    }

    /// Records what a check found that needed no unit.
    pub fn end_check_at_once(
        &self,
        id: RunId,
        found: (Option<bool>, &CheckRecord),
        now: Time,
    ) -> Result<()> {
        self.execute(
            "UPDATE run SET status = 'ended', ended_at = ?2 WHERE id = ?1",
            (id.0, now.0),
        )?;
        self.note_check(id, found)
    }

    pub fn health(&self, watch: &str, url: &str) -> Result<Health> {
        let sql = format!("SELECT {} FROM watch WHERE name = ?1 AND url = ?2", Health::COLUMNS);
        Ok(self.first(&sql, (watch, url))?.unwrap_or_default())
    }

    pub fn set_health(&self, watch: &str, url: &str, health: &Health) -> Result<()> {
        self.execute(
            "INSERT INTO watch (name, url, failures, failing_since, down_since)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET failures = excluded.failures,
                 failing_since = excluded.failing_since, down_since = excluded.down_since",
            (watch, url, health.failures, millis(health.failing_since), millis(health.down_since)),
        )
    }

    pub fn check(&self, id: RunId) -> Result<Option<Check>> {
        self.first(&format!("{CHECKS} WHERE c.run_id = ?1"), [id.0])
    }

    /// Returns checks of a watch, newest first.
    pub fn check_history(&self, watch: &str, filter: &HistoryFilter) -> Result<Vec<Check>> {
        let mut query = ListQuery::new(CHECKS.to_owned());
        query.and("c.watch =", watch.to_owned());
        if let Some(kind) = filter.kind {
            query.and("c.kind =", kind.as_str().to_owned());
        }
        if let Some(url) = &filter.url {
            query.and("c.url =", url.clone());
        }
        if let Some(before) = filter.before {
            query.and("c.run_id <", before.0);
        }
        query.sql.push_str(" ORDER BY c.run_id DESC");
        query.limit(filter.limit);
        self.all(&query.sql, params_from_iter(&query.values))
    }

    /// Returns the newest result of a kind of check.
    pub fn last_check(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<Check>> {
        let sql = format!(
            "{CHECKS} WHERE c.watch = ?1 AND c.kind = ?2 AND c.url = ?3 AND c.record IS NOT NULL
             ORDER BY c.run_id DESC LIMIT 1"
        );
        self.first(&sql, (watch, kind.as_str(), url))
    }

    /// Returns watch, URL and end of each certificate that has expired or expires within its
    /// `CertificateWarnDays=`, as the newest status check of each URL found it.
    pub fn certificates(&self, now: Time) -> Result<Vec<(String, String, Time)>> {
        let rows: Vec<(String, String, CheckRecord)> = self.all(
            &newest_status_checks(
                "last.watch, last.url, last.record",
                "AND instr(last.record, '\"certificate_expires\"')",
            ),
            [WEEK, now.0],
        )?;
        let mut soon = Vec::new();
        for (watch, url, record) in rows {
            let days = record.certificate_warn_days.unwrap_or_default();
            let warned = now.after(Duration::from_secs(86_400 * u64::from(days)));
            let expires = record.certificate_expires.filter(|end| *end < warned);
            soon.extend(expires.map(|end| (watch, url, end)));
        }
        Ok(soon)
    }

    /// Returns the checks of a URL that have not ended.
    pub fn open_checks_of(&self, watch: &str, url: &str) -> Result<Vec<Check>> {
        let sql = format!(
            "{CHECKS} WHERE c.watch = ?1 AND c.url = ?2 AND c.record IS NULL AND c.kind <> 'alert'
             ORDER BY c.run_id"
        );
        self.all(&sql, (watch, url))
    }

    /// Returns how many status checks have a known result, and how many of these were good.
    pub fn uptime(&self, watch: &str, url: &str) -> Result<(u64, u64)> {
        let (all, good): (i64, Option<i64>) = self.one(
            "SELECT count(*), sum(ok) FROM check_result INDEXED BY check_history
             WHERE watch = ?1 AND kind = 'status' AND url = ?2 AND ok IS NOT NULL",
            (watch, url),
        )?;
        Ok((all.max(0) as u64, good.unwrap_or(0).max(0) as u64))
    }

    /// Returns the newest open crawl that a watch started.
    pub fn open_archive(&self, watch: &str) -> Result<Option<CrawlId>> {
        self.first(
            "SELECT crawl.id FROM check_result AS archived JOIN crawl
                 ON crawl.id = CAST(substr(archived.record ->> 'crawl', 2) AS INTEGER)
             WHERE archived.watch = ?1 AND archived.kind = 'archive'
                 AND crawl.status NOT IN ('sealed', 'cancelled')
             ORDER BY crawl.id DESC LIMIT 1",
            [watch],
        )
    }

    /// Returns the sites of watches that were checked within the last days.
    pub fn site_health(&self, now: Time) -> Result<Vec<SiteHealth>> {
        // A site that never failed has no row in `watch`.
        self.all(
            &newest_status_checks(
                "last.watch, watch.down_since IS NOT NULL, last.response_ms,
                 iif(instr(last.record, '\"certificate_expires\"'), last.record, NULL)",
                "ORDER BY last.watch, last.url",
            ),
            [WEEK, now.0],
        )
    }
}
