//! Memory: one SQLite file, one writer. Every write happens in a transaction that first makes
//! sure that this process still is the runner of its data directory.

mod clock;
pub mod damage;
mod lists;
mod open;
pub mod rows;
mod runner;
pub mod schema;
mod view;

pub use open::OpenError;
pub use rows::binary::BinaryRow;
pub use rows::check::{CheckRow, NewCheck};
pub use rows::crawl::{CrawlWork, NewCrawl, Users};
pub use rows::result::Finished;
pub use rows::run::{NewRun, RunRow};
pub use rows::snapshot::{NewSnapshot, SnapshotWork};
pub use rows::usage::Sum;
pub use runner::Fence;

use archivist_core::model::{IllegalTransition, Time};
use rusqlite::{Connection, TransactionBehavior};

/// Why a transaction came to nothing; nothing of it is in the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("database: {0}")]
    Document(#[from] serde_json::Error),
    #[error("{what}: {source}")]
    Illegal {
        what: String,
        source: IllegalTransition,
    },
    #[error("there is no {0}")]
    NoSuch(String),
    /// Another runner took over; this one must not write any more.
    #[error("another orchestrator took over this data directory (epoch {0} is not current)")]
    Superseded(i64),
    #[error("cannot hold seat {0} in the lock file of the data directory")]
    Seat(i64),
    #[error("database: '{text}' is not a {what}")]
    Corrupt { what: &'static str, text: String },
}

impl StoreError {
    /// Whether what was read can only have come about by damage.
    pub fn is_damage(&self) -> bool {
        use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType, Utf8Error};
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            StoreError::Corrupt { .. } | StoreError::Document(_) => true,
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

    /// Whether another process keeps its transaction open for too long.
    pub fn is_busy(&self) -> bool {
        let StoreError::Sqlite(error) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
    }
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// The database of one data directory.
pub struct Store {
    connection: Connection,
    epoch: i64,
    lasting: Lasting,
}

/// What a commit outlasts. The log is brought to the disk with the next one that outlasts power cuts,
/// and before it is taken into the database; so a power cut takes whole transactions, the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasting {
    /// The end of any process.
    Kills,
    /// That of the machine as well.
    PowerCuts,
}

impl Lasting {
    fn synchronous(self) -> &'static str {
        match self {
            Lasting::Kills => "normal",
            Lasting::PowerCuts => "full",
        }
    }
}

/// One transaction; dropped without [`Tx::commit`] it leaves no trace.
pub struct Tx<'a> {
    inner: rusqlite::Transaction<'a>,
    epoch: i64,
}

impl Store {
    /// Begins a transaction that may write.
    pub fn begin(&mut self) -> Result<Tx<'_>> {
        self.begin_lasting(Lasting::PowerCuts)
    }

    /// Begins one that may write, and whose commit outlasts that much at least.
    pub fn begin_lasting(&mut self, lasting: Lasting) -> Result<Tx<'_>> {
        // It cannot be changed within a transaction.
        if lasting != self.lasting {
            self.connection
                .pragma_update(None, "synchronous", lasting.synchronous())?;
            self.lasting = lasting;
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
    /// Makes the transaction last; only now may anything be started or acknowledged.
    pub fn commit(self) -> Result<()> {
        Ok(self.inner.commit()?)
    }

    /// Begins a part of the transaction that can be undone by itself.
    pub fn savepoint(&self) -> Result<()> {
        self.batch("SAVEPOINT part")
    }

    pub fn release_savepoint(&self) -> Result<()> {
        self.batch("RELEASE part")
    }

    pub fn roll_back_savepoint(&self) -> Result<()> {
        self.batch("ROLLBACK TO part")?;
        self.batch("RELEASE part")
    }

    fn batch(&self, sql: &'static str) -> Result<()> {
        self.inner.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// For columns of times that may be missing.
fn millis(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}
