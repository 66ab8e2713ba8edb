//! Copies of the database for backups, which no orchestrator uses.

use super::open::check_version;
use super::schema;
use super::{Database, DatabaseError, OpenError, Result, Tx, damage};
use crate::database::column::column;
use crate::database::rows::directory::row_of;
use archivist_core::model::{CrawlId, Owner, SnapshotId, Time};
use archivist_shared::deleted::DeletedIds;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Why a page that is in a copy of the database is incomplete.
const LEFT_OUT: &str = "its files are not in the backup that was restored";
/// A restored archive builds the index of full text search from its rows and texts. A run that changes the
/// index stays open, as all runs do, until the orchestrator sees that its unit is gone.
const REBUILD_SEARCH: &str = "UPDATE search_index SET build = build + 1, built_to = 0;
    DELETE FROM search_queue;";
/// Longest wait for a transaction of the orchestrator.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// A crawl or snapshot that has a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRow {
    /// The crawl or snapshot.
    pub owner: Owner,
    pub url: String,
    pub directory: String,
    /// Whether its hooks ran when the copy was made.
    pub runs: bool,
}

pub struct DatabaseCopy {
    connection: Connection,
}

impl DatabaseCopy {
    /// Copies the database `from` to the new file `to` with SQLite's backup API: the state of one
    /// time, also while an orchestrator writes.
    ///
    /// # Errors
    /// If a file cannot be read or written, or if the database is damaged.
    pub fn make(from: &Path, to: &Path) -> Result<DatabaseCopy> {
        // A reader of a database with a write-ahead log writes to the index of the log.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let source = Connection::open_with_flags(from, flags)?;
        source.busy_timeout(BUSY_TIMEOUT)?;
        source.pragma_update(None, "query_only", true)?;
        let mut connection = Connection::open(to)?;
        copy_all(&source, &mut connection)?;
        drop(source);
        // One file, whatever becomes of this process.
        connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
        let report: String =
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if report == "ok" {
            // The index is not in a backup.
            if schema::version(&connection)? == schema::MIGRATIONS.len() {
                connection.execute_batch(REBUILD_SEARCH)?;
            }
            Ok(DatabaseCopy { connection })
        } else {
            Err(DatabaseError::Damaged(report))
        }
    }

    /// Returns a crawl or snapshot; none if the copy does not have it, or no directory of it.
    pub fn owner(&self, owner: Owner) -> Result<Option<OwnerRow>> {
        let (table, id) = row_of(owner);
        let sql = format!(
            "SELECT url, directory, status = 'started' FROM {table} WHERE id = ?1 AND directory <> ''"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let row = statement.query_row([id], |row| {
            Ok(OwnerRow { owner, url: row.get(0)?, directory: row.get(1)?, runs: row.get(2)? })
        });
        Ok(row.optional()?)
    }

    /// Returns the snapshots whose hooks run.
    pub fn running(&self) -> Result<Vec<OwnerRow>> {
        let sql = "SELECT 's' || id FROM snapshot
            WHERE status = 'started' AND directory <> '' ORDER BY id";
        let mut statement = self.connection.prepare(sql)?;
        let owners = statement.query_map([], |row| column(row, 0))?;
        let owners: Vec<Owner> = owners.collect::<rusqlite::Result<_>>()?;
        let rows = owners.into_iter().map(|owner| self.owner(owner));
        let rows: Vec<Option<OwnerRow>> = rows.collect::<Result<_>>()?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Says in the copy that the files of a snapshot are not there: a running one gets all results
    /// again, and a sealed one is incomplete, so that a retry of failures runs its hooks again.
    pub fn leave_out(&self, owner: Owner) -> Result<()> {
        let Owner::Snapshot(id) = owner else {
            return Ok(());
        };
        self.connection.execute(
            "UPDATE result SET output = NULL, files = '[]', size = 0,
                 status = CASE WHEN snapshot.status = 'started' THEN 'queued' ELSE 'failed' END,
                 error = CASE WHEN snapshot.status = 'started' THEN NULL ELSE ?2 END
             FROM snapshot WHERE snapshot.id = ?1 AND result.owner = 's' || ?1",
            (id.0, LEFT_OUT),
        )?;
        self.connection.execute(
            "UPDATE snapshot SET reason = ?2 WHERE id = ?1 AND status = 'sealed'",
            (id.0, LEFT_OUT),
        )?;
        Ok(())
    }

    pub fn close(self) -> Result<()> {
        let closed = self.connection.close();
        closed.map_err(|(_, error)| DatabaseError::Sqlite(error))
    }
}

/// In one step, so that no transaction in between begins it again.
fn copy_all(from: &Connection, to: &mut Connection) -> Result<()> {
    let backup = Backup::new(from, to)?;
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match backup.step(-1)? {
            StepResult::Done => return Ok(()),
            _ if Instant::now() >= deadline => return Err(DatabaseError::Sqlite(busy())),
            // SQLite has waited for the busy timeout already, if another process holds the lock.
            _ => std::thread::yield_now(),
        }
    }
}

fn busy() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    rusqlite::Error::SqliteFailure(code, None)
}

