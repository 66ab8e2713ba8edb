//! Tests of what the end of a worker means.

use super::*;
use crate::model::{HttpAnswer, HttpErrors};
use crate::plan::VisitRules;

const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(3600), attempts: 3 };

fn end(outcome: Outcome, attempts: u32) -> WorkerEnd {
    WorkerEnd {
        outcome,
        attempts,
        unfinished: false,
        spent: None,
        was_paused: false,
        without_hooks: None,
        visit: None,
        refused: 0,
        uncounted: None,
    }
}

#[test]
fn page_without_hooks_is_sealed_with_a_reason() {
    let table = [
        (
            WithoutHooks::NoPlugin,
            "nothing was archived: none of the plugins of its crawl has a hook for pages",
        ),
        (
            WithoutHooks::AllSkipped("wget: wget is not installed".to_owned()),
            "nothing was archived: all hooks were skipped (wget: wget is not installed)",
        ),
    ];
    for (why, reason) in table {
        let without = WorkerEnd { without_hooks: Some(why), ..end(Outcome::Exit(0), 1) };
        let settled = settle_worker(&without, &BACKOFF, Time(0), 1.0);
        assert_eq!(settled.step, Step::Seal);
        assert_eq!(settled.reason.as_deref(), Some(reason));
    }
    let with = settle_worker(&end(Outcome::Exit(0), 1), &BACKOFF, Time(0), 1.0);
    assert_eq!(with.reason, None);
}

#[test]
fn uncounted_attempt_is_repeated_however_many_there_were() {
    let end = WorkerEnd {
        uncounted: Some(Uncounted {
            why: "the archive is gone".to_owned(),
            delay: Duration::from_secs(10),
        }),
        ..end(Outcome::Exit(1), 99)
    };
    let settled = settle_worker(&end, &BACKOFF, Time(0), 1.0);
    assert_eq!(settled.step, Step::Requeue);
    assert_eq!(settled.retry_at, Some(Time(10_000)));
    assert_eq!(settled.reason.as_deref(), Some("the archive is gone"));
}

#[test]
fn step_by_outcome() {
    let settle = |end: &WorkerEnd| settle_worker(end, &BACKOFF, Time(0), 1.0);
    assert_eq!(settle(&end(Outcome::Exit(0), 1)).step, Step::Seal);
    let again = settle(&end(Outcome::Signal(9), 1));
    assert_eq!((again.step, again.retry_at), (Step::Requeue, Some(Time(60_000))));
    let enough = settle(&end(Outcome::Watchdog, 3));
    assert_eq!(enough.step, Step::Seal);
    assert!(enough.reason.unwrap().contains("given up after 3 attempts"));
    let spent = WorkerEnd { spent: Some("12h are over".to_owned()), ..end(Outcome::TimeLimit, 1) };
    let settled = settle(&spent);
    assert_eq!((settled.step, settled.retry_at), (Step::Seal, None));
    assert_eq!(settled.reason, spent.spent);
    assert_eq!(settle(&end(Outcome::Signal(15), 1)).step, Step::Cancel);
}

#[test]
fn time_limit_of_a_paused_worker_allows_another_attempt() {
    let excused = WorkerEnd { was_paused: true, ..end(Outcome::TimeLimit, 3) };
    let settled = settle_worker(&excused, &BACKOFF, Time(0), 0.5);
    assert_eq!((settled.step, settled.retry_at), (Step::Requeue, Some(Time(1))));
}

#[test]
fn success_with_an_unfinished_hook_requeues() {
    let end = WorkerEnd { unfinished: true, ..end(Outcome::Exit(0), 1) };
    assert_eq!(settle_worker(&end, &BACKOFF, Time(0), 0.5).step, Step::Requeue);
}

/// Ends of a worker: done, died, given up, stopped by hand.
fn ends() -> [WorkerEnd; 4] {
    [
        end(Outcome::Exit(0), 1),
        end(Outcome::Signal(9), 1),
        end(Outcome::Signal(9), 3),
        end(Outcome::Signal(15), 1),
    ]
}

fn word(after: &AfterWorker) -> &'static str {
    match after {
        AfterWorker::Nothing => "-",
        AfterWorker::StayPaused { .. } => "paused",
        AfterWorker::Step(settled) => match settled.step {
            Step::Seal => "seal",
            Step::Requeue => "requeue",
            Step::Cancel => "cancel",
            other => panic!("{other:?}"),
        },
    }
}

/// Every state by every end.
#[test]
fn end_of_a_worker_by_state() {
    let table = [
        "- - - -",                  // queued
        "seal requeue seal cancel", // started
        "- - - -",                  // sealed
        "seal paused seal cancel",  // paused
        "- - - -",                  // cancelled
    ];
    for (status, row) in Lifecycle::ALL.into_iter().zip(table) {
        for (end, want) in ends().iter().zip(row.split(' ')) {
            let after = after_worker(status, end, &BACKOFF, Time(0), 0.5);
            assert_eq!(word(&after), want, "{status} {end:?}");
            let before_retry = WorkerEnd { attempts: 0, ..end.clone() };
            let after = after_worker(status, &before_retry, &BACKOFF, Time(0), 0.5);
            let started = status == Lifecycle::Started;
            assert_eq!(after != AfterWorker::Nothing, started, "{status} {end:?}");
        }
    }
}

