//! Copies of sealed pages: the units of transfers, their retries, and files that are removed and
//! restored.

use super::bed::Bed;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Which;
use crate::query::orders::Query;
use crate::transfer::StoreCall;
use crate::transfer::files::record_path;
use archivist_core::model::{AnyId, Owner, SnapshotId};
use archivist_core::store::{Assignment, Copy, CopyStatus, KeepLocal, Location, Record};
use archivist_core::store::{StoredObject, Task};
use archivist_shared::bus::documents::report;
use std::time::Duration;

const PAGE: SnapshotId = SnapshotId(1);
const STORE: &str = "/srv/store";

fn with_store(keep: &str) -> Bed {
    let mut bed = Bed::new();
    bed.engine.settings.store = Location::parse(STORE);
    bed.engine.settings.keep_local = KeepLocal::parse(keep).unwrap();
    bed
}

/// Archives pages; transfers wait.
fn archive(bed: &mut Bed, pages: usize) {
    bed.add(pages);
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return;
        };
        bed.world.end(&hook, 1, 0, "success");
    }
}

fn copy(bed: &mut Bed) -> Copy {
    bed.look(|tx| tx.copy(PAGE)).unwrap_or_default()
}

fn object() -> StoredObject {
    StoredObject { store: STORE.into(), name: "a.tar".into(), sha256: "ab".into(), size: 7 }
}

fn assignment(bed: &Bed, unit: &str) -> Assignment {
    let unit = &bed.world.units[unit];
    serde_json::from_slice(unit.stdin.as_ref().unwrap()).unwrap()
}

/// Ends the transfer of a page with this error, or with success.
fn end(bed: &mut Bed, unit: &str, error: Option<&str>) {
    let run = bed.look(|tx| tx.open_unit(unit)).unwrap().id;
    let record = Record {
        object: error.is_none().then(object),
        error: error.map(str::to_owned),
        differs: false,
    };
    let path = record_path(&bed.engine.scope, run);
    std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    match error {
        None => bed.world.end(unit, 1, 0, "success"),
        Some(_) => bed.world.end(unit, 1, 1, "exit-code"),
    }
    bed.until_quiet();
    assert!(!path.exists(), "the record of an ended transfer");
    assert!(!bed.world.units.contains_key(unit) || copy(bed).status == CopyStatus::Running);
}

const UNIT: &str = "archivist-store-s1.service";

#[test]
fn sealed_page_is_copied_and_stays() {
    let mut bed = with_store("always");
    archive(&mut bed, 1);
    let given = assignment(&bed, UNIT);
    assert_eq!((given.task, given.store.as_str()), (Task::Put, STORE));
    assert!(given.directory.ends_with(&given.path), "{given:?}");
    end(&mut bed, UNIT, None);
    assert_eq!(copy(&mut bed).object, Some(object()));
    bed.pass(10_000_000);
    bed.until_quiet();
    assert!(bed.world.units.is_empty());
}

#[test]
fn archive_without_store_has_no_copies() {
    let mut bed = Bed::new();
    archive(&mut bed, 1);
    assert_eq!(bed.look(|tx| tx.copy(PAGE)), None);
}

#[test]
fn failed_copy_is_retried_and_why_says_it() {
    let mut bed = with_store("never");
    archive(&mut bed, 1);
    for attempt in 1..4 {
        end(&mut bed, UNIT, Some("failed to open store"));
        let failed = copy(&mut bed);
        assert_eq!((failed.attempts, failed.is_local), (attempt, true));
        let answer = bed.request(Query::Why { id: AnyId::Owner(Owner::Snapshot(PAGE)) });
        let why = answer.unwrap().unwrap();
        assert!(why.contains("failed to open store"), "{why}");
        assert!(why.contains(&failed.due_at.unwrap().to_string()), "{why}");
        let status: report::Status = bed.document(Query::Status);
        assert_eq!(status.store.unwrap().failed, 1);
        bed.until_woken();
        bed.until_quiet();
        assert_eq!(assignment(&bed, UNIT).task, Task::Put);
    }
}

#[test]
fn two_transfers_run_at_a_time() {
    let mut bed = with_store("always");
    archive(&mut bed, 4);
    assert_eq!(bed.world.running().len(), 2);
}

#[test]
fn local_files_go_after_the_copy_and_come_back_on_request() {
    let mut bed = with_store("never");
    archive(&mut bed, 1);
    assert_eq!(assignment(&bed, UNIT).task, Task::Put);
    end(&mut bed, UNIT, None);
    let given = assignment(&bed, UNIT);
    assert_eq!((given.task, given.object), (Task::Drop, Some(object())));
    end(&mut bed, UNIT, None);
    assert!(!copy(&mut bed).is_local);

    let early = bed.request(StoreCall::Fetch { id: PAGE });
    assert!(early.is_none(), "the files are not there yet");
    bed.until_quiet();
    assert_eq!(assignment(&bed, UNIT).task, Task::Get);
    end(&mut bed, UNIT, None);
    assert!(copy(&mut bed).is_local);
    let answer = bed.request(StoreCall::Fetch { id: PAGE });
    assert!(answer.unwrap().unwrap().contains("\"is_local\":true"));
    // They stay for a day after the last request.
    bed.pass(80_000_000);
    bed.until_quiet();
    assert!(bed.world.units.is_empty());
    bed.until_woken();
    bed.until_quiet();
    assert_eq!(assignment(&bed, UNIT).task, Task::Drop);
}

