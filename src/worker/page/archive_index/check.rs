//! What is wrong with the lists of an archive, and rebuilt lists: `archivist fsck`.
//!
//! Chunks are compared with the snapshots that the orchestrator knows, and HTML pages with what the
//! chunks give. Only the newest page of a list is compared as a whole: older ones are written once and
//! keep the total of that time. Pages of an older version have another style sheet; of these, the links
//! are compared.

use super::{
    ArchiveIndex, DAYS, FIRST, NEWEST, Newest, Pages, last_chunk, versions::remove_below,
    write_json,
};
use crate::WorkerError;
use crate::page::groups::{Group, lists_of};
use crate::page::pages::LOCK_TIMEOUT;
use crate::page::{ListEntry, ListKind, PER_PAGE, days};
use archivist_core::model::SnapshotId;
use archivist_plugin::Directory;
use archivist_shared::id_marks::is_day;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest list page that is read, in bytes: it has 100 cards of a few kilobytes, or the days.
const PAGE_MAX_BYTES: u64 = 16 << 20;
/// Snapshots that end at the same time are added in the order in which their workers get the lock, for
/// which they wait at most this long.
const ORDER_TOLERANCE: Duration = LOCK_TIMEOUT;
/// End of every page.
const END: &str = "</html>";

pub struct ListOfPages {
    /// Name of the list, such as that of its day or crawl.
    pub name: String,
    pub kind: ListKind,
    /// Directory of its pages, relative to the archive's directory.
    pub directory: String,
    /// Its snapshots. It may have others, whose rows were lost.
    pub entries: Vec<Arc<ListEntry>>,
}

/// A file of a list, and what is wrong with it, as a sentence.
pub type Flaw = (PathBuf, String);

impl ArchiveIndex {
    /// Returns what is wrong with a list. Changes nothing.
    pub fn flaws(&self, list: &ListOfPages) -> Result<Vec<Flaw>, WorkerError> {
        if list.kind == ListKind::Url {
            return self.flaws_of_url(list);
        }
        let chunks = self.chunks(&list.name);
        let last = count_of_chunks(&chunks)?;
        let shown = self.archive.join(&list.directory);
        let days = RefCell::new(BTreeMap::new());
        // A tag that a page got after its end is on no list.
        let is_due = |entry: &ListEntry| {
            let ListKind::Of(Group::Tag, tag) = &list.kind else {
                return true;
            };
            let day = entry.directory.split('/').next().unwrap_or_default();
            let mut days = days.borrow_mut();
            let of_day = days.entry(day.to_owned()).or_insert_with(|| self.tagged(day, tag));
            of_day.get(&key(entry)).copied().unwrap_or(true)
        };
        let flaws = flaws_of_chunks(list, &chunks, last, &shown, is_due);
        if last == 0 || !flaws.is_empty() {
            return Ok(flaws);
        }
        let pages = Pages {
            index: self,
            chunks,
            kind: list.kind.clone(),
            directory: &list.directory,
            last,
        };
        let mut flaws = Vec::new();
        for page in 1..last {
            let name = format!("page-{page}.html");
            let wanted = pages.full(page).render();
            flaws.extend(flaw_of_page(&shown, &name, &wanted, Compared::Entries));
        }
        let wanted = pages.first().render();
        flaws.extend(flaw_of_page(&shown, FIRST, &wanted, Compared::All));
        Ok(flaws)
    }

    /// Whether the snapshots of a day had a tag when they ended.
    fn tagged(&self, day: &str, tag: &String) -> BTreeMap<(SnapshotId, String), bool> {
        let chunks = self.chunks(day);
        let last = count_of_chunks(&chunks).unwrap_or_default();
        let entries = (1..=last).flat_map(|page| super::read_chunk(&chunks, page));
        entries.map(|entry| (key(&entry), entry.tags.contains(tag))).collect()
    }

