//! Deleted crawls and snapshots: their rows, and the unit that removes their files.

use super::bed::{Bed, DATABASE};
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::deletion::Delete;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Which;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::store::{Assignment, Copy, CopyStatus, StoredObject, Task};
use archivist_shared::bus::documents::report::{Deleted, Filter};
use archivist_shared::bus::documents::work::ToRemove;
use archivist_shared::deleted;
use std::time::Duration;

/// A sealed crawl of so many pages.
fn archived(pages: usize) -> Bed {
    let mut bed = Bed::new();
    bed.add(pages);
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return bed;
        };
        bed.world.end(&hook, 1, 0, "success");
    }
}

fn delete(bed: &mut Bed, ids: &[&str], dry_run: bool) -> Deleted {
    let ids: Vec<Owner> = ids.iter().map(|id| id.parse().unwrap()).collect();
    bed.delete_these(&ids, dry_run)
}

/// The running unit, of which there is one.
fn unit(bed: &Bed) -> String {
    let mut units = bed.running_of("-delete-");
    assert_eq!(units.len(), 1, "{units:?}");
    units.remove(0)
}

fn end(bed: &mut Bed, status: i32, result: &str) {
    let unit = unit(bed);
    bed.world.end(&unit, 1, status, result);
}

fn to_remove(bed: &Bed) -> ToRemove {
    let unit = &bed.world.units[&unit(bed)];
    serde_json::from_slice(unit.stdin.as_ref().unwrap()).unwrap()
}

fn owners(request: &ToRemove) -> Vec<String> {
    let owners = request.directories.iter();
    owners.map(|removed| removed.owner.to_string()).collect()
}

fn pages(bed: &mut Bed) -> Vec<i64> {
    let rows = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    rows.iter().map(|page| page.id.0).collect()
}

fn is_over(bed: &mut Bed) -> bool {
    bed.world.units.is_empty() && bed.look(|tx| tx.deletions()) == 0
}

#[test]
fn rows_go_first_and_files_follow() {
    let mut bed = archived(3);
    std::fs::create_dir_all(bed.engine.scope.data_dir()).unwrap();
    let before = delete(&mut bed, &["s1", "s2"], true);
    assert_eq!((before.pages, before.left.len()), (2, 0));
    assert_eq!(pages(&mut bed).len(), 3, "nothing was changed");
    assert_eq!(delete(&mut bed, &["s1", "s2", "s9"], false).left.len(), 1);
    assert_eq!(pages(&mut bed), [3]);
    bed.until_quiet();
    let request = to_remove(&bed);
    assert_eq!(owners(&request), ["s1", "s2"]);
    assert!(request.is_last && request.lists.contains_key(&CrawlId(1)));
    assert!(request.directories.iter().all(|it| it.identity.is_some()));
    let recorded = deleted::read(&bed.engine.scope.data_dir()).unwrap();
    let recorded: Vec<String> = recorded.keys().map(Owner::to_string).collect();
    assert_eq!(recorded, ["s1", "s2"]);
    end(&mut bed, 0, "success");
    bed.until_quiet();
    assert!(is_over(&mut bed));
    let counts = bed.look(|tx| tx.counts("snapshot", Some(CrawlId(1))));
    assert_eq!(counts.values().sum::<u64>(), 1);
}

#[test]
fn crawl_goes_with_its_last_page() {
    let mut bed = archived(2);
    delete(&mut bed, &["s1", "s2"], false);
    assert_eq!(bed.look(|tx| tx.list_crawls(&Filter::default())).len(), 0);
    bed.until_quiet();
    let request = to_remove(&bed);
    assert_eq!(owners(&request), ["c1", "s1", "s2"]);
    assert!(request.lists.is_empty(), "its list is gone with it");
    end(&mut bed, 0, "success");
    bed.until_quiet();
    assert!(is_over(&mut bed));
}

#[test]
fn imported_file_goes_with_the_last_crawl_of_its_tag() {
    let mut bed = archived(1);
    let tx = bed.database.begin().unwrap();
    tx.tag_crawl(CrawlId(1), "imported-0a1b").unwrap();
    tx.tag_crawl(CrawlId(1), "reading").unwrap();
    tx.commit().unwrap();
    assert_eq!(bed.look(|tx| tx.unused_imports()), [""; 0]);
    delete(&mut bed, &["s1"], false);
    bed.until_quiet();
    assert_eq!(to_remove(&bed).imported, ["0a1b"]);
    end(&mut bed, 0, "success");
    bed.until_quiet();
    assert_eq!(bed.look(|tx| tx.unused_imports()), [""; 0]);
}

