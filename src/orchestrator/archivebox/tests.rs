//! Tests with databases as versions of ArchiveBox write them, and with hostile ones.

use super::*;
use archivist_fuzz::fuzz;
use std::fs;

const SEVEN: &str = "
    CREATE TABLE core_snapshot (id char(32) PRIMARY KEY, url varchar(200) UNIQUE,
        timestamp varchar(32) UNIQUE, title varchar(512), added datetime, updated datetime);
    CREATE TABLE core_tag (id integer PRIMARY KEY, name varchar(100), slug varchar(100));
    CREATE TABLE core_snapshot_tags (id integer PRIMARY KEY, snapshot_id char(32), tag_id integer);
    CREATE TABLE core_archiveresult (id integer PRIMARY KEY, cmd text, pwd text, cmd_version text,
        status text, output text, start_ts datetime, end_ts datetime, snapshot_id char(32), uuid text,
        extractor varchar(32));
    INSERT INTO core_snapshot VALUES
        ('5d42481905cc49fdb92b9e070d12d343', 'http://a.test/#2021-04-20T10:00:00', '1618912800.5', ' A ',
         '2021-04-20 11:00:00.25', NULL),
        ('c940255b0a604877863786d8ef33c489', 'http://b.test/', 'no number', '', '2021-04-20 11:00:00', NULL);
    INSERT INTO core_tag VALUES (1, 'birds', 'birds'), (2, '日本', '');
    INSERT INTO core_snapshot_tags VALUES
        (1, '5d42481905cc49fdb92b9e070d12d343', 2), (2, '5d424819-05cc-49fd-b92b-9e070d12d343', 1);
    INSERT INTO core_archiveresult VALUES
        (1, '[]', '/x', '1', 'succeeded', 'output.html', '2021-04-20 11:00:02', '2021-04-20 11:00:03',
         '5d42481905cc49fdb92b9e070d12d343', '', 'dom'),
        (2, '[]', '/x', '1', 'failed', 'Boom', '2021-04-20 11:00:01', '2021-04-20 11:00:01',
         '5d42481905cc49fdb92b9e070d12d343', '', 'pdf');";

fn read(path: &Path) -> Vec<BoxLine> {
    let mut lines = Vec::new();
    match Source::open(path) {
        Err(why) => lines.push(BoxLine::Unusable(why)),
        Ok(source) => source
            .read(&mut |line| {
                lines.push(line.clone());
                Ok(())
            })
            .unwrap(),
    }
    lines
}

fn read_sql(sql: &str) -> Vec<BoxLine> {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("index.sqlite3");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    read(&path)
}

fn snapshots(lines: &[BoxLine]) -> Vec<&BoxSnapshot> {
    let found = lines.iter().filter_map(|line| match line {
        BoxLine::Snapshot(snapshot) => Some(snapshot),
        _ => None,
    });
    found.collect()
}

#[test]
fn snapshots_have_tags_results_and_times_in_utc() {
    let lines = read_sql(SEVEN);
    let found = snapshots(&lines);
    assert_eq!((lines.len(), found.len()), (2, 2));
    let [a, b] = found[..] else { panic!() };
    assert_eq!((a.url.as_str(), a.title.as_deref()), ("http://a.test/", Some("A")));
    assert_eq!(a.bookmarked_at.as_deref(), Some("2021-04-20T10:00:00.5Z"));
    assert_eq!(a.tags, ["birds", "日本"], "ids with and without dashes");
    let results: Vec<_> = a
        .results
        .iter()
        .map(|result| (result.extractor.as_str(), result.status.as_str(), result.output.as_str()))
        .collect();
    assert_eq!(results, [("pdf", "failed", "Boom"), ("dom", "succeeded", "output.html")]);
    let end = a.results[1].ended_at.unwrap().to_string();
    assert_eq!(end, "2021-04-20T11:00:03.000Z");
    assert_eq!(b.bookmarked_at.as_deref(), Some("2021-04-20T11:00:00Z"));
    assert_eq!((b.title.as_deref(), b.results.len()), (None, 0));
}

