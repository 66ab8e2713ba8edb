//! Rows of runs: one per unit that was ever to be started. The row exists before the unit does.

use crate::store::lists::shown_arguments;
use crate::store::{Result, StoreError, Tx};
use archivist_core::model::{CrawlId, Outcome, Owner, Reading, RunId, SnapshotId, Time};
use archivist_core::unit::UnitKind;
use rusqlite::{OptionalExtension, Row};

/// A run to be recorded as starting.
pub struct NewRun<'a> {
    pub kind: UnitKind,
    pub owner: Owner,
    pub crawl: CrawlId,
    pub plugin: Option<&'a str>,
    pub hook: Option<&'a str>,
    pub attempt: u32,
    pub unit: &'a str,
    pub boot: &'a str,
    pub argv: &'a [String],
    pub now: Time,
}

/// A run as the daemon needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub id: RunId,
    pub kind: UnitKind,
    pub owner: Owner,
    pub crawl: CrawlId,
    pub plugin: Option<String>,
    pub hook: Option<String>,
    pub attempt: u32,
    pub unit: String,
    pub boot: String,
    pub starting: bool,
    /// Set once the run has ended.
    pub outcome: Option<Outcome>,
    /// Somebody interrupted it; it may be on its way out still.
    pub interrupted: bool,
    /// It is ended for lack of disk space; it may be on its way out still.
    pub short_of_disk: bool,
    /// Somebody paused it, for a while at least.
    pub frozen: bool,
    /// As people may read them.
    pub argv: Vec<String>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

impl RunRow {
    /// Its unit is to be thawed before anything else is done with it: of what is paused hooks alone are
    /// frozen.
    pub fn may_be_frozen(&self) -> bool {
        self.frozen && self.kind == UnitKind::Hook
    }
}

const COLUMNS: &str = "id, kind, owner, crawl_id, plugin, hook, attempt, unit, boot, status,
                       outcome, started_at, ended_at, argv, frozen";

/// How often a machine may go down under something before that counts as an attempt of it.
const FORGIVEN_MAX: i64 = 20;

type Parts = (RunRow, String, String, String, Option<String>, String);

fn read(row: &Row<'_>) -> rusqlite::Result<Parts> {
    let (kind, owner, status): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(9)?);
    let run = RunRow {
        id: RunId(row.get(0)?),
        kind: UnitKind::Hook,
        owner: Owner::Crawl(CrawlId(0)),
        crawl: CrawlId(row.get(3)?),
        plugin: row.get(4)?,
        hook: row.get(5)?,
        attempt: row.get(6)?,
        unit: row.get(7)?,
        boot: row.get(8)?,
        starting: false,
        outcome: None,
        interrupted: false,
        short_of_disk: false,
        frozen: row.get(14)?,
        argv: Vec::new(),
        started_at: row.get::<_, Option<i64>>(11)?.map(Time),
        ended_at: row.get::<_, Option<i64>>(12)?.map(Time),
    };
    Ok((run, kind, owner, status, row.get(10)?, row.get(13)?))
}

fn complete((run, kind, owner, status, outcome, argv): Parts) -> Result<RunRow> {
    let corrupt = |what, text: &str| StoreError::Corrupt {
        what,
        text: text.to_owned(),
    };
    let outcome: Option<Outcome> = outcome
        .map(|text| serde_json::from_str(&text))
        .transpose()?;
    Ok(RunRow {
        kind: UnitKind::parse(&kind).ok_or_else(|| corrupt("kind", &kind))?,
        owner: owner.parse().map_err(|_| corrupt("id", &owner))?,
        starting: status == "starting",
        interrupted: outcome == Some(Outcome::Interrupted),
        short_of_disk: outcome == Some(Outcome::DiskLimit),
        outcome: outcome.filter(|_| status == "ended"),
        argv: shown_arguments(&argv)?,
        ..run
    })
}

