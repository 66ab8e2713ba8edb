//! Restores the local files of a snapshot from the store. They appear when the whole object was read
//! and is intact.

use super::object_of;
use crate::backend::Store;
use crate::digest::Summed;
use crate::failure::{Failure, Result, at};
use crate::files;
use crate::marker;
use crate::unpack::unpack;
use archivist_core::store::Assignment;
use std::io;
use std::path::Path;

/// Directory of the files until all of them are there.
const RESTORING: &str = ".restoring";

/// Restores the local files.
pub fn get(store: &dyn Store, assignment: &Assignment) -> Result<()> {
    let (object, directory) = (object_of(assignment)?, assignment.directory.as_path());
    let top = assignment.path.rsplit('/').next().unwrap_or_default();
    let new = directory.join(RESTORING);
    files::remove(&new).map_err(at("remove", &new))?;
    std::fs::create_dir(&new).map_err(at("create", &new))?;
    let mut sum = None;
    store.read(&object.name, &mut |content| {
        let mut content = Summed::new(content);
        let unpacked = unpack(&mut content, top, &new);
        // An archive has zeros at its end that no entry needs; a damaged one is read to its end, too.
        let rest = io::copy(&mut content, &mut io::sink());
        unpacked?;
        rest.map_err(|error| Failure::new(format!("failed to read the archive: {error}")))?;
        sum = Some(content.sum());
        Ok(())
    })?;
    if sum.is_none_or(|sum| (sum.size, &sum.sha256) != (object.size, &object.sha256)) {
        let (store, name) = (&object.store, &object.name);
        return Err(Failure::differs(format!(
            "the copy '{name}' in store '{store}' is damaged: its SHA-256 is not {}",
            object.sha256
        )));
    }
    // One call for all files; each on its own would take as long as reading them.
    let opened = std::fs::File::open(&new).map_err(at("read", &new))?;
    nix::unistd::syncfs(&opened).map_err(at("write", &new))?;
    move_entries(&new, directory)?;
    marker::remove(directory)?;
    std::fs::remove_dir(&new).map_err(at("remove", &new))
}

/// Moves the restored files into the directory; the marker is removed after the last.
fn move_entries(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).map_err(at("read", from))? {
        let entry = entry.map_err(at("read", from))?;
        let path = to.join(entry.file_name());
        // What an interrupted removal or restoration left.
        files::remove(&path).map_err(at("remove", &path))?;
        std::fs::rename(entry.path(), &path).map_err(at("create", &path))?;
    }
    files::sync(to).map_err(at("write", to))
}
