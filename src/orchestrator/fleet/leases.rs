//! Deadlines of leases, and pages whose lease is lost.

use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::store::RunRow;
use crate::store::rows::lease::Leases;
use archivist_core::model::{Outcome, Owner, SnapshotId, Step, Time};
use archivist_core::plan::{Clocks, Host, HostId, Notice};

/// Reason of pages that wait because their lease was not renewed.
const LEASE_ENDED: &str = "the lease of its host was not renewed in time";
/// Reason of pages whose lease was lost.
const LEASE_LOST: &str = "the fleet gave it to another node";

impl Turn<'_> {
    /// Whether pages need leases now, and the clocks.
    pub(crate) fn leases(&self) -> TurnResult<Leases<'_>> {
        Ok(Leases {
            are_needed: self.tx.node()?.is_some(),
            boot: &self.engine.boot,
            clocks: Clocks {
                now: self.now,
                machine: self.machine,
            },
            orders: self.engine.node_orders.get(),
        })
    }

    /// Returns a host with the configured delay.
    pub(crate) fn host_view(&self, id: HostId) -> TurnResult<Host> {
        let pace = self.engine.settings.host_delay;
        Ok(self.tx.host_view(id, pace, &self.leases()?)?)
    }

    /// Returns the time on CLOCK_BOOTTIME, in milliseconds, from which on no hook of a page starts: the
    /// end of the lease of its host. `None` outside of a fleet.
    pub(crate) fn not_after(&self, page: Option<SnapshotId>) -> TurnResult<Option<u64>> {
        let Some(page) = page else {
            return Ok(None);
        };
        let deadline = self.tx.page_deadline(page, &self.engine.boot)?;
        Ok(deadline.map(|deadline| deadline.0))
    }

    /// Stops the pages whose lease has no time left; they wait for its renewal. It precedes the
    /// events of each turn, so that an orchestrator that was stopped for a while starts nothing
    /// under an old lease.
    pub(crate) fn keep_deadlines(&mut self) -> TurnResult<()> {
        let boot = &self.engine.boot;
        for page in self.tx.pages_past_deadline(boot, self.machine)? {
            self.requeue_page(page)?;
        }
        Ok(())
    }

    /// Returns when [`Turn::keep_deadlines`] has to be called next, as far as is known.
    pub(crate) fn next_deadline(&self) -> TurnResult<Option<Time>> {
        let clocks = self.leases()?.clocks;
        let next = self.tx.next_deadline(&self.engine.boot, self.machine)?;
        Ok(next.map(|deadline| clocks.wall(deadline)))
    }

    /// Stops a running page and queues it again, without counting the attempt. Hooks that this stops
    /// run again: how they end says nothing about the page.
    fn requeue_page(&mut self, id: SnapshotId) -> TurnResult<()> {
        let (owner, now) = (Owner::Snapshot(id), Some(self.now));
        let crawl = self.snapshot_of(id)?.crawl;
        self.tx
            .step_snapshot(id, Step::Requeue, now, Some(LEASE_ENDED), self.now)?;
        self.tx.take_back_attempt(Owner::Snapshot(id))?;
        self.tx.put_off_results(owner)?;
        self.stop_units_of(owner)?;
        self.changes.insert(Change::Snapshot { crawl, id });
        self.announce_snapshot(id, Notice::Changed)
    }

    /// Whether the time has passed from which on a run is not executed.
    pub(crate) fn is_expired(&self, run: &RunRow) -> bool {
        let now = self.machine.unsigned_abs();
        run.not_after.is_some_and(|end| now >= end)
    }

    /// Lets a hook run again, without counting the attempt, that was not executed because the lease of
    /// its host had ended. The page is stopped if the lease was not renewed since.
    pub(crate) fn forgive_late(&self, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
        if *outcome == Outcome::Late
            && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
        {
            self.tx.put_off_uncounted(run.owner, plugin, hook)?;
        }
        Ok(())
    }

    /// Forgets the pages whose lease this node has no more, and stops those that run.
    pub(super) fn discard_lost_pages(&mut self) -> TurnResult<()> {
        for id in self.tx.pages_without_lease()? {
            self.discard_page(id)?;
        }
        Ok(())
    }

    pub(super) fn discard_page(&mut self, id: SnapshotId) -> TurnResult<()> {
        self.tx.clear_page_epoch(id)?;
        let page = self.snapshot_of(id)?;
        if page.status.is_final() {
            return Ok(());
        }
        self.cancel_snapshot(page.crawl, id, LEASE_LOST)?;
        self.tidy_crawl(page.crawl)
    }
}
