//! `archivist run --dir DIR` and `--output DIR`: copies archived pages to the caller. Hooks wrote
//! the files, and DIR may belong to another user: only directories and regular files are copied,
//! each is opened relative to its parent, and no symbolic link below either directory is followed.
//!
//! A file is complete or does not exist under its name: if the command is killed, it leaves at most
//! one file [`PARTIAL`], which the next copy removes.

use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_core::model::SnapshotId;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes};
use std::io;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Deepest nesting that is copied.
const DEPTH_MAX: usize = 64;
/// Name of a file while its content is being copied.
const PARTIAL: &str = ".archivist-partial";
/// Flags to open a directory below another one.
const ENTER: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// Flags to open a file that may be a link or a pipe.
const READ: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);
const CREATE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// Modes of new files and directories, before the umask of the caller.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o777);

/// How pages are laid out in DIR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One page, whose plugins have their directories in DIR.
    OnePage,
    /// Each page in a directory that is named after its id.
    ById,
}

fn failed(verb: &str, path: &Path, error: impl Into<io::Error>) -> Failure {
    let error: io::Error = error.into();
    Failure::failed(format!("failed to {verb} '{}': {error}", path.display()))
}

/// An open directory, with its path for messages.
struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a path, following links.
    fn open(path: &Path) -> io::Result<Folder> {
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(path)?;
        Ok(Folder {
            fd: file.into(),
            path: path.to_owned(),
        })
    }

    fn enter(&self, name: &OsStr) -> Result<Folder, Failure> {
        let path = self.path.join(name);
        match openat(&self.fd, name, ENTER, Mode::empty()) {
            Ok(fd) => Ok(Folder { fd, path }),
            Err(error) => Err(failed("open directory", &path, error)),
        }
    }

    /// Creates a subdirectory if it does not exist, and opens it.
    fn make(&self, name: &OsStr) -> Result<Folder, Failure> {
        match mkdirat(&self.fd, name, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EEXIST) => self.enter(name),
            Err(error) => Err(failed("create directory", &self.path.join(name), error)),
        }
    }

    /// Removes a partial file that a killed command left.
    fn clear_partial(&self) -> Result<(), Failure> {
        match unlinkat(&self.fd, PARTIAL, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(failed("remove", &self.path.join(PARTIAL), error)),
        }
    }

    /// Creates the file whose content is about to be copied.
    fn create_partial(&self) -> Result<File, Failure> {
        self.clear_partial()?;
        match openat(&self.fd, PARTIAL, CREATE, FILE_MODE) {
            Ok(fd) => Ok(fd.into()),
            Err(error) => Err(failed("create a file in", &self.path, error)),
        }
    }

    /// Names of the entries with their types; `None` for an entry that was removed meanwhile.
    fn entries(&self) -> Result<Vec<(OsString, Option<Type>)>, Failure> {
        let unreadable = |error: Errno| failed("read", &self.path, error);
        let mut dir =
            Dir::openat(self.fd.as_fd(), ".", ENTER, Mode::empty()).map_err(unreadable)?;
        let mut entries = Vec::new();
        for entry in dir.iter() {
            let entry = entry.map_err(unreadable)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                let kind = entry.file_type().or_else(|| self.kind(name));
                entries.push((name.to_owned(), kind));
            }
        }
        Ok(entries)
    }

    /// The type of an entry of a file system that does not report types in directories.
    fn kind(&self, name: &OsStr) -> Option<Type> {
        let found = fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        match found.st_mode & libc::S_IFMT {
            libc::S_IFDIR => Some(Type::Directory),
            libc::S_IFREG => Some(Type::File),
            _ => None,
        }
    }
}

/// The directory that a command copies to. Another command cannot use it at the same time.
pub struct Target {
    folder: Folder,
    layout: Layout,
    /// Released by the kernel when the process ends.
    _lock: Option<Flock<OwnedFd>>,
}

