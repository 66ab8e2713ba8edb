//! Access to a directory that hooks can write to. The directory stays open, and everything in it is
//! opened relative to its descriptor, one name at a time, so that no link that a hook creates leads
//! elsewhere.
//!
//! openat2(2) with RESOLVE_BENEATH would resolve whole paths, but with `RestrictSUIDSGID=`, which
//! the units set, systemd makes it fail with ENOSYS, because its system call filter cannot inspect
//! the mode argument.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::files::remove;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::unistd::{LinkatFlags, UnlinkatFlags, linkat, symlinkat, unlinkat};

/// Flags to open a directory below another one.
const ENTER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// Flags to open a file that a hook may have replaced by a link or a pipe.
const PLAIN: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);

/// An open directory. Methods accept single names only, neither `..` nor paths with a slash.
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
    /// Opens `path`, following links. Hooks must not be able to write to its parents.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let file = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(path)?;
        Ok(Directory { fd: file.into(), path: path.to_owned() })
    }

    /// Opens the same directory again.
    pub fn here(&self) -> io::Result<Directory> {
        let fd = self.fd.try_clone()?;
        let path = self.path.clone();
        Ok(Directory { fd, path })
    }

    /// Opens the subdirectory `name`. Fails with ENOTDIR for anything else, including a link to a
    /// directory.
    pub fn enter(&self, name: impl AsRef<OsStr>) -> io::Result<Directory> {
        let name = single(&name)?;
        let fd = match openat(self, name, ENTER, Mode::empty()) {
            Err(Errno::ELOOP) => Err(Errno::ENOTDIR),
            other => other,
        }?;
        let path = self.path.join(name);
        Ok(Directory { fd, path })
    }

    /// Opens the subdirectory `name` with O_PATH, which needs no permission for it.
    pub(crate) fn enter_path(&self, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        let flags = ENTER | OFlag::O_PATH;
        Ok(openat(self, single(&name)?, flags, Mode::empty())?)
    }

    /// Opens the directory above, which may not be the one that this directory was opened from.
    pub(crate) fn enter_parent(&self) -> io::Result<Directory> {
        let fd = openat(self, "..", ENTER, Mode::empty())?;
        let mut path = self.path.clone();
        path.pop();
        Ok(Directory { fd, path })
    }

    /// The same directory without its path.
    pub(crate) fn unnamed(self) -> Directory {
        let path = PathBuf::new();
        Directory { path, ..self }
    }

    /// Path of the directory when it was opened: for messages and records, never for system calls.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn make(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        Ok(mkdirat(self, single(&name)?, Mode::from_bits_truncate(mode))?)
    }

    /// Metadata of `name`, without following a link.
    pub fn stat(&self, name: impl AsRef<OsStr>) -> io::Result<FileStat> {
        Ok(fstatat(self, single(&name)?, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file for reading. Refuses links and pipes.
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.plain(name, OFlag::O_RDONLY)
    }

    /// Opens an existing regular file for reading and appending.
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.plain(name, OFlag::O_RDWR | OFlag::O_APPEND)
    }

    /// Creates a file for reading and appending. Fails if it exists.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL | PLAIN;
        let mode = Mode::from_bits_truncate(mode);
        Ok(openat(self, single(&name)?, flags, mode)?.into())
    }

    /// Creates a file for reading and writing at any offset. Fails if it exists.
    pub fn create_for_writing(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | PLAIN;
        let mode = Mode::from_bits_truncate(mode);
        Ok(openat(self, single(&name)?, flags, mode)?.into())
    }

    fn plain(&self, name: impl AsRef<OsStr>, access: OFlag) -> io::Result<File> {
        let file: File = openat(self, single(&name)?, access | PLAIN, Mode::empty())?.into();
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Renames within the directory, replacing a file but not a directory.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(renameat(self, single(&from)?, self, single(&to)?)?)
    }

    /// Moves `name` into another directory of the same file system, replacing a file but not a
    /// directory that has entries.
    pub fn move_into(&self, name: impl AsRef<OsStr>, other: &Directory) -> io::Result<()> {
        let name = single(&name)?;
        Ok(renameat(self, name, other, name)?)
    }

    /// Creates a symbolic link. The caller decides whether `target` is acceptable.
    pub fn make_link(&self, name: impl AsRef<OsStr>, target: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, self, single(&name)?)?)
    }

    /// Names of all entries but `.` and `..`, in no particular order.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        self.entries()?.collect()
    }

    /// Lists the names of all entries but `.` and `..`, in no particular order.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let dir = Dir::openat(self, ".", ENTER, Mode::empty())?;
        Ok(dir.into_iter().filter_map(|entry| match entry {
            Err(error) => Some(Err(error.into())),
            Ok(entry) => match entry.file_name().to_bytes() {
                b"." | b".." => None,
                name => Some(Ok(OsStr::from_bytes(name).to_owned())),
            },
        }))
    }

    pub fn link(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (single(&from)?, single(&to)?);
        Ok(linkat(self, from, self, to, LinkatFlags::empty())?)
    }

    /// Creates a hard link to `name` in another directory of the same file system.
    pub fn link_into(
        &self,
        name: impl AsRef<OsStr>,
        other: &Directory,
        to: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, to) = (single(&name)?, single(&to)?);
        Ok(linkat(self, name, other, to, LinkatFlags::empty())?)
    }

    /// Waits until all entries are on disk.
    pub fn sync(&self) -> io::Result<()> {
        File::from(self.fd.try_clone()?).sync_all()
    }

    /// Removes a file or a symbolic link.
    pub fn unlink(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(self, single(&name)?, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes an empty directory.
    pub fn remove_empty(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(self, single(&name)?, UnlinkatFlags::RemoveDir)?)
    }

    /// Removes a file, a link, or a directory with everything in it, at any depth. A missing one is
    /// removed already.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        remove::remove_in(self, single(&name)?)
    }

    /// Makes `name` available: removes a file or link, and renames a directory to a random name,
    /// because removing its content may take too long.
    pub fn clear(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = single(&name)?;
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

    /// Whether `path` below this directory is a regular file and contains no symbolic link.
    pub fn has_file(&self, path: &str) -> bool {
        self.find(path).is_some_and(|found| is_file(&found))
    }

    /// Metadata of `path` below this directory, without following links. `None` if it contains one
    /// before its end, or cannot be found.
    pub fn find(&self, path: &str) -> Option<FileStat> {
        let (parents, name) = names(path)?;
        let flags = ENTER | OFlag::O_PATH;
        let mut deepest = None;
        for step in parents {
            let from = deepest.as_ref().map_or(self.as_fd(), OwnedFd::as_fd);
            deepest = Some(openat(from, step, flags, Mode::empty()).ok()?);
        }
        let from = deepest.as_ref().map_or(self.as_fd(), OwnedFd::as_fd);
        fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// Restricts access to the directory to its owner (mode 0700).
    pub fn restrict_to_owner(&self) -> io::Result<()> {
        chmod(self.as_fd(), 0o700)
    }
}

pub fn is_file(found: &FileStat) -> bool {
    found.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Whether an open file of `directory`, a tree of another program, is a hard link to a file of another user: it has
/// further names, and not the owner of its directory.
pub fn is_foreign_link(file: impl AsFd, directory: &Directory) -> io::Result<bool> {
    let found = fstat(file)?;
    Ok(found.st_nlink > 1 && found.st_uid != fstat(directory)?.st_uid)
}

/// Changes the mode of an open file, even if it was opened with O_PATH.
pub(crate) fn chmod(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let opened = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::set_permissions(opened, Permissions::from_mode(mode))
}

fn single<N: AsRef<OsStr> + ?Sized>(name: &N) -> io::Result<&OsStr> {
    let name = name.as_ref();
    match names(name) {
        Some((parents, name)) if parents.is_empty() => Ok(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("'{}' is not a valid file name", name.to_string_lossy().escape_debug()),
        )),
    }
}

/// Splits a relative path without `..` into its directories and its last name.
fn names<P: AsRef<OsStr> + ?Sized>(path: &P) -> Option<(Vec<&OsStr>, &OsStr)> {
    let path = path.as_ref();
    let mut parents = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parents.push(name),
            _ => return None,
        }
    }
    let name = parents.pop()?;
    let bytes = path.as_bytes();
    (!bytes.ends_with(b"/") && !bytes.contains(&0)).then_some((parents, name))
}
