//! Reads the files of a data directory for a backup. Hooks and workers write to it at the same time, so
//! everything is opened below the descriptor of its directory, and no link is followed.

use super::index::{BackupEntry, EntryKind, IndexEntries, Look};
use super::{Problem, at, copy};
use archivist_plugin::Directory;
use archivist_plugin::files::tidy::Beyond;
use archivist_plugin::files::walk::{Missed, Walk, WalkBounds, WalkStep};
use nix::fcntl::readlinkat;
use nix::libc;
use nix::sys::stat::FileStat;
use nix::unistd::{Gid, Group, Uid, User};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why something was not copied.
pub enum SourceFailure {
    /// The original cannot be read; the rest of the backup does not need it.
    Unreadable(Problem),
    Unwritable(Problem),
}

pub type Copied<T> = std::result::Result<T, SourceFailure>;

fn unreadable(path: &Path, error: std::io::Error) -> SourceFailure {
    SourceFailure::Unreadable(at("read", path)(error))
}

/// A path that is too long in the backup is a fault of the original; everything else concerns all files.
fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> SourceFailure {
    move |error| {
        let of_path = error.raw_os_error() == Some(libc::ENAMETOOLONG);
        let problem = at("write", path)(error);
        if of_path {
            SourceFailure::Unreadable(problem)
        } else {
            SourceFailure::Unwritable(problem)
        }
    }
}

/// The failure for an entry that a walk of `dir` missed.
pub fn missed(dir: &Directory, below: &Path, why: &Missed) -> SourceFailure {
    let path = dir.path().join(below);
    unreadable(&path, std::io::Error::other(why.to_string()))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Files that were read, because they are new or changed.
    pub read: u64,
    /// Their size in bytes.
    pub read_bytes: u64,
}

impl SourceCounts {
    /// Adds those of another part.
    pub fn add(&mut self, other: SourceCounts) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.read += other.read;
        self.read_bytes += other.read_bytes;
    }
}

/// The index of the backup before, which is read once, in the order of the paths.
pub struct Previous {
    backup: PathBuf,
    entries: IndexEntries<BufReader<File>>,
    next: Option<BackupEntry>,
}

impl Previous {
    /// Opens the index `file` of the backup in directory `backup`.
    pub fn new(backup: PathBuf, file: File) -> Previous {
        let mut entries = IndexEntries(BufReader::new(file));
        // What cannot be read is copied again.
        let next = entries.next().and_then(Result::ok);
        Previous { backup, entries, next }
    }

    /// Returns the copy of a file and its digest if the file looks the same. Each path must be
    /// greater than the one before.
    fn find(&mut self, path: &Path, look: Look) -> Option<(PathBuf, String)> {
        while let Some(entry) = &self.next {
            match entry.path.as_path().cmp(path) {
                Ordering::Greater => return None,
                Ordering::Less => self.next = self.entries.next().and_then(Result::ok),
                Ordering::Equal => {
                    return match &entry.kind {
                        EntryKind::File { look: old, sha256 } if *old == look => {
                            Some((self.backup.join(path), sha256.clone()))
                        }
                        _ => None,
                    };
                }
            }
        }
        None
    }
}

#[derive(Default)]
struct Names {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Names {
    fn user(&mut self, id: u32) -> String {
        let find = || User::from_uid(Uid::from_raw(id)).ok().flatten();
        let name = || find().map_or_else(|| id.to_string(), |user| user.name);
        self.users.entry(id).or_insert_with(name).clone()
    }

    fn group(&mut self, id: u32) -> String {
        let find = || Group::from_gid(Gid::from_raw(id)).ok().flatten();
        let name = || find().map_or_else(|| id.to_string(), |group| group.name);
        self.groups.entry(id).or_insert_with(name).clone()
    }
}

/// Copies files into the directory of a backup.
pub struct Copier {
    pub backup: PathBuf,
    /// The backup before, if any.
    pub previous: Option<Previous>,
    names: Names,
}

/// A part of a backup: its entries in order, and what they are.
#[derive(Default)]
pub struct Part {
    pub entries: Vec<BackupEntry>,
    pub counts: SourceCounts,
}

impl Copier {
    /// Copies to the directory `backup`, in which nothing of the paths exists.
    pub fn new(backup: PathBuf, previous: Option<Previous>) -> Copier {
        Copier { backup, previous, names: Names::default() }
    }

    /// Makes a directory, and adds it to `part`.
    pub fn make(&mut self, path: &Path, found: &FileStat, part: &mut Part) -> Copied<()> {
        let to = self.backup.join(path);
        fs::create_dir(&to).map_err(unwritable(&to))?;
        let entry = self.entry(path, found.st_mode & 0o7777, (found.st_uid, found.st_gid));
        part.entries.push(BackupEntry { kind: EntryKind::Directory, ..entry });
        Ok(())
    }

