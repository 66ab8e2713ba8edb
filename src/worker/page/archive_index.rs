//! The index of an archive: lists of its newest snapshots, of those of a day, a crawl, a site, a tag, and a URL.
//!
//! A list is stored in chunks of one page each, the oldest first. Full pages do not change, so
//! adding a snapshot costs the same in an archive of any size: it writes the last chunk and the
//! first page, and a page that becomes full once.
//!
//! The chunks are in `archive/.index`, where workers write them under a lock. `archivist fsck` compares chunks with rows and pages with chunks,
//! and rebuilds what is wrong by the functions of workers (`worker/lists.rs`,
//! `archive_index/check.rs`).
//!
//! A URL with more than one snapshot has a list (`archive_index/versions.rs`) in `archive/urls`, under
//! the digest of the key by which `archivist versions` finds them. Next to its pages are the links of
//! each snapshot to the next older and newer one. The page about a snapshot shows this file as an
//! `object`, because that page itself must not change: its copy in the store has it. Where there is no
//! such file, as for a single snapshot or outside of the archive, a browser shows nothing. The
//! assignment of a worker names the newest other snapshots of its page, also those in progress, so that
//! of two snapshots that are archived at once, the one that is sealed last finds the other. A worker
//! that begins a list takes their entries from the lists of their days.
//!
//! A site and a tag have a list each (`worker/page/groups.rs`) in `archive/sites` and `archive/tags`,
//! like that of a crawl. A site is the directory of a host below that of a day. The name of a directory
//! is the site or tag, with escapes for what no file name can have. `sites.html` and `tags.html` are
//! written when a list begins or ends, not with every snapshot. After a deletion, the list of a day
//! notes those of sites and tags that its removed snapshots were on.

use crate::WorkerError;
use crate::files::write::{is_own_user, replace};
use crate::page::groups::{self, Group};
use crate::page::versions::{directory_of, is_list_of_url};
use crate::page::{Day, ListEntry, ListKind, ListPage, PER_PAGE, days};
use archivist_core::model::{SnapshotId, Time};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

mod check;
mod stale;
mod versions;

pub use check::{ListOfPages, flaw_of_snapshot};

/// Directory of the chunks below the archive's directory. Hooks have no access to it.
const STATE: &str = ".index";
/// Mode of this directory, and of those below it.
const STATE_MODE: u32 = 0o700;
const NEWEST: &str = "newest.json";
/// First page of a list, which has its newest snapshots.
const FIRST: &str = "index.html";
/// Page of the archive that lists all days.
const DAYS: &str = "days.html";

/// The order of the versions of a page, and of the archive's first page.
fn order(entry: &ListEntry) -> (Time, SnapshotId) {
    (entry.date(), entry.id)
}

/// Content of the archive's first page.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Newest {
    /// Newest snapshots first.
    entries: Vec<ListEntry>,
    /// Number of snapshots of each day.
    days: BTreeMap<String, usize>,
}

impl Newest {
    /// Keeps the snapshots that were visited last, on one page.
    fn keep_newest(&mut self) {
        self.entries.sort_by_key(|entry| Reverse(order(entry)));
        self.entries.truncate(PER_PAGE);
    }

    /// The days, newest first.
    fn day_names(&self) -> Vec<String> {
        self.days.keys().rev().cloned().collect()
    }

    /// The page, with links to the lists of these groups.
    fn page(&self, groups: &[Group]) -> ListPage {
        let days = self.days.iter().rev().map(|(directory, snapshots)| Day {
            directory: directory.clone(),
            snapshots: *snapshots,
        });
        ListPage {
            kind: ListKind::Archive(days.collect(), groups.to_vec()),
            directory: String::new(),
            total: self.days.values().sum(),
            entries: self.entries.clone(),
            before: None,
            newer: None,
            older: None,
        }
    }
}

pub struct ListPositions {
    /// Number of the page of each, counted from 1, the oldest.
    pub pages: Vec<usize>,
    pub total: usize,
    /// Whether there was no list before.
    pub is_new: bool,
}

/// A list to which snapshots are added, before its chunks are written.
struct ListDraft<'a> {
    chunks: &'a Path,
    /// Number of the newest chunk.
    last: usize,
    /// Chunks that were read, with the changes.
    read: BTreeMap<usize, Vec<ListEntry>>,
    changed: BTreeSet<usize>,
}

