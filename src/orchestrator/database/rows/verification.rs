//! What replays of recordings showed, by the hook or after a page had ended.

use crate::database::{Result, Tx};
use archivist_core::model::{Figures, SnapshotId};
use archivist_shared::bus::documents::report::Unfaithful;

/// SQL condition on a row: the replay does not hold (`REPLAY_HOLDS`). The index `verification_unfaithful` has the
/// same.
const UNFAITHFUL: &str = "figures ->> 'fidelity' < 0.95";

impl Tx<'_> {
    /// Returns what the newest replay of a page showed.
    pub fn shown_by_replay(&self, page: SnapshotId) -> Result<Option<Figures>> {
        self.first(
            "SELECT figures FROM verification WHERE snapshot_id = ?1 AND figures IS NOT NULL",
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
