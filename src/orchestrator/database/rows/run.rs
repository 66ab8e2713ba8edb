//! Rows of runs, as those of workers and hooks are used: their unit is only a part of it. What all
//! kinds of units have in common is in [`super::unit`].

use crate::database::column::{FromRow, column};
use crate::database::rows::directory::row_of;
use crate::database::rows::unit::{OPEN, RunState};
use crate::database::{Result, Tx};
use archivist_core::model::without_userinfo;
use archivist_core::model::{CrawlId, Outcome, Owner, RunId, SnapshotId, Time};
use archivist_core::unit::UnitKind;
use rusqlite::Row;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Variables by name, without secrets.
pub type Variables = BTreeMap<String, String>;

/// A run to be recorded as starting.
pub struct NewRun<'a> {
    pub kind: UnitKind,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    pub crawl: CrawlId,
    /// Name of the plugin; `None` for workers.
    pub plugin: Option<&'a str>,
    /// Name of the hook; `None` for workers.
    pub hook: Option<&'a str>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub unit: &'a str,
    pub boot: &'a str,
    pub argv: &'a [String],
    /// Unit of the worker that asked for it; `None` for the worker of a crawl.
    pub parent: Option<&'a str>,
    /// Working directory, if it is not that of systemd.
    pub directory: Option<&'a Path>,
    /// Time limit that systemd enforces.
    pub limit: Option<Duration>,
    /// Variables without secrets: those that it has in common with other runs, and its own.
    pub environment: (Variables, Variables),
    /// Time on CLOCK_BOOTTIME, in milliseconds, from which on it is not executed.
    pub not_after: Option<u64>,
    pub now: Time,
}

/// A run as the orchestrator uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Number of its row, printed as `r678`.
    pub id: RunId,
    pub kind: UnitKind,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    pub crawl: CrawlId,
    /// Name of the plugin; `None` for workers.
    pub plugin: Option<String>,
    /// Name of the hook; `None` for workers.
    pub hook: Option<String>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub unit: String,
    pub boot: String,
    /// Whether systemd has not answered the start yet.
    pub starting: bool,
    /// Set once the run has ended.
    pub outcome: Option<Outcome>,
    /// A user interrupted it. Its unit may still be ending.
    pub interrupted: bool,
    /// It is ended because the disk is full. Its unit may still be ending.
    pub short_of_disk: bool,
    /// A user paused it, if only for a while.
    pub frozen: bool,
    /// Time on CLOCK_BOOTTIME, in milliseconds, from which on it is not executed.
    pub not_after: Option<u64>,
    /// Without user names and passwords in URLs.
    pub argv: Vec<String>,
    /// Run of the worker that asked for it; `None` for the worker of a crawl.
    pub parent: Option<RunId>,
    /// When it started; `None` before.
    pub started_at: Option<Time>,
    /// When it ended; `None` before.
    pub ended_at: Option<Time>,
}

impl RunRow {
    /// Whether its unit must be thawed before it is stopped or killed. Only hooks are frozen.
    pub fn may_be_frozen(&self) -> bool {
        self.frozen && self.kind == UnitKind::Hook
    }
}

/// SQL condition on a row of `run`: it is of a worker or hook.
const OF_WORK: &str = "crawl_id IS NOT NULL";

const COLUMNS: &str = "id, kind, owner, crawl_id, plugin, hook, attempt, unit, boot, status,
                       outcome, started_at, ended_at, argv, frozen, not_after, parent_id";

/// How many crashes of the machine, and stops of units, during a run do not count as attempts.
pub const FORGIVEN_MAX: i64 = 20;

