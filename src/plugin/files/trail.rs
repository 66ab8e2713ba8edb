//! The way from a directory to one below it, at any depth, with few open descriptors.

use crate::files::beneath::{Directory, chmod};
use nix::errno::Errno;
use nix::sys::stat::fstat;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

/// Number of directories that stay open. A trail returns to deeper ones through `..`.
pub(crate) const OPEN_LEVELS_MAX: usize = 64;

/// Directories below each other, of which the last is the current one.
///
/// No link is followed. A directory that another process moves meanwhile is left: `..` of a
/// directory is opened only if it is the one that the trail came from.
#[derive(Debug)]
pub struct Trail {
    levels: Vec<Level>,
    /// Whether directories know their paths, which take memory at each level.
    named: bool,
}

#[derive(Debug)]
struct Level {
    /// `None` for a deep directory while the trail is below it.
    dir: Option<Directory>,
    /// Device and inode.
    id: (u64, u64),
}

impl Trail {
    /// Begins at `top`.
    ///
    /// # Errors
    /// If `top` cannot be read.
    pub fn new(top: &Directory) -> io::Result<Trail> {
        let (id, dir) = (id(top)?, Some(top.here()?));
        Ok(Trail { levels: vec![Level { dir, id }], named: true })
    }

    /// As [`Trail::new`], for a trail that may be very long: its directories do not know their paths.
    ///
    /// # Errors
    /// As for [`Trail::new`].
    pub(crate) fn without_paths(top: &Directory) -> io::Result<Trail> {
        let mut trail = Trail::new(top)?;
        trail.named = false;
        Ok(trail)
    }

    /// The current directory.
    ///
    /// # Errors
    /// EBADF after [`Trail::leave`] has failed to return to the top.
    pub fn here(&self) -> io::Result<&Directory> {
        let level = self.levels.last().and_then(|level| level.dir.as_ref());
        level.ok_or_else(|| Errno::EBADF.into())
    }

    /// Number of directories above the current one, up to the first.
    pub fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// Makes the subdirectory `name` the current directory.
    ///
    /// # Errors
    /// If there is no such directory, or it cannot be read. The current directory stays.
    pub fn enter(&mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let dir = self.here()?.enter(name)?;
        self.push(dir)
    }

    /// As [`Trail::enter`], and gives owner and group all permissions for a directory that they lack.
    ///
    /// # Errors
    /// As for [`Trail::enter`].
    pub(crate) fn enter_unlocked(&mut self, name: &OsStr) -> io::Result<()> {
        let here = self.here()?;
        let dir = match here.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                unlock(&here.enter_path(name)?)?;
                here.enter(name)?
            }
            other => other?,
        };
        self.push(dir)
    }

    fn push(&mut self, dir: Directory) -> io::Result<()> {
        let id = id(&dir)?;
        let dir = if self.named { dir } else { dir.unnamed() };
        if self.levels.len() > OPEN_LEVELS_MAX
            && let Some(parent) = self.levels.last_mut()
        {
            parent.dir = None;
        }
        let dir = Some(dir);
        self.levels.push(Level { dir, id });
        Ok(())
    }

    /// Returns to the directory above, unless this is the first.
    ///
    /// # Errors
    /// If the current directory was moved, or the one above cannot be opened. The nearest one that can be is
    /// then the current directory.
    pub fn leave(&mut self) -> io::Result<()> {
        if self.levels.len() < 2 {
            return Ok(());
        }
        let mut from = self.levels.pop().and_then(|level| level.dir);
        let mut done = Ok(());
        while let Some(level) = self.levels.last_mut() {
            if level.dir.is_some() {
                break;
            }
            match from.take().map(|dir| above(&dir, level.id)) {
                Some(Ok(dir)) => {
                    level.dir = Some(dir);
                    break;
                }
                Some(Err(error)) => done = Err(error),
                None => {}
            }
            self.levels.pop();
        }
        done
    }
}

/// The parent of `dir`, if it is the expected directory.
fn above(dir: &Directory, meant: (u64, u64)) -> io::Result<Directory> {
    let above = dir.enter_parent()?;
    if id(&above)? == meant {
        return Ok(above);
    }
    Err(io::Error::other("the directory was moved"))
}

fn id(dir: &Directory) -> io::Result<(u64, u64)> {
    let found = fstat(dir)?;
    Ok((found.st_dev, found.st_ino))
}

/// Gives owner and group all permissions for an open directory.
pub(crate) fn unlock(dir: &impl AsFd) -> io::Result<()> {
    let mode = fstat(dir)?.st_mode & 0o777;
    chmod(dir.as_fd(), mode | 0o770)
}
