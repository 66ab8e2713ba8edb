//! What a page costs the database, as PostgreSQL counts it.

use crate::server::{Server, programs, shared};
use crate::view::{CRAWL, node, page};
use archivist_core::fleet::{
    Claim, CrawlSpec, Grant, Held, NewPage, NodeReply, NodeRequest, Pace, PageEnd, PageTimes,
    Record, Release, Renew, Session, Submit,
};
use archivist_core::model::SnapshotId;
use archivist_fleet::ledger::Ledger;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::time::Duration;

/// Names the server's socket; an own directory keeps it from others.
const PORT: u16 = 5432;
const HOSTS: u32 = 4;
/// Pages of a host that wait on a node, as the orchestrator asks for.
const PAGES: u32 = 16;
const FILLS: u32 = 2;

/// Most statements of a page: its claim, its links and its record, with its share of those for its host.
const STATEMENTS_MAX: i64 = 4;
/// Most statements of a page with links, of any number, in a crawl with a limit of URLs: nodes that add
/// to it wait for each other.
const STATEMENTS_OF_LIMITED_MAX: i64 = 9;
/// Most updated rows of a page: its own with claim and record, and its share of the others.
const ROWS_MAX: i64 = 3;

/// Statements, BEGIN and COMMIT included, and updated rows.
#[derive(Debug)]
struct Cost {
    statements: i64,
    updated: i64,
}

struct Bed {
    ledger: Ledger,
    session: Session,
}

impl Bed {
    async fn new(server: &Server, name: &str, links: u32, urls_max: Option<u64>) -> Bed {
        let mut link = crate::database(server, name).await;
        migrate(&mut link, MIGRATIONS).await.unwrap();
        let (ledger, session) = node(server, name, "web1").await;
        let mut bed = Bed { ledger, session };
        let count = HOSTS * PAGES * FILLS;
        let pages = (0..count).map(|number| found(number, links)).collect();
        let spec = CrawlSpec { max_depth: 1, urls_max, only_new: false, document: "{}".to_owned() };
        bed.submit(Some(spec), pages).await;
        bed
    }

    async fn apply(&mut self, request: NodeRequest) -> NodeReply {
        self.ledger.apply(self.session, &request).await.unwrap()
    }

    async fn submit(&mut self, spec: Option<CrawlSpec>, pages: Vec<NewPage>) {
        let submit = Submit { crawl: CRAWL, spec, pages };
        self.apply(NodeRequest::Submit(submit)).await;
    }

    async fn record(&mut self, grant: &Grant, page: SnapshotId) {
        let record = Record {
            page,
            epoch: grant.epoch,
            end: PageEnd::Sealed,
            reason: None,
            directory: None,
            results: Vec::new(),
            children: Vec::new(),
            times: PageTimes::default(),
        };
        self.apply(NodeRequest::Record(record)).await;
    }

    /// Works as an orchestrator does, until no page waits; each page has `links`. Returns the number
    /// of pages.
    async fn work(&mut self, links: u32) -> i64 {
        let claim = Claim { hosts: HOSTS, pages_per_host: PAGES, delay: Duration::ZERO };
        let NodeReply::Claimed(claimed) = self.apply(NodeRequest::Claim(claim)).await else {
            panic!("no answer to a claim");
        };
        let mut done = 0;
        for grant in claimed.hosts {
            let mut pages = grant.pages.clone();
            while !pages.is_empty() {
                for page in &pages {
                    if links > 0 {
                        let new = (0..links).map(|link| found(1000 + done * links + link, links));
                        self.submit(None, new.collect()).await;
                    }
                    self.record(&grant, page.id).await;
                    done += 1;
                }
                pages = self.refill(&grant).await;
            }
            let release =
                Release { host: grant.host, epoch: grant.epoch, pace: Some(Pace::default()) };
            self.apply(NodeRequest::Release(release)).await;
        }
        done.into()
    }

    async fn refill(&mut self, grant: &Grant) -> Vec<archivist_core::fleet::LeasedPage> {
        let held = Held {
            host: grant.host.clone(),
            epoch: grant.epoch,
            live: true,
            pace: Pace::default(),
        };
        let renew = Renew { leases: vec![held], refill: PAGES, ..Renew::default() };
        match self.apply(NodeRequest::Renew(renew)).await {
            NodeReply::Renewed(mut renewed) => renewed.leases.remove(0).pages,
            other => panic!("{other:?}"),
        }
    }

    async fn reset(&self) {
        let client = &self.ledger.link().client;
        let reset = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
            SELECT pg_stat_force_next_flush()";
        client.batch_execute(reset).await.unwrap();
        let reset = "SELECT pg_stat_reset(), pg_stat_statements_reset()";
        client.batch_execute(reset).await.unwrap();
    }

    async fn cost(&self) -> Cost {
        let client = &self.ledger.link().client;
        let statements = "SELECT sum(calls)::bigint FROM pg_stat_statements
            WHERE query !~ 'pg_stat' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let statements = client.query_one(statements, &[]).await.unwrap().get(0);
        client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
        let updated =
            "SELECT sum(n_tup_upd)::bigint FROM pg_stat_user_tables WHERE schemaname = 'archivist'";
        let updated = client.query_one(updated, &[]).await.unwrap().get(0);
        Cost { statements, updated }
    }
}

/// Page `number`. Links of pages are on hosts that no node claims.
fn found(number: u32, links: u32) -> NewPage {
    let is_link = number >= 1000;
    let host = if is_link { HOSTS + links } else { number % HOSTS };
    page(&format!("h{host}.example"), number)
}

#[tokio::test]
async fn page_costs_few_statements_and_updated_rows() {
    let Some(other) = shared() else { return };
    let library = programs().unwrap().join("../lib/pg_stat_statements.so");
    if !library.exists() {
        eprintln!("skipped: no {}", library.display());
        return;
    }
    let settings = ["shared_preload_libraries=pg_stat_statements"];
    let server = other.start(PORT, &settings, &[]);
    let limit = Some(100_000);
    for (links, urls_max, most) in [
        (0, limit, STATEMENTS_MAX),
        (5, None, STATEMENTS_MAX),
        (5, limit, STATEMENTS_OF_LIMITED_MAX),
    ] {
        let mut bed = Bed::new(&server, &format!("cost{most}of{links}"), links, urls_max).await;
        bed.reset().await;
        let pages = bed.work(links).await;
        assert_eq!(pages, i64::from(HOSTS * PAGES * FILLS));
        let cost = bed.cost().await;
        assert!(cost.updated <= ROWS_MAX * pages, "{links}: {cost:?}");
        let sent = pages * (1 + i64::from(links > 0));
        assert!(cost.statements >= sent, "they are not counted: {cost:?}");
        assert!(cost.statements <= most * pages, "{links}: {cost:?}");
    }
}
