//! The machine does not reach the Internet: its pages wait, and none of them fails.

use super::bed::Bed;
use super::worker::{Fault, Server};
use crate::query::orders::Query;
use archivist_core::model::{AnyId, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::{AddOptions, Filter, Snapshot, Status, Why};

const WHY: &str = "names cannot be resolved: no name server answers (127.0.0.53)";
const GOOD: Server = Server { status: 200, retry_after: None };

fn pages(bed: &mut Bed) -> Vec<Snapshot> {
    let mut pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    pages.sort_by_key(|page| page.id);
    pages
}

fn count(bed: &mut Bed, status: Lifecycle) -> usize {
    pages(bed).iter().filter(|page| page.status == status).count()
}

fn status(bed: &mut Bed) -> Status {
    bed.document(Query::Status)
}

/// A list of pages, each of another host.
fn add(bed: &mut Bed, count: usize, domain: &str) {
    let urls: Vec<String> = (0..count).map(|n| format!("http://h{n}.{domain}/")).collect();
    bed.add_with(&urls.join("\n"), AddOptions::default());
}

fn rest(bed: &mut Bed) {
    while bed.moves_on() {}
}

/// Starts of workers of pages so far.
fn starts(bed: &mut Bed) -> usize {
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    runs.iter().filter(|run| run.unit.starts_with("archivist-snapshot-")).count()
}

/// A network in which users must sign in redirects all sites to its own page.
#[test]
fn redirects_to_a_private_address_hold_the_queue() {
    let mut bed = Bed::new();
    bed.world.server = None;
    bed.world.fault = Some(Fault::Unknown(
        "192.168.77.1, an address of a private network that hooks do not reach: Reach=private in archivist.conf(5) allows it",
    ));
    add(&mut bed, 30, "example.org");
    rest(&mut bed);
    let blocked = status(&mut bed).blocked.unwrap();
    assert!(blocked.ends_with("as where users must sign in"), "{blocked}");
    bed.world.fault = None;
    bed.world.server = Some(GOOD);
    bed.come_to_an_end();
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert!(results.iter().all(|result| result.status != ResultState::Failed), "{results:?}");
}

#[test]
fn dead_name_server_holds_the_queue_without_a_failed_attempt() {
    let mut bed = Bed::new();
    bed.world.server = Some(GOOD);
    bed.world.fault = Some(Fault::OfMachine(WHY));
    add(&mut bed, 12, "example.org");
    rest(&mut bed);
    let first = starts(&mut bed);
    assert!((1..12).contains(&first), "{first} starts");
    for page in pages(&mut bed) {
        assert_eq!((page.status, page.attempts), (Lifecycle::Queued, 0), "{}", page.url);
        assert_eq!(page.http_status, None);
    }
    let results = bed.look(|tx| tx.results(Owner::Snapshot(SnapshotId(1))));
    assert!(results.iter().all(|result| result.status != ResultState::Failed), "{results:?}");
    let blocked = status(&mut bed).blocked.unwrap();
    assert!(blocked.starts_with("the network is down since 1970-01-01T00:16:4"), "{blocked}");
    assert!(blocked.ends_with(WHY), "{blocked}");
    let why: Why = bed.document(Query::Why { id: AnyId::Owner(Owner::Snapshot(SnapshotId(12))) });
    assert!(why.reasons.iter().any(|reason| reason.code == "network"), "{:?}", why.reasons);

    // One page tries at a time, and later each time.
    let mut waits = Vec::new();
    for trial in 1..6 {
        let before = bed.now;
        while starts(&mut bed) == first + trial - 1 {
            bed.until_woken();
            rest(&mut bed);
        }
        waits.push((bed.now.0 - before.0) / 1000);
        assert_eq!(starts(&mut bed), first + trial);
    }
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    assert_eq!(count(&mut bed, Lifecycle::Queued), 12);

    bed.world.fault = None;
    bed.come_to_an_end();
    assert_eq!(status(&mut bed).blocked, None);
    for page in pages(&mut bed) {
        assert_eq!(
            (page.status, page.reason, page.http_status),
            (Lifecycle::Sealed, None, Some(200))
        );
    }
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert!(results.iter().all(|result| result.status != ResultState::Failed), "{results:?}");
}

#[test]
fn pages_of_the_local_network_do_not_wait() {
    let mut bed = Bed::new();
    bed.world.server = Some(GOOD);
    bed.world.fault = Some(Fault::OfMachine(WHY));
    add(&mut bed, 6, "example.org");
    rest(&mut bed);
    add(&mut bed, 6, "lan");
    rest(&mut bed);
    let (local, others): (Vec<_>, Vec<_>) =
        pages(&mut bed).into_iter().partition(|page| page.url.ends_with("lan/"));
    assert!(local.iter().all(|page| page.status == Lifecycle::Sealed));
    assert!(others.iter().all(|page| page.status == Lifecycle::Queued));
    // Their answers prove nothing about the Internet.
    assert!(status(&mut bed).blocked.is_some());
    bed.world.fault = None;
    bed.come_to_an_end();
}

/// Nothing answers, as behind a router that has lost its line.
#[test]
fn pages_that_failed_like_many_others_are_queued_again() {
    let mut bed = Bed::new();
    bed.world.server = None;
    bed.world.fault = Some(Fault::Unknown("net::ERR_CONNECTION_TIMED_OUT"));
    add(&mut bed, 30, "example.org");
    rest(&mut bed);
    let failed = count(&mut bed, Lifecycle::Sealed);
    assert!((5..30).contains(&failed), "{failed} failed before the fifth");
    let blocked = status(&mut bed).blocked.unwrap();
    assert!(blocked.contains("the same error: the connection timed out"), "{blocked}");
    bed.world.fault = None;
    bed.world.server = Some(GOOD);
    bed.come_to_an_end();
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    assert!(results.iter().all(|result| result.status != ResultState::Failed), "{results:?}");
}

#[test]
fn one_host_that_is_down_fails_and_holds_nothing() {
    let mut bed = Bed::new();
    bed.world.fault = Some(Fault::Unknown("net::ERR_NAME_NOT_RESOLVED"));
    let urls: Vec<String> = (0..9).map(|n| format!("http://gone.example.org/{n}")).collect();
    bed.add_with(&urls.join("\n"), AddOptions::default());
    bed.come_to_an_end();
    assert_eq!(count(&mut bed, Lifecycle::Sealed), 9);
    assert_eq!(bed.engine.network.borrow().outage(), None);
}