#[test]
fn columns_of_other_versions_are_found_by_name() {
    let four = "CREATE TABLE core_snapshot (id char(32), url text, timestamp text, title text,
            tags varchar(256), added datetime, updated datetime);
        INSERT INTO core_snapshot VALUES ('a', 'http://a.test/', '1618912800', 'A', 'x, y,,', '', NULL)";
    let lines = read_sql(four);
    assert_eq!(snapshots(&lines)[0].tags, ["x", "y"]);
    let nine = "CREATE TABLE core_snapshot (id char(32), created_at datetime, bookmarked_at datetime,
            url text, timestamp text, title text, permissions text GENERATED ALWAYS AS (upper(url)));
        CREATE TABLE core_archiveresult (id integer PRIMARY KEY, snapshot_id char(32), plugin text,
            hook_name text, status text, output_str text, output_json text, start_ts datetime,
            end_ts datetime, created_at datetime);
        INSERT INTO core_snapshot (id, created_at, bookmarked_at, url, timestamp) VALUES
            ('5d424819-05cc-49fd-b92b-9e070d12d343', '2025-01-02 00:00:00', '2025-01-01 00:00:00',
             'http://a.test/', '1735689600.0');
        INSERT INTO core_archiveresult VALUES (1, '5d42481905cc49fdb92b9e070d12d343', 'wget', 'on_x',
            'noresults', '', NULL, NULL, NULL, '2025-01-03 00:00:00')";
    let lines = read_sql(nine);
    let found = snapshots(&lines)[0];
    assert_eq!(found.id, "5d42481905cc49fdb92b9e070d12d343");
    assert_eq!(found.bookmarked_at.as_deref(), Some("2025-01-01T00:00:00Z"));
    let result = &found.results[0];
    assert_eq!((result.extractor.as_str(), result.status.as_str()), ("wget", "noresults"));
    assert_eq!(result.started_at.map(|time| time.day()).as_deref(), Some("20250103"));
}

#[test]
fn hostile_schemas_are_refused() {
    let view =
        "CREATE VIEW core_snapshot AS SELECT 1 AS id, 'http://a.test/' AS url, '1' AS timestamp";
    let generated = "CREATE TABLE core_snapshot (id text, url text, x text,
        timestamp text GENERATED ALWAYS AS (url || x))";
    for sql in [view, generated, "CREATE TABLE other (id)"] {
        let lines = read_sql(sql);
        assert!(matches!(&lines[..], [BoxLine::Unusable(_)]), "{sql}: {lines:?}");
    }
    let long = "CREATE TABLE core_snapshot (id text, url text, timestamp text, title);
        INSERT INTO core_snapshot VALUES (x'ff00', zeroblob(20000000), 7, 1.5)";
    let lines = read_sql(long);
    assert!(snapshots(&lines)[0].url.len() <= FIELD_MAX, "{}", lines.len());
}

/// Damaged at any page: what can be read is printed, the rest is a fault, and nothing panics.
#[test]
fn damaged_files_have_a_reason() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("index.sqlite3");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SEVEN).unwrap();
    let many = "WITH n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 500)
        INSERT INTO core_snapshot SELECT 'id' || n, 'http://a.test/' || n, '16189' || n, 'T', '', '' FROM n";
    connection.execute_batch(many).unwrap();
    drop(connection);
    let whole = fs::read(&path).unwrap();
    let mut has_rest = false;
    for page in 0..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..][..4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let lines = read(&path);
        let rows = snapshots(&lines).len();
        has_rest |= rows > 0 && rows < 502;
        let faults = lines.len() - rows;
        assert!(faults > 0 || rows == 502, "page {page}: {rows} of 502 and no fault");
    }
    assert!(has_rest);
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(!matches!(&read(&path)[..], [BoxLine::Snapshot(_), ..] if read(&path).len() == 502));
    fs::write(&path, b"no database").unwrap();
    assert!(matches!(&read(&path)[..], [BoxLine::Unusable(_)]));
}

