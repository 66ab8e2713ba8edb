//! The wall clock was set: what the database has in its times stays as far away as it was.

use super::{Result, Tx};
use archivist_core::model::Time;
use std::time::Duration;

/// What is not over.
const OPEN: &str = "status NOT IN ('sealed', 'cancelled')";

impl Tx<'_> {
    /// The wall clock was set by so many milliseconds: shifts what is due by it, and when what is not
    /// over was begun, by which time limits of crawls are judged.
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
        ] {
            self.inner.prepare_cached(&sql)?.execute([by])?;
        }
        Ok(())
    }

    /// Nothing is due later than the longest delay from now, and no host is to be left alone for
    /// longer than it may ask for: what is, was written before the clock was set while nobody
    /// looked, and is due now. How many rows that were.
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
