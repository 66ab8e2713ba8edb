//! The lists of an archive: of all snapshots the newest, those of a day, those of a crawl.
//!
//! A list is kept in pieces of one page each, the oldest first. A page that is full changes no
//! more, so one more snapshot costs the same in an archive of any size: it writes the last piece
//! and the first page, and a full page once.

use crate::WorkerError;
use crate::files::write::{is_ours, replace};
use crate::page::{Day, Entry, Kind, List, PER_PAGE, days};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The directory of the pieces, below the archive's; no hook sees it.
const STATE: &str = ".index";
const NEWEST: &str = "newest.json";

/// What the first page of the archive shows.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Newest {
    /// The newest first.
    entries: Vec<Entry>,
    /// Snapshots by day.
    days: BTreeMap<String, usize>,
}

/// Where a snapshot stands.
pub struct Place {
    /// Counted from 1, the oldest.
    pub page: usize,
    /// Snapshots in the list.
    pub total: usize,
}

/// The lists, held against other workers.
pub struct Shelf {
    archive: PathBuf,
    state: PathBuf,
    _lock: Flock<File>,
}

fn failed(verb: &'static str, path: &Path) -> impl Fn(std::io::Error) -> WorkerError {
    move |source| WorkerError::File {
        verb,
        path: path.to_owned(),
        source,
    }
}

fn make(path: &Path) -> Result<(), WorkerError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed("make", path)(error)),
        _ => Ok(()),
    }
}

/// Opens a directory of the archive, of which no hook can write a parent.
fn open(path: &Path) -> Result<Directory, WorkerError> {
    Directory::open(path).map_err(failed("open", path))
}

impl Shelf {
    /// Waits until no other worker holds the lists.
    pub fn open(archive: &Path) -> Result<Shelf, WorkerError> {
        let state = archive.join(STATE);
        make(&state)?;
        let path = state.join("lock");
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed("open", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| failed("lock", &path)(error.into()))?;
        Ok(Shelf {
            archive: archive.to_owned(),
            state,
            _lock: lock,
        })
    }

    /// Puts a snapshot on a list, whose pages are in `directory` of the archive, and writes the
    /// pages that this changes. `known` is the page where it may stand already.
    pub fn put(
        &self,
        name: &str,
        kind: Kind,
        directory: &str,
        entry: &Entry,
        known: Option<usize>,
    ) -> Result<Place, WorkerError> {
        let pieces = self.state.join(name);
        make(&pieces)?;
        let before = last_piece(&pieces)?;
        let is_same = |other: &Entry| other.id == entry.id;
        let stands = |page: &usize| read_piece(&pieces, *page).iter().any(is_same);
        let known = known
            .filter(|page| (1..=before).contains(page))
            .filter(stands);
        let mut page = known.unwrap_or(before.max(1));
        let mut entries = read_piece(&pieces, page);
        match entries.iter().position(is_same) {
            Some(at) => entries[at] = entry.clone(),
            None if entries.len() < PER_PAGE => entries.push(entry.clone()),
            None => {
                page += 1;
                entries = vec![entry.clone()];
            }
        }
        write_json(&pieces, &format!("{page}.json"), &entries)?;

        let last = before.max(page);
        let list = Pages {
            shelf: self,
            pieces,
            kind,
            directory,
            last,
        };
        // A new piece makes the last one full, and gives the one before that a neighbour.
        let changed = if page > before {
            vec![last.saturating_sub(2), last - 1]
        } else {
            vec![page]
        };
        for page in changed.into_iter().filter(|page| (1..last).contains(page)) {
            list.write(page)?;
        }
        Ok(Place {
            page,
            total: list.write_first()?,
        })
    }

    /// Puts a snapshot in front of the archive's first page; `total` is the number of those of
    /// its day.
    pub fn put_first(&self, entry: &Entry, day: &str, total: usize) -> Result<(), WorkerError> {
        let mut newest: Newest = read_json(&self.state.join(NEWEST));
        newest
            .entries
            .retain(|other| other.id != entry.id && self.has(other));
        newest.entries.insert(0, entry.clone());
        newest.entries.truncate(PER_PAGE);
        let known = newest.days.len();
        newest.days.insert(day.to_owned(), total);
        let is_new = newest.days.len() > known;
        newest
            .days
            .retain(|day, _| self.archive.join(day).join("index.html").exists());
        write_json(&self.state, NEWEST, &newest)?;

        let list = newest.days.iter().rev().map(|(directory, snapshots)| Day {
            directory: directory.clone(),
            snapshots: *snapshots,
        });
        let page = List {
            kind: Kind::Archive(list.collect()),
            directory: String::new(),
            total: newest.days.values().sum(),
            entries: newest.entries,
            newer: None,
            older: None,
        };
        let archive = open(&self.archive)?;
        if is_new {
            let names: Vec<String> = newest.days.into_keys().rev().collect();
            replace(&archive, "days.html", &days(&names))?;
        }
        replace(&archive, "index.html", &page.render())
    }

