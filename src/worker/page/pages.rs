//! Writes the HTML page about a snapshot, and adds the snapshot to the lists of the archive.

use crate::WorkerError;
use crate::files::write::{replace, sync_filesystem};
use crate::page::archive_index::ArchiveIndex;
use crate::page::groups::lists_of;
use crate::page::snapshot_index::{IndexContent, SnapshotIndex};
use crate::page::versions::{ListedVersion, list_of, text_of};
use crate::page::{ListEntry, ListKind, SnapshotPage};
use archivist_core::model::{
    CrawlId, Owner, ResultState, SnapshotId, Time, Unsaved, without_userinfo,
};
use archivist_core::plan::judge;
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
    let page = match write_page_of(assignment, id, own, index) {
        Ok(page) => page,
        Err(error) => {
            tracing::warn!("{error}, ignoring");
            return;
        }
    };
    // Without the archive's directory there are no lists.
    if !assignment.about.archive.is_absolute() {
        return;
    }
    let archive = assignment.about.archive.clone();
    let listed = with_lists(move || list_all(&archive, &[page], false)).await;
    let Some(lists) = listed.and_then(|mut lists| lists.pop()) else {
        return;
    };
    if index.known().listed != lists
        && let Err(error) = index.listed(&lists)
    {
        tracing::warn!("{error}, ignoring");
    }
}

pub struct ToList {
    page: SnapshotPage,
    /// For each list, the list page that has it, as far as this is known.
    known: BTreeMap<String, usize>,
    /// Other snapshots of its URL.
    others: Vec<OtherVersion>,
}

/// Writes the page about a snapshot. `None` for an assignment of a crawl.
pub fn write_page(
    assignment: &Assignment,
    own: &Directory,
    index: &SnapshotIndex,
) -> Result<Option<ToList>, WorkerError> {
    match assignment.owner {
        Owner::Crawl(_) => Ok(None),
        Owner::Snapshot(id) => write_page_of(assignment, id, own, index).map(Some),
    }
}

fn write_page_of(
    assignment: &Assignment,
    id: SnapshotId,
    own: &Directory,
    index: &SnapshotIndex,
) -> Result<ToList, WorkerError> {
    let now = jiff::Timestamp::now().into();
    let page = page(assignment, id, own, &index.known(), now);
    replace(own, "index.html", &page.render())?;
    let known = index.known().listed.clone();
    let others = assignment.about.versions.clone();
    Ok(ToList { page, known, others })
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
    let results = existing_files(own, &known.results);
    let http_status = known.answer.as_ref().map(|answer| answer.status);
    SnapshotPage {
        id,
        url: without_userinfo(&assignment.url),
        title: known.title.clone(),
        crawl: about.crawl,
        depth: assignment.depth,
        tags: known.tags.clone(),
        added_at: about.added_at,
        archived_at: now,
        visited_at: about.visited_at.unwrap_or(now),
        http_status,
        unsaved: match assignment.hooks.as_slice() {
            [] => Some(Unsaved::Visit),
            _ => {
                let results: Vec<_> = results.iter().map(HookResult::of_page).collect();
                judge(http_status, None, &results, &about.roles).unsaved
            }
        },
        results,
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
        visited_at: Some(page.visited_at),
        directory: page.directory.clone()?,
        screenshot: page.thumbnail(),
        succeeded: page.count(ResultState::Succeeded),
        failed: page.count(ResultState::Failed),
        unsaved: page.unsaved,
        tags: page.tags.clone(),
        partial: page.unsaved.is_none() && page.lacking().next().is_some(),
        version: None,
    };
    Some(entry.cut())
}

