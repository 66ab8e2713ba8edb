//! The lists of the snapshots of a URL. A URL with one snapshot has none, or one without a page.
//!
//! Snapshots can be imported, so one that is added may be older than those on the list. Adding the newest
//! one costs the same for a list of any length; any other change reads the whole list, and writes the files
//! that differ.

use super::check::{Compared, Flaw, ListOfPages, count_of_chunks, flaw_of_page, flaws_of_chunks};
use super::{ArchiveIndex, FIRST, Pages, failed, last_chunk, make, order, read_chunk, write_json};
use crate::WorkerError;
use crate::files::write::replace;
use crate::page::groups::{Group, name_in};
use crate::page::pages::below;
use crate::page::versions::{
    ListedVersion, URLS, directory_of, is_list_of_url, links, links_of, text_of,
};
use crate::page::{ListEntry, ListKind, PER_PAGE};
use archivist_core::model::Time;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::work::OtherVersion;
use archivist_shared::id_marks::is_day;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Mode of the directories of pages, which hooks may only read.
pub(super) const SHOWN_MODE: u32 = 0o750;

/// Begin of the names of older pages.
const OLDER: &str = "page-";

impl ArchiveIndex {
    /// Adds or updates a snapshot in the list `name` of its URL. `is_listed` says whether it was added
    /// before. If there is no list yet, it begins with `others`, as far as they are on the lists of their
    /// days; without any, no list is made, and `false` is returned.
    pub fn add_version(
        &self,
        name: &str,
        entry: &ListEntry,
        is_listed: bool,
        others: &[OtherVersion],
    ) -> Result<bool, WorkerError> {
        let chunks = self.chunks(name);
        let last = count_of_chunks(&chunks)?;
        if last == 0 {
            if others.is_empty() {
                return Ok(false);
            }
            let mut entries = self.entries_of(others)?;
            entries.push(entry.clone());
            self.write_versions(name, entries)?;
            return Ok(true);
        }
        let newest = read_chunk(&chunks, last);
        let is_newest = newest.last().is_some_and(|known| order(known) < order(entry));
        let is_known = is_listed || newest.iter().any(|known| known.id == entry.id);
        if is_newest && !is_known && self.archive.join(directory_of(name)).is_dir() {
            self.append_version(name, entry, newest, last)?;
            return Ok(true);
        }
        let mut entries = read_all(&chunks, last);
        entries.retain(|known| known.id != entry.id);
        entries.push(entry.clone());
        self.write_versions(name, entries)?;
        Ok(true)
    }

    /// Adds a snapshot behind the `newest` entries of a list, which are those of its `last` chunk.
    fn append_version(
        &self,
        name: &str,
        entry: &ListEntry,
        mut newest: Vec<ListEntry>,
        last: usize,
    ) -> Result<(), WorkerError> {
        let (directory, chunks) = (directory_of(name), self.chunks(name));
        let mut page = last;
        if newest.len() >= PER_PAGE {
            page += 1;
            newest.clear();
        }
        newest.push(entry.clone());
        write_json(&chunks, &format!("{page}.json"), &newest)?;
        let list = self.pages_of_url(name, &directory, page);
        list.update(BTreeSet::from([page]), last)?;
        let mut tail = match page {
            1 => Vec::new(),
            page => read_chunk(&chunks, page - 1),
        };
        tail.extend(newest);
        tail.retain(|entry| self.has(entry));
        let shown = super::open(&self.archive.join(&directory))?;
        for at in tail.len().saturating_sub(2)..tail.len() {
            let (file, text) = links_at(&tail, at);
            replace(&shown, &file, &text)?;
        }
        Ok(())
    }

