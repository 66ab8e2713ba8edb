//! Opens the database, or refuses it.

use super::schema::{self, MIGRATIONS};
use super::{Database, Durability};
use nix::sys::statfs::{self, FsType};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the database was not opened. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened or created.
    #[error(
        "failed to open database '{path}': {source}\nis its directory there and writable? see: archivist doctor"
    )]
    Open { path: PathBuf, source: rusqlite::Error },
    /// The file is not a database, or not one of archivist.
    #[error(
        "'{path}' is not a database of archivist: {source}\nnothing was changed; move the file away or restore a backup, and start again"
    )]
    Garbage { path: PathBuf, source: rusqlite::Error },
    /// SQLite or the schema check found damage.
    #[error(
        "the database '{path}' is damaged: {what}\nnothing was changed; move it and '{path}-wal' away, then restore a backup, or recover its readable rows: sqlite3 '{path}' .recover | sqlite3 new.sqlite3; the files of the archive do not depend on it"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "'{path}' was written by a newer archivist (schema {found}, this one knows {known})\nnothing was changed; install the newer version again"
    )]
    Newer { path: PathBuf, found: usize, known: usize },
    /// It was written before the first schema was final.
    #[error(
        "'{path}' was written by a development version of archivist, whose database this one cannot read\nnothing was changed; move it away and start again: the files of the archive do not depend on it"
    )]
    Development { path: PathBuf },
    #[error(
        "'{path}' is on a network file system ({kind}), where SQLite cannot lock reliably\nmove the data directory to a local disk"
    )]
    Network { path: PathBuf, kind: &'static str },
    #[error("failed to migrate '{path}' from schema {from} to {to}: {source}")]
    Migrate {
        path: PathBuf,
        from: usize,
        /// Version after the migration.
        to: usize,
        source: rusqlite::Error,
    },
}

impl OpenError {
    /// Whether the cause may be a full disk instead of the file itself.
    pub fn may_pass(&self) -> bool {
        matches!(self, OpenError::Open { .. } | OpenError::Migrate { .. })
    }
}

/// Returns the kind of the file system if SQLite's write-ahead log cannot rely on its locks and
/// shared memory.
fn network_file_system(path: &Path) -> Option<&'static str> {
    const CIFS: i64 = 0xff53_4d42_u32 as i64;
    const SMB2: i64 = 0xfe53_4d42_u32 as i64;
    let kind = statfs::statfs(path).ok()?.filesystem_type();
    match kind {
        statfs::NFS_SUPER_MAGIC => Some("nfs"),
        statfs::SMB_SUPER_MAGIC => Some("smb"),
        FsType(CIFS | SMB2) => Some("cifs"),
        _ => None,
    }
}

/// Removes access to the database's files for all but their owner: a process that can read them can
/// also lock them (fcntl(2)), and they contain the tokens of workers. Files that SQLite creates
/// later have the mode of the database (SQLite's manual, "Temporary Files"). A file whose mode
/// cannot be changed is logged.
fn make_private(path: &Path) {
    let of = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let _ = File::options().write(true).create(true).truncate(false).mode(MODE).open(path);
    for path in [of(""), of("-wal"), of("-shm")] {
        let Ok(found) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let (kind, mode) = (found.file_type(), found.permissions().mode());
        if kind.is_file() && mode & 0o077 != 0 {
            let closed = std::fs::set_permissions(&path, Permissions::from_mode(MODE));
            if let Err(error) = closed {
                tracing::warn!(
                    "failed to restrict access to '{}': {error}, ignoring",
                    path.display()
                );
            }
        }
    }
}

/// Mode of the database's files.
const MODE: u32 = 0o600;

