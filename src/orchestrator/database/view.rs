//! Reads what the plan decides on workers from: the first rows of the queues and the counts of running units.
//! The plan decides the order of pages (core, plan/page_order.rs); the queries here follow it.

use super::{Counts, Result, Tx};
use crate::database::column::{Columns, columns};
use crate::database::rows::entry::HAS_ENTRIES;
use crate::database::rows::fleet::HAS_OPEN_PAGES;
use crate::database::rows::host::NetworkOf;
use crate::database::rows::lease::Leases;
use crate::database::rows::pause::{AWAKE, WAITS_FOR_PAUSED};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_core::plan::{Due, Host, HostId, HostRange, Limits, OpenCrawl, PagePosition, View};
use archivist_core::plan::{against_host, host_turns, retries_first, take_turns};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// SQL query for open runs of earlier attempts: workers that were replaced or cancelled, and hooks
/// whose result is not started any more. Their owner stays in the queue until they have ended.
const LEAVING: &str =
    "SELECT 1 FROM run INDEXED BY run_open WHERE run.status IN ('starting', 'running') AND CASE
     run.kind
     WHEN 'crawl' THEN (SELECT c.status FROM crawl c WHERE c.id = run.crawl_id)
     WHEN 'snapshot' THEN (SELECT s.status FROM snapshot s WHERE s.id = run.snapshot_id)
     ELSE (SELECT r.status FROM result r WHERE r.owner = run.owner AND r.plugin = run.plugin
           AND r.hook = run.hook)
     END <> 'started'";

#[derive(Clone, Copy)]
pub struct ViewQuery<'a> {
    pub limits: &'a Limits,
    /// Delay between two starts on a host that asks for no longer one.
    pub pace: Duration,
    /// Whether pages need leases, and the clocks.
    pub leases: Leases<'a>,
    pub network: NetworkOf<'a>,
}

struct DuePagesQuery<'a> {
    crawl: CrawlId,
    limits: &'a Limits,
    pace: Duration,
    leases: Leases<'a>,
    network: NetworkOf<'a>,
    now: Time,
}

columns! { PagePosition: retry_at, id }

