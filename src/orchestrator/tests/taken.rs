//! Directories that belong to other pages.

use super::bed::Bed;
use archivist_core::model::{CrawlId, IdMarks, Lifecycle, Owner, RunId, SnapshotId};
use archivist_core::store::Location;
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::work::{Assignment, DIRECTORY_TAKEN};
use archivist_shared::id_marks;

const PAGE: &str = "archivist-snapshot-1.service";
const CRAWL: &str = "archivist-crawl-1.service";

fn started(unit: &str) -> Bed {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    while !bed.world.units.contains_key(unit) {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    bed
}

fn assignment(bed: &Bed, unit: &str) -> Assignment {
    let stdin = bed.world.units[unit].stdin.as_ref().unwrap();
    serde_json::from_slice(stdin).unwrap()
}

#[test]
fn page_whose_directory_is_taken_gets_another_one_without_an_attempt() {
    let mut bed = started(PAGE);
    let first = assignment(&bed, PAGE);
    let crawl = assignment(&bed, CRAWL);
    assert_eq!(first.identity.as_ref().unwrap().len(), 32);
    assert_ne!(first.identity, first.crawl_identity);
    assert_eq!(crawl.identity, first.crawl_identity);
    bed.world.end(PAGE, 1, DIRECTORY_TAKEN, "exit-code");
    bed.until_quiet();
    bed.pass(600_000);
    bed.until_quiet();
    let second = assignment(&bed, PAGE);
    let identity = second.identity.unwrap();
    assert_ne!(first.identity.as_ref(), Some(&identity));
    let name = format!("s1-{}", &identity[..8]);
    assert_eq!(second.directory, first.directory.with_file_name(name));
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!((page.attempts, page.status), (1, Lifecycle::Started));
    // It happens once; afterwards, an ordinary failure counts.
    bed.world.end(PAGE, 1, DIRECTORY_TAKEN, "exit-code");
    bed.until_quiet();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!((page.attempts, page.status), (1, Lifecycle::Queued));
    assert_eq!(page.directory.as_deref(), second.directory.to_str());
    bed.come_to_an_end();
}

#[test]
fn crawl_whose_directory_is_taken_gets_another_one_with_its_pages() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    let first = assignment(&bed, CRAWL);
    bed.world.end(CRAWL, 1, DIRECTORY_TAKEN, "exit-code");
    bed.until_quiet();
    bed.pass(600_000);
    bed.until_quiet();
    let second = assignment(&bed, CRAWL);
    assert_ne!(first.directory, second.directory);
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!(page.status, Lifecycle::Sealed);
    assert!(page.directory.unwrap().ends_with("/s1"), "not its own");
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert!(results.iter().any(|r| r.owner == Owner::Snapshot(SnapshotId(1))));
}

#[test]
fn directory_of_an_older_version_is_not_compared() {
    let mut bed = started(PAGE);
    let directory = bed.directory.path().join(super::bed::DATABASE);
    let connection = rusqlite::Connection::open(directory).unwrap();
    connection.execute("UPDATE snapshot SET identity = NULL", []).unwrap();
    bed.world.end(PAGE, 1, 1, "exit-code");
    bed.until_quiet();
    bed.pass(600_000);
    bed.until_quiet();
    let again = assignment(&bed, PAGE);
    assert_eq!(again.identity, None);
    assert!(again.directory.ends_with("s1"));
    bed.come_to_an_end();
}

/// The archive as a whole is gone: its file system is not mounted, for example.
#[test]
fn missing_archive_uses_up_no_attempts() {
    for (code, result) in [(226, "exit-code"), (1, "exit-code")] {
        let mut bed = started(PAGE);
        let gone = "the archive '/a' does not exist";
        for _ in 0..5 {
            bed.engine.load.outage = Some(gone.to_owned());
            bed.world.end(PAGE, 1, code, result);
            bed.until_quiet();
            let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
            assert_eq!((page.attempts, page.status), (0, Lifecycle::Queued));
            let reason = page.reason.unwrap();
            assert!(reason.starts_with(gone), "{reason}");
            assert!(reason.ends_with("does not count"), "{reason}");
            assert!(!bed.world.units.contains_key(PAGE));
            let why = bed.why("s1");
            assert!(why.iter().any(|(code, text)| code == "pressure" && text.contains(gone)));
            // Nothing is added: work continues by itself.
            bed.engine.load.outage = None;
            bed.pass(600_000);
            bed.until_quiet();
            assert!(bed.world.units.contains_key(PAGE));
        }
        bed.come_to_an_end();
        let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
        assert_eq!(page.status, Lifecycle::Sealed);
    }
}

