//! Rows of leases: which hosts the fleet leased to this node, and until when.

use crate::database::column::{Columns, FromRow, column, columns};
use crate::database::{Result, Tx};
use archivist_core::fleet::{BootTime, Epoch, HostKey, Lease, Release};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::plan::{Clocks, HostId, HostLease, RecordedLease};
use rusqlite::Row;

/// What decides whether a lease holds.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    /// Whether the data directory belongs to a fleet: pages need leases.
    pub are_needed: bool,
    pub boot: &'a str,
    /// Both clocks.
    pub clocks: Clocks,
    /// What the fleet ordered of this node; `None` until its first orders of a connection.
    pub orders: Option<NodeOrders>,
}

/// What the fleet orders of a node as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeOrders {
    /// It starts no page and releases its hosts.
    pub draining: bool,
    /// It claims no hosts: other nodes have fewer.
    pub claims_none: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    pub host: HostId,
    /// Its name, as in URLs.
    pub name: HostKey,
    pub epoch: Epoch,
    pub recorded: RecordedLease,
    /// The next page starts no earlier.
    pub next_at: Time,
    /// The host has a queued page that the fleet gave to this node.
    pub has_queued: bool,
    /// The host is for another node.
    pub leaves: bool,
}

/// A lease that the node has released, until the database confirms that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedLease {
    pub release: Release,
    /// It is sent after the messages up to this one.
    pub after: u64,
}

fn milliseconds(time: BootTime) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

impl FromRow for LeaseRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<LeaseRow> {
        Ok(LeaseRow {
            host: column(row, 0)?,
            name: column(row, 1)?,
            epoch: column(row, 2)?,
            recorded: RecordedLease { deadline: column(row, 3)?, of_this_boot: column(row, 4)? },
            next_at: column(row, 5)?,
            has_queued: column(row, 6)?,
            leaves: column(row, 7)?,
        })
    }
}

columns! { ReleasedLease: release, after "release_after" }

