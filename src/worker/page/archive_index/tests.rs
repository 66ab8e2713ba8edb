//! Tests of lists in a real directory: every link leads to an existing file.

use super::*;
use archivist_core::model::{SnapshotId, Time};
use archivist_plugin::files::remove::remove_tree;
use std::fs;

pub(super) struct ListPosition {
    pub page: usize,
    pub total: usize,
}

pub(super) struct TestArchive {
    directory: tempfile::TempDir,
}

impl TestArchive {
    pub(super) fn new() -> TestArchive {
        TestArchive { directory: tempfile::tempdir().unwrap() }
    }

    pub(super) fn archive(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a snapshot of a day and adds it to all lists.
    pub(super) fn add(&self, day: &str, id: i64, known: Option<usize>) -> ListPosition {
        let directory = format!("{day}/example.com/s{id}");
        let path = self.archive().join(&directory);
        fs::create_dir_all(path.join("screenshot")).unwrap();
        fs::write(path.join("index.html"), "").unwrap();
        let entry = ListEntry {
            id: SnapshotId(id),
            url: format!("https://example.com/{id}"),
            title: Some(format!("title {id}")),
            archived_at: Time(id),
            visited_at: None,
            directory,
            screenshot: None,
            succeeded: 1,
            failed: 0,
            unsaved: None,
            tags: Vec::new(),
            partial: false,
            version: None,
        };
        let index = ArchiveIndex::open(self.archive()).unwrap();
        let kind = ListKind::Day(day.to_owned());
        let added = index.add_all(day, kind, day, &[(&entry, known)]).unwrap();
        index.add_newest(&[&entry], day, added.total).unwrap();
        ListPosition { page: added.pages[0], total: added.total }
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.archive().join(name)).unwrap()
    }

    /// Ids of the snapshots on a page, from top to bottom.
    pub(super) fn on(&self, name: &str) -> Vec<i64> {
        let text = self.read(name);
        let links = text.split("example.com/s").skip(1);
        let ids = links.map(|rest| rest.split('/').next().unwrap().parse().unwrap());
        ids.collect()
    }

    /// Follows every link of every list page.
    fn check_links(&self, page: &Path, seen: &mut Vec<PathBuf>) {
        if seen.iter().any(|known| known == page) {
            return;
        }
        seen.push(page.to_owned());
        for rest in fs::read_to_string(page).unwrap().split("href=\"").skip(1) {
            let link = page.parent().unwrap().join(rest.split('"').next().unwrap());
            let target = link
                .canonicalize()
                .unwrap_or_else(|_| panic!("{} links to {}", page.display(), link.display()));
            self.check_links(&target, seen);
        }
    }
}

/// A page that was imported is as old as its visit.
#[test]
fn first_page_has_the_order_and_the_dates_of_visits() {
    const DAY: i64 = 86_400_000;
    let archive = TestArchive::new();
    let day = "20261121";
    for (id, visited) in [(1, Some(20_000 * DAY)), (2, Some(15_000 * DAY)), (3, None)] {
        archive.add(day, id, None);
        let index = ArchiveIndex::open(archive.archive()).unwrap();
        let entries = read_chunk(&index.chunks(day), 1);
        let entry = ListEntry {
            visited_at: visited.map(Time),
            archived_at: Time(20_001 * DAY),
            ..entries.into_iter().next_back().unwrap()
        };
        index.add_newest(&[&entry], day, 1).unwrap();
    }
    assert_eq!(archive.on("index.html"), [3, 1, 2]);
    let text = archive.read("index.html");
    for date in ["2024-10-05", "2024-10-04", "2011-01-26"] {
        assert!(text.contains(date), "{date}");
    }
}