impl Database {
    /// Opens or creates the database at `path` and migrates it to the newest schema. It
    /// cannot write until [`Database::promote`] made this process the active runner.
    pub fn open(path: &Path) -> Result<Database, OpenError> {
        let directory = path.parent().unwrap_or(Path::new("."));
        if let Some(kind) = network_file_system(directory) {
            return Err(OpenError::Network { path: path.to_owned(), kind });
        }
        make_private(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)
            .map_err(|source| OpenError::Open { path: path.to_owned(), source })?;
        let refuse = |source: rusqlite::Error| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                OpenError::Garbage { path: path.to_owned(), source }
            }
            // None: a column has another type than text.
            Some(rusqlite::ErrorCode::DatabaseCorrupt) | None => {
                OpenError::Damaged { path: path.to_owned(), what: source.to_string() }
            }
            _ => OpenError::Open { path: path.to_owned(), source },
        };
        // Before anything that writes; setting the journal mode writes.
        let found = schema::version(&connection).map_err(refuse)?;
        let is_of_development = schema::is_of_development(&connection).map_err(refuse)?;
        check_version(path, found, is_of_development)?;
        configure(&connection).map_err(refuse)?;
        schema::migrate(&mut connection, MIGRATIONS).map_err(|source| OpenError::Migrate {
            path: path.to_owned(),
            from: found,
            to: MIGRATIONS.len(),
            source,
        })?;
        let known = definitions(&newest().map_err(refuse)?).map_err(refuse)?;
        let there = definitions(&connection).map_err(refuse)?;
        if let Some(odd) = known.difference(&there).next() {
            return Err(OpenError::Damaged {
                path: path.to_owned(),
                what: format!(
                    "its {} '{}' has another definition than it was created with",
                    odd.0, odd.1
                ),
            });
        }
        // The lock of SQLite does not depend on it, so that a later replacement is noticed.
        let file = super::identity(path).map_err(|error| OpenError::Open {
            path: path.to_owned(),
            source: rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
                Some(error.to_string()),
            ),
        })?;
        Ok(Database {
            connection,
            path: path.to_owned(),
            file,
            epoch: 0,
            durability: Durability::PowerLoss,
        })
    }
}

/// Refuses a database with a schema that this program does not know.
///
/// # Errors
/// [`OpenError::Development`] or [`OpenError::Newer`].
pub(super) fn check_version(
    path: &Path,
    found: usize,
    is_of_development: bool,
) -> Result<(), OpenError> {
    let path = path.to_owned();
    if is_of_development {
        return Err(OpenError::Development { path });
    }
    let known = MIGRATIONS.len();
    if found > known {
        return Err(OpenError::Newer { path, found, known });
    }
    Ok(())
}

/// Prepared statements that are cached; more than the source has.
const STATEMENTS: usize = 256;

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    // Only an empty file takes the setting, so it precedes the journal mode, which writes the first page.
    // On a file with tables, the statement waits for the lock of any process that writes.
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages == 0 {
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", Durability::PowerLoss.synchronous())?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    // Savepoints and sorting otherwise write to a file in /var/tmp, which may be full, or removed by hand.
    connection.pragma_update(None, "temp_store", "memory")?;
    // Otherwise SQLite prepares a statement again whenever a bound value could change its plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// Returns an empty database of the newest schema.
fn newest() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    schema::migrate(&mut connection, MIGRATIONS)?;
    Ok(connection)
}

