//! Rows of runs, as every kind of unit has them. The row is recorded before the unit starts.

use crate::database::column::{Columns, columns};
use crate::database::{Counts, Result, Tx};
use archivist_core::model::{Outcome, Reading, RunId, Time};
use archivist_core::unit::UnitKind;

archivist_core::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RunState {
        /// Waits for a slot.
        Queued = "queued",
        /// Recorded with its unit; systemd has not answered the start yet.
        Starting = "starting",
        /// Its unit exists.
        Running = "running",
        /// Its outcome is recorded.
        Ended = "ended",
    }
}

/// SQL condition on a row of `run`: its unit has not ended. The index of open runs has the same one.
pub(crate) const OPEN: &str = "status IN ('starting', 'running')";

/// A run whose unit has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitRow {
    /// Number of its row, printed as `r678`.
    pub id: RunId,
    pub kind: UnitKind,
    pub unit: String,
    pub boot: String,
    /// Whether systemd has not answered the start yet.
    pub starting: bool,
    /// It is a hook that a user paused, if only for a while: it must be thawed before it is stopped.
    pub frozen: bool,
}

columns! {
    UnitRow: id, kind, unit, boot, starting "status = 'starting'", frozen "frozen AND kind = 'hook'"
}

const COLUMNS: &str = UnitRow::COLUMNS;

impl Tx<'_> {
    /// Returns all runs whose units have not ended.
    pub fn open_units(&self) -> Result<Vec<UnitRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run INDEXED BY run_open WHERE {OPEN} ORDER BY id");
        self.all(&sql, [])
    }

    fn one_unit(&self, condition: &str, value: impl rusqlite::ToSql) -> Result<Option<UnitRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE {condition} AND {OPEN}");
        self.first(&sql, [value])
    }

    /// Returns the run of a unit, if that has not ended.
    pub fn open_unit(&self, unit: &str) -> Result<Option<UnitRow>> {
        self.one_unit("unit = ?1", unit)
    }

    /// Returns a run by its id, if its unit has not ended.
    pub fn open_unit_by_id(&self, id: RunId) -> Result<Option<UnitRow>> {
        self.one_unit("id = ?1", id.0)
    }

    /// Queues a run of this kind. Returns its id.
    pub(crate) fn queue_run(&self, kind: UnitKind, now: Time) -> Result<RunId> {
        self.execute(
            "INSERT INTO run (kind, status, recorded_at) VALUES (?1, 'queued', ?2)",
            (kind.as_str(), now.0),
        )?;
        Ok(RunId(self.inner.last_insert_rowid()))
    }

    /// Records a run of this kind and its unit before the unit starts. Returns its id.
    pub fn start_run(&self, kind: UnitKind, unit: &str, boot: &str, now: Time) -> Result<RunId> {
        let run = self.queue_run(kind, now)?;
        self.start_queued(run, unit, boot, now)?;
        Ok(run)
    }

    /// Records the unit of a queued run before the unit starts. Returns `false` if the run is not
    /// queued.
    pub(crate) fn start_queued(
        &self,
        id: RunId,
        unit: &str,
        boot: &str,
        now: Time,
    ) -> Result<bool> {
        let rows = self.change(
            "UPDATE run SET status = 'starting', unit = ?2, boot = ?3, started_at = ?4,
                 epoch = ?5
             WHERE id = ?1 AND status = 'queued'",
            (id.0, unit, boot, now.0, self.epoch),
        )?;
        Ok(rows == 1)
    }

    /// Queues a run again whose start was recorded and not made.
    pub fn requeue_run(&self, id: RunId) -> Result<()> {
        self.execute(
            "UPDATE run SET status = 'queued', unit = NULL, boot = NULL, started_at = NULL,
                 epoch = NULL
             WHERE id = ?1 AND status = 'starting'",
            [id.0],
        )
    }

    /// Records that systemd accepted the start.
    pub fn set_run_running(&self, id: RunId) -> Result<()> {
        self.execute(
            "UPDATE run SET status = 'running' WHERE id = ?1 AND status = 'starting'",
            [id.0],
        )
    }

    /// Records how the unit of a run ended and what it used. Returns `false` if it had ended already;
    /// the row stays as it is.
    pub fn end_run(
        &self,
        id: RunId,
        outcome: &Outcome,
        reading: &Reading,
        now: Time,
    ) -> Result<bool> {
        let used = &reading.accounting;
        let count = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let rows = self.change(
            "UPDATE run SET status = 'ended', outcome = ?2, exit_code = ?3, signal = ?4,
                 invocation = ?5, started_at = coalesce(?6, started_at), ended_at = ?7,
                 cpu_usec = ?8, memory_peak = ?9, io_read = ?10, io_write = ?11, ip_in = ?12,
                 ip_out = ?13
             WHERE id = ?1 AND status IN ('starting', 'running')",
            rusqlite::params![
                id.0,
                serde_json::to_string(outcome)?,
                outcome.exit_code(),
                outcome.signal(),
                Some(&reading.invocation).filter(|id| !id.is_empty()),
                reading.started.map(|time| time.0),
                reading.ended.unwrap_or(now).0,
                count(used.cpu_usec),
                count(used.memory_peak),
                count(used.io_read),
                count(used.io_write),
                count(used.ip_in),
                count(used.ip_out),
            ],
        )?;
        Ok(rows == 1)
    }

    /// Returns the InvocationID of the latest ended run of a unit of this name.
    pub fn ended_invocation(&self, unit: &str) -> Result<Option<String>> {
        let row = self.first(
            "SELECT invocation FROM run WHERE unit = ?1 AND status = 'ended'
             ORDER BY id DESC LIMIT 1",
            [unit],
        )?;
        Ok(row.flatten())
    }

    /// Returns how many runs wait for a slot, by kind.
    pub fn queued_run_counts(&self) -> Result<Counts> {
        self.all(
            "SELECT kind, count(*) FROM run INDEXED BY run_queued WHERE status = 'queued'
             GROUP BY kind",
            [],
        )
    }

    /// Returns how many units have not ended, by kind.
    pub fn open_run_counts(&self) -> Result<Counts> {
        let sql = format!(
            "SELECT kind, count(*) FROM run INDEXED BY run_open WHERE {OPEN} GROUP BY kind"
        );
        self.all(&sql, [])
    }
}
