//! Copies a persona. Each crawl uses its own copy, so that browsers of two crawls never share a
//! profile, and changes by a page end with the crawl.
//!
//! Root also uses this module to copy trees of other users. Whatever these change during the copy,
//! only regular files of the tree are read, and at most as much as the bounds allow.

use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_foreign_link;
use archivist_plugin::files::walk::{
    EntryKind, Missed, PATH_BYTES_MAX, Walk, WalkBounds, WalkStep,
};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc::O_DIRECTORY;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the browser profile's directory in a persona.
pub const PROFILE: &str = "chrome_profile";
/// File that marks a profile as in use by a browser: a symbolic link to the host and process.
pub const IN_USE: &str = "SingletonLock";

/// Limits of a copy: number of files and directories, bytes in total, and depth of
/// directories.
#[derive(Clone, Copy, Debug)]
pub struct CopyBounds {
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
    pub depth: usize,
    /// Whether files with the owner's execute permission stay executable.
    pub programs: bool,
}

/// Larger than any real profile, and small enough to be copied for each crawl.
pub const COPY_BOUNDS: CopyBounds =
    CopyBounds { entries: 200_000, bytes: 4 << 30, depth: 64, programs: false };

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A file or directory that cannot be read or written.
    #[error("failed to {verb} '{path}': {source}")]
    File {
        /// What failed, such as `copy`.
        verb: &'static str,
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// A directory that exceeds the limits of a copy.
    #[error(
        "'{path}' is too large: the limits are {} MiB, {} files and {} levels of directories",
        bounds.bytes >> 20, bounds.entries, bounds.depth
    )]
    TooLarge { path: PathBuf, bounds: CopyBounds },
}

/// Opens a file or directory for reading if no part of `path` is a symbolic link. Opening a pipe
/// does not wait for a writer.
///
/// # Errors
/// ELOOP, reported with a message that names the cause, if a part is a symbolic link.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    open_at(AT_FDCWD, path, ResolveFlag::RESOLVE_NO_SYMLINKS)
}

/// Like [`open_without_links`], for a path below `directory`, which it cannot leave.
pub fn open_below(directory: &File, path: &Path) -> io::Result<File> {
    let resolve = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_BENEATH;
    open_at(directory, path, resolve)
}