impl Tx<'_> {
    pub fn host_lease(&self, host: HostId, leases: &Leases<'_>) -> Result<HostLease> {
        if !leases.are_needed {
            return Ok(HostLease::NotNeeded);
        }
        let Some(orders) = leases.orders else {
            return Ok(HostLease::Missing);
        };
        let found: Option<(i64, String, bool)> = self.first(
            "SELECT deadline, boot, leaves FROM lease WHERE host_id = ?1 AND release IS NULL",
            [host.0],
        )?;
        Ok(match found {
            Some((_, _, leaves)) if leaves || orders.draining => HostLease::Leaving,
            found => {
                let recorded = found.map(|(deadline, boot, _)| RecordedLease {
                    deadline,
                    of_this_boot: boot == leases.boot,
                });
                HostLease::of(recorded, &leases.clocks)
            }
        })
    }

    /// Records the lease of a host, new or renewed. No page of the host starts before `next_at`.
    pub fn set_lease(&self, host: HostId, lease: &Lease, boot: &str, next_at: Time) -> Result<()> {
        let deadline = milliseconds(lease.deadline);
        self.execute(
            "INSERT INTO lease (host_id, epoch, boot, deadline) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET leaves = leaves AND epoch = excluded.epoch,
                 epoch = excluded.epoch, boot = excluded.boot, deadline = excluded.deadline,
                 release = NULL, release_after = NULL",
            (host.0, lease.epoch.0, boot, deadline),
        )?;
        let delay = i64::try_from(lease.delay.as_millis()).unwrap_or(i64::MAX);
        self.execute(
            "UPDATE host SET next_at = max(next_at, ?2), crawl_delay = max(crawl_delay, ?3)
             WHERE id = ?1",
            (host.0, next_at.0, delay),
        )
    }

    /// Returns the deadline of the lease that a host has under an epoch.
    pub fn lease_deadline(
        &self,
        host: HostId,
        epoch: Epoch,
        boot: &str,
    ) -> Result<Option<BootTime>> {
        let deadline: Option<u64> = self.first(
            "SELECT iif(boot = ?3, deadline, 0) FROM lease
             WHERE host_id = ?1 AND epoch = ?2 AND release IS NULL",
            (host.0, epoch.0, boot),
        )?;
        Ok(deadline.map(BootTime))
    }

    /// Records that a leased host is for another node: no further page of it starts here.
    pub fn set_leaving(&self, host: HostId) -> Result<()> {
        self.execute("UPDATE lease SET leaves = 1 WHERE host_id = ?1 AND release IS NULL", [host.0])
    }

    pub fn release_lease(&self, host: HostId, released: &ReleasedLease) -> Result<()> {
        self.execute(
            "UPDATE lease SET release = ?2, release_after = ?3 WHERE host_id = ?1",
            (
                host.0,
                serde_json::to_string(&released.release)?,
                i64::try_from(released.after).unwrap_or(i64::MAX),
            ),
        )
    }

    pub fn remove_lease(&self, host: HostId, epoch: Epoch) -> Result<()> {
        self.execute("DELETE FROM lease WHERE host_id = ?1 AND epoch = ?2", (host.0, epoch.0))
    }

    /// Makes all leases those of another boot.
    #[cfg(test)]
    pub fn reboot_leases(&self, boot: &str) -> Result<()> {
        self.execute("UPDATE lease SET boot = ?1", [boot])
    }

    /// Removes all leases: the machine is another node now.
    pub fn remove_leases(&self) -> Result<()> {
        self.execute("DELETE FROM lease", [])
    }

    /// Returns the leases that are not released.
    pub fn leases(&self, boot: &str) -> Result<Vec<LeaseRow>> {
        self.all(
            "SELECT host.id, host.name, lease.epoch, lease.deadline, lease.boot = ?1, host.next_at,
                    EXISTS (SELECT 1 FROM snapshot INDEXED BY snapshot_leased
                        WHERE snapshot.host_id = host.id AND snapshot.epoch > 0
                            AND snapshot.status = 'queued'), lease.leaves
             FROM lease JOIN host ON host.id = lease.host_id
             WHERE lease.release IS NULL ORDER BY host.id",
            [boot],
        )
    }

    /// Returns the leases that are released, until the database confirms that.
    pub fn released_leases(&self) -> Result<Vec<ReleasedLease>> {
        let sql = format!(
            "SELECT {} FROM lease WHERE release IS NOT NULL ORDER BY host_id",
            ReleasedLease::COLUMNS
        );
        self.all(&sql, [])
    }

    /// Returns the first deadline of a lease of this boot that has not passed, in milliseconds on
    /// CLOCK_BOOTTIME.
    pub fn next_deadline(&self, boot: &str, machine: i64) -> Result<Option<i64>> {
        self.one(
            "SELECT min(deadline) FROM lease
             WHERE boot = ?1 AND release IS NULL AND deadline > ?2",
            (boot, machine),
        )
    }

    /// Returns the started pages whose lease has no time left. `machine`: CLOCK_BOOTTIME in
    /// milliseconds.
    pub fn pages_past_deadline(&self, boot: &str, machine: i64) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT snapshot.id FROM snapshot INDEXED BY snapshot_leased
             JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
             WHERE snapshot.epoch > 0 AND snapshot.status = 'started'
                 AND (lease.boot <> ?1 OR lease.deadline <= ?2) ORDER BY snapshot.id",
            (boot, machine),
        )
    }

    /// Returns the deadline of the lease of a page: the start of the clock if the lease is gone, and
    /// `None` if no fleet gave the page to this node.
    pub fn page_deadline(&self, page: SnapshotId, boot: &str) -> Result<Option<BootTime>> {
        let deadline: Option<u64> = self.first(
            "SELECT coalesce(lease.deadline, 0) FROM snapshot
             LEFT JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
                 AND lease.release IS NULL AND lease.boot = ?2
             WHERE snapshot.id = ?1 AND snapshot.epoch > 0",
            (page.0, boot),
        )?;
        Ok(deadline.map(BootTime))
    }

    /// Returns the pages that the fleet gave to this node under a lease that it has no more.
    pub fn pages_without_lease(&self) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT snapshot.id FROM snapshot INDEXED BY snapshot_leased
             LEFT JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
                 AND lease.release IS NULL
             WHERE snapshot.epoch > 0 AND lease.host_id IS NULL ORDER BY snapshot.id",
            [],
        )
    }

    /// Whether a host has a page that the fleet gave to this node; `started`: one that runs.
    pub fn has_leased_pages(&self, host: HostId, started: bool) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM snapshot INDEXED BY snapshot_leased
             WHERE host_id = ?1 AND epoch > 0 AND (NOT ?2 OR status = 'started'))",
            (host.0, started),
        )
    }
}
