//! Commands of users and orders of the fleet.

use super::node::*;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use crate::tests::bed::{Bed, DATABASE};
use archivist_core::fleet::{Command, CommandVerb, NodeRequest, Order, PageEnd};
use archivist_core::model::{Lifecycle, Owner, SnapshotId};

#[test]
fn commands_about_pages_of_other_nodes_wait_in_the_outbox() {
    let mut bed = node();
    let elsewhere = Owner::Snapshot(SnapshotId(345));
    for (verb, done) in [
        (CommandVerb::Cancel, bed.request(Request::Cancel { id: elsewhere })),
        (CommandVerb::Pause, bed.request(Request::Pause { id: elsewhere })),
        (CommandVerb::Resume, bed.request(Request::Resume { id: elsewhere })),
    ] {
        assert!(matches!(done, Some(Ok(_))), "{verb:?} {done:?}");
    }
    assert_eq!(bed.retry_in_fleet(elsewhere).unwrap(), 1);
    let target = elsewhere;
    let sent = [CommandVerb::Cancel, CommandVerb::Pause, CommandVerb::Resume, CommandVerb::Retry];
    let sent = sent.map(|verb| NodeRequest::Command(Command { verb, target }));
    assert_eq!(bed.outbox(), sent);
    // Orders of a database that does not have the commands yet are not obeyed.
    bed.claim(3, &[101]);
    bed.obey(Order::Cancel);
    assert_ne!(bed.crawl_status(), Lifecycle::Cancelled);
}

#[test]
fn paused_crawl_is_paused_here_and_in_the_fleet() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    let (verb, target) = (CommandVerb::Pause, Owner::Crawl(CRAWL));
    bed.request(Request::Pause { id: target });
    assert_eq!(bed.crawl_status(), Lifecycle::Paused);
    assert_eq!(bed.outbox(), [NodeRequest::Command(Command { verb, target })]);
}

#[test]
fn retried_page_of_the_fleet_starts_with_its_next_lease() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.run_units();
    let target = Owner::Snapshot(SnapshotId(101));
    assert_eq!(bed.retry_in_fleet(target).unwrap(), 1);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    let verb = CommandVerb::Retry;
    let sent = bed.outbox();
    assert_eq!(sent.last(), Some(&NodeRequest::Command(Command { verb, target })));
    let all = bed.request(Request::Retry { id: None, which: Which::Failed, user: 0, so_far: None });
    let refused = all.unwrap().unwrap_err();
    assert!(
        matches!(&refused, Refusal::Invalid(why) if why.contains("name the crawls or pages")),
        "{refused:?}"
    );
}

#[test]
fn page_of_the_fleet_that_lacked_a_program_is_not_run_by_itself_and_why_says_so() {
    let mut bed = node();
    bed.engine.settings.fleet_database = "postgresql://db.example/archivist".to_owned();
    bed.claim(5, &[101]);
    bed.run_units();
    let told = |bed: &mut Bed| {
        bed.why("s101").into_iter().any(|(_, why)| why.contains("archivist retry s101"))
    };
    assert!(!told(&mut bed));
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let skipped =
        "UPDATE result SET status = 'skipped', attempts = 0, error = 'program ''tool'' is missing'
        WHERE id = (SELECT min(id) FROM result WHERE snapshot_id = 101)";
    assert_eq!(file.execute(skipped, []).unwrap(), 1);
    assert!(told(&mut bed));
    let path = bed.directory.path().join("tool");
    std::fs::write(&path, "").unwrap();
    let programs = [("tool".to_owned(), path)];
    let seen = crate::machine::inspect::look(&programs, std::path::Path::new("/nowhere"));
    bed.turn(vec![crate::programs::seen(seen.clone(), None)]);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
}

#[test]
fn crawl_cancelled_here_is_cancelled_in_the_fleet() {
    let mut bed = node();
    bed.claim(5, &[101, 102]);
    bed.until_page_runs(101);
    let target = Owner::Crawl(CRAWL);
    bed.request(Request::Cancel { id: target });
    let sent = bed.outbox();
    let verb = CommandVerb::Cancel;
    assert_eq!(sent[0], NodeRequest::Command(Command { verb, target }));
    let cancelled = [(101, 5, PageEnd::Cancelled), (102, 5, PageEnd::Cancelled)];
    assert_eq!(sent[1..].iter().map(recorded).collect::<Vec<_>>(), cancelled);
    bed.run_units();
    assert!(bed.world.units.is_empty(), "{:?}", bed.world.units);
}

#[test]
fn orders_of_the_fleet_are_obeyed() {
    let mut bed = node();
    bed.claim(5, &[101, 102]);
    bed.until_page_runs(101);
    bed.obey(Order::Pause);
    assert_eq!(bed.crawl_status(), Lifecycle::Paused);
    bed.obey(Order::Run);
    assert_ne!(bed.crawl_status(), Lifecycle::Paused);
    bed.obey(Order::Cancel);
    assert_eq!(bed.crawl_status(), Lifecycle::Cancelled);
    let sent = bed.outbox();
    assert!(!sent.iter().any(|request| matches!(request, NodeRequest::Command(_))), "{sent:?}");
    bed.run_units();
    assert!(bed.world.units.is_empty(), "{:?}", bed.world.units);
}
