//! The database: one SQLite file with one writer. Each transaction that writes first checks that
//! this process still is the active runner of the data directory. It returns rows; `query/`
//! makes documents of them.
//!
//! No work is done before the whole file was checked (`process/database_check.rs`), unless its stamp is
//! that which an orchestrator of this boot recorded at its normal end (`shared/database.rs`). The
//! record says "damaged" in the same way, and commands start no orchestrator then. A transaction begins
//! only if the path still leads to the file that was opened. Errors of it have no text of their
//! own; `DatabaseError::message` asks for the path.

pub mod backup;
pub(crate) mod clock;
pub(crate) mod column;
pub mod damage;
pub(crate) mod lists;
mod open;
pub mod rows;
mod runner;
pub mod schema;
mod view;

pub use open::OpenError;
pub use rows::binary::BinaryRow;
pub use rows::crawl::{CrawlWork, NewCrawl, Users};
pub use rows::result::Finished;
pub use rows::run::{FORGIVEN_MAX, NewRun, RunRow, Variables};
pub use rows::snapshot::{NewSnapshot, SnapshotWork};
pub use rows::unit::{RunState, UnitRow};
pub use rows::usage::Sum;
pub use rows::visit::VisitRow;
pub use runner::Fence;
pub use view::ViewQuery;

use archivist_core::model::{IllegalTransition, Time};
use archivist_shared::disk::FreeSpace;
use column::FromRow;
use rusqlite::{Connection, OptionalExtension, Params, TransactionBehavior};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a transaction failed. Nothing of it is in the database. It has no text of its own: the message
/// for users needs the file, which [`DatabaseError::message`] gets.
#[derive(Debug)]
pub enum DatabaseError {
    /// SQLite refused a statement, or the database is busy, full or damaged.
    Sqlite(rusqlite::Error),
    /// A column is no JSON document of its type.
    Document(serde_json::Error),
    /// A step that the state does not allow.
    Illegal {
        /// The crawl or snapshot.
        what: String,
        source: IllegalTransition,
    },
    /// There is no such row.
    NoSuch(String),
    /// Another runner took over; this process must not write any more.
    Superseded(i64),
    /// The file is not at its path any more, where it was opened: whatever is written to it is lost.
    Moved,
    Damaged(String),
    /// The lock of this rank could not be acquired.
    Rank(i64),
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> DatabaseError {
        DatabaseError::Sqlite(error)
    }
}

impl From<serde_json::Error> for DatabaseError {
    fn from(error: serde_json::Error) -> DatabaseError {
        DatabaseError::Document(error)
    }
}

/// Returns the text of an error of a file whose file system may be read-only: the system remounts one in
/// this way after an error, and SQLite reports each write as an error of the disk.
fn with_cause(error: &rusqlite::Error, is_read_only: bool) -> String {
    if is_read_only { format!("its file system is read-only ({error})") } else { error.to_string() }
}

fn is_read_only(database: &Path) -> bool {
    let directory = database.parent().unwrap_or(database);
    FreeSpace::at(directory).is_ok_and(|space| space.is_read_only)
}

impl DatabaseError {
    /// Returns the message for users: the reason, with the file if it is about the file, and on a second
    /// line commands that show more.
    pub fn message(&self, database: &Path) -> String {
        let of_file = |why: &str| {
            let directory = database.parent().unwrap_or(database).display();
            format!(
                "failed to use the database '{}': {why}\nsee: df '{directory}'; journalctl --dmesg --lines=20",
                database.display()
            )
        };
        match self {
            DatabaseError::Sqlite(error) => of_file(&with_cause(error, is_read_only(database))),
            DatabaseError::Document(error) => of_file(&error.to_string()),
            DatabaseError::Damaged(report) => of_file(&format!("it is damaged: {report}")),
            DatabaseError::Moved => of_file("it was moved, removed or replaced while it is in use"),
            DatabaseError::Illegal { what, source } => format!("{what}: {source}"),
            DatabaseError::NoSuch(what) => format!("there is no {what}"),
            DatabaseError::Superseded(epoch) => format!(
                "another orchestrator took over this data directory (epoch {epoch} is not current)"
            ),
            DatabaseError::Rank(rank) => format!(
                "failed to lock rank {rank} in the lock file next to '{}'",
                database.display()
            ),
        }
    }

