//! The visits of pages: what the server answered, and which results are of the present visit.

use crate::database::column::{FromRow, column};
use crate::database::{Result, Tx};
use archivist_core::model::{HttpAnswer, Owner, SnapshotId, Time};
use archivist_core::plan::HEADERS;
use archivist_shared::bus::documents::report::HookResult;
use rusqlite::Row;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitRow {
    pub number: u32,
    /// Visits in a row that the server refused before.
    pub refused: u32,
    /// How the server answered, if a hook reported that.
    pub answer: Option<HttpAnswer>,
    /// When the server allows the next visit, if it refused this one and named a time.
    pub asked: Option<Time>,
}

impl FromRow for VisitRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<VisitRow> {
        let status: Option<u16> = column(row, 2)?;
        let plugin: Option<String> = column(row, 3)?;
        Ok(VisitRow {
            number: column(row, 0)?,
            refused: column(row, 1)?,
            answer: status.map(|status| HttpAnswer { status, plugin: plugin.unwrap_or_default() }),
            asked: column(row, 4)?,
        })
    }
}

impl Tx<'_> {
    pub fn visit(&self, id: SnapshotId) -> Result<VisitRow> {
        let row = self.first(
            "SELECT visit, refused, http_status, http_plugin, http_until
             FROM snapshot WHERE id = ?1",
            [id.0],
        )?;
        Ok(row.unwrap_or_default())
    }

    /// Records how the server answered the present visit of a page.
    pub fn set_answer(&self, id: SnapshotId, answer: &HttpAnswer) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET http_status = ?2, http_plugin = ?3 WHERE id = ?1",
            (id.0, answer.status, &answer.plugin),
        )
    }

    /// Records when the server allows the next visit of a page; of several times, the latest.
    pub fn set_asked(&self, id: SnapshotId, until: Time) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET http_until = max(coalesce(http_until, 0), ?2) WHERE id = ?1",
            (id.0, until.0),
        )
    }

    /// Whether every result of a page is of the present visit, or has no files and is queued or of a
    /// hook that did not run.
    pub fn is_whole_visit(&self, id: SnapshotId) -> Result<bool> {
        let is_older: bool = self.one(
            "SELECT EXISTS (SELECT 1 FROM result r WHERE r.owner = ?1
             AND r.visit <> (SELECT visit FROM snapshot WHERE id = ?2)
             AND (r.status NOT IN ('queued', 'skipped') OR r.files <> '[]'))",
            (Owner::Snapshot(id).to_string(), id.0),
        )?;
        Ok(!is_older)
    }

    /// Queues all results of a page whose document was not saved, so that nothing of its files is
    /// kept. Returns how many these were.
    pub fn requeue_page(&self, id: SnapshotId) -> Result<usize> {
        let count = self.requeue_all_results(Owner::Snapshot(id))?;
        self.execute(
            "UPDATE result SET files = '[]' WHERE owner = ?1",
            [Owner::Snapshot(id).to_string()],
        )?;
        Ok(count)
    }

    /// Begins another visit of a page after one that the server refused: queues the results of that
    /// visit again.
    pub fn discard_visit(&self, id: SnapshotId) -> Result<()> {
        self.forget_visit(id)?;
        self.execute("UPDATE snapshot SET refused = refused + 1 WHERE id = ?1", [id.0])
    }

    /// The same, if the machine is to blame: the visit does not count as refused.
    pub fn forget_visit(&self, id: SnapshotId) -> Result<()> {
        self.execute(
            "UPDATE result SET status = 'queued', error = NULL, output = NULL, files = '[]',
                 figures = NULL, started_at = NULL, ended_at = NULL, attempts = 0
             WHERE owner = ?1 AND visit = (SELECT visit FROM snapshot WHERE id = ?2)
                 AND (status <> 'skipped' OR attempts > 0)",
            (Owner::Snapshot(id).to_string(), id.0),
        )?;
        self.execute(
            "UPDATE snapshot SET visit = visit + 1, http_status = NULL, http_plugin = NULL,
             http_until = NULL WHERE id = ?1",
            [id.0],
        )
    }

    /// Fails the results of the present visit that show the document.
    pub fn fail_document(&self, id: SnapshotId, error: &str) -> Result<()> {
        self.execute(
            "UPDATE result SET status = 'failed', error = ?3
             WHERE owner = ?1 AND visit = (SELECT visit FROM snapshot WHERE id = ?2)
                 AND status = 'succeeded' AND plugin <> ?4",
            (Owner::Snapshot(id).to_string(), id.0, error, HEADERS),
        )
    }

    /// Keeps the results of a page that a user retries, and the answer of its server, until the retry
    /// ends. Without a result that succeeded there is nothing to lose, and nothing is kept. What an
    /// interrupted retry kept stays.
    pub fn keep_earlier(&self, id: SnapshotId) -> Result<()> {
        let owner = Owner::Snapshot(id).to_string();
        let kept = self.change(
            "UPDATE result SET earlier = json_object('status', status, 'output', output,
                 'error', error, 'files', json(files), 'size', size, 'attempts', attempts,
                 'figures', json(figures),
                 'started_at', started_at, 'ended_at', ended_at, 'visit', visit)
             WHERE owner = ?1 AND status IN ('succeeded', 'noresults', 'failed', 'skipped')
                 AND EXISTS (SELECT 1 FROM result WHERE owner = ?1 AND status = 'succeeded')
                 AND NOT EXISTS
                     (SELECT 1 FROM result WHERE owner = ?1 AND earlier IS NOT NULL)",
            [owner],
        )?;
        if kept > 0 {
            self.execute(
                "UPDATE snapshot SET earlier = json_object('status', http_status,
                 'plugin', coalesce(http_plugin, ''), 'visited_at', visited_at) WHERE id = ?1",
                [id.0],
            )?;
        }
        Ok(())
    }

    /// The results of a page before its retry, if there is one.
    pub fn earlier_results(&self, id: SnapshotId) -> Result<Vec<HookResult>> {
        // In the order of `HookResult`.
        self.all(
            "SELECT owner, plugin, hook, earlier ->> 'status', earlier ->> 'output',
                 earlier ->> 'error', earlier -> 'files', earlier ->> 'size',
                 earlier ->> 'attempts', earlier ->> 'started_at', earlier ->> 'ended_at', id,
                 coalesce(earlier ->> 'figures', '{}')
             FROM result WHERE owner = ?1 AND earlier IS NOT NULL ORDER BY id",
            [Owner::Snapshot(id).to_string()],
        )
    }

    /// How the server of a page answered before its retry, if it did.
    pub fn earlier_answer(&self, id: SnapshotId) -> Result<Option<HttpAnswer>> {
        let answer: Option<(u16, String)> = self.first(
            "SELECT earlier ->> 'status', earlier ->> 'plugin' FROM snapshot
             WHERE id = ?1 AND earlier ->> 'status' IS NOT NULL",
            [id.0],
        )?;
        Ok(answer.map(|(status, plugin)| HttpAnswer { status, plugin }))
    }

    /// Ends the retry of a page: its earlier results return, or are forgotten.
    pub fn end_retry(&self, id: SnapshotId, returns: bool) -> Result<()> {
        let owner = Owner::Snapshot(id).to_string();
        if returns {
            self.execute(
                "UPDATE result SET status = earlier ->> 'status',
                     output = earlier ->> 'output', error = earlier ->> 'error',
                     files = earlier -> 'files', size = earlier ->> 'size',
                     figures = earlier ->> 'figures',
                     attempts = earlier ->> 'attempts', visit = earlier ->> 'visit',
                     started_at = earlier ->> 'started_at', ended_at = earlier ->> 'ended_at'
                 WHERE owner = ?1 AND earlier IS NOT NULL",
                [&owner],
            )?;
            self.execute(
                "UPDATE snapshot SET http_status = earlier ->> 'status',
                     http_plugin = nullif(earlier ->> 'plugin', ''),
                     visited_at = coalesce(earlier ->> 'visited_at', visited_at)
                 WHERE id = ?1 AND earlier IS NOT NULL",
                [id.0],
            )?;
        }
        self.execute(
            "UPDATE result SET earlier = NULL WHERE owner = ?1 AND earlier IS NOT NULL",
            [owner],
        )?;
        self.execute(
            "UPDATE snapshot SET earlier = NULL WHERE id = ?1 AND earlier IS NOT NULL",
            [id.0],
        )
    }

    pub fn set_note(&self, result: &HookResult, note: &str) -> Result<()> {
        self.execute("UPDATE result SET error = ?2 WHERE id = ?1", (result.id, note))
    }

    /// Begins another visit of a page that a user wants. If all of its results are queued, the answer
    /// to the earlier one is forgotten.
    pub fn begin_visit(&self, id: SnapshotId) -> Result<()> {
        let sql = "UPDATE snapshot SET visit = visit + 1, refused = 0, http_until = NULL
             WHERE id = ?1";
        self.execute(sql, [id.0])?;
        self.execute(
            "UPDATE snapshot SET http_status = NULL, http_plugin = NULL
             WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM result WHERE owner = ?2
                 AND status NOT IN ('queued', 'skipped'))",
            (id.0, Owner::Snapshot(id).to_string()),
        )
    }
}
