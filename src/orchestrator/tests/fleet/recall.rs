//! A database of another generation, which may be older than what the node has.

use super::node::*;
use crate::tests::bed::Bed;
use archivist_core::fleet::{
    Compare, Delivery, Epoch, Fate, NodeReply, NodeRequest, OutboxEntry, PageEnd, RECALL,
};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use std::time::Duration;

const PAGE: SnapshotId = SnapshotId(101);

impl Bed {
    fn answer_first(&mut self, reply: NodeReply) -> OutboxEntry {
        let entry = self.holdings().entries.remove(0);
        let (number, reply) = (entry.number, Ok(reply));
        self.deliver(Delivery::Answered { number, reply }).unwrap();
        entry
    }
}

/// A node whose record of a page the database has acknowledged.
fn archived() -> Bed {
    let mut bed = node();
    bed.claim(3, &[PAGE.0]);
    bed.run_units();
    let is_record = |entry: &OutboxEntry| matches!(entry.request, NodeRequest::Record(_));
    while !is_record(&bed.answer_first(NodeReply::Recorded(Fate::Done))) {}
    bed
}

#[test]
fn node_compares_what_it_has_and_sends_what_the_database_lacks() {
    let mut bed = archived();
    bed.claim(4, &[102]);
    bed.deliver(welcome(2, 1)).unwrap();
    let compared = NodeRequest::Compare(Compare {
        crawls: vec![CRAWL],
        pages: vec![(PAGE, Epoch(3)), (SnapshotId(102), Epoch(0))],
    });
    let lacks = NodeReply::Lacks { crawls: vec![CRAWL], pages: vec![PAGE, SnapshotId(102)] };
    let entry = bed.answer_first(lacks);
    assert_eq!((entry.number, entry.request), (RECALL, compared));

    let entry = bed.answer_first(NodeReply::Submitted { inserted: 0 });
    let NodeRequest::Submit(submit) = entry.request else {
        panic!("{entry:?}");
    };
    assert_eq!(submit.crawl, CRAWL);
    let again = submit.spec.unwrap();
    let document: serde_json::Value = serde_json::from_str(&again.document).unwrap();
    let first: serde_json::Value = serde_json::from_str(&spec().document).unwrap();
    for name in ["url", "plugins", "config", "tags"] {
        assert_eq!(document[name], first[name], "{name}");
    }
    assert_eq!(again.max_depth, spec().max_depth);

    let entry = bed.answer_first(NodeReply::Restored { refused: vec![] });
    let NodeRequest::Restore { pages } = entry.request else {
        panic!("{entry:?}");
    };
    let record = pages[0].record.as_ref().unwrap();
    assert_eq!((record.epoch, record.end), (Epoch(3), PageEnd::Sealed));
    assert!(!record.results.is_empty() && record.directory.is_some());
    assert_eq!(pages[0].page.page.host.0, HOST);
    assert_eq!(pages[1].page.id, SnapshotId(102));
    assert_eq!(pages[1].record, None);
    // Then what was sent since the database last knew of the node, which here is everything.
    let next = bed.holdings().entries;
    assert!(next.iter().all(|entry| entry.number != RECALL), "{next:?}");
    assert!(!next.is_empty());
}

#[test]
fn page_whose_record_was_stale_is_not_sent_again() {
    let mut bed = node();
    bed.claim(3, &[PAGE.0]);
    bed.run_units();
    let is_record = |entry: &OutboxEntry| matches!(entry.request, NodeRequest::Record(_));
    while !is_record(&bed.answer_first(NodeReply::Recorded(Fate::Stale))) {}
    bed.deliver(welcome(2, 1)).unwrap();
    let compared = NodeRequest::Compare(Compare { crawls: vec![CRAWL], pages: vec![] });
    assert_eq!(bed.holdings().entries[0].request, compared);
}

#[test]
fn entries_of_before_the_backup_are_not_sent_again() {
    let mut bed = archived();
    bed.pass(60 * 60_000);
    let mut later = welcome(2, 1);
    if let Delivery::Welcomed { forgot, .. } = &mut later {
        *forgot = Some(Duration::from_secs(30 * 60));
    }
    bed.deliver(later).unwrap();
    bed.answer_first(NodeReply::Lacks { crawls: vec![], pages: vec![] });
    let sent = bed.outbox();
    let mut records = sent.iter().filter(|request| matches!(request, NodeRequest::Record(_)));
    assert_eq!(records.next(), None);
}

#[test]
fn node_remembers_what_the_database_acknowledged() {
    let mut bed = archived();
    let mut renewed = renewal(3);
    renewed.given = IdMarks { crawl: CrawlId(40), snapshot: SnapshotId(900), ..IdMarks::default() };
    bed.renew(renewed, false);
    let memory = bed.holdings().memory.unwrap();
    assert_eq!(memory.recorded, Some((PAGE, Epoch(3))));
    assert_eq!(memory.given.snapshot, SnapshotId(900));
    assert_eq!(memory.highest.crawl, CrawlId(40));
    assert_eq!(memory.claimed.len(), 1);
    // Another generation may lack it.
    bed.deliver(welcome(2, 1)).unwrap();
    let memory = bed.holdings().memory.unwrap();
    assert_eq!((memory.recorded, memory.submitted), (None, None));
    assert_eq!(memory.given.snapshot, SnapshotId(900));
}
