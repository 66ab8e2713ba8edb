//! Counts for a monitoring system. None of these queries reads all pages, results or checks.

use crate::database::column::{FromRow, column};
use crate::database::{Counts, Result, Tx};
use archivist_core::model::Time;
use archivist_shared::bus::documents::report::{
    DURATIONS_MS, HookEnds, HostQueue, METRIC_HOSTS_MAX,
};
use rusqlite::Row;

impl FromRow for HookEnds {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<HookEnds> {
        let up_to: u64 = column(row, 2)?;
        let longest = DURATIONS_MS[DURATIONS_MS.len() - 1];
        Ok(HookEnds {
            plugin: column(row, 0)?,
            status: column(row, 1)?,
            up_to_ms: Some(up_to).filter(|up_to| *up_to <= longest),
            count: column(row, 3)?,
            milliseconds: column(row, 4)?,
            bytes: column(row, 5)?,
        })
    }
}

impl FromRow for HostQueue {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<HostQueue> {
        Ok(HostQueue { host: column(row, 0)?, queued: column(row, 1)? })
    }
}

impl Tx<'_> {
    pub fn hook_ends(&self) -> Result<Vec<HookEnds>> {
        self.all("SELECT plugin, status, up_to, n, milliseconds, bytes FROM hook_end", [])
    }

    /// Returns the number of units that start or run, by kind.
    pub fn running_units(&self) -> Result<Counts> {
        self.all(
            "SELECT kind, count(*) FROM run INDEXED BY run_open
             WHERE status IN ('starting', 'running') GROUP BY kind",
            [],
        )
    }

    /// Returns since when a queued page of a crawl that has started, or a queued crawl, is due: the
    /// earliest of these times, which is in the future if none is due.
    pub fn due_since(&self) -> Result<Option<Time>> {
        self.one(
            "SELECT min(since) FROM (
                 SELECT min(retry_at) AS since FROM crawl WHERE status = 'queued'
                 UNION ALL
                 SELECT (SELECT min(retry_at) FROM snapshot INDEXED BY snapshot_due
                         WHERE crawl_id = crawl.id AND status = 'queued')
                 FROM crawl WHERE status = 'started')",
            [],
        )
    }

    /// Returns the number of hosts with queued pages, and of those that wait for a delay.
    pub fn host_counts(&self, now: Time) -> Result<(u64, u64)> {
        self.one(
            "SELECT count(*), coalesce(sum(next_at > ?1), 0) FROM host INDEXED BY host_queued
             WHERE queued > 0",
            [now.0],
        )
    }

    pub fn busiest_hosts(&self) -> Result<Vec<HostQueue>> {
        self.all(
            "SELECT name, queued FROM host INDEXED BY host_queued WHERE queued > 0
             ORDER BY queued DESC LIMIT ?1",
            [METRIC_HOSTS_MAX],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Finished, NewCrawl, NewSnapshot};
    use archivist_core::model::{CrawlId, Figures, Owner, ResultState, SnapshotId, Verdict};
    use std::time::Instant;

    fn add(tx: &Tx<'_>, urls: &[String], hosts: usize) -> CrawlId {
        let crawl = NewCrawl {
            url: "https://a/",
            max_depth: 0,
            plugins: &[],
            config: &Default::default(),
            user: 0,
            now: Time(1_000),
        };
        let crawl = tx.add_crawl(&crawl).unwrap();
        let names: Vec<String> = (0..hosts).map(|n| format!("host{n}.test")).collect();
        let pages: Vec<_> = urls
            .iter()
            .enumerate()
            .map(|(n, url)| NewSnapshot { url, host: &names[n % hosts], ..NewSnapshot::default() })
            .collect();
        tx.add_snapshots(crawl, None, &pages, Time(1_000)).unwrap();
        crawl
    }

    fn end(tx: &Tx<'_>, crawl: CrawlId, page: i64, state: ResultState, took: i64) {
        let owner = Owner::Snapshot(SnapshotId(page));
        tx.start_result(owner, crawl, "wget", "hook", Time(5_000)).unwrap();
        let verdict = Verdict { state, error: None };
        let finished = Finished {
            verdict: &verdict,
            output: None,
            files: &[],
            size: 100,
            figures: &Figures::default(),
        };
        tx.finish_result(owner, "wget", "hook", &finished, Time(5_000 + took)).unwrap();
    }

    #[test]
    fn ends_are_counted_by_status_and_duration() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let urls: Vec<String> = (0..6).map(|n| format!("https://a/{n}")).collect();
        let crawl = add(&tx, &urls, 2);
        let durations = [0, 100, 101, 400_000, 7];
        for (page, took) in (1..).zip(durations) {
            end(&tx, crawl, page, ResultState::Succeeded, took);
        }
        end(&tx, crawl, 6, ResultState::Failed, 300_000);
        let found: Vec<_> = tx
            .hook_ends()
            .unwrap()
            .into_iter()
            .map(|end| (end.status, end.up_to_ms, end.count, end.milliseconds, end.bytes))
            .collect();
        let expected = [
            ("failed", Some(300_000), 1, 300_000, 100),
            ("succeeded", Some(100), 3, 107, 300),
            ("succeeded", Some(500), 1, 101, 100),
            ("succeeded", None, 1, 400_000, 100),
        ];
        let expected = expected
            .map(|(status, up_to, n, sum, bytes)| (status.to_owned(), up_to, n, sum, bytes));
        assert_eq!(found, expected);
        // A result that a retry queues again is counted again at its end.
        tx.requeue_all_results(Owner::Snapshot(SnapshotId(1))).unwrap();
        end(&tx, crawl, 1, ResultState::Succeeded, 50);
        let count = |end: &HookEnds| (end.up_to_ms == Some(100)).then_some(end.count);
        assert_eq!(tx.hook_ends().unwrap().iter().find_map(count), Some(4));
    }

    /// The bounds of the trigger are those of the document.
    #[test]
    fn each_bound_is_a_bucket() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let urls: Vec<String> = (0..10).map(|n| format!("https://a/{n}")).collect();
        let crawl = add(&tx, &urls, 1);
        for (page, bound) in (1..).zip(DURATIONS_MS) {
            end(&tx, crawl, page, ResultState::Succeeded, bound as i64);
        }
        let found: Vec<_> = tx.hook_ends().unwrap();
        let bounds: Vec<_> = found.iter().filter_map(|end| end.up_to_ms).collect();
        assert_eq!(bounds, DURATIONS_MS);
    }

    #[test]
    fn queues_of_hosts_follow_the_pages() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let urls: Vec<String> = (0..5).map(|n| format!("https://a/{n}")).collect();
        let crawl = add(&tx, &urls, 2);
        let hosts = || -> Vec<_> {
            let hosts = tx.busiest_hosts().unwrap().into_iter();
            hosts.map(|host| (host.host, host.queued)).collect()
        };
        let host = |n: usize, queued| (format!("host{n}.test"), queued);
        assert_eq!(hosts(), [host(0, 3), host(1, 2)]);
        let page = SnapshotId(1);
        let step = |step| tx.step_snapshot(page, step, None, None, Time(2_000)).unwrap();
        step(archivist_core::model::Step::Start);
        assert_eq!(hosts(), [host(1, 2), host(0, 2)]);
        step(archivist_core::model::Step::Seal);
        assert_eq!(hosts().iter().map(|(_, n)| n).sum::<u64>(), 4);
        let first = tx.host_of(page).unwrap();
        tx.host_until(first, Time(9_000), "429", Time(2_000)).unwrap();
        assert_eq!(tx.host_counts(Time(3_000)).unwrap(), (2, 1));
        assert_eq!(tx.host_counts(Time(9_000)).unwrap(), (2, 0));
        assert_eq!(tx.due_since().unwrap(), Some(Time(1_000)));
        let _ = crawl;
    }

    /// Run with `cargo test --release -p archivist-orchestrator metrics_of -- --ignored --nocapture`.
    #[test]
    #[ignore = "writes a million rows"]
    fn metrics_of_a_million_pages() {
        const PAGES: usize = 1_000_000;
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let started = Instant::now();
        for start in (0..PAGES).step_by(10_000) {
            let tx = database.begin().unwrap();
            let urls: Vec<String> = (start..start + 10_000)
                .map(|n| format!("https://host{}.test/{n}", n % 10_000))
                .collect();
            let crawl = add(&tx, &urls, 10_000);
            for page in (start + 1..start + 10_000).step_by(10) {
                let state = [ResultState::Succeeded, ResultState::Failed][page % 2];
                end(&tx, crawl, page as i64, state, (page % 200_000) as i64);
            }
            tx.commit().unwrap();
        }
        eprintln!("rows written in {:?}", started.elapsed());
        let tx = database.begin().unwrap();
        for _ in 0..3 {
            let started = Instant::now();
            let now = Time(10_000_000);
            let hooks = tx.hook_ends().unwrap().len();
            let hosts = (tx.host_counts(now).unwrap(), tx.busiest_hosts().unwrap());
            let due = tx.due_since().unwrap();
            let pages = tx.counts("snapshot", None).unwrap();
            let units = tx.running_units().unwrap().len();
            let took = started.elapsed();
            assert_eq!((hosts.1.len(), units), (50, 0));
            eprintln!(
                "{hooks} rows of ends, {} hosts, due {}, {pages:?}: {took:?}",
                hosts.0.0,
                due.is_some()
            );
        }
    }
}
