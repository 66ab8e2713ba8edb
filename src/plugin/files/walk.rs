//! Visits everything below a directory that hooks write, one open directory from the other.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};

use crate::files::beneath::{Directory, ENTER, chmod};

/// Directories on the way to where the walk is that are held open. From deeper ones it goes back by `..`.
const HELD: usize = 64;

/// Bytes of a block in what stat(2) says.
const BLOCK: u64 = 512;

/// How far a walk goes.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Entries looked at in all.
    pub entries: usize,
    /// Directories within directories.
    pub depth: usize,
    /// Whether directories that are closed to us are opened by their modes.
    pub opens: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// What is no directory on the walk.
pub(crate) struct Entry<'w> {
    /// The directory that it is in.
    pub dir: BorrowedFd<'w>,
    pub name: &'w OsStr,
    /// Directories between the top and it.
    pub depth: usize,
    pub kind: EntryKind,
    pub mode: u32,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i128,
    /// When anything of it changed last, in milliseconds since 1970. Its owner can set the other to any time
    /// (utimensat(2)), but not this one.
    pub changed: i64,
    /// Bytes that are allocated for it, which of a file with holes are less than its size.
    pub allocated: u64,
    prefix: &'w str,
}

impl Entry<'_> {
    /// Relative to the top, with `/`; bytes that are not UTF-8 are replaced.
    pub fn path(&self) -> String {
        format!("{}{}", self.prefix, self.name.to_string_lossy())
    }
}

/// What a walk did not see.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// The first directory that could not be read, and why.
    pub first: Option<(String, io::Error)>,
    pub count: usize,
}

impl Missed {
    fn note(&mut self, path: &str, name: &OsStr, error: io::Error) {
        self.count += 1;
        let path = || (format!("{path}{}", name.to_string_lossy()), error);
        self.first.get_or_insert_with(path);
    }
}

struct Level {
    /// None of a deep directory while the walk is below it.
    dir: Option<Dir>,
    /// Device and inode.
    id: (u64, u64),
    /// Directories in it that are still to be visited.
    pending: Vec<CString>,
    /// Length of its path, with the last `/`.
    prefix: usize,
}

struct Walk<'v, V> {
    levels: Vec<Level>,
    path: String,
    left: usize,
    bounds: Bounds,
    missed: Missed,
    visit: &'v mut V,
}

/// Visits every file, link and special file below `top` as far as `bounds` let it, in no order.
///
/// No link is followed, and a directory that somebody moves under our hands leads nowhere else: what was below it is missed.
///
/// # Errors
/// When `top` itself cannot be read.
pub(crate) fn walk<V: FnMut(&Entry)>(
    top: &Directory,
    bounds: Bounds,
    visit: &mut V,
) -> io::Result<Missed> {
    let dir = Dir::openat(top, ".", ENTER, Mode::empty())?;
    let mut walk = Walk {
        levels: Vec::new(),
        path: String::new(),
        left: bounds.entries,
        bounds,
        missed: Missed::default(),
        visit,
    };
    walk.down(dir)?;
    walk.run();
    Ok(walk.missed)
}

impl<V: FnMut(&Entry)> Walk<'_, V> {
    fn run(&mut self) {
        while let Some(level) = self.levels.last_mut() {
            let Some(name) = level.pending.pop() else {
                self.up();
                continue;
            };
            let name = OsStr::from_bytes(name.as_bytes());
            if self.levels.len() > self.bounds.depth {
                let error = io::Error::other("it lies too deep");
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
            Err(Errno::EACCES) if self.bounds.opens => {
                open_up(here, name)?;
                Dir::openat(here, name, ENTER, Mode::empty())?
            }
            Err(Errno::ENOENT) => return Ok(()), // gone since
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

    /// Visits what is in `dir`, which is then where the walk is.
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
                let error = io::Error::other("there are too many files");
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
        if let Some(parent) = parent.filter(|parent| *parent >= HELD) {
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
            return; // gone since
        };
        let kind = match found.st_mode & libc::S_IFMT {
            libc::S_IFREG => EntryKind::File,
            libc::S_IFLNK => EntryKind::Link,
            libc::S_IFDIR => return pending.push(name),
            _ => EntryKind::Special,
        };
        (self.visit)(&Entry {
            dir: dir.as_fd(),
            name: OsStr::from_bytes(name.as_bytes()),
            depth: self.levels.len(),
            kind,
            mode: found.st_mode,
            size: u64::try_from(found.st_size).unwrap_or(0),
            modified: i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec),
            changed: found.st_ctime * 1000 + found.st_ctime_nsec / 1_000_000,
            allocated: u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK,
            prefix: &self.path,
        });
    }

    /// Leaves a directory that is done, for the next one above it that is still where it was.
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
            let error = io::Error::other("it was moved");
            self.missed.note(&self.path, OsStr::new(""), error);
            from = None;
            self.levels.pop();
        }
    }
}

