//! Pages whose recordings wait for a replay, and its end.

use crate::database::{Result, Tx};
use archivist_core::model::{Figures, RunId, SnapshotId};

impl Tx<'_> {
    /// Returns pages that wait for a replay, the first first, and whether one of the same host was replayed.
    pub fn waiting_replays(&self, most: u32) -> Result<Vec<(SnapshotId, bool)>> {
        self.all(
            "SELECT snapshot_id, EXISTS (SELECT 1 FROM verification AS other
                 WHERE other.host_id = page.host_id AND other.open = 0)
             FROM verification AS page INDEXED BY verification_open
             WHERE open = 1 ORDER BY snapshot_id LIMIT ?1",
            [most],
        )
    }

    /// Whether pages wait for a replay, or one is being replayed.
    pub fn has_replays(&self) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM verification INDEXED BY verification_open WHERE open = 1)",
            [],
        )
    }

    /// The page is not replayed.
    pub fn drop_replay(&self, page: SnapshotId) -> Result<()> {
        self.execute("DELETE FROM verification WHERE snapshot_id = ?1", [page.0])
    }

    /// Notes the run of the unit that replays a page.
    pub fn begin_replay(&self, page: SnapshotId, run: RunId) -> Result<()> {
        self.execute("UPDATE verification SET run_id = ?2 WHERE snapshot_id = ?1", (page.0, run.0))
    }

    /// Returns the page that the unit of this run replays, and the replays of it that ended before. `None` if
    /// the page was deleted or has another recording by now.
    pub fn replayed_page(&self, run: RunId) -> Result<Option<(SnapshotId, u32)>> {
        self.first(
            "SELECT snapshot_id, attempts FROM verification INDEXED BY verification_run WHERE run_id = ?1",
            [run.0],
        )
    }

    /// Has a page wait for another replay, after so many that ended.
    pub fn repeat_replay(&self, page: SnapshotId, attempts: u32) -> Result<()> {
        self.execute(
            "UPDATE verification SET run_id = NULL, attempts = ?2 WHERE snapshot_id = ?1",
            (page.0, attempts),
        )
    }

    /// Records what the replay of a page showed, or why there was none.
    pub fn end_replay(
        &self,
        page: SnapshotId,
        shown: &std::result::Result<Figures, String>,
    ) -> Result<()> {
        let figures = shown.as_ref().ok().map(serde_json::to_string).transpose()?;
        self.execute(
            "UPDATE verification SET open = 0, run_id = NULL, figures = ?2, problem = ?3 WHERE snapshot_id = ?1",
            (page.0, figures, shown.as_ref().err()),
        )
    }

    /// Returns why the recording of a page could not be replayed.
    pub fn replay_problem(&self, page: SnapshotId) -> Result<Option<String>> {
        self.first(
            "SELECT problem FROM verification WHERE snapshot_id = ?1 AND problem IS NOT NULL",
            [page.0],
        )
    }
}
