//! A directory that hooks may write, held open: everything in it is reached from its descriptor, one name at a time,
//! so that whatever a hook puts in the way of a path leads nowhere else.
//!
//! openat2(2) with RESOLVE_BENEATH would take whole paths, but the units have `RestrictSUIDSGID=`, for which systemd lets that
//! call fail with ENOSYS: a filter of system calls cannot see the mode that it is given.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstatat, mkdirat};
use nix::unistd::{LinkatFlags, UnlinkatFlags, linkat, unlinkat};

/// How a directory below another one is opened.
pub(crate) const ENTER: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// For what may be a link or a pipe by now.
const PLAIN: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

/// An open directory. Names are single ones; `..`, and anything with a slash, is refused.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Directory {
    /// Opens `path`, following links: for a directory whose parents no hook can write.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(path)?;
        Ok(Directory {
            fd: file.into(),
            path: path.to_owned(),
        })
    }

    /// Opens the directory `name` in this one. Anything else under that name, a link to a directory too, is ENOTDIR.
    pub fn enter(&self, name: &str) -> io::Result<Directory> {
        let fd = match openat(self, single(name)?, ENTER, Mode::empty()) {
            Err(Errno::ELOOP) => Err(Errno::ENOTDIR),
            other => other,
        }?;
        let path = self.path.join(name);
        Ok(Directory { fd, path })
    }

    /// Where it was when it was opened: for messages and records, never for a system call.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory.
    pub fn make(&self, name: &str, mode: u32) -> io::Result<()> {
        Ok(mkdirat(
            self,
            single(name)?,
            Mode::from_bits_truncate(mode),
        )?)
    }

    /// What has this name, a link itself and not what it leads to.
    pub fn look(&self, name: &str) -> io::Result<FileStat> {
        Ok(fstatat(self, single(name)?, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file for reading; a link or a pipe in its place is refused.
    pub fn read(&self, name: &str) -> io::Result<File> {
        self.plain(name, OFlag::O_RDONLY)
    }

    /// Opens a regular file that exists, for reading and appending.
    pub fn append(&self, name: &str) -> io::Result<File> {
        self.plain(name, OFlag::O_RDWR | OFlag::O_APPEND)
    }

    /// Makes a file that does not exist yet, for reading and appending.
    pub fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL | PLAIN;
        let mode = Mode::from_bits_truncate(mode);
        Ok(openat(self, single(name)?, flags, mode)?.into())
    }

    fn plain(&self, name: &str, access: OFlag) -> io::Result<File> {
        let file: File = openat(self, single(name)?, access | PLAIN, Mode::empty())?.into();
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// Renames within the directory; what has the new name goes, unless it is a directory.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(self, single(from)?, self, single(to)?)?)
    }

    /// Gives a file another name in the directory.
    pub fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (single(from)?, single(to)?);
        Ok(linkat(self, from, self, to, LinkatFlags::empty())?)
    }

    /// Removes a file or a link.
    pub fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self, single(name)?, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Makes `name` free. A file or link goes; a directory, which may hold more than can be removed in time, gets a name
    /// that nobody can guess.
    pub fn clear(&self, name: &str) -> io::Result<()> {
        match self.unlink(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let mut random = [0; 8];
                getrandom::fill(&mut random)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                let aside = format!(".replaced-{:016x}", u64::from_ne_bytes(random));
                self.rename(name, &aside)
            }
            other => other,
        }
    }

    /// Whether `path` below this directory is a regular file, and no link is on the way there.
    pub fn has_file(&self, path: &str) -> bool {
        let Some((way, name)) = names(path) else {
            return false;
        };
        let flags = ENTER | OFlag::O_PATH;
        let mut deepest = None;
        for step in way {
            let from = deepest.as_ref().map_or(self.as_fd(), OwnedFd::as_fd);
            match openat(from, step, flags, Mode::empty()) {
                Ok(fd) => deepest = Some(fd),
                Err(_) => return false,
            }
        }
        let from = deepest.as_ref().map_or(self.as_fd(), OwnedFd::as_fd);
        fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|found| is_file(&found))
    }

    /// Takes the directory away from everybody but its owner.
    pub fn restrict_to_owner(&self) -> io::Result<()> {
        chmod(self.as_fd(), 0o700)
    }
}

/// Whether this is a regular file.
pub fn is_file(found: &FileStat) -> bool {
    found.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Sets the mode of what is open, also of what is open as a mere path.
pub(crate) fn chmod(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let opened = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::set_permissions(opened, Permissions::from_mode(mode))
}

fn single(name: &str) -> io::Result<&OsStr> {
    match names(name) {
        Some((way, name)) if way.is_empty() => Ok(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("'{}' is no name of a file", name.escape_debug()),
        )),
    }
}

/// The directories on the way and the last name of a relative path that climbs nowhere.
fn names(path: &str) -> Option<(Vec<&OsStr>, &OsStr)> {
    let mut way = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => way.push(name),
            _ => return None,
        }
    }
    let name = way.pop()?;
    (!path.ends_with('/') && !path.contains('\0')).then_some((way, name))
}
