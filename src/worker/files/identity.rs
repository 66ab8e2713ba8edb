//! Whose directory it is: the identity of a crawl or snapshot, in a file.
//!
//! An id may be handed out twice: after an older copy of the database was restored, or with a new
//! database next to an old archive. The row of a crawl or snapshot therefore gets a random identity
//! before its first start. Its worker writes that to `.identity.json` in a directory named
//! `.new-IDENTITY`, and gives the directory its name with rename(2), which replaces empty directories
//! only. Each later start compares the identity. If the directory is another page's, the worker exits
//! with 73 and changes nothing, and the page gets a directory
//! `sN-XXXXXXXX` without losing an attempt (`orchestrator/work/taken.rs`). Its id stays, because
//! callers, the fleet and the store know it already.
//!
//! That is the last defence; it is seldom reached. Each worker leaves the highest ids of crawls, snapshots and
//! runs as empty files in `archive/.ids` (`shared/id_marks.rs`). At its start, after the archive was
//! not usable, and after a directory was taken, the orchestrator (`engine/fact_reader.rs`) compares
//! them with `sqlite_sequence`, and hands out only ids above both
//! (`orchestrator/main_loop/transaction.rs`). A transfer leaves the highest id of a page in the same
//! way in a store that is a directory (`src/store/marks.rs`), and the orchestrator compares it, too
//! (`machine/store_ids.rs`). It has no network for stores on other hosts: there, names of copies have
//! their SHA-256, and no copy replaces that of another page. Every start of a unit has a run, so an
//! older database is noticed even if it lacks no page.
//!
//! Before each decision, the orchestrator also looks at the archive as a whole (`shared/archive.rs`): a
//! directory that is missing, of another owner, of another installation (`shared/installation.rs`), or
//! empty although a hook succeeded before is pressure like a full disk. The same holds for the data
//! directory, `/run` and the clock (`shared/outage.rs`). A worker that fails while it lasts, whose
//! mounts fail (226), or that systemd cannot start for lack of space, loses no attempt.

use super::directory::{OWNER_MODE, build, failed, make, make_parent};
use crate::WorkerError;
use crate::files::write::sync_filesystem;
use archivist_core::model::{Owner, without_userinfo};
use archivist_core::store::STORED_MARKER;
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_plugin::files::whole::{Survives, replace};
use archivist_shared::bus::documents::work::Assignment;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Name of the file. It belongs to the worker, and the directory is sticky, so that hooks can neither
/// change nor remove it.
pub const NAME: &str = ".identity.json";
/// Mode of the file: hooks may read it.
const MODE: u32 = 0o640;
/// Longest identity that is read, in bytes.
const READ_MAX: u64 = 64 << 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    /// The crawl or snapshot, such as `s7`.
    id: String,
    /// Its URL without user name and password; empty if unknown.
    #[serde(default)]
    url: String,
    /// 128 random bits in hex.
    token: String,
}

/// Opens the directory of the crawl or snapshot of an assignment, and creates it at the first start.
///
/// # Errors
/// [`WorkerError::Taken`] if it exists and is that of another crawl or snapshot.
pub fn open_own(assignment: &Assignment) -> Result<Directory, WorkerError> {
    let path = &assignment.directory;
    match own(assignment) {
        None => make(path),
        Some(identity) => open(path, &identity),
    }
}

/// The same for the directories of many assignments in one file system, which is synced once for all.
pub fn open_all(assignments: &[Assignment]) -> Result<Vec<Directory>, WorkerError> {
    let mut to_name = Vec::new();
    let mut directories = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let path = &assignment.directory;
        let found = match own(assignment) {
            None => Some(make(path)?),
            Some(identity) => {
                let found = find(path, &identity)?;
                if found.is_none() {
                    let new = build_new(path, &identity, Survives::Kill)?;
                    to_name.push((directories.len(), path, new));
                }
                found
            }
        };
        directories.push(found);
    }
    if let Some((_, path, new)) = to_name.first() {
        let directory = Directory::open(new).map_err(failed("open", new))?;
        sync_filesystem(&directory).map_err(failed("sync", path))?;
    }
    for (place, path, new) in to_name {
        directories[place] = Some(name_new(&new, path)?);
    }
    Ok(directories.into_iter().flatten().collect())
}

/// The identity of the directory of an assignment; `None` if an older version made the directory.
fn own(assignment: &Assignment) -> Option<Identity> {
    Some(Identity {
        id: assignment.owner.to_string(),
        url: without_userinfo(&assignment.url),
        token: assignment.identity.clone()?,
    })
}

/// The same for the directory of the crawl. That it is another's is no reason to give the page of this
/// assignment another directory.
pub fn open_crawl(assignment: &Assignment) -> Result<Directory, WorkerError> {
    let path = &assignment.crawl_directory;
    let id = assignment.about.crawl.map(Owner::Crawl);
    let (Some(token), Some(id)) = (&assignment.crawl_identity, id) else {
        return make(path);
    };
    let identity = Identity { id: id.to_string(), url: String::new(), token: token.clone() };
    open(path, &identity).map_err(|error| match error {
        WorkerError::Taken { path, belongs } => {
            failed("use", &path)(std::io::Error::other(belongs))
        }
        other => other,
    })
}

fn open(path: &Path, identity: &Identity) -> Result<Directory, WorkerError> {
    match find(path, identity)? {
        Some(found) => Ok(found),
        None => name_new(&build_new(path, identity, Survives::PowerCut)?, path),
    }
}