#[test]
fn old_files_go_after_their_span() {
    let mut bed = with_store("2h");
    archive(&mut bed, 1);
    let sealed = bed.now;
    end(&mut bed, UNIT, None);
    assert!(bed.world.units.is_empty());
    bed.until_woken();
    assert_eq!(bed.now, sealed.after(Duration::from_secs(7200)));
    bed.until_quiet();
    assert_eq!(assignment(&bed, UNIT).task, Task::Drop);
}

#[test]
fn failed_restoration_is_answered() {
    let mut bed = with_store("never");
    archive(&mut bed, 1);
    end(&mut bed, UNIT, None);
    end(&mut bed, UNIT, None);
    let mut answer = bed.call(StoreCall::Fetch { id: PAGE });
    bed.until_quiet();
    end(&mut bed, UNIT, Some("no route to host"));
    let refused = format!("{:?}", answer.try_recv().unwrap());
    assert!(refused.contains("no route to host"), "{refused}");
    assert_eq!(copy(&mut bed).status, CopyStatus::Idle);
}

#[test]
fn retried_page_gets_its_files_first_and_is_copied_again() {
    let mut bed = with_store("never");
    archive(&mut bed, 1);
    end(&mut bed, UNIT, None);
    end(&mut bed, UNIT, None);
    bed.retry_some(Some(Owner::Snapshot(PAGE)), Which::All);
    loop {
        bed.until_quiet();
        if bed.world.units.contains_key(UNIT) {
            break;
        }
        match bed.running_hook() {
            Some(hook) => bed.world.end(&hook, 1, 0, "success"),
            None => bed.pass(1),
        }
    }
    assert_eq!(assignment(&bed, UNIT).task, Task::Get);
    let worker = "archivist-snapshot-1.service";
    assert!(!bed.world.units.contains_key(worker));
    end(&mut bed, UNIT, None);
    assert!(bed.world.units.contains_key(worker), "{:?}", bed.world.units);
    while let Some(hook) = bed.running_hook() {
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    assert_eq!(assignment(&bed, UNIT).task, Task::Put);
}

#[test]
fn files_of_a_page_that_is_archived_again_stay() {
    let mut bed = with_store("2h");
    archive(&mut bed, 1);
    end(&mut bed, UNIT, None);
    bed.retry_some(Some(Owner::Snapshot(PAGE)), Which::All);
    bed.until_quiet();
    bed.pass(8_000_000);
    bed.until_quiet();
    assert!(!bed.world.units.contains_key(UNIT));
    assert!(copy(&mut bed).is_local);
}

#[test]
fn earlier_pages_are_copied_to_a_new_store() {
    let mut bed = Bed::new();
    archive(&mut bed, 1);
    bed.engine.settings.store = Location::parse(STORE);
    bed.turn(vec![Event::of(|turn| crate::transfer::fill_store(turn, 0))]);
    bed.until_quiet();
    assert_eq!(assignment(&bed, UNIT).task, Task::Put);
    end(&mut bed, UNIT, None);
    bed.turn(vec![Event::of(|turn| crate::transfer::fill_store(turn, 0))]);
    bed.until_quiet();
    assert!(bed.world.units.is_empty(), "it is there");
    bed.engine.settings.store = Location::parse("/srv/other");
    bed.turn(vec![Event::of(|turn| crate::transfer::fill_store(turn, 0))]);
    bed.until_quiet();
    assert_eq!(assignment(&bed, UNIT).store, "/srv/other");
}

/// The orchestrator is killed after each number of calls to systemd while a page is copied.
#[test]
fn killed_orchestrator_adopts_transfers() {
    for heard in 0..6 {
        let mut bed = with_store("always");
        archive(&mut bed, 1);
        bed.restart(heard);
        bed.engine.settings.store = Location::parse(STORE);
        bed.until_quiet();
        if !bed.world.units.contains_key(UNIT) {
            bed.pass(1);
            bed.until_quiet();
        }
        end(&mut bed, UNIT, None);
        assert_eq!(copy(&mut bed).object, Some(object()), "killed after {heard} calls");
    }
}

#[test]
fn store_is_tested_on_request() {
    let mut bed = Bed::new();
    let answer = bed.request(StoreCall::Test { user: 0 });
    assert_eq!(answer.unwrap().unwrap(), "", "there is none");
    bed.engine.settings.store = Location::parse(STORE);
    let unit = "archivist-store-test.service";
    for error in [Some("permission denied"), None] {
        let mut answer = bed.call(StoreCall::Test { user: 0 });
        bed.until_quiet();
        assert_eq!(assignment(&bed, unit).task, Task::Test);
        end(&mut bed, unit, error);
        assert_eq!(answer.try_recv().unwrap().is_err(), error.is_some());
    }
}
