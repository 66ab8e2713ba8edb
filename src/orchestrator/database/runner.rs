//! The runners of a data directory: the orchestrators that work on it or wait for it, and the
//! epoch, with which only the active one of them can write.

use super::{Database, DatabaseError, Result, Tx};
use archivist_core::lock;
use archivist_core::model::{ProcessLocation, Runner, Time};
use archivist_core::plan::Gate;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior};
use std::sync::Mutex;
use std::time::Duration;

const COLUMNS: &str = "epoch, rank, state = 'active', unit, pid, machine, boot, namespace, components, \
                       restarts, since";

fn runner(row: &Row<'_>) -> rusqlite::Result<Runner> {
    Ok(Runner {
        epoch: row.get(0)?,
        rank: row.get(1)?,
        active: row.get(2)?,
        unit: row.get(3)?,
        pid: row.get(4)?,
        place: ProcessLocation { machine: row.get(5)?, boot: row.get(6)?, namespace: row.get(7)? },
        components: row.get(8)?,
        restarts: row.get(9)?,
        since: Time(row.get(10)?),
    })
}

/// Returns the runners that have not ended, as far as the table knows, in the order of their ranks.
fn standing(connection: &Connection) -> Result<Vec<Runner>> {
    let sql = format!("SELECT {COLUMNS} FROM runner WHERE state <> 'ended' ORDER BY rank, epoch");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], runner)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn insert(connection: &Connection, state: &str, runner: &Runner) -> Result<i64> {
    connection.execute(
        "INSERT INTO runner (state, rank, unit, pid, machine, boot, namespace, components, restarts, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        (
            state,
            runner.rank,
            &runner.unit,
            runner.pid,
            &runner.place.machine,
            &runner.place.boot,
            &runner.place.namespace,
            &runner.components,
            runner.restarts,
            runner.since.0,
        ),
    )?;
    Ok(connection.last_insert_rowid())
}

impl Database {
    /// Registers `me` as waiting and returns its rank: `me.rank` if it is not 0; the rank of the
    /// unit's last process if this process is its `heir`; or a new rank, higher than all others.
    /// `hold` locks a rank before other processes can see it, and returns whether it could.
    ///
    /// # Errors
    /// [`DatabaseError::Rank`] if a new rank cannot be locked.
    pub fn register(&mut self, me: &Runner, heir: bool, hold: impl Fn(i64) -> bool) -> Result<i64> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if me.rank != 0 {
            if !standing(&tx)?.iter().any(|row| row.rank == me.rank) {
                insert(&tx, "waiting", me)?;
            }
            tx.commit()?;
            return Ok(me.rank);
        }
        let of_unit = |row: &&Runner| row.unit == me.unit && row.place == me.place;
        let last: Vec<Runner> = if me.restarts {
            standing(&tx)?.iter().filter(of_unit).cloned().collect()
        } else {
            Vec::new()
        };
        for row in &last {
            let sql = "UPDATE runner SET state = 'ended' WHERE epoch = ?1";
            tx.execute(sql, [row.epoch])?;
        }
        let epoch = insert(&tx, "waiting", me)?;
        let inherited = last.last().map(|row| row.rank).filter(|_| heir);
        let rank = match inherited.filter(|rank| hold(*rank)) {
            Some(rank) => rank,
            None if hold(epoch) => epoch,
            None => return Err(DatabaseError::Rank(epoch)),
        };
        tx.execute("UPDATE runner SET rank = ?1 WHERE epoch = ?2", (rank, epoch))?;
        tx.commit()?;
        Ok(rank)
    }

    /// Passes all other runners to `judge`, and makes the holder of `rank` the active runner if the
    /// answer is [`Gate::Pass`]. That begins a new epoch, in which the runner before cannot write.
    /// Judgement and promotion are one transaction.
    pub fn promote(
        &mut self,
        rank: i64,
        now: Time,
        judge: impl FnOnce(&[Runner]) -> Gate,
    ) -> Result<Gate> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (mine, others): (Vec<Runner>, Vec<Runner>) =
            standing(&tx)?.into_iter().partition(|row| row.rank == rank);
        let verdict = judge(&others);
        let Gate::Pass { gone } = &verdict else {
            return Ok(verdict);
        };
        let Some(mut me) = mine.into_iter().next_back() else {
            return Err(DatabaseError::NoSuch(format!("runner with rank {rank}")));
        };
        for epoch in gone {
            tx.execute("UPDATE runner SET state = 'ended' WHERE epoch = ?1", [epoch])?;
        }
        tx.execute("UPDATE runner SET state = 'ended' WHERE rank = ?1", [rank])?;
        tx.execute("UPDATE runner SET state = 'waiting' WHERE state = 'active'", [])?;
        me.since = now;
        let epoch = insert(&tx, "active", &me)?;
        tx.commit()?;
        self.epoch = epoch;
        Ok(verdict)
    }

    /// Makes a new runner active, whatever other runners there are. Only tests call it; the program
    /// goes through [`Database::register`] and [`Store::promote`].
    pub fn take_over(&mut self, unit: &str, boot: &str, now: Time) -> Result<i64> {
        let me = Runner {
            unit: unit.to_owned(),
            place: ProcessLocation { boot: boot.to_owned(), ..ProcessLocation::default() },
            since: now,
            ..Runner::default()
        };
        let rank = self.register(&me, false, |_| true)?;
        self.promote(rank, now, |others| Gate::Pass {
            gone: others.iter().map(|row| row.epoch).collect(),
        })?;
        Ok(self.epoch)
    }

    /// Records that a runner has ended and releases its rank.
    pub fn leave(&mut self, rank: i64) -> Result<()> {
        let sql = "UPDATE runner SET state = 'ended' WHERE rank = ?1";
        self.connection.execute(sql, [rank])?;
        Ok(())
    }

    /// Returns the runners that have not ended, as far as the table knows. Needs no epoch and waits
    /// for no writer.
    pub fn runners(&self) -> Result<Vec<Runner>> {
        standing(&self.connection)
    }

    /// Returns the epoch of this runner; 0 before its promotion.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Whether any crawl is queued or started.
    pub fn has_work(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM crawl WHERE status IN ('queued', 'started'))";
        Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
    }

    /// Returns a guard that other tasks ask whether this runner still is the active one.
    pub fn fence(&self) -> Result<Fence> {
        let path = self.connection.path().unwrap_or_default().to_owned();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(Fence { connection: Mutex::new(connection), epoch: self.epoch })
    }
}