impl ListDraft<'_> {
    fn chunk(&mut self, page: usize) -> &mut Vec<ListEntry> {
        let read = || read_chunk(self.chunks, page);
        self.read.entry(page).or_insert_with(read)
    }

    /// Adds or updates a snapshot. Returns the number of its page.
    fn add(&mut self, entry: &ListEntry, known: Option<usize>) -> usize {
        let is_same = |other: &ListEntry| other.id == entry.id;
        let known = known.and_then(|page| {
            let is_there = (1..=self.last).contains(&page) && self.chunk(page).iter().any(is_same);
            if is_there {
                return Some(page);
            }
            (1..=self.last).rev().find(|page| self.chunk(*page).iter().any(is_same))
        });
        let mut page = known.unwrap_or(self.last);
        let entries = self.chunk(page);
        match entries.iter().position(is_same) {
            Some(at) => entries[at] = entry.clone(),
            None if entries.len() < PER_PAGE => entries.push(entry.clone()),
            None => {
                page = self.last + 1;
                self.last = page;
                self.read.insert(page, vec![entry.clone()]);
            }
        }
        self.changed.insert(page);
        page
    }
}

/// The index of an archive, locked against other workers.
pub struct ArchiveIndex {
    archive: PathBuf,
    state: PathBuf,
    /// `None` if nothing is written, and no worker has made the file yet.
    _lock: Option<Flock<File>>,
}

fn failed(verb: &'static str, path: &Path) -> impl Fn(std::io::Error) -> WorkerError {
    move |source| WorkerError::File { verb, path: path.to_owned(), source }
}

fn make(path: &Path, mode: u32) -> Result<(), WorkerError> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(failed("create", path)(error))
        }
        _ => Ok(()),
    }
}

/// Opens a directory of the archive. Hooks cannot write to its parent directories.
fn open(path: &Path) -> Result<Directory, WorkerError> {
    Directory::open(path).map_err(failed("open", path))
}

impl ArchiveIndex {
    /// Opens the index. Waits until no other worker holds its lock.
    pub fn open(archive: &Path) -> Result<ArchiveIndex, WorkerError> {
        let state = archive.join(STATE);
        make(&state, STATE_MODE)?;
        let path = state.join("lock");
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed("open", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| failed("lock", &path)(error.into()))?;
        Ok(ArchiveIndex { archive: archive.to_owned(), state, _lock: Some(lock) })
    }

