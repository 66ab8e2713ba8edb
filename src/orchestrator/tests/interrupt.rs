//! Tests of interrupts and of commands in the foreground.

use super::bed::Bed;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use archivist_core::model::{CrawlId, Lifecycle, Outcome, Owner, ResultState, RunId};
use archivist_shared::bus::documents::report::{AddOptions, Added, Details, Filter};
use std::sync::Arc;

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
    assert_eq!(first_result(&mut bed), (ResultState::Skipped, 1, why.clone()));
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

impl Bed {
    /// `archivist run URL` of a user: adds or joins a crawl, and holds it.
    fn run_url(&mut self, url: &str, options: &AddOptions, user: u32) -> Added {
        let added: Added = self.document(Request::Add {
            lines: Arc::new(format!("{url}\n").into_bytes()),
            options: options.clone(),
            user,
            joins: true,
            so_far: None,
        });
        let crawl = added.crawl;
        self.request(Request::Hold { crawl, cancel: true, claim: Default::default() });
        added
    }

    fn status_of(&mut self, id: CrawlId) -> Lifecycle {
        self.look(|tx| tx.status_of(Owner::Crawl(id)))
    }
}

#[test]
fn the_same_command_joins_the_crawl_of_the_first() {
    const URL: &str = "http://a.example/";
    let options = AddOptions::default();
    let mut bed = Bed::new();
    let first = bed.run_url(URL, &options, 0);
    assert_eq!((first.accepted, first.joined), (1, None));
    let joined = bed.run_url(URL, &options, 0);
    assert_eq!((joined.crawl, joined.accepted), (first.crawl, 0));
    assert!(joined.joined.is_some());
    bed.until_quiet();
    let later = bed.run_url(URL, &options, 0);
    assert_eq!(later.crawl, first.crawl, "it has started");

    let other = AddOptions { depth: 1, ..AddOptions::default() };
    for (url, options, user) in
        [(URL, &other, 0), (URL, &options, 1000), ("http://b.example/", &options, 0)]
    {
        let added = bed.run_url(url, options, user);
        assert_eq!((added.accepted, added.joined), (1, None), "{url} {user}");
    }
    bed.come_to_an_end();
    assert_eq!(bed.status_of(first.crawl), Lifecycle::Sealed);
    let again = bed.run_url(URL, &options, 0);
    assert_eq!((again.accepted, again.joined), (1, None), "it has ended");
    bed.come_to_an_end();
}

/// A crawl that `archivist add` queued is not cancelled with a command.
#[test]
fn no_command_joins_a_crawl_of_the_queue() {
    let mut bed = Bed::new();
    let queued = bed.add_with("http://a.example/", AddOptions::default());
    let run = bed.run_url("http://a.example/", &AddOptions::default(), 0);
    assert_ne!(run.crawl, queued.crawl);
    bed.come_to_an_end();
}

#[test]
fn crawl_is_aborted_with_the_last_of_its_commands() {
    let options = AddOptions::default();
    let mut bed = Bed::new();
    let crawl = bed.run_url("http://a.example/", &options, 0).crawl;
    bed.run_url("http://a.example/", &options, 0);
    bed.until_quiet();
    bed.abandon(0, true);
    bed.until_quiet();
    assert_eq!(bed.status_of(crawl), Lifecycle::Started);
    bed.abandon(0, true);
    bed.until_quiet();
    assert_eq!(bed.status_of(crawl), Lifecycle::Cancelled);
    bed.come_to_an_end();
}
