//! The file that a snapshot's directory contains while its files are in the store alone, also while
//! they are being removed or restored. Without it, files that are left of an interrupted removal
//! would look like a page.

use crate::failure::{Result, TransferFailure, at};
use archivist_core::store::{STORED_MARKER, StoredObject};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{Survives, Whole};
use nix::unistd::geteuid;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Name of the marker: the JSON of the object.
pub const MARKER: &str = STORED_MARKER;
/// Page of the snapshot, which links of other pages lead to.
pub const PAGE: &str = "index.html";

/// Permissions of both files, less the umask.
const MODE: u32 = 0o666;
/// Longest marker, in bytes.
const MARKER_BYTES_MAX: u64 = 1 << 16;

/// Returns the object that the marker names; `None` without a marker. A file of this name is a marker
/// only if it belongs to the user of this process: hooks, which have users of their own, can make a
/// file of any name in the directory of their page.
pub fn read(directory: &Directory) -> Result<Option<StoredObject>> {
    let path = directory.path().join(MARKER);
    match directory.stat(MARKER) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("read", &path)(error)),
        Ok(found) if !is_file(&found) || found.st_uid != geteuid().as_raw() => return Ok(None),
        Ok(_) => {}
    }
    let file = directory.read(MARKER).map_err(at("read", &path))?;
    let mut text = Vec::new();
    file.take(MARKER_BYTES_MAX).read_to_end(&mut text).map_err(at("read", &path))?;
    // A marker is complete or not there (see `replace`): what is none was not written by a transfer.
    Ok(serde_json::from_slice(&text).ok())
}

/// Writes the marker, then the page that takes the place of the archived one.
pub fn write(directory: &Directory, object: &StoredObject) -> Result<()> {
    let text =
        serde_json::to_vec(object).map_err(|error| TransferFailure::new(error.to_string()))?;
    let path = directory.path().join(MARKER);
    // A hook may have made a directory of this name.
    directory.clear(MARKER).map_err(at("remove", &path))?;
    put(directory, MARKER, &text)?;
    let name = directory.path().file_name().unwrap_or_default();
    let id = name.to_string_lossy();
    let page = format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{id} is in the store</title>\n\
         <p>The files of this page are in the store of the archive. To restore and open them:</p>\n\
         <pre>archivist open {id}</pre>\n<p><a href=\"../../../index.html\">Archive</a></p>\n"
    );
    put(directory, PAGE, page.as_bytes())
}

fn put(directory: &Directory, name: &str, content: &[u8]) -> Result<()> {
    let whole = Whole::within(directory, name, MODE);
    let written = whole.and_then(|whole| whole.write(content, Survives::PowerCut));
    written.map_err(at("write", &directory.path().join(name)))
}

/// Removes the marker, when all files are restored.
pub fn remove(directory: &Path) -> Result<()> {
    let path = directory.join(MARKER);
    remove_tree(&path).map_err(at("remove", &path))?;
    Directory::open(directory).and_then(|opened| opened.sync()).map_err(at("write", directory))
}
