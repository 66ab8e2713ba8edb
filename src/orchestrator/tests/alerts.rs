//! Units that start when crawls end: which, once each, and also after a kill of the orchestrator.

use super::bed::Bed;
use crate::calls::requests::Request;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Which;
use archivist_config::Settings;
use archivist_config::alert::Alert;
use archivist_core::model::{CrawlId, Owner};

fn configure(settings: &mut Settings) {
    let unit = |name: &str| Some(Alert::Unit(name.to_owned()));
    settings.on_sealed = unit("sealed@.service");
    settings.on_failed = unit("failed@.service");
    settings.on_idle = unit("idle@.service");
}

fn configured() -> Bed {
    let mut bed = Bed::new();
    configure(&mut bed.engine.settings);
    bed
}

/// Ends the running hook of the only crawl: with this exit status, its page is sealed.
fn end_hooks(bed: &mut Bed, status: i32) {
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return;
        };
        let result = if status == 0 { "success" } else { "exit-code" };
        bed.world.end(&hook, 1, status, result);
    }
}

#[test]
fn units_start_once_at_the_end_of_a_crawl() {
    let mut bed = configured();
    bed.add(2);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted, ["sealed@c1.service", "idle@idle.service"]);
    bed.pass(1);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted.len(), 2);
}

#[test]
fn failed_crawl_starts_the_other_unit() {
    let mut bed = configured();
    bed.add(1);
    end_hooks(&mut bed, 1);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted, ["failed@c1.service", "idle@idle.service"]);
}

#[test]
fn cancelled_crawl_only_makes_the_orchestrator_idle() {
    let mut bed = configured();
    bed.add(1);
    bed.add(1);
    bed.until_quiet();
    let cancel = |bed: &mut Bed, n| {
        let id = Owner::Crawl(CrawlId(n));
        bed.request(Request::Cancel { id });
    };
    cancel(&mut bed, 1);
    bed.until_quiet();
    assert_eq!(bed.world.wanted, [""; 0], "another crawl is open");
    cancel(&mut bed, 2);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted, ["idle@idle.service"]);
}

#[test]
fn open_crawl_takes_back_an_alert_of_idleness_that_has_not_started() {
    let mut bed = configured();
    bed.add(1);
    let id = Owner::Crawl(CrawlId(1));
    bed.request(Request::Cancel { id });
    // The alert starts in the next turn, in which the crawl is retried before it.
    bed.retry_some(Some(id), Which::All);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted, ["sealed@c1.service", "idle@idle.service"]);
}

#[test]
fn watches_have_no_crawl_and_no_alert_of_idleness() {
    let mut bed = configured();
    bed.turn(vec![Event::Due]);
    bed.come_to_an_end();
    assert_eq!(bed.world.wanted, [""; 0]);
}

/// The orchestrator is killed after each number of calls to systemd that follow the end of a crawl.
#[test]
fn killed_orchestrator_starts_each_unit() {
    for heard in 0..12 {
        let mut bed = configured();
        bed.add(1);
        // The last turn before the kill is the one that seals the crawl.
        loop {
            bed.moves_on();
            let crawl = bed.look(|tx| tx.status_of(Owner::Crawl(CrawlId(1))));
            if crawl.is_final() {
                break;
            }
        }
        bed.restart(heard);
        configure(&mut bed.engine.settings);
        bed.come_to_an_end();
        let mut wanted = bed.world.wanted.clone();
        wanted.sort();
        let all = ["idle@idle.service", "sealed@c1.service"];
        assert_eq!(wanted, all, "killed after {heard} calls");
    }
}
