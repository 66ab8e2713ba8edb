//! A database that an older version wrote opens, keeps its rows, and works on; one that a newer version wrote is
//! refused. No schema is released yet, so the newer one is invented.

use archivist_core::model::{
    CrawlId, Lifecycle, Owner, ResultState, SnapshotId, Step, Time, Verdict,
};
use archivist_orchestrator::database::schema::{MIGRATIONS, migrate, version};
use archivist_orchestrator::database::{Database, NewCrawl, NewSnapshot, OpenError, Tx};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

const NOW: Time = Time(1_800_000_000_000);
const PAGE: Owner = Owner::Snapshot(SnapshotId(1));

/// What a later version may want: another column, and values for the rows that are there.
const NEXT: &str = "
    ALTER TABLE crawl ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';
    UPDATE crawl SET colour = 'blue' WHERE url LIKE 'https://%';
";
const BROKEN: &str = "CREATE TABLE half (a TEXT); UPDATE no_such_table SET a = 1;";

fn open(path: &Path) -> Database {
    let mut store = Database::open(path).unwrap_or_else(|error| panic!("{error}"));
    store.take_over("archivist-orchestrator.service", "boot", NOW).unwrap();
    store
}

fn add(tx: &Tx<'_>) -> CrawlId {
    let crawl = NewCrawl {
        url: "https://a.example/",
        max_depth: 0,
        plugins: &[],
        config: &[("TIMEOUT".to_owned(), "30".to_owned())].into(),
        user: 1000,
        now: NOW,
    };
    let crawl = tx.add_crawl(&crawl).unwrap();
    let page =
        NewSnapshot { url: "https://a.example/", host: "a.example", ..NewSnapshot::default() };
    tx.add_snapshots(crawl, None, &[page], NOW).unwrap();
    crawl
}

/// A database of the newest schema with a crawl, its snapshot and two results.
fn filled(directory: &Path) -> PathBuf {
    let path = directory.join("archivist.sqlite3");
    let mut store = open(&path);
    let tx = store.begin().unwrap();
    let crawl = add(&tx);
    tx.tag_crawl(crawl, "news").unwrap();
    for (plugin, state) in [("wget", ResultState::Succeeded), ("title", ResultState::Failed)] {
        tx.start_result(PAGE, crawl, plugin, plugin, NOW).unwrap();
        let verdict = Verdict { state, error: None };
        tx.note_result(PAGE, crawl, plugin, plugin, &verdict, NOW).unwrap();
    }
    tx.commit().unwrap();
    path
}

fn with(next: &[&'static str]) -> Vec<&'static str> {
    [MIGRATIONS, next].concat()
}

fn colours(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT colour FROM crawl").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn next_version_keeps_every_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = filled(directory.path());
    let mut connection = Connection::open(&path).unwrap();
    let rows = |connection: &Connection| -> Vec<(String, i64)> {
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let mut statement = connection.prepare(names).unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let count = |name: String| {
            let sql = format!("SELECT count(*) FROM {name}");
            let count = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            (name, count)
        };
        names.map(Result::unwrap).map(count).collect()
    };
    let before = rows(&connection);
    assert_eq!(version(&connection).unwrap(), MIGRATIONS.len());

    migrate(&mut connection, &with(&[NEXT])).unwrap();
    assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() + 1);
    assert_eq!(rows(&connection), before);
    assert_eq!(colours(&connection), ["blue"]);
    // A second start has nothing to migrate.
    migrate(&mut connection, &with(&[NEXT])).unwrap();
    assert_eq!(colours(&connection), ["blue"]);
}

/// Before the first schema, the same numbers meant other tables.
#[test]
fn database_of_a_development_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("archivist.sqlite3");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE crawl (id INTEGER PRIMARY KEY); PRAGMA user_version = 4;")
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let error = Database::open(&path).err().unwrap();
    assert!(matches!(error, OpenError::Development { .. }), "{error}");
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn new_database_runs_through_every_step() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &with(&[NEXT])).unwrap();
    assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() + 1);
    assert!(colours(&connection).is_empty());
}