fn pin(bed: &mut Bed, id: &str, pinned: bool, dry_run: bool) -> u32 {
    let id: Owner = id.parse().unwrap();
    let answer = bed.request(Request::Pin { id, pinned, dry_run, user: 0 });
    answer.unwrap().unwrap().parse().unwrap()
}

fn refusals(bed: &mut Bed, ids: &[&str]) -> Vec<String> {
    let left = delete(bed, ids, false).left;
    left.into_iter().map(|left| left.reason).collect()
}

#[test]
fn pinned_pages_and_crawls_are_not_deleted() {
    let mut bed = archived(3);
    assert_eq!(pin(&mut bed, "s2", true, true), 1);
    assert_eq!(refusals(&mut bed, &["s1"]), [""; 0], "a dry run changes nothing");
    assert_eq!(pin(&mut bed, "s2", true, false), 1);
    assert_eq!(pin(&mut bed, "s2", true, false), 0);
    let first = "is pinned; to delete it, first: archivist unpin";
    assert_eq!(refusals(&mut bed, &["s2"]), [format!("s2 {first} s2")]);
    assert_eq!(refusals(&mut bed, &["c1"]), [format!("its page s2 {first} s2")]);
    let shown = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert_eq!(shown.iter().map(|page| page.pinned).collect::<Vec<_>>(), [false, true]);
    assert_eq!(pin(&mut bed, "s2", false, false), 1);
    assert_eq!(pin(&mut bed, "c1", true, false), 1);
    assert_eq!(refusals(&mut bed, &["s2"]), [format!("its crawl c1 {first} c1")]);
    assert_eq!(refusals(&mut bed, &["c1"]), [format!("c1 {first} c1")]);
    let shown = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert!(shown.iter().all(|page| page.pinned));
    assert_eq!(pin(&mut bed, "c1", false, false), 1);
    assert_eq!(refusals(&mut bed, &["c1"]), [""; 0]);
    bed.until_quiet();
    assert_eq!(pages(&mut bed), [0; 0]);
}

/// The orchestrator is killed after the first piece: the next one continues.
#[test]
fn crawl_of_many_pages_is_deleted_in_pieces() {
    let mut bed = Bed::new();
    bed.add(250);
    let reply = Request::Cancel { id: Owner::Crawl(CrawlId(1)) };
    bed.request(reply);
    bed.until_quiet();
    while let Some(hook) = bed.running_hook() {
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    assert_eq!(delete(&mut bed, &["c1"], false).pages, 250);
    let retry = bed.request(Request::Retry {
        id: Some(Owner::Crawl(CrawlId(1))),
        which: Which::All,
        user: 0,
        so_far: None,
    });
    assert!(matches!(retry, Some(Err(Refusal::Invalid(_)))), "{retry:?}");
    bed.world.answers.clear();
    bed.turn(vec![Event::of(crate::deletion::delete_some)]);
    assert_eq!(pages(&mut bed).len(), 150);
    bed.restart(0);
    bed.until_quiet();
    assert_eq!(pages(&mut bed).len(), 0);
    assert_eq!(bed.look(|tx| tx.list_crawls(&Filter::default())).len(), 0);
}

#[test]
fn only_what_has_ended_is_deleted() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    for id in ["c1", "s1"] {
        let deleted = delete(&mut bed, &[id], false);
        let reason = &deleted.left[0].reason;
        assert!(reason.contains("only what has ended can be deleted"), "{reason}");
    }
    assert_eq!(pages(&mut bed), [1]);
    bed.engine.settings.fleet_database = "postgresql://db.test/archive".to_owned();
    let refused =
        bed.request(Delete { ids: vec![Owner::Snapshot(SnapshotId(1))], dry_run: false, user: 0 });
    assert!(matches!(refused, Some(Err(Refusal::Invalid(_)))), "{refused:?}");
}

