//! Reasons of the machine: no page is at fault, and none loses an attempt.

use super::bed::Bed;
use super::world::Mood;
use crate::main_loop::rooms::Which;
use crate::query::orders::Query;
use archivist_core::model::{CrawlId, IdMarks, Lifecycle, Outcome, Owner, ResultState, SnapshotId};
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::{Filter, Status};

const PAGE: &str = "archivist-snapshot-1.service";

/// A page whose first hook runs.
fn running() -> (Bed, String) {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    while !bed.world.units.contains_key(PAGE) {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let hook = bed.running_hook().unwrap();
    (bed, hook)
}

fn status(bed: &mut Bed) -> Status {
    let mut answer = bed.call(Query::Status);
    serde_json::from_str(&answer.try_recv().unwrap().unwrap()).unwrap()
}

/// `/run` is full, for example. It may be noticed with the start only.
#[test]
fn worker_that_the_machine_cannot_start_uses_up_no_attempt() {
    let mut bed = Bed::new();
    for _ in 0..6 {
        if bed.look(|tx| tx.list_crawls(&Filter::default())).is_empty() {
            bed.add(1);
        }
        bed.world.handle(Mood::Lack);
        bed.until_quiet();
        let crawl = bed.look(|tx| tx.list_crawls(&Filter::default())).remove(0);
        assert_eq!((crawl.attempts, crawl.status), (0, Lifecycle::Queued));
        let reason = crawl.reason.unwrap();
        assert!(reason.contains("the machine was not able to start it: no"), "{reason}");
        assert!(reason.ends_with("does not count"), "{reason}");
        bed.pass(600_000);
    }
    bed.come_to_an_end();
    let crawl = bed.look(|tx| tx.crawl(CrawlId(1))).unwrap();
    assert_eq!(crawl.status, Lifecycle::Sealed);
}

#[test]
fn outage_is_shown_although_nothing_is_due() {
    let mut bed = Bed::new();
    assert_eq!(status(&mut bed).blocked, None);
    let why = "the clock of the machine was not set: it is 1970-01-01T00:00:00.000Z";
    bed.engine.load.outage = Some(why.to_owned());
    assert_eq!(status(&mut bed).blocked.as_deref(), Some(why));
    bed.add(1);
    bed.until_quiet();
    assert!(bed.world.units.is_empty());
    bed.engine.load.outage = None;
    bed.until_woken();
    bed.until_quiet();
    assert!(!bed.world.units.is_empty());
    bed.come_to_an_end();
}

/// systemctl stop archivist.slice: the hook may exit with a failure because of SIGTERM.
#[test]
fn hook_that_is_stopped_with_its_slice_has_not_failed() {
    let (mut bed, hook) = running();
    bed.world.fail_at_stop(&hook, 1);
    bed.until_quiet();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let run = runs.iter().find(|run| run.unit == hook).unwrap();
    assert_eq!(run.outcome, Some(Outcome::Stopped));
    bed.come_to_an_end();
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result.status, ResultState::Succeeded, "{result:?}");
    }
}

/// The same if the orchestrator was stopped before, and the next one reads what is left.
#[test]
fn hook_that_was_stopped_with_the_orchestrator_runs_again() {
    let (mut bed, hook) = running();
    bed.restart(0);
    bed.world.vanish(PAGE);
    bed.world.fail_at_stop(&hook, 1);
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!((page.status, page.reason), (Lifecycle::Sealed, None));
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    for result in results {
        assert_eq!(result.status, ResultState::Succeeded, "{result:?}");
    }
}

/// The slice is stopped again and again, and with it the orchestrator: nothing shows how the units ended.
#[test]
fn units_that_were_stopped_with_the_orchestrator_use_up_no_attempt() {
    let (mut bed, _) = running();
    for _ in 0..6 {
        bed.restart(0);
        for unit in bed.world.running() {
            bed.world.vanish(&unit);
        }
        bed.until_quiet();
        for _ in 0..10 {
            if bed.running_hook().is_some() && bed.world.units.contains_key(PAGE) {
                break;
            }
            bed.until_woken();
            bed.until_quiet();
        }
        let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
        assert_eq!((page.attempts, page.status), (1, Lifecycle::Started));
        let results = bed.look(|tx| tx.list_results(&Filter::default()));
        assert!(results.iter().all(|result| result.attempts <= 1), "{results:?}");
    }
    let lost = Some(Outcome::Lost);
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    assert!(runs.iter().filter(|run| run.outcome == lost).count() >= 6);
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!((page.status, page.reason), (Lifecycle::Sealed, None));
}

#[test]
fn page_whose_directory_was_removed_is_named_and_retried() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    let directory = page.directory.unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::create_dir(bed.engine.archive().join(IdMarks::DIRECTORY)).unwrap();
    assert_eq!(bed.why("s1"), [("done".to_owned(), "done".to_owned())]);
    let id = Some(Owner::Snapshot(SnapshotId(1)));
    assert_eq!(bed.retry_some(id, Which::Failed), None, "nothing failed");
    remove_tree(directory.as_ref()).unwrap();
    let why = bed.why("s1");
    assert_eq!(why[0].0, "removed");
    let text =
        format!("its directory '{directory}' was removed; to archive it again: archivist retry s1");
    assert_eq!(why[0].1, text);
    assert_eq!(bed.retry_some(id, Which::Failed), Some(2), "both hooks");
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    assert_eq!(page.status, Lifecycle::Sealed);
}