    /// Returns what is wrong with the database if it is damaged: it has values that we never
    /// writes.
    pub fn damage(&self) -> Option<String> {
        use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType, Utf8Error};
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            DatabaseError::Document(error) => Some(error.to_string()),
            DatabaseError::Damaged(report) => Some(report.clone()),
            DatabaseError::Sqlite(error) => {
                let code = error.sqlite_error_code();
                let is_damage = matches!(code, Some(DatabaseCorrupt | NotADatabase))
                    || matches!(
                        error,
                        FromSqlConversionFailure(..) | InvalidColumnType(..) | Utf8Error(..)
                    );
                is_damage.then(|| error.to_string())
            }
            _ => None,
        }
    }

    /// Whether another process held its transaction open longer than the busy timeout.
    pub fn is_busy(&self) -> bool {
        let DatabaseError::Sqlite(error) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
    }
}

pub type Result<T> = std::result::Result<T, DatabaseError>;

pub type Counts = std::collections::BTreeMap<String, u64>;

pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Device and inode of the file that was opened.
    file: (u64, u64),
    epoch: i64,
    durability: Durability,
}

/// What a commit survives. SQLite writes the write-ahead log to the disk at the next commit that
/// survives a loss of power, and before each checkpoint, so a loss of power takes the last
/// transactions as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The end of any process.
    ProcessCrash,
    /// The end of the machine as well.
    PowerLoss,
}

impl Durability {
    fn synchronous(self) -> &'static str {
        match self {
            Durability::ProcessCrash => "normal",
            Durability::PowerLoss => "full",
        }
    }
}

/// A transaction. Dropping it without [`Tx::commit`] undoes it.
pub struct Tx<'a> {
    inner: rusqlite::Transaction<'a>,
    epoch: i64,
}

impl Database {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a file at the path of the database, which may be another one.
    pub fn has_file(&self) -> bool {
        self.path.exists()
    }

