//! Signals on the bus: which, in which order, and how many.

use super::bed::Bed;
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::plan::Notice;
use archivist_shared::bus::documents::notice::{CrawlNotice, PagesNotice, SnapshotNotice};
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::bus::signals::Signal;
use std::sync::Arc;

/// The signals since the last call, in words.
fn heard(bed: &mut Bed) -> Vec<String> {
    let signals = std::mem::take(&mut bed.world.announced);
    let words = signals.into_iter().map(|signal| match signal {
        Signal::Crawl { notice, id, .. } => format!("{id} {notice:?}"),
        Signal::Pages { crawl, .. } => format!("{crawl} pages"),
        Signal::Snapshot { notice, id, .. } => format!("{id} {notice:?}"),
        Signal::Idle => "idle".to_owned(),
        Signal::Stopping => "stopping".to_owned(),
    });
    words.collect()
}

fn list(bed: &mut Bed, pages: usize) {
    let list: String = (0..pages).map(|n| format!("http://a.example/{n}\n")).collect();
    add(bed, &list);
}

fn add(bed: &mut Bed, list: &str) {
    let lines = Arc::new(list.as_bytes().to_vec());
    bed.request(Request::Add {
        lines,
        options: AddOptions::default(),
        user: 0,
        joins: false,
        so_far: None,
    });
}

#[test]
fn signals_follow_a_crawl_from_its_start_to_its_end() {
    let mut bed = Bed::new();
    bed.world.is_subscribed = true;
    bed.pass(1);
    assert_eq!(heard(&mut bed), [""; 0], "nothing happened");
    bed.add(1);
    assert_eq!(heard(&mut bed), ["c1 pages", "c1 Added", "c1 Started"]);
    bed.come_to_an_end();
    let end = ["s1 Started", "s1 Sealed", "c1 Sealed", "idle"];
    assert_eq!(heard(&mut bed), end);
    bed.pass(1);
    assert_eq!(heard(&mut bed), [""; 0], "idle is reported once");
}

#[test]
fn only_signals_about_crawls_are_sent_without_a_subscriber() {
    let mut bed = Bed::new();
    bed.add(3);
    bed.come_to_an_end();
    let all = ["c1 Added", "c1 Started", "c1 Sealed", "idle"];
    assert_eq!(heard(&mut bed), all);
}

#[test]
fn idle_follows_the_end_of_the_last_open_crawl() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.add(1);
    let [first, second] = [1, 2].map(|n| Owner::Crawl(CrawlId(n)));
    bed.request(Request::Pause { id: first });
    heard(&mut bed);
    bed.request(Request::Cancel { id: second });
    bed.request(Request::Cancel { id: first });
    assert_eq!(heard(&mut bed), ["c2 Cancelled", "c1 Cancelled", "idle"]);
    bed.come_to_an_end();
    bed.retry_some(Some(first), Which::All);
    let again = heard(&mut bed);
    assert!(again.contains(&"c1 Changed".to_owned()), "{again:?}");
    assert!(!again.contains(&"idle".to_owned()), "{again:?}");
}

#[test]
fn refused_request_sends_no_signal() {
    let mut bed = Bed::new();
    list(&mut bed, 0);
    let refused = bed.request(Request::Cancel { id: Owner::Crawl(CrawlId(7)) });
    assert!(refused.unwrap().is_err());
    assert_eq!(heard(&mut bed), [""; 0]);
}

#[test]
fn a_turn_sends_few_signals_about_many_pages() {
    let mut bed = Bed::new();
    bed.world.is_subscribed = true;
    list(&mut bed, 900);
    let added = heard(&mut bed);
    assert_eq!(added, ["c1 pages", "c1 Added", "c1 Started"]);
    bed.until_quiet();
    heard(&mut bed);
    bed.cancel(0);
    // Many waiting pages are cancelled in pieces, without a signal for each.
    bed.until_quiet();
    let words = heard(&mut bed);
    assert!(words.contains(&"c1 Cancelled".to_owned()), "{words:?}");
    let pages = words.iter().filter(|word| word.starts_with('s')).count();
    assert_eq!(pages, 0, "{words:?}");
}

#[test]
fn documents_have_no_secrets() {
    let mut bed = Bed::new();
    bed.world.is_subscribed = true;
    add(&mut bed, "http://bob:hunter2@a.example/p?token=secret#x\n");
    bed.come_to_an_end();
    for signal in &bed.world.announced {
        let url = match signal {
            Signal::Crawl { document, notice, .. } => {
                let crawl: CrawlNotice = serde_json::from_str(document).unwrap();
                let sealed = crawl.snapshots.get("sealed").copied();
                assert_eq!(*notice == Notice::Sealed, sealed == Some(1), "{document}");
                crawl.url
            }
            Signal::Snapshot { document, .. } => {
                let page: SnapshotNotice = serde_json::from_str(document).unwrap();
                page.url
            }
            Signal::Pages { document, .. } => {
                let pages: PagesNotice = serde_json::from_str(document).unwrap();
                let ids = (pages.first, pages.last);
                assert_eq!((pages.count, ids), (1, (SnapshotId(1), SnapshotId(1))));
                continue;
            }
            Signal::Idle | Signal::Stopping => continue,
        };
        assert_eq!(url, "http://a.example/p");
    }
}
