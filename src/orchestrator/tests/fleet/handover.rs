//! Hosts that go to other nodes: while this one drains, and while others have fewer. A node that comes
//! back learns first what users want.

use super::node::*;
use crate::tests::bed::Bed;
use archivist_core::fleet::{
    BootTime, Claimed, Delivery, Epoch, Grant, HostKey, Order, Orders, PageEnd, Renewed,
};
use archivist_core::model::{Lifecycle, Owner, SnapshotId};

const OTHER: &str = "b.test";

/// A node that works on one page of a host at a time, with two hosts of two pages each.
fn two_hosts() -> Bed {
    let mut bed = node();
    bed.engine.settings.host_workers = 1;
    bed.claim(5, &[101, 102]);
    let mut grant = Grant { host: HostKey(OTHER.into()), ..bed.grant(7, &[201, 202]) };
    for page in &mut grant.pages {
        page.page.host = HostKey(OTHER.into());
        page.page.url = page.page.url.replace(HOST, OTHER);
    }
    bed.claim_as(grant);
    bed
}

fn orders(orders: Orders) -> Renewed {
    Renewed { orders, ..Renewed::default() }
}

fn draining() -> Renewed {
    orders(Orders { draining: true, ..Orders::default() })
}

fn hand_over(hosts: Option<u32>) -> Renewed {
    orders(Orders { hand_over: hosts, ..Orders::default() })
}

fn leased_hosts(bed: &mut Bed) -> Vec<String> {
    let leases = bed.holdings().leases.into_iter();
    leases.map(|lease| lease.host.0).collect()
}

fn until_sealed(bed: &mut Bed, page: i64) {
    while bed.status(page) != Lifecycle::Sealed {
        assert!(bed.moves_on(), "page s{page} does not end");
    }
}

#[test]
fn draining_node_starts_no_page_and_releases_each_host_with_its_running_page() {
    let mut bed = two_hosts();
    bed.until_page_runs(101);
    bed.until_page_runs(201);
    let waiting = |bed: &mut Bed| {
        let mut pages = vec![101, 102, 201, 202];
        pages.retain(|page| bed.status(*page) == Lifecycle::Queued);
        pages
    };
    let before = waiting(&mut bed);
    assert!(!before.is_empty());
    // A heartbeat, which names no host, has the order.
    bed.renew(draining(), false);
    let holdings = bed.holdings();
    assert!(holdings.drains && holdings.claim.is_none() && holdings.short.is_empty());
    let running = |bed: &mut Bed, pages: [i64; 2]| {
        pages.iter().any(|page| bed.status(*page) == Lifecycle::Started)
    };
    let busy = [[101, 102], [201, 202]].map(|pages| running(&mut bed, pages));
    let busy = busy.into_iter().filter(|is_busy| *is_busy).count();
    assert_eq!(leased_hosts(&mut bed).len(), busy);
    bed.run_units();
    let left = leased_hosts(&mut bed);
    assert_eq!(left, [""; 0], "released when its page ended");
    assert_eq!(bed.holdings().releasing.len(), 2);
    for page in before {
        let attempts = bed.look(|tx| tx.snapshot(SnapshotId(page))).unwrap().attempts;
        assert_eq!(attempts, 0, "s{page} started after the order");
    }
}

#[test]
fn release_of_a_draining_host_follows_the_record_of_its_page() {
    let mut bed = two_hosts();
    bed.until_page_runs(101);
    bed.renew(draining(), false);
    until_sealed(&mut bed, 101);
    let holdings = bed.holdings();
    let sent: Vec<_> = holdings.releases.iter().map(|release| &release.host.0).collect();
    assert!(!sent.contains(&&HOST.to_owned()), "{sent:?}");
    let record = recorded(&bed.outbox()[0]);
    assert_eq!(record, (101, 5, PageEnd::Sealed));
}

