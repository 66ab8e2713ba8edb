//! Visits everything below a directory that hooks can write to, using descriptors instead of paths.
//! Memory and descriptors are bounded: removing, copying, sealing, packing and backups use this walk, or
//! that of [`crate::files::remove`], and nothing else descends into such a directory.

use crate::files::beneath::Directory;
use crate::files::trail::{Trail, unlock};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Levels of directories below that of a crawl or snapshot. Sealing removes what is deeper.
pub const DEPTH_MAX: usize = 256;
/// Longest path below the directory of a crawl or snapshot in bytes, so that paths with what is above it,
/// and those of copies, are shorter than PATH_MAX (4096). Sealing removes what is longer.
pub const PATH_BYTES_MAX: usize = 3072;

/// Unit of st_blocks in bytes (stat(3type)).
const BLOCK_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug)]
pub struct WalkBounds {
    pub entries: usize,
    pub depth: usize,
    /// Longest path in bytes.
    pub path: usize,
    /// Whether to change the mode of unreadable directories.
    pub unlock: bool,
}

impl WalkBounds {
    /// Those of what sealing leaves, for a process that only reads.
    pub const SEALED: WalkBounds =
        WalkBounds { entries: 1_000_000, depth: DEPTH_MAX, path: PATH_BYTES_MAX, unlock: false };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File,
    Link,
    /// A pipe, socket or device.
    Special,
}

pub struct WalkEntry<'w> {
    /// The directory that contains the entry; for a directory, itself.
    pub dir: &'w Directory,
    pub name: &'w OsStr,
    /// Number of directories between the top and the entry.
    pub depth: usize,
    pub kind: EntryKind,
    /// Metadata of the entry itself.
    pub stat: FileStat,
    path: &'w Path,
}

impl WalkEntry<'_> {
    /// Path relative to the top. Invalid UTF-8 is replaced.
    pub fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Path relative to the top.
    pub fn below(&self) -> &Path {
        self.path
    }

    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Nanoseconds since 1970.
    pub fn modified(&self) -> i128 {
        i128::from(self.stat.st_mtime) * 1_000_000_000 + i128::from(self.stat.st_mtime_nsec)
    }

    /// Time of the last change of the entry in milliseconds since 1970. Unlike
    /// [`modified`](Self::modified), its owner cannot set this time (utimensat(2)).
    pub fn changed(&self) -> i64 {
        self.stat.st_ctime * 1000 + self.stat.st_ctime_nsec / 1_000_000
    }

    /// Allocated bytes, which are less than the size for a file with holes.
    pub fn allocated(&self) -> u64 {
        u64::try_from(self.stat.st_blocks).unwrap_or(0) * BLOCK_BYTES
    }

    /// Opens the entry with O_PATH, which needs no permission for it. It may have been replaced
    /// since the visit.
    pub(crate) fn open_path(&self) -> nix::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(self.dir, self.name, flags, Mode::empty())?))
    }

    /// Removes the entry. `unlocks`: changes the mode of its directory if necessary.
    pub(crate) fn unlink(&self, unlocks: bool) -> io::Result<()> {
        let unlink = || unlinkat(self.dir, self.name, UnlinkatFlags::NoRemoveDir);
        match unlink() {
            Err(Errno::ENOENT) => Ok(()),
            Err(Errno::EACCES) if unlocks => {
                unlock(self.dir)?;
                Ok(unlink()?)
            }
            other => Ok(other?),
        }
    }
}

/// Why a walk does not visit an entry and what is below it.
#[derive(Debug)]
pub enum Missed {
    /// It has more than [`WalkBounds::depth`] directories above it.
    TooDeep,
    /// Its path is longer than [`WalkBounds::path`].
    TooLong,
    /// There are more than [`WalkBounds::entries`]. The walk visits no others.
    TooMany,
    /// It was moved, or cannot be read.
    Unreadable(io::Error),
}