/// The table is a chain of 18 pages, each of which has the next one twice.
#[test]
fn pages_with_several_parents_do_not_multiply_snapshots() {
    const PAGE: usize = 512;
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("index.sqlite3");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA page_size = 512").unwrap();
    connection.execute_batch(SEVEN).unwrap();
    let root: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'core_snapshot'", [], |row| {
            row.get(0)
        })
        .unwrap();
    drop(connection);
    let root = usize::try_from(root).unwrap();
    let mut file = fs::read(&path).unwrap();
    let leaf = file[(root - 1) * PAGE..root * PAGE].to_owned();
    let pages = file.len() / PAGE;
    let interior = |child: usize| {
        let child = u32::try_from(child).unwrap().to_be_bytes();
        let mut page = vec![0; PAGE];
        // type, no free block, one cell at PAGE - 8, no fragments; then the last child, and the place of the cell
        page[..8].copy_from_slice(&[5, 0, 0, 0, 1, 0x01, 0xf8, 0]);
        page[8..12].copy_from_slice(&child);
        page[12..14].copy_from_slice(&[0x01, 0xf8]);
        page[PAGE - 8..PAGE - 4].copy_from_slice(&child);
        page[PAGE - 4] = 1;
        page
    };
    file[(root - 1) * PAGE..root * PAGE].copy_from_slice(&interior(pages + 1));
    for page in pages + 1..pages + 18 {
        file.extend(interior(page + 1));
    }
    file.extend(leaf);
    let count = u32::try_from(pages + 18).unwrap();
    file[28..32].copy_from_slice(&count.to_be_bytes());
    fs::write(&path, &file).unwrap();
    let lines = read(&path);
    let found = snapshots(&lines).len();
    assert_eq!(found, file.len() / SNAPSHOT_BYTES_MIN);
    let Some(BoxLine::Fault(text)) = lines.last() else {
        panic!("a fault: {:?}", lines.last());
    };
    let start = format!("the database is damaged after {found} snapshots: ");
    assert!(text.starts_with(&start), "{text}");
}

/// A file of SQLite of which some bytes are others. Words of the schema are changed, too.
#[test]
fn mutated_databases_are_read_or_have_a_reason() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("index.sqlite3");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA page_size = 512").unwrap();
    connection.execute_batch(SEVEN).unwrap();
    drop(connection);
    let words: [&[u8]; 6] = [
        b"core_snapshot",
        b"CREATE VIEW ",
        b" GENERATED ALWAYS AS (randomblob(999999999))",
        b"WITHOUT ROWID",
        b"\x0d\x00\x00\xff\xff",
        b"SQLite format 3\0",
    ];
    fuzz(&[fs::read(&path).unwrap()], &words, |input| {
        fs::write(&path, input).unwrap();
        // A snapshot has a line, and one each if its tags or results cannot be read.
        let lines_max = 3 * (input.len() / SNAPSHOT_BYTES_MIN) + 1;
        assert!(read(&path).len() <= lines_max);
    });
}

/// The files of a database as they are sent, and the byte after them.
fn sent(files: [&[u8]; 2], last: &[u8]) -> Vec<u8> {
    let files = files.map(|file| [&(file.len() as u64).to_le_bytes(), file].concat());
    [&files.concat(), last].concat()
}

#[test]
fn database_is_read_as_it_was_sent_and_removed_afterwards() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("index.sqlite3");
    Connection::open(&path).unwrap().execute_batch(SEVEN).unwrap();
    let database = fs::read(&path).unwrap();
    let copied = CopiedDatabase::receive(&sent([&database, b""], &[UNCHANGED])[..]).unwrap();
    let copy = copied.unwrap();
    assert_eq!(fs::read(copy.database()).unwrap(), database);
    let names = fs::read_dir(&copy.directory).unwrap().count();
    assert_eq!(names, 1, "no empty log");
    assert_eq!(snapshots(&read(&copy.database())).len(), 2);
    let directory = copy.directory.clone();
    drop(copy);
    assert!(!directory.exists());
}

#[test]
fn database_that_changed_or_was_cut_is_not_read() {
    let whole = sent([&[b'x'; 70_000], b"log"], &[UNCHANGED]);
    assert!(CopiedDatabase::receive(&whole[..]).unwrap().is_some());
    for bytes in [0, 7, 8, 70_007, 70_008, 70_018, whole.len() - 1] {
        assert!(CopiedDatabase::receive(&whole[..bytes]).unwrap().is_none());
    }
    let changed = sent([b"x", b""], b"!");
    assert!(CopiedDatabase::receive(&changed[..]).unwrap().is_none());
}
