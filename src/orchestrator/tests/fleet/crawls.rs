//! When a node closes crawls of the fleet.

use super::node::*;
use archivist_core::fleet::{BootTime, Claimed, CrawlUse, Delivery, Epoch, HostKey, NodeRequest};
use archivist_core::model::{CrawlId, FLEET, Lifecycle, SnapshotId};

#[test]
fn crawl_closes_after_a_while_without_pages() {
    let mut bed = node();
    bed.claim(3, &[101]);
    bed.run_units();
    bed.pass(59_000);
    bed.holdings();
    bed.run_units();
    assert_eq!(bed.crawl_status(), Lifecycle::Started);
    bed.pass(1_000);
    bed.holdings();
    bed.run_units();
    assert_eq!(bed.crawl_status(), Lifecycle::Sealed);
    let closed = NodeRequest::CrawlClosed { crawl: CRAWL };
    assert_eq!(bed.outbox().last(), Some(&closed));
    assert!(bed.world.units.is_empty());
    // It opens again for a later page.
    bed.claim(4, &[102]);
    assert!(!bed.outbox().contains(&closed));
    bed.run_units();
    assert_eq!(bed.status(102), Lifecycle::Sealed);
}

#[test]
fn crawl_closes_at_once_when_the_fleet_has_recorded_all_its_pages() {
    let mut bed = node();
    bed.claim(3, &[101]);
    bed.until_page_runs(101);
    let mut used = CrawlUse { is_done: true, ..CrawlUse::default() };
    bed.use_limits(used);
    assert_eq!(bed.crawl_status(), Lifecycle::Started, "a page runs");
    bed.run_units();
    used.is_done = false;
    bed.use_limits(used);
    bed.run_units();
    assert_eq!(bed.crawl_status(), Lifecycle::Started, "more can come");
    used.is_done = true;
    bed.use_limits(used);
    bed.run_units();
    assert_eq!(bed.crawl_status(), Lifecycle::Sealed);
    let closed = NodeRequest::CrawlClosed { crawl: CRAWL };
    assert_eq!(bed.outbox().last(), Some(&closed));
}

#[test]
fn idle_crawls_make_room_for_a_crawl_that_waits() {
    let mut bed = node();
    // Crawls use at most half of all slots.
    let most = i64::from(bed.engine.settings.workers_max) / 2;
    for n in 0..=most {
        bed.claim_of(CrawlId(20 + n), 3 + n, 101 + n);
        bed.run_units();
    }
    assert_eq!(bed.status(101 + most), Lifecycle::Queued);
    bed.holdings();
    bed.run_units();
    assert_eq!(bed.status(101 + most), Lifecycle::Sealed);
}

#[test]
fn crawl_without_pages_here_closes_without_its_hooks() {
    let mut bed = node();
    let claimed = Claimed { hosts: Vec::new(), crawls: vec![(CRAWL, spec())] };
    let sent = BootTime(0);
    bed.deliver(Delivery::Claimed { claimed, sent }).unwrap();
    bed.pass(60_000);
    bed.holdings();
    assert_eq!(bed.crawl_status(), Lifecycle::Sealed);
    assert!(bed.look(|tx| tx.open_runs()).is_empty());
}

/// The pages come later than the crawl, and not all in one turn.
#[test]
fn hooks_reach_the_networks_of_given_pages_that_come_later() {
    let mut bed = node();
    bed.claim(3, &[101]);
    bed.until_hook_runs(101);
    assert!(bed.engine.ways.borrow().contains_key(&CRAWL));
    bed.pass(5_000);
    for (id, url, given) in [(102, "http://10.0.0.1/", false), (103, "http://127.0.0.1/", true)] {
        let mut grant = bed.grant(id, &[id]);
        let host = url.trim_start_matches("http://").trim_end_matches('/');
        grant.host = HostKey(host.into());
        grant.epoch = Epoch(id);
        let page = &mut grant.pages[0].page;
        (page.url, page.host, page.given) = (url.to_owned(), grant.host.clone(), given);
        bed.claim_as(grant);
    }
    let hosts = bed.look(|tx| tx.start_hosts(CRAWL));
    assert_eq!(hosts, [format!("http://{HOST}/101"), "http://127.0.0.1/".to_owned()]);
    bed.run_units();
    let ways = bed.engine.ways.borrow();
    let reach = &ways[&CRAWL].opened;
    assert!(reach.loopback && reach.is_without_private(), "{reach}");
}

/// The document names user 0.
#[test]
fn crawl_from_the_database_has_no_user_of_this_machine() {
    let mut bed = node();
    bed.claim(3, &[101]);
    let crawl = bed.look(|tx| tx.crawl(CRAWL)).unwrap();
    assert_eq!(crawl.users, [FLEET].into());
}

#[test]
fn unreadable_rows_fail_alone_and_the_others_are_taken() {
    let mut bed = node();
    let bad = CrawlId(13);
    let mut grant = bed.grant(3, &[101, 102, 103, 104, 105]);
    grant.pages[0].crawl = bad;
    grant.pages[1].page.url = "file:///etc/passwd".into();
    grant.pages[2].page.url = "--post-file=/etc/passwd".into();
    grant.pages[3].page.url = "http://other.test/".into();
    let mut unreadable = spec();
    unreadable.document = "not json".into();
    let claimed = Claimed { hosts: vec![grant], crawls: vec![(CRAWL, spec()), (bad, unreadable)] };
    let sent = BootTime(bed.machine as u64);
    bed.deliver(Delivery::Claimed { claimed, sent }).unwrap();
    let outbox = bed.outbox();
    let [closed] = outbox
        .iter()
        .filter(|request| !matches!(request, NodeRequest::Record(_)))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{outbox:?}");
    };
    assert_eq!(*closed, NodeRequest::CrawlClosed { crawl: bad });
    let records = outbox.iter().filter_map(|request| match request {
        NodeRequest::Record(record) => Some((record.page.0, record.reason.clone().unwrap())),
        _ => None,
    });
    let records: Vec<_> = records.collect();
    let pages: Vec<i64> = records.iter().map(|(page, _)| *page).collect();
    assert_eq!(pages, [101, 102, 103, 104]);
    for ((_, why), part) in records.iter().zip(["not readable", "URL", "URL", "another host"]) {
        assert!(why.contains(part), "{why}");
    }
    assert!(bed.look(|tx| tx.crawl(bad)).is_none());
    assert!(bed.look(|tx| tx.snapshot(SnapshotId(102))).is_none());
    bed.run_units();
    assert_eq!(bed.status(105), Lifecycle::Sealed);
    let last = bed.outbox().pop().unwrap();
    assert_eq!(recorded(&last).0, 105);
}
