//! Which pages are complete: the rule of `core/plan/complete.rs` as SQL, and what depends on it.

use crate::store::column::{Columns, columns};
use crate::store::{Result, Tx};
use archivist_core::model::{CrawlId, SnapshotId};

/// Whether the page of a row of `snapshot` is incomplete (`is_incomplete`). The partial index
/// `snapshot_incomplete` has the same condition.
pub(crate) const INCOMPLETE: &str = "status = 'sealed' AND reason IS NOT NULL";

/// Whether the page of a row of `snapshot` was saved (`is_saved`).
pub(crate) const SAVED: &str = "status = 'sealed' AND unsaved IS NULL";

/// Whether the page of a row of `snapshot` is sealed and was not saved. The partial index
/// `snapshot_unsaved` has the same condition.
pub(crate) const UNSAVED: &str = "status = 'sealed' AND unsaved IS NOT NULL";

/// Whether the archive has the page of a row of `snapshot`, or is going to: the page is open, or was
/// saved.
const ARCHIVED: &str =
    "(status IN ('queued', 'started', 'paused') OR (status = 'sealed' AND unsaved IS NULL))";

/// A page that is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompletePage {
    /// Number of its row.
    pub id: SnapshotId,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// Why its work ended early.
    pub reason: String,
}

columns! { IncompletePage: id, url, reason }

impl Tx<'_> {
    /// Returns how many pages of a crawl, or of all crawls, are incomplete.
    pub fn incomplete_pages(&self, crawl: Option<CrawlId>) -> Result<u64> {
        let sql = match crawl {
            Some(_) => {
                format!("SELECT count(*) FROM snapshot WHERE crawl_id = ?1 AND {INCOMPLETE}")
            }
            None => format!("SELECT count(*) FROM snapshot WHERE ?1 IS NULL AND {INCOMPLETE}"),
        };
        self.one(&sql, [crawl.map(|crawl| crawl.0)])
    }

    /// Returns the first incomplete pages of a crawl, at most `most`.
    pub fn first_incomplete(&self, crawl: CrawlId, most: u32) -> Result<Vec<IncompletePage>> {
        let sql = format!(
            "SELECT {} FROM snapshot WHERE crawl_id = ?1 AND {INCOMPLETE} ORDER BY id LIMIT ?2",
            IncompletePage::COLUMNS
        );
        self.all(&sql, (crawl.0, most))
    }

    /// Returns how many pages of a crawl were cancelled, are incomplete, or show the document of an
    /// HTTP error.
    pub fn bad_pages(&self, id: CrawlId) -> Result<u64> {
        let sql = format!(
            "SELECT count(*) FROM snapshot WHERE crawl_id = ?1
             AND (status = 'cancelled' OR ({INCOMPLETE})
                 OR ({UNSAVED} AND unsaved = 'error'))"
        );
        self.one(&sql, [id.0])
    }

    /// Whether another crawl than `except` has archived a page or is going to.
    pub fn is_archived(&self, url: &str, except: CrawlId) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM snapshot WHERE url = ?1 AND crawl_id <> ?2 AND {ARCHIVED})"
        );
        self.one(&sql, (url, except.0))
    }

    /// Returns the versions of a page that other crawls than `except` have archived or are going to, the
    /// newest first, at most `count`.
    pub fn archived_versions(
        &self,
        url: &str,
        except: CrawlId,
        count: u32,
    ) -> Result<Vec<SnapshotId>> {
        let sql = format!(
            "SELECT id FROM snapshot WHERE url = ?1 AND crawl_id <> ?2 AND {ARCHIVED}
             ORDER BY visited_at DESC, id DESC LIMIT ?3"
        );
        self.all(&sql, (url, except.0, count))
    }

    /// Returns the first crawl that has archived a page or is going to.
    pub fn archived_in(&self, url: &str) -> Result<Option<CrawlId>> {
        let sql = format!(
            "SELECT crawl_id FROM snapshot WHERE url = ?1 AND {ARCHIVED} ORDER BY id LIMIT 1"
        );
        self.first(&sql, [url])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use archivist_core::model::Time;

    /// Counting must not read all pages: `status` asks after each change.
    #[test]
    fn incomplete_pages_are_counted_in_their_index() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(1)).unwrap();
        let tx = store.begin().unwrap();
        assert_eq!(tx.incomplete_pages(None).unwrap(), 0);
        for condition in ["crawl_id = 1", "1 IS 1"] {
            let plan = format!(
                "EXPLAIN QUERY PLAN SELECT count(*) FROM snapshot WHERE {condition} AND {INCOMPLETE}"
            );
            let plan: String = tx.inner.query_row(&plan, [], |row| row.get(3)).unwrap();
            assert!(plan.contains("snapshot_incomplete"), "{plan}");
        }
    }
}
