//! The limit of a page as a whole.

use super::bed::Bed;
use archivist_core::model::{Lifecycle, Owner, ResultState};
use archivist_shared::bus::documents::report::{Filter, Snapshot};

const WORKER: &str = "archivist-snapshot-1.service";
const HOURS: u64 = 3_600_000;

/// A page with a running hook.
fn at_work() -> Bed {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    while !bed.world.units.contains_key(WORKER) {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    assert!(bed.running_hook().unwrap().contains("-s1"));
    bed
}

fn page(bed: &mut Bed) -> Snapshot {
    bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0)
}

/// PID 1 ends the worker for its limit.
fn reach_the_limit(bed: &mut Bed) {
    bed.world.end(WORKER, 2, 15, "timeout");
    bed.until_quiet();
}

#[test]
fn page_that_used_its_time_is_sealed() {
    let mut bed = at_work();
    bed.pass(12 * HOURS);
    reach_the_limit(&mut bed);
    let page = page(&mut bed);
    assert_eq!(page.status, Lifecycle::Sealed);
    let why = "not done within SnapshotMaxSec=12h";
    assert_eq!(page.reason.as_deref(), Some(why));
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    let hook = results.iter().find(|r| r.owner == Owner::Snapshot(page.id)).unwrap();
    assert_eq!(hook.status, ResultState::Failed);
    assert_eq!(hook.error.as_deref(), Some(why));
    bed.come_to_an_end();
}

/// A start or a stop that takes too long is called so as well.
#[test]
fn page_with_time_left_is_retried() {
    let mut bed = at_work();
    bed.pass(10 * HOURS);
    reach_the_limit(&mut bed);
    assert_eq!(page(&mut bed).status, Lifecycle::Queued);
    bed.come_to_an_end();
}

#[test]
fn page_that_was_paused_is_retried_after_its_limit() {
    for (resumed, attempts) in [(false, 3), (true, 3), (false, 1), (true, 1)] {
        let mut bed = at_work();
        bed.engine.settings.attempts_max = attempts;
        bed.pause(1);
        bed.pass(12 * HOURS);
        let status = if !resumed {
            Lifecycle::Paused
        } else {
            bed.resume(1);
            bed.until_quiet();
            Lifecycle::Queued
        };
        reach_the_limit(&mut bed);
        assert_eq!(page(&mut bed).status, status);
        bed.come_to_an_end();
    }
}
