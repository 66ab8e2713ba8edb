//! Adjusts the times in the database after the wall clock was set.

use super::{Database, Result, Tx};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::plan::{CLOCK_STEP_MAX, ClockState};
use rusqlite::Connection;
use std::time::Duration;

/// SQL condition on a crawl or snapshot: it is not final.
const OPEN: &str = "status NOT IN ('sealed', 'cancelled')";

/// SQL query for the newest ended runs. The latest end among them is a time at which an orchestrator
/// was running.
const NEWEST: &str = "SELECT id FROM run WHERE status = 'ended' ORDER BY id DESC LIMIT 256";

/// The latest time that is not in the future, as far as clocks differ.
pub(crate) fn latest(now: Time) -> Time {
    now.after(CLOCK_STEP_MAX)
}

fn state(connection: &Connection) -> Result<ClockState> {
    let state: String =
        connection.prepare_cached("SELECT state FROM clock")?.query_row([], |row| row.get(0))?;
    Ok(serde_json::from_str(&state)?)
}

impl Database {
    /// Returns what is known of the clock. Waits for no writer.
    pub fn clock_state(&self) -> Result<ClockState> {
        state(&self.connection)
    }
}

impl Tx<'_> {
    pub fn clock_state(&self) -> Result<ClockState> {
        state(&self.inner)
    }

    /// Records what is known of the clock. `confirms_doubt`: the times that were written during the doubt
    /// so far are right.
    pub fn set_clock_state(&self, state: &ClockState, confirms_doubt: bool) -> Result<()> {
        if confirms_doubt {
            self.execute(
                "UPDATE snapshot SET doubt = 0 WHERE doubt > 0 AND doubt = (SELECT doubt FROM clock)",
                [],
            )?;
        }
        let doubt = state.doubt.as_ref().map_or(0, |_| state.doubts);
        self.execute(
            "UPDATE clock SET state = ?1, doubt = ?2",
            (serde_json::to_string(state)?, doubt),
        )
    }

    /// Returns how many pages ended while the clock was not believed, or belong to crawls of the future,
    /// and the first of them.
    pub fn undated_pages(&self, now: Time) -> Result<Option<(u64, SnapshotId)>> {
        let (count, first): (u64, Option<SnapshotId>) = self.one(
            "SELECT count(*), min(id) FROM (SELECT id FROM snapshot WHERE doubt > 0
                 UNION SELECT id FROM snapshot
                 WHERE crawl_id IN (SELECT id FROM crawl WHERE created_at > ?1))",
            [latest(now).0],
        )?;
        Ok(first.map(|first| (count, first)))
    }

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
            ("UPDATE crawl SET retry_at = ?1 WHERE status = 'queued' AND retry_at > ?2", longest),
            (
                "UPDATE snapshot SET retry_at = ?1 WHERE status = 'queued' AND retry_at > ?2",
                longest.max(host),
            ),
            ("UPDATE copy SET due_at = ?1 WHERE status = 'waiting' AND due_at > ?2", longest),
            ("UPDATE host SET next_at = ?1 WHERE next_at > ?2", host),
        ] {
            count += self.change(sql, (now.0, now.after(longest).0))?;
        }
        Ok(count)
    }
}
