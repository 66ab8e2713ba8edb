//! Answers of the whole archive to the requests of a replay.
//!
//! The index of the archive is the list of snapshots by URL, which the orchestrator has, and the
//! index in the recording of each: only what a page asks for is opened. A link is answered by the
//! snapshot of its URL that is nearest in time to the page shown first. What a page needs and its own
//! recording lacks, because the browser had it already, is looked for in recordings of the same crawl
//! and host that were made shortly before or after.

use super::recordings::{Located, variants};
use crate::client::exit::Failure;
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::verb::open::fetch;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_hooks::bodies;
use archivist_hooks::replay::{Answer, Answers};
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_warc::lookup::{Index, Match, Wanted};
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Recordings of pages that are open: each has a file and an index in memory.
const OPEN_MAX: usize = 200;
/// Recordings of the same crawl and host in which a missing resource is looked for.
const NEIGHBOURS: u32 = 16;
/// URLs without a snapshot that are remembered.
const UNKNOWN_MAX: usize = 10_000;
/// The rule for answers from recordings of neighbours.
const NEIGHBOUR: &str = "recording of another page";

/// The snapshots of the archive.
pub trait Snapshots: Send + Sync {
    /// Returns all snapshots of a list.
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

/// All recordings of the archive.
pub struct Archive<S> {
    snapshots: S,
    /// Looks up are made in threads that may wait.
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The recordings of the pages that were shown.
    pages: Index,
    opened: BTreeSet<SnapshotId>,
    /// Files of the pages: those that were imported have several pages.
    paths: BTreeSet<PathBuf>,
    /// The page that was opened last.
    current: Option<SnapshotId>,
    neighbours: Index,
    /// The page whose neighbours are open.
    around: Option<SnapshotId>,
    /// URLs of which there is no snapshot.
    unknown: BTreeSet<String>,
}

impl<S: Snapshots> Archive<S> {
    /// Returns the archive in which `file` is the recording of the page that is shown first. Must be
    /// called within a runtime.
    pub fn new(snapshots: S, first: &Located, file: Arc<Wacz>) -> Archive<S> {
        let mut state = State::default();
        state.add(first, file);
        Archive { snapshots, runtime: Handle::current(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the recording of the snapshot of a URL that is nearest in time. Returns whether one was
    /// opened.
    async fn open_page(&self, url: &str, near: Timestamp) -> Result<bool, Failure> {
        for url in variants(url) {
            let filter = Filter {
                status: Some(Lifecycle::Sealed.as_str().to_owned()),
                exact_url: Some(url),
                ..Filter::default()
            };
            let mut pages = self.snapshots.list(filter).await?;
            pages.sort_by_cached_key(|page| distance(page, near));
            for page in pages {
                if self.state().opened.contains(&page.id) {
                    return Ok(false);
                }
                self.snapshots.fetch(&page).await?;
                let Some(located) = Located::of(&page) else {
                    continue;
                };
                if self.state().notes(&located) {
                    return Ok(false);
                }
                if let Some(file) = open(&located) {
                    self.state().add(&located, file);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Opens recordings around the page that was opened last. Returns whether they are not those
    /// that were open before.
    async fn open_neighbours(&self) -> Result<bool, Failure> {
        let (current, around) = {
            let state = self.state();
            (state.current, state.around)
        };
        let Some(id) = current.filter(|_| current != around) else {
            return Ok(false);
        };
        let own = Filter::of(Owner::Snapshot(id));
        let page = self.snapshots.list(own).await?.pop();
        let mut index = Index::new();
        if let Some((page, site)) = page.and_then(|page| site(&page.url).map(|site| (page, site))) {
            let filter = Filter {
                status: Some(Lifecycle::Sealed.as_str().to_owned()),
                url_prefix: Some(site),
                before: Some(id.0 + i64::from(NEIGHBOURS / 2) + 1),
                limit: NEIGHBOURS,
                ..Filter::of(Owner::Crawl(page.crawl))
            };
            let pages = self.snapshots.list(filter).await?;
            let others = pages.iter().filter(|page| page.id != id);
            let open_paths = self.state().paths.clone();
            let paths = others.filter_map(Located::of);
            let paths: BTreeMap<_, _> = paths.map(|one| (one.path.clone(), one)).collect();
            let closed = paths.into_values().filter(|one| !open_paths.contains(&one.path));
            closed.filter_map(|one| open(&one)).for_each(|file| index.add(file));
        }
        let mut state = self.state();
        state.neighbours = index;
        state.around = current;
        Ok(true)
    }

    /// Waits for a look-up. One that fails has found nothing.
    fn wait(&self, looked: impl Future<Output = Result<bool, Failure>>) -> bool {
        self.runtime.block_on(looked).unwrap_or_else(|failure| {
            eprintln!("{}, ignoring", clean(failure.message()));
            false
        })
    }
}

impl State {
    /// Adds the recording of a page.
    fn add(&mut self, located: &Located, file: Arc<Wacz>) {
        if self.paths.len() >= OPEN_MAX {
            self.pages = Index::new();
            self.paths.clear();
            self.opened.clear();
        }
        self.pages.add(file);
        self.paths.insert(located.path.clone());
        self.notes(located);
    }

    /// Notes that a page was opened, if its file is open. Returns whether it is.
    fn notes(&mut self, located: &Located) -> bool {
        let is_open = self.paths.contains(&located.path);
        if is_open {
            self.opened.extend(located.page);
            self.current = located.page;
        }
        is_open
    }

    fn of_page(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        Answers::find(&self.pages, wanted)
    }

    fn of_neighbours(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let answer = Answers::find(&self.neighbours, wanted)?;
        Some(Answer { fit: Match::Fuzzy(NEIGHBOUR), ..answer })
    }
}

impl<S: Snapshots> Answers for Archive<S> {
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let own = self.state().of_page(wanted);
        if own.as_ref().is_some_and(|answer| answer.fit == Match::Exact) {
            return own;
        }
        if wanted.method == "GET" && !self.state().unknown.contains(wanted.url) {
            if self.wait(self.open_page(wanted.url, wanted.near)) {
                let other = self.state().of_page(wanted);
                if other.is_some() {
                    return other;
                }
            }
            let mut state = self.state();
            if state.unknown.len() >= UNKNOWN_MAX {
                state.unknown.clear();
            }
            state.unknown.insert(wanted.url.to_owned());
        }
        own.or_else(|| {
            let known = self.state().of_neighbours(wanted);
            known.or_else(|| {
                let is_new = self.wait(self.open_neighbours());
                is_new.then(|| self.state().of_neighbours(wanted)).flatten()
            })
        })
    }
}

/// Opens a recording; `None` if it cannot be read.
fn open(located: &Located) -> Option<Arc<Wacz>> {
    let path = &located.path;
    let opened = read(path).inspect_err(|error| {
        eprintln!("'{}': {}, ignoring", path.display(), clean(error));
    });
    opened.ok().map(Arc::new)
}

fn read(path: &Path) -> Result<Wacz, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    bodies::open(path, file).map_err(|error| error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::{CrawlId, Time};
    use archivist_warc::exchange::Exchange;
    use archivist_warc::wacz::{About, Recording};
    use std::fs;

    /// Rows in the order of their ids, and the URLs that were looked for.
    #[derive(Default)]
    struct Rows(Vec<Snapshot>, Arc<Mutex<Vec<String>>>);

    impl Snapshots for Rows {
        async fn list(&self, filter: Filter) -> Result<Vec<Snapshot>, Failure> {
            self.1.lock().unwrap().extend(filter.exact_url.clone());
            let fits = |page: &&Snapshot| {
                (filter.exact_url.as_ref()).is_none_or(|url| page.url == *url)
                    && (filter.url_prefix.as_ref()).is_none_or(|begin| page.url.starts_with(begin))
                    && filter.before.is_none_or(|before| page.id.0 < before)
                    && match filter.owner {
                        Some(Owner::Crawl(crawl)) => page.crawl == crawl,
                        Some(Owner::Snapshot(id)) => page.id == id,
                        None => true,
                    }
            };
            let limit = match filter.limit {
                0 => usize::MAX,
                limit => limit as usize,
            };
            Ok(self.0.iter().rev().filter(fits).take(limit).cloned().collect())
        }

        async fn fetch(&self, _page: &Snapshot) -> Result<(), Failure> {
            Ok(())
        }
    }

    /// A page of second `time`, whose recording has these URLs; the first is its own.
    fn page(top: &Path, id: i64, crawl: i64, time: i64, urls: &[&str]) -> Snapshot {
        let directory = top.join(format!("s{id}"));
        fs::create_dir_all(directory.join("wacz")).unwrap();
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(directory.join("wacz/page.wacz")).unwrap();
        let mut recording = Recording::create(file, &About::default()).unwrap();
        for url in urls {
            let exchange = Exchange {
                url: (*url).to_owned(),
                method: "GET".to_owned(),
                time: Timestamp::from_second(time).unwrap(),
                request: Vec::new(),
                posted: None,
                status: 200,
                reason: format!("s{id}"),
                response: Vec::new(),
                protocols: Vec::new(),
                address: None,
                kind: "other".to_owned(),
                truncated: None,
            };
            recording.add(&exchange, &mut &b""[..], 0).unwrap();
        }
        recording.finish().unwrap();
        Snapshot {
            crawl: CrawlId(crawl),
            url: urls[0].to_owned(),
            status: Lifecycle::Sealed,
            visited_at: Time(time * 1000),
            directory: Some(directory.display().to_string()),
            ..sample::snapshot(id)
        }
    }

    #[tokio::test]
    async fn links_and_missing_resources_are_looked_for_in_the_archive() {
        let top = tempfile::tempdir().unwrap();
        let of = |id, crawl, time, urls: &[&str]| page(top.path(), id, crawl, time, urls);
        let rows = vec![
            of(1, 1, 1000, &["http://a.test/b", "http://a.test/old.css"]),
            of(2, 2, 2000, &["http://a.test/", "http://a.test/own.css"]),
            of(3, 2, 2010, &["http://a.test/b", "http://a.test/shared.css"]),
            of(4, 2, 2020, &["http://b.test/", "http://a.test/other-site.css"]),
            of(5, 3, 9000, &["http://a.test/b", "http://a.test/new.css"]),
        ];
        let first = Located::of(&rows[1]).unwrap();
        let file = open(&first).unwrap();
        let looked_for = Arc::new(Mutex::new(Vec::new()));
        let rows = Rows(rows, looked_for.clone());
        let archive = Archive::new(rows, &first, file);
        let archive = Arc::new(archive);
        let find = async |url: &'static str| {
            let archive = archive.clone();
            let found = tokio::task::spawn_blocking(move || {
                let wanted = Wanted {
                    url,
                    method: "GET",
                    posted: None,
                    near: Timestamp::from_second(2000).unwrap(),
                };
                archive.find(&wanted)
            });
            let answer = found.await.unwrap()?;
            Some((answer.stored.unwrap().reason, answer.fit))
        };
        let of = |id: &str, fit| Some((id.to_owned(), fit));
        let own = of("s2", Match::Exact);
        assert_eq!(find("http://a.test/own.css").await, own);
        assert_eq!(looked_for.lock().unwrap().len(), 0);
        // In the recording of a page of the same crawl and host alone.
        let neighbour = of("s3", Match::Fuzzy(NEIGHBOUR));
        assert_eq!(find("http://a.test/shared.css").await, neighbour);
        for missing in ["http://a.test/other-site.css", "http://a.test/new.css"] {
            assert_eq!(find(missing).await, None, "{missing}");
        }
        // A link leads to the snapshot that is nearest in time, over the scheme of the link.
        assert_eq!(find("http://a.test/b").await, of("s3", Match::Exact));
        assert_eq!(find("https://b.test/").await, of("s4", Match::Fuzzy("key")));
        // What is not there is looked for once.
        looked_for.lock().unwrap().clear();
        assert_eq!(find("http://a.test/new.css").await, None);
        assert_eq!(looked_for.lock().unwrap().len(), 0);
    }
}
