//! Copies the files of a snapshot to the store. The object is written under another name, read back,
//! and renamed if it is intact, so that a killed transfer leaves no half object. A directory as a store
//! continues what a killed transfer has written; the whole object is read back in any case.

use super::read_back;
use crate::backend::{Store, StoredEntry, split};
use crate::digest::{Sum, Summed};
use crate::failure::{Result, TransferFailure, at};
use crate::marker;
use crate::marks;
use crate::pack::pack;
use archivist_core::store::{
    Assignment, StoredObject, final_name, is_leftover, is_part_of, partial_name,
};
use archivist_plugin::Directory;
use std::path::Path;

/// Copies the files, unless the store has an intact copy, and returns the verified object.
pub fn put(store: &dyn Store, assignment: &Assignment) -> Result<StoredObject> {
    let (path, directory) = (assignment.path.as_str(), assignment.directory.as_path());
    let page = Directory::open(directory).map_err(at("read", directory))?;
    if marker::read(&page)?.is_some() {
        return Err(TransferFailure::new(format!(
            "failed to copy '{}': its files are in the store alone",
            directory.display()
        )));
    }
    let parent = split(path).0;
    // First, so that a store that cannot be reached costs no reading of the page.
    let entries = store.list(parent)?;
    let sum = sum_of_archive(directory)?;
    let name = final_name(path, &sum.sha256);
    let object = StoredObject {
        store: assignment.store.clone(),
        name: name.clone(),
        sha256: sum.sha256.clone(),
        size: sum.size,
    };
    let file = split(&name).1;
    let found = entries.iter().find(|entry| entry.name == file);
    let is_done = found.is_some_and(|entry| entry.size == sum.size)
        && read_back(store, &name, sum.size)? == sum;
    let continued = (!is_done && store.resumes()).then_some(file);
    let (begun, removed) = leftovers(path, &entries, continued);
    for entry in removed {
        store.remove(&format!("{parent}/{}", entry.name))?;
    }
    if is_done {
        return Ok(object);
    }
    let part = partial_name(&name, &writer());
    if let Some(begun) = begun {
        store.rename(&format!("{parent}/{}", begun.name), &part)?;
    }
    // Before the object has its name, so that no object has a higher id.
    marks::raise(store, path)?;
    let written = write(store, &part, directory, &sum).and_then(|()| verify(store, &part, &sum));
    if let Err(failure) = written {
        // A full store gets its space back. The next transfer continues or removes what stays.
        let _ = store.remove(&part);
        return Err(failure);
    }
    store.rename(&part, &name)?;
    Ok(object)
}

/// Of the files in the directory of the objects of `path`, returns the one that this transfer
/// continues, which is the longest part of the object `continued`, and the other ones that killed
/// transfers of the snapshot left.
fn leftovers<'e>(
    path: &str,
    entries: &'e [StoredEntry],
    continued: Option<&str>,
) -> (Option<&'e StoredEntry>, Vec<&'e StoredEntry>) {
    let all = entries.iter().filter(|entry| is_leftover(path, &entry.name));
    let (mut parts, mut others): (Vec<&StoredEntry>, Vec<&StoredEntry>) =
        all.partition(|entry| continued.is_some_and(|object| is_part_of(object, &entry.name)));
    parts.sort_by_key(|entry| entry.size);
    let longest = parts.pop();
    others.extend(parts);
    (longest, others)
}

/// Returns a name for this transfer that no other one has, on any machine: that of the invocation of
/// its unit (systemd.exec(5)).
fn writer() -> String {
    let unit = std::env::var("INVOCATION_ID");
    unit.unwrap_or_else(|_| std::process::id().to_string())
}

/// The sum of the archive that the files of a directory give now.
pub(super) fn sum_of_archive(directory: &Path) -> Result<Sum> {
    let mut to = Summed::new(std::io::sink());
    if let Some(remark) = pack(directory, &mut to)?.remark() {
        eprintln!("'{}': {remark}", directory.display());
    }
    Ok(to.sum())
}

fn write(store: &dyn Store, part: &str, directory: &Path, sum: &Sum) -> Result<()> {
    store.write(part, sum.size, &mut |to| {
        let mut to = Summed::new(to);
        pack(directory, &mut to)?;
        if to.sum() == *sum {
            Ok(())
        } else {
            Err(TransferFailure::new(format!(
                "failed to copy '{}': its files changed meanwhile",
                directory.display()
            )))
        }
    })
}

fn verify(store: &dyn Store, part: &str, sum: &Sum) -> Result<()> {
    let read = read_back(store, part, sum.size)?;
    if read == *sum {
        return Ok(());
    }
    Err(TransferFailure::new(format!(
        "failed to verify '{part}' in the store: it has {} bytes with SHA-256 {}, {} bytes with {} were written",
        read.size, read.sha256, sum.size, sum.sha256
    )))
}
