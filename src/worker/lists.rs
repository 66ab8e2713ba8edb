//! The lists of an archive and the pages about its snapshots, compared with what the orchestrator knows,
//! for `archivist fsck`. What is wrong is rebuilt by the functions that workers use.

pub use crate::page::archive_index::flaw_of_snapshot;

use crate::WorkerError;
use crate::files::write::replace;
use crate::page::archive_index::{ArchiveIndex, ListOfPages};
use crate::page::groups::lists_of;
use crate::page::pages::{below, day_of, entry_of, existing_files, version_of};
use crate::page::versions::{self, list_of};
use crate::page::{ListKind, SnapshotPage};
use archivist_core::model::{CrawlId, without_userinfo};
use archivist_plugin::Directory;
use archivist_shared::bus::documents::report::{HookResult, Snapshot};
use archivist_shared::id_marks::is_day;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the page about a snapshot, and of the first page of each list.
pub const PAGE: &str = "index.html";

pub struct Lists {
    archive: PathBuf,
    lists: BTreeMap<String, ListOfPages>,
    /// Directories of crawls, relative to that of the archive.
    crawls: BTreeMap<CrawlId, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListName {
    /// The list of a day, crawl, site, tag or URL.
    Of(String),
    /// The newest snapshots of the archive, and its days.
    Newest,
}

/// A file of a list that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListProblem {
    pub list: ListName,
    pub path: PathBuf,
    /// The problem as a sentence.
    pub what: String,
}

impl Lists {
    /// Starts with the lists of an archive without snapshots.
    pub fn new(archive: &Path) -> Lists {
        Lists { archive: archive.to_owned(), lists: BTreeMap::new(), crawls: BTreeMap::new() }
    }

    /// Notes a crawl, whose list is in its directory.
    pub fn add_crawl(&mut self, id: CrawlId, directory: &Path) {
        let below = below(&self.archive, directory).filter(|_| directory.is_dir());
        self.crawls.extend(below.map(|directory| (id, directory)));
    }

    /// Notes a sealed snapshot, which must be on the lists of its day, crawl, site, tags and URL.
    pub fn add(&mut self, snapshot: &Snapshot, results: &[HookResult]) {
        let page = self.page(snapshot, results);
        let Some(entry) = entry_of(&page) else {
            return;
        };
        let day = day_of(&entry);
        // All lists share one entry: an archive may have a million.
        let entry = Arc::new(version_of(&page, &entry, &directory_of(snapshot)));
        let mut add = |name: String, kind, directory: String| {
            let list = self.lists.entry(name.clone()).or_insert(ListOfPages {
                name,
                kind,
                directory,
                entries: Vec::new(),
            });
            list.entries.push(entry.clone());
        };
        let of_url = list_of(&page.url);
        add(of_url.clone(), ListKind::Url, versions::directory_of(&of_url));
        if let (Some(crawl), Some(directory)) = (page.crawl, page.crawl_directory) {
            let name = crawl.to_string();
            add(name.clone(), ListKind::Crawl(name), directory);
        }
        add(day.clone(), ListKind::Day(day.clone()), day);
        lists_of(&entry).for_each(|(name, kind, directory)| add(name, kind, directory));
    }

    /// Compares the lists. Workers wait while one of them is compared.
    ///
    /// # Errors
    /// If the directory of the lists cannot be read.
    pub fn problems(&self) -> Result<Vec<ListProblem>, WorkerError> {
        let mut problems = Vec::new();
        let (days, of_groups, of_urls) = {
            let index = ArchiveIndex::look(&self.archive)?;
            (index.days()?, index.lists_of_groups()?, index.lists_of_urls()?)
        };
        let days = days.iter().filter(|day| self.archive.join(day).is_dir());
        let unknown =
            days.chain(&of_groups).chain(&of_urls).filter(|name| !self.lists.contains_key(*name));
        let unknown: Vec<ListOfPages> = unknown.map(|name| without_rows(name)).collect();
        // A URL with one snapshot needs no list.
        let is_due = |list: &&ListOfPages| {
            list.kind != ListKind::Url || list.entries.len() > 1 || of_urls.contains(&list.name)
        };
        for list in self.lists.values().filter(is_due).chain(&unknown) {
            let flaws = ArchiveIndex::look(&self.archive)?.flaws(list)?;
            let name = || ListName::Of(list.name.clone());
            problems.extend(flaws.into_iter().map(|(path, what)| ListProblem {
                list: name(),
                path,
                what,
            }));
        }
        let mut of_newest = ArchiveIndex::look(&self.archive)?.flaws_of_newest()?;
        let is_of_day = |problem: &ListProblem| match &problem.list {
            ListName::Of(name) => is_day(name),
            ListName::Newest => false,
        };
        if of_newest.is_empty() && problems.iter().any(is_of_day) {
            let what = "the lists that it is made of are not right";
            of_newest.push((self.archive.join(PAGE), what.to_owned()));
        }
        problems.extend(of_newest.into_iter().map(|(path, what)| ListProblem {
            list: ListName::Newest,
            path,
            what,
        }));
        Ok(problems)
    }

