//! Cancelled crawls, until their last unit has ended.

use super::bed::Bed;
use crate::calls::requests::Request;
use archivist_core::model::{AnyId, CrawlId, Outcome, Owner};
use archivist_shared::bus::documents::report::Filter;

#[test]
fn cancelled_hook_that_ignores_sigterm_is_killed_and_waited_for() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.cancel(0);
    let id = AnyId::Owner(Owner::Crawl(CrawlId(1)));
    let mut answer = bed.call(Request::AwaitUnits { id });
    assert!(answer.try_recv().is_err(), "units still run");
    // systemd reports this after TimeoutStopSec=.
    bed.world.end(&hook, 2, 9, "timeout");
    bed.until_quiet();
    assert_eq!(answer.try_recv().unwrap(), Ok(String::new()));
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let run = runs.iter().find(|run| run.hook.is_some()).unwrap();
    assert_eq!(run.outcome, Some(Outcome::Killed));
    bed.come_to_an_end();
}

#[test]
fn a_cancelled_run_is_waited_for() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let run = runs.iter().find(|run| run.unit == hook).unwrap().id;
    bed.cancel_run(run).unwrap();
    let id = AnyId::Run(run);
    let mut answer = bed.call(Request::AwaitUnits { id });
    assert!(answer.try_recv().is_err(), "its unit still runs");
    bed.world.end(&hook, 2, 15, "success");
    bed.until_quiet();
    assert_eq!(answer.try_recv().unwrap(), Ok(String::new()));
    bed.come_to_an_end();
}
