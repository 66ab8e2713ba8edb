//! Pages that are cancelled, and why. A crawl may have a million, so no query reads them all.

use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Step, Time};

/// The most rows that one statement changes.
const AT_ONCE: usize = 10_000;

/// In two parts, because no index has the open pages alone: there may be a million final ones.
const OPEN_SNAPSHOTS: &str = "SELECT id FROM snapshot INDEXED BY snapshot_due
        WHERE crawl_id = ?1 AND status = 'queued'
    UNION ALL SELECT id FROM snapshot INDEXED BY snapshot_begun
        WHERE crawl_id = ?1 AND status IN ('started', 'paused')
    ORDER BY id";

/// The range is that of "CRAWL_…", in the order of the index; LIKE would read all reasons.
const LEFT_OUT: &str = "SELECT reason, count(*) FROM snapshot
    WHERE crawl_id = ?1 AND status = 'cancelled' AND reason >= 'CRAWL_' AND reason < 'CRAWL`'
        AND directory IS NULL
    GROUP BY reason ORDER BY count(*) DESC LIMIT 1";
const LEFT_FOR: &str = "SELECT reason FROM snapshot
    WHERE crawl_id = ?1 AND status = 'cancelled'
        AND reason IN (SELECT value FROM json_each(?2)) LIMIT 1";

