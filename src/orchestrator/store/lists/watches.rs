//! Checks as people see them.

use crate::store::{Result, StoreError, Tx};
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, RunId, Time, without_userinfo};
use archivist_shared::bus::documents::watches::{Check, HistoryFilter};
use rusqlite::{OptionalExtension, Row, params_from_iter, types::Value};

const COLUMNS: &str = "id, watch, kind, url, state, queued_at, started_at, ended_at, unit,
                       outcome, ok, record";

type Parts = (Check, String, Option<String>, Option<String>);

fn read(row: &Row<'_>) -> rusqlite::Result<Parts> {
    let check = Check {
        id: RunId(row.get(0)?),
        watch: row.get(1)?,
        kind: CheckKind::Status,
        url: without_userinfo(&row.get::<_, String>(3)?),
        state: row.get(4)?,
        queued_at: Time(row.get(5)?),
        started_at: row.get::<_, Option<i64>>(6)?.map(Time),
        ended_at: row.get::<_, Option<i64>>(7)?.map(Time),
        unit: row.get(8)?,
        outcome: None,
        ok: row.get(10)?,
        record: CheckRecord::default(),
    };
    Ok((check, row.get(2)?, row.get(9)?, row.get(11)?))
}

fn complete((check, kind, outcome, record): Parts) -> Result<Check> {
    let kind = CheckKind::parse(&kind).ok_or(StoreError::Corrupt {
        what: "kind of check",
        text: kind,
    })?;
    let outcome = outcome.map(|text| serde_json::from_str(&text));
    let record = record.map(|text| serde_json::from_str(&text));
    Ok(Check {
        kind,
        outcome: outcome.transpose()?,
        record: record.transpose()?.unwrap_or_default(),
        ..check
    })
}

fn shorten(check: Check) -> Check {
    let record = CheckRecord {
        findings: Vec::new(),
        headers: Default::default(),
        ..check.record
    };
    Check { record, ..check }
}

impl Tx<'_> {
    fn list_checks(&self, rest: &str, values: Vec<Value>) -> Result<Vec<Check>> {
        let sql = format!("SELECT {COLUMNS} FROM check_result WHERE {rest}");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), read)?;
        rows.map(|row| complete(row?)).collect()
    }

    /// Checks of a watch, the newest first.
    pub fn check_history(&self, watch: &str, filter: &HistoryFilter) -> Result<Vec<Check>> {
        let mut sql = "watch = ?1".to_owned();
        let mut values = vec![Value::from(watch.to_owned())];
        if let Some(kind) = filter.kind {
            values.push(kind.as_str().to_owned().into());
            sql.push_str(&format!(" AND kind = ?{}", values.len()));
        }
        if let Some(url) = &filter.url {
            values.push(url.clone().into());
            sql.push_str(&format!(" AND url = ?{}", values.len()));
        }
        if let Some(before) = filter.before {
            values.push(before.0.into());
            sql.push_str(&format!(" AND id < ?{}", values.len()));
        }
        sql.push_str(" ORDER BY id DESC");
        if filter.limit > 0 {
            sql.push_str(&format!(" LIMIT {}", filter.limit));
        }
        let checks = self.list_checks(&sql, values)?;
        Ok(if filter.full {
            checks
        } else {
            checks.into_iter().map(shorten).collect()
        })
    }

    /// The newest result of a kind, without findings and headers.
    pub fn last_check(&self, watch: &str, kind: CheckKind, url: &str) -> Result<Option<Check>> {
        let values = [watch, kind.as_str(), url].map(|text| Value::from(text.to_owned()));
        let found = self.list_checks(
            "watch = ?1 AND kind = ?2 AND url = ?3 AND state = 'done' ORDER BY id DESC LIMIT 1",
            values.to_vec(),
        )?;
        Ok(found.into_iter().next().map(shorten))
    }

    /// Checks of a URL that wait or run.
    pub fn open_checks_of(&self, watch: &str, url: &str) -> Result<Vec<Check>> {
        let values = [watch, url].map(|text| Value::from(text.to_owned()));
        self.list_checks(
            "watch = ?1 AND url = ?2 AND state <> 'done' AND kind <> 'alert' ORDER BY id",
            values.to_vec(),
        )
    }

    /// Status checks at hand of which is known how they went, and how many of them were good.
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

    /// The crawl that a watch's archive was given last.
    pub fn last_archive(&self, watch: &str) -> Result<Option<CrawlId>> {
        let record: Option<Option<String>> = self
            .inner
            .prepare_cached(
                "SELECT record FROM check_result WHERE watch = ?1 AND kind = 'archive'
                 ORDER BY id DESC LIMIT 1",
            )?
            .query_row([watch], |row| row.get(0))
            .optional()?;
        let Some(text) = record.flatten() else {
            return Ok(None);
        };
        Ok(serde_json::from_str::<CheckRecord>(&text)?.crawl)
    }
}