impl Target {
    /// Creates the directory if it does not exist, and tests whether files can be created in it,
    /// before anything is archived for it.
    ///
    /// # Errors
    /// If the directory is part of the archive, if it cannot be created or written to, or if
    /// another command copies to it.
    pub fn open(path: &Path, layout: Layout, scope: &Scope) -> Result<Target, Failure> {
        refuse_archive(path, scope)?;
        std::fs::create_dir_all(path).map_err(|error| failed("create directory", path, error))?;
        refuse_archive(path, scope)?;
        let folder = Folder::open(path).map_err(|error| failed("open directory", path, error))?;
        let lock = lock(&folder)?;
        folder.create_partial()?;
        folder.clear_partial()?;
        Ok(Target {
            folder,
            layout,
            _lock: lock,
        })
    }

    /// How pages are laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// Copies the directory of a page. Replaces existing files of the same name and leaves others.
    pub fn copy(&self, id: SnapshotId, source: &Path) -> Result<(), Failure> {
        let from = Folder::open(source).map_err(|error| failed("open directory", source, error))?;
        match self.layout {
            Layout::OnePage => tree(&from, &self.folder, 0),
            Layout::ById => tree(&from, &self.folder.make(OsStr::new(&id.to_string()))?, 0),
        }
    }
}

/// Locks the directory. None if its file system cannot lock directories.
fn lock(folder: &Folder) -> Result<Option<Flock<OwnedFd>>, Failure> {
    let fd = folder
        .fd
        .try_clone()
        .map_err(|error| failed("open directory", &folder.path, error))?;
    match Flock::lock(fd, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(Failure::failed(format!(
            "failed to lock '{}': another command copies to it",
            folder.path.display()
        ))),
        Err(_) => Ok(None),
    }
}

/// Where a path is, or would be created.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for ancestor in path.ancestors() {
        match ancestor.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                return Ok(real.join(rest));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Refuses a directory in the data directory: only the orchestrator and its units write there.
fn refuse_archive(path: &Path, scope: &Scope) -> Result<(), Failure> {
    let named = scope.data_dir();
    let data = named.canonicalize().unwrap_or(named);
    let real = resolved(path).map_err(|error| failed("resolve", path, error))?;
    if real.starts_with(&data) {
        return Err(Failure::usage(format!(
            "'{}' is in '{}', which only archivist writes to; name another directory",
            path.display(),
            data.display()
        )));
    }
    Ok(())
}

/// Other users cannot read the archive: report that before the work, not after it.
pub fn can_copy(scope: &Scope) -> Result<(), Failure> {
    let archive = scope.data_dir().join("archive");
    match std::fs::read_dir(&archive) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Failure::failed(format!(
            "failed to read '{}': {error}\n--dir and --output copy from there: run the command as root, or with --user",
            archive.display()
        ))),
        _ => Ok(()),
    }
}

fn tree(from: &Folder, to: &Folder, depth: usize) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        let what = io::Error::other("nested too deeply");
        return Err(failed("copy", &from.path, what));
    }
    to.clear_partial()?;
    for (name, kind) in from.entries()? {
        match kind {
            Some(Type::Directory) => tree(&from.enter(&name)?, &to.make(&name)?, depth + 1)?,
            Some(Type::File) => file(from, to, &name)?,
            _ => {}
        }
    }
    Ok(())
}

