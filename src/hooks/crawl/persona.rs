//! Copies a persona. Each crawl uses its own copy, so that browsers of two crawls never share a
//! profile, and changes by a page end with the crawl.
//!
//! Root also uses this module to copy trees of other users. Whatever these change during the copy,
//! only regular files of the tree are read, and at most as much as the bounds allow.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc::{O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Name of the browser profile's directory in a persona.
pub const PROFILE: &str = "chrome_profile";
/// File that marks a profile as in use by a browser: a symbolic link to the host and process.
pub const IN_USE: &str = "SingletonLock";

/// Limits of a copy: number of files and directories, bytes in total, and depth of
/// directories.
#[derive(Clone, Copy, Debug)]
pub struct CopyBounds {
    /// Files and directories.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Levels of directories.
    pub depth: usize,
    /// Whether files with the owner's execute permission stay executable.
    pub programs: bool,
}

/// Larger than any real profile, and small enough to be copied for each crawl.
pub const COPY_BOUNDS: CopyBounds =
    CopyBounds { entries: 200_000, bytes: 4 << 30, depth: 64, programs: false };

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A file or directory that cannot be read or written.
    #[error("failed to {verb} '{path}': {source}")]
    File {
        /// What failed, such as `copy`.
        verb: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A directory that exceeds the limits of a copy.
    #[error(
        "'{path}' is too large: the limits are {} MiB, {} files and {} levels of directories",
        bounds.bytes >> 20, bounds.entries, bounds.depth
    )]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// The limits.
        bounds: CopyBounds,
    },
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
    let mut left = bounds;
    tree(top, shown, to, &mut left).map_err(|error| match error {
        CopyError::TooLarge { path, .. } => CopyError::TooLarge { path, bounds },
        error => error,
    })
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> CopyError {
    let path = path.to_owned();
    CopyError::File { verb, path, source }
}

/// Copies one directory. `shown` is the path of `dir` in messages.
fn tree(dir: &File, shown: &Path, to: &Path, left: &mut CopyBounds) -> Result<(), CopyError> {
    let too_large = too_large(shown, *left);
    left.depth = left.depth.checked_sub(1).ok_or_else(too_large.clone())?;
    fs::create_dir(to).map_err(|error| failed("create", to, error))?;
    // Reads through the descriptor: if the path becomes a link meanwhile, it is not followed.
    let here = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
    let unreadable = |error| failed("read", shown, error);
    for entry in fs::read_dir(&here).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if is_of_a_running_browser(&name.to_string_lossy()) {
            continue;
        }
        left.entries = left.entries.checked_sub(1).ok_or_else(too_large.clone())?;
        let (path, target) = (shown.join(&name), to.join(&name));
        let file = match open(&here.join(&name)) {
            Ok(file) => file,
            Err(error) if is_special(&error) => continue,
            Err(error) => return Err(failed("read", &path, error)),
        };
        let kind = file.metadata().map_err(|e| failed("inspect", &path, e))?;
        if kind.is_dir() {
            tree(&file, &path, &target, left)?;
        } else if kind.is_file() && !is_foreign_link(&kind, dir).map_err(unreadable)? {
            if kind.len() > left.bytes {
                let bounds = *left;
                return Err(CopyError::TooLarge { path, bounds });
            }
            let program = left.programs && kind.permissions().mode() & 0o100 != 0;
            contents(file, &path, &target, program, left)?;
        }
    }
    left.depth += 1;
    Ok(())
}

/// Whether a file with this metadata has further names, and not the owner of its directory.
fn is_foreign_link(file: &fs::Metadata, directory: &File) -> io::Result<bool> {
    Ok(file.nlink() > 1 && file.uid() != directory.metadata()?.uid())
}

/// Opens without following a link and without waiting for the writer of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    options.open(path)
}

fn is_special(error: &io::Error) -> bool {
    // A symbolic link, a socket, a device without a driver, or a file that was removed meanwhile.
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::ELOOP | Errno::ENXIO | Errno::ENODEV | Errno::ENOENT))
}

fn is_of_a_running_browser(name: &str) -> bool {
    name.starts_with("Singleton") || name == "DevToolsActivePort"
}

fn too_large(shown: &Path, bounds: CopyBounds) -> impl Fn() -> CopyError + Clone {
    let path = shown.to_owned();
    move || CopyError::TooLarge { path: path.clone(), bounds }
}

fn contents(
    mut from: File,
    shown: &Path,
    to: &Path,
    program: bool,
    left: &mut CopyBounds,
) -> Result<(), CopyError> {
    let write = |error| failed("write", to, error);
    let mode = if program { 0o777 } else { 0o666 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut target = options.open(to).map_err(write)?;
    // The file may grow during the copy: read one byte more than allowed to detect that.
    let mut bounded = io::Read::take(&mut from, left.bytes.saturating_add(1));
    let copied = io::copy(&mut bounded, &mut target).map_err(write)?;
    let rest = left.bytes.checked_sub(copied);
    left.bytes = rest.ok_or_else(too_large(shown, *left))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
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