    /// Makes the list consist of these snapshots, apart from those that were removed. Writes what differs,
    /// and removes what is left over: a list of fewer than two snapshots has no page.
    pub(super) fn write_versions(
        &self,
        name: &str,
        mut entries: Vec<ListEntry>,
    ) -> Result<(), WorkerError> {
        let (directory, chunks) = (directory_of(name), self.chunks(name));
        let shown = self.archive.join(&directory);
        entries.retain(|entry| self.has(entry));
        entries.sort_by_key(order);
        make_below(&self.state, &directory, 0o700)?;
        let before = last_chunk(&chunks)?;
        let mut last = 0;
        for entries in entries.chunks(PER_PAGE) {
            last += 1;
            if last > before || read_chunk(&chunks, last) != entries {
                write_json(&chunks, &format!("{last}.json"), &entries)?;
            }
        }
        for page in last + 1..=before {
            super::check::remove(&chunks.join(format!("{page}.json")))?;
        }
        if entries.is_empty() {
            remove_below(&self.state, &directory)?;
        }
        if entries.len() < 2 {
            return remove_below(&self.archive, &directory);
        }
        make_below(&self.archive, &directory, SHOWN_MODE)?;
        let own = super::open(&shown)?;
        let mut wanted = BTreeSet::new();
        for (file, text) in self.files_of_url(name, &entries, last) {
            if fs::read_to_string(shown.join(&file)).ok().as_ref() != Some(&text) {
                replace(&own, &file, &text)?;
            }
            wanted.insert(file);
        }
        for file in names(&shown)?.difference(&wanted) {
            own.clear(file.as_str()).map_err(failed("remove", &shown.join(file)))?;
        }
        Ok(())
    }

    /// Returns what is wrong with the list of a URL. Changes nothing.
    pub(super) fn flaws_of_url(&self, list: &ListOfPages) -> Result<Vec<Flaw>, WorkerError> {
        let chunks = self.chunks(&list.name);
        let last = count_of_chunks(&chunks)?;
        let shown = self.archive.join(&list.directory);
        let flaws = flaws_of_chunks(list, &chunks, last, &shown, |_| true);
        if !flaws.is_empty() {
            return Ok(flaws);
        }
        let mut entries = read_all(&chunks, last);
        entries.retain(|entry| self.has(entry));
        let flaw = |name: &str, what: &str| vec![(shown.join(name), what.to_owned())];
        if !entries.is_sorted_by_key(order) {
            return Ok(flaw(FIRST, "its snapshots are not in the order of time"));
        }
        let found = names(&shown)?;
        if entries.len() < 2 {
            let is_shown = shown.symlink_metadata().is_ok();
            let what = "the URL has fewer than two snapshots";
            return Ok(if is_shown { flaw(FIRST, what) } else { Vec::new() });
        }
        let mut flaws = Vec::new();
        let mut wanted = BTreeSet::new();
        for (file, text) in self.files_of_url(&list.name, &entries, last) {
            // Older pages keep the total of the time at which they became full.
            let compared = if file.starts_with(OLDER) { Compared::Entries } else { Compared::All };
            flaws.extend(flaw_of_page(&shown, &file, &text, compared));
            wanted.insert(file);
        }
        let strange = found.difference(&wanted);
        flaws.extend(strange.map(|file| (shown.join(file), "no snapshot has it".to_owned())));
        Ok(flaws)
    }

    /// Names of the lists of URLs that have chunks or pages.
    pub fn lists_of_urls(&self) -> Result<BTreeSet<String>, WorkerError> {
        let mut lists = BTreeSet::new();
        for top in [self.state.join(URLS), self.archive.join(URLS)] {
            for shelf in names(&top)? {
                let found = names(&top.join(shelf))?;
                lists.extend(found.into_iter().filter(|name| is_list_of_url(name)));
            }
        }
        Ok(lists)
    }

    /// Names of the lists of sites and tags that have chunks or pages.
    pub fn lists_of_groups(&self) -> Result<BTreeSet<String>, WorkerError> {
        let mut lists = BTreeSet::new();
        for group in Group::ALL {
            for top in [&self.state, &self.archive] {
                let found = names(&top.join(group.directory()))?;
                lists.extend(found.iter().map(|directory| name_in(group, directory)));
            }
        }
        Ok(lists)
    }

    fn pages_of_url<'a>(&'a self, name: &str, directory: &'a str, last: usize) -> Pages<'a> {
        Pages { index: self, chunks: self.chunks(name), kind: ListKind::Url, directory, last }
    }

