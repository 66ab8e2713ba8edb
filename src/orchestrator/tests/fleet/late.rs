//! Hooks whose unit starts after the deadline of the lease that the orchestrator knew.

use super::node::*;
use crate::tests::bed::Bed;
use archivist_core::model::{Lifecycle, Outcome, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::Filter;

const PAGE: Owner = Owner::Snapshot(SnapshotId(101));

/// A page whose lease was renewed, at the deadline that its hook was started with. Returns the unit
/// of the hook.
fn renewed() -> (Bed, String) {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.pass(LIVE_MS / 2);
    bed.renew(renewal(5), false);
    (bed, hook)
}

fn first_result(bed: &mut Bed) -> (ResultState, u32) {
    let result = &bed.look(|tx| tx.results(PAGE))[0];
    (result.status, result.attempts)
}

#[test]
fn late_hook_runs_again_under_the_renewed_lease_and_counts_no_attempt() {
    for restarts in [false, true] {
        let (mut bed, hook) = renewed();
        bed.pass(LIVE_MS / 2);
        bed.world.end(&hook, 1, 190, "exit-code");
        if restarts {
            bed.restart(0);
        }
        bed.until_quiet();
        assert_eq!(first_result(&mut bed), (ResultState::Started, 1));
        assert_eq!(bed.running_hook(), Some(hook));
        let next = &bed.world.units[&bed.running_hook().unwrap()];
        assert_eq!(next.not_after, Some(LIVE_MS / 2 + LIVE_MS));
        bed.run_units();
        assert_eq!(bed.status(101), Lifecycle::Sealed);
        assert_eq!(first_result(&mut bed), (ResultState::Succeeded, 1));
        let page = bed.look(|tx| tx.snapshot(SnapshotId(101))).unwrap();
        assert_eq!(page.attempts, 1);
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        let late = runs.iter().filter(|run| run.outcome == Some(Outcome::Late)).count();
        assert_eq!(late, 1);
    }
}

#[test]
fn hook_with_the_exit_status_of_late_ones_fails_before_its_deadline() {
    let (mut bed, hook) = renewed();
    bed.pass(LIVE_MS / 2 - 1);
    bed.world.end(&hook, 1, 190, "exit-code");
    bed.run_units();
    assert_eq!(first_result(&mut bed), (ResultState::Failed, 1));
}