/// The end of a worker whose visit the server answered with this status.
fn visited(outcome: Outcome, status: u16, errors: HttpErrors, is_last: bool) -> WorkerEnd {
    let rules = VisitRules { errors, is_last, ..VisitRules::default() };
    let answer = HttpAnswer { status, plugin: "headers".to_owned() };
    WorkerEnd {
        visit: Some(Visit {
            rules,
            answer,
            refused: 0,
            asked: Some(Time(8_000)),
            backoff: BACKOFF,
        }),
        ..end(outcome, 1)
    }
}

/// Every state by every answer.
#[test]
fn end_of_a_visit_by_state_and_answer() {
    let done = || Outcome::Exit(0);
    let visits = [
        visited(done(), 200, HttpErrors::Keep, false),
        visited(done(), 404, HttpErrors::Keep, false),
        visited(done(), 404, HttpErrors::Fail, false),
        visited(done(), 429, HttpErrors::Keep, false),
        visited(done(), 429, HttpErrors::Keep, true),
        visited(Outcome::Signal(9), 429, HttpErrors::Keep, false),
    ];
    let table = [
        "- - - - - -",                         // queued
        "seal seal seal requeue seal requeue", // started
        "- - - - - -",                         // sealed
        "seal seal seal paused seal paused",   // paused
        "- - - - - -",                         // cancelled
    ];
    for (status, row) in Lifecycle::ALL.into_iter().zip(table) {
        for (end, want) in visits.iter().zip(row.split(' ')) {
            let after = after_worker(status, end, &BACKOFF, Time(0), 1.0);
            assert_eq!(word(&after), want, "{status} {end:?}");
        }
    }
    let reasons = visits.each_ref().map(|end| {
        let settled = settle_worker(end, &BACKOFF, Time(0), 1.0);
        (settled.retry_at.map(|at| at.0), settled.reason, end.treatment())
    });
    use Treatment::{Fail, GiveUp, Keep, Wait};
    let asked = "http 429; the server asks to wait (Retry-After); visit 1 of 3 was refused";
    let some = |reason: &str| Some(reason.to_owned());
    assert_eq!(reasons[..2], [(None, None, Keep), (None, None, Keep)]);
    assert_eq!(reasons[2], (None, some("http 404"), Fail));
    assert_eq!(reasons[3], (Some(8_000), some(asked), Wait));
    assert_eq!(reasons[4], (None, some("http 429"), GiveUp));
    assert_eq!(reasons[5].0, Some(60_000), "a dead worker continues the visit");
    assert_eq!(reasons[5].2, Keep);
}

/// Refused visits are no failed attempts of workers.
#[test]
fn refused_visits_use_up_no_attempts() {
    let died = WorkerEnd { refused: 4, ..end(Outcome::Signal(9), 5) };
    let settled = settle_worker(&died, &BACKOFF, Time(0), 1.0);
    assert_eq!(settled.step, Step::Requeue);
    assert!(settled.reason.unwrap().ends_with("attempt 1 of 3"));
}

#[test]
fn a_paused_crawl_keeps_the_reason_of_its_worker() {
    let after = after_worker(Lifecycle::Paused, &ends()[1], &BACKOFF, Time(0), 1.0);
    let AfterWorker::StayPaused { retry_at, reason } = after else {
        panic!("{after:?}");
    };
    assert_eq!(retry_at, Some(Time(60_000)));
    assert!(reason.starts_with("paused by request; worker: "), "{reason}");
}

/// Columns: nothing open, aborted, snapshots open, both.
#[test]
fn end_of_a_crawl_worker_by_state_and_pages() {
    let table = [
        (Lifecycle::Started, 0, "seal cancel requeue requeue"),
        (Lifecycle::Started, 1, "requeue requeue requeue requeue"),
        (Lifecycle::Started, 2, "give-up give-up give-up give-up"),
        (Lifecycle::Started, 3, "cancel cancel cancel cancel"),
        (Lifecycle::Paused, 0, "seal cancel paused paused"),
        (Lifecycle::Paused, 1, "paused paused paused paused"),
        (Lifecycle::Paused, 2, "give-up give-up give-up give-up"),
        (Lifecycle::Paused, 3, "cancel cancel cancel cancel"),
        (Lifecycle::Queued, 0, "- - - -"),
        (Lifecycle::Sealed, 1, "- - - -"),
        (Lifecycle::Cancelled, 2, "- - - -"),
    ];
    for (status, which, row) in table {
        for (n, want) in row.split(' ').enumerate() {
            let after = after_worker(status, &ends()[which], &BACKOFF, Time(0), 0.5);
            let aborted = (n % 2 == 1).then(|| "aborted".to_owned());
            let after = after_crawl_worker(after, Time(0), n > 1, aborted, status);
            let got = match after {
                AfterCrawlWorker::Nothing => "-",
                AfterCrawlWorker::StayPaused { .. } => "paused",
                AfterCrawlWorker::Requeue { .. } => "requeue",
                AfterCrawlWorker::Seal => "seal",
                AfterCrawlWorker::GiveUp(_) => "give-up",
                AfterCrawlWorker::Cancel(_) => "cancel",
            };
            assert_eq!(got, want, "{status} {which} {n}");
        }
    }
}
