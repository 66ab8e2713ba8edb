//! The database: one SQLite file with one writer. Each transaction that writes first checks that
//! this process still is the active runner of the data directory. The store returns rows; `query/`
//! makes documents of them.

mod clock;
mod column;
pub mod damage;
mod lists;
mod open;
pub mod rows;
mod runner;
pub mod schema;
mod view;

pub use lists::{
    CheckEntry, CheckFilter, CrawlEntry, HostEntry, ListFilter, RunEntry, SnapshotEntry,
};
pub use lists::{SpanEntry, SpanPageEntry};
pub use open::OpenError;
pub use rows::binary::BinaryRow;
pub use rows::check::{CheckRow, CheckState, NewCheck};
pub use rows::copy::{CopyCounts, STORE_TEST, TransferRow};
pub use rows::crawl::{CrawlWork, NewCrawl, Users};
pub use rows::result::{Finished, ResultRow};
pub use rows::run::{NewRun, RunRow, RunState};
pub use rows::snapshot::{NewSnapshot, SnapshotWork};
pub use rows::usage::Sum;
pub use rows::visit::VisitRow;
pub use runner::Fence;
pub use view::ViewQuery;

use archivist_core::model::{IllegalTransition, Time};
use rusqlite::{Connection, TransactionBehavior};

/// Why a transaction failed. Nothing of it is in the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused a statement, or the database is busy, full or damaged.
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A column is no JSON document of its type.
    #[error("database: {0}")]
    Document(#[from] serde_json::Error),
    /// A step that the state does not allow.
    #[error("{what}: {source}")]
    Illegal {
        /// The crawl or snapshot.
        what: String,
        /// State and step.
        source: IllegalTransition,
    },
    /// There is no such row.
    #[error("there is no {0}")]
    NoSuch(String),
    /// Another runner took over; this process must not write any more.
    #[error("another orchestrator took over this data directory (epoch {0} is not current)")]
    Superseded(i64),
    /// The lock of this rank could not be acquired.
    #[error("failed to lock rank {0} in the lock file of the data directory")]
    Rank(i64),
}

impl StoreError {
    /// Whether the database is damaged: it has values that the store never writes.
    pub fn is_damage(&self) -> bool {
        use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType, Utf8Error};
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            StoreError::Document(_) => true,
            StoreError::Sqlite(error) => {
                let code = error.sqlite_error_code();
                matches!(code, Some(DatabaseCorrupt | NotADatabase))
                    || matches!(
                        error,
                        FromSqlConversionFailure(..) | InvalidColumnType(..) | Utf8Error(..)
                    )
            }
            _ => false,
        }
    }

    /// Whether another process held its transaction open longer than the busy timeout.
    pub fn is_busy(&self) -> bool {
        let StoreError::Sqlite(error) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
    }
}

/// The result of a function of the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// How many rows have each status.
pub type Counts = std::collections::BTreeMap<String, u64>;

/// The database of one data directory.
pub struct Store {
    connection: Connection,
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

impl Store {
    /// Begins a transaction that may write and whose commit survives a loss of power.
    pub fn begin(&mut self) -> Result<Tx<'_>> {
        self.begin_with(Durability::PowerLoss)
    }

    /// Begins a transaction that may write and whose commit survives at least `durability`.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] if another runner was promoted.
    pub fn begin_with(&mut self, durability: Durability) -> Result<Tx<'_>> {
        // SQLite ignores the pragma within a transaction.
        if durability != self.durability {
            self.connection
                .pragma_update(None, "synchronous", durability.synchronous())?;
            self.durability = durability;
        }
        let epoch = self.epoch;
        let inner = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        if runner::current(&inner)? != Some(epoch) {
            return Err(StoreError::Superseded(epoch));
        }
        Ok(Tx { inner, epoch })
    }
}

impl Tx<'_> {
    /// Commits. Units may be started and calls answered only after this.
    pub fn commit(self) -> Result<()> {
        Ok(self.inner.commit()?)
    }

    /// Begins a part of the transaction that can be undone alone.
    pub fn savepoint(&self) -> Result<()> {
        self.batch("SAVEPOINT part")
    }

    /// Keeps what was written since the savepoint.
    pub fn release_savepoint(&self) -> Result<()> {
        self.batch("RELEASE part")
    }

    /// Undoes what was written since the savepoint.
    pub fn roll_back_savepoint(&self) -> Result<()> {
        self.batch("ROLLBACK TO part")?;
        self.batch("RELEASE part")
    }

    fn batch(&self, sql: &'static str) -> Result<()> {
        self.inner.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// Returns what a column stores for a time that may be missing.
fn millis(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}
