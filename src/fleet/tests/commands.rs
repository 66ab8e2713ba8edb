//! Commands about large crawls, which are carried out in pieces.

use crate::server::{Server, shared};
use crate::{database, open};
use archivist_core::fleet::{
    Claim, Command, CommandVerb, CrawlSpec, Held, Hello, NodeReply, NodeRequest, Pace, Renew,
    SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, Owner};
use archivist_fleet::connect::Link;
use archivist_fleet::ledger::Ledger;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::time::Duration;

const CRAWL: CrawlId = CrawlId(1);
/// Pages of the crawl, on ten hosts.
const PAGES: i64 = 5_000;
/// Most pages that may change while a renewal waits.
const PIECE: i64 = 2_000;

/// As if pages had been submitted one by one.
const FILL: &str = "
    INSERT INTO archivist.host (key, ready_at, due_at)
        SELECT n || '.example', archivist.clock(), archivist.clock() FROM generate_series(0, 9) n;
    INSERT INTO archivist.page (crawl, depth, host, url, url_key)
        SELECT 1, 0, (n % 10) || '.example', n::text, n::text::bytea FROM generate_series(1, 5000) n;
    INSERT INTO archivist.tally (crawl, pages, open, bytes) VALUES (1, 5000, 5000, 0)";

struct Bed {
    look: Link,
    nodes: Vec<(Ledger, Session)>,
}

impl Bed {
    async fn new(server: &Server, name: &str) -> Bed {
        let mut look = database(server, name).await;
        migrate(&mut look, MIGRATIONS).await.unwrap();
        let mut bed = Bed { look, nodes: Vec::new() };
        for node in ["web1", "web2"] {
            let mut ledger = Ledger::new(open(&server.url(name)).await);
            let hello = Hello {
                name: node.to_owned(),
                machine: node.to_owned(),
                boot: node.to_owned(),
                uptime: Duration::ZERO,
                schema: SCHEMA,
                memory: None,
                lease: None,
            };
            let session = ledger.hello(&hello).await.unwrap().session;
            bed.nodes.push((ledger, session));
        }
        let spec =
            CrawlSpec { max_depth: 0, urls_max: None, only_new: false, document: "{}".to_owned() };
        let submit =
            NodeRequest::Submit(Submit { crawl: CRAWL, spec: Some(spec), pages: Vec::new() });
        bed.apply(0, &submit).await;
        bed.look.client.batch_execute(FILL).await.unwrap();
        bed
    }

    async fn apply(&mut self, node: usize, request: &NodeRequest) -> NodeReply {
        let (ledger, session) = &mut self.nodes[node];
        ledger.apply(*session, request).await.unwrap()
    }

    /// Sends a command, or its next piece. Returns whether pages remain.
    async fn command(&mut self, node: usize, verb: CommandVerb) -> bool {
        let target = Owner::Crawl(CRAWL);
        let request = NodeRequest::Command(Command { verb, target });
        match self.apply(node, &request).await {
            NodeReply::Commanded { more } => more,
            other => panic!("{other:?}"),
        }
    }

    async fn count(&self, condition: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {condition}");
        let row = self.look.client.query_one(&query, &[]).await;
        row.unwrap().get(0)
    }

    async fn cancelled(&self) -> i64 {
        let cancelled = self.count("archivist.page WHERE status = 'cancelled'").await;
        let sum = "SELECT sum(cancelled)::bigint FROM archivist.tally";
        let counted = self.look.client.query_one(sum, &[]).await.unwrap();
        assert_eq!(counted.get::<_, i64>(0), cancelled);
        cancelled
    }

    async fn claim(&mut self, node: usize, hosts: u32) -> Vec<Held> {
        let claim = NodeRequest::Claim(Claim { hosts, pages_per_host: 1, delay: Duration::ZERO });
        let NodeReply::Claimed(claimed) = self.apply(node, &claim).await else {
            panic!("no answer to a claim");
        };
        let held = claimed.hosts.into_iter().map(|grant| Held {
            host: grant.host,
            epoch: grant.epoch,
            live: true,
            pace: Pace::default(),
        });
        held.collect()
    }
}