    /// The files of a list, one after the other: its pages, and the links of each snapshot.
    fn files_of_url<'a>(
        &'a self,
        name: &'a str,
        entries: &'a [ListEntry],
        last: usize,
    ) -> impl Iterator<Item = (String, String)> + 'a {
        let pages = (1..=last).map(move |page| {
            let directory = directory_of(name);
            let list = self.pages_of_url(name, &directory, last);
            if page == last {
                (FIRST.to_owned(), list.first().render())
            } else {
                (format!("{OLDER}{page}.html"), list.full(page).render())
            }
        });
        pages.chain((0..entries.len()).map(|at| links_at(entries, at)))
    }

    /// The entries that snapshots have on the lists of their days, as those of the list of a URL. One that
    /// is still in progress has none yet.
    fn entries_of(&self, others: &[OtherVersion]) -> Result<Vec<ListEntry>, WorkerError> {
        let mut entries = Vec::new();
        for other in others {
            let Some(directory) = below(&self.archive, &other.directory) else {
                continue;
            };
            let day = directory.split('/').next().unwrap_or_default();
            if !is_day(day) {
                continue;
            }
            let found = self.find_on_day(day, other, &directory)?;
            entries.extend(found.map(|entry| ListEntry {
                version: Some(ListedVersion {
                    at: other.at,
                    http_status: other.http_status,
                    text: text_of(&other.directory),
                }),
                ..entry
            }));
        }
        Ok(entries)
    }

    /// Finds a snapshot on the list of its day. Its chunks are in the order in which snapshots ended, except
    /// those that were archived again.
    fn find_on_day(
        &self,
        day: &str,
        other: &OtherVersion,
        directory: &str,
    ) -> Result<Option<ListEntry>, WorkerError> {
        let chunks = self.chunks(day);
        let last = count_of_chunks(&chunks)?;
        let began_by = |page: usize, end: Time| {
            let first = read_chunk(&chunks, page).into_iter().next();
            first.is_some_and(|entry| entry.archived_at <= end)
        };
        let (mut low, mut high) = (1, last);
        while let Some(end) = other.ended_at.filter(|_| low < high) {
            let middle = (low + high).div_ceil(2);
            if began_by(middle, end) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let near = other.ended_at.map(|_| [low, low.saturating_sub(1), low + 1]);
        let near = near.into_iter().flatten();
        let pages = near.chain((1..=last).rev());
        let is_it = |entry: &ListEntry| entry.id == other.id && entry.directory == directory;
        let mut found = pages
            .filter(|page| (1..=last).contains(page))
            .flat_map(|page| read_chunk(&chunks, page));
        Ok(found.find(is_it))
    }
}

/// The file with the links of a snapshot of a list: its name and text.
fn links_at(entries: &[ListEntry], at: usize) -> (String, String) {
    let older = at.checked_sub(1).and_then(|at| entries.get(at));
    let id = entries[at].id;
    (links_of(id), links(id, older, entries.get(at + 1)))
}

pub(super) fn read_all(chunks: &Path, last: usize) -> Vec<ListEntry> {
    let pages = 1..=last;
    pages.flat_map(|page| read_chunk(chunks, page)).collect()
}

pub(super) fn make_below(top: &Path, path: &str, mode: u32) -> Result<(), WorkerError> {
    let mut made = top.to_owned();
    for name in path.split('/') {
        made.push(name);
        make(&made, mode)?;
    }
    Ok(())
}

/// Removes a directory with its files, and those above it that are empty then, below another one.
pub(super) fn remove_below(top: &Path, path: &str) -> Result<(), WorkerError> {
    let own = top.join(path);
    remove_tree(&own).map_err(failed("remove", &own))?;
    let parents = own.ancestors().skip(1).take_while(|parent| *parent != top);
    for parent in parents.map(Path::to_owned).collect::<Vec<PathBuf>>() {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
    Ok(())
}

/// The names in a directory; none if there is no such directory.
pub(super) fn names(directory: &Path) -> Result<BTreeSet<String>, WorkerError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(BTreeSet::new());
        }
        entries => entries.map_err(failed("read", directory))?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.collect())
}

#[cfg(test)]
mod tests;
