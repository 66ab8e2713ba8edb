//! Files of users that are replaced as a whole.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces a file by one that is complete: readers see the one or the other.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    let written = options
        .open(&partial)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // The error that counts is the one before.
        let _ = fs::remove_file(&partial);
    }
    written
}