/// Returns kind, name and definition of everything in a database; spaces in definitions do not
/// count. Other programs may have added to them.
fn definitions(connection: &Connection) -> rusqlite::Result<BTreeSet<(String, String, String)>> {
    let mut statement =
        connection.prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql <> ''")?;
    let rows = statement.query_map([], |row| {
        let sql: String = row.get(2)?;
        let words: Vec<&str> = sql.split_whitespace().collect();
        Ok((row.get(0)?, row.get(1)?, words.join(" ")))
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    /// The directory for temporary files of the service can be removed by hand.
    #[test]
    fn no_statement_needs_a_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(&directory.path().join("archivist.sqlite3")).unwrap();
        // Another test may have a small one.
        let is_temporary = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let is_large = std::fs::metadata(&path).is_ok_and(|file| file.len() > 1 << 20);
            is_large && std::fs::read_link(path).is_ok_and(|file| file.starts_with("/var/tmp"))
        };
        // A sort that exceeds the cache of 2 MB, and is read while its file would be open.
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
            SELECT hex(randomblob(500)) AS text FROM n ORDER BY text";
        let mut statement = database.connection.prepare(sql).unwrap();
        let mut rows = statement.query([]).unwrap();
        assert!(rows.next().unwrap().is_some());
        let mut files = std::fs::read_dir("/proc/self/fd").unwrap();
        assert!(!files.any(is_temporary));
    }

    /// 1 is normal, 2 is full (SQLite's manual, PRAGMA synchronous).
    #[test]
    fn commit_has_the_requested_durability() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("archivist.sqlite3")).unwrap();
        let synchronous = |database: &Database| -> i64 {
            let value = |row: &rusqlite::Row<'_>| row.get(0);
            database.connection.pragma_query_value(None, "synchronous", value).unwrap()
        };
        database.take_over("unit", "boot", Time(1)).unwrap();
        assert_eq!(synchronous(&database), 2);
        for (durability, expected) in [
            (Durability::ProcessCrash, 1),
            (Durability::ProcessCrash, 1),
            (Durability::PowerLoss, 2),
        ] {
            database.begin_with(durability).unwrap().commit().unwrap();
            assert_eq!(synchronous(&database), expected);
        }
        database.begin_with(Durability::ProcessCrash).unwrap();
        database.begin().unwrap();
        assert_eq!(synchronous(&database), 2);
    }

    /// A new runner opens the database while the frozen one that it replaces holds the write lock.
    #[test]
    fn database_opens_while_another_process_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        drop(Database::open(&path).unwrap());
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        Database::open(&path).unwrap();
    }

    #[test]
    fn files_are_private_to_their_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        let modes = || {
            let files = std::fs::read_dir(directory.path()).unwrap();
            let modes =
                files.map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777);
            modes.collect::<BTreeSet<u32>>()
        };
        let open = || {
            let mut database = Database::open(&path).unwrap();
            database.take_over("unit", "boot", Time(1)).unwrap();
            database
        };
        let database = open();
        assert_eq!(modes(), BTreeSet::from([MODE]));
        // What an administrator or a restored copy opened to others is closed at the next start.
        for file in std::fs::read_dir(directory.path()).unwrap() {
            std::fs::set_permissions(file.unwrap().path(), Permissions::from_mode(0o640)).unwrap();
        }
        drop((open(), database));
        assert_eq!(modes(), BTreeSet::from([MODE]));
    }

    #[test]
    fn garbage_is_refused_and_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        std::fs::write(&path, b"not a database, but long enough to be looked at".repeat(50))
            .unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = Database::open(&path).err().unwrap();
        assert!(matches!(error, OpenError::Garbage { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn damaged_definition_is_refused_and_additional_one_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        drop(Database::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE INDEX mine ON crawl (created_at)").unwrap();
        drop(connection);
        drop(Database::open(&path).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        // Moved cells leave their old text behind, so all copies are changed.
        for place in 0..bytes.len() - 7 {
            if &bytes[place..place + 7] == b"abspath" {
                bytes[place] = b'A';
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let error = Database::open(&path).err().unwrap().to_string();
        assert!(error.contains("damaged: its table 'binary'"), "{error}");
    }

    #[test]
    fn newer_schema_is_refused_and_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = Database::open(&path).err().unwrap().to_string();
        assert!(error.contains("newer archivist (schema 999"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn moved_database_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        let away = directory.path().join("away");
        let mut database = Database::open(&path).unwrap();
        database.take_over("one", "boot", Time(1)).unwrap();
        std::fs::rename(&path, &away).unwrap();
        let moved = |database: &mut Database| {
            let error = database.begin().err();
            matches!(error, Some(super::super::DatabaseError::Moved))
        };
        assert!(moved(&mut database));
        std::fs::copy(&away, &path).unwrap();
        assert!(moved(&mut database), "a copy is another file");
        std::fs::rename(&away, &path).unwrap();
        assert!(database.begin().is_ok());
    }

    #[test]
    fn superseded_runner_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archivist.sqlite3");
        let mut first = Database::open(&path).unwrap();
        first.take_over("one", "boot", Time(1)).unwrap();
        assert!(first.begin().is_ok());
        let mut second = Database::open(&path).unwrap();
        second.take_over("two", "boot", Time(2)).unwrap();
        let error = first.begin().err().unwrap();
        assert!(matches!(error, super::super::DatabaseError::Superseded(2)), "{error:?}");
        assert!(second.begin().is_ok());
    }

    #[test]
    fn bundled_sqlite_has_the_fix_for_wal_corruption() {
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }
}
