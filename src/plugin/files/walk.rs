//! Visits everything below a directory that hooks can write to, using descriptors instead of paths.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::files::beneath::{Directory, ENTER, chmod};

/// Number of parent directories that stay open. The walk returns from deeper ones through `..`.
const OPEN_LEVELS_MAX: usize = 64;

/// Unit of st_blocks in bytes (stat(3type)).
const BLOCK_BYTES: u64 = 512;

/// WalkBounds of a walk.
#[derive(Clone, Copy)]
pub(crate) struct WalkBounds {
    /// Largest number of visited entries.
    pub entries: usize,
    /// Largest number of directory levels.
    pub depth: usize,
    /// Whether to change the mode of unreadable directories.
    pub unlock: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Link,
    /// A pipe, socket or device.
    Special,
}

/// An entry that is not a directory.
pub(crate) struct WalkEntry<'w> {
    /// The directory that contains the entry.
    pub dir: BorrowedFd<'w>,
    pub name: &'w OsStr,
    /// Number of directories between the top and the entry.
    pub depth: usize,
    pub kind: EntryKind,
    pub mode: u32,
    /// User id of the owner.
    pub owner: u32,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i128,
    /// Time of the last change of the entry in milliseconds since 1970. Unlike `modified`, its
    /// owner cannot set this time (utimensat(2)).
    pub changed: i64,
    /// Allocated bytes, which are less than the size for a file with holes.
    pub allocated: u64,
    prefix: &'w str,
}

impl WalkEntry<'_> {
    /// Path relative to the top. Invalid UTF-8 is replaced.
    pub fn path(&self) -> String {
        format!("{}{}", self.prefix, self.name.to_string_lossy())
    }

    /// Opens the entry with O_PATH, which needs no permission for it. It may have been replaced
    /// since the visit.
    pub fn open_path(&self) -> nix::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(
            self.dir,
            self.name,
            flags,
            Mode::empty(),
        )?))
    }

    /// Removes the entry. `unlock`: changes the mode of its directory if necessary.
    pub fn unlink(&self, unlock: bool) -> io::Result<()> {
        let unlink = || unlinkat(self.dir, self.name, UnlinkatFlags::NoRemoveDir);
        match unlink() {
            Err(Errno::ENOENT) => Ok(()),
            Err(Errno::EACCES) if unlock => {
                chmod_open(self.dir)?;
                Ok(unlink()?)
            }
            other => Ok(other?),
        }
    }
}

/// Directories that a walk could not read.
#[derive(Debug, Default)]
pub(crate) struct MissedDirectories {
    /// The first of them, with the error.
    pub first: Option<(String, io::Error)>,
    pub count: usize,
}

impl MissedDirectories {
    fn note(&mut self, path: &str, name: &OsStr, error: io::Error) {
        self.count += 1;
        let path = || (format!("{path}{}", name.to_string_lossy()), error);
        self.first.get_or_insert_with(path);
    }
}

struct Level {
    /// `None` for a deep directory while the walk is below it.
    dir: Option<Dir>,
    /// Device and inode.
    id: (u64, u64),
    /// Subdirectories that have not been visited yet.
    pending: Vec<CString>,
    /// Length of its path including the trailing `/`.
    prefix: usize,
}

struct Walk<'v, V> {
    levels: Vec<Level>,
    path: String,
    left: usize,
    bounds: WalkBounds,
    missed: MissedDirectories,
    visit: &'v mut V,
}

/// Visits every file, link and special file below `top` within the bounds, in no particular order.
///
/// Follows no links. If a directory is moved during the walk, the walk does not follow it, and the
/// rest below it is missed.
///
/// # Errors
/// If `top` itself cannot be read.
pub(crate) fn walk<V: FnMut(&WalkEntry)>(
    top: &Directory,
    bounds: WalkBounds,
    visit: &mut V,
) -> io::Result<MissedDirectories> {
    let dir = Dir::openat(top, ".", ENTER, Mode::empty())?;
    let mut walk = Walk {
        levels: Vec::new(),
        path: String::new(),
        left: bounds.entries,
        bounds,
        missed: MissedDirectories::default(),
        visit,
    };
    walk.down(dir)?;
    walk.run();
    Ok(walk.missed)
}