#[test]
fn newer_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = filled(directory.path());
    let mut connection = Connection::open(&path).unwrap();
    migrate(&mut connection, &with(&[NEXT])).unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let error = Database::open(&path).err().unwrap();
    let OpenError::Newer { found, known, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((found, known), (MIGRATIONS.len() + 1, MIGRATIONS.len()));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn failed_step_keeps_the_steps_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = filled(directory.path());
    let mut connection = Connection::open(&path).unwrap();
    migrate(&mut connection, &with(&[NEXT, BROKEN])).unwrap_err();
    assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() + 1);
    assert_eq!(colours(&connection), ["blue"]);
    let half = "SELECT count(*) FROM sqlite_schema WHERE name = 'half'";
    let half: i64 = connection.query_row(half, [], |row| row.get(0)).unwrap();
    assert_eq!(half, 0, "the failed step is undone as a whole");
}

/// Pins had no owner.
#[test]
fn older_pins_are_those_of_root() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &MIGRATIONS[..2]).unwrap();
    let rows = "
        INSERT INTO crawl (id, url, max_depth, plugins, config, created_at, users, pinned)
            VALUES (1, '', 0, '[]', '{}', 0, '[7]', 1), (2, '', 0, '[]', '{}', 0, '[7]', 0);";
    connection.execute_batch(rows).unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    let sql = "SELECT pinned_by FROM crawl ORDER BY id";
    let mut statement = connection.prepare(sql).unwrap();
    let found = statement.query_map([], |row| row.get(0)).unwrap();
    let found: Vec<Option<u32>> = found.collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [Some(0), None]);
}

/// In the first schema, a retry of a hook changed the date of its page, and imported pages had none.
#[test]
fn older_pages_get_the_date_of_their_visit() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &MIGRATIONS[..1]).unwrap();
    let rows = "
        INSERT INTO host (id, name) VALUES (1, 'a.test');
        INSERT INTO crawl (id, url, max_depth, plugins, config, created_at, users)
            VALUES (1, '', 0, '[\"import\"]', '{}', 0, '[0]'), (2, '', 0, '[]', '{}', 0, '[0]');
        INSERT INTO snapshot (id, crawl_id, host_id, url, url_key, depth, created_at, started_at, bookmarked_at)
            VALUES (1, 1, 1, '1', '1', 0, 1700000000000, 1700000000001, '2013-06-07T00:00:00Z'),
                (2, 1, 1, '2', '2', 0, 1700000000000, 1700000000001, '2999-06-07T00:00:00Z'),
                (3, 2, 1, '3', '3', 0, 1700000000000, 1700000000009, '2013-06-07T00:00:00Z'),
                (4, 2, 1, '4', '4', 0, 1700000000000, NULL, NULL);
        INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, started_at)
            VALUES ('s3', 2, 3, 'wget', 'wget', 'succeeded', 1700000000002),
                ('s3', 2, 3, 'text', 'text', 'succeeded', 1700000000009);";
    connection.execute_batch(rows).unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    let mut dates = connection.prepare("SELECT visited_at FROM snapshot ORDER BY id").unwrap();
    let dates = dates.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let dates: Vec<i64> = dates.map(Result::unwrap).collect();
    let recorded = 1_370_563_200_000;
    let queued = 1_700_000_000_000;
    assert_eq!(dates, [recorded, queued + 1, queued + 2, queued]);
}