#[tokio::test]
async fn large_crawl_is_cancelled_and_retried_in_pieces_between_renewals() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "large").await;
    let leases = bed.claim(0, 1).await;
    let renew = NodeRequest::Renew(Renew { leases, ..Renew::default() });
    let mut done = 0;
    while bed.command(0, CommandVerb::Cancel).await {
        let changed = bed.cancelled().await - done;
        assert!((1..=PIECE).contains(&changed), "{changed}");
        done += changed;
        let NodeReply::Renewed(renewed) = bed.apply(0, &renew).await else {
            panic!("no answer to a renewal");
        };
        assert_eq!(renewed.lost, []);
    }
    assert_eq!(bed.cancelled().await, PAGES - 1, "one page runs");

    let idle =
        "UPDATE archivist.host SET due_at = 'infinity', from_page = 9000 WHERE due_at IS NOT NULL";
    bed.look.client.batch_execute(idle).await.unwrap();
    let mut left = PAGES - 1;
    while bed.command(1, CommandVerb::Retry).await {
        let now = bed.cancelled().await;
        assert!(left - now <= PIECE, "{left} {now}");
        left = now;
    }
    assert_eq!(bed.cancelled().await, 0);
    assert_eq!(bed.claim(1, 20).await.len(), 9);
}

#[tokio::test]
async fn retry_of_a_crawl_is_about_failed_results_and_cancelled_pages() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "failed").await;
    let ends = "
        UPDATE archivist.page SET status = CASE id % 5 WHEN 0 THEN 'cancelled' ELSE 'sealed' END;
        INSERT INTO archivist.result (page, plugin, hook, state, size, attempts)
            SELECT id, 'title', 'title', CASE id % 5 WHEN 1 THEN 'failed' ELSE 'succeeded' END, 7, 1
            FROM archivist.page WHERE status = 'sealed';
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled, succeeded, failed)
            VALUES (1, 0, -5000, 28000, 1000, 3000, 1000)";
    bed.look.client.batch_execute(ends).await.unwrap();
    while bed.command(0, CommandVerb::Retry).await {}
    assert_eq!(bed.count("archivist.page WHERE status = 'open'").await, 2_000);
    assert_eq!(bed.count("archivist.page WHERE status = 'sealed'").await, 3_000);
    assert_eq!(bed.count("archivist.result WHERE state = 'failed'").await, 0);
    let sums =
        "SELECT sum(open)::bigint, sum(bytes)::bigint, sum(failed)::bigint FROM archivist.tally";
    let sums = bed.look.client.query_one(sums, &[]).await.unwrap();
    let sums: [i64; 3] = [0, 1, 2].map(|column| sums.get(column));
    assert_eq!(sums, [2_000, 21_000, 0]);
}

#[tokio::test]
async fn later_command_ends_the_pieces_of_an_earlier_one() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "overtaken").await;
    assert!(bed.command(0, CommandVerb::Cancel).await);
    assert_eq!(bed.cancelled().await, PIECE);
    while bed.command(1, CommandVerb::Retry).await {}
    assert!(!bed.command(0, CommandVerb::Cancel).await);
    assert_eq!(bed.cancelled().await, 0);
}

#[tokio::test]
async fn command_that_is_sent_again_over_another_connection_is_completed() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "again").await;
    assert!(!bed.command(0, CommandVerb::Pause).await);
    bed.claim(1, 20).await;
    let idle = "archivist.host WHERE due_at = 'infinity'";
    assert_eq!(bed.count(idle).await, 10);
    assert!(bed.command(0, CommandVerb::Resume).await);
    while bed.command(1, CommandVerb::Resume).await {}
    assert_eq!(bed.count(idle).await, 0);
    assert_eq!(bed.claim(1, 20).await.len(), 10);
}
