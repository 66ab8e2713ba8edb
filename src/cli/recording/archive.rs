//! Answers of the whole archive to the requests of a replay.
//!
//! The index of the archive is the list of snapshots by URL, which the orchestrator has, and the
//! index in the recording of each: only what a page asks for is opened. A link is answered by the
//! snapshot of its URL that is nearest in time to the page shown first. What a page needs and its own
//! recording lacks, because the browser had it already, is looked for in recordings of the same crawl
//! and host that were made shortly before or after.

use super::finder::{Finder, Place};
use archivist_core::lock;
use archivist_core::model::{SnapshotId, is_web};
use archivist_hooks::replay::{Answer, Answers};
use archivist_warc::lookup::{ID, Index, Match, Wanted};
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// Recordings of pages that are open: each has a file and an index in memory.
const OPEN_MAX: usize = 200;
/// URLs without a snapshot that are remembered.
const UNKNOWN_MAX: usize = 10_000;
/// The rule for answers from recordings of neighbours.
const NEIGHBOUR: &str = "recording of another page";

pub struct Archive<S> {
    finder: S,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The recordings of the pages that were shown.
    pages: Index,
    opened: BTreeSet<SnapshotId>,
    /// Files of the pages: those that were imported have several pages.
    files: BTreeSet<usize>,
    /// The page that was opened last.
    current: Option<SnapshotId>,
    neighbours: Index,
    /// The page whose neighbours are open.
    around: Option<SnapshotId>,
    /// URLs of which there is no snapshot.
    unknown: BTreeSet<String>,
}

impl<S: Finder> Archive<S> {
    /// Returns the archive in which `file` is the recording of the page that is shown first.
    pub fn new(finder: S, first: Place, file: Arc<Wacz>) -> Archive<S> {
        let mut state = State::default();
        state.add(first, file);
        Archive { finder, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Opens the recording of the snapshot of a URL that is nearest in time. Returns whether one was
    /// opened.
    fn open_page(&self, url: &str, near: Timestamp) -> Result<bool, String> {
        for page in self.finder.pages(url, near)? {
            if self.state().opened.contains(&page) {
                return Ok(false);
            }
            let Some(place) = self.finder.place(page)? else {
                continue;
            };
            if self.state().notes(place) {
                return Ok(false);
            }
            if let Some(file) = self.open(place) {
                self.state().add(place, file);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens recordings around the page that was opened last. Returns whether they are not those
    /// that were open before.
    fn open_neighbours(&self) -> Result<bool, String> {
        let (current, around) = {
            let state = self.state();
            (state.current, state.around)
        };
        let Some(id) = current.filter(|_| current != around) else {
            return Ok(false);
        };
        let places = self.finder.around(id)?;
        let files: BTreeMap<_, _> = places.into_iter().map(|place| (place.file, place)).collect();
        let open_files = self.state().files.clone();
        let mut index = Index::new();
        let closed = files.into_values().filter(|place| !open_files.contains(&place.file));
        closed.filter_map(|place| self.open(place)).for_each(|file| index.add(file));
        let mut state = self.state();
        state.neighbours = index;
        state.around = current;
        Ok(true)
    }

    /// Opens a recording; `None` if it cannot be read.
    fn open(&self, place: Place) -> Option<Arc<Wacz>> {
        let opened = self.finder.open(place);
        opened.inspect_err(|error| self.finder.warn(error)).ok().map(Arc::new)
    }

    /// Returns what a look-up has found: one that fails has found nothing.
    fn found(&self, looked: Result<bool, String>) -> bool {
        looked.unwrap_or_else(|error| {
            self.finder.warn(&error);
            false
        })
    }
}

impl State {
    fn add(&mut self, place: Place, file: Arc<Wacz>) {
        if self.files.len() >= OPEN_MAX {
            self.pages = Index::new();
            self.files.clear();
            self.opened.clear();
        }
        self.pages.add(file);
        self.files.insert(place.file);
        self.notes(place);
    }

    /// Notes that a page was opened, if its file is open. Returns whether it is.
    fn notes(&mut self, place: Place) -> bool {
        let is_open = self.files.contains(&place.file);
        if is_open {
            self.opened.insert(place.page);
            self.current = Some(place.page);
        }
        is_open
    }

    fn of_page(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        Answers::find(&self.pages, wanted)
    }

    fn of_neighbours(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        // In the recording of another page, another id is that of something else.
        let found = Answers::find(&self.neighbours, wanted);
        let answer = found.filter(|answer| answer.fit != Match::Fuzzy(ID))?;
        Some(Answer { fit: Match::Fuzzy(NEIGHBOUR), ..answer })
    }
}

impl<S: Finder> Answers for Archive<S> {
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let own = self.state().of_page(wanted);
        // What a recording has of its own page is in no other.
        if !is_web(wanted.url) || own.as_ref().is_some_and(|answer| answer.fit == Match::Exact) {
            return own;
        }
        if wanted.method == "GET" && !self.state().unknown.contains(wanted.url) {
            if self.found(self.open_page(wanted.url, wanted.near)) {
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
                let is_new = self.found(self.open_neighbours());
                is_new.then(|| self.state().of_neighbours(wanted)).flatten()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Failure;
    use crate::recording::finder::{LocalFinder, Snapshots};
    use crate::recording::recordings::Located;
    use crate::sample;
    use archivist_core::model::{CrawlId, Lifecycle, Owner, Time};
    use archivist_shared::bus::documents::report::{Filter, Snapshot};
    use archivist_warc::exchange::Exchange;
    use archivist_warc::wacz::{About, Recording};
    use std::fs::{self, File};
    use std::path::Path;

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
        let path = Located::of(&rows[1]).unwrap().path;
        let looked_for = Arc::new(Mutex::new(Vec::new()));
        let finder = LocalFinder::new(Rows(rows, looked_for.clone()), path);
        let first = Place { page: SnapshotId(2), file: 0 };
        let file = Arc::new(finder.open(first).unwrap());
        let archive = Arc::new(Archive::new(finder, first, file));
        let find = async |url: &'static str| {
            let archive = archive.clone();
            let found = tokio::task::spawn_blocking(move || {
                let wanted = Wanted {
                    url,
                    method: "GET",
                    posted: None,
                    range: None,
                    near: Timestamp::from_second(2000).unwrap(),
                    redirected: None,
                    given: 0,
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
