//! Pages whose recordings are replayed, and what the replays showed.

use crate::database::{Result, Tx};
use archivist_core::model::{Figures, RunId, SnapshotId};
use archivist_shared::bus::documents::report::Unfaithful;

/// SQL condition on a row: the replay does not hold (`REPLAY_HOLDS`). The index `verification_unfaithful` has the
/// same.
const UNFAITHFUL: &str = "figures ->> 'fidelity' < 0.95";

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

    /// Returns what the newest replay of a page showed, by the hook or after the page had ended.
    pub fn shown_by_replay(&self, page: SnapshotId) -> Result<Option<Figures>> {
        self.first(
            "SELECT figures FROM verification WHERE snapshot_id = ?1 AND figures IS NOT NULL",
            [page.0],
        )
    }

    /// Returns why the recording of a page could not be replayed.
    pub fn replay_problem(&self, page: SnapshotId) -> Result<Option<String>> {
        self.first(
            "SELECT problem FROM verification WHERE snapshot_id = ?1 AND problem IS NOT NULL",
            [page.0],
        )
    }

    /// Returns how many pages have a replay that does not hold, and the newest of them, at most `most`.
    pub fn unfaithful_pages(&self, most: u32) -> Result<Unfaithful> {
        let sql = format!(
            "SELECT count(*) FROM verification INDEXED BY verification_unfaithful WHERE {UNFAITHFUL}"
        );
        let pages = self.one(&sql, [])?;
        let newest = if pages > 0 {
            let sql = format!(
                "SELECT snapshot_id FROM verification INDEXED BY verification_unfaithful WHERE {UNFAITHFUL}
                 ORDER BY snapshot_id DESC LIMIT ?1"
            );
            self.all(&sql, [most])?
        } else {
            Vec::new()
        };
        Ok(Unfaithful { pages, newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::rows::result::Finished;
    use crate::database::{Database, NewCrawl, NewSnapshot};
    use archivist_core::model::{Owner, REPLAY_HOLDS, ResultState, Time, VERIFIER, Verdict};

    #[test]
    fn replays_by_the_hook_are_counted_and_the_newest_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let share = REPLAY_HOLDS.to_string();
        assert!(UNFAITHFUL.ends_with(&format!("< {share}")), "{UNFAITHFUL}");
        let crawl = NewCrawl {
            url: "https://a.example/",
            max_depth: 0,
            plugins: &[],
            config: &Default::default(),
            user: 1000,
            now: Time(1),
        };
        let crawl = tx.add_crawl(&crawl).unwrap();
        let page = |url| NewSnapshot { url, host: "a.example", ..NewSnapshot::default() };
        let urls: Vec<String> = (0..12).map(|n| format!("https://a.example/{n}")).collect();
        let pages: Vec<_> = urls.iter().map(|url| page(url.as_str())).collect();
        tx.add_snapshots(crawl, None, &pages, Time(1)).unwrap();
        for id in 1..=12 {
            let owner = Owner::Snapshot(SnapshotId(id));
            tx.start_result(owner, crawl, VERIFIER, "verify", Time(1)).unwrap();
            let share = if id == 3 { 0.95 } else { 0.9 };
            let figures = Figures::of(serde_json::json!({"fidelity": share}).as_object().unwrap());
            let verdict = Verdict { state: ResultState::Succeeded, error: None };
            let finished = Finished {
                verdict: &verdict,
                output: None,
                files: &[],
                size: 0,
                figures: &figures,
            };
            tx.finish_result(owner, VERIFIER, "verify", &finished, Time(2)).unwrap();
        }
        let found = tx.unfaithful_pages(2).unwrap();
        assert_eq!((found.pages, found.newest), (11, vec![SnapshotId(12), SnapshotId(11)]));
    }
}