impl Missed {
    /// Whether it is beyond what a sealed directory can have.
    pub fn is_beyond_depth(&self) -> bool {
        matches!(self, Missed::TooDeep | Missed::TooLong)
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::TooDeep => to.write_str("too many levels of directories"),
            Missed::TooLong => to.write_str("the path is too long"),
            Missed::TooMany => to.write_str("too many files"),
            Missed::Unreadable(error) => error.fmt(to),
        }
    }
}

pub enum WalkStep<'w> {
    /// A file, link or special file.
    Leaf(WalkEntry<'w>),
    Enter(WalkEntry<'w>),
    /// The walk has returned to the directory above.
    Leave,
    /// An entry of the directory `dir`, with the path `path` below the top, that is not visited.
    Missed {
        dir: &'w Directory,
        name: &'w OsStr,
        /// Path relative to the top.
        path: &'w Path,
        why: Missed,
    },
}

/// What [`Walk::advance`] found, before it is shown with what it borrows.
enum Found {
    Leaf(EntryKind, FileStat),
    Enter(FileStat),
    Leave,
    Missed(Missed),
}

/// A walk through everything below a directory: what is in each directory in the order of the names, and
/// what is below a directory after it.
///
/// Follows no links. If a directory is moved during the walk, the walk does not follow it, and the
/// rest below it is missed.
pub struct Walk {
    trail: Trail,
    /// For each directory of the trail, names that have not been visited yet, the next one last.
    pending: Vec<Vec<OsString>>,
    /// Path of the current entry relative to the top.
    path: OsPath,
    name: OsString,
    /// Entries that may still be listed.
    left: usize,
    /// Whether a directory had more; `None` when this was said.
    is_over: Option<bool>,
    bounds: WalkBounds,
    /// Directories that a moved one made the walk leave, and the reason.
    owed: usize,
    moved: Option<io::Error>,
}

/// A path that becomes longer and shorter by names.
#[derive(Default)]
struct OsPath {
    bytes: Vec<u8>,
    /// Length at each directory of the trail below the top.
    lengths: Vec<usize>,
}

impl OsPath {
    /// Length of the path of the current directory, with the `/` that a name needs.
    fn base(&self) -> usize {
        self.lengths.last().map_or(0, |length| length + 1)
    }

    fn set(&mut self, name: &OsStr) {
        let base = self.base();
        self.bytes.truncate(base);
        if base > self.bytes.len() {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name.as_bytes());
    }

    fn enter(&mut self) {
        self.lengths.push(self.bytes.len());
    }

    fn leave(&mut self) {
        if let Some(length) = self.lengths.pop() {
            self.bytes.truncate(length);
        }
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes))
    }
}

impl Walk {
    /// Begins a walk below `top`.
    ///
    /// # Errors
    /// If `top` itself cannot be read.
    pub fn new(top: &Directory, bounds: WalkBounds) -> io::Result<Walk> {
        let mut walk = Walk {
            trail: Trail::new(top)?,
            pending: Vec::new(),
            path: OsPath::default(),
            name: OsString::new(),
            left: bounds.entries,
            is_over: Some(false),
            bounds,
            owed: 0,
            moved: None,
        };
        walk.list()?;
        Ok(walk)
    }