impl<V: FnMut(&WalkEntry)> Walk<'_, V> {
    fn run(&mut self) {
        while let Some(level) = self.levels.last_mut() {
            let Some(next) = level.pending.pop() else {
                self.up();
                continue;
            };
            let name = OsStr::from_bytes(next.as_bytes());
            if self.levels.len() > self.bounds.depth {
                let error = io::Error::other("too many levels of directories");
                self.missed.note(&self.path, name, error);
            } else if let Err(error) = self.enter(name) {
                self.missed.note(&self.path, name, error);
            }
        }
    }

    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let level = self.levels.last().and_then(|level| level.dir.as_ref());
        let here = level.ok_or(Errno::EBADF)?.as_fd();
        let dir = match Dir::openat(here, name, ENTER, Mode::empty()) {
            Err(Errno::EACCES) if self.bounds.unlock => {
                open_up(here, name)?;
                Dir::openat(here, name, ENTER, Mode::empty())?
            }
            Err(Errno::ENOENT) => return Ok(()), // removed meanwhile
            other => other?,
        };
        let before = self.path.len();
        self.path.push_str(&name.to_string_lossy());
        self.path.push('/');
        let entered = self.down(dir);
        if entered.is_err() {
            self.path.truncate(before);
        }
        entered
    }

    /// Visits the entries of `dir` and makes it the current directory of the walk.
    fn down(&mut self, mut dir: Dir) -> io::Result<()> {
        let id = id(&fstat(&dir)?);
        let (mut pending, mut others) = (Vec::new(), Vec::new());
        for entry in dir.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if [b".".as_slice(), b".."].contains(&name.to_bytes()) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                let name = OsStr::from_bytes(name.to_bytes());
                let error = io::Error::other("too many files");
                self.missed.note(&self.path, name, error);
                pending.clear();
                self.levels
                    .iter_mut()
                    .for_each(|level| level.pending.clear());
                break;
            };
            self.left = left;
            if entry.file_type() == Some(Type::Directory) {
                pending.push(name.to_owned());
            } else {
                others.push(name.to_owned());
            }
        }
        for name in others {
            self.look(&dir, name, &mut pending);
        }
        let parent = self.levels.len().checked_sub(1);
        if let Some(parent) = parent.filter(|parent| *parent >= OPEN_LEVELS_MAX) {
            self.levels[parent].dir = None;
        }
        self.levels.push(Level {
            dir: Some(dir),
            id,
            pending,
            prefix: self.path.len(),
        });
        Ok(())
    }

    fn look(&mut self, dir: &Dir, name: CString, pending: &mut Vec<CString>) {
        let Ok(found) = fstatat(dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return; // removed meanwhile
        };
        let kind = match found.st_mode & libc::S_IFMT {
            libc::S_IFREG => EntryKind::File,
            libc::S_IFLNK => EntryKind::Link,
            libc::S_IFDIR => return pending.push(name),
            _ => EntryKind::Special,
        };
        (self.visit)(&WalkEntry {
            dir: dir.as_fd(),
            name: OsStr::from_bytes(name.as_bytes()),
            depth: self.levels.len(),
            kind,
            mode: found.st_mode,
            owner: found.st_uid,
            size: u64::try_from(found.st_size).unwrap_or(0),
            modified: i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec),
            changed: found.st_ctime * 1000 + found.st_ctime_nsec / 1_000_000,
            allocated: u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK_BYTES,
            prefix: &self.path,
        });
    }

    /// Returns from a finished directory to the nearest parent that was not moved.
    fn up(&mut self) {
        let mut from = self.levels.pop().and_then(|level| level.dir);
        while let Some(level) = self.levels.last_mut() {
            self.path.truncate(level.prefix);
            if level.dir.is_some() {
                return;
            }
            let above = from.as_ref().and_then(|dir| above(dir, level.id));
            if above.is_some() {
                level.dir = above;
                return;
            }
            let error = io::Error::other("the directory was moved");
            self.missed.note(&self.path, OsStr::new(""), error);
            from = None;
            self.levels.pop();
        }
    }
}

