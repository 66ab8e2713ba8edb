//! Files between the orchestrator and one unit of its own; other users cannot read them.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Opens an empty file to be written, of mode 0600 in a directory of mode 0700; both are made if
/// they are missing. What the file had is gone.
pub fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}