    /// Rebuilds a list from its readable entries and the snapshots that it must have, in the order in
    /// which they were archived. Leaves out snapshots that were removed.
    pub fn rebuild(&self, list: &ListOfPages) -> Result<(), WorkerError> {
        let chunks = self.chunks(&list.name);
        if list.kind != ListKind::Url {
            self.make_list(&list.kind, &chunks, &list.directory)?;
        }
        let before = count_of_chunks(&chunks)?;
        let mut entries: BTreeMap<(SnapshotId, String), ListEntry> = BTreeMap::new();
        for page in 1..=before {
            let known: Vec<ListEntry> = read(&chunks.join(chunk_name(page))).unwrap_or_default();
            entries.extend(known.into_iter().map(|entry| (key(&entry), entry)));
        }
        for entry in &list.entries {
            let known = entries.entry(key(entry));
            known.or_insert_with(|| ListEntry::clone(entry));
        }
        let mut entries: Vec<ListEntry> = entries.into_values().collect();
        if list.kind == ListKind::Url {
            return self.write_versions(&list.name, entries);
        }
        let gone: Vec<ListEntry> = entries.extract_if(.., |entry| !self.has(entry)).collect();
        if let ListKind::Day(_) = list.kind {
            for (name, _, directory) in gone.iter().flat_map(lists_of) {
                self.mark_stale(&name, &directory)?;
            }
        }
        if entries.is_empty() && matches!(list.kind, ListKind::Of(..)) {
            remove_below(&self.state, &list.directory)?;
            return remove_below(&self.archive, &list.directory);
        }
        entries.sort_by_key(|entry| (entry.archived_at, entry.id));
        let mut after = 0;
        for entries in entries.chunks(PER_PAGE) {
            after += 1;
            write_json(&chunks, &chunk_name(after), &entries)?;
        }
        for page in after + 1..=before {
            remove(&chunks.join(chunk_name(page)))?;
        }
        self.restore(&list.name, list.kind.clone(), &list.directory, true)?;
        let shown = self.archive.join(&list.directory);
        for page in after.max(1)..before {
            remove(&shown.join(format!("page-{page}.html")))?;
        }
        Ok(())
    }

    /// Returns what is wrong with the archive's first page and its list of days, if the lists of the
    /// days are right. Changes nothing.
    pub fn flaws_of_newest(&self) -> Result<Vec<Flaw>, WorkerError> {
        let wanted = self.newest_of_days()?;
        let path = self.state.join(NEWEST);
        let mut newest: Newest = match read(&path) {
            Ok(newest) => newest,
            // The archive is empty.
            Err(_) if wanted.days.is_empty() => return Ok(Vec::new()),
            Err(error) => return Ok(vec![(path, unreadable(&error))]),
        };
        newest.entries.retain(|entry| self.has(entry));
        newest.days.retain(|day, _| self.has_day(day));
        let first = self.archive.join(FIRST);
        if let Some((day, count)) =
            wanted.days.iter().find(|(day, count)| newest.days.get(*day) != Some(count))
        {
            let listed = newest.days.get(day).copied().unwrap_or(0);
            let what = format!("it has {listed} of {count} pages of the day {day}");
            return Ok(vec![(first, what)]);
        }
        let known: BTreeSet<_> = newest.entries.iter().map(key).collect();
        let oldest = newest.entries.iter().map(ListEntry::date).min();
        let is_full = newest.entries.len() >= PER_PAGE;
        let is_due = |entry: &&ListEntry| {
            let oldest = oldest.filter(|_| is_full);
            oldest.is_none_or(|oldest| entry.date() > oldest.after(ORDER_TOLERANCE))
        };
        let lacking =
            wanted.entries.iter().filter(|entry| !known.contains(&key(entry))).filter(is_due);
        if let Some(what) = lacks(lacking.map(|entry| entry.id.to_string())) {
            return Ok(vec![(first, what)]);
        }
        let first = newest.page(&self.groups()).render();
        let mut pages = vec![(FIRST, first), (DAYS, days(&newest.day_names()))];
        pages.extend(self.pages_of_groups()?);
        let flaw = |(name, wanted): (&str, String)| {
            flaw_of_page(&self.archive, name, &wanted, Compared::All)
        };
        Ok(pages.into_iter().filter_map(flaw).collect())
    }

    /// Rebuilds the archive's first page and its list of days from the lists of the days, and the lists of sites and
    /// of tags.
    pub fn rebuild_newest(&self) -> Result<(), WorkerError> {
        let newest = self.newest_of_days()?;
        self.write_newest(&newest, true)?;
        self.write_groups()
    }

    /// The newest snapshots of all days, and the number of snapshots of each day.
    fn newest_of_days(&self) -> Result<Newest, WorkerError> {
        let mut newest = Newest::default();
        for day in self.days()? {
            let chunks = self.chunks(&day);
            let last = count_of_chunks(&chunks)?;
            if last == 0 || !self.has_day(&day) {
                continue;
            }
            let pages = Pages {
                index: self,
                chunks,
                kind: ListKind::Day(day.clone()),
                directory: &day,
                last,
            };
            newest.days.insert(day.clone(), pages.total());
            for page in 1..=last {
                let entries = super::read_chunk(&pages.chunks, page);
                newest.entries.extend(entries.into_iter().filter(|entry| self.has(entry)));
            }
            newest.keep_newest();
        }
        Ok(newest)
    }

    /// The days that have a list.
    pub fn days(&self) -> Result<Vec<String>, WorkerError> {
        let names = match fs::read_dir(&self.state) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            names => names.map_err(super::failed("read", &self.state))?,
        };
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| is_day(name)).collect())
    }
}

fn key(entry: &ListEntry) -> (SnapshotId, String) {
    (entry.id, entry.directory.clone())
}

