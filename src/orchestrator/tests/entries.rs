//! Entries of lists that are kept without a visit: one unit writes the directories of many.

use super::bed::Bed;
use crate::calls::requests::Request;
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::work::EntriesToWrite;

/// A crawl of so many entries, whose first unit runs.
fn kept(entries: usize) -> Bed {
    let mut bed = Bed::new();
    bed.keep(entries);
    bed.until_quiet();
    bed
}

/// The running unit, if there is one; there is no other.
fn unit(bed: &Bed) -> Option<String> {
    let mut units = bed.running_of("-entries-");
    assert!(units.len() < 2, "{units:?}");
    units.pop()
}

fn to_write(bed: &Bed) -> EntriesToWrite {
    let unit = &bed.world.units[&unit(bed).unwrap()];
    serde_json::from_slice(unit.stdin.as_ref().unwrap()).unwrap()
}

/// Page, directory and identity of each.
fn directories(request: &EntriesToWrite) -> Vec<(Owner, String, Option<String>)> {
    let pages = request.pages.iter();
    let of = pages.map(|page| {
        let directory = page.directory.to_string_lossy().into_owned();
        (page.owner, directory, page.identity.clone())
    });
    of.collect()
}

fn end(bed: &mut Bed, code: i32, status: i32, result: &str) {
    let unit = unit(bed).unwrap();
    bed.world.end(&unit, code, status, result);
    bed.until_quiet();
}

fn count(bed: &mut Bed, status: Lifecycle) -> u64 {
    let counts = bed.look(|tx| tx.counts("snapshot", Some(CrawlId(1))));
    counts.get(status.as_str()).copied().unwrap_or(0)
}

fn crawl_status(bed: &mut Bed) -> Lifecycle {
    bed.look(|tx| tx.status_of(Owner::Crawl(CrawlId(1))))
}

fn single_units(bed: &Bed) -> usize {
    bed.running_of("-snapshot-").len() + bed.running_of("-hook-").len()
}

#[test]
fn entries_share_units_and_are_sealed_after_their_end() {
    let mut bed = kept(450);
    let mut sealed = 0;
    for pages in [200, 200, 50] {
        assert_eq!(to_write(&bed).pages.len(), pages);
        assert_eq!(count(&mut bed, Lifecycle::Sealed), sealed);
        assert_eq!(single_units(&bed), 0);
        end(&mut bed, 1, 0, "success");
        sealed += pages as u64;
    }
    assert_eq!(count(&mut bed, Lifecycle::Sealed), 450);
    assert_eq!(crawl_status(&mut bed), Lifecycle::Sealed);
    let results = bed.look(|tx| tx.results(Owner::Snapshot(SnapshotId(450))));
    let output = "an entry of 'list.csv', which was not visited";
    assert_eq!(
        (results.len(), results[0].status, results[0].output.as_deref()),
        (1, ResultState::NoResults, Some(output))
    );
    let counts = bed.look(|tx| tx.counts("result", Some(CrawlId(1))));
    assert_eq!(counts["noresults"], 450);
}

/// The next unit writes to the same directories, and pages are sealed once.
#[test]
fn killed_unit_or_orchestrator_loses_no_entry() {
    let mut bed = kept(3);
    let first = to_write(&bed);
    assert!(!first.again);
    end(&mut bed, 2, 9, "signal");
    let second = to_write(&bed);
    assert!(second.again);
    assert_eq!(directories(&second), directories(&first));

    // The unit outlives the orchestrator, and its end is read by the next one.
    bed.restart(0);
    end(&mut bed, 1, 0, "success");
    assert_eq!(count(&mut bed, Lifecycle::Sealed), 3);
    assert_eq!(crawl_status(&mut bed), Lifecycle::Sealed);

    // The machine reboots: systemd does not know the unit.
    let mut bed = kept(3);
    let first = to_write(&bed);
    bed.world = super::world::World::default();
    bed.restart(0);
    bed.engine.boot = "another".to_owned();
    bed.until_quiet();
    bed.pass(3_600_000);
    bed.until_quiet();
    assert_eq!(directories(&to_write(&bed)), directories(&first));
    end(&mut bed, 1, 0, "success");
    assert_eq!(count(&mut bed, Lifecycle::Sealed), 3);
}

/// What a unit cannot do for many pages, a worker finds out for each.
#[test]
fn entries_whose_unit_fails_get_workers() {
    for (ends, status, result) in [(3, 1, "exit-code"), (1, 73, "exit-code")] {
        let mut bed = kept(4);
        for _ in 0..ends {
            assert_eq!(single_units(&bed), 0);
            end(&mut bed, 1, status, result);
        }
        assert_eq!(unit(&bed), None);
        assert_eq!(bed.running_of("-snapshot-").len(), 2, "SnapshotsPerCrawl=");
        bed.come_to_an_end();
        assert_eq!(count(&mut bed, Lifecycle::Sealed), 4);
    }
}

#[test]
fn cancelled_entries_are_deleted_after_the_end_of_their_unit() {
    let mut bed = kept(2);
    bed.cancel(0);
    bed.until_quiet();
    assert_eq!(count(&mut bed, Lifecycle::Cancelled), 2);
    let ids = [Owner::Crawl(CrawlId(1))];
    let left = bed.delete_these(&ids, false).left;
    let reason = &left[0].reason;
    assert!(reason.contains("archivist-entries-"), "{reason}");
    end(&mut bed, 1, 0, "success");
    assert_eq!(count(&mut bed, Lifecycle::Cancelled), 2);
    assert!(bed.delete_these(&ids, false).left.is_empty());
    bed.until_quiet();
    assert_eq!(bed.look(|tx| tx.list_snapshots(&Filter::default())).len(), 0);
}

#[test]
fn paused_entries_wait() {
    let mut bed = kept(2);
    let page = Owner::Snapshot(SnapshotId(2));
    bed.request(Request::Pause { id: page });
    end(&mut bed, 1, 0, "success");
    assert_eq!(count(&mut bed, Lifecycle::Sealed), 1);
    assert_eq!(bed.look(|tx| tx.status_of(page)), Lifecycle::Paused);
    assert_eq!(unit(&bed), None);
    bed.request(Request::Resume { id: page });
    bed.until_quiet();
    assert_eq!(to_write(&bed).pages.len(), 1);
    end(&mut bed, 1, 0, "success");
    assert_eq!(crawl_status(&mut bed), Lifecycle::Sealed);
}
