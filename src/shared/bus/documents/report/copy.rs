//! Documents about the store and its copies of pages.

use archivist_core::model::{SnapshotId, Time};
use archivist_core::store::{StoredObject, Task};
use serde::{Deserialize, Serialize};

/// The copy of a snapshot in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The snapshot.
    pub id: SnapshotId,
    /// `idle`, or where the task stands: `waiting`, `starting` or `running`.
    pub state: String,
    /// What waits or runs, or was done last.
    pub task: Task,
    /// When the task is due that waits.
    pub due_at: Option<Time>,
    /// Failed attempts of the task.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// The newest verified object; `None` if the store has no copy.
    pub object: Option<StoredObject>,
    /// When the object was read back.
    pub verified_at: Option<Time>,
    /// Whether the local files are complete.
    pub is_local: bool,
}

/// The store as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Where copies go.
    pub store: String,
    /// Policy of local files, as in the configuration.
    pub keep_local: String,
    /// Pages that wait for a transfer.
    pub waiting: u64,
    /// Of these, the ones whose last transfer failed.
    pub failed: u64,
    /// Running transfers.
    pub running: u64,
    /// Why a transfer failed, with the snapshot.
    pub reason: Option<String>,
    /// When that transfer is retried.
    pub next: Option<Time>,
}
