//! Backups of a data directory, and their restoration: what `archivist backup` and `archivist restore`
//! start, with the rights of the user who calls them. Neither asks the orchestrator, so both work if
//! it does not.
//!
//! A backup is a directory of its own, named by its time. Its files `COMPLETE` and `INDEX` decide: a
//! backup without the first is none, and only what the second names is restored. `SHA256SUMS` has the
//! same digests for sha256sum(1).
//!
//! | written | because |
//! |---|---|
//! | the copy of the database, first | what is sealed in it has all its files already |
//! | configuration, then the data directory, in the order of their paths | the index of the backup before is read once, next to it |
//! | each page as a whole: what changes meanwhile is copied again, or left out | no half page |
//! | into the copy of the database: which pages are left out | it never claims files that are not there |
//! | index, sums, and after syncfs(2) `COMPLETE`, by rename(2); then the name of the directory | an interrupted backup is none |
//!
//! Files that did not change since the backup before are hard links to its copies. Nothing is linked
//! with the archive itself: a retry appends to files of sealed pages. Copies share its blocks, if the
//! file system can do that ([`archivist_plugin::files::copy`]).
//!
//! It is the program of the orchestrator, started a second time: the database belongs to root, and the
//! orchestrator itself, which has no capabilities, should write to no directory that a caller names. A
//! restoration verifies all files before it moves the first.

mod complete;
mod copy;
mod deleted;
mod index;
mod place;
mod restore;
mod source;
mod take;

#[cfg(test)]
mod tests;

use crate::database::DatabaseError;
use archivist_config::DATABASE;
use archivist_config::Scope;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const COMPLETE: &str = "COMPLETE";
const INDEX: &str = "INDEX";
const SUMS: &str = "SHA256SUMS";
/// The data directory and the configuration. The database has its own name.
const DATA: &str = "data";
const CONFIG: &str = "config";
/// The file of the locks of orchestrators, which are not restored.
const LOCKS: &str = "runner.lock";
/// The archive in the data directory, which may be another file system.
const ARCHIVE: &str = "archive";
/// What a restoration moved away: this and the time.
const BEFORE: &str = ".before-";
/// What a restoration has not moved into place yet.
const RESTORING: &str = ".restoring";
/// A directory that mkfs(8) creates.
const LOST_FOUND: &str = "lost+found";

/// Exit status if something could not be read and is missing in the backup, as of `archivist`.
const PARTLY: u8 = 3;

/// Why a backup or restoration failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Problem(String);

type Result<T> = std::result::Result<T, Problem>;

/// Returns a function that names verb and object of an error.
fn at<E: Display>(verb: &'static str, path: &Path) -> impl Fn(E) -> Problem + use<E> {
    let path = path.to_owned();
    move |error| Problem(format!("failed to {verb} '{}': {error}", path.display()))
}

/// Returns a function that names the database of an error.
fn of_store(database: &Path) -> impl Fn(DatabaseError) -> Problem + use<> {
    let database = database.to_owned();
    move |error| Problem(error.message(&database))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Backup {
        to: PathBuf,
        /// How many complete backups stay; all if none.
        keep: Option<usize>,
    },
    Restore {
        /// A backup, or the directory of all, whose newest one is restored.
        from: PathBuf,
        what: What,
        /// What becomes of pages that were deleted since the backup.
        deleted: Deleted,
    },
}

/// What becomes of pages of a backup that were deleted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The user is asked.
    Ask,
    /// They are deleted again.
    Again,
    /// They are restored.
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Data,
    DataAndConfig,
    /// The database: archive and library stay as they are.
    Database,
}

pub fn main(scope: &Scope, task: &Task) -> ExitCode {
    let done = match task {
        Task::Backup { to, keep } => take::take(scope, to, *keep),
        Task::Restore { from, what, deleted } => restore::restore(scope, from, *what, *deleted),
    };
    match done {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("archivist: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until everything that was written to the file system of a directory is on its disk.
fn sync(directory: &Path) -> Result<()> {
    let synced = std::fs::File::open(directory)
        .and_then(|open| nix::unistd::syncfs(open).map_err(io::Error::from));
    synced.map_err(at("write", directory))
}