impl Tx<'_> {
    /// Returns the same as [`Database::runners`].
    pub fn runners(&self) -> Result<Vec<Runner>> {
        standing(&self.inner)
    }
}

/// Returns the epoch of the active runner, if there is one.
pub fn current(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT epoch FROM runner WHERE state = 'active'")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Checks on a connection of its own, right before each call to systemd, that this runner still is
/// the active one.
pub struct Fence {
    connection: Mutex<Connection>,
    epoch: i64,
}

impl Fence {
    /// Returns false once another runner was promoted, and if the database cannot be read.
    pub fn holds(&self) -> bool {
        current(&lock(&self.connection)).is_ok_and(|epoch| epoch == Some(self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn open(directory: &Path) -> Database {
        Database::open(&directory.join("archivist.sqlite3")).unwrap()
    }

    fn me(unit: &str, restarts: bool) -> Runner {
        Runner { unit: unit.into(), pid: 7, restarts, since: Time(1), ..Runner::default() }
    }

    fn pass(_: &[Runner]) -> Gate {
        Gate::Pass { gone: Vec::new() }
    }

    #[test]
    fn superseded_runner_writes_and_starts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut old = open(directory.path());
        let rank = old.register(&me("old", false), false, |_| true).unwrap();
        old.promote(rank, Time(1), pass).unwrap();
        let fence = old.fence().unwrap();
        assert!(fence.holds() && old.begin().is_ok());
        let mut new = open(directory.path());
        let rank = new.register(&me("new", false), false, |_| true).unwrap();
        assert!(fence.holds(), "a waiting runner changes nothing");
        new.promote(rank, Time(2), pass).unwrap();
        assert!(!fence.holds());
        let error = old.begin().err().unwrap();
        assert!(matches!(error, DatabaseError::Superseded(_)), "{error:?}");
        assert!(new.begin().is_ok() && new.fence().unwrap().holds());
    }

    #[test]
    fn takeover_waits_for_a_transaction() {
        let directory = tempfile::tempdir().unwrap();
        let (mut old, mut new) = (open(directory.path()), open(directory.path()));
        old.take_over("old", "b", Time(1)).unwrap();
        new.connection.busy_timeout(Duration::from_millis(1)).unwrap();
        let tx = old.begin().unwrap();
        // A runner that was frozen in a transaction is listed, and its lock is respected.
        assert!(new.take_over("new", "b", Time(2)).is_err());
        assert_eq!(new.runners().unwrap()[0].unit, "old");
        tx.commit().unwrap();
        new.take_over("new", "b", Time(2)).unwrap();
    }

    #[test]
    fn runner_that_does_not_pass_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = open(directory.path());
        database.take_over("old", "b", Time(1)).unwrap();
        let mut other = open(directory.path());
        let rank = other.register(&me("new", false), false, |_| true).unwrap();
        let verdict = other.promote(rank, Time(2), |others| Gate::Replace(others.to_vec()));
        assert!(matches!(verdict.unwrap(), Gate::Replace(older) if older[0].unit == "old"));
        assert!(database.begin().is_ok());
        let rows = database.runners().unwrap();
        assert_eq!((rows[0].active, rows[1].active), (true, false));
    }

    #[test]
    fn waiting_and_restarted_runners_keep_their_rank() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = open(directory.path());
        let service = me("archivist-orchestrator.service", true);
        let first = database.register(&service, false, |_| true).unwrap();
        database.promote(first, Time(1), pass).unwrap();
        let by_hand = database.register(&me("", false), false, |_| true).unwrap();
        assert!(by_hand > first);
        database.promote(by_hand, Time(2), pass).unwrap();
        // Restarted by systemd: the rank of its predecessor. Started by a user: a new rank.
        let again = database.register(&service, true, |_| true).unwrap();
        assert_eq!(again, first);
        let anew = database.register(&service, false, |_| true).unwrap();
        assert!(anew > by_hand);
        // A living process holds the old rank: a new rank.
        let heir = database.register(&service, true, |rank| rank != anew).unwrap();
        assert!(heir > anew);
        // A runner that was recorded as ended registers under the rank that it holds.
        database.leave(by_hand).unwrap();
        let ranked = Runner { rank: by_hand, ..me("", false) };
        assert_eq!(database.register(&ranked, false, |_| false).unwrap(), by_hand);
        assert!(database.runners().unwrap().iter().any(|row| row.rank == by_hand));
    }

    #[test]
    fn every_promotion_begins_an_epoch() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = open(directory.path());
        let rank = database.register(&me("", false), false, |_| true).unwrap();
        database.promote(rank, Time(1), pass).unwrap();
        let fence = database.fence().unwrap();
        database.promote(rank, Time(2), pass).unwrap();
        assert!(!fence.holds() && database.fence().unwrap().holds());
        database.leave(rank).unwrap();
        assert!(database.begin().is_err());
        assert!(!database.has_work().unwrap());
    }
}
