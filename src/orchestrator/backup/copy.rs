//! Copies of files, and their digests.

use archivist_plugin::files;
use archivist_plugin::files::digest::sha256;
use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Returns the SHA-256, in hex, of the rest of a stream.
pub fn digest(from: impl Read) -> io::Result<String> {
    sha256(from).map(|(sum, _)| sum)
}

/// Copies an open file to the new file `to`, which only its owner can read, and returns the digest of
/// the copy.
pub fn copy(from: &File, to: &Path) -> io::Result<(File, String)> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut copy = options.open(to)?;
    files::copy::copy(from, &copy)?;
    copy.rewind()?;
    let sum = digest(&copy)?;
    Ok((copy, sum))
}

/// Gives a copy the owner, if this user may do that, the mode and the time of the original.
pub fn dress(copy: &File, original: &Metadata) -> io::Result<()> {
    // Changing the owner clears set-id bits.
    let _ = std::os::unix::fs::fchown(copy, Some(original.uid()), Some(original.gid()));
    copy.set_permissions(Permissions::from_mode(original.mode() & 0o777))?;
    copy.set_times(FileTimes::new().set_modified(original.modified()?))
}