/// Refuses a database that this program cannot use: of a newer version, or damaged.
///
/// # Errors
/// See [`OpenError`].
pub fn check_usable(path: &Path) -> std::result::Result<(), OpenError> {
    let garbage = |source| OpenError::Garbage { path: path.to_owned(), source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let found = connection.and_then(|connection| {
        let version = schema::version(&connection)?;
        Ok((version, schema::is_of_development(&connection)?))
    });
    let (version, is_of_development) = found.map_err(garbage)?;
    check_version(path, version, is_of_development)?;
    let damaged = |what| OpenError::Damaged { path: path.to_owned(), what };
    match damage::check(path) {
        damage::FileCheck::Whole => Ok(()),
        damage::FileCheck::Damaged(what) => Err(damaged(what)),
        damage::FileCheck::Unknown => Err(damaged("it cannot be read".to_owned())),
    }
}

/// Makes the ids of the database `path` continue above those of the database `other`, which it
/// replaces. An unreadable one is ignored.
///
/// # Errors
/// If `path` cannot be written.
pub fn continue_ids_of(other: &Path, path: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = || -> rusqlite::Result<Vec<(String, i64)>> {
        let connection = Connection::open_with_flags(other, flags)?;
        connection.pragma_update(None, "query_only", true)?;
        let mut statement = connection.prepare("SELECT name, seq FROM sqlite_sequence")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let Ok(used) = read() else {
        return Ok(());
    };
    let mut connection = Connection::open_with_flags(path, flags)?;
    let tx = connection.transaction()?;
    for (table, id) in used {
        let raised = tx.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
            (&table, id),
        )?;
        if raised == 0 {
            tx.execute("INSERT INTO sqlite_sequence VALUES (?1, ?2)", (&table, id))?;
        }
    }
    Ok(tx.commit()?)
}

/// A page of a backup that was deleted since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedPage {
    pub crawl: CrawlId,
    pub url: String,
    /// When it, or its crawl, was deleted.
    pub deleted_at: Time,
}

/// Returns the pages of the database `path` that were deleted, themselves or with their crawls. A page that
/// was queued after the deletion is another one, as after everything was removed by hand.
///
/// # Errors
/// If the database cannot be read.
pub fn returned(path: &Path, deleted: &DeletedIds) -> Result<BTreeMap<SnapshotId, ReturnedPage>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    let sql = |column| {
        format!("SELECT id, crawl_id, url FROM snapshot WHERE {column} = ?1 AND created_at <= ?2")
    };
    let mut by_id = connection.prepare(&sql("id"))?;
    let mut by_crawl = connection.prepare(&sql("crawl_id"))?;
    let mut found = BTreeMap::new();
    for (owner, time) in deleted {
        let (statement, id) = match owner {
            Owner::Snapshot(id) => (&mut by_id, id.0),
            Owner::Crawl(id) => (&mut by_crawl, id.0),
        };
        let pages = statement.query_map((id, time), |row| {
            let (crawl, url) = (CrawlId(row.get(1)?), row.get(2)?);
            let page = ReturnedPage { crawl, url, deleted_at: Time(*time) };
            Ok((SnapshotId(row.get(0)?), page))
        })?;
        for page in pages {
            let (id, page) = page?;
            found.insert(id, page);
        }
    }
    Ok(found)
}

/// Deletes pages of the database `path`, which no orchestrator uses, and crawls of which no page is left.
/// Their files and their copies in the store are removed when an orchestrator uses it.
///
/// # Errors
/// If the database cannot be opened or written.
pub fn delete_again(
    path: &Path,
    pages: &BTreeMap<SnapshotId, ReturnedPage>,
    now: Time,
) -> std::result::Result<(), String> {
    let mut database = Database::open(path).map_err(|error| error.to_string())?;
    let done = delete_pages(&mut database, pages, now);
    done.map_err(|error| error.message(path))
}

fn delete_pages(
    database: &mut Database,
    pages: &BTreeMap<SnapshotId, ReturnedPage>,
    now: Time,
) -> Result<()> {
    let inner = database.connection.transaction()?;
    let tx = Tx { inner, epoch: 0 };
    for id in pages.keys() {
        if let Some(copy) = tx.copy(*id)? {
            tx.delete_copy(*id, copy, now)?;
        }
        tx.delete_snapshot(*id, now)?;
    }
    let crawls: BTreeSet<CrawlId> = pages.values().map(|page| page.crawl).collect();
    for crawl in crawls {
        if tx.is_without_pages(crawl)? {
            tx.delete_crawl(crawl, now)?;
        }
    }
    tx.commit()
}