/// systemd may still know the unit of a batch that ended when the next batch starts. Of the runs that ended, the
/// last one is kept.
#[test]
fn each_batch_has_a_unit_of_its_own() {
    const RUNS: &str =
        "SELECT coalesce(group_concat(unit || ' ' || (outcome ->> 'kind')), '') FROM run
        WHERE kind = 'delete' AND status = 'ended'";
    let mut bed = archived(3);
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let mut units = Vec::new();
    for page in ["s1", "s2", "s3"] {
        delete(&mut bed, &[page], false);
        bed.until_quiet();
        units.push(unit(&bed));
        end(&mut bed, 0, "success");
        bed.until_quiet();
        let runs: String = file.query_row(RUNS, [], |row| row.get(0)).unwrap();
        assert_eq!(runs, format!("{} exit", units.last().unwrap()));
    }
    units.sort();
    units.dedup();
    assert_eq!(units.len(), 3, "{units:?}");
    assert!(is_over(&mut bed));
}

#[test]
fn failed_removal_is_repeated() {
    let mut bed = archived(2);
    delete(&mut bed, &["s1"], false);
    bed.until_quiet();
    end(&mut bed, 1, "exit-code");
    bed.until_quiet();
    assert!(bed.world.units.is_empty(), "not at once");
    bed.now = bed.now.after(Duration::from_secs(7200));
    bed.turn(vec![Event::Due]);
    bed.until_quiet();
    assert_eq!(owners(&to_remove(&bed)), ["s1"]);
    end(&mut bed, 0, "success");
    bed.until_quiet();
    assert!(is_over(&mut bed));
}

#[test]
fn copy_in_the_store_is_removed() {
    let mut bed = archived(2);
    let copy = Copy {
        object: Some(StoredObject {
            store: "/srv/store".into(),
            name: "20261126/a.test/s1-ab.tar".into(),
            sha256: "ab".into(),
            size: 7,
        }),
        ..Copy::default()
    };
    let running = Copy { status: CopyStatus::Running, ..copy.clone() };
    set(&mut bed, &running);
    let left = delete(&mut bed, &["s1"], false).left;
    assert!(left[0].reason.contains("try again later"), "{left:?}");
    set(&mut bed, &copy);
    delete(&mut bed, &["s1"], false);
    assert_eq!(bed.look(|tx| tx.deleted_copies()), 1, "it waits");
    bed.until_quiet();
    assert_eq!(bed.look(|tx| tx.deleted_copies()), 1, "it runs");
    let unit = "archivist-store-s1.service";
    let assignment: Assignment =
        serde_json::from_slice(bed.world.units[unit].stdin.as_ref().unwrap()).unwrap();
    assert_eq!((assignment.task, assignment.object), (Task::Delete, copy.object));
}

fn set(bed: &mut Bed, copy: &Copy) {
    let tx = bed.database.begin().unwrap();
    tx.set_copy(SnapshotId(1), copy).unwrap();
    tx.commit().unwrap();
}

/// The start of the crawl's worker has no answer yet.
#[test]
fn last_page_stays_while_a_unit_of_its_crawl_starts() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.abort(0);
    let left = delete(&mut bed, &["s1"], false).left;
    let reason = "archivist-crawl-1.service still works on c1; try again after its end";
    assert_eq!(left[0].reason, reason);
    bed.come_to_an_end();
    assert!(delete(&mut bed, &["s1"], false).left.is_empty());
    bed.come_to_an_end();
}

/// An installation of programs is a crawl without pages.
#[test]
fn crawl_without_pages_is_deleted() {
    let mut bed = Bed::new();
    bed.install();
    bed.come_to_an_end();
    let deleted = delete(&mut bed, &["c1"], false);
    assert_eq!((deleted.pages, deleted.left.len()), (0, 0));
    bed.come_to_an_end();
    assert_eq!(bed.look(|tx| tx.list_crawls(&Filter::default())).len(), 0);
}

/// The rows of the deleted crawl have most of the file.
#[test]
fn file_of_the_database_becomes_smaller() {
    const NAMES: usize = 12_000;
    let mut bed = archived(2);
    let tx = bed.database.begin().unwrap();
    for number in 0..NAMES {
        let name = format!("imported-{number:0300}");
        tx.tag_crawl(CrawlId(1), &name).unwrap();
    }
    tx.commit().unwrap();
    let before: u64 = bed.look(|tx| tx.file_size());
    delete(&mut bed, &["c1"], false);
    bed.until_quiet();
    assert!(bed.look(|tx| tx.file_size()) >= before, "not before the files");
    end(&mut bed, 0, "success");
    bed.until_quiet();
    let after: u64 = bed.look(|tx| tx.file_size());
    assert!(before > 8 << 20 && after < 2 << 20, "{before} {after}");
}
