//! Tests of interrupts and of commands in the foreground.

use super::bed::Bed;
use archivist_core::model::{Lifecycle, Outcome, ResultState, RunId};
use archivist_shared::bus::call::Refusal;
use archivist_shared::bus::documents::report::{Details, Filter};

/// A held crawl whose first hook runs and is interrupted; its unit is gone on return.
fn interrupted(hold: bool) -> Bed {
    let mut bed = Bed::new();
    bed.add(1);
    if hold {
        bed.hold(0);
    }
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.interrupt(0);
    bed.until_quiet();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let run = runs.iter().rfind(|run| run.unit == hook).unwrap();
    assert_eq!(run.outcome, Some(Outcome::Interrupted));
    bed
}

fn first_result(bed: &mut Bed) -> (ResultState, u32, Option<String>) {
    let result = bed.look(|tx| tx.list_results(&Filter::default()));
    let first = result.last().unwrap();
    (first.status, first.attempts, first.error.clone())
}

#[test]
fn interrupted_hook_waits_for_a_decision() {
    let mut bed = interrupted(true);
    assert_eq!(first_result(&mut bed), (ResultState::Started, 1, None));
    assert_eq!(bed.running_hook(), None, "the next hook waits");
    bed.proceed(0, true);
    bed.until_quiet();
    assert_eq!(first_result(&mut bed), (ResultState::Started, 2, None));
    let again = bed.running_hook().unwrap();

    bed.interrupt(0);
    bed.proceed(0, false);
    bed.until_quiet();
    let why = Some("interrupted by user".to_owned());
    assert_eq!(first_result(&mut bed), (ResultState::Skipped, 2, why));
    assert_ne!(bed.running_hook().unwrap(), again, "the next hook's turn");
    bed.come_to_an_end();
}

#[test]
fn interrupted_hook_is_skipped_without_a_holder() {
    let why = Some("interrupted by user".to_owned());
    let mut bed = interrupted(false);
    assert_eq!(
        first_result(&mut bed),
        (ResultState::Skipped, 1, why.clone())
    );
    bed.come_to_an_end();

    let mut bed = interrupted(true);
    bed.abandon(0, false);
    bed.until_quiet();
    assert_eq!(first_result(&mut bed), (ResultState::Skipped, 1, why));
    bed.come_to_an_end();
}

#[test]
fn decision_survives_a_restart() {
    for again in [true, false] {
        let mut bed = interrupted(true);
        bed.proceed(0, again);
        bed.restart(9);
        bed.until_quiet();
        let (status, attempts, _) = first_result(&mut bed);
        if again {
            assert_eq!((status, attempts), (ResultState::Started, 2))
        } else {
            assert_eq!((status, attempts), (ResultState::Skipped, 1))
        }
        bed.come_to_an_end();
    }
}

#[test]
fn crawl_is_aborted_with_its_command() {
    let mut bed = interrupted(true);
    bed.abandon(0, true);
    bed.until_quiet();
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Cancelled);
    assert_eq!(bed.running_hook(), None);
    bed.come_to_an_end();
}

#[test]
fn a_single_run_is_shown_and_ended() {
    for hold in [false, true] {
        let mut bed = Bed::new();
        bed.add(1);
        if hold {
            bed.hold(0);
        }
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        let run = runs.iter().find(|run| run.unit == hook).unwrap().id;
        let worker = runs.iter().find(|run| run.hook.is_none()).unwrap().id;

        bed.cancel_run(run).unwrap();
        bed.cancel_run(run).unwrap();
        bed.until_quiet();
        let Details::Run { run: shown, result } = bed.show_run(run).unwrap() else {
            panic!("not a run");
        };
        assert_eq!(shown.outcome, Some(Outcome::Interrupted));
        let result = result.unwrap();
        assert_eq!(result.status, ResultState::Skipped);
        assert_eq!(result.error.as_deref(), Some("interrupted by user"));
        assert_ne!(bed.running_hook().unwrap(), hook, "the next hook's turn");

        let refused = bed.cancel_run(worker).unwrap_err();
        let Refusal::Invalid(why) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.contains("is the worker of c1"), "{why}");
        bed.come_to_an_end();
        assert!(bed.cancel_run(worker).is_err());
        assert!(bed.cancel_run(RunId(999)).is_err());
        assert!(bed.show_run(RunId(999)).is_err());
    }
}