impl Tx<'_> {
    /// Returns the snapshots of a crawl that are not final, oldest first.
    pub fn open_snapshots(&self, crawl: CrawlId) -> Result<Vec<SnapshotId>> {
        self.all(OPEN_SNAPSHOTS, [crawl.0])
    }

    /// Returns at most `limit` queued snapshots of a crawl.
    pub fn some_queued(&self, crawl: CrawlId, limit: usize) -> Result<Vec<SnapshotId>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(
            "SELECT id FROM snapshot INDEXED BY snapshot_lane
             WHERE crawl_id = ?1 AND status = 'queued' LIMIT ?2",
            (crawl.0, limit),
        )
    }

    /// Cancels the snapshots of a crawl that were never started. Returns how many these were.
    /// `pause` is called after every 10,000 rows.
    pub fn cancel_unbegun(
        &self,
        crawl: CrawlId,
        reason: &str,
        now: Time,
        pause: fn(),
    ) -> Result<usize> {
        let mut all = 0;
        loop {
            let some = self.cancel_some_unbegun(crawl, reason, now, AT_ONCE)?;
            all += some;
            if some < AT_ONCE {
                return Ok(all);
            }
            pause();
        }
    }

    /// Cancels at most `limit` snapshots of a crawl that were never started, oldest first, whose
    /// rows are near each other. Returns how many these were.
    pub fn cancel_some_unbegun(
        &self,
        crawl: CrawlId,
        reason: &str,
        now: Time,
        limit: usize,
    ) -> Result<usize> {
        let cancelled = Lifecycle::Queued.apply(Step::Cancel).map_err(|source| {
            crate::database::DatabaseError::Illegal {
                what: format!("snapshots of {crawl}"),
                source,
            }
        })?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.change(
            "UPDATE snapshot SET status = ?2, retry_at = NULL, reason = ?3, ended_at = ?4,
                    changed_at = ?4
             WHERE id IN (SELECT id FROM snapshot INDEXED BY snapshot_due
                          WHERE crawl_id = ?1 AND status = 'queued' AND directory IS NULL
                          LIMIT ?5)",
            (crawl.0, cancelled.as_str(), reason, now.0, limit),
        )
    }

    /// Returns the limit that excluded most pages of a crawl, and how many it excluded.
    pub fn left_out(&self, crawl: CrawlId) -> Result<Option<(String, u64)>> {
        self.first(LEFT_OUT, [crawl.0])
    }

    /// Returns one of these reasons for which pages of a crawl were cancelled.
    pub fn left_for(&self, crawl: CrawlId, reasons: &[&str]) -> Result<Option<String>> {
        self.first(LEFT_FOR, (crawl.0, serde_json::to_string(reasons)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::rows::snapshot::tests::fill;
    use rusqlite::StatementStatus;

    /// SQLite's steps for a query about the first crawl.
    fn steps(tx: &Tx<'_>, query: &str, parameters: impl rusqlite::Params) -> (Vec<String>, i32) {
        let mut statement = tx.inner.prepare(query).unwrap();
        let rows = statement
            .query_map(parameters, |row| row.get_ref(0).map(|value| format!("{value:?}")))
            .unwrap();
        let rows = rows.map(|row| row.unwrap()).collect();
        (rows, statement.get_status(StatementStatus::VmStep))
    }

    /// A cancel of a million pages asks this for each piece, and no other caller is answered
    /// meanwhile.
    #[test]
    fn final_pages_of_a_crawl_are_not_read_when_it_is_cancelled() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let mut of_sizes = Vec::new();
        for pages in [20, 2000] {
            let tx = database.begin().unwrap();
            let crawl = fill(&tx, pages);
            let begun = tx.open_snapshots(crawl).unwrap().split_off(pages - 2);
            for page in &begun {
                tx.equip_snapshot(*page, "token", "/somewhere").unwrap();
                let step = |step| tx.step_snapshot(*page, step, None, None, Time(2)).unwrap();
                step(Step::Start);
            }
            tx.step_snapshot(begun[1], Step::Pause, None, None, Time(2)).unwrap();
            let cancelled = tx.cancel_unbegun(crawl, "why", Time(3), || ()).unwrap();
            assert_eq!(cancelled, pages - 2);
            assert_eq!(tx.open_snapshots(crawl).unwrap(), begun);
            let open = steps(&tx, OPEN_SNAPSHOTS, [crawl.0]);
            let left_for = steps(&tx, LEFT_FOR, (crawl.0, r#"["x", "y"]"#));
            of_sizes.push((open.0.len(), open.1, left_for));
        }
        assert_eq!(of_sizes[0], of_sizes[1]);
    }

    #[test]
    fn pages_that_are_left_out_are_counted_in_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let crawl = fill(&tx, 9);
        for (why, count) in [("CRAWL_MAX_URLS=2", 4), ("CRAWLER", 3), ("why", 2)] {
            tx.cancel_some_unbegun(crawl, why, Time(3), count).unwrap();
        }
        let left_out = tx.left_out(crawl).unwrap();
        assert_eq!(left_out, Some(("CRAWL_MAX_URLS=2".to_owned(), 4)));
        let plan = format!("EXPLAIN QUERY PLAN {LEFT_OUT}");
        let mut statement = tx.inner.prepare(&plan).unwrap();
        let plan: String = statement.query_row([1], |row| row.get(3)).unwrap();
        assert!(plan.contains("COVERING INDEX snapshot_cancelled"), "{plan}");
    }

    #[test]
    fn unstarted_snapshots_are_cancelled_and_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let (other, crawl) = (fill(&tx, 2), fill(&tx, AT_ONCE + 5));
        let begun = tx.open_snapshots(crawl).unwrap()[7];
        tx.equip_snapshot(begun, "token", "/somewhere").unwrap();
        let step = |step| tx.step_snapshot(begun, step, None, None, Time(2)).unwrap();
        step(Step::Start);
        step(Step::Requeue);
        let cancelled = tx.cancel_unbegun(crawl, "why", Time(3), || ()).unwrap();
        assert_eq!(cancelled, AT_ONCE + 4);
        let counts = tx.counts("snapshot", Some(crawl)).unwrap();
        assert_eq!(counts["cancelled"], cancelled as u64);
        assert_eq!(counts["queued"], 1);
        assert_eq!(tx.counts("snapshot", Some(other)).unwrap()["queued"], 2);
        let last = SnapshotId(begun.0 + 1);
        let row = tx.snapshot(last).unwrap().unwrap();
        assert_eq!((row.status, row.reason.as_deref()), (Lifecycle::Cancelled, Some("why")));
    }
}
