//! The visits of pages: what the server answered, and which results are of the present visit.

use crate::store::column::optional;
use crate::store::{Result, Tx};
use archivist_core::model::{Answer, Owner, SnapshotId, Time};
use archivist_core::plan::HEADERS;
use rusqlite::OptionalExtension;

/// The present visit of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitRow {
    /// Number of the visit.
    pub number: u32,
    /// Visits in a row that the server refused before.
    pub refused: u32,
    /// How the server answered, if a hook reported that.
    pub answer: Option<Answer>,
    /// When the server allows the next visit, if it refused this one and named a time.
    pub asked: Option<Time>,
}

impl Tx<'_> {
    /// Returns the present visit of a page.
    pub fn visit(&self, id: SnapshotId) -> Result<VisitRow> {
        let row = self
            .inner
            .prepare_cached(
                "SELECT visit, refused, http_status, http_plugin, http_until
                 FROM snapshot WHERE id = ?1",
            )?
            .query_row([id.0], |row| {
                let status: Option<u16> = row.get(2)?;
                let plugin: Option<String> = row.get(3)?;
                Ok(VisitRow {
                    number: row.get(0)?,
                    refused: row.get(1)?,
                    answer: status.map(|status| Answer {
                        status,
                        plugin: plugin.unwrap_or_default(),
                    }),
                    asked: optional(row, 4)?,
                })
            })
            .optional()?;
        Ok(row.unwrap_or_default())
    }

    /// Records how the server answered the present visit of a page.
    pub fn set_answer(&self, id: SnapshotId, answer: &Answer) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE snapshot SET http_status = ?2, http_plugin = ?3 WHERE id = ?1")?
            .execute((id.0, answer.status, &answer.plugin))?;
        Ok(())
    }

    /// Records when the server allows the next visit of a page; of several times, the latest.
    pub fn set_asked(&self, id: SnapshotId, until: Time) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE snapshot SET http_until = max(coalesce(http_until, 0), ?2) WHERE id = ?1",
            )?
            .execute((id.0, until.0))?;
        Ok(())
    }

    /// Whether every result of a page is of the present visit, or has no files and is queued or of a
    /// hook that did not run.
    pub fn is_whole_visit(&self, id: SnapshotId) -> Result<bool> {
        let is_older: bool = self
            .inner
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM result r WHERE r.owner = ?1
                     AND r.visit <> (SELECT visit FROM snapshot WHERE id = ?2)
                     AND (r.status NOT IN ('queued', 'skipped') OR r.files <> '[]'))",
            )?
            .query_row((Owner::Snapshot(id).to_string(), id.0), |row| row.get(0))?;
        Ok(!is_older)
    }

    /// Queues all results of a page whose document was not saved, so that nothing of its files is
    /// kept. Returns how many these were.
    pub fn requeue_page(&self, id: SnapshotId) -> Result<usize> {
        let count = self.requeue_all_results(Owner::Snapshot(id))?;
        self.inner
            .prepare_cached("UPDATE result SET files = '[]' WHERE owner = ?1")?
            .execute([Owner::Snapshot(id).to_string()])?;
        Ok(count)
    }

    /// Begins another visit of a page after one that the server refused: queues the results of that
    /// visit again.
    pub fn discard_visit(&self, id: SnapshotId) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'queued', error = NULL, output = NULL, files = '[]',
                     started_at = NULL, ended_at = NULL, attempts = 0
                 WHERE owner = ?1 AND visit = (SELECT visit FROM snapshot WHERE id = ?2)
                     AND (status <> 'skipped' OR attempts > 0)",
            )?
            .execute((Owner::Snapshot(id).to_string(), id.0))?;
        self.inner
            .prepare_cached(
                "UPDATE snapshot SET visit = visit + 1, refused = refused + 1, http_status = NULL,
                     http_plugin = NULL, http_until = NULL WHERE id = ?1",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Fails the results of the present visit that show the document.
    pub fn fail_document(&self, id: SnapshotId, error: &str) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE result SET status = 'failed', error = ?3
                 WHERE owner = ?1 AND visit = (SELECT visit FROM snapshot WHERE id = ?2)
                     AND status = 'succeeded' AND plugin <> ?4",
            )?
            .execute((Owner::Snapshot(id).to_string(), id.0, error, HEADERS))?;
        Ok(())
    }

    /// Begins another visit of a page that a user wants. If all of its results are queued, the answer
    /// to the earlier one is forgotten.
    pub fn begin_visit(&self, id: SnapshotId) -> Result<()> {
        let sql = "UPDATE snapshot SET visit = visit + 1, refused = 0, http_until = NULL
             WHERE id = ?1";
        self.inner.prepare_cached(sql)?.execute([id.0])?;
        self.inner
            .prepare_cached(
                "UPDATE snapshot SET http_status = NULL, http_plugin = NULL
                 WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM result WHERE owner = ?2
                     AND status NOT IN ('queued', 'skipped'))",
            )?
            .execute((id.0, Owner::Snapshot(id).to_string()))?;
        Ok(())
    }
}
