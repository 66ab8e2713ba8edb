//! What failed is tried once more: a page, a crawl, or all that failed.

use crate::main_loop::notify::beat;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::work::ends::WITH_CRAWL;
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, Step};
use std::collections::BTreeMap;

/// Pages between two beats for the watchdog.
const AT_ONCE: usize = 10_000;

impl Turn<'_> {
    /// Queues the failed and skipped results of `id` again; with a plugin or hook, all of its results.
    pub(crate) fn retry(&mut self, id: Owner, hook: Option<&str>) -> TurnResult<u32> {
        let (crawl, snapshots) = match id {
            Owner::Snapshot(snapshot) => (self.snapshot_of(snapshot)?.crawl, vec![snapshot]),
            Owner::Crawl(crawl) => {
                self.crawl_of(crawl)?;
                let done = [Lifecycle::Sealed, Lifecycle::Cancelled];
                (crawl, self.tx.snapshots_in(crawl, &done)?)
            }
        };
        let installed = match id {
            Owner::Crawl(crawl) => self.retry_install(crawl, hook)?,
            Owner::Snapshot(_) => 0,
        };
        let count = installed + self.retry_snapshots(&snapshots, hook)?;
        if count == 0 {
            let what = hook.map_or("failed or skipped".to_owned(), |hook| format!("'{hook}'"));
            return Err(invalid(format!("{id} has no {what} result to retry")));
        }
        self.reopen(crawl)?;
        Ok(count)
    }

    /// The same for every sealed page that has a failed result, or one of `hook`. What was cancelled, or is not over, is
    /// left alone.
    pub(crate) fn retry_failed(&mut self, hook: Option<&str>) -> TurnResult<u32> {
        let mut crawls: BTreeMap<CrawlId, Vec<SnapshotId>> = BTreeMap::new();
        for (crawl, snapshot) in self.tx.snapshots_that_failed(hook)? {
            crawls.entry(crawl).or_default().push(snapshot);
        }
        let mut count: u32 = 0;
        for (crawl, snapshots) in crawls {
            count = count.saturating_add(self.retry_snapshots(&snapshots, hook)?);
            self.reopen(crawl)?;
        }
        Ok(count)
    }

    fn retry_snapshots(&mut self, ids: &[SnapshotId], hook: Option<&str>) -> TurnResult<u32> {
        let mut count: u32 = 0;
        for some in ids.chunks(AT_ONCE) {
            for id in some {
                count = count.saturating_add(self.retry_snapshot(*id, hook)?);
            }
            beat();
        }
        Ok(count)
    }

    /// Queues a snapshot once more for the results that it still owes.
    fn retry_snapshot(&mut self, id: SnapshotId, hook: Option<&str>) -> TurnResult<u32> {
        let owner = Owner::Snapshot(id);
        let snapshot = self.snapshot_of(id)?;
        let state = snapshot.status;
        if !state.is_final() && state != Lifecycle::Queued {
            return Err(invalid(format!("{id} is {state}, it is not over yet")));
        }
        let mut count = u32::try_from(self.tx.requeue_results(owner, hook)?).unwrap_or(u32::MAX);
        // A reason says that it ended before all of its hooks had their turn.
        if count == 0 && hook.is_none() && snapshot.reason.is_some() {
            count = 1;
        }
        if count > 0 && state.is_final() {
            self.tx
                .step_snapshot(id, Step::Retry, Some(self.now), None, self.now)?;
            let crawl = snapshot.crawl;
            self.changes.insert(Change::Snapshot { crawl, id });
        }
        Ok(count)
    }

    /// Has a crawl that was over work on its pages again.
    fn reopen(&mut self, crawl: CrawlId) -> TurnResult<()> {
        if !self.crawl_of(crawl)?.status.is_final() {
            return Ok(());
        }
        self.tx.leave_behind(crawl, &WITH_CRAWL)?;
        // What its setup started is gone: all of it is done anew.
        self.tx.requeue_all_results(Owner::Crawl(crawl))?;
        self.tx
            .step_crawl(crawl, Step::Retry, Some(self.now), None, self.now)?;
        self.changes.insert(Change::Crawl(crawl));
        Ok(())
    }
}
