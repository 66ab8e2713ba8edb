//! Writes the HTML page about a snapshot, and adds the snapshot to the lists of the archive.

use crate::WorkerError;
use crate::files::write::{replace, sync_filesystem};
use crate::page::archive_index;
use crate::page::archive_index::ArchiveIndex;
use crate::page::snapshot_index::{IndexContent, SnapshotIndex};
use crate::page::versions::{ListedVersion, list_of, text_of};
use crate::page::{ListEntry, ListKind, SnapshotPage};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId, Time, without_userinfo};
use archivist_plugin::Directory;
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::{Assignment, OtherVersion};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Longest wait for the lock of the lists. The page about the snapshot needs no lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Writes the pages and syncs them to disk. Errors are only logged, because all information on the
/// pages is also in other files.
pub async fn publish(assignment: &Assignment, own: &Arc<Directory>, index: &SnapshotIndex) {
    match assignment.owner {
        Owner::Snapshot(id) => write_pages(assignment, id, own, index).await,
        Owner::Crawl(id) => restore_lists(assignment, id).await,
    }
    let own = own.clone();
    let settling = spawn_blocking(move || sync_filesystem(&own)).await;
    if let Err(error) = settling.map_err(Into::into).flatten() {
        tracing::warn!("failed to sync the pages to disk: {error}, ignoring");
    }
}

async fn write_pages(
    assignment: &Assignment,
    id: SnapshotId,
    own: &Directory,
    index: &SnapshotIndex,
) {
    let now = jiff::Timestamp::now().into();
    let page = page(assignment, id, own, &index.known(), now);
    if let Err(error) = replace(own, "index.html", &page.render()) {
        tracing::warn!("{error}, ignoring");
        return;
    }
    // Without the archive's directory there are no lists.
    if !assignment.about.archive.is_absolute() {
        return;
    }
    let (archive, listed) = (
        assignment.about.archive.clone(),
        index.known().listed.clone(),
    );
    let others = assignment.about.versions.clone();
    let Some(lists) = with_lists(move || list(&archive, &page, listed, &others)).await else {
        return;
    };
    if index.known().listed != lists
        && let Err(error) = index.listed(&lists)
    {
        tracing::warn!("{error}, ignoring");
    }
}

/// Restores the list pages of a crawl, which its hooks could change.
async fn restore_lists(assignment: &Assignment, id: CrawlId) {
    let archive = assignment.about.archive.clone();
    let Some(directory) = below(&archive, &assignment.crawl_directory) else {
        return;
    };
    let same_user = assignment.user_scope;
    with_lists(move || {
        let name = id.to_string();
        ArchiveIndex::open(&archive)?.restore(
            &name,
            ListKind::Crawl(name.clone()),
            &directory,
            same_user,
        )
    })
    .await;
}

/// Runs work that needs the lists of the archive. `None` if the work failed or the lock was not
/// released in time.
async fn with_lists<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkerError> + Send + 'static,
) -> Option<T> {
    match tokio::time::timeout(LOCK_TIMEOUT, spawn_blocking(work)).await {
        Ok(Ok(Ok(done))) => return Some(done),
        Ok(Ok(Err(error))) => tracing::warn!("{error}, ignoring"),
        Ok(Err(error)) => {
            tracing::warn!("failed to update the lists of the archive: {error}, ignoring")
        }
        Err(_) => {
            tracing::warn!(
                "failed to lock the lists of the archive: another worker holds the lock, ignoring"
            );
        }
    }
    None
}

/// `path` relative to the archive's directory. `None` if it is not below it.
pub fn below(archive: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(archive).ok()?.to_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

fn page(
    assignment: &Assignment,
    id: SnapshotId,
    own: &Directory,
    known: &IndexContent,
    now: Time,
) -> SnapshotPage {
    let about = &assignment.about;
    SnapshotPage {
        id,
        url: without_userinfo(&assignment.url),
        title: known.title.clone(),
        crawl: about.crawl,
        depth: assignment.depth,
        tags: known.tags.clone(),
        added_at: about.added_at,
        archived_at: now,
        version_at: about.version_at.unwrap_or(now),
        http_status: known.answer.as_ref().map(|answer| answer.status),
        results: existing_files(own, &known.results),
        directory: below(&about.archive, &assignment.directory),
        crawl_directory: below(&about.archive, &assignment.crawl_directory),
    }
}

/// The results with those of their files that still exist: hooks remove marker files of earlier
/// hooks of their plugin.
pub fn existing_files(own: &Directory, known: &[HookResult]) -> Vec<HookResult> {
    let mut results = known.to_vec();
    for result in &mut results {
        // The record may come from a hook: plugin and path may be anything.
        match own.enter(&result.plugin) {
            Ok(plugin) => result.files.retain(|file| plugin.has_file(&file.path)),
            Err(_) => result.files.clear(),
        }
    }
    results
}

/// The entry of a snapshot in lists. `None` if it is not in the archive.
pub fn entry_of(page: &SnapshotPage) -> Option<ListEntry> {
    let entry = ListEntry {
        id: page.id,
        url: page.url.clone(),
        title: page.title.clone(),
        archived_at: page.archived_at,
        directory: page.directory.clone()?,
        screenshot: page.thumbnail(),
        succeeded: page.count(ResultState::Succeeded),
        failed: page.count(ResultState::Failed),
        version: None,
    };
    Some(entry.cut())
}

/// The entry of a snapshot in the list of its URL.
pub fn version_of(page: &SnapshotPage, entry: &ListEntry, own: &Path) -> ListEntry {
    ListEntry {
        version: Some(ListedVersion {
            at: page.version_at,
            http_status: page.http_status,
            text: text_of(own),
        }),
        ..entry.clone()
    }
}

/// The day of an entry, which is the first part of its path.
pub fn day_of(entry: &ListEntry) -> String {
    let day = entry.directory.split('/').next();
    day.unwrap_or_default().to_owned()
}

/// Adds the snapshot to the lists of its crawl, its day, the archive and its URL, of which there are
/// `others`. Returns its page in each list; 0 in that of its URL.
fn list(
    archive: &Path,
    page: &SnapshotPage,
    known: BTreeMap<String, usize>,
    others: &[OtherVersion],
) -> Result<BTreeMap<String, usize>, WorkerError> {
    let Some(entry) = entry_of(page) else {
        return Ok(known);
    };
    let day = day_of(&entry);
    let lists_index = ArchiveIndex::open(archive)?;
    let mut lists = BTreeMap::new();
    let mut add =
        |name: String, kind, directory: &str| -> Result<archive_index::ListPosition, WorkerError> {
            let position =
                lists_index.add(&name, kind, directory, &entry, known.get(&name).copied())?;
            lists.insert(name, position.page);
            Ok(position)
        };
    if let (Some(crawl), Some(directory)) = (page.crawl, &page.crawl_directory) {
        let name = crawl.to_string();
        add(name.clone(), ListKind::Crawl(name), directory)?;
    }
    let total = add(day.clone(), ListKind::Day(day.clone()), &day)?.total;
    lists_index.add_newest(&entry, &day, total)?;
    let own = archive.join(&entry.directory);
    let (version, of_url) = (version_of(page, &entry, &own), list_of(&page.url));
    let is_listed = known.contains_key(&of_url);
    if lists_index.add_version(&of_url, &version, is_listed, others)? {
        lists.insert(of_url, 0);
    }
    Ok(lists)
}

#[cfg(test)]
mod tests;