impl Tx<'_> {
    pub fn record_run(&self, new: &NewRun<'_>) -> Result<RunId> {
        let snapshot = match new.owner {
            Owner::Snapshot(SnapshotId(id)) => Some(id),
            Owner::Crawl(_) => None,
        };
        self.inner
            .prepare_cached(
                "INSERT INTO run (epoch, kind, owner, crawl_id, snapshot_id, plugin, hook, attempt,
                                  unit, boot, argv, status, started_at, recorded_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'starting', ?12, ?12)",
            )?
            .execute((
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
                new.now.0,
            ))?;
        Ok(RunId(self.inner.last_insert_rowid()))
    }

    /// systemd took the start upon itself.
    pub fn set_run_running(&self, id: RunId) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE run SET status = 'running' WHERE id = ?1 AND status = 'starting'",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Notes when a hook that works beside others had begun to: the newest run of it.
    pub fn set_run_ready(&self, owner: Owner, plugin: &str, hook: &str, at: Time) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE run SET ready_at = ?4 WHERE id =
                     (SELECT max(id) FROM run WHERE owner = ?1 AND plugin = ?2 AND hook = ?3)",
            )?
            .execute((owner.to_string(), plugin, hook, at.0))?;
        Ok(())
    }

    /// Notes that somebody wants a run to end; its outcome is decided thereby.
    pub fn interrupt_run(&self, id: RunId) -> Result<()> {
        self.mark_run(id, &Outcome::Interrupted)
    }

    /// Notes what the outcome of a run is to be that is being ended.
    pub fn mark_run(&self, id: RunId, outcome: &Outcome) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE run SET outcome = ?2 WHERE id = ?1 AND status <> 'ended'")?
            .execute((id.0, serde_json::to_string(outcome)?))?;
        Ok(())
    }

    /// Records how a run ended and what it used. One that has ended already stays; `false` then.
    pub fn end_run(
        &self,
        id: RunId,
        outcome: &Outcome,
        reading: &Reading,
        now: Time,
    ) -> Result<bool> {
        let used = &reading.accounting;
        let count = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let rows = self
            .inner
            .prepare_cached(
                "UPDATE run SET status = 'ended', outcome = ?2, exit_code = ?3, signal = ?4,
                     invocation = ?5, started_at = coalesce(?6, started_at), ended_at = ?7,
                     cpu_usec = ?8, memory_peak = ?9, io_read = ?10, io_write = ?11, ip_in = ?12,
                     ip_out = ?13
                 WHERE id = ?1 AND status <> 'ended'",
            )?
            .execute(rusqlite::params![
                id.0,
                serde_json::to_string(outcome)?,
                outcome.exit_code(),
                outcome.signal(),
                Some(&reading.invocation).filter(|id| !id.is_empty()),
                crate::store::millis(reading.started),
                reading.ended.unwrap_or(now).0,
                count(used.cpu_usec),
                count(used.memory_peak),
                count(used.io_read),
                count(used.io_write),
                count(used.ip_in),
                count(used.ip_out),
            ])?;
        Ok(rows == 1)
    }

    /// The attempt that an open run is part of does not count: the machine went down under it. Not for
    /// ever: what takes the machine with it each time is put aside in the end.
    pub fn forgive_attempt(&self, run: &RunRow) -> Result<()> {
        let lost = serde_json::to_string(&Outcome::Lost)?;
        let before: i64 = self
            .inner
            .prepare_cached("SELECT count(*) FROM run WHERE unit = ?1 AND outcome = ?2")?
            .query_row((&run.unit, lost), |row| row.get(0))?;
        if before >= FORGIVEN_MAX {
            return Ok(());
        }
        let (sql, id) = match (run.kind, run.owner) {
            (UnitKind::Hook, _) => {
                self.inner
                    .prepare_cached(
                        "UPDATE result SET attempts = attempts - 1
                         WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND attempts > 1",
                    )?
                    .execute((run.owner.to_string(), &run.plugin, &run.hook))?;
                return Ok(());
            }
            (_, Owner::Crawl(id)) => (
                "UPDATE crawl SET attempts = attempts - 1 WHERE id = ?1 AND attempts > 1",
                id.0,
            ),
            (_, Owner::Snapshot(id)) => (
                "UPDATE snapshot SET attempts = attempts - 1 WHERE id = ?1 AND attempts > 1",
                id.0,
            ),
        };
        self.inner.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }

    /// All runs that have not ended.
    pub fn open_runs(&self) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run INDEXED BY run_open WHERE status <> 'ended' ORDER BY id"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([], read)?;
        rows.map(|row| complete(row?)).collect()
    }

    /// The run of a unit that has not ended.
    pub fn open_run(&self, unit: &str) -> Result<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE unit = ?1 AND status <> 'ended'");
        let row = self
            .inner
            .prepare_cached(&sql)?
            .query_row([unit], read)
            .optional()?;
        row.map(complete).transpose()
    }

    /// A run that has not ended, by its id.
    pub fn open_run_by_id(&self, id: RunId) -> Result<Option<RunRow>> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE id = ?1 AND status <> 'ended'");
        let row = self
            .inner
            .prepare_cached(&sql)?
            .query_row([id.0], read)
            .optional()?;
        row.map(complete).transpose()
    }

    /// InvocationID of the run that a unit's name was used for last and that has ended.
    pub fn ended_invocation(&self, unit: &str) -> Result<Option<String>> {
        let row = self
            .inner
            .prepare_cached(
                "SELECT invocation FROM run WHERE unit = ?1 AND status = 'ended'
                 ORDER BY id DESC LIMIT 1",
            )?
            .query_row([unit], |row| row.get(0))
            .optional()?;
        Ok(row.flatten())
    }

    /// Tokens of the workers at work, with whom they work for.
    pub fn tokens(&self) -> Result<Vec<(String, Owner)>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT token, 'c' || id FROM crawl WHERE status IN ('started', 'paused') AND token IS NOT NULL
             UNION ALL
             SELECT token, 's' || id FROM snapshot
             WHERE status IN ('started', 'paused') AND token IS NOT NULL",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut tokens = Vec::new();
        for row in rows {
            let (token, owner): (String, String) = row?;
            let corrupt = |_| StoreError::Corrupt {
                what: "id",
                text: owner.clone(),
            };
            tokens.push((token, owner.parse().map_err(corrupt)?));
        }
        Ok(tokens)
    }

    /// Open runs of one owner.
    pub fn open_runs_of(&self, owner: Owner) -> Result<Vec<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run INDEXED BY run_open
             WHERE owner = ?1 AND status <> 'ended'"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([owner.to_string()], read)?;
        rows.map(|row| complete(row?)).collect()
    }

    /// Whether anything of a crawl runs still.
    pub fn has_open_runs(&self, crawl: CrawlId) -> Result<bool> {
        Ok(self
            .inner
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM run INDEXED BY run_open
                                WHERE crawl_id = ?1 AND status <> 'ended')",
            )?
            .query_row([crawl.0], |row| row.get(0))?)
    }

    /// Units at work, by kind.
    pub fn open_run_counts(&self) -> Result<std::collections::BTreeMap<String, u64>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT kind, count(*) FROM run WHERE status <> 'ended' GROUP BY kind",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0) as u64))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The newest run of a hook for its owner.
    pub fn last_hook_run(&self, owner: Owner, plugin: &str, hook: &str) -> Result<Option<RunRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE owner = ?1 AND plugin = ?2 AND hook = ?3
             ORDER BY id DESC LIMIT 1"
        );
        let row = self
            .inner
            .prepare_cached(&sql)?
            .query_row((owner.to_string(), plugin, hook), read)
            .optional()?;
        row.map(complete).transpose()
    }
}
