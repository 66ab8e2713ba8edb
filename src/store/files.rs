//! Local files that must survive a power cut.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under another name, and renames it when it is on the disk.
pub fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let part = directory.join(format!(".{name}.part"));
    let mut file = File::create(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&part, directory.join(name))?;
    sync(directory)
}

/// Waits until the entries of a directory are on the disk.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes a file, a link, or a directory with everything in it. A missing one is removed already.
pub fn remove(path: &Path) -> io::Result<()> {
    let about = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if about.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}
