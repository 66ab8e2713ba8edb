//! The copy of a persona. Each crawl works on one of its own, so that browsers of two crawls never
//! share a profile, and what a page does to it is gone with the crawl.

use nix::errno::Errno;
use nix::libc::{O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where a browser keeps its profile, in a persona.
pub const PROFILE: &str = "chrome_profile";
/// What says that a browser is at work on a profile: a link to its host and process.
pub const IN_USE: &str = "SingletonLock";

/// What a copy may hold: files and directories, bytes in all, and directories in one another.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub entries: usize,
    pub bytes: u64,
    pub depth: usize,
}

/// Larger than any profile that somebody uses, and small enough to be copied for each crawl.
pub const BOUNDS: Bounds = Bounds {
    entries: 200_000,
    bytes: 4 << 30,
    depth: 64,
};

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("cannot {verb} '{path}': {source}")]
    File {
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "'{0}' is too large for a persona: more than 4 GiB, 200000 files or 64 directories in one another"
    )]
    TooLarge(PathBuf),
}

/// Copies the directories and regular files of `from` to `to`, which is made. Links, sockets and
/// pipes are left out, and none is followed on the way; so is what a browser leaves behind to
/// say that it runs, or where.
///
/// # Errors
/// When something cannot be read or written, or exceeds `bounds`. What was copied until then stays.
pub fn copy(from: &Path, to: &Path, bounds: Bounds) -> Result<(), CopyError> {
    let top = File::options()
        .read(true)
        .custom_flags(O_DIRECTORY)
        .open(from)
        .map_err(|error| failed("read", from, error))?;
    let mut left = bounds;
    tree(&top, from, to, &mut left)
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> CopyError {
    let path = path.to_owned();
    CopyError::File { verb, path, source }
}

/// `shown` is where `dir` was found, for people.
fn tree(dir: &File, shown: &Path, to: &Path, left: &mut Bounds) -> Result<(), CopyError> {
    let too_large = || CopyError::TooLarge(shown.to_owned());
    left.depth = left.depth.checked_sub(1).ok_or_else(too_large)?;
    fs::create_dir(to).map_err(|error| failed("make", to, error))?;
    // Through the descriptor: a directory that becomes a link under our hands leads nowhere.
    let here = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
    let unreadable = |error| failed("read", shown, error);
    for entry in fs::read_dir(&here).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if is_of_a_running_browser(&name.to_string_lossy()) {
            continue;
        }
        left.entries = left.entries.checked_sub(1).ok_or_else(too_large)?;
        let (path, target) = (shown.join(&name), to.join(&name));
        let file = match open(&here.join(&name)) {
            Ok(file) => file,
            Err(error) if is_special(&error) => continue,
            Err(error) => return Err(failed("read", &path, error)),
        };
        let kind = file.metadata().map_err(|e| failed("look at", &path, e))?;
        if kind.is_dir() {
            tree(&file, &path, &target, left)?;
        } else if kind.is_file() {
            match kind.len() > left.bytes {
                true => return Err(CopyError::TooLarge(path)),
                false => contents(file, &path, &target, left)?,
            }
        }
    }
    left.depth += 1;
    Ok(())
}

/// Not followed if it is a link, not waited for if it is a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    options.open(path)
}

fn is_special(error: &io::Error) -> bool {
    // A link, a socket, or a device that is none; or it is gone again.
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(
        code,
        Some(Errno::ELOOP | Errno::ENXIO | Errno::ENODEV | Errno::ENOENT)
    )
}

fn is_of_a_running_browser(name: &str) -> bool {
    name.starts_with("Singleton") || name == "DevToolsActivePort"
}

fn contents(mut from: File, shown: &Path, to: &Path, left: &mut Bounds) -> Result<(), CopyError> {
    let write = |error| failed("write", to, error);
    let mut target = File::create_new(to).map_err(write)?;
    // It may grow meanwhile: one byte more than allowed, to see that there is more.
    let mut bounded = io::Read::take(&mut from, left.bytes.saturating_add(1));
    let copied = io::copy(&mut bounded, &mut target).map_err(write)?;
    let rest = left.bytes.checked_sub(copied);
    left.bytes = rest.ok_or_else(|| CopyError::TooLarge(shown.to_owned()))?;
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
    fn only_files_and_directories_are_taken() {
        let top = profile();
        let at = |name: &str| top.path().join(name);
        symlink("/etc/passwd", at("from/link")).unwrap();
        symlink("/etc", at("from/directory")).unwrap();
        symlink("host-1", at("from/chrome_profile/SingletonLock")).unwrap();
        fs::write(at("from/chrome_profile/DevToolsActivePort"), "1").unwrap();
        let _socket = UnixListener::bind(at("from/socket")).unwrap();
        nix::unistd::mkfifo(&at("from/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();

        copy(&at("from"), &at("to"), BOUNDS).unwrap();
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(read("to/chrome_profile/Default/Cookies"), "kept");
        assert_eq!(read("to/cookies.txt"), "cookies");
        let names = |name: &str| fs::read_dir(at(name)).unwrap().count();
        assert_eq!((names("to"), names("to/chrome_profile")), (2, 1));
        assert!(
            copy(&at("from"), &at("to"), BOUNDS).is_err(),
            "nothing is copied over"
        );
        assert!(copy(&at("missing"), &at("other"), BOUNDS).is_err());
    }

    #[test]
    fn the_copy_is_bounded() {
        let top = profile();
        let refused = |bounds: Bounds| {
            let to = tempfile::tempdir().unwrap();
            let done = copy(&top.path().join("from"), &to.path().join("to"), bounds);
            matches!(done, Err(CopyError::TooLarge(_)))
        };
        let just = Bounds {
            entries: 4,
            bytes: 11,
            depth: 3,
        };
        assert!(!refused(just));
        assert!(refused(Bounds { entries: 3, ..just }));
        assert!(refused(Bounds { bytes: 10, ..just }));
        assert!(refused(Bounds { depth: 2, ..just }));
    }
}
