//! The unit that removes the files of deleted crawls and snapshots, and their entries in lists. It may
//! be killed at any time: the next one repeats the removal, and finds what is left.

use crate::WorkerError;
use crate::files::directory::failed;
use crate::files::identity::{self, Found};
use crate::page::archive_index::ArchiveIndex;
use crate::page::pages::below;
use archivist_core::model::Owner;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::archive::{BODIES, DELETED_PREFIX, IMPORTED};
use archivist_shared::bus::documents::work::{Removed, ToRemove};
use archivist_shared::id_marks::is_day;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Largest request in bytes: a thousand directories.
const REQUEST_MAX: u64 = 16 << 20;

/// Longest time in which a body is written.
const WRITING_MAX: Duration = Duration::from_secs(24 * 3600);

/// Runs `archivist-orchestrator delete`. The exit status is 0 when everything is removed.
pub fn main() -> ExitCode {
    archivist_shared::journal::init(None);
    match read_request().and_then(|request| remove_all(&request)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read_request() -> Result<ToRemove, WorkerError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(REQUEST_MAX).read_to_string(&mut text);
    read.map_err(|error| WorkerError::Assignment(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| WorkerError::Assignment(error.to_string()))
}

/// Removes what it can. Returns whether that is all.
fn remove_all(request: &ToRemove) -> Result<bool, WorkerError> {
    let archive = request.archive.as_path();
    mark_lists(request)?;
    let mut is_done = true;
    for removed in &request.directories {
        if let Err(error) = remove(archive, removed) {
            tracing::error!("{error}");
            is_done = false;
        }
    }
    let index = ArchiveIndex::open(archive)?;
    for removed in &request.directories {
        if let Owner::Crawl(id) = removed.owner {
            index.forget(&id.to_string())?;
        }
    }
    if request.is_last {
        index.rebuild_stale()?;
        remove_imported(&archive.join(IMPORTED), &request.imported)?;
        remove_bodies(&archive.join(BODIES))?;
    }
    for removed in &request.directories {
        remove_empty_parents(archive, &removed.directory);
    }
    Ok(is_done)
}

/// Notes which lists have to be written again, before they lead to files that are gone.
fn mark_lists(request: &ToRemove) -> Result<(), WorkerError> {
    let archive = request.archive.as_path();
    let index = ArchiveIndex::open(archive)?;
    let days = request.directories.iter().filter_map(|removed| {
        let path = below(archive, &removed.directory)?;
        let day = path.split('/').next()?.to_owned();
        is_day(&day).then_some(day)
    });
    let days: std::collections::BTreeSet<String> = days.collect();
    for day in days {
        index.mark_stale(&day, &day)?;
    }
    for key in request.directories.iter().filter_map(|removed| removed.url_key.as_deref()) {
        index.mark_url_stale(key)?;
    }
    for (id, directory) in &request.lists {
        if let Some(directory) = below(archive, directory) {
            index.mark_stale(&id.to_string(), &directory)?;
        }
    }
    Ok(())
}

/// Removes the directory of a crawl or snapshot, if it is still the one that was deleted. It first gets
/// another name, so that nothing of it is found under its own.
fn remove(archive: &Path, removed: &Removed) -> Result<(), WorkerError> {
    let path = removed.directory.as_path();
    let is_plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    let inside = path.strip_prefix(archive).ok();
    if !inside.is_some_and(|inside| inside.parent().is_some() && is_plain(inside)) {
        tracing::warn!("'{}' is not in the archive, ignoring", path.display());
        return Ok(());
    }
    let hidden = path.with_file_name(format!("{DELETED_PREFIX}{}", removed.owner));
    let remove_hidden = || remove_tree(&hidden).map_err(failed("remove", &hidden));
    match identity::look(path, removed.identity.as_deref()) {
        Ok(Found::Nothing) => {}
        Ok(Found::Own) => {
            remove_hidden()?;
            fs::rename(path, &hidden).map_err(failed("rename", path))?;
        }
        Ok(Found::Other) => {
            let owner = removed.owner;
            tracing::warn!("'{}' does not belong to {owner}, ignoring", path.display());
        }
        Err(error) => return Err(failed("read", path)(error)),
    }
    remove_hidden()
}

fn remove_imported(directory: &Path, unused: &[String]) -> Result<(), WorkerError> {
    if unused.is_empty() {
        return Ok(());
    }
    let names = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => names.map_err(failed("read", directory))?,
    };
    for entry in names.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if unused.iter().any(|digits| !digits.is_empty() && name.starts_with(digits)) {
            let path = entry.path();
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}

/// Removes bodies that no recording has any more: their only name is that in the archive. A recording that
/// takes such a body at the same time has a name of its own, and keeps it.
fn remove_bodies(directory: &Path) -> Result<(), WorkerError> {
    for of_users in entries(directory)? {
        for shelf in entries(&of_users)? {
            for body in entries(&shelf)? {
                match body.symlink_metadata() {
                    Ok(found) if found.nlink() == 1 && !is_being_written(&body, &found) => {
                        remove_if_there(&body, fs::remove_file(&body))?;
                    }
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(failed("read", &body)(error));
                    }
                    _ => {}
                }
            }
            // It fails while a body is left.
            let _ = fs::remove_dir(&shelf);
        }
        let _ = fs::remove_dir(&of_users);
    }
    Ok(())
}

/// A file of a process that was killed is older.
fn is_being_written(path: &Path, found: &fs::Metadata) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    is_hidden && age.is_none_or(|age| age < WRITING_MAX)
}

fn remove_if_there(path: &Path, removed: std::io::Result<()>) -> Result<(), WorkerError> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Paths of the entries of a directory; none if it does not exist or is a file.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, WorkerError> {
    let read = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match read {
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(Vec::new())
        }
        entries => entries.map_err(failed("read", directory)),
    }
}

/// Removes the directories of host and day, if they are empty now.
fn remove_empty_parents(archive: &Path, directory: &Path) {
    let parents = directory.ancestors().skip(1);
    let own = parents.take_while(|parent| *parent != archive && parent.starts_with(archive));
    let own: Vec<PathBuf> = own.map(Path::to_owned).collect();
    for parent in own {
        if fs::remove_dir(&parent).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests;