    /// Opens the index to read it, and creates nothing. Workers wait until it is dropped.
    pub fn look(archive: &Path) -> Result<ArchiveIndex, WorkerError> {
        let state = archive.join(STATE);
        let path = state.join("lock");
        let mut options = File::options();
        let opened = options.read(true).custom_flags(nix::libc::O_NOFOLLOW).open(&path);
        let lock = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => {
                let file = opened.map_err(failed("open", &path))?;
                let lock = Flock::lock(file, FlockArg::LockShared);
                Some(lock.map_err(|(_, error)| failed("lock", &path)(error.into()))?)
            }
        };
        Ok(ArchiveIndex { archive: archive.to_owned(), state, _lock: lock })
    }

    /// Adds or updates snapshots in a list, and writes the changed pages to `directory` of the archive.
    /// Each comes with the page that contained it when it was added before; it may be on another one since the
    /// list was rebuilt.
    pub fn add_all(
        &self,
        name: &str,
        kind: ListKind,
        directory: &str,
        added: &[(&ListEntry, Option<usize>)],
    ) -> Result<ListPositions, WorkerError> {
        let chunks = self.chunks(name);
        self.make_list(&kind, &chunks, directory)?;
        let before = last_chunk(&chunks)?;
        let mut draft = ListDraft {
            chunks: &chunks,
            last: before.max(1),
            read: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        let pages = added.iter().map(|(entry, known)| draft.add(entry, *known)).collect();
        let ListDraft { last, read, changed, .. } = draft;
        for page in &changed {
            write_json(&chunks, &format!("{page}.json"), &read[page])?;
        }
        let list = Pages { index: self, chunks, kind, directory, last };
        Ok(ListPositions { pages, total: list.update(changed, before)?, is_new: before == 0 })
    }

    /// Makes the directories of a list that do not belong to a snapshot or crawl.
    fn make_list(
        &self,
        kind: &ListKind,
        chunks: &Path,
        directory: &str,
    ) -> Result<(), WorkerError> {
        if let ListKind::Of(..) = kind {
            versions::make_below(&self.state, directory, STATE_MODE)?;
            return versions::make_below(&self.archive, directory, versions::SHOWN_MODE);
        }
        make(chunks, STATE_MODE)
    }

    /// The groups that have lists: an archive may have no tags.
    fn groups(&self) -> Vec<Group> {
        let has_lists = |group: &Group| self.state.join(group.directory()).is_dir();
        Group::ALL.into_iter().filter(has_lists).collect()
    }

    /// The pages that list the sites and the tags, with their names.
    fn pages_of_groups(&self) -> Result<Vec<(&'static str, String)>, WorkerError> {
        let page = |group: Group| {
            let lists = versions::names(&self.state.join(group.directory()))?;
            Ok((group.page(), groups::index(group, lists)))
        };
        self.groups().into_iter().map(page).collect()
    }

    /// Writes the pages that list the sites and the tags, and the archive's first page, which has links to them. This
    /// costs as much as the archive has of them, and is done if there is a new one, or one is gone.
    pub fn write_groups(&self) -> Result<(), WorkerError> {
        let archive = open(&self.archive)?;
        let pages = self.pages_of_groups()?;
        pages.iter().try_for_each(|(name, text)| replace(&archive, name, text))?;
        let newest: Newest = read_json(&self.state.join(NEWEST));
        let written = replace(&archive, FIRST, &newest.page(&self.groups()).render());
        let is_gone = |group: &&Group| pages.iter().all(|(name, _)| *name != group.page());
        for group in Group::ALL.iter().filter(is_gone) {
            archive.clear(group.page()).map_err(failed("remove", &self.archive))?;
        }
        written
    }

    fn chunks(&self, name: &str) -> PathBuf {
        if is_list_of_url(name) {
            self.state.join(directory_of(name))
        } else if let Some((_, _, directory)) = groups::of_name(name) {
            self.state.join(directory)
        } else {
            self.state.join(name)
        }
    }

    /// Adds snapshots of a day to the archive's first page, in the order in which they were visited. `total`
    /// is the number of snapshots of the day.
    pub fn add_newest(
        &self,
        added: &[&ListEntry],
        day: &str,
        total: usize,
    ) -> Result<(), WorkerError> {
        let mut newest: Newest = read_json(&self.state.join(NEWEST));
        let is_added = |other: &ListEntry| added.iter().any(|entry| entry.id == other.id);
        newest.entries.retain(|other| !is_added(other) && self.has(other));
        newest.entries.extend(added.iter().copied().cloned());
        newest.keep_newest();
        let known = newest.days.len();
        newest.days.insert(day.to_owned(), total);
        let is_new = newest.days.len() > known;
        newest.days.retain(|day, _| self.has_day(day));
        self.write_newest(&newest, is_new)
    }

    /// Rebuilds the archive's first page, and the list of all days if `with_days` is set.
    fn write_newest(&self, newest: &Newest, with_days: bool) -> Result<(), WorkerError> {
        write_json(&self.state, NEWEST, newest)?;
        let archive = open(&self.archive)?;
        if with_days {
            replace(&archive, DAYS, &days(&newest.day_names()))?;
        }
        replace(&archive, FIRST, &newest.page(&self.groups()).render())
    }

    /// Restores the pages of a list in a directory that hooks could write to: rewrites pages of
    /// other users, `all` pages if hooks have the same user, and the first page in any case.
    pub fn restore(
        &self,
        name: &str,
        kind: ListKind,
        directory: &str,
        all: bool,
    ) -> Result<(), WorkerError> {
        let chunks = self.chunks(name);
        let last = if chunks.is_dir() { last_chunk(&chunks)? } else { 0 };
        let shown = open(&self.archive.join(directory))?;
        if last == 0 {
            // The list is empty, so it has no page.
            return shown.clear(FIRST).map_err(failed("remove", &shown.path().join(FIRST)));
        }
        let list = Pages { index: self, chunks, kind, directory, last };
        for page in 1..last {
            let name = format!("page-{page}.html");
            let found = shown.stat(&name);
            if all || !found.is_ok_and(|found| is_file(&found) && is_own_user(found.st_uid)) {
                list.write(page)?;
            }
        }
        list.write_first().map(|_| ())
    }

    /// Whether the snapshot still exists. Users may remove snapshots.
    fn has(&self, entry: &ListEntry) -> bool {
        let page = self.archive.join(&entry.directory).join(FIRST);
        page.symlink_metadata().is_ok()
    }

    /// Whether the day still has a list. Users may remove days.
    fn has_day(&self, day: &str) -> bool {
        self.archive.join(day).join(FIRST).exists()
    }
}

