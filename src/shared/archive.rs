//! Whether the directory of the archive can be used. Its file system may not be mounted, or it may
//! belong to another user or to another installation.

use crate::installation;
use archivist_config::Scope;
use nix::unistd::{User, geteuid};
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// User of the workers of the machine's orchestrator.
const WORKER_USER: &str = "archivist";
/// Directory of imported files below that of the archive. Their names begin with their SHA-256.
pub const IMPORTED: &str = ".imported";
/// Setting of a crawl with the name of the imported file of its pages.
pub const IMPORT_FILE: &str = "IMPORT_FILE";
/// Setting of a crawl with the name that the imported file had.
pub const IMPORT_SOURCE: &str = "IMPORT_SOURCE";
/// Setting of a crawl whose pages are entries of a list that were recorded without a visit.
pub const IMPORT_KEEP: &str = "IMPORT_KEEP";
pub const IMPORT_PLUGIN: &str = "import";
/// Directory of bodies that recordings share, below that of the archive: one directory for the pages of
/// the same users and persona, because a page must not learn from the size of its recording what others
/// have.
pub const BODIES: &str = ".bodies";
/// First characters of the name that the directory of a deleted crawl or page has until it is removed.
pub const DELETED_PREFIX: &str = ".deleted-";
/// Begin of the tag of the pages of an imported file, which the first 16 digits of its SHA-256 follow.
pub const IMPORT_TAG: &str = "imported-";
/// Entries of an archive without pages: temporary files, and what mkfs(8) creates.
const NO_PAGES: [&str; 2] = [".run", "lost+found"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveProblem {
    path: PathBuf,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Missing,
    NoDirectory,
    /// The user id of its owner.
    Owner(u32),
    /// The file with the identity of the data directory.
    Foreign(PathBuf),
    Empty,
}

impl ArchiveProblem {
    /// Whether this is no problem as long as nothing was archived.
    pub fn is_usual_at_first(&self, scope: &Scope) -> bool {
        match self.what {
            What::Empty => true,
            // The first worker of a user creates it, and the package that of the machine.
            What::Missing => scope.user,
            What::NoDirectory | What::Owner(_) | What::Foreign(_) => false,
        }
    }

    pub fn fix(&self) -> String {
        let path = self.path.display();
        match &self.what {
            What::Missing | What::NoDirectory => format!(
                "mount its file system, or restore it, or for a new one: systemd-tmpfiles --create archivist.conf ({path})"
            ),
            What::Owner(_) => format!("mount its file system, or: chown archivist {path}"),
            What::Foreign(own) => format!(
                "mount the file system of the right one, or to use this one from now on: rm {}",
                own.display()
            ),
            What::Empty => format!(
                "mount its file system, or restore it, or to start with an empty one: mkdir {path}/.new"
            ),
        }
    }
}

impl fmt::Display for ArchiveProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.what {
            What::Missing => {
                write!(f, "the archive '{path}' does not exist; is its file system mounted?")
            }
            What::NoDirectory => write!(f, "the archive '{path}' is no directory"),
            What::Owner(uid) => write!(
                f,
                "the archive '{path}' belongs to uid {uid}, not to the workers; is its file system mounted?"
            ),
            What::Foreign(_) => write!(
                f,
                "the archive '{path}' belongs to another installation; is the right file system mounted?"
            ),
            What::Empty => write!(
                f,
                "the archive '{path}' is empty, although pages were archived; is its file system mounted?"
            ),
        }
    }
}

/// Why no page can be written to the archive at `path`, if so. Unreadable directories count as usable:
/// the caller may have fewer permissions than the workers.
pub fn problem(scope: &Scope, path: &Path) -> Option<ArchiveProblem> {
    let of = |what| Some(ArchiveProblem { path: path.to_owned(), what });
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => of(What::Missing),
        Err(_) => None,
        Ok(found) if !found.is_dir() => of(What::NoDirectory),
        Ok(found) if is_foreign(scope, found.uid()) => of(What::Owner(found.uid())),
        Ok(_) if installation::is_foreign(scope, path) => {
            of(What::Foreign(installation::path(scope)))
        }
        Ok(_) if is_empty(path) => of(What::Empty),
        Ok(_) => None,
    }
}

/// Whether workers cannot write to a directory of this user. Other instances have users of their own,
/// which is never root.
fn is_foreign(scope: &Scope, owner: u32) -> bool {
    if scope.user {
        return owner != geteuid().as_raw();
    }
    let workers = match scope.instance {
        None => User::from_name(WORKER_USER).ok().flatten(),
        Some(_) => None,
    };
    match workers {
        Some(workers) => owner != workers.uid.as_raw(),
        None => owner == 0 && User::from_name(WORKER_USER).is_ok_and(|user| user.is_some()),
    }
}

fn is_empty(path: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(path) else {
        return false;
    };
    entries.all(|entry| {
        entry.is_ok_and(|entry| NO_PAGES.iter().any(|name| entry.file_name() == *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_empty_archives_are_found() {
        let top = tempfile::tempdir().unwrap();
        let mut scope = Scope::system(top.path());
        scope.user = true;
        let path = top.path().join("archive");
        let what = || problem(&scope, &path).map(|found| found.what);
        assert_eq!(what(), Some(What::Missing));
        std::fs::write(&path, "").unwrap();
        assert_eq!(what(), Some(What::NoDirectory));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(path.join(".run")).unwrap();
        std::fs::create_dir(path.join("lost+found")).unwrap();
        assert_eq!(what(), Some(What::Empty));
        std::fs::create_dir(path.join("20260101")).unwrap();
        assert_eq!(what(), None);
        std::fs::create_dir_all(scope.data_dir()).unwrap();
        installation::settle(&scope, &path, "a".repeat(32)).unwrap();
        assert!(installation::mark(&path, &"b".repeat(32)).unwrap());
        assert_eq!(what(), Some(What::Foreign(installation::path(&scope))));
        let root = problem(&scope, Path::new("/proc/1"));
        let is_root = geteuid().is_root();
        assert_eq!(root.is_some(), !is_root, "of another owner");
    }
}
