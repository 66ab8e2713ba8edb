//! What the plan decides from: the heads of the queues and the counts of what is at work.

use super::{Result, Tx};
use crate::store::rows::pause::{AWAKE, WAITS_FOR_PAUSED};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_core::plan::{Due, Host, HostId, Limits, OpenCrawl, View, against_host};
use archivist_shared::bus::documents::report::Counts;
use rusqlite::OptionalExtension;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Runs that belong to no attempt any more: workers that were replaced or cancelled, and hooks
/// whose result nobody waits for. Until they are gone their owner keeps its place in the queue.
const LEAVING: &str = "SELECT 1 FROM run INDEXED BY run_open WHERE run.status <> 'ended' AND CASE
    run.kind
    WHEN 'crawl' THEN (SELECT c.status FROM crawl c WHERE c.id = run.crawl_id)
    WHEN 'snapshot' THEN (SELECT s.status FROM snapshot s WHERE s.id = run.snapshot_id)
    ELSE (SELECT r.status FROM result r WHERE r.owner = run.owner AND r.plugin = run.plugin
          AND r.hook = run.hook)
    END <> 'started'";

/// The queue of one crawl, host by host.
struct Lanes<'a> {
    crawl: CrawlId,
    limits: &'a Limits,
    pace: Duration,
    now: Time,
}

impl Tx<'_> {
    /// The view at `now`. What it reads does not grow with the queues. `pace` is from one start on
    /// a host to the next, where the host does not ask for more.
    pub fn view(&self, limits: &Limits, pace: Duration, now: Time) -> Result<View> {
        // What is paused takes no place.
        let sql = format!(
            "SELECT count(*) FROM run INDEXED BY run_open
             WHERE status <> 'ended' AND kind = ?1 AND {AWAKE}
                 AND NOT (kind = 'crawl' AND {WAITS_FOR_PAUSED})"
        );
        let workers = |kind: &str| -> Result<u32> {
            Ok(self
                .inner
                .prepare_cached(&sql)?
                .query_row([kind], |row| row.get(0))?)
        };
        let mut view = View {
            now,
            crawl_workers: workers("crawl")?,
            snapshot_workers: workers("snapshot")?,
            due_crawls: self.due_crawls(limits.workers_per_kind, now)?,
            checks: self.checks(limits.fast_checks.max(limits.slow_checks))?,
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
            let lanes = Lanes {
                crawl,
                limits,
                pace,
                now,
            };
            let due = self.due_snapshots(&lanes, &mut view.hosts)?;
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
        // What is due on a host that is to be left alone for a while is due after that.
        let hosts = view.hosts.values().map(|host| host.next_at.0);
        let hosts = hosts.filter(|next_at| *next_at > now.0).min();
        view.next_due = [next, hosts].into_iter().flatten().min().map(Time);
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

    /// The hosts of a crawl take turns: the one after the host that was begun last is first. A host
    /// that takes no snapshot now is passed over, however many of its pages wait.
    fn due_snapshots(
        &self,
        lanes: &Lanes<'_>,
        hosts: &mut BTreeMap<HostId, Host>,
    ) -> Result<Vec<Due>> {
        let enough = lanes.limits.workers_per_kind as usize;
        let mut free: Vec<Vec<Due>> = Vec::new();
        let last = self.last_host(lanes.crawl)?;
        for (from, to) in [(last.0, i64::MAX), (i64::MIN, last.0)] {
            let mut after = HostId(from);
            while free.len() < enough
                && let Some(id) = self.next_lane(lanes.crawl, after, to)?
            {
                after = id;
                let host = match hosts.get(&id) {
                    Some(host) => host.clone(),
                    None => self.host_view(id, lanes.pace)?,
                };
                let blocked = against_host(&host, lanes.limits, lanes.now).is_some();
                let due = if blocked {
                    Vec::new()
                } else {
                    self.heads(lanes, id, lanes.limits.snapshots_per_host - host.running)?
                };
                // One that nothing is due of has no say in when to look again.
                if blocked || !due.is_empty() {
                    hosts.insert(id, host);
                }
                if !due.is_empty() {
                    free.push(due);
                }
            }
        }
        let rounds = free.iter().map(Vec::len).max().unwrap_or(0);
        let turns = (0..rounds).flat_map(|round| free.iter().filter_map(move |due| due.get(round)));
        Ok(turns.take(enough).copied().collect())
    }

    /// The host whose snapshot was begun last in a crawl.
    fn last_host(&self, crawl: CrawlId) -> Result<HostId> {
        Ok(self
            .inner
            .prepare_cached("SELECT last_host FROM crawl WHERE id = ?1")?
            .query_row([crawl.0], |row| row.get(0).map(HostId))?)
    }

    /// The next host, up to `to`, of which a crawl has queued snapshots.
    fn next_lane(&self, crawl: CrawlId, after: HostId, to: i64) -> Result<Option<HostId>> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT host_id FROM snapshot INDEXED BY snapshot_lane
                 WHERE crawl_id = ?1 AND status = 'queued' AND host_id > ?2 AND host_id <= ?3
                 ORDER BY host_id LIMIT 1",
            )?
            .query_row((crawl.0, after.0, to), |row| row.get(0).map(HostId))
            .optional()?)
    }

    /// The oldest due snapshots of a crawl on one host.
    fn heads(&self, lanes: &Lanes<'_>, host: HostId, limit: u32) -> Result<Vec<Due>> {
        let sql = format!(
            "SELECT id FROM snapshot INDEXED BY snapshot_lane
             WHERE crawl_id = ?1 AND host_id = ?2 AND status = 'queued' AND retry_at <= ?3
                 AND NOT EXISTS ({LEAVING} AND run.snapshot_id = snapshot.id)
             ORDER BY retry_at, id LIMIT ?4"
        );
        let limit = limit.min(lanes.limits.workers_per_kind);
        let mut statement = self.inner.prepare_cached(&sql)?;
        let due = |id: SnapshotId| Due { id, host };
        let rows = statement.query_map((lanes.crawl.0, host.0, lanes.now.0, limit), |row| {
            row.get(0).map(SnapshotId).map(due)
        })?;
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