    /// Begins a transaction that may write and whose commit survives a loss of power.
    pub fn begin(&mut self) -> Result<Tx<'_>> {
        self.begin_with(Durability::PowerLoss)
    }

    /// Begins a transaction that may write and whose commit survives at least `durability`.
    ///
    /// # Errors
    /// [`DatabaseError::Superseded`] if another runner was promoted; [`DatabaseError::Moved`] if no later
    /// process would find what is written.
    pub fn begin_with(&mut self, durability: Durability) -> Result<Tx<'_>> {
        if identity(&self.path).ok() != Some(self.file) {
            return Err(DatabaseError::Moved);
        }
        // SQLite ignores the pragma within a transaction.
        if durability != self.durability {
            self.connection.pragma_update(None, "synchronous", durability.synchronous())?;
            self.durability = durability;
        }
        let epoch = self.epoch;
        let inner = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if runner::current(&inner)? != Some(epoch) {
            return Err(DatabaseError::Superseded(epoch));
        }
        Ok(Tx { inner, epoch })
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Tx<'_> {
    /// Commits. Units may be started and calls answered only after this.
    pub fn commit(self) -> Result<()> {
        Ok(self.inner.commit()?)
    }

    /// Begins a part of the transaction that can be undone alone.
    pub fn savepoint(&self) -> Result<()> {
        self.execute("SAVEPOINT part", [])
    }

    /// Keeps what was written since the savepoint.
    pub fn release_savepoint(&self) -> Result<()> {
        self.execute("RELEASE part", [])
    }

    /// Undoes what was written since the savepoint.
    pub fn roll_back_savepoint(&self) -> Result<()> {
        self.execute("ROLLBACK TO part", [])?;
        self.execute("RELEASE part", [])
    }

    pub(crate) fn execute(&self, sql: &str, parameters: impl Params) -> Result<()> {
        self.change(sql, parameters)?;
        Ok(())
    }

    /// Executes a statement. Returns how many rows it changed.
    pub(crate) fn change(&self, sql: &str, parameters: impl Params) -> Result<usize> {
        Ok(self.inner.prepare_cached(sql)?.execute(parameters)?)
    }

    pub(crate) fn one<T: FromRow>(&self, sql: &str, parameters: impl Params) -> Result<T> {
        let mut statement = self.inner.prepare_cached(sql)?;
        Ok(statement.query_row(parameters, T::from_row)?)
    }

    /// Returns the first row of a query, if any.
    pub(crate) fn first<T: FromRow>(
        &self,
        sql: &str,
        parameters: impl Params,
    ) -> Result<Option<T>> {
        let mut statement = self.inner.prepare_cached(sql)?;
        Ok(statement.query_row(parameters, T::from_row).optional()?)
    }

    pub(crate) fn all<T: FromRow, C: FromIterator<T>>(
        &self,
        sql: &str,
        parameters: impl Params,
    ) -> Result<C> {
        let mut statement = self.inner.prepare_cached(sql)?;
        let rows = statement.query_map(parameters, T::from_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// Pages of the file that hold nothing and stay for rows to come: 1 MiB.
const SPARE_PAGES: i64 = 256;
/// Unused pages that one transaction returns.
const PAGES_PER_TRANSACTION: i64 = 256;

impl Tx<'_> {
    /// Returns unused pages of the file to the file system, as many as one transaction may.
    pub fn shrink(&self) -> Result<Shrunk> {
        let unused = |tx: &Tx<'_>| tx.one::<i64>("PRAGMA freelist_count", []);
        let before = unused(self)?;
        if before <= SPARE_PAGES {
            return Ok(Shrunk::Nothing);
        }
        let pages = PAGES_PER_TRANSACTION.min(before - SPARE_PAGES);
        // Each row is a page that was returned.
        let sql = format!("PRAGMA incremental_vacuum({pages})");
        let mut statement = self.inner.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        let after = unused(self)?;
        Ok(if after == before {
            // The file was created without auto_vacuum, so SQLite returns no page.
            Shrunk::Nothing
        } else if after > SPARE_PAGES {
            Shrunk::Some
        } else {
            Shrunk::All(self.file_size()?)
        })
    }

    /// Returns the size of the file in bytes, as of this transaction.
    pub fn file_size(&self) -> Result<u64> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        Ok(self.one::<i64>(sql, [])?.unsigned_abs())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// There were too few.
    Nothing,
    /// Some were returned to the file system, and there are more.
    Some,
    /// The last were returned. The size of the file in bytes.
    All(u64),
}

/// Returns what a column stores for a time that may be missing.
pub(crate) fn millis(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_file_name_it_and_a_command() {
        let path = Path::new("/var/lib/archivist/archivist.sqlite3");
        for error in [
            DatabaseError::from(rusqlite::Error::InvalidQuery),
            serde_json::from_str::<u8>("x").unwrap_err().into(),
            DatabaseError::Moved,
        ] {
            let message = error.message(path);
            let (what, fix) = message.split_once('\n').unwrap();
            let begin = "failed to use the database '/var/lib/archivist/archivist.sqlite3': ";
            assert!(what.starts_with(begin), "{what}");
            assert!(fix.starts_with("see: df '/var/lib/archivist'; "), "{fix}");
        }
        let error = rusqlite::Error::InvalidQuery;
        assert!(with_cause(&error, true).starts_with("its file system is read-only ("));
        assert_eq!(with_cause(&error, false), error.to_string());
        let other = DatabaseError::NoSuch("crawl c7".to_owned()).message(path);
        assert_eq!(other, "there is no crawl c7");
    }
}
