//! Removes the local files of a snapshot, after comparing them with the object in the store.

use super::put::sum_of_archive;
use super::{object_of, read_back};
use crate::backend::{Store, split};
use crate::digest::Sum;
use crate::failure::{Result, TransferFailure, at};
use crate::marker::{self, MARKER, PAGE};
use archivist_core::store::{Assignment, PICTURES, SMALL_PICTURE, StoredObject};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use archivist_plugin::files::remove::remove_tree;
use std::io;

/// Largest picture that stays, in bytes: hooks can make a file of any size and name.
const SMALL_PICTURE_BYTES_MAX: i64 = 1 << 20;

/// Removes the local files, and leaves a page that names the command to restore them, and the small
/// picture for the lists of the archive.
///
/// # Errors
/// If the local files are not those of the object, or the store has no intact object: nothing is
/// removed.
pub fn drop(store: &dyn Store, assignment: &Assignment) -> Result<()> {
    let (object, directory) = (object_of(assignment)?, assignment.directory.as_path());
    let sum = Sum { size: object.size, sha256: object.sha256.clone() };
    check(store, object, &sum, assignment.reread)?;
    let page = Directory::open(directory).map_err(at("read", directory))?;
    // With a marker, an earlier removal was killed after this comparison.
    if marker::read(&page)?.as_ref() != Some(object) {
        if sum_of_archive(directory)? != sum {
            return Err(TransferFailure::differs(format!(
                "'{}' has changed since it was copied",
                directory.display()
            )));
        }
        marker::write(&page, object)?;
    }
    for entry in std::fs::read_dir(directory).map_err(at("read", directory))? {
        let entry = entry.map_err(at("read", directory))?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_picture = name == PICTURES && keeps_picture(&page).map_err(at("remove", &path))?;
        if name != MARKER && name != PAGE && !is_picture {
            remove_tree(&path).map_err(at("remove", &path))?;
        }
    }
    page.sync().map_err(at("write", directory))
}

/// Removes all pictures but the small one. Returns false if there is none.
fn keeps_picture(page: &Directory) -> io::Result<bool> {
    let Ok(pictures) = page.enter(PICTURES) else { return Ok(false) };
    let names = pictures.names()?;
    let is_small = |name: &&std::ffi::OsString| {
        name.as_encoded_bytes().starts_with(SMALL_PICTURE.as_bytes())
            && pictures
                .stat(name)
                .is_ok_and(|found| is_file(&found) && found.st_size <= SMALL_PICTURE_BYTES_MAX)
    };
    let Some(small) = names.iter().find(is_small) else { return Ok(false) };
    for name in names.iter().filter(|name| *name != small) {
        pictures.remove(name)?;
    }
    Ok(true)
}

fn check(store: &dyn Store, object: &StoredObject, sum: &Sum, reread: bool) -> Result<()> {
    let (parent, file) = split(&object.name);
    let entries = store.list(parent)?;
    let found = entries.iter().find(|entry| entry.name == file);
    let damaged = match found {
        None => "is missing",
        Some(entry) if entry.size != sum.size => "has another size",
        Some(_) if reread && read_back(store, &object.name, sum.size)? != *sum => "is damaged",
        Some(_) => return Ok(()),
    };
    let (store, name) = (&object.store, &object.name);
    Err(TransferFailure::differs(format!(
        "the copy '{name}' in store '{store}' {damaged}; the local files stay"
    )))
}