    fn entry(&mut self, path: &Path, mode: u32, (user, group): (u32, u32)) -> BackupEntry {
        BackupEntry {
            path: path.to_owned(),
            mode,
            user: self.names.user(user),
            group: self.names.group(group),
            kind: EntryKind::Directory,
        }
    }

    /// Copies a file, or links it to the copy of the backup before.
    fn file(&mut self, dir: &Directory, name: &OsStr, path: &Path, part: &mut Part) -> Copied<()> {
        let original = dir.path().join(name);
        let file = match dir.read(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|error| unreadable(&original, error))?,
        };
        let found = file.metadata().map_err(|error| unreadable(&original, error))?;
        let (look, to) = (Look::of(&found), self.backup.join(path));
        let copied = self.previous.as_mut().and_then(|old| old.find(path, look));
        let copied = copied.filter(|(old, _)| fs::hard_link(old, &to).is_ok());
        part.counts.files += 1;
        part.counts.bytes += look.size;
        let sha256 = match copied {
            Some((_, sha256)) => sha256,
            None => {
                part.counts.read += 1;
                part.counts.read_bytes += look.size;
                let (copy, sha256) = copy::copy(&file, &to).map_err(|error| {
                    // The disk of the original, or the backup: the latter concerns everything.
                    match error.raw_os_error() {
                        Some(libc::EIO) => unreadable(&original, error),
                        _ => unwritable(&to)(error),
                    }
                })?;
                copy::dress(&copy, &found).map_err(unwritable(&to))?;
                sha256
            }
        };
        let entry = self.entry(path, found.mode() & 0o777, (found.uid(), found.gid()));
        part.entries.push(BackupEntry { kind: EntryKind::File { look, sha256 }, ..entry });
        Ok(())
    }

    /// Copies a file, or adds a link; directories, sockets and pipes are not copied.
    pub fn leaf(
        &mut self,
        dir: &Directory,
        name: &OsStr,
        found: &FileStat,
        path: &Path,
        part: &mut Part,
    ) -> Copied<()> {
        match found.st_mode & libc::S_IFMT {
            libc::S_IFREG => self.file(dir, name, path, part),
            libc::S_IFLNK => {
                let target = readlinkat(dir, name);
                let target =
                    target.map_err(|error| unreadable(&dir.path().join(name), error.into()))?;
                let entry = self.entry(path, 0o777, (found.st_uid, found.st_gid));
                part.entries.push(BackupEntry { kind: EntryKind::Link(target), ..entry });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Copies everything below a directory, which is in the backup as `path`. Returns what it leaves out because no
    /// sealed page can have it; older versions left such directories.
    pub fn below(&mut self, dir: &Directory, path: &Path, part: &mut Part) -> Copied<Beyond> {
        let mut beyond = Beyond::default();
        let walk = Walk::new(dir, WalkBounds::SEALED);
        let mut walk = walk.map_err(|error| unreadable(dir.path(), error))?;
        while let Some(step) = walk.step() {
            match step {
                WalkStep::Enter(found) => {
                    self.make(&path.join(found.below()), &found.stat, part)?;
                }
                WalkStep::Leaf(entry) => {
                    let path = path.join(entry.below());
                    self.leaf(entry.dir, entry.name, &entry.stat, &path, part)?;
                }
                WalkStep::Missed { path, why, .. } if why.is_beyond_depth() => beyond.note(path),
                WalkStep::Missed { path, why, .. } => return Err(missed(dir, path, &why)),
                WalkStep::Leave => {}
            }
        }
        Ok(beyond)
    }
}

pub fn is_directory(found: &FileStat) -> bool {
    found.st_mode & libc::S_IFMT == libc::S_IFDIR
}

/// Returns what is in a directory, sorted by name.
pub fn entries(dir: &Directory) -> std::io::Result<Vec<(OsString, FileStat)>> {
    let mut names = dir.names()?;
    names.sort();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match dir.stat(&name) {
            // Removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => found.push((name, other?)),
        }
    }
    Ok(found)
}

/// What everything below a directory looks like; equal if nothing changed in between.
#[derive(PartialEq, Eq)]
pub struct Looks(Vec<(PathBuf, u32, Look)>);

impl Looks {
    /// Reads it, as far as a backup takes it.
    ///
    /// # Errors
    /// If something cannot be read, or there are too many files.
    pub fn of(dir: &Directory) -> Copied<Looks> {
        let mut looks = Vec::new();
        let walk = Walk::new(dir, WalkBounds::SEALED);
        let mut walk = walk.map_err(|error| unreadable(dir.path(), error))?;
        while let Some(step) = walk.step() {
            match step {
                WalkStep::Enter(found) | WalkStep::Leaf(found) => {
                    let look = Look::of_stat(&found.stat);
                    looks.push((found.below().to_owned(), found.stat.st_mode, look));
                }
                WalkStep::Missed { path, why, .. } if !why.is_beyond_depth() => {
                    return Err(missed(dir, path, &why));
                }
                WalkStep::Missed { .. } | WalkStep::Leave => {}
            }
        }
        Ok(Looks(looks))
    }
}
