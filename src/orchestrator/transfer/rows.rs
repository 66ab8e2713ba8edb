//! Transfers of copies: which are due, which run, and what follows from their ends.

use crate::database::column::{Columns, FromRow, column};
use crate::database::{Result, Tx};
use archivist_core::model::{RunId, SnapshotId, Time};
use archivist_core::store::{Copy, KeepLocal, Task, Transfers, drop_before};
use archivist_core::unit::UnitKind;
use rusqlite::Row;

/// The row of the test of the store.
pub const STORE_TEST: SnapshotId = SnapshotId(0);

/// A transfer whose unit has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRow {
    pub run: RunId,
    /// Its snapshot, or [`STORE_TEST`].
    pub snapshot: SnapshotId,
    pub copy: Copy,
}

/// The snapshot of a failed transfer, why it failed, and when it is due.
pub type FailedCopy = (SnapshotId, Option<String>, Option<Time>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Pages that wait for their copy, a restoration or the removal of their files.
    pub waiting: u64,
    /// Of these, the ones whose last transfer failed.
    pub failed: u64,
    pub running: u64,
}

const COLUMNS: &str = Copy::COLUMNS;

impl FromRow for TransferRow {
    /// Reads a row of [`COLUMNS`], `run_id` and `snapshot_id`.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<TransferRow> {
        Ok(TransferRow {
            copy: Copy::from_row(row)?,
            run: column(row, 11)?,
            snapshot: column(row, 12)?,
        })
    }
}

