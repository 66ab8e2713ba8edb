//! Visits of pages whose servers answer with an error.

use super::bed::Bed;
use super::worker::Server;
use crate::main_loop::rooms::Which;
use crate::query::orders::Query;
use archivist_core::model::{AnyId, HttpErrors, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::Snapshot;
use archivist_shared::bus::documents::report::{AddOptions, Filter, Reason, Why};

const PAGE: Owner = Owner::Snapshot(SnapshotId(1));

fn page(bed: &mut Bed) -> Snapshot {
    bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0)
}

/// The states of the results of the page, with their reasons, in the order of their ids.
fn results(bed: &mut Bed) -> Vec<(String, ResultState, Option<String>)> {
    let results = bed.look(|tx| tx.results(PAGE)).into_iter();
    let results = results.filter(|result| result.status != ResultState::Skipped);
    results.map(|result| (result.plugin, result.status, result.error)).collect()
}

/// A crawl of one page, whose server answers like this until its worker has ended.
fn visited(bed: &mut Bed, status: u16, retry_after: Option<u64>) {
    bed.world.server = Some(Server { status, retry_after });
    bed.add_with("http://a.example/", AddOptions::default());
    until_visited(bed);
}

/// Runs until the worker of the page has ended.
fn until_visited(bed: &mut Bed) {
    let started = |bed: &mut Bed| page(bed).status == Lifecycle::Started;
    while !started(bed) && bed.moves_on() {}
    while started(bed) && bed.moves_on() {}
    bed.until_quiet();
}

fn why(bed: &mut Bed) -> Vec<Reason> {
    let why: Why = bed.document(Query::Why { id: AnyId::Owner(PAGE) });
    why.reasons
}

#[test]
fn refused_page_waits_as_long_as_the_server_asks() {
    let mut bed = Bed::new();
    visited(&mut bed, 429, Some(8));
    let waiting = page(&mut bed);
    assert_eq!(waiting.status, Lifecycle::Queued);
    let reason = waiting.reason.unwrap();
    assert!(reason.starts_with("http 429; the server asks to wait"), "{reason}");
    let waits = waiting.retry_at.unwrap().until(bed.now);
    assert!((1..=8).contains(&waits.as_secs()), "{waits:?}");
    assert_eq!(waiting.http_status, None, "nothing is kept");
    let open = results(&mut bed);
    assert!(open.iter().all(|(_, state, _)| *state == ResultState::Queued), "{open:?}");
    let reasons = why(&mut bed);
    let reason = reasons.iter().find(|reason| reason.code == "back-off").unwrap();
    assert_eq!(reason.until, waiting.retry_at);
    assert!(reason.text.contains("http 429"), "{}", reason.text);

    // The server lets the next visit pass, in which every hook runs.
    bed.world.server = Some(Server { status: 200, retry_after: None });
    bed.come_to_an_end();
    let done = page(&mut bed);
    assert_eq!((done.status, done.reason, done.http_status), (Lifecycle::Sealed, None, Some(200)));
    let states = results(&mut bed);
    assert!(states.iter().all(|(_, state, _)| *state == ResultState::Succeeded), "{states:?}");
    assert_eq!(bed.look(|tx| tx.visit(SnapshotId(1))).number, 1);
}

#[test]
fn request_of_a_host_is_a_reason_until_its_time() {
    let mut bed = Bed::new();
    visited(&mut bed, 429, Some(8));
    let is_named = |bed: &mut Bed| why(bed).iter().any(|reason| reason.code == "host-asked");
    assert!(is_named(&mut bed));
    bed.world.server = Some(Server { status: 503, retry_after: None });
    let next_at = page(&mut bed).retry_at.unwrap();
    bed.pass(next_at.until(bed.now).as_millis() as u64 + 1);
    until_visited(&mut bed);
    assert_eq!(page(&mut bed).status, Lifecycle::Queued);
    assert!(!is_named(&mut bed), "{:?}", why(&mut bed));
}

/// Without Retry-After the delays double. After the last visit the results fail.
#[test]
fn page_that_is_always_refused_fails_after_the_last_visit() {
    let mut bed = Bed::new();
    bed.engine.settings.http_attempts = 4;
    visited(&mut bed, 503, None);
    let mut waits = Vec::new();
    while page(&mut bed).status == Lifecycle::Queued {
        let next_at = page(&mut bed).retry_at.unwrap();
        waits.push(next_at.until(bed.now).as_secs());
        bed.pass(next_at.until(bed.now).as_millis() as u64 + 1);
        until_visited(&mut bed);
    }
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    let done = page(&mut bed);
    assert_eq!(done.status, Lifecycle::Sealed);
    assert_eq!(done.reason.as_deref(), Some("http 503"));
    assert_eq!(done.http_status, Some(503));
    let states = results(&mut bed);
    assert!(!states.is_empty());
    for (plugin, state, error) in states {
        assert_eq!(state, ResultState::Failed, "{plugin}");
        assert_eq!(error.as_deref(), Some("http 503"), "{plugin}");
    }
    bed.come_to_an_end();
}

#[test]
fn other_errors_are_treated_as_the_setting_says() {
    let table = [
        (HttpErrors::Keep, Lifecycle::Sealed, None, ResultState::Succeeded),
        (HttpErrors::Fail, Lifecycle::Sealed, Some("http 404"), ResultState::Failed),
        (
            HttpErrors::Retry,
            Lifecycle::Queued,
            Some("http 404; visit 1 of 5 was refused"),
            ResultState::Queued,
        ),
    ];
    for (errors, status, reason, result) in table {
        let mut bed = Bed::new();
        bed.engine.settings.http_errors = errors;
        visited(&mut bed, 404, None);
        let page = page(&mut bed);
        assert_eq!((page.status, page.reason.as_deref()), (status, reason), "{errors}");
        let kept = (errors != HttpErrors::Retry).then_some(404);
        assert_eq!(page.http_status, kept, "{errors}");
        for (plugin, state, _) in results(&mut bed) {
            assert_eq!(state, result, "{errors} {plugin}");
        }
        bed.world.server = None;
        bed.come_to_an_end();
    }
}

