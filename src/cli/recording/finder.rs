//! The recordings of the archive, as a replay looks for them.

use super::recordings::{Located, variants};
use crate::client::exit::Failure;
use crate::client::location::fetch;
use crate::client::paging::Paging;
use crate::client::server::Server;
use archivist_core::lock;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_hooks::bodies;
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use tokio::runtime::Handle;

/// Recordings of the same crawl and host in which a missing resource is looked for.
const NEIGHBOURS: u32 = 16;

/// Where the recording of a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub page: SnapshotId,
    /// Number of the file, by which it is opened.
    pub file: usize,
}

/// Finds and opens recordings. Its calls may wait.
pub trait Finder: Send + Sync {
    /// The snapshots of a URL, first the nearest in time.
    fn pages(&self, url: &str, near: Timestamp) -> Result<Vec<SnapshotId>, String>;
    /// Waits until the files of a snapshot are on this machine; `None` if it has no recording.
    fn place(&self, page: SnapshotId) -> Result<Option<Place>, String>;
    /// Other recordings of the crawl and host of a snapshot that are on this machine.
    fn around(&self, page: SnapshotId) -> Result<Vec<Place>, String>;
    fn open(&self, place: Place) -> Result<Wacz, String>;
    /// Tells the user what is left out.
    fn warn(&self, text: &str);
}

/// The rows of the archive.
pub trait Snapshots: Send + Sync {
    async fn list(&self, filter: Filter) -> Result<Vec<Snapshot>, Failure>;
    /// Waits until the files of a snapshot are on this machine.
    async fn fetch(&self, page: &Snapshot) -> Result<(), Failure>;
}

impl Snapshots for Server {
    async fn list(&self, filter: Filter) -> Result<Vec<Snapshot>, Failure> {
        Paging::new(self, filter).collect().await
    }

    async fn fetch(&self, page: &Snapshot) -> Result<(), Failure> {
        fetch(self, page.id, page.directory.as_deref()).await
    }
}

/// The archive of this machine.
pub struct LocalFinder<S> {
    snapshots: S,
    runtime: Handle,
    /// The files by their numbers.
    paths: Mutex<Vec<PathBuf>>,
}

impl<S: Snapshots> LocalFinder<S> {
    /// Must be called within a runtime. File 0 is that of the page that is shown first.
    pub fn new(snapshots: S, first: PathBuf) -> LocalFinder<S> {
        LocalFinder { snapshots, runtime: Handle::current(), paths: Mutex::new(vec![first]) }
    }

    /// Path of a file by its number.
    pub fn path(&self, file: usize) -> Option<PathBuf> {
        lock(&self.paths).get(file).cloned()
    }

    fn numbered(&self, located: Located) -> Option<Place> {
        let mut paths = lock(&self.paths);
        let known = paths.iter().position(|path| *path == located.path);
        let file = known.unwrap_or_else(|| {
            paths.push(located.path);
            paths.len() - 1
        });
        Some(Place { page: located.page?, file })
    }

    fn list(&self, filter: Filter) -> Result<Vec<Snapshot>, String> {
        self.runtime.block_on(self.snapshots.list(filter)).map_err(text)
    }

    fn find(&self, page: SnapshotId) -> Result<Option<Snapshot>, String> {
        Ok(self.list(Filter::of(Owner::Snapshot(page)))?.pop())
    }
}

fn text(failure: Failure) -> String {
    failure.message().to_owned()
}

impl<S: Snapshots> Finder for LocalFinder<S> {
    fn pages(&self, url: &str, near: Timestamp) -> Result<Vec<SnapshotId>, String> {
        let mut found = Vec::new();
        for url in variants(url) {
            let filter = Filter {
                status: Some(Lifecycle::Sealed.as_str().to_owned()),
                exact_url: Some(url),
                ..Filter::default()
            };
            let mut pages = self.list(filter)?;
            pages.sort_by_cached_key(|page| distance(page, near));
            found.extend(pages.into_iter().map(|page| page.id));
        }
        Ok(found)
    }

    fn place(&self, page: SnapshotId) -> Result<Option<Place>, String> {
        let Some(row) = self.find(page)? else {
            return Ok(None);
        };
        self.runtime.block_on(self.snapshots.fetch(&row)).map_err(text)?;
        Ok(Located::of(&row).and_then(|located| self.numbered(located)))
    }

    fn around(&self, page: SnapshotId) -> Result<Vec<Place>, String> {
        let row = self.find(page)?;
        let Some((site, row)) = row.and_then(|row| Some((site(&row.url)?, row))) else {
            return Ok(Vec::new());
        };
        let filter = Filter {
            status: Some(Lifecycle::Sealed.as_str().to_owned()),
            url_prefix: Some(site),
            before: Some(page.0 + i64::from(NEIGHBOURS / 2) + 1),
            limit: NEIGHBOURS,
            ..Filter::of(Owner::Crawl(row.crawl))
        };
        let rows = self.list(filter)?;
        let located = rows.iter().filter(|row| row.id != page).filter_map(Located::of);
        Ok(located.filter_map(|located| self.numbered(located)).collect())
    }

    fn open(&self, place: Place) -> Result<Wacz, String> {
        let path = self.path(place.file).unwrap_or_default();
        let failed = |error: &dyn std::fmt::Display| format!("'{}': {error}", path.display());
        let file = File::open(&path).map_err(|error| failed(&error))?;
        bodies::open(&path, file).map_err(|error| failed(&error))
    }

    fn warn(&self, text: &str) {
        eprintln!("{}, ignoring", clean(text));
    }
}

/// How far the recording of a snapshot is from a time, in milliseconds.
fn distance(page: &Snapshot, near: Timestamp) -> u64 {
    let shown = Located::of(page).and_then(|located| located.shown);
    let own = page.visited_at.0;
    let time = shown.map_or(own, |(_, time)| time.as_millisecond());
    time.abs_diff(near.as_millisecond())
}

/// The begin of all URLs of the same host.
fn site(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    Some(format!("{scheme}://{host}/"))
}