    /// Rebuilds a list. That of the newest snapshots is made of those of the days, so it is the last
    /// to be written.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn write(&self, name: &ListName) -> Result<(), WorkerError> {
        let index = ArchiveIndex::open(&self.archive)?;
        match name {
            ListName::Newest => index.rebuild_newest(),
            ListName::Of(name) => match self.lists.get(name) {
                Some(list) => index.rebuild(list),
                None => index.rebuild(&without_rows(name)),
            },
        }
    }

    /// Rebuilds the page about a snapshot.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_page(
        &self,
        snapshot: &Snapshot,
        results: &[HookResult],
    ) -> Result<(), WorkerError> {
        let path = directory_of(snapshot);
        let own = Directory::open(&path).map_err(|source| WorkerError::File {
            verb: "open",
            path,
            source,
        })?;
        replace(&own, PAGE, &self.page(snapshot, results).render())
    }

    fn page(&self, snapshot: &Snapshot, results: &[HookResult]) -> SnapshotPage {
        let directory = directory_of(snapshot);
        SnapshotPage {
            id: snapshot.id,
            url: without_userinfo(&snapshot.url),
            title: snapshot.title.clone(),
            crawl: Some(snapshot.crawl),
            depth: snapshot.depth,
            tags: snapshot.tags.clone(),
            added_at: Some(snapshot.created_at),
            archived_at: snapshot.ended_at.unwrap_or(snapshot.created_at),
            visited_at: snapshot.visited_at,
            http_status: snapshot.http_status,
            unsaved: snapshot.unsaved,
            results: match Directory::open(&directory) {
                Ok(own) => existing_files(&own, results),
                Err(_) => results.to_vec(),
            },
            directory: below(&self.archive, &directory),
            crawl_directory: self.crawls.get(&snapshot.crawl).cloned(),
        }
    }
}

/// The list of a day, site, tag or URL of which no row has a snapshot.
fn without_rows(name: &str) -> ListOfPages {
    let kind = ListKind::of_name(name);
    let directory = match &kind {
        ListKind::Url => versions::directory_of(name),
        ListKind::Of(group, text) => group.directory_of(text).unwrap_or_default(),
        _ => name.to_owned(),
    };
    ListOfPages { name: name.to_owned(), kind, directory, entries: Vec::new() }
}