fn file(from: &Folder, to: &Folder, name: &OsStr) -> Result<(), Failure> {
    let (source, target) = (from.path.join(name), to.path.join(name));
    let opened = openat(&from.fd, name, READ, Mode::empty());
    let mut read: File = opened
        .map_err(|error| failed("read", &source, error))?
        .into();
    let found = read
        .metadata()
        .map_err(|error| failed("read", &source, error))?;
    if !found.is_file() {
        return Ok(());
    }
    let mut written = to.create_partial()?;
    io::copy(&mut read, &mut written).map_err(|error| failed("write", &target, error))?;
    if let Ok(modified) = found.modified() {
        // A time that the file system of the target cannot store; ignoring.
        let _ = written.set_times(FileTimes::new().set_modified(modified));
    }
    renameat(&to.fd, PARTIAL, &to.fd, name).map_err(|error| failed("write", &target, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A base directory with a page in `from`, and a scope whose archive is in `data`.
    fn bed() -> (tempfile::TempDir, Scope) {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("from/wget/deep")).unwrap();
        std::fs::write(path("from/index.jsonl"), "index").unwrap();
        std::fs::write(path("from/wget/index.html"), "page").unwrap();
        std::fs::write(path("from/wget/deep/style.css"), "style").unwrap();
        symlink("/etc/passwd", path("from/link")).unwrap();
        let scope = Scope::system(base.path());
        std::fs::create_dir_all(scope.data_dir().join("archive")).unwrap();
        (base, scope)
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn one_page_lands_in_the_directory_and_several_below_their_ids() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        let one = Target::open(&path("new/one"), Layout::OnePage, &scope).unwrap();
        one.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("new/one")), ["index.jsonl", "wget"]);
        assert_eq!(read("new/one/wget/deep/style.css"), "style");
        let several = Target::open(&path("several"), Layout::ById, &scope).unwrap();
        several.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("several")), ["s3"]);
        assert_eq!(names(&path("several/s3")), ["index.jsonl", "wget"]);
    }

    #[test]
    fn links_are_neither_copied_nor_written_through() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("to/wget")).unwrap();
        std::fs::write(path("mine"), "mine").unwrap();
        std::fs::write(path("to/kept"), "kept").unwrap();
        symlink(path("mine"), path("to/wget/index.html")).unwrap();
        symlink(path("mine"), path("to/wget").join(PARTIAL)).unwrap();
        // The directory itself may be a link: the caller named it.
        symlink(path("to"), path("linked")).unwrap();

        let target = Target::open(&path("linked"), Layout::OnePage, &scope).unwrap();
        target.copy(SnapshotId(3), &path("from")).unwrap();
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("to/wget/index.html"), "page");
        assert_eq!(
            (read("mine"), read("to/kept")),
            ("mine".into(), "kept".into())
        );
        assert_eq!(names(&path("to")), ["index.jsonl", "kept", "wget"]);
        assert_eq!(names(&path("to/wget")), ["deep", "index.html"]);

        std::fs::remove_dir_all(path("to/wget")).unwrap();
        symlink(base.path(), path("to/wget")).unwrap();
        let refused = target.copy(SnapshotId(3), &path("from")).unwrap_err();
        assert!(
            refused.message().contains("linked/wget"),
            "{}",
            refused.message()
        );
        drop(target);
        let target = Target::open(&path("to"), Layout::ById, &scope).unwrap();
        symlink(base.path(), path("to/s3")).unwrap();
        assert!(target.copy(SnapshotId(3), &path("from")).is_err());
    }

    #[test]
    fn a_killed_copy_is_completed_by_the_next() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("to/wget")).unwrap();
        std::fs::write(path("to/wget").join(PARTIAL), "pa").unwrap();
        let target = Target::open(&path("to"), Layout::OnePage, &scope).unwrap();
        target.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("to/wget")), ["deep", "index.html"]);
    }

    #[test]
    fn unusable_directories_are_refused_before_the_work() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        let refusal = |name: &Path| {
            let target = Target::open(name, Layout::OnePage, &scope);
            target.map(drop).unwrap_err().message().to_owned()
        };
        let archive = scope.data_dir().join("archive/mine");
        assert!(refusal(&archive).contains("name another directory"));
        assert!(!archive.exists());
        symlink(scope.data_dir(), path("aside")).unwrap();
        assert!(refusal(&path("aside/mine")).contains("name another directory"));
        std::fs::write(path("file"), "").unwrap();
        assert!(refusal(&path("file")).starts_with("failed to create directory"));
        symlink(path("nowhere"), path("dangling")).unwrap();
        assert!(refusal(&path("dangling")).starts_with("failed to create directory"));
        assert!(refusal(Path::new("/proc/self")).starts_with("failed to create a file in"));
        let first = Target::open(&path("to"), Layout::ById, &scope).unwrap();
        assert!(refusal(&path("to")).contains("another command copies to it"));
        drop(first);
        assert!(Target::open(&path("to"), Layout::ById, &scope).is_ok());
    }
}