/// A retry of one hook would mix the error with the article.
#[test]
fn retry_of_a_page_that_was_an_error_runs_all_hooks_again() {
    for which in [Which::Failed, Which::Hook("alpha".to_owned())] {
        let mut bed = Bed::new();
        visited(&mut bed, 404, None);
        bed.come_to_an_end();
        let all = results(&mut bed).len();
        assert!(all > 1);
        bed.world.server = Some(Server { status: 200, retry_after: None });
        let queued = bed.retry_some(Some(PAGE), which).unwrap();
        assert!(queued as usize >= all, "{queued} of {all}");
        assert_eq!(page(&mut bed).http_status, None);
        assert!(bed.look(|tx| tx.is_whole_visit(SnapshotId(1))));
        bed.come_to_an_end();
        assert_eq!(page(&mut bed).http_status, Some(200));
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        let hooks = runs.iter().filter(|run| run.owner == PAGE && run.hook.is_some());
        assert_eq!(hooks.count(), 2 * all);
        // Now it is good, and nothing is retried.
        assert_eq!(bed.retry_some(Some(PAGE), Which::Failed), None);
    }
}

/// A retry of one hook is refused: the results of the earlier visit stay.
#[test]
fn refused_retry_of_a_hook_keeps_the_other_results() {
    let mut bed = Bed::new();
    visited(&mut bed, 200, None);
    bed.come_to_an_end();
    let before = results(&mut bed);
    assert!(before.len() > 1, "{before:?}");
    bed.world.server = Some(Server { status: 429, retry_after: Some(5) });
    let which = Which::Hook("alpha".to_owned());
    assert_eq!(bed.retry_some(Some(PAGE), which), Some(1));
    until_visited(&mut bed);
    assert_eq!(page(&mut bed).status, Lifecycle::Queued);
    for (plugin, state, _) in results(&mut bed) {
        let want = match plugin.as_str() {
            "alpha" => ResultState::Queued,
            _ => ResultState::Succeeded,
        };
        assert_eq!(state, want, "{plugin}");
    }
    bed.world.server = None;
    bed.come_to_an_end();
}

/// A retry while the site is down: all that was saved stays, with the reason.
#[test]
fn retry_that_fails_keeps_the_earlier_results() {
    let table = [(503, Which::All), (404, Which::All), (503, Which::Hook("alpha".to_owned()))];
    for (status, which) in table {
        let mut bed = Bed::new();
        bed.engine.settings.http_attempts = 2;
        visited(&mut bed, 200, None);
        bed.come_to_an_end();
        let before = bed.look(|tx| tx.results(PAGE));
        bed.world.server = Some(Server { status, retry_after: Some(1) });
        bed.retry_some(Some(PAGE), which.clone()).unwrap();
        bed.come_to_an_end();
        let done = page(&mut bed);
        assert_eq!(
            (done.status, done.reason, done.http_status),
            (Lifecycle::Sealed, None, Some(200))
        );
        let mut noted = 0;
        for (before, after) in before.iter().zip(bed.look(|tx| tx.results(PAGE))) {
            let note = after.error.clone().filter(|_| before.error.is_none());
            if let Some(note) = &note {
                assert_eq!(*note, format!("the retry failed: http {status}"));
                noted += 1;
            }
            let after = archivist_shared::bus::documents::report::HookResult {
                error: before.error.clone(),
                ..after
            };
            assert_eq!(*before, after);
        }
        match which {
            Which::All => assert!(noted > 1, "{noted}"),
            _ => assert_eq!(noted, 1),
        }
        assert!(bed.look(|tx| tx.earlier_results(SnapshotId(1))).is_empty());

        // The next retry succeeds, and replaces all of it.
        bed.world.server = None;
        bed.retry_some(Some(PAGE), Which::All).unwrap();
        bed.come_to_an_end();
        for (before, after) in before.iter().zip(bed.look(|tx| tx.results(PAGE))) {
            assert_eq!((before.status, &before.error), (after.status, &after.error));
            assert!(after.ended_at > before.ended_at || after.ended_at.is_none());
        }
    }
}

/// The date of a page is that of its visit: neither a retry of one hook nor one that is lost changes it.
#[test]
fn date_of_a_page_is_that_of_its_visit() {
    let mut bed = Bed::new();
    bed.engine.settings.http_attempts = 2;
    visited(&mut bed, 429, Some(8));
    let refused = page(&mut bed);
    let answer = |status| Some(Server { status, retry_after: Some(1) });
    bed.world.server = answer(200);
    bed.come_to_an_end();
    let date = page(&mut bed).visited_at;
    assert!(date > refused.visited_at, "the refused visit left nothing");
    for (status, which, changes) in [
        (200, Which::Hook("alpha".to_owned()), false),
        (503, Which::Hook("alpha".to_owned()), false),
        (503, Which::All, false),
        (200, Which::All, true),
    ] {
        bed.world.server = answer(status);
        bed.retry_some(Some(PAGE), which.clone()).unwrap();
        bed.come_to_an_end();
        let done = page(&mut bed);
        assert_eq!(done.status, Lifecycle::Sealed);
        assert!(done.started_at.unwrap() > date, "the retry took place");
        let case = format!("{status} {which:?}");
        assert_eq!(done.visited_at > date, changes, "{case}");
        assert!(changes || done.visited_at == date, "{case}");
    }
}