pub fn version_of(page: &SnapshotPage, entry: &ListEntry, own: &Path) -> ListEntry {
    ListEntry {
        version: Some(ListedVersion {
            at: page.visited_at,
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

/// The list of a crawl, day, site or tag, and which of the pages belong to it.
struct OfList {
    kind: ListKind,
    directory: String,
    places: Vec<usize>,
}

/// Adds snapshots to the lists of their crawls, days, sites, tags, the archive and their URLs. Returns for each its
/// page in each list; 0 in that of its URL. With `again`, an earlier process may have added some of them
/// without noting where.
pub fn list_all(
    archive: &Path,
    pages: &[ToList],
    again: bool,
) -> Result<Vec<BTreeMap<String, usize>>, WorkerError> {
    let entries: Vec<Option<ListEntry>> = pages.iter().map(|it| entry_of(&it.page)).collect();
    let mut lists: Vec<BTreeMap<String, usize>> = Vec::with_capacity(pages.len());
    let mut of_lists: BTreeMap<String, OfList> = BTreeMap::new();
    for (place, (it, entry)) in pages.iter().zip(&entries).enumerate() {
        let Some(entry) = entry else {
            lists.push(it.known.clone());
            continue;
        };
        lists.push(BTreeMap::new());
        let day = day_of(entry);
        let mut names = vec![(day.clone(), ListKind::Day(day.clone()), day)];
        if let (Some(crawl), Some(directory)) = (it.page.crawl, &it.page.crawl_directory) {
            let name = crawl.to_string();
            names.push((name.clone(), ListKind::Crawl(name), directory.clone()));
        }
        names.extend(lists_of(entry));
        for (name, kind, directory) in names {
            let of_list =
                of_lists.entry(name).or_insert(OfList { kind, directory, places: Vec::new() });
            of_list.places.push(place);
        }
    }
    let index = ArchiveIndex::open(archive)?;
    let anywhere = again.then_some(0);
    let mut has_new_group = false;
    for (name, of_list) in &of_lists {
        let (kind, directory) = (of_list.kind.clone(), &of_list.directory);
        let mut added = Vec::with_capacity(of_list.places.len());
        for place in &of_list.places {
            let known = pages[*place].known.get(name).copied().or(anywhere);
            added.extend(entries[*place].as_ref().map(|entry| (entry, known)));
        }
        let positions = index.add_all(name, kind, directory, &added)?;
        has_new_group |= positions.is_new && matches!(of_list.kind, ListKind::Of(..));
        for (place, page) in of_list.places.iter().zip(positions.pages) {
            lists[*place].insert(name.clone(), page);
        }
        if let ListKind::Day(day) = &of_list.kind {
            let added: Vec<_> = added.into_iter().map(|(entry, _)| entry).collect();
            index.add_newest(&added, day, positions.total)?;
        }
    }
    if has_new_group {
        index.write_groups()?;
    }
    list_versions(archive, &index, pages, &entries, again, &mut lists)?;
    Ok(lists)
}

/// Adds snapshots, which are on the lists of their days, to the lists of their URLs, as far as there are
/// other snapshots of these: known ones, or earlier ones of `pages`.
fn list_versions(
    archive: &Path,
    index: &ArchiveIndex,
    pages: &[ToList],
    entries: &[Option<ListEntry>],
    again: bool,
    lists: &mut [BTreeMap<String, usize>],
) -> Result<(), WorkerError> {
    let mut earlier: BTreeMap<String, Vec<OtherVersion>> = BTreeMap::new();
    for ((it, entry), lists) in pages.iter().zip(entries).zip(lists) {
        let Some(entry) = entry else {
            continue;
        };
        let own = archive.join(&entry.directory);
        let version = version_of(&it.page, entry, &own);
        let of_url = list_of(&it.page.url);
        let same = earlier.entry(of_url.clone()).or_default();
        let others = [it.others.as_slice(), same].concat();
        let is_listed = again || it.known.contains_key(&of_url);
        if index.add_version(&of_url, &version, is_listed, &others)? {
            lists.insert(of_url, 0);
        }
        same.push(OtherVersion {
            id: it.page.id,
            directory: own,
            at: it.page.visited_at,
            http_status: it.page.http_status,
            ended_at: None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