struct Pages<'a> {
    index: &'a ArchiveIndex,
    chunks: PathBuf,
    kind: ListKind,
    directory: &'a str,
    last: usize,
}

impl Pages<'_> {
    /// File name of a page. Pages are numbered from the oldest; `index.html` has the newest
    /// snapshots.
    fn name(&self, page: usize) -> Option<String> {
        match page {
            0 => None,
            page if page < self.last => Some(format!("page-{page}.html")),
            _ => Some(FIRST.to_owned()),
        }
    }

    /// Writes the pages that change with these chunks, when the list had `before` chunks. Returns the number
    /// of snapshots in the list.
    fn update(&self, mut changed: BTreeSet<usize>, before: usize) -> Result<usize, WorkerError> {
        // A new chunk makes the last page full, and gives the page before it a link to a newer
        // page.
        if self.last > before.max(1) {
            changed.extend(before.saturating_sub(1)..self.last);
        }
        let is_full = |page: &usize| (1..self.last).contains(page);
        for page in changed.into_iter().filter(is_full) {
            self.write(page)?;
        }
        self.write_first()
    }

    fn write(&self, page: usize) -> Result<(), WorkerError> {
        self.replace(&format!("page-{page}.html"), &self.full(page))
    }

    /// Writes the newest page. Returns the number of snapshots in the list.
    fn write_first(&self) -> Result<usize, WorkerError> {
        let page = self.first();
        self.replace(FIRST, &page)?;
        Ok(page.total)
    }

    /// A page before the newest one.
    fn full(&self, page: usize) -> ListPage {
        let entries = read_chunk(&self.chunks, page);
        let before = match (&self.kind, page) {
            (ListKind::Url, 2..) => read_chunk(&self.chunks, page - 1),
            _ => Vec::new(),
        };
        self.page(entries, before, self.name(page + 1), page - 1)
    }

    /// The newest page, which includes older snapshots if the newest chunk is not full.
    fn first(&self) -> ListPage {
        let older = self.last - 1;
        let mut entries = match older {
            0 => Vec::new(),
            older => read_chunk(&self.chunks, older),
        };
        entries.extend(read_chunk(&self.chunks, self.last));
        let newest = entries.split_off(entries.len().saturating_sub(PER_PAGE));
        self.page(newest, entries, None, older)
    }

    fn total(&self) -> usize {
        (self.last - 1) * PER_PAGE + read_chunk(&self.chunks, self.last).len()
    }

    /// A page with these entries. Those `before` are on older pages.
    fn page(
        &self,
        mut entries: Vec<ListEntry>,
        before: Vec<ListEntry>,
        newer: Option<String>,
        older: usize,
    ) -> ListPage {
        entries.retain(|entry| self.index.has(entry));
        entries.reverse();
        let is_compared = self.kind == ListKind::Url;
        let before = before.into_iter().filter(|_| is_compared);
        ListPage {
            kind: self.kind.clone(),
            directory: self.directory.to_owned(),
            total: self.total(),
            entries,
            before: before.rev().find(|entry| self.index.has(entry)),
            newer,
            older: self.name(older),
        }
    }

    fn replace(&self, name: &str, page: &ListPage) -> Result<(), WorkerError> {
        let shown = open(&self.index.archive.join(self.directory))?;
        replace(&shown, name, &page.render())
    }
}

/// Number of the newest chunk; 0 if there is none.
fn last_chunk(chunks: &Path) -> Result<usize, WorkerError> {
    let entries = chunks.read_dir().map_err(failed("read", chunks))?;
    let number = |name: &str| name.strip_suffix(".json")?.parse().ok();
    let numbers = entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?));
    Ok(numbers.max().unwrap_or(0))
}

fn read_chunk(chunks: &Path, page: usize) -> Vec<ListEntry> {
    read_json(&chunks.join(format!("{page}.json")))
}

/// Reads a JSON file. An unreadable file counts as empty: only the lists are affected, not the
/// snapshots.
fn read_json<T: Default + serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return T::default(),
        other => other,
    };
    let read = text.and_then(|text| Ok(serde_json::from_slice(&text)?));
    read.unwrap_or_else(|error| {
        tracing::warn!("failed to read the list '{}': {error}, ignoring", path.display());
        T::default()
    })
}

fn write_json<T: Serialize>(directory: &Path, name: &str, value: &T) -> Result<(), WorkerError> {
    let text = serde_json::to_string(value)
        .map_err(|error| failed("write", &directory.join(name))(error.into()))?;
    replace(&open(directory)?, name, &text)
}

#[cfg(test)]
mod tests;
