//! Bodies that recordings share: each is a file of its own next to the recording, `bodies/SHA256.warc.gz`,
//! which is a hard link to the file of the archive. A recording and the files next to it are whole.

use archivist_warc::WarcError;
use archivist_warc::verify::{Report, check_with};
use archivist_warc::wacz::{Bodies, Wacz};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const DIRECTORY: &str = "bodies";
/// End of the name of a file with a body.
const SUFFIX: &str = ".warc.gz";

/// Name of the file with the body of this SHA-256 in hex digits.
#[must_use]
pub fn name(hex: &str) -> String {
    format!("{hex}{SUFFIX}")
}

/// Opens a recording, which finds its bodies next to `path`.
///
/// # Errors
/// If the file cannot be read, or has another format.
pub fn open(path: &Path, file: File) -> Result<Wacz, WarcError> {
    Wacz::open_with(file, next_to(path))
}

/// Opens the body with this SHA-256 in hex digits next to a recording; `None` if there is none.
///
/// # Errors
/// If it cannot be opened, or the digest is none.
pub fn of_digest(path: &Path, hex: &str) -> io::Result<Option<File>> {
    found(&directory(path), hex)
}

/// Reads all of a recording and of the bodies next to it, and returns what is wrong with them.
///
/// # Errors
/// If the file cannot be read.
pub fn check(path: &Path, file: File) -> Result<Report, WarcError> {
    check_with(file, next_to(path))
}

fn next_to(path: &Path) -> Bodies {
    let directory = directory(path);
    Arc::new(move |hex| found(&directory, hex))
}

fn directory(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(DIRECTORY)
}

/// Opens the body, which is neither a link nor a pipe.
fn found(directory: &Path, hex: &str) -> io::Result<Option<File>> {
    // A reader of foreign files may ask for anything.
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut options = File::options();
    options.read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    match options.open(directory.join(name(hex))) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(ErrorKind::InvalidInput.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
