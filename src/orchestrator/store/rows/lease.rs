//! Rows of leases: which hosts the fleet leased to this node, and until when.

use crate::store::column::column;
use crate::store::{Result, Tx};
use archivist_core::fleet::{BootTime, Epoch, HostKey, Lease, Release};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::plan::{Clocks, HostId, HostLease, RecordedLease};
use rusqlite::{OptionalExtension, Row};

/// What decides whether a lease holds.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    /// Whether the data directory belongs to a fleet: pages need leases.
    pub are_needed: bool,
    /// Id of this boot of the machine.
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

/// A host that is leased to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// The host.
    pub host: HostId,
    /// Its name, as in URLs.
    pub name: HostKey,
    /// Epoch of the lease.
    pub epoch: Epoch,
    /// Its deadline.
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
    /// The request.
    pub release: Release,
    /// It is sent after the messages up to this one.
    pub after: u64,
}

fn milliseconds(time: BootTime) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

impl Tx<'_> {
    /// Returns what the lease of a host allows.
    pub fn host_lease(&self, host: HostId, leases: &Leases<'_>) -> Result<HostLease> {
        if !leases.are_needed {
            return Ok(HostLease::NotNeeded);
        }
        let Some(orders) = leases.orders else {
            return Ok(HostLease::Missing);
        };
        let read = |row: &Row<'_>| {
            let recorded = RecordedLease {
                deadline: row.get(0)?,
                of_this_boot: row.get::<_, String>(1)? == leases.boot,
            };
            Ok((recorded, row.get::<_, bool>(2)?))
        };
        let found = self
            .inner
            .prepare_cached(
                "SELECT deadline, boot, leaves FROM lease WHERE host_id = ?1 AND release IS NULL",
            )?
            .query_row([host.0], read)
            .optional()?;
        Ok(match found {
            Some((_, leaves)) if leaves || orders.draining => HostLease::Leaving,
            found => HostLease::of(found.map(|(recorded, _)| recorded), &leases.clocks),
        })
    }

    /// Records the lease of a host, new or renewed. No page of the host starts before `next_at`.
    pub fn set_lease(&self, host: HostId, lease: &Lease, boot: &str, next_at: Time) -> Result<()> {
        let deadline = milliseconds(lease.deadline);
        self.inner
            .prepare_cached(
                "INSERT INTO lease (host_id, epoch, boot, deadline) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET leaves = leaves AND epoch = excluded.epoch,
                     epoch = excluded.epoch, boot = excluded.boot, deadline = excluded.deadline,
                     release = NULL, release_after = NULL",
            )?
            .execute((host.0, lease.epoch.0, boot, deadline))?;
        let delay = i64::try_from(lease.delay.as_millis()).unwrap_or(i64::MAX);
        self.inner
            .prepare_cached(
                "UPDATE host SET next_at = max(next_at, ?2), crawl_delay = max(crawl_delay, ?3)
                 WHERE id = ?1",
            )?
            .execute((host.0, next_at.0, delay))?;
        Ok(())
    }

    /// Returns the deadline of the lease that a host has under an epoch.
    pub fn lease_deadline(
        &self,
        host: HostId,
        epoch: Epoch,
        boot: &str,
    ) -> Result<Option<BootTime>> {
        let read = |row: &Row<'_>| {
            let of_this_boot = row.get::<_, String>(1)? == boot;
            let deadline = row.get::<_, i64>(0)?.unsigned_abs();
            Ok(BootTime(if of_this_boot { deadline } else { 0 }))
        };
        Ok(self
            .inner
            .prepare_cached(
                "SELECT deadline, boot FROM lease
                 WHERE host_id = ?1 AND epoch = ?2 AND release IS NULL",
            )?
            .query_row((host.0, epoch.0), read)
            .optional()?)
    }

    /// Records that a leased host is for another node: no further page of it starts here.
    pub fn set_leaving(&self, host: HostId) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE lease SET leaves = 1 WHERE host_id = ?1 AND release IS NULL")?
            .execute([host.0])?;
        Ok(())
    }

    /// Records that the node has released a lease.
    pub fn release_lease(&self, host: HostId, released: &ReleasedLease) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE lease SET release = ?2, release_after = ?3 WHERE host_id = ?1")?
            .execute((
                host.0,
                serde_json::to_string(&released.release)?,
                i64::try_from(released.after).unwrap_or(i64::MAX),
            ))?;
        Ok(())
    }

    /// Removes the lease that a host has under an epoch.
    pub fn remove_lease(&self, host: HostId, epoch: Epoch) -> Result<()> {
        self.inner
            .prepare_cached("DELETE FROM lease WHERE host_id = ?1 AND epoch = ?2")?
            .execute((host.0, epoch.0))?;
        Ok(())
    }

    /// Makes all leases those of another boot.
    #[cfg(test)]
    pub fn reboot_leases(&self, boot: &str) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE lease SET boot = ?1")?
            .execute([boot])?;
        Ok(())
    }

    /// Removes all leases: the machine is another node now.
    pub fn remove_leases(&self) -> Result<()> {
        self.inner
            .prepare_cached("DELETE FROM lease")?
            .execute([])?;
        Ok(())
    }

    /// Returns the leases that are not released.
    pub fn leases(&self, boot: &str) -> Result<Vec<LeaseRow>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT host.id, host.name, lease.epoch, lease.deadline, lease.boot = ?1, host.next_at,
                    EXISTS (SELECT 1 FROM snapshot INDEXED BY snapshot_leased
                        WHERE snapshot.host_id = host.id AND snapshot.epoch > 0
                            AND snapshot.status = 'queued'), lease.leaves
             FROM lease JOIN host ON host.id = lease.host_id
             WHERE lease.release IS NULL ORDER BY host.id",
        )?;
        let read = |row: &Row<'_>| {
            Ok(LeaseRow {
                host: column(row, 0)?,
                name: HostKey(row.get(1)?),
                epoch: Epoch(row.get(2)?),
                recorded: RecordedLease {
                    deadline: row.get(3)?,
                    of_this_boot: row.get(4)?,
                },
                next_at: column(row, 5)?,
                has_queued: row.get(6)?,
                leaves: row.get(7)?,
            })
        };
        let rows = statement.query_map([boot], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the leases that are released, until the database confirms that.
    pub fn released_leases(&self) -> Result<Vec<ReleasedLease>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT release, release_after FROM lease WHERE release IS NOT NULL ORDER BY host_id",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let mut leases = Vec::new();
        for row in rows {
            let (release, after) = row?;
            leases.push(ReleasedLease {
                release: serde_json::from_str(&release)?,
                after: after.unsigned_abs(),
            });
        }
        Ok(leases)
    }

    /// Returns the first deadline of a lease of this boot that has not passed, in milliseconds on
    /// CLOCK_BOOTTIME.
    pub fn next_deadline(&self, boot: &str, machine: i64) -> Result<Option<i64>> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT min(deadline) FROM lease
                 WHERE boot = ?1 AND release IS NULL AND deadline > ?2",
            )?
            .query_row((boot, machine), |row| row.get(0))?)
    }

    /// Returns the started pages whose lease has no time left. `machine`: CLOCK_BOOTTIME in
    /// milliseconds.
    pub fn pages_past_deadline(&self, boot: &str, machine: i64) -> Result<Vec<SnapshotId>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT snapshot.id FROM snapshot INDEXED BY snapshot_leased
             JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
             WHERE snapshot.epoch > 0 AND snapshot.status = 'started'
                 AND (lease.boot <> ?1 OR lease.deadline <= ?2) ORDER BY snapshot.id",
        )?;
        let rows = statement.query_map((boot, machine), |row| column(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the deadline of the lease of a page: the start of the clock if the lease is gone, and
    /// `None` if no fleet gave the page to this node.
    pub fn page_deadline(&self, page: SnapshotId, boot: &str) -> Result<Option<BootTime>> {
        let read = |row: &Row<'_>| {
            let deadline = row.get::<_, Option<i64>>(0)?.unwrap_or_default();
            Ok(BootTime(deadline.unsigned_abs()))
        };
        Ok(self
            .inner
            .prepare_cached(
                "SELECT lease.deadline FROM snapshot
                 LEFT JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
                     AND lease.release IS NULL AND lease.boot = ?2
                 WHERE snapshot.id = ?1 AND snapshot.epoch > 0",
            )?
            .query_row((page.0, boot), read)
            .optional()?)
    }

    /// Returns the pages that the fleet gave to this node under a lease that it has no more.
    pub fn pages_without_lease(&self) -> Result<Vec<SnapshotId>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT snapshot.id FROM snapshot INDEXED BY snapshot_leased
             LEFT JOIN lease ON lease.host_id = snapshot.host_id AND lease.epoch = snapshot.epoch
                 AND lease.release IS NULL
             WHERE snapshot.epoch > 0 AND lease.host_id IS NULL ORDER BY snapshot.id",
        )?;
        let rows = statement.query_map([], |row| column(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether a host has a page that the fleet gave to this node; `started`: one that runs.
    pub fn has_leased_pages(&self, host: HostId, started: bool) -> Result<bool> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM snapshot INDEXED BY snapshot_leased
                     WHERE host_id = ?1 AND epoch > 0 AND (NOT ?2 OR status = 'started'))",
            )?
            .query_row((host.0, started), |row| row.get(0))?)
    }
}
