//! Directories that belong to other pages.

use super::bed::Bed;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::work::{Assignment, DIRECTORY_TAKEN};

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

/// What the worker of a unit was given.
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
    assert!(
        results
            .iter()
            .any(|r| r.owner == Owner::Snapshot(SnapshotId(1)))
    );
}

#[test]
fn directory_of_an_older_version_is_not_compared() {
    let mut bed = started(PAGE);
    let directory = bed.directory.path().join(super::bed::DATABASE);
    let connection = rusqlite::Connection::open(directory).unwrap();
    connection
        .execute("UPDATE snapshot SET identity = NULL", [])
        .unwrap();
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
            assert!(
                why.iter()
                    .any(|(code, text)| code == "pressure" && text.contains(gone))
            );
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