impl Tx<'_> {
    /// Records the unit of a transfer before the unit starts. Returns its run. That of the transfer
    /// before it is deleted, once that of the unit's name is known to have ended.
    pub fn start_transfer(
        &self,
        id: SnapshotId,
        unit: &str,
        boot: &str,
        now: Time,
    ) -> Result<RunId> {
        let run = self.start_run(UnitKind::Store, unit, boot, now)?;
        self.execute("UPDATE copy SET run_id = ?2 WHERE snapshot_id = ?1", (id.0, run.0))?;
        Ok(run)
    }

    /// Deletes the runs of the transfers of a copy before its newest one, which has ended.
    pub fn forget_transfers(&self, transfer: &TransferRow) -> Result<()> {
        self.execute(
            "DELETE FROM run WHERE id <> ?1 AND status = 'ended'
             AND unit = (SELECT unit FROM run WHERE id = ?1)",
            [transfer.run.0],
        )
    }

    /// Returns the transfer of this run, if it is the newest of its copy and has not been settled.
    pub fn open_transfer(&self, run: RunId) -> Result<Option<TransferRow>> {
        let sql = format!(
            "SELECT {COLUMNS}, run_id, snapshot_id FROM copy INDEXED BY copy_run
             WHERE run_id = ?1 AND status = 'running'"
        );
        self.first(&sql, [run.0])
    }

    /// Forgets the copy of a deleted snapshot, which the store does not have any more, and its
    /// transfers.
    pub fn forget_copy(&self, transfer: &TransferRow) -> Result<()> {
        self.forget_transfers(transfer)?;
        self.execute("DELETE FROM copy WHERE snapshot_id = ?1", [transfer.snapshot.0])?;
        self.execute("DELETE FROM run WHERE id = ?1", [transfer.run.0])
    }

    /// Returns running and due transfers. Without a store, pages are only restored, and copies of
    /// deleted ones removed.
    pub fn transfers(&self, keep: Option<KeepLocal>, now: Time) -> Result<Transfers> {
        let mut transfers = Transfers::default();
        let running: Vec<(Task, u32)> = self.all(
            "SELECT task, count(*) FROM copy INDEXED BY copy_running WHERE status = 'running'
             GROUP BY task",
            [],
        )?;
        for (task, count) in running {
            transfers.count(task, count);
        }
        transfers.urgent = self.due_transfers("task IN ('get', 'test')", now)?;
        let Some(keep) = keep else {
            transfers.due = self.due_transfers("task = 'delete'", now)?;
            return Ok(transfers);
        };
        transfers.due = self.due_transfers("task IN ('put', 'drop', 'delete')", now)?;
        transfers.next = self.next_transfer(now)?;
        if let Some(before) = drop_before(keep, now) {
            let (dropped, next) = self.local_files(before, now)?;
            transfers.due.extend(dropped);
            // The files that are the next to be removed, by their age.
            let next = next.map(|time| Time(time.0.saturating_add(now.0 - before.0)));
            transfers.next = [transfers.next, next].into_iter().flatten().min();
        }
        Ok(transfers)
    }

    fn due_transfers(&self, tasks: &str, now: Time) -> Result<Vec<SnapshotId>> {
        let sql = format!(
            "SELECT snapshot_id FROM copy INDEXED BY copy_due
             WHERE status = 'waiting' AND due_at <= ?1 AND {tasks} ORDER BY due_at LIMIT ?2"
        );
        self.all(&sql, (now.0, Transfers::HEADS))
    }

    fn next_transfer(&self, now: Time) -> Result<Option<Time>> {
        self.one(
            "SELECT min(due_at) FROM copy INDEXED BY copy_due
             WHERE status = 'waiting' AND due_at > ?1",
            [now.0],
        )
    }

    /// Returns the first pages with a copy whose local files became complete before a time, and when
    /// those of the next one did.
    fn local_files(&self, before: Time, now: Time) -> Result<(Vec<SnapshotId>, Option<Time>)> {
        let due = self.all(
            "SELECT snapshot_id FROM copy INDEXED BY copy_local
             WHERE status = 'idle' AND is_local = 1 AND object IS NOT NULL AND local_since <= ?1
                 AND coalesce(keep_until, 0) <= ?2
                 AND (SELECT status FROM snapshot WHERE id = snapshot_id) = 'sealed'
             ORDER BY local_since LIMIT ?3",
            (before.0, now.0, Transfers::HEADS),
        )?;
        let next = self.one(
            "SELECT min(max(local_since, coalesce(keep_until, 0) - ?2))
             FROM (SELECT local_since, keep_until FROM copy INDEXED BY copy_local
                   WHERE status = 'idle' AND is_local = 1 AND object IS NOT NULL
                       AND max(local_since, coalesce(keep_until, 0) - ?2) > ?1
                   ORDER BY local_since LIMIT 100)",
            (before.0, now.0 - before.0),
        )?;
        Ok((due, next))
    }

    pub fn copy_counts(&self) -> Result<CopyCounts> {
        let count = |condition: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM copy WHERE {condition}");
            self.one(&sql, [])
        };
        Ok(CopyCounts {
            waiting: count("status = 'waiting'")?,
            failed: count("status = 'waiting' AND attempts > 0")?,
            running: count("status = 'running'")?,
        })
    }

    /// Returns the number of copies of deleted snapshots that the store still has.
    pub fn deleted_copies(&self) -> Result<u64> {
        self.one(
            "SELECT (SELECT count(*) FROM copy INDEXED BY copy_due
                     WHERE status = 'waiting' AND task = 'delete')
                  + (SELECT count(*) FROM copy INDEXED BY copy_running
                     WHERE status = 'running' AND task = 'delete')",
            [],
        )
    }

    /// Returns the failed transfer that is due first.
    pub fn first_failed_copy(&self) -> Result<Option<FailedCopy>> {
        self.first(
            "SELECT snapshot_id, reason, due_at FROM copy INDEXED BY copy_failed
             WHERE status = 'waiting' AND attempts > 0 ORDER BY due_at LIMIT 1",
            [],
        )
    }

    /// Returns the last of the next `count` snapshots with higher ids than this one; `None` if there
    /// are none.
    pub fn snapshots_up_to(&self, after: i64, count: u32) -> Result<Option<i64>> {
        self.one(
            "SELECT max(id) FROM (SELECT id FROM snapshot WHERE id > ?1 ORDER BY id LIMIT ?2)",
            (after, count),
        )
    }

    /// Lets a queued snapshot start at this time, and not before.
    pub fn put_off_snapshot(
        &self,
        id: SnapshotId,
        until: Time,
        reason: Option<&str>,
    ) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET retry_at = ?2, reason = ?3 WHERE id = ?1 AND status = 'queued'",
            (id.0, until.0, reason),
        )
    }

    /// Returns sealed snapshots with a directory and ids in a window: above the first, up to the
    /// second. Those that are in this store are left out.
    pub fn not_in_store(&self, window: (i64, i64), store: &str) -> Result<Vec<SnapshotId>> {
        self.all(
            "SELECT s.id FROM snapshot s LEFT JOIN copy c ON c.snapshot_id = s.id
             WHERE s.id > ?1 AND s.id <= ?2 AND s.status = 'sealed' AND s.directory IS NOT NULL
                 AND (c.snapshot_id IS NULL
                      OR (c.status = 'idle' AND c.is_local = 1
                          AND coalesce(c.object ->> 'store', '') <> ?3))
             ORDER BY s.id",
            (window.0, window.1, store),
        )
    }

    /// Makes the oldest restored files due for removal if more than `count` are kept for users.
    pub fn limit_restored(&self, count: u32, now: Time) -> Result<()> {
        self.execute(
            "UPDATE copy SET keep_until = ?2 WHERE snapshot_id IN
             (SELECT snapshot_id FROM copy INDEXED BY copy_local
              WHERE status = 'idle' AND is_local = 1 AND object IS NOT NULL
                  AND keep_until > ?2 ORDER BY keep_until DESC LIMIT -1 OFFSET ?1)",
            (count, now.0),
        )
    }
}