    /// Takes the next step; `None` at the end.
    pub fn step(&mut self) -> Option<WalkStep<'_>> {
        let found = self.advance()?;
        // After a failure that leaves no directory open, the walk has ended.
        let dir = self.trail.here().ok()?;
        let path = self.path.path();
        let (name, depth) = (self.name.as_os_str(), self.trail.depth());
        let entry = |kind, stat, depth| WalkEntry { dir, name, depth, kind, stat, path };
        Some(match found {
            Found::Leaf(kind, stat) => WalkStep::Leaf(entry(kind, stat, depth)),
            Found::Enter(stat) => {
                WalkStep::Enter(entry(EntryKind::Directory, stat, depth.saturating_sub(1)))
            }
            Found::Leave => WalkStep::Leave,
            Found::Missed(why) => WalkStep::Missed { dir, name, path, why },
        })
    }

    fn advance(&mut self) -> Option<Found> {
        loop {
            if self.owed > 0 {
                self.owed -= 1;
                self.path.leave();
                return Some(Found::Leave);
            }
            if let Some(error) = self.moved.take() {
                return Some(Found::Missed(Missed::Unreadable(error)));
            }
            if self.is_over == Some(true) {
                self.is_over = None;
                return Some(Found::Missed(Missed::TooMany));
            }
            match self.pending.last_mut()?.pop() {
                None if self.pending.len() == 1 => return None,
                None => self.leave(),
                Some(name) => {
                    self.name = name;
                    self.path.set(&self.name);
                    if let Some(found) = self.look() {
                        return Some(found);
                    }
                }
            }
        }
    }

    /// Looks at the current entry, and enters a directory; `None` if it was removed meanwhile.
    fn look(&mut self) -> Option<Found> {
        let dir = self.trail.here().ok()?;
        let found = fstatat(dir, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        if self.path.bytes.len() > self.bounds.path {
            return Some(Found::Missed(Missed::TooLong));
        }
        let kind = match found.st_mode & libc::S_IFMT {
            libc::S_IFDIR => return self.enter(),
            libc::S_IFREG => EntryKind::File,
            libc::S_IFLNK => EntryKind::Link,
            _ => EntryKind::Special,
        };
        Some(Found::Leaf(kind, found))
    }

    fn enter(&mut self) -> Option<Found> {
        if self.trail.depth() >= self.bounds.depth {
            return Some(Found::Missed(Missed::TooDeep));
        }
        let entered = if self.bounds.unlock {
            self.trail.enter_unlocked(&self.name)
        } else {
            self.trail.enter(&self.name)
        };
        if let Err(error) = entered {
            let is_gone = error.kind() == io::ErrorKind::NotFound;
            return (!is_gone).then_some(Found::Missed(Missed::Unreadable(error)));
        }
        let listed = self.list().and_then(|()| Ok(fstat(self.trail.here()?)?));
        match listed {
            Ok(found) => {
                self.path.enter();
                Some(Found::Enter(found))
            }
            Err(error) => {
                self.leave();
                Some(Found::Missed(Missed::Unreadable(error)))
            }
        }
    }

    /// Returns to the nearest directory above that was not moved.
    fn leave(&mut self) {
        self.moved = self.trail.leave().err();
        let depth = self.trail.depth();
        self.pending.truncate(depth + 1);
        self.owed = self.path.lengths.len().saturating_sub(depth);
    }

    fn list(&mut self) -> io::Result<()> {
        let mut names = Vec::new();
        for name in self.trail.here()?.entries()? {
            if names.len() == self.left {
                self.is_over = self.is_over.map(|_| true);
                break;
            }
            names.push(name?);
        }
        self.left -= names.len();
        names.sort_unstable_by(|a, b| b.cmp(a));
        self.pending.push(names);
        Ok(())
    }
}

/// Entries that a walk did not visit.
#[derive(Debug, Default)]
pub(crate) struct MissedEntries {
    /// Path of the first of them below the top, with the reason.
    pub first: Option<(String, Missed)>,
    pub count: usize,
}

impl MissedEntries {
    pub fn note(&mut self, path: &Path, why: Missed) {
        self.count += 1;
        self.first.get_or_insert_with(|| (path.to_string_lossy().into_owned(), why));
    }
}

/// Visits every file, link and special file below `top` within the bounds. Returns what was missed.
///
/// # Errors
/// If `top` itself cannot be read.
pub(crate) fn walk<V: FnMut(&WalkEntry)>(
    top: &Directory,
    bounds: WalkBounds,
    visit: &mut V,
) -> io::Result<MissedEntries> {
    let mut walk = Walk::new(top, bounds)?;
    let mut missed = MissedEntries::default();
    while let Some(step) = walk.step() {
        match step {
            WalkStep::Leaf(entry) => visit(&entry),
            WalkStep::Missed { path, why, .. } => missed.note(path, why),
            WalkStep::Enter(_) | WalkStep::Leave => {}
        }
    }
    Ok(missed)
}

#[cfg(test)]
mod tests;