/// The directory above `dir`, if it is the one that is meant.
fn above(dir: &Dir, meant: (u64, u64)) -> Option<Dir> {
    let above = Dir::openat(dir, "..", ENTER, Mode::empty()).ok()?;
    (id(&fstat(&above).ok()?) == meant).then_some(above)
}

fn id(found: &FileStat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

/// Gives owner and group of the directory `name` all rights to it.
fn open_up(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let fd = openat(dir, name, ENTER | OFlag::O_PATH, Mode::empty())?;
    chmod_open(fd.as_fd())
}

/// The same, of the directory that is open.
pub(crate) fn chmod_open(dir: BorrowedFd<'_>) -> io::Result<()> {
    let mode = fstat(dir)?.st_mode & 0o777;
    chmod(dir, mode | 0o770)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::OwnedFd;

    /// Makes directories in one another, deeper than a path may be long.
    fn nest(top: &std::path::Path, depth: usize) -> OwnedFd {
        let flags = OFlag::O_DIRECTORY;
        let mut here = nix::fcntl::open(top, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            nix::sys::stat::mkdirat(&here, "d", Mode::S_IRWXU).unwrap();
            here = openat(&here, "d", flags, Mode::empty()).unwrap();
        }
        here
    }

    fn seen(top: &std::path::Path, entries: usize, depth: usize) -> (Vec<usize>, Missed) {
        let bounds = Bounds {
            entries,
            depth,
            opens: true,
        };
        let mut depths = Vec::new();
        let top = Directory::open(top).unwrap();
        let missed = walk(&top, bounds, &mut |entry| depths.push(entry.depth)).unwrap();
        depths.sort_unstable();
        (depths, missed)
    }

    #[test]
    fn depth_costs_neither_stack_nor_descriptors() {
        let top = tempfile::tempdir().unwrap();
        let deepest = nest(top.path(), 3000);
        nix::unistd::symlinkat("/etc", &deepest, "link").unwrap();
        fs::create_dir(top.path().join("d/beside")).unwrap();
        fs::write(top.path().join("d/beside/file"), "x").unwrap();
        let (depths, missed) = seen(top.path(), usize::MAX, usize::MAX);
        assert_eq!((depths, missed.count), (vec![2, 3000], 0));
        let (depths, missed) = seen(top.path(), usize::MAX, 100);
        assert_eq!((depths, missed.count), (vec![2], 1));
        assert_eq!(missed.first.unwrap().1.to_string(), "it lies too deep");
        let (_, missed) = seen(top.path(), 50, usize::MAX);
        assert_eq!(missed.count, 1);
    }

    #[test]
    fn a_directory_that_moves_ends_the_walk_below_it() {
        let top = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let deepest = nest(top.path(), 80);
        for name in ["here", "later"] {
            nix::sys::stat::mkdirat(&deepest, name, Mode::S_IRWXU).unwrap();
        }
        let file = nix::fcntl::openat(&deepest, "here/file", OFlag::O_CREAT, Mode::S_IRWXU);
        drop(file.unwrap());
        let bounds = Bounds {
            entries: usize::MAX,
            depth: usize::MAX,
            opens: true,
        };
        let held = Directory::open(top.path()).unwrap();
        let mut names = Vec::new();
        let missed = walk(&held, bounds, &mut |entry| {
            names.push(entry.name.to_owned());
            // From where the walk is now, `..` leads outside.
            let _ = nix::fcntl::renameat(&deepest, "here", &held, "moved");
            let to = outside.path().join("moved");
            let _ = fs::rename(top.path().join("moved"), to);
        });
        let missed = missed.unwrap();
        assert_eq!(names, ["file"]);
        assert!(missed.count > 0, "{missed:?}");
    }
}
