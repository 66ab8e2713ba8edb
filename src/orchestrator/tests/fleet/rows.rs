//! Rows of the database that no node would have written.

use super::node::*;
use crate::database::NewCrawl;
use crate::tests::bed::Bed;
use archivist_core::fleet::{
    BootTime, Claimed, CrawlSpec, Delivery, ID_MAX, LeasedPage, NodeReply, NodeRequest, Order,
    Orders, Record, Renewed,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, PAGE_TAGS_MAX, SnapshotId, TEXT_MAX, Time};
use archivist_shared::bus::documents::report::Filter;
use serde_json::json;
use std::collections::BTreeMap;

/// A node whose machine has archived a page before it joined the fleet. Returns its crawl and page.
fn former_single() -> (Bed, CrawlId, SnapshotId) {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let page = bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0);
    bed.deliver(welcome(2, 0)).unwrap();
    (bed, page.crawl, page.id)
}

fn claim(bed: &mut Bed, pages: Vec<LeasedPage>, crawl: CrawlId, spec: CrawlSpec) {
    let mut grant = bed.grant(3, &[]);
    grant.pages = pages;
    let claimed = Claimed { hosts: vec![grant], crawls: vec![(crawl, spec)] };
    let sent = BootTime(bed.machine as u64);
    bed.finals.clear();
    bed.deliver(Delivery::Claimed { claimed, sent }).unwrap();
}

fn records(bed: &mut Bed) -> Vec<Record> {
    let outbox = bed.outbox().into_iter();
    let records = outbox.filter_map(|request| match request {
        NodeRequest::Record(record) => Some(record),
        _ => None,
    });
    records.collect()
}

fn spec_of(document: &serde_json::Value) -> CrawlSpec {
    CrawlSpec { document: document.to_string(), ..spec() }
}

#[test]
fn id_of_a_page_of_this_machine_is_refused() {
    let (mut bed, crawl, page) = former_single();
    let before = bed.look(|tx| tx.snapshot(page)).unwrap();
    claim(&mut bed, vec![leased(page.0), leased(102)], CRAWL, spec());
    let refused = records(&mut bed).remove(0);
    assert_eq!(refused.page, page);
    let why = refused.reason.unwrap();
    assert!(why.contains("another page of this node"), "{why}");
    bed.run_units();
    assert_eq!(bed.status(102), Lifecycle::Sealed);
    let after = bed.look(|tx| tx.snapshot(page)).unwrap();
    assert_eq!((after.crawl, after.attempts), (crawl, before.attempts));
    assert_eq!(after.status, Lifecycle::Sealed);
}

/// Its crawl has settings, and maybe a persona, of a user of this machine.
#[test]
fn crawl_of_this_machine_takes_no_pages_from_the_fleet() {
    let (mut bed, crawl, _) = former_single();
    let url = bed.look(|tx| tx.crawl(crawl)).unwrap().url;
    let document = json!({"url": url, "plugins": [], "config": {}, "tags": []});
    let mut page = leased(102);
    page.crawl = crawl;
    claim(&mut bed, vec![page], crawl, spec_of(&document));
    let why = records(&mut bed).remove(0).reason.unwrap();
    assert!(why.contains("crawl of this machine"), "{why}");
    assert!(bed.look(|tx| tx.snapshot(SnapshotId(102))).is_none());
    assert_eq!(bed.look(|tx| tx.status_of(Owner::Crawl(crawl))), Lifecycle::Sealed);
}

#[test]
fn orders_are_about_the_fleet_alone() {
    let mut bed = node();
    // As an installation, which is of this machine, also on a node.
    let tx = bed.database.begin().unwrap();
    let crawl = tx
        .add_crawl(&NewCrawl {
            url: "http://b.test/",
            max_depth: 0,
            plugins: &[],
            config: &BTreeMap::new(),
            user: 0,
            now: Time(1),
        })
        .unwrap();
    tx.commit().unwrap();
    for order in [Order::Cancel, Order::Pause] {
        let orders = Orders { crawls: vec![(crawl, order)], ..Orders::default() };
        let renewed = Renewed { orders, ..Renewed::default() };
        bed.renew(renewed, false);
        let status = bed.look(|tx| tx.status_of(Owner::Crawl(crawl)));
        assert!(matches!(status, Lifecycle::Queued | Lifecycle::Started), "{status}");
    }
}

