//! Which pages are complete: the rule of `core/plan/complete.rs` as SQL, and what depends on it.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, SnapshotId};

/// Whether the page of a row of `snapshot` is incomplete (`is_incomplete`). The partial index
/// `snapshot_incomplete` has the same condition.
pub(crate) const INCOMPLETE: &str = "status = 'sealed' AND reason IS NOT NULL";

/// Whether the page of a row of `snapshot` was saved (`is_saved`).
pub(crate) const SAVED: &str = "status = 'sealed' AND unsaved IS NULL";

/// Whether the page of a row of `snapshot` is sealed and was not saved. The partial index
/// `snapshot_unsaved` has the same condition.
pub(crate) const UNSAVED: &str = "status = 'sealed' AND unsaved IS NOT NULL";

/// Whether the files of the hook of a row of `result` lack parts of the page. The partial index
/// `result_lacks` has the same condition.
const LACKING: &str = "status = 'succeeded' AND figures ->> 'lacks' > 0";

/// Whether files of the page of a row of `snapshot` lack parts of it.
pub(crate) const PARTIAL: &str = "EXISTS (SELECT 1 FROM result
    WHERE result.crawl_id = snapshot.crawl_id AND result.snapshot_id = snapshot.id
    AND result.status = 'succeeded' AND result.figures ->> 'lacks' > 0)";

/// Whether the archive has the page of a row of `snapshot`, or is going to: the page is open, or was
/// saved.
const ARCHIVED: &str =
    "(status IN ('queued', 'started', 'paused') OR (status = 'sealed' AND unsaved IS NULL))";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompletePage {
    pub id: SnapshotId,
    /// Its URL, with user name and password if it has any.
    pub url: String,
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

    /// Returns how many pages of a crawl are complete, and show the document of an HTTP error.
    pub fn error_pages(&self, crawl: CrawlId) -> Result<u64> {
        let sql = format!(
            "SELECT count(*) FROM snapshot
             WHERE crawl_id = ?1 AND {UNSAVED} AND unsaved = 'error' AND reason IS NULL"
        );
        self.one(&sql, [crawl.0])
    }

    /// Returns how many saved pages of a crawl lack parts.
    pub fn partial_pages(&self, crawl: CrawlId) -> Result<u64> {
        let sql = format!(
            "SELECT count(*) FROM snapshot WHERE {SAVED} AND id IN
             (SELECT snapshot_id FROM result WHERE crawl_id = ?1 AND {LACKING})"
        );
        self.one(&sql, [crawl.0])
    }

    /// Returns the results of a page whose files lack parts of it: the plugin, and its remark.
    pub fn missing_parts(&self, crawl: CrawlId, page: SnapshotId) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT plugin || coalesce(': ' || error, '') FROM result
             WHERE crawl_id = ?1 AND snapshot_id = ?2 AND {LACKING} ORDER BY id"
        );
        self.all(&sql, (crawl.0, page.0))
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
    use crate::database::Database;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Filter;

    #[test]
    fn saved_pages_with_missing_parts_are_partial() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let rows = "
            INSERT INTO host (id, name) VALUES (1, 'a.test');
            INSERT INTO crawl (id, url, max_depth, plugins, config, created_at, users)
                VALUES (1, '', 0, '[]', '{}', 0, '[0]');
            INSERT INTO snapshot (id, crawl_id, host_id, url, url_key, depth, created_at, status, unsaved)
                VALUES (1, 1, 1, '1', '1', 0, 0, 'sealed', NULL), (2, 1, 1, '2', '2', 0, 0, 'sealed', NULL),
                    (3, 1, 1, '3', '3', 0, 0, 'sealed', 'document'),
                    (4, 1, 1, '4', '4', 0, 0, 'sealed', 'error');
            INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, error, figures)
                VALUES ('s1', 1, 1, 'wacz', 'wacz', 'succeeded', 'no answer of x', '{\"lacks\": 1}'),
                    ('s1', 1, 1, 'pdf', 'pdf', 'failed', 'cut', '{\"lacks\": 1}'),
                    ('s2', 1, 2, 'wacz', 'wacz', 'succeeded', 'rejected consent', '{\"kept\": 1}'),
                    ('s3', 1, 3, 'wacz', 'wacz', 'succeeded', NULL, '{\"lacks\": 1}');";
        tx.inner.execute_batch(rows).unwrap();
        assert_eq!(tx.partial_pages(CrawlId(1)).unwrap(), 1);
        let crawl = &tx.list_crawls(&Filter::default()).unwrap()[0];
        assert_eq!((crawl.partial, crawl.errors), (1, 1));
        let filter = Filter { status: Some("partial".to_owned()), ..Filter::default() };
        let pages = tx.list_snapshots(&filter).unwrap();
        assert_eq!(pages.iter().map(|page| page.id.0).collect::<Vec<_>>(), [1]);
        assert_eq!(pages[0].missing, ["wacz: no answer of x"]);
        assert_eq!(pages[0].lacks(), "wacz: no answer of x");
        let sql = format!("EXPLAIN QUERY PLAN SELECT id FROM snapshot WHERE {PARTIAL}");
        let plan: Vec<String> = tx
            .inner
            .prepare(&sql)
            .unwrap()
            .query_map([], |row| row.get(3))
            .unwrap()
            .map(std::result::Result::unwrap)
            .collect();
        assert!(plan.iter().any(|step| step.contains("result_lacks")), "{plan:?}");
    }

    /// Counting must not read all pages: `status` asks after each change.
    #[test]
    fn incomplete_pages_are_counted_in_their_index() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
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