fn chunk_name(page: usize) -> String {
    format!("{page}.json")
}

/// Number of the newest chunk; 0 without a list.
pub(super) fn count_of_chunks(chunks: &Path) -> Result<usize, WorkerError> {
    if chunks.is_dir() { last_chunk(chunks) } else { Ok(0) }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

pub(super) fn remove(path: &Path) -> Result<(), WorkerError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(super::failed("remove", path)),
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the list is missing".to_owned(),
        _ => format!("the list cannot be read: {error}"),
    }
}

/// Returns a sentence about names that are missing in a list; `None` if none is.
fn lacks(mut names: impl Iterator<Item = String>) -> Option<String> {
    let first = names.next()?;
    Some(format!("it lacks {first}{}", and_others(names.count())))
}

fn and_others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and 1 other".to_owned(),
        n => format!(" and {n} others"),
    }
}

pub(super) fn flaws_of_chunks(
    list: &ListOfPages,
    chunks: &Path,
    last: usize,
    shown: &Path,
    is_due: impl Fn(&ListEntry) -> bool,
) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let mut listed = BTreeSet::new();
    let mut twice = None;
    for page in 1..=last {
        let path = chunks.join(chunk_name(page));
        let entries: Vec<ListEntry> = match read(&path) {
            Ok(entries) => entries,
            Err(error) => {
                flaws.push((path, unreadable(&error)));
                continue;
            }
        };
        if page < last && entries.len() != PER_PAGE {
            let count = entries.len();
            flaws.push((path, format!("it has {count} of {PER_PAGE} entries")));
        }
        for entry in &entries {
            if !listed.insert(key(entry)) {
                twice = Some(entry.id);
            }
        }
    }
    let first = shown.join(FIRST);
    flaws.extend(twice.map(|id| (first.clone(), format!("it has {id} twice"))));
    let lacking = list.entries.iter().filter(|entry| !listed.contains(&key(entry)));
    let lacking = lacking.filter(|entry| is_due(entry));
    // What an unreadable chunk has is not missing.
    if flaws.is_empty()
        && let Some(what) = lacks(lacking.map(|entry| entry.id.to_string()))
    {
        flaws.push((first, what));
    }
    flaws
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    All,
    /// The entries and the links.
    Entries,
}

pub(super) fn flaw_of_page(shown: &Path, name: &str, wanted: &str, how: Compared) -> Option<Flaw> {
    let what = match read_page(shown, name) {
        Ok(found) => difference(wanted, &found, how)?,
        Err(error) if error.kind() == ErrorKind::NotFound => "the list is missing".to_owned(),
        Err(error) => format!("it cannot be read: {error}"),
    };
    Some((shown.join(name), what))
}

/// Reads a page in a directory that hooks may write to.
fn read_page(directory: &Path, name: &str) -> io::Result<String> {
    let mut text = String::new();
    let file = Directory::open(directory)?.read(name)?;
    file.take(PAGE_MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns how a page differs from the wanted one, as a sentence.
fn difference(wanted: &str, found: &str, how: Compared) -> Option<String> {
    if found == wanted {
        return None;
    }
    if !found.ends_with(END) {
        return Some("it is not complete".to_owned());
    }
    let (want, have) = (links(wanted), links(found));
    let mut lacking = want.difference(&have);
    if let Some(first) = lacking.next() {
        let others = and_others(lacking.count());
        return Some(format!("it lacks the link to '{first}'{others}"));
    }
    let mut gone = have.difference(&want);
    if let Some(first) = gone.next() {
        let others = and_others(gone.count());
        return Some(format!("it has a link to '{first}', which is gone{others}"));
    }
    if between(wanted, "<style>", "</style>") != between(found, "<style>", "</style>") {
        return None;
    }
    let entries = |text: &str| between(text, "<div class=\"grid\">", "</main>").map(str::to_owned);
    let is_same = how == Compared::Entries && entries(wanted) == entries(found);
    (!is_same).then(|| "it is not what its entries give".to_owned())
}

fn links(page: &str) -> BTreeSet<&str> {
    let rest = page.split("href=\"").skip(1);
    rest.filter_map(|rest| rest.split('"').next()).collect()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// Returns what is wrong with the page about a snapshot in its directory, as a sentence: it is missing
/// or not complete. Its content depends on the version that wrote it.
///
/// # Errors
/// If it cannot be read.
pub fn flaw_of_snapshot(directory: &Path) -> io::Result<Option<String>> {
    let missing = || Ok(Some("the page about the snapshot is missing".to_owned()));
    match read_page(directory, FIRST) {
        Ok(text) if text.ends_with(END) => Ok(None),
        Ok(_) => Ok(Some("it is not complete".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => missing(),
        // Not UTF-8.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Ok(Some("it is not complete".to_owned()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
