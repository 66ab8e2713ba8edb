//! What the plan decides from: the heads of the queues and the counts of what is at work.

use super::pause::AWAKE;
use super::{Result, Tx};
use crate::bus::report::Counts;
use crate::model::{CrawlId, SnapshotId, Time};
use crate::plan::{Limits, OpenCrawl, View};
use std::collections::HashMap;

/// Runs that belong to no attempt any more: workers that were replaced or cancelled, and hooks
/// whose result nobody waits for. Until they are gone their owner keeps its place in the queue.
const LEAVING: &str = "SELECT 1 FROM run INDEXED BY run_open WHERE run.status <> 'ended' AND CASE
    run.kind
    WHEN 'crawl' THEN (SELECT c.status FROM crawl c WHERE c.id = run.crawl_id)
    WHEN 'snapshot' THEN (SELECT s.status FROM snapshot s WHERE s.id = run.snapshot_id)
    ELSE (SELECT r.status FROM result r WHERE r.owner = run.owner AND r.plugin = run.plugin
          AND r.hook = run.hook)
    END <> 'started'";

impl Tx<'_> {
    /// The view at `now`. What it reads does not grow with the queues.
    pub fn view(&self, limits: &Limits, now: Time) -> Result<View> {
        // What is paused takes no place.
        let sql = format!(
            "SELECT count(*) FROM run INDEXED BY run_open
             WHERE status <> 'ended' AND kind = ?1 AND {AWAKE}"
        );
        let workers = |kind: &str| -> Result<u32> {
            Ok(self
                .inner
                .prepare_cached(&sql)?
                .query_row([kind], |row| row.get(0))?)
        };
        let mut view = View {
            crawl_workers: workers("crawl")?,
            snapshot_workers: workers("snapshot")?,
            due_crawls: self.due_crawls(limits.workers_per_kind, now)?,
            ..View::default()
        };
        let mut next: Option<i64> = self
            .inner
            .prepare_cached(
                "SELECT min(retry_at) FROM crawl WHERE status = 'queued' AND retry_at > ?1",
            )?
            .query_row([now.0], |row| row.get(0))?;
        let running = self.snapshot_workers()?;
        for crawl in self.open_crawls()? {
            let due = self.due_snapshots(crawl, limits.workers_per_kind, now)?;
            let later: Option<i64> = self
                .inner
                .prepare_cached(
                    "SELECT min(retry_at) FROM snapshot
                     WHERE crawl_id = ?1 AND status = 'queued' AND retry_at > ?2",
                )?
                .query_row((crawl.0, now.0), |row| row.get(0))?;
            next = [next, later].into_iter().flatten().min();
            view.open_crawls.push(OpenCrawl {
                id: crawl,
                running: running.get(&crawl).copied().unwrap_or(0),
                due,
            });
        }
        view.next_due = next.map(Time);
        Ok(view)
    }

    fn due_crawls(&self, limit: u32, now: Time) -> Result<Vec<CrawlId>> {
        let sql = format!(
            "SELECT id FROM crawl WHERE status = 'queued' AND retry_at <= ?1
                 AND NOT EXISTS ({LEAVING} AND run.crawl_id = crawl.id)
             ORDER BY retry_at, id LIMIT ?2"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map((now.0, limit), |row| row.get(0).map(CrawlId))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn open_crawls(&self) -> Result<Vec<CrawlId>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT id FROM crawl WHERE status = 'started' AND ready = 1 ORDER BY id",
        )?;
        let rows = statement.query_map([], |row| row.get(0).map(CrawlId))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn due_snapshots(&self, crawl: CrawlId, limit: u32, now: Time) -> Result<Vec<SnapshotId>> {
        let sql = format!(
            "SELECT id FROM snapshot WHERE crawl_id = ?1 AND status = 'queued' AND retry_at <= ?2
                 AND NOT EXISTS ({LEAVING} AND run.snapshot_id = snapshot.id)
             ORDER BY retry_at, id LIMIT ?3"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows =
            statement.query_map((crawl.0, now.0, limit), |row| row.get(0).map(SnapshotId))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Workers of snapshots by crawl, those on their way out included.
    fn snapshot_workers(&self) -> Result<HashMap<CrawlId, u32>> {
        let sql = format!(
            "SELECT crawl_id, count(*) FROM run INDEXED BY run_open
             WHERE status <> 'ended' AND kind = 'snapshot' AND {AWAKE} GROUP BY crawl_id"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0).map(CrawlId)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// How many rows of a kind (`crawl`, `snapshot`, `result`) there are by status, of one crawl
    /// or of all.
    pub fn counts(&self, kind: &str, crawl: Option<CrawlId>) -> Result<Counts> {
        let mut statement = self.inner.prepare_cached(
            "SELECT status, n FROM tally WHERE kind = ?1 AND crawl_id = ?2 AND n > 0",
        )?;
        let id = crawl.map_or(0, |id| id.0);
        let rows = statement.query_map((kind, id), |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0) as u64))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
