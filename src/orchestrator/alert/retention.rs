//! How long results of checks stay. `keep_until` of a row is written when its check ends, and again
//! when a newer result replaces it.

use crate::database::{Result, Tx};
use archivist_core::model::{RunId, Time};
use archivist_core::plan::keep_until;
use std::time::Duration;

/// An ended check: id, time of its end, retention of its kind in milliseconds.
type Ended = (RunId, Time, u64);

impl Tx<'_> {
    /// Makes the result of the check `id`, which has just ended, the newest of its watch, kind and
    /// URL. The result before it then stays for its retention alone.
    pub(super) fn keep_newest(&self, id: RunId) -> Result<()> {
        let newest = self.one(
            "SELECT run_id, ended_at, keep_for FROM check_result JOIN run ON run.id = run_id
             WHERE run_id = ?1",
            [id.0],
        )?;
        self.keep(newest, true)?;
        let before = self.first(
            "SELECT old.run_id, run.ended_at, old.keep_for FROM check_result AS old
             JOIN check_result AS new ON new.run_id = ?1 AND old.watch = new.watch
                 AND old.kind = new.kind AND old.url = new.url AND old.run_id <> new.run_id
             JOIN run ON run.id = old.run_id
             WHERE old.record IS NOT NULL ORDER BY old.run_id DESC LIMIT 1",
            [id.0],
        )?;
        match before {
            Some(before) => self.keep(before, false),
            None => Ok(()),
        }
    }

    fn keep(&self, (id, ended, keep): Ended, is_newest: bool) -> Result<()> {
        let keep = Duration::from_millis(keep);
        self.execute(
            "UPDATE check_result SET keep_until = ?2 WHERE run_id = ?1",
            (id.0, keep_until(ended, keep, is_newest).0),
        )
    }

    /// Returns when the first result expires.
    pub fn oldest_check_until(&self) -> Result<Option<Time>> {
        self.one("SELECT min(keep_until) FROM check_result WHERE keep_until IS NOT NULL", [])
    }

    /// Deletes expired results, and returns their number. An archive check whose crawl is still
    /// open stays for its retention again: its row is the only record that the crawl belongs to the
    /// watch.
    pub fn prune_checks(&self, now: Time) -> Result<usize> {
        self.execute(
            "UPDATE check_result SET keep_until = ?1 + max(keep_for, 1)
             WHERE keep_until <= ?1 AND kind = 'archive' AND EXISTS
                 (SELECT 1 FROM crawl WHERE id = CAST(substr(record ->> 'crawl', 2) AS INTEGER)
                     AND status NOT IN ('sealed', 'cancelled'))",
            [now.0],
        )?;
        self.change(
            "DELETE FROM check_result WHERE keep_until IS NOT NULL AND keep_until <= ?1",
            [now.0],
        )
    }
}
