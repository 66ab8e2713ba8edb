//! Retries of crawls, pages and failed results.

use super::bed::Bed;
use crate::store::RunEntry;
use archivist_core::model::{Lifecycle, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::Filter;

#[test]
fn retry_of_one_page_leaves_the_rest_of_an_aborted_crawl() {
    let mut bed = Bed::new();
    bed.add(3);
    bed.until_quiet();
    bed.abort(0);
    bed.come_to_an_end();
    let status = |bed: &mut Bed| bed.look(|tx| tx.list_crawls(&Filter::default()))[0].status;
    assert_eq!(status(&mut bed), Lifecycle::Cancelled);

    bed.retry(1);
    bed.come_to_an_end();
    assert_eq!(
        status(&mut bed),
        Lifecycle::Sealed,
        "the retried page is done"
    );
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    let mut states: Vec<&str> = pages.iter().map(|page| page.status.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["cancelled", "cancelled", "sealed"]);

    // The other pages can still be retried.
    bed.retry(0);
    bed.come_to_an_end();
    assert_eq!(status(&mut bed), Lifecycle::Sealed);
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert!(pages.iter().all(|page| page.status == Lifecycle::Sealed));
}

/// A worker dies while many pages wait. What it left running waits for its page.
#[test]
fn page_that_is_due_for_a_retry_precedes_waiting_pages() {
    let mut bed = Bed::new();
    bed.add(6);
    bed.until_quiet();
    let worker = |n: usize| format!("archivist-snapshot-{n}.service");
    while !bed.world.units.contains_key(&worker(2)) {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let dies = |bed: &mut Bed, n| {
        bed.world.end(&worker(n), 2, 9, "signal");
        bed.until_quiet();
    };
    dies(&mut bed, 1);
    assert!(bed.world.units.contains_key(&worker(3)), "the next page");
    // Its retry is due, but the slots of the crawl are taken.
    bed.pass(300_000);
    bed.until_quiet();
    assert!(!bed.world.units.contains_key(&worker(1)));
    dies(&mut bed, 2);
    assert!(bed.world.units.contains_key(&worker(1)), "the retry");
    assert!(!bed.world.units.contains_key(&worker(4)), "a waiting page");
    bed.come_to_an_end();
}

#[test]
fn retry_of_failures_leaves_cancelled_crawls() {
    let mut bed = Bed::new();
    for last in [false, false, true] {
        bed.add(1);
        bed.until_quiet();
        let setup = bed.running_hook().unwrap();
        bed.world.end(&setup, 1, 0, "success");
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 1, "exit-code");
        bed.until_quiet();
        if last {
            bed.cancel(0);
        }
        bed.come_to_an_end();
    }
    let failed = |bed: &mut Bed| {
        let results = bed.look(|tx| tx.list_results(&Filter::default()));
        let failed = results.iter().filter(|r| r.status == ResultState::Failed);
        let mut owners: Vec<String> = failed.map(|r| r.owner.to_string()).collect();
        owners.dedup();
        owners
    };
    assert_eq!(failed(&mut bed), ["s3", "s2", "s1"]);

    bed.retry_failed();
    bed.come_to_an_end();
    assert_eq!(failed(&mut bed), ["s3"]);
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let hooks = |n: i64| {
        let of =
            |run: &&RunEntry| run.owner == Owner::Snapshot(SnapshotId(n)) && run.hook.is_some();
        runs.iter().filter(of).count()
    };
    assert_eq!(hooks(1), hooks(2));
    assert!(hooks(1) > hooks(3), "the cancelled crawl stays as it is");
}