#[test]
fn lists_have_pages_of_a_hundred_and_no_dead_links() {
    let archive = TestArchive::new();
    let mut seen = 0;
    for id in 1..=305 {
        let position = archive.add("20261121", id, None);
        assert_eq!((position.page, position.total), ((id as usize - 1) / 100 + 1, id as usize));
        if [1, 2, 100, 101, 102, 200, 201, 301, 305].contains(&id) {
            let mut pages = Vec::new();
            archive.check_links(
                &archive.archive().join("index.html").canonicalize().unwrap(),
                &mut pages,
            );
            // Every snapshot is reachable from the first page.
            let found = pages.iter().filter(|page| page.to_str().unwrap().contains("/s")).count();
            assert_eq!(found, id as usize);
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
    assert_eq!(archive.on("20261121/index.html"), (206..=305).rev().collect::<Vec<i64>>());
    assert_eq!(archive.on("20261121/page-1.html"), (1..=100).rev().collect::<Vec<i64>>());
    assert_eq!(archive.on("index.html"), archive.on("20261121/index.html"));
    assert!(archive.read("index.html").contains("305 snapshots, the newest 100"));
}

#[test]
fn snapshot_that_is_archived_again_keeps_its_position() {
    let archive = TestArchive::new();
    let first = archive.add("20261121", 1, None).page;
    for id in 2..=250 {
        archive.add("20261121", id, None);
    }
    let again = archive.add("20261121", 1, Some(first));
    assert_eq!((again.page, again.total), (1, 250));
    assert_eq!(archive.on("20261121/page-1.html").len(), 100);
    assert_eq!(archive.on("index.html")[..2], [250, 249], "a retry of a hook is no visit");
    // A position that a hook forged does not damage the list.
    for wrong in [Some(2), Some(0), Some(usize::MAX)] {
        assert_eq!(archive.add("20261121", 250, wrong).total, 250);
    }
}

#[test]
fn removed_days_disappear_from_the_index() {
    let archive = TestArchive::new();
    for day in 1..=20 {
        archive.add(&format!("202611{day:02}"), day, None);
    }
    assert!(archive.read("index.html").contains("All days"));
    assert!(archive.read("days.html").contains("2026-11-01"));
    archive.check_links(
        &archive.archive().join("index.html").canonicalize().unwrap(),
        &mut Vec::new(),
    );
    remove_tree(&archive.archive().join("20261119")).unwrap();
    archive.add("20261120", 21, None);
    assert!(!archive.read("index.html").contains("2026-11-19"));
    assert_eq!(
        archive.on("index.html"),
        [21, 20].into_iter().chain((1..=18).rev()).collect::<Vec<i64>>()
    );
}

#[test]
fn concurrent_writers_lose_no_entries() {
    let archive = TestArchive::new();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let archive = &archive;
            scope.spawn(move || {
                for n in 1..=30 {
                    archive.add("20261121", worker * 100 + n, None);
                }
            });
        }
    });
    assert_eq!(archive.on("20261121/index.html").len(), 100);
    assert!(archive.read("index.html").contains("120 snapshots"));
    let unique: std::collections::BTreeSet<i64> = ["20261121/index.html", "20261121/page-1.html"]
        .iter()
        .flat_map(|name| archive.on(name))
        .collect();
    assert_eq!(unique.len(), 120);
}

#[test]
fn unreadable_list_is_started_over() {
    let archive = TestArchive::new();
    archive.add("20261121", 1, None);
    fs::write(archive.archive().join(".index/20261121/1.json"), "{").unwrap();
    fs::write(archive.archive().join(".index/newest.json"), "").unwrap();
    assert_eq!(archive.add("20261121", 2, None).total, 1);
    assert_eq!(archive.on("index.html"), [2]);
}

/// `cargo test --release -- --ignored cost --nocapture` prints the cost, which is the same for the
/// first and the last snapshot of a day.
#[test]
#[ignore = "a measurement"]
fn cost_of_ten_thousand_in_a_day() {
    let archive = TestArchive::new();
    let mut start = std::time::Instant::now();
    for id in 1..=10_000 {
        archive.add("20261121", id, None);
        if id % 1000 == 0 {
            println!("{id}: {:.2} ms each", start.elapsed().as_secs_f64());
            start = std::time::Instant::now();
        }
    }
}
