//! Removes the copy of a snapshot that was deleted.

use super::object_of;
use crate::backend::{Store, split};
use crate::failure::Result;
use archivist_core::store::{Assignment, is_leftover};

/// Removes the object, and what killed transfers of the snapshot left.
///
/// # Errors
/// If the store cannot be reached or written. An object that is missing is removed already.
pub fn delete(store: &dyn Store, assignment: &Assignment) -> Result<()> {
    let (parent, file) = split(&object_of(assignment)?.name);
    let of_page = format!("{parent}/{}", own_name(file));
    for entry in store.list(parent)? {
        if entry.name == file || is_leftover(&of_page, &entry.name) {
            store.remove(&format!("{parent}/{}", entry.name))?;
        }
    }
    Ok(())
}

/// `s7` of `s7-SHA256.tar`.
fn own_name(file: &str) -> &str {
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}
