//! Adjusts the times in the database after the wall clock was set.

use super::{Result, Tx};
use archivist_core::model::Time;
use std::time::Duration;

/// SQL condition on a crawl or snapshot: it is not final.
const OPEN: &str = "status NOT IN ('sealed', 'cancelled')";

/// SQL query for the newest ended runs. The latest end among them is a time at which an orchestrator
/// was running.
const NEWEST: &str = "SELECT id FROM run WHERE status = 'ended' ORDER BY id DESC LIMIT 256";

impl Tx<'_> {
    /// Shifts all due times, the start times of open crawls and snapshots, from which the time limits
    /// of crawls are counted, and the times of the newest ended runs, by the milliseconds by which the
    /// wall clock was set.
    pub fn clock_set(&self, by: i64) -> Result<()> {
        for sql in [
            format!(
                "UPDATE crawl SET retry_at = retry_at + ?1, started_at = started_at + ?1 WHERE {OPEN}"
            ),
            format!(
                "UPDATE snapshot SET retry_at = retry_at + ?1, started_at = started_at + ?1,
                     visited_at = visited_at + iif(visited_at = started_at, ?1, 0),
                     http_until = http_until + ?1
                 WHERE {OPEN}"
            ),
            format!(
                "UPDATE run SET recorded_at = recorded_at + ?1, started_at = started_at + ?1,
                     ready_at = ready_at + ?1, ended_at = ended_at + ?1
                 WHERE id IN ({NEWEST})"
            ),
            "UPDATE host SET next_at = next_at + ?1 WHERE next_at > 0".to_owned(),
            "UPDATE copy SET due_at = due_at + ?1 WHERE status = 'waiting'".to_owned(),
        ] {
            self.execute(&sql, [by])?;
        }
        Ok(())
    }

    /// Returns by how much the clock was set back, at least, while no orchestrator was running: how far
    /// the latest end of a run is in the future. Zero if it is not, or if there is no run.
    pub fn set_back_by(&self, now: Time) -> Result<Duration> {
        let sql = format!("SELECT max(ended_at) FROM run WHERE id IN ({NEWEST})");
        let latest: Option<Time> = self.one(&sql, [])?;
        Ok(latest.map_or(Duration::ZERO, |latest| latest.until(now)))
    }

    /// Makes every row due now that is due later than possible: a retry later than `longest` from
    /// now, or a host delayed for more than `host`, for which its pages may wait as well. The clock was set back while no orchestrator
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
                longest.max(host),
            ),
            (
                "UPDATE copy SET due_at = ?1 WHERE status = 'waiting' AND due_at > ?2",
                longest,
            ),
            ("UPDATE host SET next_at = ?1 WHERE next_at > ?2", host),
        ] {
            count += self.change(sql, (now.0, now.after(longest).0))?;
        }
        Ok(count)
    }
}