/// Before the fourth schema, no page said whether it was saved.
#[test]
fn older_pages_are_judged() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &MIGRATIONS[..3]).unwrap();
    let rows = "
        INSERT INTO host (id, name) VALUES (1, 'a.test');
        INSERT INTO crawl (id, url, max_depth, plugins, config, created_at, users)
            VALUES (1, '', 0, '[]', '{}', 0, '[0]');
        INSERT INTO snapshot (id, crawl_id, host_id, url, url_key, depth, created_at, status, http_status, reason)
            VALUES (1, 1, 1, '1', '1', 0, 0, 'sealed', 200, NULL), (2, 1, 1, '2', '2', 0, 0, 'sealed', 404, NULL),
                (3, 1, 1, '3', '3', 0, 0, 'sealed', NULL, NULL), (4, 1, 1, '4', '4', 0, 0, 'sealed', 204, NULL),
                (5, 1, 1, '5', '5', 0, 0, 'sealed', 200, 'time limit reached'),
                (6, 1, 1, '6', '6', 0, 0, 'sealed', NULL, NULL), (7, 1, 1, '7', '7', 0, 0, 'sealed', NULL, NULL),
                (8, 1, 1, '8', '8', 0, 0, 'queued', NULL, NULL), (9, 1, 1, '9', '9', 0, 0, 'sealed', 200, NULL);
        INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, size, files)
            SELECT 's' || id, 1, id, 'hashes', 'hashes', 'succeeded', 9, '[]' FROM snapshot WHERE id <> 6;
        INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, size, files)
            VALUES ('s1', 1, 1, 'wget', 'wget', 'succeeded', 9, '[]'), ('s2', 1, 2, 'wget', 'wget', 'succeeded', 9, '[]'),
                ('s3', 1, 3, 'chromium', 'tab', 'failed', 9, '[]'), ('s5', 1, 5, 'dom', 'dom', 'succeeded', 9, '[]'),
                ('s6', 1, 6, 'import', 'import', 'noresults', 0, '[]'), ('s7', 1, 7, 'import', 'import', 'succeeded', 9, '[]'),
                ('s9', 1, 9, 'chromium', 'tab', 'succeeded', 9, '[{\"path\":\"document\",\"mimetype\":\"\",\"size\":9}]');";
    connection.execute_batch(rows).unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    let mut judged = connection
        .prepare("SELECT coalesce(unsaved, 'saved'), reason FROM snapshot ORDER BY id")
        .unwrap();
    let judged = judged
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)));
    let (judged, reasons): (Vec<_>, Vec<_>) = judged.unwrap().map(Result::unwrap).unzip();
    let expected =
        ["saved", "error", "document", "files", "work", "visit", "saved", "visit", "saved"];
    assert_eq!(judged, expected);
    assert_eq!(reasons[2].as_deref(), Some("nothing of the page was saved"));
    assert_eq!(reasons.iter().flatten().count(), 2);
}

/// Before the eighth schema, only the remark of a result said what its files lack.
#[test]
fn older_results_say_what_they_lack() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &MIGRATIONS[..7]).unwrap();
    let rows = "
        INSERT INTO crawl (id, url, max_depth, plugins, config, created_at, users)
            VALUES (1, '', 0, '[]', '{}', 0, '[0]');
        INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, error, figures)
            VALUES ('s1', 1, 1, 'wacz', '1', 'succeeded', 'not recorded as a whole: ''http://x/'' (x)', '{\"kept\": 1}'),
                ('s1', 1, 1, 'screenshot', '2', 'succeeded', 'rejected consent; cut at 9 of 10 pixels', NULL),
                ('s1', 1, 1, 'pdf', '3', 'succeeded', 'no font for Han: apt install x', NULL),
                ('s1', 1, 1, 'dom', '4', 'succeeded', 'rejected consent', NULL),
                ('s1', 1, 1, 'screenshot', '5', 'failed', 'cut at 9 of 10 pixels', NULL);";
    connection.execute_batch(rows).unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    let mut found = connection
        .prepare("SELECT hook FROM result WHERE figures ->> 'lacks' > 0 ORDER BY hook")
        .unwrap();
    let found = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(found.map(Result::unwrap).collect::<Vec<_>>(), ["1", "2", "3"]);
}

#[test]
fn reopened_database_is_worked_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = filled(directory.path());
    let mut store = open(&path);
    let tx = store.begin().unwrap();
    let crawl = tx.crawl(CrawlId(1)).unwrap().unwrap();
    assert_eq!(crawl.config["TIMEOUT"], "30");
    assert_eq!(crawl.users, [1000].into());
    for step in [Step::Cancel, Step::Retry] {
        tx.step_crawl(crawl.id, step, Some(NOW), None, NOW).unwrap();
    }
    assert_eq!(tx.crawl(crawl.id).unwrap().unwrap().status, Lifecycle::Queued);
    assert_eq!(add(&tx), CrawlId(2), "no id is given twice");
    tx.commit().unwrap();

    let tx = store.begin().unwrap();
    let count = |kind: &str, status: &str| tx.counts(kind, None).unwrap().get(status).copied();
    assert_eq!(count("crawl", "queued"), Some(2));
    assert_eq!(count("crawl", "cancelled"), None);
    assert_eq!(count("snapshot", "queued"), Some(2));
    let uses = |plugin: &str| {
        let uses = tx.uses().unwrap()[plugin];
        (uses.succeeded, uses.failed)
    };
    assert_eq!((uses("wget"), uses("title")), ((1, 0), (0, 1)));
    assert_eq!(tx.requeue_results(PAGE, None).unwrap(), 1);
    assert_eq!(uses("title"), (0, 1), "a retry does not undo the failure");
}
