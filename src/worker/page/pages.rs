//! The last act of a snapshot's worker: the page about it, and its place in the lists.

use crate::WorkerError;
use crate::files::write::{replace, settle};
use crate::page::index::{Index, Known};
use crate::page::shelf;
use crate::page::shelf::Shelf;
use crate::page::{Entry, Kind, Snapshot};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId, Time, without_userinfo};
use archivist_plugin::Directory;
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::Assignment;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// How long the lists may be held by others. The page about the snapshot itself waits for nobody.
const LISTS_MAX: Duration = Duration::from_secs(20);

/// Writes the pages and brings them to the disk. What goes wrong with them is told, and fails
/// nothing: everything that they show is elsewhere as well.
pub async fn publish(assignment: &Assignment, own: &Arc<Directory>, index: &Index) {
    match assignment.owner {
        Owner::Snapshot(id) => write_pages(assignment, id, own, index).await,
        Owner::Crawl(id) => restore_lists(assignment, id).await,
    }
    let own = own.clone();
    let settling = spawn_blocking(move || settle(&own)).await;
    if let Err(error) = settling.map_err(Into::into).flatten() {
        tracing::warn!("the pages may not be on the disk: {error}, ignoring");
    }
}

async fn write_pages(assignment: &Assignment, id: SnapshotId, own: &Directory, index: &Index) {
    let now = jiff::Timestamp::now().into();
    let page = page(assignment, id, own, &index.known(), now);
    if let Err(error) = replace(own, "index.html", &page.render()) {
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
    let Some(lists) = while_held(move || list(&archive, &page, listed)).await else {
        return;
    };
    if index.known().listed != lists
        && let Err(error) = index.listed(&lists)
    {
        tracing::warn!("{error}, ignoring");
    }
}

/// The pages of a crawl's list lie in its directory, where its hooks had the last word.
async fn restore_lists(assignment: &Assignment, id: CrawlId) {
    let archive = assignment.about.archive.clone();
    let Some(directory) = below(&archive, &assignment.crawl_directory) else {
        return;
    };
    let same_user = assignment.user_scope;
    while_held(move || {
        let name = id.to_string();
        Shelf::open(&archive)?.restore(&name, Kind::Crawl(name.clone()), &directory, same_user)
    })
    .await;
}

/// Runs what needs the lists of the archive; `None` when it failed or others held them for too long.
async fn while_held<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkerError> + Send + 'static,
) -> Option<T> {
    match tokio::time::timeout(LISTS_MAX, spawn_blocking(work)).await {
        Ok(Ok(Ok(done))) => return Some(done),
        Ok(Ok(Err(error))) => tracing::warn!("{error}, ignoring"),
        Ok(Err(error)) => tracing::warn!("the lists of the archive: {error}, ignoring"),
        Err(_) => {
            tracing::warn!("the lists of the archive are held by another worker, ignoring");
        }
    }
    None
}

/// `path` below the archive; `None` for what is elsewhere.
fn below(archive: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(archive).ok()?.to_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

fn page(
    assignment: &Assignment,
    id: SnapshotId,
    own: &Directory,
    known: &Known,
    now: Time,
) -> Snapshot {
    let about = &assignment.about;
    Snapshot {
        id,
        url: without_userinfo(&assignment.url),
        title: known.title.clone(),
        crawl: about.crawl,
        depth: assignment.depth,
        tags: known.tags.clone(),
        added_at: about.added_at,
        archived_at: now,
        results: still_there(own, known),
        directory: below(&about.archive, &assignment.directory),
        crawl_directory: below(&about.archive, &assignment.crawl_directory),
    }
}

/// The results with those of their files that are left. Hooks of a plugin take away what the ones
/// before them left for others to meet at.
fn still_there(own: &Directory, known: &Known) -> Vec<HookResult> {
    let mut results = known.results.clone();
    for result in &mut results {
        // The record may be of another worker, or of a hook: neither plugin nor path need be names of anything in here.
        match own.enter(&result.plugin) {
            Ok(plugin) => result.files.retain(|file| plugin.has_file(&file.path)),
            Err(_) => result.files.clear(),
        }
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
