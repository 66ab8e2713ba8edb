//! Local files that must survive a power cut.

use archivist_plugin::Directory;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Permissions of a written file, less the umask.
const MODE: u32 = 0o666;

/// Writes a file under another name, and renames it when it is on the disk. Nothing that a hook left
/// under the other name is written to.
pub fn replace(directory: &Directory, name: &str, content: &[u8]) -> io::Result<()> {
    let part = format!(".{name}.part");
    directory.clear(&part)?;
    let mut file = directory.create(&part, MODE)?;
    file.write_all(content)?;
    file.sync_all()?;
    directory.rename(&part, name)?;
    sync(directory.path())
}

/// Waits until the entries of a directory are on the disk.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