/// Opens the directory if it exists and has this identity. `None` if the path is free.
fn find(path: &Path, identity: &Identity) -> Result<Option<Directory>, WorkerError> {
    make_parent(path)?;
    let taken = |belongs: String| WorkerError::Taken { path: path.to_owned(), belongs };
    let found = match Directory::open(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(taken("it is no directory".to_owned()));
        }
        Err(error) => return Err(failed("open", path)(error)),
    };
    match read(&found) {
        Ok(other) if other.token == identity.token => Ok(Some(found)),
        Ok(other) => Err(taken(format!(
            "it belongs to another {} '{}'",
            clean(&other.id),
            clean(&other.url)
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound && is_empty(path) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(taken(format!("it has files, but no '{NAME}'")))
        }
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(taken(format!("failed to read its '{NAME}': {error}")))
        }
        Err(error) => Err(failed("read", &path.join(NAME))(error)),
    }
}

/// What is at the path of a deleted crawl or snapshot.
pub enum Found {
    Nothing,
    Own,
    /// The directory of another one, or something that is no directory.
    Other,
}

/// Compares the identity of a directory. One of an older version has none, and neither has that of a
/// page whose files are in the store alone.
pub fn look(path: &Path, token: Option<&str>) -> std::io::Result<Found> {
    let directory = match Directory::open(path) {
        Ok(directory) => directory,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Found::Other),
        Err(error) => return Err(error),
    };
    let Some(token) = token else {
        return Ok(Found::Own);
    };
    match read(&directory) {
        Ok(identity) if identity.token == token => Ok(Found::Own),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_stored = directory.has_file(STORED_MARKER);
            Ok(if is_stored { Found::Own } else { Found::Other })
        }
        Ok(_) => Ok(Found::Other),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Found::Other),
        Err(error) => Err(error),
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn read(directory: &Directory) -> std::io::Result<Identity> {
    let mut text = String::new();
    let file = directory.read(NAME)?;
    file.take(READ_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))
}

/// Creates the directory under another name, and writes its identity. Returns its path.
/// The file must survive a power cut before the directory gets its name: otherwise it may be empty, and the
/// directory of no page.
fn build_new(path: &Path, identity: &Identity, survives: Survives) -> Result<PathBuf, WorkerError> {
    let new = path.with_file_name(format!(".new-{}", identity.token));
    build(&new, OWNER_MODE, false)?;
    let write = || {
        let text = serde_json::to_string(identity)? + "\n";
        replace(&new.join(NAME), text.as_bytes(), MODE, survives)
    };
    write().map_err(failed("write an identity in", &new))?;
    Ok(new)
}

/// Gives a new directory its name. rename(2) replaces an empty directory only, so that of two workers
/// one wins, and no crash leaves a directory with files and without an identity.
fn name_new(new: &Path, path: &Path) -> Result<Directory, WorkerError> {
    match std::fs::rename(new, path) {
        Ok(()) => Directory::open(path).map_err(failed("open", path)),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory
            ) =>
        {
            let _ = std::fs::remove_file(new.join(NAME));
            super::directory::remove(new);
            Err(WorkerError::Taken {
                path: path.to_owned(),
                belongs: "another process created it".to_owned(),
            })
        }
        Err(error) => Err(failed("create", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn identity(id: &str, token: &str) -> Identity {
        Identity {
            id: id.to_owned(),
            url: format!("http://a.test/{token}"),
            token: token.to_owned(),
        }
    }

    #[test]
    fn directory_of_another_page_is_never_used() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("day/host/s1");
        let own = open(&path, &identity("s1", "aa")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path) & 0o1000, 0o1000, "sticky");
        assert_eq!(mode(&path.join(NAME)), MODE);
        std::fs::write(path.join("page.html"), "first").unwrap();
        // The next start of the same page.
        drop(own);
        open(&path, &identity("s1", "aa")).unwrap();
        let error = open(&path, &identity("s1", "bb")).unwrap_err();
        assert!(matches!(error, WorkerError::Taken { .. }), "{error}");
        let said = error.to_string();
        assert!(said.ends_with("belongs to another s1 'http://a.test/aa'"), "{said}");
        // Of a version without identities.
        std::fs::remove_file(path.join(NAME)).unwrap();
        let error = open(&path, &identity("s1", "aa")).unwrap_err();
        assert!(matches!(error, WorkerError::Taken { .. }), "{error}");
        std::fs::write(path.join(NAME), "").unwrap();
        let error = open(&path, &identity("s1", "aa")).unwrap_err();
        assert!(matches!(error, WorkerError::Taken { .. }), "{error}");
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing else is left");
        assert_eq!(std::fs::read(path.join("page.html")).unwrap(), b"first");
    }

    #[test]
    fn crash_before_the_name_is_given_leaves_nothing_in_the_way() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s2");
        let new = top.path().join(".new-cc");
        std::fs::create_dir(&new).unwrap();
        std::fs::write(new.join(NAME), "{").unwrap();
        std::fs::create_dir(&path).unwrap();
        let own = open(&path, &identity("s2", "cc")).unwrap();
        assert_eq!(read(&own).unwrap(), identity("s2", "cc"));
        assert!(!new.exists());
    }

    #[test]
    fn of_two_workers_one_gets_the_directory() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s3");
        let tokens: Vec<String> = (0..8).map(|n| format!("{n:032}")).collect();
        let won = std::thread::scope(|scope| {
            let open = |token: &String| open(&path, &identity("s3", token)).is_ok();
            let threads: Vec<_> =
                tokens.iter().map(|token| scope.spawn(move || open(token))).collect();
            let ends = threads.into_iter().map(|thread| thread.join().unwrap());
            ends.filter(|won| *won).count()
        });
        assert_eq!(won, 1);
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 1);
    }
}
