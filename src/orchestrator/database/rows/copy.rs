//! Rows of copies in the store, one for each snapshot that was sealed while there was a store. Each
//! refers to the run of the snapshot's newest transfer.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx, millis};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::store::Copy;

columns! {
    Copy: status, task, due_at, attempts, reason, again, object, verified_at, is_local, local_since,
        keep_until
}

impl Tx<'_> {
    /// Returns the state of a snapshot's copy; `None` if it never had any.
    pub fn copy(&self, id: SnapshotId) -> Result<Option<Copy>> {
        let sql = format!("SELECT {} FROM copy WHERE snapshot_id = ?1", Copy::COLUMNS);
        self.first(&sql, [id.0])
    }

    /// Stores the state of a snapshot's copy.
    pub fn set_copy(&self, id: SnapshotId, copy: &Copy) -> Result<()> {
        let object = copy.object.as_ref().map(serde_json::to_string).transpose()?;
        self.execute(
            "INSERT INTO copy (snapshot_id, status, task, due_at, attempts, reason, again,
                               object, verified_at, is_local, local_since, keep_until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT DO UPDATE SET status = excluded.status, task = excluded.task,
                 due_at = excluded.due_at, attempts = excluded.attempts,
                 reason = excluded.reason, again = excluded.again, object = excluded.object,
                 verified_at = excluded.verified_at, is_local = excluded.is_local,
                 local_since = excluded.local_since, keep_until = excluded.keep_until",
            rusqlite::params![
                id.0,
                copy.status.as_str(),
                copy.task.as_str(),
                millis(copy.due_at),
                copy.attempts,
                copy.reason,
                copy.again,
                object,
                millis(copy.verified_at),
                copy.is_local,
                millis(copy.local_since),
                millis(copy.keep_until),
            ],
        )
    }

    /// Has the store delete the copy of a snapshot that is deleted now; without one, removes its row.
    pub fn delete_copy(&self, id: SnapshotId, copy: Copy, now: Time) -> Result<()> {
        match copy.deleted(now) {
            Some(copy) => self.set_copy(id, &copy),
            None => self.remove_copy(id),
        }
    }

    /// Deletes the row of a copy that the store does not have, and its ended transfers.
    pub fn remove_copy(&self, id: SnapshotId) -> Result<()> {
        let run: Option<Option<i64>> =
            self.first("SELECT run_id FROM copy WHERE snapshot_id = ?1", [id.0])?;
        self.execute("DELETE FROM copy WHERE snapshot_id = ?1", [id.0])?;
        self.execute(
            "DELETE FROM run WHERE status = 'ended' AND unit = (SELECT unit FROM run WHERE id = ?1)",
            [run.flatten()],
        )
    }
}
