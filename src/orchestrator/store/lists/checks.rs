//! Lists of checks.

use crate::store::column::{column, optional, optional_json};
use crate::store::lists::shown_url;
use crate::store::{Result, RunState, Tx};
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, RunId, Time};
use archivist_shared::bus::documents::watches::{Check, HistoryFilter};
use rusqlite::{OptionalExtension, Row, params_from_iter, types::Value};
use std::time::Duration;

/// Milliseconds of eight days: the time between two weekly checks, and a day.
const WEEK: i64 = 8 * 86_400_000;

/// SQL query for checks with their runs.
const CHECKS: &str = "SELECT c.run_id, c.watch, c.kind, c.url, run.status, run.recorded_at,
        run.started_at, run.ended_at, run.unit, run.outcome, c.ok, c.record
    FROM check_result AS c JOIN run ON run.id = c.run_id";

fn read(row: &Row<'_>) -> rusqlite::Result<Check> {
    Ok(Check {
        id: column(row, 0)?,
        watch: row.get(1)?,
        kind: column(row, 2)?,
        url: shown_url(row, 3)?,
        state: column::<RunState>(row, 4)?.as_str().to_owned(),
        queued_at: column(row, 5)?,
        started_at: optional(row, 6)?,
        ended_at: optional(row, 7)?,
        unit: row.get(8)?,
        outcome: optional_json(row, 9)?,
        ok: row.get(10)?,
        record: optional_json(row, 11)?.unwrap_or_default(),
    })
}

impl Tx<'_> {
    fn list_checks(&self, rest: &str, values: Vec<Value>) -> Result<Vec<Check>> {
        let sql = format!("{CHECKS} WHERE {rest}");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns a check by its id.
    pub fn check(&self, id: RunId) -> Result<Option<Check>> {
        Ok(self.list_checks("c.run_id = ?1", vec![id.0.into()])?.pop())
    }

    /// Returns checks of a watch, newest first.
    pub fn check_history(&self, watch: &str, filter: &HistoryFilter) -> Result<Vec<Check>> {
        let mut sql = "c.watch = ?1".to_owned();
        let mut values = vec![Value::from(watch.to_owned())];
        if let Some(kind) = filter.kind {
            values.push(kind.as_str().to_owned().into());
            sql.push_str(&format!(" AND c.kind = ?{}", values.len()));
        }
        if let Some(url) = &filter.url {
            values.push(url.clone().into());
            sql.push_str(&format!(" AND c.url = ?{}", values.len()));
        }
        if let Some(before) = filter.before {
            values.push(before.0.into());
            sql.push_str(&format!(" AND c.run_id < ?{}", values.len()));
        }
        sql.push_str(" ORDER BY c.run_id DESC");
        if filter.limit > 0 {
            sql.push_str(&format!(" LIMIT {}", filter.limit));
        }
        self.list_checks(&sql, values)
    }

    /// Returns the newest result of a kind of check.
    pub fn last_check(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<Check>> {
        let values = [watch, kind.as_str(), url].map(|text| Value::from(text.to_owned()));
        let found = self.list_checks(
            "c.watch = ?1 AND c.kind = ?2 AND c.url = ?3 AND c.record IS NOT NULL
             ORDER BY c.run_id DESC LIMIT 1",
            values.to_vec(),
        )?;
        Ok(found.into_iter().next())
    }

    /// Returns watch, URL and end of each certificate that has expired or expires within its
    /// `CertificateWarnDays=`, as the newest status check of each URL found it. Results that are
    /// older than a week and than their retention are of sites that are not checked any more.
    pub fn certificates(&self, now: Time) -> Result<Vec<(String, String, Time)>> {
        // Jumps from one watch, kind and URL to the next, because each has thousands of results.
        let mut statement = self.inner.prepare_cached(
            "WITH RECURSIVE site (id) AS (
                 SELECT (SELECT run_id FROM check_result INDEXED BY check_history
                         ORDER BY watch, kind, url, run_id LIMIT 1)
                 UNION ALL
                 SELECT (SELECT next.run_id FROM check_result AS next INDEXED BY check_history
                         WHERE (next.watch, next.kind, next.url) > (own.watch, own.kind, own.url)
                         ORDER BY next.watch, next.kind, next.url, next.run_id LIMIT 1)
                 FROM site JOIN check_result AS own ON own.run_id = site.id
             )
             SELECT last.watch, last.url, last.record FROM site
             JOIN check_result AS first ON first.run_id = site.id
             JOIN check_result AS last ON last.run_id = (
                 SELECT ended.run_id FROM check_result AS ended INDEXED BY check_history
                 WHERE ended.watch = first.watch AND ended.kind = 'status'
                     AND ended.url = first.url AND ended.record IS NOT NULL
                 ORDER BY ended.run_id DESC LIMIT 1)
             JOIN run ON run.id = last.run_id
             WHERE first.kind = 'status' AND instr(last.record, '\"certificate_expires\"')
                 AND run.ended_at + max(last.keep_for, ?1) > ?2",
        )?;
        let rows = statement.query_map([WEEK, now.0], |row| {
            let record: CheckRecord = optional_json(row, 2)?.unwrap_or_default();
            Ok((row.get(0)?, row.get(1)?, record))
        })?;
        let mut soon = Vec::new();
        for row in rows {
            let (watch, url, record) = row?;
            let days = record.certificate_warn_days.unwrap_or_default();
            let warned = now.after(Duration::from_secs(86_400 * u64::from(days)));
            let expires = record.certificate_expires.filter(|end| *end < warned);
            soon.extend(expires.map(|end| (watch, url, end)));
        }
        Ok(soon)
    }

    /// Returns the checks of a URL that have not ended.
    pub fn open_checks_of(&self, watch: &str, url: &str) -> Result<Vec<Check>> {
        let values = [watch, url].map(|text| Value::from(text.to_owned()));
        self.list_checks(
            "c.watch = ?1 AND c.url = ?2 AND c.record IS NULL AND c.kind <> 'alert' ORDER BY c.run_id",
            values.to_vec(),
        )
    }

    /// Returns how many status checks have a known result, and how many of these were good.
    pub fn uptime(&self, watch: &str, url: &str) -> Result<(u64, u64)> {
        let (all, good): (i64, Option<i64>) = self
            .inner
            .prepare_cached(
                "SELECT count(*), sum(ok) FROM check_result INDEXED BY check_history
                 WHERE watch = ?1 AND kind = 'status' AND url = ?2 AND ok IS NOT NULL",
            )?
            .query_row((watch, url), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((all.max(0) as u64, good.unwrap_or(0).max(0) as u64))
    }

    /// Returns the newest open crawl that a watch started.
    pub fn open_archive(&self, watch: &str) -> Result<Option<CrawlId>> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT crawl.id FROM check_result AS archived JOIN crawl
                     ON crawl.id = CAST(substr(archived.record ->> 'crawl', 2) AS INTEGER)
                 WHERE archived.watch = ?1 AND archived.kind = 'archive'
                     AND crawl.status NOT IN ('sealed', 'cancelled')
                 ORDER BY crawl.id DESC LIMIT 1",
            )?
            .query_row([watch], |row| column(row, 0))
            .optional()?)
    }
}
