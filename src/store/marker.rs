//! The file that a snapshot's directory contains while its files are in the store alone, also while
//! they are being removed or restored. Without it, files that are left of an interrupted removal
//! would look like a page.

use crate::failure::{Failure, Result, at};
use crate::files;
use archivist_core::store::{STORED_MARKER, StoredObject};
use std::io::ErrorKind;
use std::path::Path;

/// Name of the marker: the JSON of the object.
pub const MARKER: &str = STORED_MARKER;
/// Page of the snapshot, which links of other pages lead to.
pub const PAGE: &str = "index.html";

/// Returns the object that the marker names; `None` without a marker.
pub fn read(directory: &Path) -> Result<Option<StoredObject>> {
    let path = directory.join(MARKER);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(at("read", &path))?,
    };
    let object = serde_json::from_slice(&text).map_err(at("read", &path))?;
    Ok(Some(object))
}

/// Writes the marker, then the page that takes the place of the archived one.
pub fn write(directory: &Path, object: &StoredObject) -> Result<()> {
    let text = serde_json::to_vec(object).map_err(|error| Failure::new(error.to_string()))?;
    files::replace(directory, MARKER, &text).map_err(at("write", &directory.join(MARKER)))?;
    let id = directory.file_name().unwrap_or_default().to_string_lossy();
    let page = format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{id} is in the store</title>\n\
         <p>The files of this page are in the store of the archive. To restore and open them:</p>\n\
         <pre>archivist open {id}</pre>\n"
    );
    files::replace(directory, PAGE, page.as_bytes()).map_err(at("write", &directory.join(PAGE)))
}

/// Removes the marker, when all files are restored.
pub fn remove(directory: &Path) -> Result<()> {
    let path = directory.join(MARKER);
    files::remove(&path).map_err(at("remove", &path))?;
    files::sync(directory).map_err(at("write", directory))
}