/// It may be there again before its loss is noticed.
#[test]
fn worker_whose_mounts_fail_uses_up_no_attempt() {
    let mut bed = started(PAGE);
    bed.world.end(PAGE, 1, 226, "exit-code");
    bed.until_quiet();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!((page.attempts, page.status), (0, Lifecycle::Queued));
    bed.come_to_an_end();
}

fn marks(crawl: i64, snapshot: i64, run: i64) -> IdMarks {
    IdMarks { crawl: CrawlId(crawl), snapshot: SnapshotId(snapshot), run: RunId(run) }
}

/// The archive of a bed, with these marks.
fn note(bed: &Bed, ids: IdMarks) {
    std::fs::create_dir_all(bed.engine.archive()).unwrap();
    id_marks::raise(&bed.engine.archive(), ids).unwrap();
}

/// Adds a page, and returns what its worker is given.
fn next_page(bed: &mut Bed) -> Assignment {
    bed.add(1);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    let crawl = crawls.iter().map(|crawl| crawl.id.0).max().unwrap();
    bed.until_quiet();
    let given = assignment(bed, &format!("archivist-crawl-{crawl}.service"));
    bed.come_to_an_end();
    given
}

#[test]
fn ids_of_a_new_database_begin_above_those_of_the_archive() {
    let mut bed = Bed::new();
    note(&bed, marks(7, 90, 400));
    let given = next_page(&mut bed);
    assert_eq!(given.owner, Owner::Crawl(CrawlId(8)));
    assert_eq!(given.ids, marks(8, 91, 401), "the next mark in the archive");
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert_eq!(pages[0].id, SnapshotId(91));
    // The archive is read once.
    note(&bed, marks(20, 200, 900));
    assert_eq!(next_page(&mut bed).owner, Owner::Crawl(CrawlId(9)));
}

/// Archive and database are new, and the store is not.
#[test]
fn ids_of_a_new_database_begin_above_those_of_the_store() {
    let mut bed = Bed::new();
    let store = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(store.path().join("20261124/a.test")).unwrap();
    std::fs::write(store.path().join("20261124/a.test/s90-00.tar"), "").unwrap();
    bed.engine.settings.store = Location::parse(store.path().to_str().unwrap());
    note(&bed, marks(7, 20, 400));
    bed.add(1);
    assert_eq!(bed.look(|tx| tx.highest_ids()), marks(8, 91, 401));
}

/// A copy of yesterday, or a machine that was set back while its archive was not.
#[test]
fn ids_of_an_older_database_jump_above_those_of_the_archive() {
    let mut bed = Bed::new();
    let given = next_page(&mut bed);
    note(&bed, given.ids);
    let before = bed.look(|tx| tx.highest_ids());
    // The next orchestrator, with the newest database.
    bed.engine.are_ids_known.set(false);
    bed.turn(Vec::new());
    assert_eq!(bed.look(|tx| tx.highest_ids()), before);
    // With an older one, which lacks no crawl and no page.
    note(&bed, marks(0, 0, 5000));
    bed.engine.are_ids_known.set(false);
    bed.turn(Vec::new());
    let raised = bed.look(|tx| tx.highest_ids());
    assert_eq!(raised, before.or_higher(marks(0, 0, 5000)));
    // And with one that does.
    note(&bed, marks(7, 90, 0));
    bed.engine.are_ids_known.set(false);
    let given = next_page(&mut bed);
    assert_eq!(given.ids, marks(8, 91, 5001));
}

#[test]
fn ids_are_compared_once_the_archive_can_be_used() {
    let mut bed = Bed::new();
    bed.engine.load.outage = Some("the archive '/a' does not exist".to_owned());
    bed.turn(Vec::new());
    note(&bed, marks(7, 90, 400));
    bed.turn(Vec::new());
    assert_eq!(bed.look(|tx| tx.highest_ids()), IdMarks::default());
    bed.engine.load.outage = None;
    assert_eq!(next_page(&mut bed).owner, Owner::Crawl(CrawlId(8)));
}

/// Each of two data directories with one archive hands out ids above those of the other.
#[test]
fn ids_are_compared_again_after_a_directory_was_taken() {
    let mut bed = started(PAGE);
    note(&bed, marks(7, 90, 400));
    bed.world.end(PAGE, 1, DIRECTORY_TAKEN, "exit-code");
    bed.until_quiet();
    bed.come_to_an_end();
    let given = next_page(&mut bed);
    assert_eq!(given.owner, Owner::Crawl(CrawlId(8)));
    assert!(given.ids.snapshot == SnapshotId(91) && given.ids.run > RunId(400));
}

/// An archive of a version without marks.
#[test]
fn directories_are_marks_if_the_archive_has_no_others() {
    let mut bed = Bed::new();
    let page = bed.engine.archive().join("20261124/a.test/s90");
    std::fs::create_dir_all(page).unwrap();
    assert_eq!(next_page(&mut bed).ids, marks(1, 91, 1));
}