    /// Has the pages of a list, which lie where hooks write, as they were written: those of another user are written again,
    /// `all` of them where hooks are the same user, and the first in any case.
    pub fn restore(
        &self,
        name: &str,
        kind: Kind,
        directory: &str,
        all: bool,
    ) -> Result<(), WorkerError> {
        let pieces = self.state.join(name);
        let last = if pieces.is_dir() {
            last_piece(&pieces)?
        } else {
            0
        };
        let shown = open(&self.archive.join(directory))?;
        if last == 0 {
            // Nothing is listed, and so there is no page of ours.
            return shown
                .clear("index.html")
                .map_err(failed("remove", &shown.path().join("index.html")));
        }
        let list = Pages {
            shelf: self,
            pieces,
            kind,
            directory,
            last,
        };
        for page in 1..last {
            let name = format!("page-{page}.html");
            let found = shown.look(&name);
            if all || !found.is_ok_and(|found| is_file(&found) && is_ours(found.st_uid)) {
                list.write(page)?;
            }
        }
        list.write_first().map(|_| ())
    }

    /// Whether somebody removed the snapshot since.
    fn has(&self, entry: &Entry) -> bool {
        let page = self.archive.join(&entry.directory).join("index.html");
        page.symlink_metadata().is_ok()
    }
}

/// The pages of one list.
struct Pages<'a> {
    shelf: &'a Shelf,
    pieces: PathBuf,
    kind: Kind,
    directory: &'a str,
    last: usize,
}

impl Pages<'_> {
    /// A page is called by its number from the oldest; the newest snapshots are on the first.
    fn name(&self, page: usize) -> Option<String> {
        match page {
            0 => None,
            page if page < self.last => Some(format!("page-{page}.html")),
            _ => Some("index.html".to_owned()),
        }
    }

    fn write(&self, page: usize) -> Result<(), WorkerError> {
        let entries = read_piece(&self.pieces, page);
        let total = self.total();
        self.render(
            &format!("page-{page}.html"),
            entries,
            total,
            self.name(page + 1),
            page - 1,
        )
    }

    /// Writes the newest page, which is always full if there are that many, and tells how many
    /// there are.
    fn write_first(&self) -> Result<usize, WorkerError> {
        let older = self.last - 1;
        let mut entries = match older {
            0 => Vec::new(),
            older => read_piece(&self.pieces, older),
        };
        entries.extend(read_piece(&self.pieces, self.last));
        let entries = entries.split_off(entries.len().saturating_sub(PER_PAGE));
        let total = self.total();
        self.render("index.html", entries, total, None, older)?;
        Ok(total)
    }

    fn total(&self) -> usize {
        (self.last - 1) * PER_PAGE + read_piece(&self.pieces, self.last).len()
    }

    fn render(
        &self,
        name: &str,
        mut entries: Vec<Entry>,
        total: usize,
        newer: Option<String>,
        older: usize,
    ) -> Result<(), WorkerError> {
        entries.retain(|entry| self.shelf.has(entry));
        entries.reverse();
        let page = List {
            kind: self.kind.clone(),
            directory: self.directory.to_owned(),
            total,
            entries,
            newer,
            older: self.name(older),
        };
        let shown = open(&self.shelf.archive.join(self.directory))?;
        replace(&shown, name, &page.render())
    }
}

/// The number of the newest piece; 0 when there is none.
fn last_piece(pieces: &Path) -> Result<usize, WorkerError> {
    let entries = pieces.read_dir().map_err(failed("read", pieces))?;
    let number = |name: &str| name.strip_suffix(".json")?.parse().ok();
    let numbers = entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?));
    Ok(numbers.max().unwrap_or(0))
}

fn read_piece(pieces: &Path, page: usize) -> Vec<Entry> {
    read_json(&pieces.join(format!("{page}.json")))
}

/// What cannot be read is begun anew: the snapshots themselves are not concerned.
fn read_json<T: Default + serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return T::default(),
        other => other,
    };
    let read = text.and_then(|text| Ok(serde_json::from_slice(&text)?));
    read.unwrap_or_else(|error| {
        tracing::warn!(
            "cannot read the list '{}': {error}, ignoring",
            path.display()
        );
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
