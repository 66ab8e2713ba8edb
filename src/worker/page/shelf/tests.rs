//! Lists of a real directory: every link leads somewhere, however many there are.

use super::*;
use archivist_core::model::{SnapshotId, Time};
use std::fs;

struct Bed {
    directory: tempfile::TempDir,
}

impl Bed {
    fn new() -> Bed {
        Bed {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn archive(&self) -> &Path {
        self.directory.path()
    }

    /// Archives a snapshot of a day and puts it on all lists.
    fn add(&self, day: &str, id: i64, known: Option<usize>) -> Place {
        let directory = format!("{day}/example.com/s{id}");
        let path = self.archive().join(&directory);
        fs::create_dir_all(path.join("screenshot")).unwrap();
        fs::write(path.join("index.html"), "").unwrap();
        let entry = Entry {
            id: SnapshotId(id),
            url: format!("https://example.com/{id}"),
            title: Some(format!("title {id}")),
            archived_at: Time(id),
            directory,
            screenshot: None,
            succeeded: 1,
            failed: 0,
        };
        let shelf = Shelf::open(self.archive()).unwrap();
        let kind = Kind::Day(day.to_owned());
        let place = shelf.put(day, kind, day, &entry, known).unwrap();
        shelf.put_first(&entry, day, place.total).unwrap();
        place
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.archive().join(name)).unwrap()
    }

    /// Ids of the snapshots on a page, from the top.
    fn on(&self, name: &str) -> Vec<i64> {
        let text = self.read(name);
        let links = text.split("example.com/s").skip(1);
        let ids = links.map(|rest| rest.split('/').next().unwrap().parse().unwrap());
        ids.collect()
    }

    /// Follows every link of every page of the lists.
    fn check_links(&self, page: &Path, seen: &mut Vec<PathBuf>) {
        if seen.iter().any(|known| known == page) {
            return;
        }
        seen.push(page.to_owned());
        for rest in fs::read_to_string(page).unwrap().split("href=\"").skip(1) {
            let target = page.parent().unwrap().join(rest.split('"').next().unwrap());
            let target = target
                .canonicalize()
                .unwrap_or_else(|_| panic!("{} links to {}", page.display(), target.display()));
            self.check_links(&target, seen);
        }
    }
}

#[test]
fn pages_of_a_hundred_and_no_dead_link() {
    let bed = Bed::new();
    let mut seen = 0;
    for id in 1..=305 {
        let place = bed.add("20261121", id, None);
        assert_eq!(
            (place.page, place.total),
            ((id as usize - 1) / 100 + 1, id as usize)
        );
        if [1, 2, 100, 101, 102, 200, 201, 301, 305].contains(&id) {
            let mut pages = Vec::new();
            bed.check_links(
                &bed.archive().join("index.html").canonicalize().unwrap(),
                &mut pages,
            );
            // Every snapshot can be reached from the first page.
            let found = pages
                .iter()
                .filter(|page| page.to_str().unwrap().contains("/s"))
                .count();
            assert_eq!(found, id as usize);
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
    assert_eq!(
        bed.on("20261121/index.html"),
        (206..=305).rev().collect::<Vec<i64>>()
    );
    assert_eq!(
        bed.on("20261121/page-1.html"),
        (1..=100).rev().collect::<Vec<i64>>()
    );
    assert_eq!(bed.on("index.html"), bed.on("20261121/index.html"));
    assert!(
        bed.read("index.html")
            .contains("305 snapshots, the newest 100")
    );
}

#[test]
fn one_that_is_archived_again_keeps_its_place() {
    let bed = Bed::new();
    let first = bed.add("20261121", 1, None).page;
    for id in 2..=250 {
        bed.add("20261121", id, None);
    }
    let again = bed.add("20261121", 1, Some(first));
    assert_eq!((again.page, again.total), (1, 250));
    assert_eq!(bed.on("20261121/page-1.html").len(), 100);
    assert_eq!(
        bed.on("index.html")[..2],
        [1, 250],
        "the newest of the archive"
    );
    // What a hook wrote in our name leads to a place of its own snapshot at most.
    for wrong in [Some(2), Some(0), Some(usize::MAX)] {
        assert_eq!(bed.add("20261121", 250, wrong).total, 250);
    }
}

#[test]
fn days_and_what_is_gone() {
    let bed = Bed::new();
    for day in 1..=20 {
        bed.add(&format!("202611{day:02}"), day, None);
    }
    assert!(bed.read("index.html").contains("All days"));
    assert!(bed.read("days.html").contains("2026-11-01"));
    bed.check_links(
        &bed.archive().join("index.html").canonicalize().unwrap(),
        &mut Vec::new(),
    );
    fs::remove_dir_all(bed.archive().join("20261119")).unwrap();
    bed.add("20261120", 21, None);
    assert!(!bed.read("index.html").contains("2026-11-19"));
    assert_eq!(
        bed.on("index.html"),
        [21, 20]
            .into_iter()
            .chain((1..=18).rev())
            .collect::<Vec<i64>>()
    );
}

#[test]
fn two_at_once_lose_nothing() {
    let bed = Bed::new();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let bed = &bed;
            scope.spawn(move || {
                for n in 1..=30 {
                    bed.add("20261121", worker * 100 + n, None);
                }
            });
        }
    });
    assert_eq!(bed.on("20261121/index.html").len(), 100);
    assert!(bed.read("index.html").contains("120 snapshots"));
    let unique: std::collections::BTreeSet<i64> = ["20261121/index.html", "20261121/page-1.html"]
        .iter()
        .flat_map(|name| bed.on(name))
        .collect();
    assert_eq!(unique.len(), 120);
}

#[test]
fn a_broken_list_is_begun_anew() {
    let bed = Bed::new();
    bed.add("20261121", 1, None);
    fs::write(bed.archive().join(".index/20261121/1.json"), "{").unwrap();
    fs::write(bed.archive().join(".index/newest.json"), "").unwrap();
    assert_eq!(bed.add("20261121", 2, None).total, 1);
    assert_eq!(bed.on("index.html"), [2]);
}

/// `cargo test --release -- --ignored cost --nocapture` says what it costs; it is the same for the
/// first and the last of a day.
#[test]
#[ignore = "a measurement"]
fn cost_of_ten_thousand_in_a_day() {
    let bed = Bed::new();
    let mut start = std::time::Instant::now();
    for id in 1..=10_000 {
        bed.add("20261121", id, None);
        if id % 1000 == 0 {
            println!("{id}: {:.2} ms each", start.elapsed().as_secs_f64());
            start = std::time::Instant::now();
        }
    }
}
