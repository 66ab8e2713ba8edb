//! Tests of pausing.

use super::bed::Bed;
use super::world::Mood;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use archivist_core::model::{Lifecycle, Owner, ResultState};
use archivist_shared::bus::documents::report::Filter;

/// Resumed crawls get their slots back at once, in addition to those that took them. They wait for
/// their pages, which must get a slot as well.
#[test]
fn resumed_crawls_leave_a_slot_for_pages() {
    let mut bed = Bed::new();
    for _ in 0..8 {
        bed.add(1);
        bed.until_quiet();
        for n in 0..8 {
            bed.pause(n);
        }
        bed.until_quiet();
    }
    bed.come_to_an_end();
}

/// The hook ended before its unit was frozen, and the orchestrator ended before it released the
/// unit.
#[test]
fn frozen_unit_is_thawed_before_its_crawl_is_cancelled() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.pause(0);
    bed.world.end(&hook, 1, 0, "success");
    bed.world.handle(Mood::Fine);
    assert!(bed.world.units[&hook].frozen);
    bed.turn_with(9, 9, 0);
    bed.world.handle(Mood::Fine);
    bed.turn_with(9, 9, 0);
    bed.restart(0);
    assert!(bed.look(|tx| tx.open_runs()).iter().all(|run| run.unit != hook));
    bed.cancel(0);
    bed.come_to_an_end();
}

impl Bed {
    pub fn pause(&mut self, n: usize) {
        let Some(id) = self.owner(n) else { return };
        self.request(Request::Pause { id });
    }

    pub fn resume(&mut self, n: usize) {
        let Some(id) = self.owner(n) else { return };
        self.request(Request::Resume { id });
    }

    /// The disk is full from now on, or is not any more: seen with the next turn.
    pub fn fill_disk(&mut self, full: bool) {
        self.engine.load.free = full.then_some(4096);
    }

    pub fn resume_all(&mut self) {
        let paused =
            Filter { status: Some(Lifecycle::Paused.as_str().to_owned()), ..Filter::default() };
        let (crawls, snapshots) =
            self.look(|tx| Ok((tx.list_crawls(&paused)?, tx.list_snapshots(&paused)?)));
        let crawls = crawls.iter().map(|crawl| Owner::Crawl(crawl.id));
        let snapshots = snapshots.iter().map(|s| Owner::Snapshot(s.id));
        for id in crawls.chain(snapshots) {
            self.request(Request::Resume { id });
        }
    }
}

/// A paused crawl whose first hook runs.
fn paused() -> (Bed, String) {
    let mut bed = Bed::new();
    bed.add(3);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.pause(0);
    bed.until_quiet();
    (bed, hook)
}

fn status(bed: &mut Bed) -> Lifecycle {
    bed.look(|tx| tx.list_crawls(&Filter::default()))[0].status
}

fn runs(bed: &mut Bed) -> usize {
    bed.look(|tx| tx.list_runs(&Filter::default())).len()
}

#[test]
fn pause_freezes_hooks_and_starts_nothing() {
    let (mut bed, hook) = paused();
    assert_eq!(status(&mut bed), Lifecycle::Paused);
    assert!(bed.world.units[&hook].frozen);
    let before = runs(&mut bed);
    // One that was at its end already ends, and what would follow it waits.
    bed.world.end(&hook, 1, 0, "success");
    bed.until_quiet();
    bed.pass(3_600_000);
    bed.until_quiet();
    assert_eq!((runs(&mut bed), bed.running_hook()), (before, None));

    bed.resume(0);
    bed.until_quiet();
    assert_eq!(status(&mut bed), Lifecycle::Started);
    let next = bed.running_hook().unwrap();
    assert!(next != hook && !bed.world.units[&next].frozen);
    bed.come_to_an_end();
}

#[test]
fn pause_survives_a_restart() {
    // PID 1 hears of the freezing, or not.
    for heard in [0, 9] {
        let mut bed = Bed::new();
        bed.add(1);
        bed.until_quiet();
        bed.pause(0);
        bed.restart(heard);
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        assert_eq!(status(&mut bed), Lifecycle::Paused);
        assert!(bed.world.units[&hook].frozen, "{heard}");

        bed.resume(0);
        bed.restart(0);
        bed.until_quiet();
        assert!(!bed.world.units[&hook].frozen, "{heard}");
        bed.come_to_an_end();
    }
}

#[test]
fn hook_runs_again_after_its_limit_expired_frozen() {
    let (mut bed, hook) = paused();
    bed.world.end(&hook, 2, 9, "timeout");
    bed.until_quiet();
    assert_eq!(bed.running_hook(), None, "it waits for the resume");
    bed.resume(0);
    bed.until_quiet();
    assert_eq!(bed.running_hook(), Some(hook.clone()));
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert_eq!(results[0].status, ResultState::Started);
    assert_eq!(results[0].attempts, 2);

    // The second run was never frozen: its limit holds.
    bed.world.end(&hook, 2, 9, "timeout");
    bed.until_quiet();
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    let first = results.last().unwrap();
    assert_eq!((first.status, first.attempts), (ResultState::Failed, 2));
    bed.come_to_an_end();
}