impl Tx<'_> {
    /// Returns the present view. Reading it takes no longer for longer queues.
    pub fn view(&self, query: &ViewQuery<'_>) -> Result<View> {
        let ViewQuery { limits, pace, leases, network } = *query;
        let now = leases.clocks.now;
        // Paused crawls and snapshots hold no slot.
        let sql = format!(
            "SELECT count(*) FROM run INDEXED BY run_open
             WHERE status IN ('starting', 'running') AND kind = ?1 AND {AWAKE}
                 AND NOT (kind = 'crawl' AND {WAITS_FOR_PAUSED})"
        );
        let workers = |kind: &str| -> Result<u32> { self.one(&sql, [kind]) };
        let mut view = View {
            now,
            crawl_workers: workers("crawl")?,
            snapshot_workers: workers("snapshot")?,
            due_crawls: self.due_crawls(limits.workers_per_kind, now)?,
            ..View::default()
        };
        let mut next: Option<i64> = self.one(
            "SELECT min(retry_at) FROM crawl WHERE status = 'queued' AND retry_at > ?1",
            [now.0],
        )?;
        let running = self.snapshot_workers()?;
        for crawl in self.open_crawls()? {
            let query = DuePagesQuery { crawl, limits, pace, leases, network, now };
            let due = self.due_snapshots(&query, &mut view.hosts)?;
            let later: Option<i64> = self.one(
                "SELECT min(retry_at) FROM snapshot
                 WHERE crawl_id = ?1 AND status = 'queued' AND retry_at > ?2",
                (crawl.0, now.0),
            )?;
            next = [next, later].into_iter().flatten().min();
            view.open_crawls.push(OpenCrawl {
                id: crawl,
                running: running.get(&crawl).copied().unwrap_or(0),
                due,
            });
        }
        // A page of a delayed host is due when the delay is over.
        let delays = view.hosts.values().map(|host| host.next_at.0);
        let delay = delays.filter(|next_at| *next_at > now.0).min();
        view.next_due = [next, delay].into_iter().flatten().min().map(Time);
        Ok(view)
    }

    fn due_crawls(&self, limit: u32, now: Time) -> Result<Vec<CrawlId>> {
        let sql = format!(
            "SELECT id FROM crawl WHERE status = 'queued' AND retry_at <= ?1
                 AND (fleet IS NOT 'open' OR {HAS_OPEN_PAGES}) AND NOT EXISTS ({LEAVING} AND run.crawl_id = crawl.id)
             ORDER BY retry_at, id LIMIT ?2"
        );
        self.all(&sql, (now.0, limit))
    }

    fn open_crawls(&self) -> Result<Vec<CrawlId>> {
        // Pages start after the entries of their crawl: looking for those that are none would read all.
        let sql = format!(
            "SELECT id FROM crawl WHERE status = 'started' AND phase = 'snapshots'
                 AND NOT {HAS_ENTRIES} ORDER BY id"
        );
        self.all(&sql, [])
    }

    /// Returns the due pages of a crawl in the order of the plan. Hosts that may not start a page
    /// now are left out, however many of their pages wait.
    fn due_snapshots(
        &self,
        query: &DuePagesQuery<'_>,
        hosts: &mut BTreeMap<HostId, Host>,
    ) -> Result<Vec<Due>> {
        let enough = query.limits.workers_per_kind as usize;
        let mut pages: Vec<Vec<Due>> = Vec::new();
        for range in host_turns(self.last_host(query.crawl)?) {
            let mut after = range.after;
            while pages.len() < enough
                && let Some(id) = self.next_host(query.crawl, HostRange { after, ..range })?
            {
                after = id;
                let host = match hosts.get(&id) {
                    Some(host) => host.clone(),
                    None => self.host_view(id, query.pace, &query.leases, query.network)?,
                };
                let blocked = against_host(&host, query.limits, query.now).is_some();
                let due = if blocked {
                    Vec::new()
                } else {
                    self.first_pages(query, id, query.limits.snapshots_per_host - host.running)?
                };
                // A host without due pages does not decide when the next decision is.
                if blocked || !due.is_empty() {
                    hosts.insert(id, host);
                }
                if !due.is_empty() {
                    pages.push(due);
                }
            }
        }
        let retries = self.due_retries(query, hosts)?;
        Ok(retries_first(&retries, &take_turns(&pages, enough), enough))
    }

    /// Returns the pages of a crawl that are due for a retry and whose hosts may start a page now,
    /// the one that is due first first.
    fn due_retries(
        &self,
        query: &DuePagesQuery<'_>,
        hosts: &mut BTreeMap<HostId, Host>,
    ) -> Result<Vec<Due>> {
        let sql = format!(
            "SELECT id, host_id FROM snapshot INDEXED BY snapshot_again
             WHERE crawl_id = ?1 AND status = 'queued' AND attempts > 0 AND retry_at <= ?2
                 AND NOT EXISTS ({LEAVING} AND run.snapshot_id = snapshot.id)
             ORDER BY retry_at, id LIMIT ?3"
        );
        let enough = query.limits.workers_per_kind;
        let rows: Vec<(SnapshotId, HostId)> =
            self.all(&sql, (query.crawl.0, query.now.0, enough))?;
        let mut taken: BTreeMap<HostId, u32> = BTreeMap::new();
        let mut retries = Vec::new();
        for (id, host) in rows {
            let due = Due { id, host };
            let host = match hosts.get(&due.host) {
                Some(host) => host.clone(),
                None => self.host_view(due.host, query.pace, &query.leases, query.network)?,
            };
            let taken = taken.entry(due.host).or_default();
            let is_free = host.running + *taken < query.limits.snapshots_per_host;
            if is_free && against_host(&host, query.limits, query.now).is_none() {
                *taken += 1;
                retries.push(due);
            }
            hosts.insert(due.host, host);
        }
        Ok(retries)
    }

    /// Returns the host of which a snapshot of a crawl started last.
    fn last_host(&self, crawl: CrawlId) -> Result<HostId> {
        self.one("SELECT last_host FROM crawl WHERE id = ?1", [crawl.0])
    }

    /// Returns the first host of a range of which a crawl has queued snapshots.
    fn next_host(&self, crawl: CrawlId, range: HostRange) -> Result<Option<HostId>> {
        self.first(
            "SELECT host_id FROM snapshot INDEXED BY snapshot_lane
             WHERE crawl_id = ?1 AND status = 'queued' AND host_id > ?2 AND host_id <= ?3
             ORDER BY host_id LIMIT 1",
            (crawl.0, range.after.0, range.up_to.0),
        )
    }

    /// Returns the first due pages of a crawl on one host, in the order of [`PagePosition`], which
    /// the index has too.
    fn first_pages(&self, query: &DuePagesQuery<'_>, host: HostId, limit: u32) -> Result<Vec<Due>> {
        let sql = format!(
            "SELECT {} FROM snapshot INDEXED BY snapshot_lane
             WHERE crawl_id = ?1 AND host_id = ?2 AND status = 'queued' AND retry_at <= ?3
                 AND NOT EXISTS ({LEAVING} AND run.snapshot_id = snapshot.id)
             ORDER BY retry_at, id LIMIT ?4",
            PagePosition::COLUMNS
        );
        let limit = limit.min(query.limits.workers_per_kind);
        let pages: Vec<PagePosition> =
            self.all(&sql, (query.crawl.0, host.0, query.now.0, limit))?;
        debug_assert!(pages.is_sorted(), "the index has another order than the plan");
        Ok(pages.iter().map(|page| Due { id: page.id, host }).collect())
    }

    /// Returns the number of open runs of snapshot workers by crawl, including workers that are
    /// ending.
    pub fn snapshot_workers(&self) -> Result<HashMap<CrawlId, u32>> {
        let sql = format!(
            "SELECT crawl_id, count(*) FROM run INDEXED BY run_open
             WHERE status IN ('starting', 'running') AND kind = 'snapshot' AND {AWAKE} GROUP BY crawl_id"
        );
        self.all(&sql, [])
    }

    /// Returns how many rows of a kind (`crawl`, `snapshot`, `result`) have each status, of one
    /// crawl or of all crawls.
    pub fn counts(&self, kind: &str, crawl: Option<CrawlId>) -> Result<Counts> {
        self.all(
            "SELECT status, n FROM tally WHERE kind = ?1 AND crawl_id = ?2 AND n > 0",
            (kind, crawl.map_or(0, |id| id.0)),
        )
    }
}