fn directory_of(snapshot: &Snapshot) -> PathBuf {
    PathBuf::from(snapshot.directory.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{Lifecycle, Owner, ResultState, SnapshotId, Time};
    use archivist_shared::bus::documents::report::File;
    use std::fs;

    fn snapshot(archive: &Path, id: i64) -> Snapshot {
        let directory = archive.join(format!("20261121/a.test/s{id}"));
        fs::create_dir_all(directory.join("screenshot")).unwrap();
        fs::write(directory.join("screenshot/thumbnail.png"), "x").unwrap();
        Snapshot {
            id: SnapshotId(id),
            crawl: CrawlId(3),
            url: format!("https://me:secret@a.test/{id}"),
            title: Some(format!("Title <{id}>")),
            depth: 0,
            parent: None,
            status: Lifecycle::Sealed,
            reason: None,
            tags: vec!["read/ing".into()],
            bookmarked_at: None,
            visited_at: Time(id),
            created_at: Time(id),
            started_at: Some(Time(id)),
            ended_at: Some(Time(1000 + id)),
            retry_at: None,
            attempts: 1,
            results: Default::default(),
            uses: Default::default(),
            directory: Some(directory.to_str().unwrap().to_owned()),
            current_step: None,
            http_status: Some(200),
            unsaved: None,
            config: Default::default(),
            node: None,
            older_copies: Vec::new(),
            pinned: false,
            recording: None,
            replay: None,
            missing: Vec::new(),
        }
    }

    fn results(id: i64) -> Vec<HookResult> {
        vec![HookResult {
            id: None,
            owner: Owner::Snapshot(SnapshotId(id)),
            plugin: "screenshot".into(),
            hook: "hook".into(),
            status: ResultState::Succeeded,
            output: None,
            error: None,
            files: vec![File {
                path: "thumbnail.png".into(),
                mimetype: "image/png".into(),
                size: 1,
            }],
            size: 1,
            attempts: 1,
            started_at: None,
            ended_at: None,
            figures: Default::default(),
        }]
    }

    /// All lists and pages are missing; they are written from the rows alone.
    #[test]
    fn pages_and_lists_are_written_from_rows() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        let crawl = archive.join("20261121/a.test/c3");
        fs::create_dir_all(&crawl).unwrap();
        let mut lists = Lists::new(archive);
        lists.add_crawl(CrawlId(3), &crawl);
        lists.add_crawl(CrawlId(4), &archive.join("20261121/a.test/c4"));
        for id in 1..=2 {
            let row = snapshot(archive, id);
            lists.add(&row, &results(id));
            let directory = directory_of(&row);
            assert!(flaw_of_snapshot(&directory).unwrap().is_some());
            lists.write_page(&row, &results(id)).unwrap();
            assert_eq!(flaw_of_snapshot(&directory).unwrap(), None);
            let page = fs::read_to_string(directory.join(PAGE)).unwrap();
            assert!(page.contains("Title &lt;1&gt;") || page.contains("Title &lt;2&gt;"));
            assert!(!page.contains("secret"), "{page}");
            fs::write(directory.join(PAGE), &page[..page.len() / 2]).unwrap();
            assert!(flaw_of_snapshot(&directory).unwrap().is_some());
        }
        let problems = lists.problems().unwrap();
        let what = |problem: &ListProblem| (problem.list.clone(), problem.what.clone());
        let of = |name: &str| ListName::Of(name.to_owned());
        assert_eq!(
            problems.iter().map(what).collect::<Vec<_>>(),
            [
                (of("20261121"), "it lacks s1 and 1 other".to_owned()),
                (of("c3"), "it lacks s1 and 1 other".to_owned()),
                (of("site-a.test"), "it lacks s1 and 1 other".to_owned()),
                (of("tag-read%2Fing"), "it lacks s1 and 1 other".to_owned()),
                (ListName::Newest, "the lists that it is made of are not right".to_owned()),
            ]
        );
        assert!(!archive.join(".index").exists(), "nothing is changed");
        for problem in &problems {
            lists.write(&problem.list).unwrap();
        }
        assert_eq!(lists.problems().unwrap(), []);
        let (day, crawl) = ("20261121/index.html", "20261121/a.test/c3/index.html");
        let (site, tag) = ("sites/a.test/index.html", "tags/read%2Fing/index.html");
        for name in ["index.html", day, crawl, site, tag] {
            let list = fs::read_to_string(archive.join(name)).unwrap();
            assert!(list.contains("s2/screenshot/thumbnail.png"), "{name}: {list}");
        }
        let links = |page: &str| fs::read_to_string(archive.join(page)).unwrap();
        assert!(links("index.html").contains("./tags.html"), "{}", links("index.html"));
        assert!(links("sites.html").contains("./sites/a.test/index.html"));
        assert!(links("tags.html").contains(">read/ing</bdi>"));
        assert!(links("tags.html").contains("./tags/read%252Fing/index.html"));
    }

    #[test]
    fn list_of_a_url_is_written_from_rows() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        let mut lists = Lists::new(archive);
        for (id, started) in [(1, 5), (2, 3), (3, 4)] {
            let mut row = snapshot(archive, id);
            row.started_at = Some(Time(started));
            if id < 3 {
                row.url = "https://me:secret@a.test/".to_owned();
            }
            lists.write_page(&row, &results(id)).unwrap();
            lists.add(&row, &results(id));
        }
        let name = list_of("https://a.test/");
        let of_url = ListName::Of(name.clone());
        let problems = lists.problems().unwrap();
        let found = problems.iter().find(|problem| problem.list == of_url);
        assert_eq!(found.unwrap().what, "it lacks s1 and 1 other");
        for problem in &problems {
            lists.write(&problem.list).unwrap();
        }
        assert_eq!(lists.problems().unwrap(), []);
        let shown = archive.join(versions::directory_of(&name));
        let links = fs::read_to_string(shown.join("s1.html")).unwrap();
        assert!(links.contains("/s2/index.html"), "s2 is older: {links}");
        assert_eq!(fs::read_dir(archive.join("urls")).unwrap().count(), 1);
        // A list that no row has is one of rows that were lost.
        let lost = Lists::new(archive);
        fs::remove_file(shown.join("s1.html")).unwrap();
        let problems = lost.problems().unwrap();
        assert_eq!(problems[0].list, of_url);
        lost.write(&of_url).unwrap();
        assert_eq!(fs::read_to_string(shown.join("s1.html")).unwrap(), links);
    }
}