fn open_at(directory: impl AsFd, path: &Path, resolve: ResolveFlag) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    match openat2(directory, path, how) {
        Ok(file) => Ok(file.into()),
        Err(Errno::ELOOP) => {
            Err(io::Error::other("the path contains a symbolic link, which is not followed"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Copies the directories and regular files of `from` to `to`, which must not exist. Skips and
/// never follows symbolic links; also skips hard links to files of other users, sockets, pipes, and the files by which a running
/// browser marks its profile.
///
/// # Errors
/// If a file cannot be read or written, or if the tree exceeds `bounds`. Files that were copied
/// before the error stay.
pub fn copy(from: &Path, to: &Path, bounds: CopyBounds) -> Result<(), CopyError> {
    let top = File::options()
        .read(true)
        .custom_flags(O_DIRECTORY)
        .open(from)
        .map_err(|error| failed("read", from, error))?;
    copy_opened(&top, from, to, bounds)
}

/// Like [`copy`], for an open directory. `shown` is its path in messages.
///
/// # Errors
/// As for [`copy`].
pub fn copy_opened(
    top: &File,
    shown: &Path,
    to: &Path,
    bounds: CopyBounds,
) -> Result<(), CopyError> {
    let unreadable = |path: &Path, error| failed("read", path, error);
    let too_large = |path: PathBuf| CopyError::TooLarge { path, bounds };
    // By the descriptor: if the path becomes a link meanwhile, it is not followed.
    let here = PathBuf::from(format!("/proc/self/fd/{}", top.as_raw_fd()));
    let limits = WalkBounds {
        entries: bounds.entries,
        depth: bounds.depth.saturating_sub(1),
        path: PATH_BYTES_MAX,
        unlock: false,
    };
    let mut walk = Directory::open(&here)
        .and_then(|top| Walk::new(&top, limits))
        .map_err(|error| unreadable(shown, error))?;
    fs::create_dir(to).map_err(|error| failed("create", to, error))?;
    let mut left = bounds.bytes;
    while let Some(step) = walk.step() {
        match step {
            WalkStep::Enter(dir) => {
                let target = to.join(dir.below());
                fs::create_dir(&target).map_err(|error| failed("create", &target, error))?;
            }
            WalkStep::Leaf(entry)
                if entry.kind == EntryKind::File && !is_of_a_running_browser(entry.name) =>
            {
                let path = shown.join(entry.below());
                let file = match entry.dir.read(entry.name) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(unreadable(&path, error)),
                };
                if is_foreign_link(&file, entry.dir).map_err(|error| unreadable(&path, error))? {
                    continue;
                }
                if entry.size() > left {
                    return Err(too_large(path));
                }
                let program = bounds.programs && entry.stat.st_mode & 0o100 != 0;
                let copied = contents(file, &to.join(entry.below()), program, left)?;
                left = left.checked_sub(copied).ok_or_else(|| too_large(path))?;
            }
            WalkStep::Leaf(_) | WalkStep::Leave => {}
            WalkStep::Missed { path, why: Missed::Unreadable(error), .. } => {
                return Err(unreadable(&shown.join(path), error));
            }
            WalkStep::Missed { path, .. } => return Err(too_large(shown.join(path))),
        }
    }
    Ok(())
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> CopyError {
    let path = path.to_owned();
    CopyError::File { verb, path, source }
}

fn is_of_a_running_browser(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("Singleton") || name == "DevToolsActivePort"
}

/// Copies a file to a new one, and returns the number of bytes: more than `most` if the file grows meanwhile.
fn contents(mut from: File, to: &Path, program: bool, most: u64) -> Result<u64, CopyError> {
    let write = |error| failed("write", to, error);
    let mode = if program { 0o777 } else { 0o666 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut target = options.open(to).map_err(write)?;
    let mut bounded = io::Read::take(&mut from, most.saturating_add(1));
    io::copy(&mut bounded, &mut target).map_err(write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    fn profile() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join("from").join(name);
        fs::create_dir_all(at("chrome_profile/Default")).unwrap();
        fs::write(at("chrome_profile/Default/Cookies"), "kept").unwrap();
        fs::write(at("cookies.txt"), "cookies").unwrap();
        top
    }

    #[test]
    fn only_files_and_directories_are_copied() {
        let top = profile();
        let at = |name: &str| top.path().join(name);
        symlink("/etc/passwd", at("from/link")).unwrap();
        symlink("/etc", at("from/directory")).unwrap();
        symlink("host-1", at("from/chrome_profile/SingletonLock")).unwrap();
        fs::write(at("from/chrome_profile/DevToolsActivePort"), "1").unwrap();
        let _socket = UnixListener::bind(at("from/socket")).unwrap();
        nix::unistd::mkfifo(&at("from/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();

        copy(&at("from"), &at("to"), COPY_BOUNDS).unwrap();
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(read("to/chrome_profile/Default/Cookies"), "kept");
        assert_eq!(read("to/cookies.txt"), "cookies");
        let names = |name: &str| fs::read_dir(at(name)).unwrap().count();
        assert_eq!((names("to"), names("to/chrome_profile")), (2, 1));
        assert!(
            copy(&at("from"), &at("to"), COPY_BOUNDS).is_err(),
            "an existing copy is not overwritten"
        );
        assert!(copy(&at("missing"), &at("other"), COPY_BOUNDS).is_err());
    }

    #[test]
    fn links_in_the_path_are_refused() {
        let top = profile();
        let at = |name: &str| top.path().canonicalize().unwrap().join(name);
        symlink("from", at("link")).unwrap();
        assert!(open_without_links(&at("from/cookies.txt")).is_ok());
        for path in ["link", "link/cookies.txt"] {
            let why = open_without_links(&at(path)).unwrap_err().to_string();
            assert!(why.contains("symbolic link"), "{path}: {why}");
        }
        let directory = File::open(at("from")).unwrap();
        assert!(open_below(&directory, Path::new("cookies.txt")).is_ok());
        for path in ["../link", "..", "/etc/passwd"] {
            assert!(open_below(&directory, Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn execute_permission_is_kept_on_request() {
        let top = profile();
        let hook = top.path().join("from/hook.py");
        fs::write(&hook, "#!").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o6755)).unwrap();
        let mode = |programs: bool| {
            let to = top.path().join(format!("to-{programs}"));
            let bounds = CopyBounds { programs, ..COPY_BOUNDS };
            copy(&top.path().join("from"), &to, bounds).unwrap();
            fs::metadata(to.join("hook.py")).unwrap().mode() & 0o6100
        };
        assert_eq!((mode(true), mode(false)), (0o100, 0));
    }

    #[test]
    fn copy_respects_its_bounds() {
        let top = profile();
        let refused = |bounds: CopyBounds| {
            let to = tempfile::tempdir().unwrap();
            let done = copy(&top.path().join("from"), &to.path().join("to"), bounds);
            matches!(done, Err(CopyError::TooLarge { .. }))
        };
        let just = CopyBounds { entries: 4, bytes: 11, depth: 3, programs: false };
        assert!(!refused(just));
        assert!(refused(CopyBounds { entries: 3, ..just }));
        assert!(refused(CopyBounds { bytes: 10, ..just }));
        assert!(refused(CopyBounds { depth: 2, ..just }));
    }
}
