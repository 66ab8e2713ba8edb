//! Nodes that work at the same time: no page is lost, recorded twice, or on two nodes.

use crate::server::{Server, shared};
use crate::{database, open};
use archivist_core::fleet::{
    Claim, CrawlSpec, Fate, Hello, HostKey, NewPage, NodeReply, NodeRequest, Pace, PageEnd,
    PageTimes, Record, Release, SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_fleet::ledger::Ledger;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const CRAWL: CrawlId = CrawlId(1);
/// Far longer than the work takes.
const PATIENCE: Duration = Duration::from_secs(120);

async fn node(server: &Server, name: &str) -> (Ledger, Session) {
    let mut ledger = Ledger::new(open(&server.url("together")).await);
    let hello = Hello {
        name: name.to_owned(),
        machine: name.to_owned(),
        boot: name.to_owned(),
        uptime: Duration::ZERO,
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    let session = ledger.hello(&hello).await.unwrap().session;
    (ledger, session)
}

fn page(number: u64, depth: u32) -> NewPage {
    NewPage {
        url: format!("https://h{}.example/{number}", number % 7),
        host: HostKey(format!("h{}.example", number % 7)),
        depth,
        given: depth == 0,
        title: None,
        bookmarked_at: None,
        tags: Vec::new(),
    }
}

/// Page `n` has a link to page `n + 100`, on another host, and to page 5000, which all pages share.
fn record(id: SnapshotId, grant: (i64, &str), depth: u32) -> Record {
    let number: u64 = grant.1.rsplit('/').next().unwrap().parse().unwrap();
    Record {
        page: id,
        epoch: archivist_core::fleet::Epoch(grant.0),
        end: PageEnd::Sealed,
        reason: None,
        directory: None,
        results: Vec::new(),
        children: vec![page(number + 100, depth + 1), page(5000, depth + 1)],
        times: PageTimes::default(),
    }
}

/// Works until the crawl is sealed; returns the pages that this node recorded.
async fn work(mut ledger: Ledger, session: Session) -> Vec<SnapshotId> {
    let began = Instant::now();
    let mut done = Vec::new();
    while !ledger.is_sealed(CRAWL).await.unwrap() {
        assert!(began.elapsed() < PATIENCE, "pages wait, and no node gets them");
        let claim =
            NodeRequest::Claim(Claim { hosts: 1, pages_per_host: 3, delay: Duration::ZERO });
        let NodeReply::Claimed(claimed) = ledger.apply(session, &claim).await.unwrap() else {
            panic!("no answer to a claim");
        };
        for grant in claimed.hosts {
            for page in grant.pages {
                let record = record(page.id, (grant.epoch.0, &page.page.url), page.page.depth);
                let reply = ledger.apply(session, &NodeRequest::Record(record)).await.unwrap();
                assert_eq!(reply, NodeReply::Recorded(Fate::Done));
                assert_eq!(page.attempts, 1);
                done.push(page.id);
            }
            let release = NodeRequest::Release(Release {
                host: grant.host,
                epoch: grant.epoch,
                pace: Some(Pace::default()),
            });
            let reply = ledger.apply(session, &release).await.unwrap();
            assert_eq!(reply, NodeReply::Released(Fate::Done));
        }
        let closed = NodeRequest::CrawlClosed { crawl: CRAWL };
        ledger.apply(session, &closed).await.unwrap();
        ledger.fold(100).await.unwrap();
    }
    done
}

#[tokio::test]
async fn concurrent_nodes_record_each_page_once() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "together").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let (mut user, session) = node(server, "user").await;
    let spec =
        CrawlSpec { max_depth: 3, urls_max: None, only_new: false, document: "{}".to_owned() };
    let mut nodes = Vec::new();
    for number in 0..6 {
        let (ledger, session) = node(server, &format!("web{number}")).await;
        nodes.push((ledger, session));
    }
    let submit = |spec, pages| NodeRequest::Submit(Submit { crawl: CRAWL, spec, pages });
    user.apply(session, &submit(Some(spec), vec![page(0, 0)])).await.unwrap();
    let nodes = nodes.into_iter().map(|(ledger, session)| tokio::spawn(work(ledger, session)));
    let nodes: Vec<_> = nodes.collect();
    for first in 1..100 {
        user.apply(session, &submit(None, vec![page(first, 0)])).await.unwrap();
    }
    let mut done = Vec::new();
    for node in nodes {
        done.extend(node.await.unwrap());
    }
    // Pages that were queued after a node had seen the end.
    done.extend(work(user, session).await);
    let distinct: BTreeSet<_> = done.iter().collect();
    assert_eq!(distinct.len(), done.len());
    assert_eq!(done.len(), 4 * 100 + 3);
    let open = "SELECT count(*) FROM archivist.page WHERE status = 'open'";
    assert_eq!(link.client.query_one(open, &[]).await.unwrap().get::<_, i64>(0), 0);
}