/// Nothing frozen is stopped, which the world asserts: 257 would refuse that.
#[test]
fn cancel_ends_frozen_hooks() {
    let (mut bed, _) = paused();
    bed.cancel(0);
    bed.until_quiet();
    assert_eq!(status(&mut bed), Lifecycle::Cancelled);
    assert!(bed.world.units.is_empty(), "{:?}", bed.world.units);
}

/// A call is made again when its answer was lost.
#[test]
fn repeated_request_succeeds() {
    let (mut bed, _) = paused();
    let id = bed.owner(0).unwrap();
    let pause = |bed: &mut Bed| bed.request(Request::Pause { id });
    let resume = |bed: &mut Bed| bed.request(Request::Resume { id });
    let cancel = |bed: &mut Bed| bed.request(Request::Cancel { id });
    for (call, then) in [
        (&pause as &dyn Fn(&mut Bed) -> _, Lifecycle::Paused),
        (&resume, Lifecycle::Started),
        (&cancel, Lifecycle::Cancelled),
    ] {
        for _ in 0..2 {
            assert_eq!(call(&mut bed), Some(Ok(String::new())));
            bed.until_quiet();
            assert_eq!(status(&mut bed), then);
        }
    }
    for (call, verb) in [(&pause as &dyn Fn(&mut Bed) -> _, "pause"), (&resume, "resume")] {
        let words = format!("{id} is cancelled, there is nothing to {verb}");
        assert_eq!(call(&mut bed), Some(Err(Refusal::Invalid(words))));
    }
}

#[test]
fn paused_crawl_uses_no_slot() {
    let (mut bed, hook) = paused();
    bed.add(4);
    bed.until_quiet();
    let running = bed.world.running();
    let awake = running.iter().filter(|unit| !bed.world.units[*unit].frozen);
    assert!(awake.filter(|unit| **unit != hook).count() >= 3);
    bed.come_to_an_end();
}

/// Crawls with only paused pages left do nothing, and delay no other crawl.
#[test]
fn crawl_waiting_for_paused_pages_uses_no_slot() {
    let mut bed = Bed::new();
    let most = bed.engine.settings.workers_per_kind as usize;
    for _ in 0..most {
        bed.add(1);
    }
    for _ in 0..most {
        bed.until_quiet();
        let running = bed.world.running();
        let set_up = running.iter().filter(|unit| unit.contains("setup"));
        for hook in set_up.cloned().collect::<Vec<_>>() {
            bed.world.end(&hook, 1, 0, "success");
        }
    }
    bed.until_quiet();
    for page in 0..most {
        bed.pause(most + page);
    }
    bed.add(1);
    bed.until_quiet();
    let newest = bed.look(|tx| tx.list_crawls(&Filter::default())).remove(0);
    assert_eq!(newest.status, Lifecycle::Started);
    bed.resume_all();
    bed.come_to_an_end();
}

/// Its worker dies: it keeps its state, and has another one after the resume.
#[test]
fn dead_worker_of_a_paused_crawl_is_replaced_after_resume() {
    let (mut bed, _) = paused();
    let workers = bed.world.running();
    for worker in workers.iter().filter(|unit| !unit.contains("-hook-")) {
        bed.world.end(worker, 2, 9, "signal");
    }
    bed.until_quiet();
    assert_eq!(status(&mut bed), Lifecycle::Paused);
    bed.resume(0);
    assert_eq!(status(&mut bed), Lifecycle::Queued);
    bed.come_to_an_end();
}

/// The worker of the attempt before is on its way out: it has no say in what was retried and
/// paused since.
#[test]
fn worker_of_an_earlier_attempt_does_not_continue_after_resume() {
    for resumes_first in [true, false] {
        let mut bed = Bed::new();
        bed.add(2);
        bed.cancel(0);
        bed.retry(0);
        bed.pause(0);
        if resumes_first {
            bed.resume(0);
            assert_eq!(status(&mut bed), Lifecycle::Queued);
        } else {
            bed.until_quiet();
            assert_eq!(status(&mut bed), Lifecycle::Paused);
        }
        bed.come_to_an_end();
    }
}

#[test]
fn queued_item_can_be_paused() {
    let mut bed = Bed::new();
    bed.add(1);
    while bed.world.handle(Mood::Refuse) {}
    bed.turn_with(9, 9, 0);
    assert_eq!(status(&mut bed), Lifecycle::Queued);
    bed.pause(0);
    bed.pass(86_400_000);
    assert_eq!(status(&mut bed), Lifecycle::Paused);
    bed.resume(0);
    bed.until_quiet();
    assert_eq!(status(&mut bed), Lifecycle::Started);
    bed.come_to_an_end();
}