#[test]
fn host_without_a_running_page_goes_to_a_node_with_free_slots_first() {
    let mut bed = two_hosts();
    bed.engine.settings.workers_per_kind = 1;
    bed.until_page_runs(101);
    assert_eq!(bed.status(201), Lifecycle::Queued);
    bed.renew(hand_over(Some(1)), false);
    assert_eq!(leased_hosts(&mut bed), [HOST]);
    let release = bed.holdings().releases.remove(0);
    assert_eq!((release.host.0.as_str(), release.epoch), (OTHER, Epoch(7)));
    // The same order again, before the other node has claimed the host.
    bed.renew(hand_over(Some(0)), false);
    assert_eq!(bed.holdings().claim, None, "hosts that wait are for the other node");
    bed.run_units();
    assert_eq!(bed.status(102), Lifecycle::Sealed);
    bed.renew(hand_over(None), false);
    assert!(bed.holdings().claim.is_some());
}

#[test]
fn host_changes_hands_between_two_of_its_pages() {
    let mut bed = node();
    bed.engine.settings.host_workers = 1;
    bed.claim(5, &[101, 102]);
    bed.until_page_runs(101);
    bed.renew(hand_over(Some(1)), false);
    assert_eq!(leased_hosts(&mut bed), [HOST], "its page runs");
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    assert_eq!(leased_hosts(&mut bed), [""; 0]);
    let page = bed.look(|tx| tx.snapshot(SnapshotId(102))).unwrap();
    assert_eq!((page.status, page.attempts), (Lifecycle::Cancelled, 0));
    let released = bed.holdings().releasing;
    assert_eq!(released, [(HostKey(HOST.into()), Epoch(5))]);
    // It may come back.
    bed.claim(6, &[102]);
    bed.run_units();
    assert_eq!(bed.status(102), Lifecycle::Sealed);
}

#[test]
fn handed_over_host_keeps_the_delay_since_its_last_start() {
    let mut bed = node();
    let delay = std::time::Duration::from_secs(9);
    let grant = Grant { delay, ..bed.grant(5, &[101, 102]) };
    bed.claim_as(grant);
    bed.until_page_runs(101);
    bed.renew(hand_over(Some(1)), false);
    bed.run_units();
    for entry in bed.holdings().entries {
        let (number, reply) = (entry.number, Ok(archivist_core::fleet::NodeReply::Done));
        bed.deliver(Delivery::Answered { number, reply }).unwrap();
    }
    let pace = bed.holdings().releases[0].pace.unwrap();
    assert_eq!(pace.delay, delay);
    assert!(!pace.next_in.is_zero() && pace.next_in <= delay, "{pace:?}");
}

#[test]
fn node_that_comes_back_ends_cancelled_pages_before_it_starts_any() {
    let mut bed = node();
    bed.claim(5, &[101, 102]);
    bed.deliver(welcome(2, 0)).unwrap();
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Queued, "it has no orders yet");
    let cancelled = Renewed {
        orders: Orders { crawls: vec![(CRAWL, Order::Cancel)], ..Orders::default() },
        ..renewal(5)
    };
    bed.renew(cancelled, false);
    bed.run_units();
    let ends: Vec<_> = bed.outbox().iter().map(recorded).collect();
    let ended = |page| (page, 5, PageEnd::Cancelled);
    assert_eq!(ends, [ended(101), ended(102)]);
    for page in [101, 102] {
        let attempts = bed.look(|tx| tx.snapshot(SnapshotId(page))).unwrap().attempts;
        assert_eq!(attempts, 0, "s{page}");
    }
    let crawl = bed.look(|tx| tx.status_of(Owner::Crawl(CRAWL)));
    assert_eq!(crawl, Lifecycle::Cancelled);
}

#[test]
fn hosts_without_orders_are_those_of_a_node_that_had_none() {
    let mut bed = node();
    let claimed = Claimed { hosts: vec![bed.grant(5, &[101])], crawls: vec![(CRAWL, spec())] };
    let sent = BootTime(bed.machine as u64);
    bed.deliver(Delivery::Claimed { claimed, sent }).unwrap();
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
}
