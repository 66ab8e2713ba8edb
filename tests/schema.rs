//! Databases of every released schema still open, read and serve. A file `tests/schemas/N.sql` is
//! made when schema N is released and never edited.

use archivist_core::model::{
    CrawlId, Lifecycle, Outcome, Owner, ResultState, SnapshotId, Step, Time,
};
use archivist_orchestrator::store::{NewCrawl, NewSnapshot, Store, Tx};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::watches::HistoryFilter;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const NOW: Time = Time(1_800_000_000_000);

/// The frozen schemas: number and dump.
fn frozen() -> Vec<(usize, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let number = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        found.push((number, std::fs::read_to_string(path).unwrap()));
    }
    assert!(!found.is_empty());
    found
}

/// A database as its archivist left it.
fn thaw(directory: &Path, dump: &str) -> PathBuf {
    let path = directory.join("archivist.sqlite3");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(dump).unwrap();
    path
}

fn for_each_frozen(test: impl Fn(&Path, usize)) {
    for (number, dump) in frozen() {
        let directory = tempfile::tempdir().unwrap();
        test(&thaw(directory.path(), &dump), number);
    }
}

fn open(path: &Path) -> Store {
    let mut store = Store::open(path).unwrap_or_else(|error| panic!("{error}"));
    store
        .take_over("archivist-orchestrator.service", "boot", NOW)
        .unwrap();
    store
}

/// Everything in the schema, with its text but not its spaces.
fn schema(path: &Path) -> BTreeSet<String> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_master
               WHERE name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let texts = rows.map(|row| {
        row.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    texts.collect()
}

#[test]
fn a_dump_has_a_row_in_every_table() {
    for_each_frozen(|path, number| {
        let connection = Connection::open(path).unwrap();
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table'";
        let mut statement = connection.prepare(sql).unwrap();
        let names = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        for name in names.map(Result::unwrap) {
            let sql = format!("SELECT count(*) FROM {name}");
            let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert!(rows > 0, "schema {number}: {name} is empty");
        }
    });
}

#[test]
fn an_old_database_becomes_like_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let fresh = directory.path().join("fresh.sqlite3");
    drop(open(&fresh));
    for_each_frozen(|path, number| {
        drop(open(path));
        assert_eq!(schema(path), schema(&fresh), "from schema {number}");
    });
}

/// How often hooks of a plugin succeeded and failed.
fn uses(tx: &Tx<'_>, plugin: &str) -> (u64, u64) {
    let uses = tx.uses().unwrap()[plugin];
    (uses.succeeded, uses.failed)
}

#[test]
fn every_row_can_be_read() {
    for_each_frozen(|path, number| {
        let mut store = open(path);
        let tx = store.begin().unwrap();
        let all = Filter::default();
        let crawls = tx.list_crawls(&all).unwrap();
        assert_eq!(crawls.len(), 3);
        assert_eq!(crawls[2].tags, ["news"]);
        assert_eq!(crawls[2].plugins, ["wget", "title"]);
        assert_eq!(crawls[2].config["TIMEOUT"], "30");
        let binaries = tx.binaries().unwrap();
        for binary in &binaries {
            assert_eq!(binary.abspath, "/usr/bin/wget", "from schema {number}");
            assert_eq!(binary.env["WGETRC"], "/etc/wgetrc");
        }
        assert_eq!(binaries.len(), usize::from(number > 1));
        let snapshots = tx.list_snapshots(&all).unwrap();
        assert_eq!(snapshots.len(), 5);
        assert_eq!(snapshots[4].title.as_deref(), Some("Example ☂"));
        assert_eq!(snapshots[3].parent, Some(SnapshotId(1)));
        let results = tx.list_results(&all).unwrap();
        let states: BTreeSet<&str> = results.iter().map(|r| r.status.as_str()).collect();
        assert_eq!(states.len(), ResultState::ALL.len());
        let runs = tx.list_runs(&all).unwrap();
        let has = |outcome: Outcome| runs.iter().any(|run| run.outcome == Some(outcome.clone()));
        assert!(has(Outcome::Exit(0)) && has(Outcome::Signal(9)) && has(Outcome::Lost));
        assert!(has(Outcome::TimeLimit));
        let checks = tx.check_history("site", &HistoryFilter::default()).unwrap();
        assert_eq!(checks.len(), if number > 4 { 3 } else { 0 });
        for done in checks.iter().filter(|check| check.state == "done") {
            assert_eq!((done.ok, done.record.status_code), (Some(false), Some(408)));
            assert_eq!(done.outcome, Some(Outcome::Exit(0)));
        }
        let health = tx.health("site", "https://example.org/").unwrap();
        assert_eq!(health.down_since.is_some(), number > 4);
        assert_eq!(tx.started_checks().unwrap().len(), usize::from(number > 4));
        assert_eq!(uses(&tx, "wget"), (2, 0), "from schema {number}");
        assert_eq!(uses(&tx, "title"), (0, 1), "from schema {number}");
        assert_eq!(tx.open_runs().unwrap().len(), 3);
        assert_eq!(tx.tokens().unwrap().len(), 2);
    });
}

#[test]
fn work_goes_on_in_it() {
    for_each_frozen(|path, _| {
        let mut store = open(path);
        let tx = store.begin().unwrap();
        let retry = tx.step_crawl(CrawlId(1), Step::Retry, Some(NOW), None, NOW);
        assert_eq!(retry.unwrap(), Lifecycle::Queued);
        let config = BTreeMap::new();
        let crawl = tx.add_crawl(&NewCrawl {
            url: "https://new.example/",
            max_depth: 0,
            plugins: &[],
            config: &config,
            user: 1000,
            now: NOW,
        });
        let crawl = crawl.unwrap();
        assert_eq!(crawl, CrawlId(4), "no id is given twice");
        let page = NewSnapshot {
            url: "https://new.example/",
            host: "new.example",
            bookmarked_at: Some("2024-01-01"),
            ..NewSnapshot::default()
        };
        let added = tx.add_snapshots(crawl, None, &[page], NOW).unwrap();
        assert_eq!(added, [(SnapshotId(6), page.url.to_owned())]);
        let owner = Owner::Snapshot(SnapshotId(3));
        tx.fail_open_results(owner, "no", NOW).unwrap();
        tx.commit().unwrap();

        let tx = store.begin().unwrap();
        let count = |kind: &str, status: &str| tx.counts(kind, None).unwrap().get(status).copied();
        assert_eq!(count("crawl", "queued"), Some(2));
        assert_eq!(count("crawl", "sealed"), None);
        assert_eq!(count("snapshot", "queued"), Some(2));
        let of_crawl = tx.counts("result", Some(CrawlId(2))).unwrap();
        assert_eq!(of_crawl["failed"], 2);
        assert_eq!((uses(&tx, "wget"), uses(&tx, "title")), ((2, 1), (0, 2)));
        // What is run once more was used all the same.
        assert_eq!(tx.requeue_results(owner, None).unwrap(), 2);
        assert_eq!((uses(&tx, "wget"), uses(&tx, "title")), ((2, 1), (0, 2)));
    });
}
