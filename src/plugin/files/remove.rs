//! Removes directories at any depth, which programs of others may have shaped. std::fs::remove_dir_all
//! keeps a descriptor for each level, and fails at some 1,000; clippy.toml forbids it.

use crate::files::beneath::Directory;
use crate::files::trail::{OPEN_LEVELS_MAX, Trail, unlock};
use nix::errno::Errno;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Directories that may be found empty and yet not be removed, as on a network file system, before the
/// removal gives up.
const FRUITLESS_MAX: u32 = 16;

/// Removes a file, a link, or a directory with everything in it. Links are removed, not followed, and
/// directories without permissions get them. A missing one is removed already.
///
/// Memory does not depend on the number of entries, and per level is that of an inode number; descriptors are
/// bounded. Processes that could move directories to another place should have ended: the removal then
/// fails, and removes nothing elsewhere.
///
/// # Errors
/// If something cannot be removed. What was removed before is gone.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    match Directory::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        parent => remove_in(&parent?, name),
    }
}

/// As [`remove_tree`], for an entry of an open directory.
pub(crate) fn remove_in(parent: &Directory, name: &OsStr) -> io::Result<()> {
    if remove_simple(parent, name)? {
        return Ok(());
    }
    let mut trail = Trail::without_paths(parent)?;
    trail.enter_unlocked(name)?;
    let mut removal = Removal { trail, listings: Vec::new(), fruitless: 0 };
    loop {
        removal.content().map_err(|error| removal.explain(&error))?;
        match remove_simple(parent, name) {
            Ok(true) => return Ok(()),
            Ok(false) if removal.fruitless < FRUITLESS_MAX => removal.fruitless += 1,
            Ok(false) => return Err(Errno::ENOTEMPTY.into()),
            Err(error) => return Err(error),
        }
    }
}

/// Removes what is no directory, or an empty one; false for a directory with entries.
fn remove_simple(parent: &Directory, name: &OsStr) -> io::Result<bool> {
    match unlinkat(parent, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(true),
        // POSIX says EPERM for a directory.
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(error) => return Err(error.into()),
    }
    match unlinkat(parent, name, UnlinkatFlags::RemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        // A file that must not be removed.
        Err(Errno::ENOTDIR) => Err(Errno::EPERM.into()),
        Err(error) => Err(error.into()),
    }
}

type Names = Box<dyn Iterator<Item = io::Result<OsString>>>;

/// The names of a directory that are still to be removed.
struct Listing {
    names: Names,
    child: Option<OsString>,
}

struct Removal {
    /// From the directory that contains the one to be removed.
    trail: Trail,
    /// Of the upper levels. Lower ones are listed again after each directory in them: what was before it is
    /// removed already.
    listings: Vec<Listing>,
    fruitless: u32,
}

impl Removal {
    fn content(&mut self) -> io::Result<()> {
        let top = self.trail.depth();
        loop {
            match self.clear()? {
                Some(child) => self.trail.enter_unlocked(&child)?,
                None if self.trail.depth() == top => return Ok(()),
                None => self.trail.leave()?,
            }
        }
    }

    /// Removes the entries of the current directory up to a directory that has entries, and returns its
    /// name; `None` at the end.
    fn clear(&mut self) -> io::Result<Option<OsString>> {
        let level = self.trail.depth() - 1;
        let here = self.trail.here()?;
        let list = || -> io::Result<Names> { Ok(Box::new(here.entries()?)) };
        if level >= OPEN_LEVELS_MAX {
            let mut removed = 0;
            for name in list()? {
                let name = name?;
                if !remove_unlocked(here, &name)? {
                    return Ok(Some(name));
                }
                removed += 1;
            }
            self.count(removed)?;
            return Ok(None);
        }
        self.listings.truncate(level + 1);
        if self.listings.len() == level {
            let (names, child) = (list()?, None);
            self.listings.push(Listing { names, child });
        }
        let listing = &mut self.listings[level];
        let mut removed = 0;
        while let Some(name) = listing.child.take().map(Ok).or_else(|| listing.names.next()) {
            let name = name?;
            if !remove_unlocked(here, &name)? {
                listing.child = Some(name.clone());
                return Ok(Some(name));
            }
            removed += 1;
        }
        self.listings.truncate(level);
        self.count(removed)?;
        Ok(None)
    }

    /// Gives up if directories without entries are not removed.
    fn count(&mut self, removed: u64) -> io::Result<()> {
        self.fruitless = if removed > 0 { 0 } else { self.fruitless + 1 };
        if self.fruitless > FRUITLESS_MAX {
            return Err(Errno::ENOTEMPTY.into());
        }
        Ok(())
    }

    /// Adds to an error where it happened.
    fn explain(&self, error: &io::Error) -> io::Error {
        let names = self.listings.iter().map_while(|listing| listing.child.as_ref());
        let shown: PathBuf = names.take(3).collect();
        let depth = self.trail.depth() - 1;
        let place = if shown.as_os_str().is_empty() {
            String::new()
        } else {
            format!(" in '{}', {depth} levels of directories below", shown.display())
        };
        io::Error::new(error.kind(), format!("{error}{place}"))
    }
}

/// As [`remove_simple`], and gives `dir` permissions that it lacks.
fn remove_unlocked(dir: &Directory, name: &OsStr) -> io::Result<bool> {
    match remove_simple(dir, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(dir)?;
            remove_simple(dir, name)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