/// The parent of `dir`, if it is the expected directory.
fn above(dir: &Dir, meant: (u64, u64)) -> Option<Dir> {
    let above = Dir::openat(dir, "..", ENTER, Mode::empty()).ok()?;
    (id(&fstat(&above).ok()?) == meant).then_some(above)
}

fn id(found: &FileStat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

/// Gives owner and group all permissions for the directory `name`.
fn open_up(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let fd = openat(dir, name, ENTER | OFlag::O_PATH, Mode::empty())?;
    chmod_open(fd.as_fd())
}

/// Gives owner and group all permissions for an open directory.
pub(crate) fn chmod_open(dir: BorrowedFd<'_>) -> io::Result<()> {
    let mode = fstat(dir)?.st_mode & 0o777;
    chmod(dir, mode | 0o770)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::OwnedFd;

    /// Creates nested directories, deeper than the longest possible path.
    fn nest(top: &std::path::Path, depth: usize) -> OwnedFd {
        let flags = OFlag::O_DIRECTORY;
        let mut here = nix::fcntl::open(top, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            nix::sys::stat::mkdirat(&here, "d", Mode::S_IRWXU).unwrap();
            here = openat(&here, "d", flags, Mode::empty()).unwrap();
        }
        here
    }

    fn seen(
        top: &std::path::Path,
        entries: usize,
        depth: usize,
    ) -> (Vec<usize>, MissedDirectories) {
        let bounds = WalkBounds {
            entries,
            depth,
            unlock: true,
        };
        let mut depths = Vec::new();
        let top = Directory::open(top).unwrap();
        let missed = walk(&top, bounds, &mut |entry| depths.push(entry.depth)).unwrap();
        depths.sort_unstable();
        (depths, missed)
    }

    #[test]
    fn depth_uses_neither_stack_nor_descriptors() {
        let top = tempfile::tempdir().unwrap();
        let deepest = nest(top.path(), 3000);
        nix::unistd::symlinkat("/etc", &deepest, "link").unwrap();
        fs::create_dir(top.path().join("d/other")).unwrap();
        fs::write(top.path().join("d/other/file"), "x").unwrap();
        let (depths, missed) = seen(top.path(), usize::MAX, usize::MAX);
        assert_eq!((depths, missed.count), (vec![2, 3000], 0));
        let (depths, missed) = seen(top.path(), usize::MAX, 100);
        assert_eq!((depths, missed.count), (vec![2], 1));
        assert_eq!(
            missed.first.unwrap().1.to_string(),
            "too many levels of directories"
        );
        let (_, missed) = seen(top.path(), 50, usize::MAX);
        assert_eq!(missed.count, 1);
    }

    #[test]
    fn moved_directory_ends_the_walk_below_it() {
        let top = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let deepest = nest(top.path(), 80);
        for name in ["here", "later"] {
            nix::sys::stat::mkdirat(&deepest, name, Mode::S_IRWXU).unwrap();
        }
        let file = nix::fcntl::openat(&deepest, "here/file", OFlag::O_CREAT, Mode::S_IRWXU);
        drop(file.unwrap());
        let bounds = WalkBounds {
            entries: usize::MAX,
            depth: usize::MAX,
            unlock: true,
        };
        let held = Directory::open(top.path()).unwrap();
        let mut names = Vec::new();
        let missed = walk(&held, bounds, &mut |entry| {
            names.push(entry.name.to_owned());
            // From the present directory of the walk, `..` leads outside.
            let _ = nix::fcntl::renameat(&deepest, "here", &held, "moved");
            let to = outside.path().join("moved");
            let _ = fs::rename(top.path().join("moved"), to);
        })
        .unwrap();
        assert_eq!(names, ["file"]);
        assert!(missed.count > 0, "{missed:?}");
    }
}