impl FromRow for RunRow {
    /// Reads a row of [`COLUMNS`].
    fn from_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
        let status: RunState = column(row, 9)?;
        let outcome: Option<Outcome> = column(row, 10)?;
        let argv: Vec<String> = column(row, 13)?;
        Ok(RunRow {
            id: column(row, 0)?,
            kind: column(row, 1)?,
            owner: column(row, 2)?,
            crawl: column(row, 3)?,
            plugin: column(row, 4)?,
            hook: column(row, 5)?,
            attempt: column(row, 6)?,
            unit: column(row, 7)?,
            boot: column(row, 8)?,
            starting: status == RunState::Starting,
            interrupted: outcome == Some(Outcome::Interrupted),
            short_of_disk: outcome == Some(Outcome::DiskLimit),
            outcome: outcome.filter(|_| status == RunState::Ended),
            frozen: column(row, 14)?,
            not_after: column(row, 15)?,
            argv: argv.iter().map(|text| without_userinfo(text)).collect(),
            parent: column(row, 16)?,
            started_at: column(row, 11)?,
            ended_at: column(row, 12)?,
        })
    }
}

impl Tx<'_> {
    /// Inserts a run as starting, before its unit starts.
    pub fn record_run(&self, new: &NewRun<'_>) -> Result<RunId> {
        let snapshot = match new.owner {
            Owner::Snapshot(SnapshotId(id)) => Some(id),
            Owner::Crawl(_) => None,
        };
        let (shared, own) = &new.environment;
        let environment = self.environment(shared)?;
        let millis = |limit: Duration| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        self.execute(
            "INSERT INTO run (epoch, kind, owner, crawl_id, snapshot_id, plugin, hook, attempt,
                              unit, boot, argv, not_after, status, started_at, recorded_at,
                              directory, time_limit, environment_id, own_variables, parent_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'starting', ?13, ?13,
                     ?14, ?15, ?16, ?17,
                     (SELECT id FROM run
                      WHERE unit = ?18 AND status IN ('starting', 'running')))",
            rusqlite::params![
                self.epoch,
                new.kind.as_str(),
                new.owner.to_string(),
                new.crawl.0,
                snapshot,
                new.plugin,
                new.hook,
                new.attempt,
                new.unit,
                new.boot,
                serde_json::to_string(new.argv)?,
                new.not_after.map(|time| i64::try_from(time).unwrap_or(i64::MAX)),
                new.now.0,
                new.directory.map(Path::to_string_lossy),
                new.limit.map(millis),
                environment,
                serde_json::to_string(own)?,
                new.parent,
            ],
        )?;
        Ok(RunId(self.inner.last_insert_rowid()))
    }

    /// Records when the newest run of a background hook was ready.
    pub fn set_run_ready(&self, owner: Owner, plugin: &str, hook: &str, at: Time) -> Result<()> {
        self.execute(
            "UPDATE run SET ready_at = ?4 WHERE id =
             (SELECT max(id) FROM run WHERE owner = ?1 AND plugin = ?2 AND hook = ?3)",
            (owner.to_string(), plugin, hook, at.0),
        )
    }

    /// Records that a user interrupted a run, which decides its outcome.
    pub fn interrupt_run(&self, id: RunId) -> Result<()> {
        self.mark_run(id, &Outcome::Interrupted)
    }

    /// Decides the outcome of a run that is being ended.
    pub fn mark_run(&self, id: RunId, outcome: &Outcome) -> Result<()> {
        self.execute(
            "UPDATE run SET outcome = ?2 WHERE id = ?1 AND status IN ('starting', 'running')",
            (id.0, serde_json::to_string(outcome)?),
        )
    }

    /// Undoes the count of the attempt that an open run belongs to, because the machine crashed
    /// during it. At most [`FORGIVEN_MAX`] times for one unit: what crashes the machine each time
    /// is quarantined in the end.
    pub fn forgive_attempt(&self, run: &RunRow) -> Result<()> {
        if self.lost_runs(&run.unit)? >= FORGIVEN_MAX {
            return Ok(());
        }
        if run.kind == UnitKind::Hook {
            return self.execute(
                "UPDATE result SET attempts = attempts - 1
                 WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND attempts > 1",
                (run.owner.to_string(), &run.plugin, &run.hook),
            );
        }
        let (table, id) = row_of(run.owner);
        self.execute(
            &format!("UPDATE {table} SET attempts = attempts - 1 WHERE id = ?1 AND attempts > 1"),
            [id],
        )
    }

    pub fn lost_runs(&self, unit: &str) -> Result<i64> {
        let lost = serde_json::to_string(&Outcome::Lost)?;
        self.one("SELECT count(*) FROM run WHERE unit = ?1 AND outcome = ?2", (unit, lost))
    }

    /// The last start of a hook is not counted as an attempt.
    pub fn take_back_hook_attempt(&self, run: &RunRow) -> Result<()> {
        self.execute(
            "UPDATE result SET attempts = max(attempts - 1, 0)
             WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            (run.owner.to_string(), &run.plugin, &run.hook),
        )
    }

    /// Returns all runs of workers and hooks that have not ended.
    pub fn open_runs(&self) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run INDEXED BY run_open
             WHERE {OPEN} AND {OF_WORK} ORDER BY id"
        );
        self.all(&sql, [])
    }

    /// Returns the open run of the unit of a worker or hook.
    pub fn open_run(&self, unit: &str) -> Result<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE unit = ?1 AND {OPEN} AND {OF_WORK}");
        self.first(&sql, [unit])
    }

    /// Returns the run of a worker or hook by its id.
    pub fn run(&self, id: RunId) -> Result<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE id = ?1 AND {OF_WORK}");
        self.first(&sql, [id.0])
    }

    /// Returns the open run of a worker or hook by its id.
    pub fn open_run_by_id(&self, id: RunId) -> Result<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE id = ?1 AND {OPEN} AND {OF_WORK}");
        self.first(&sql, [id.0])
    }

    /// Returns the tokens of running workers with the crawl or snapshot that each works on.
    pub fn tokens(&self) -> Result<Vec<(String, Owner)>> {
        self.all(
            "SELECT token, 'c' || id FROM crawl
             WHERE status IN ('started', 'paused') AND token IS NOT NULL
             UNION ALL
             SELECT token, 's' || id FROM snapshot
             WHERE status IN ('started', 'paused') AND token IS NOT NULL",
            [],
        )
    }

    /// Returns the open runs of one crawl or snapshot.
    pub fn open_runs_of(&self, owner: Owner) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run INDEXED BY run_open
             WHERE owner = ?1 AND status IN ('starting', 'running')"
        );
        self.all(&sql, [owner.to_string()])
    }

    /// Whether any unit of a crawl or its snapshots has not ended.
    pub fn has_open_runs(&self, crawl: CrawlId) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM run INDEXED BY run_open
             WHERE crawl_id = ?1 AND status IN ('starting', 'running'))",
            [crawl.0],
        )
    }

    /// Returns the newest run of a hook for its owner.
    pub fn last_hook_run(&self, owner: Owner, plugin: &str, hook: &str) -> Result<Option<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE owner = ?1 AND plugin = ?2 AND hook = ?3
             ORDER BY id DESC LIMIT 1"
        );
        self.first(&sql, (owner.to_string(), plugin, hook))
    }
}

/// Environments: what the runs of a hook have in common is one row, so that a run costs no copy of all settings.
impl Tx<'_> {
    /// Returns the row that has exactly these variables, and inserts it if there is none.
    fn environment(&self, variables: &Variables) -> Result<i64> {
        let text = serde_json::to_string(variables)?;
        let digest = Sha256::digest(&text);
        let known: Option<i64> =
            self.first("SELECT id FROM environment WHERE digest = ?1", [digest.as_slice()])?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.execute(
            "INSERT INTO environment (digest, variables) VALUES (?1, ?2)",
            (digest.as_slice(), text),
        )?;
        Ok(self.inner.last_insert_rowid())
    }

    /// Returns the variables of a run; none if it is unknown, or was recorded by an older version.
    pub fn environment_of(&self, run: RunId) -> Result<Variables> {
        let found: Option<(Option<Variables>, Option<Variables>)> = self.first(
            "SELECT variables, own_variables FROM run
             JOIN environment ON environment.id = environment_id WHERE run.id = ?1",
            [run.0],
        )?;
        let (shared, own) = found.unwrap_or_default();
        Ok(shared.into_iter().chain(own).flatten().collect())
    }
}
