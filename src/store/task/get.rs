//! Restores the local files of a snapshot from the store. They appear when the whole object was read
//! and is intact.

use super::object_of;
use crate::backend::Store;
use crate::digest::Summed;
use crate::failure::{Result, TransferFailure, at};
use crate::marker;
use crate::unpack::unpack;
use archivist_core::store::{Assignment, RESTORING, StoredObject};
use archivist_plugin::Directory;
use archivist_plugin::files::remove::remove_tree;
use std::io::{self, Read};

/// Permissions of the directory of unverified files: neither readers of the archive nor web servers
/// enter it.
const MODE_UNTIL_VERIFIED: u32 = 0o700;

/// Restores the local files.
///
/// # Errors
/// If the store cannot be read, or its object is not the one that was copied. Nothing of the object
/// stays.
pub fn get(store: &dyn Store, assignment: &Assignment) -> Result<()> {
    let (object, directory) = (object_of(assignment)?, assignment.directory.as_path());
    let top = assignment.path.rsplit('/').next().unwrap_or_default();
    let page = Directory::open(directory).map_err(at("read", directory))?;
    let path = directory.join(RESTORING);
    remove_tree(&path).map_err(at("remove", &path))?;
    let made = page.make(RESTORING, MODE_UNTIL_VERIFIED);
    made.map_err(at("create", &path))?;
    let restored = page.enter(RESTORING).map_err(at("read", &path)).and_then(|new| {
        receive(store, object, top, &new)?;
        show(&new, &page)
    });
    let removed = remove_tree(&path).map_err(at("remove", &path));
    restored?;
    removed?;
    marker::remove(directory)
}

/// Unpacks the object into `new`, and verifies it.
fn receive(store: &dyn Store, object: &StoredObject, top: &str, new: &Directory) -> Result<()> {
    let mut sum = None;
    store.read(&object.name, &mut |content| {
        let mut content = Summed::new(content.take(object.size.saturating_add(1)));
        let unpacked = unpack(&mut content, top, new);
        // An archive has zeros at its end that no entry needs; a damaged one is read to its end, too.
        let rest = io::copy(&mut content, &mut io::sink());
        unpacked?;
        rest.map_err(|error| TransferFailure::new(format!("failed to read the archive: {error}")))?;
        sum = Some(content.sum());
        Ok(())
    })?;
    if sum.is_none_or(|sum| (sum.size, &sum.sha256) != (object.size, &object.sha256)) {
        let (store, name) = (&object.store, &object.name);
        return Err(TransferFailure::differs(format!(
            "the copy '{name}' in store '{store}' is damaged: its SHA-256 is not {}",
            object.sha256
        )));
    }
    // One call for all files; each on its own would take as long as reading them.
    nix::unistd::syncfs(new).map_err(at("write", new.path()))
}

/// Moves the verified files into the directory of the page; the marker is removed after the last.
fn show(new: &Directory, page: &Directory) -> Result<()> {
    for name in new.names().map_err(at("read", new.path()))? {
        let path = page.path().join(&name);
        // What an interrupted removal or restoration left.
        remove_tree(&path).map_err(at("remove", &path))?;
        new.move_into(&name, page).map_err(at("create", &path))?;
    }
    page.sync().map_err(at("write", page.path()))
}
