//! A fleet whose nodes are upgraded one after the other, with a schema of the next version.

use crate::server::{Server, shared};
use crate::{database, open};
use archivist_core::fleet::{
    Claim, CrawlSpec, Fate, Grant, Held, Hello, HostKey, NewPage, NodeRefusal, NodeReply,
    NodeRequest, Pace, PageEnd, PageTimes, Record, Renew, SCHEMA, Session, Submit, Welcome,
};
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_fleet::connect::{Link, Problem};
use archivist_fleet::ledger::{Fault, Ledger};
use archivist_fleet::schema::{MIGRATIONS, Migration, VERSION, check, check_as, migrate};
use std::time::Duration;

const CRAWL: CrawlId = CrawlId(1);
const NEXT: i32 = VERSION + 1;

/// Adds only: programs of this version may continue.
const ADDS: Migration = Migration {
    text: "ALTER TABLE archivist.page ADD COLUMN colour text;
        CREATE INDEX page_colour ON archivist.page (colour) WHERE colour IS NOT NULL",
    programs_from: VERSION,
};
/// Programs of this version would not fill the column.
const REQUIRES: Migration = Migration {
    text: "ALTER TABLE archivist.result ADD COLUMN colour text NOT NULL DEFAULT 'grey';
        ALTER TABLE archivist.result ALTER COLUMN colour DROP DEFAULT",
    programs_from: NEXT,
};

struct Bed {
    link: Link,
    node: Ledger,
    session: Session,
    lease: Grant,
}

async fn hello(ledger: &mut Ledger) -> Welcome {
    let hello = Hello {
        name: "web1".to_owned(),
        machine: "machine".to_owned(),
        boot: "boot".to_owned(),
        uptime: Duration::ZERO,
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    ledger.hello(&hello).await.unwrap()
}

/// A node with a lease of one host with two pages, before the schema is migrated.
async fn bed(server: &Server, name: &str) -> Bed {
    let mut link = database(server, name).await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let mut node = Ledger::new(open(&server.url(name)).await);
    let session = hello(&mut node).await.session;
    node.apply(session, &submit(&["a", "b"])).await.unwrap();
    let claim = NodeRequest::Claim(Claim { hosts: 1, pages_per_host: 2, delay: Duration::ZERO });
    let Ok(NodeReply::Claimed(mut claimed)) = node.apply(session, &claim).await else {
        panic!("no answer to a claim");
    };
    Bed { link, node, session, lease: claimed.hosts.remove(0) }
}

fn submit(pages: &[&str]) -> NodeRequest {
    let page = |path: &&str| NewPage {
        url: format!("https://a.example/{path}"),
        host: HostKey("a.example".to_owned()),
        depth: 0,
        given: true,
        title: None,
        bookmarked_at: None,
        tags: Vec::new(),
    };
    NodeRequest::Submit(Submit {
        crawl: CRAWL,
        spec: Some(CrawlSpec {
            max_depth: 0,
            urls_max: None,
            only_new: false,
            document: "{}".to_owned(),
        }),
        pages: pages.iter().map(page).collect(),
    })
}

impl Bed {
    fn record(&self, place: usize) -> NodeRequest {
        let page: SnapshotId = self.lease.pages[place].id;
        NodeRequest::Record(Record {
            page,
            epoch: self.lease.epoch,
            end: PageEnd::Sealed,
            reason: None,
            directory: None,
            results: Vec::new(),
            children: Vec::new(),
            times: PageTimes::default(),
        })
    }

    fn renewal(&self) -> NodeRequest {
        let held = Held {
            host: self.lease.host.clone(),
            epoch: self.lease.epoch,
            live: true,
            pace: Pace::default(),
        };
        NodeRequest::Renew(Renew { leases: vec![held], ..Renew::default() })
    }
}

#[tokio::test]
async fn node_continues_with_a_schema_that_only_adds() {
    let Some(server) = shared() else { return };
    let mut bed = bed(server, "adds").await;
    let steps = [MIGRATIONS, &[ADDS]].concat();
    assert_eq!(migrate(&mut bed.link, &steps).await.unwrap(), VERSION);
    let recorded = bed.record(0);
    let reply = bed.node.apply(bed.session, &recorded).await.unwrap();
    assert_eq!(reply, NodeReply::Recorded(Fate::Done));
    check(&bed.link).await.unwrap();
    hello(&mut bed.node).await;
    assert_eq!(migrate(&mut bed.link, MIGRATIONS).await.unwrap(), NEXT);
}

#[tokio::test]
async fn older_node_is_stopped_by_a_newer_schema_and_sends_everything_after_its_upgrade() {
    let Some(server) = shared() else { return };
    let mut bed = bed(server, "requires").await;
    let steps = [MIGRATIONS, &[REQUIRES]].concat();
    migrate(&mut bed.link, &steps).await.unwrap();

    // Over the connection that it has, and over a new one.
    let outbox = [bed.record(0), bed.record(1), submit(&["c"])];
    for request in [&[bed.renewal()], &outbox[..]].concat() {
        let refused = bed.node.apply(bed.session, &request).await.unwrap_err();
        assert!(
            matches!(refused, Fault::Refused(NodeRefusal::Superseded { .. })),
            "{request:?}: {refused}"
        );
    }
    let problem = check(&bed.link).await.unwrap_err();
    assert!(matches!(problem, Problem::Newer { .. }), "{problem}");
    let nothing = "SELECT count(*) FROM archivist.page WHERE status <> 'open' OR url LIKE '%c'";
    let changed = bed.link.client.query_one(nothing, &[]).await.unwrap();
    assert_eq!(changed.get::<_, i64>(0), 0);

    check_as(&bed.link, NEXT).await.unwrap();
    let welcome = hello(&mut bed.node).await;
    let lease = (bed.lease.host.clone(), bed.lease.epoch);
    assert_eq!(welcome.owned, [lease]);
    let renewal = bed.renewal();
    let Ok(NodeReply::Renewed(renewed)) = bed.node.apply(welcome.session, &renewal).await else {
        panic!("no answer to a renewal");
    };
    assert_eq!(renewed.lost, []);
    let mut replies = Vec::new();
    for request in outbox {
        replies.push(bed.node.apply(welcome.session, &request).await.unwrap());
    }
    let done = NodeReply::Recorded(Fate::Done);
    assert_eq!(replies, [done.clone(), done, NodeReply::Submitted { inserted: 1 }]);
}

#[tokio::test]
async fn upgraded_node_waits_for_the_migration() {
    let Some(server) = shared() else { return };
    let bed = bed(server, "waits").await;
    let problem = check_as(&bed.link, NEXT).await.unwrap_err();
    let text = problem.to_string();
    assert!(
        text.contains(&format!("its schema is version {VERSION}"))
            && text.contains("archivist fleet init"),
        "{text}"
    );
}
