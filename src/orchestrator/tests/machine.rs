//! Reasons of the machine: no page is at fault, and none loses an attempt.

use super::bed::Bed;
use super::world::Mood;
use crate::main_loop::event::Event;
use archivist_core::model::{CrawlId, Lifecycle};
use archivist_shared::bus::call::{Reply, Request};
use archivist_shared::bus::documents::report::{Filter, Status};

fn status(bed: &mut Bed) -> Status {
    let (reply, mut answer) = Reply::new();
    bed.turn(vec![Event::Request(Request::Status { reply })]);
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
        assert!(
            reason.contains("the machine was not able to start it: no"),
            "{reason}"
        );
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