#[test]
fn documents_that_no_user_could_add_are_refused() {
    let with = |key: &str, value: serde_json::Value| {
        let mut document = json!({"url": format!("http://{HOST}/"), "plugins": ["alpha"], "config": {},
            "tags": []});
        document[key] = value;
        spec_of(&document)
    };
    let long = "x".repeat(300 << 10);
    let plugins: Vec<_> = (0..1001).map(|n| format!("p{n}")).collect();
    let cases = [
        (with("config", json!({"machine/LD_PRELOAD": "/tmp/x.so"})), "no setting"),
        (with("config", json!({"ALPHA": long})), "at most"),
        (with("plugins", json!(plugins)), "at most"),
        (with("tags", json!(["x".repeat(201)])), "at most"),
        (with("url", json!("archivebox://install/alpha")), "URL"),
        (CrawlSpec { max_depth: 5, ..spec() }, "depth"),
    ];
    for (spec, part) in cases {
        let mut bed = node();
        claim(&mut bed, vec![leased(101)], CRAWL, spec);
        let why = records(&mut bed).remove(0).reason.unwrap();
        assert!(why.contains(part), "{why}");
        assert!(bed.look(|tx| tx.crawl(CRAWL)).is_none());
    }
}

#[test]
fn texts_of_a_page_are_cut_as_in_lists() {
    let mut bed = node();
    let mut page = leased(101);
    page.page.title = Some("t".repeat(1 << 20));
    page.page.bookmarked_at = Some("1".repeat(100));
    page.page.tags = (0..1000).map(|n| n.to_string()).chain(["y".repeat(500)]).collect();
    let mut deep = leased(102);
    deep.page.depth = u32::MAX;
    claim(&mut bed, vec![page, deep], CRAWL, spec());
    let row = bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0);
    assert!(row.title.unwrap().len() <= TEXT_MAX + 3);
    assert_eq!(row.bookmarked_at, None);
    assert!(row.tags.len() <= PAGE_TAGS_MAX, "{}", row.tags.len());
    let why = records(&mut bed).remove(0).reason.unwrap();
    assert!(why.contains("depth 4294967295"), "{why}");
}

/// SQLite has no id after the highest number: this machine could add nothing any more.
#[test]
fn ids_leave_room_for_those_of_this_machine() {
    let mut bed = node();
    let highest = bed.look(|tx| tx.highest_ids());
    let mut page = leased(i64::MAX);
    claim(&mut bed, vec![page.clone(), leased(101)], CRAWL, spec());
    page.id = SnapshotId(102);
    page.crawl = CrawlId(i64::MAX);
    claim(&mut bed, vec![page], CrawlId(i64::MAX), spec());
    let refused = records(&mut bed);
    let pages: Vec<_> = refused.iter().map(|record| record.page.0).collect();
    assert_eq!(pages, [i64::MAX, 102]);
    for record in &refused {
        let why = record.reason.as_deref().unwrap();
        assert!(why.contains("ids end at"), "{why}");
    }
    let now = bed.look(|tx| tx.highest_ids());
    assert!(now.crawl < CrawlId(1000) && now.snapshot < SnapshotId(1000), "{now} {highest}");
    bed.holdings();
    let entry = bed.look(|tx| tx.unanswered_entries(100)).remove(0);
    let reply = Ok(NodeReply::CrawlIds { first: CrawlId(ID_MAX), count: 100 });
    let number = entry.number;
    let refused = bed.deliver(Delivery::Answered { number, reply }).unwrap_err();
    assert!(format!("{refused:?}").contains("ids end at"), "{refused:?}");
}
