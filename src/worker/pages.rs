//! The last act of a snapshot's worker: the page about it, and its place in the lists.

use super::index::{Index, Known};
use super::shelf::Shelf;
use super::write::{replace, settle};
use super::{WorkerError, shelf};
use crate::bus::report::HookResult;
use crate::bus::work::Assignment;
use crate::model::{Owner, ResultState, SnapshotId, Time};
use crate::page::{Entry, Kind, Snapshot};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long the lists may be held by others. The page about the snapshot itself waits for nobody.
const LISTS_MAX: Duration = Duration::from_secs(20);

/// Writes the pages and brings them to the disk. What goes wrong with them is told, and fails
/// nothing: everything that they show is elsewhere as well.
pub async fn publish(assignment: &Assignment, index: &Index) {
    write_pages(assignment, index).await;
    let directory = assignment.directory.clone();
    let settling = tokio::task::spawn_blocking(move || settle(&directory)).await;
    if let Err(error) = settling.map_err(Into::into).flatten() {
        tracing::warn!("the pages may not be on the disk: {error}, ignoring");
    }
}

async fn write_pages(assignment: &Assignment, index: &Index) {
    let Owner::Snapshot(id) = assignment.owner else {
        return;
    };
    let page = page(
        assignment,
        id,
        &index.known(),
        jiff::Timestamp::now().into(),
    );
    if let Err(error) = replace(&assignment.directory, "index.html", &page.render()) {
        tracing::warn!("{error}, ignoring");
        return;
    }
    // An assignment of before there were lists says of no archive.
    if !assignment.about.archive.is_absolute() {
        return;
    }
    let (archive, listed) = (
        assignment.about.archive.clone(),
        index.known().listed.clone(),
    );
    let listing = tokio::task::spawn_blocking(move || list(&archive, &page, listed));
    let lists = match tokio::time::timeout(LISTS_MAX, listing).await {
        Ok(Ok(Ok(lists))) => lists,
        Ok(Ok(Err(error))) => return tracing::warn!("{error}, ignoring"),
        Ok(Err(error)) => return tracing::warn!("the lists of the archive: {error}, ignoring"),
        Err(_) => {
            return tracing::warn!("the lists of the archive are held by another worker, ignoring");
        }
    };
    if index.known().listed != lists
        && let Err(error) = index.listed(&lists)
    {
        tracing::warn!("{error}, ignoring");
    }
}

/// `path` below the archive; `None` for what is elsewhere.
fn below(archive: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(archive).ok()?.to_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

fn page(assignment: &Assignment, id: SnapshotId, known: &Known, now: Time) -> Snapshot {
    let about = &assignment.about;
    Snapshot {
        id,
        url: assignment.url.clone(),
        title: known.title.clone(),
        crawl: about.crawl,
        depth: assignment.depth,
        tags: known.tags.clone(),
        added_at: about.added_at,
        archived_at: now,
        results: still_there(&assignment.directory, known),
        directory: below(&about.archive, &assignment.directory),
        crawl_directory: below(&about.archive, &assignment.crawl_directory),
    }
}

/// The results with those of their files that are left. Hooks of a plugin take away what the ones
/// before them left for others to meet at.
fn still_there(directory: &Path, known: &Known) -> Vec<HookResult> {
    let mut results = known.results.clone();
    for result in &mut results {
        let own = directory.join(&result.plugin);
        let is_file = |path: &str| own.join(path).symlink_metadata().is_ok_and(|m| m.is_file());
        result.files.retain(|file| is_file(&file.path));
    }
    results
}

/// Puts the snapshot on the lists of its crawl, of its day and of the archive.
fn list(
    archive: &Path,
    page: &Snapshot,
    known: BTreeMap<String, usize>,
) -> Result<BTreeMap<String, usize>, WorkerError> {
    let Some(directory) = page.directory.clone() else {
        return Ok(known);
    };
    let entry = Entry {
        id: page.id,
        url: page.url.clone(),
        title: page.title.clone(),
        archived_at: page.archived_at,
        directory,
        screenshot: page.screenshot(),
        succeeded: page.count(ResultState::Succeeded),
        failed: page.count(ResultState::Failed),
    }
    .cut();
    let day = entry
        .directory
        .split('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let shelf = Shelf::open(archive)?;
    let mut lists = BTreeMap::new();
    let mut put = |name: String, kind, directory: &str| -> Result<shelf::Place, WorkerError> {
        let place = shelf.put(&name, kind, directory, &entry, known.get(&name).copied())?;
        lists.insert(name, place.page);
        Ok(place)
    };
    if let (Some(crawl), Some(directory)) = (page.crawl, &page.crawl_directory) {
        let name = crawl.to_string();
        put(name.clone(), Kind::Crawl(name), directory)?;
    }
    let total = put(day.clone(), Kind::Day(day.clone()), &day)?.total;
    shelf.put_first(&entry, &day, total)?;
    Ok(lists)
}

#[cfg(test)]
mod tests;
