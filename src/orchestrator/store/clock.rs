//! Adjusts the times in the database after the wall clock was set.

use super::{Result, Tx};
use archivist_core::model::Time;
use std::time::Duration;

/// SQL condition on a crawl or snapshot: it is not final.
const OPEN: &str = "status NOT IN ('sealed', 'cancelled')";

impl Tx<'_> {
    /// Shifts all due times and the start times of open crawls and snapshots, from which the time
    /// limits of crawls are counted, by the milliseconds by which the wall clock was set.
    pub fn clock_set(&self, by: i64) -> Result<()> {
        for sql in [
            format!(
                "UPDATE crawl SET retry_at = retry_at + ?1, started_at = started_at + ?1 WHERE {OPEN}"
            ),
            format!(
                "UPDATE snapshot SET retry_at = retry_at + ?1, started_at = started_at + ?1
                 WHERE {OPEN}"
            ),
            "UPDATE host SET next_at = next_at + ?1 WHERE next_at > 0".to_owned(),
            "UPDATE copy SET due_at = due_at + ?1 WHERE state = 'waiting'".to_owned(),
        ] {
            self.inner.prepare_cached(&sql)?.execute([by])?;
        }
        Ok(())
    }

    /// Makes every row due now that is due later than possible: a retry later than `longest` from
    /// now, or a host delayed for more than `host`. The clock was set back while no orchestrator
    /// was running. Returns how many rows these were.
    pub fn bring_forward(&self, now: Time, longest: Duration, host: Duration) -> Result<usize> {
        let mut count = 0;
        for (sql, longest) in [
            (
                "UPDATE crawl SET retry_at = ?1 WHERE status = 'queued' AND retry_at > ?2",
                longest,
            ),
            (
                "UPDATE snapshot SET retry_at = ?1 WHERE status = 'queued' AND retry_at > ?2",
                longest,
            ),
            (
                "UPDATE copy SET due_at = ?1 WHERE state = 'waiting' AND due_at > ?2",
                longest,
            ),
            ("UPDATE host SET next_at = ?1 WHERE next_at > ?2", host),
        ] {
            count += self
                .inner
                .prepare_cached(sql)?
                .execute((now.0, now.after(longest).0))?;
        }
        Ok(count)
    }
}
