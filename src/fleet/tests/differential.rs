//! Random requests do the same on PostgreSQL as in the ledger of values: equal replies, and equal rows
//! after each request.

use crate::rows::{self, Rows};
use crate::server::{Server, shared};
use crate::steps::{Step, new_pages, pace_of, secs, step};
use crate::{database, open};
use archivist_core::fleet::{
    Claim, Command, CommandVerb, CrawlSpec, Epoch, Held, Hello, HookResult, HostKey, NodeId,
    NodeRefusal, NodeReply, NodeRequest, PageEnd, PageTimes, Record, Release, Renew, SCHEMA,
    Session, Submit,
};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId};
use archivist_fleet::ledger::{Fault, Ledger};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet_model::ledger::{DbTime, Ledger as Model};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(60);
/// 2027-01-15, in milliseconds.
const START: u64 = 1_800_000_000_000;

/// The clock and the identity of the server are settings of the session.
const CONTROLS: &str = "
    CREATE OR REPLACE FUNCTION archivist.clock() RETURNS timestamptz LANGUAGE sql STABLE
        AS 'SELECT to_timestamp(current_setting(''archivist.now'')::numeric / 1000)';
    CREATE OR REPLACE FUNCTION archivist.server() RETURNS text LANGUAGE sql STABLE
        AS 'SELECT current_setting(''archivist.server'')';
    CREATE OR REPLACE FUNCTION archivist.timeline() RETURNS bigint LANGUAGE sql STABLE
        AS 'SELECT current_setting(''archivist.server'')::bigint';
    UPDATE archivist.fleet SET lease_ms = 60000, server = '0';
    CREATE SCHEMA archivist_test;
    CREATE FUNCTION archivist_test.ms(timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
        AS 'SELECT CASE WHEN $1 = ''-infinity'' THEN 0 ELSE (extract(epoch FROM $1) * 1000)::bigint END';";

/// A ledger without rows, whose clock stands still.
async fn fresh(server: &Server, name: &str) -> Ledger {
    let mut link = open(&server.url(name)).await;
    let clean = "DROP SCHEMA IF EXISTS archivist, archivist_test CASCADE";
    link.client.batch_execute(clean).await.unwrap();
    migrate(&mut link, MIGRATIONS).await.unwrap();
    link.client.batch_execute(CONTROLS).await.unwrap();
    Ledger::new(link).with_eager_claims()
}

/// Both databases, and what nodes know.
struct Pair {
    model: Model,
    real: Ledger,
    now: DbTime,
    sessions: Vec<Session>,
    /// Every lease and page that a node ever got, the latest last.
    leases: Vec<(HostKey, Epoch)>,
    pages: Vec<(SnapshotId, Epoch)>,
    ids: rows::Ids,
}

impl Pair {
    async fn new(real: Ledger) -> Pair {
        let mut pair = Pair {
            model: Model::new(LEASE),
            real,
            now: DbTime(START),
            sessions: Vec::new(),
            leases: Vec::new(),
            pages: Vec::new(),
            ids: rows::Ids::default(),
        };
        pair.set_clock().await;
        for node in 0..3 {
            pair.hello(node, 0, 1000).await;
        }
        pair
    }

    async fn set(&self, sql: &str) {
        self.real.link().client.batch_execute(sql).await.unwrap();
    }

    async fn set_clock(&self) {
        self.set(&format!("SET archivist.now = '{}'", self.now.0)).await;
        self.set(&format!("SET archivist.server = '{}'", self.model.server)).await;
    }

    async fn hello(&mut self, node: u8, boot: u8, uptime: u16) {
        let hello = Hello {
            name: format!("web{node}"),
            machine: format!("machine{node}"),
            boot: format!("boot{boot}"),
            uptime: Duration::from_secs(uptime.into()),
            schema: SCHEMA,
            memory: None,
            lease: (uptime % 3 == 1).then(|| Duration::from_secs(u64::from(uptime % 40) + 40)),
        };
        let expected = self.model.hello(self.now, &hello);
        let real = refused(self.real.hello(&hello).await);
        assert_eq!(real, expected, "{hello:?}");
        if let Ok(welcome) = expected {
            let node = usize::from(node);
            self.sessions.resize(self.sessions.len().max(node + 1), welcome.session);
            self.sessions[node] = welcome.session;
        }
        self.compare(&format!("{hello:?}")).await;
    }

    /// Carries out a request in both, with the ids of pages of each.
    async fn apply(&mut self, node: u8, request: NodeRequest) {
        let session = self.sessions[usize::from(node)];
        let mut expected = self.model.apply(self.now, session, &request);
        if let Ok(NodeReply::Renewed(renewed)) = &mut expected {
            renewed.given.snapshot = SnapshotId(0);
        }
        let translated = self.ids.request(&request);
        let real = refused(self.real.apply(session, &translated).await);
        self.compare(&format!("{request:?}")).await;
        let real = real.map(|reply| self.ids.reply(reply));
        let real = real.map_err(|refusal| self.ids.refusal(refusal));
        assert_eq!(real, expected, "{request:?}");
        self.learn(expected.ok());
    }

    fn learn(&mut self, reply: Option<NodeReply>) {
        match reply {
            Some(NodeReply::Claimed(claimed)) => {
                for grant in claimed.hosts {
                    self.pages.extend(grant.pages.iter().map(|page| (page.id, grant.epoch)));
                    self.leases.push((grant.host, grant.epoch));
                }
            }
            Some(NodeReply::Renewed(renewed)) => {
                for lease in renewed.leases {
                    let epoch = lease.epoch;
                    self.pages.extend(lease.pages.iter().map(|page| (page.id, epoch)));
                }
            }
            _ => {}
        }
    }

    async fn compare(&mut self, after: &str) {
        let client = &self.real.link().client;
        self.ids = rows::Ids::of(client, &self.model).await;
        let real = Rows::of_database(client, &self.ids).await;
        pretty(&real, &Rows::of_model(&self.model), after);
        for crawl in self.model.crawls.keys() {
            let real = self.real.is_sealed(*crawl).await.unwrap();
            assert_eq!(real, self.model.is_sealed(*crawl, self.now), "{crawl} after {after}");
        }
    }

    /// A lease or page: mostly one of the latest.
    fn pick<T: Clone>(all: &[T], choice: u8) -> Option<T> {
        let recent = all.len().min(if choice < 200 { 6 } else { 64 });
        (recent > 0).then(|| all[all.len() - 1 - usize::from(choice) % recent].clone())
    }

    async fn step(&mut self, step: &Step) {
        let (node, request) = match step {
            Step::Hello { node, boot, uptime } => return self.hello(*node, *boot, *uptime).await,
            Step::Wait { seconds } => {
                self.now = self.now.after(Duration::from_secs((*seconds).into()));
                return self.set_clock().await;
            }
            Step::Failover => {
                self.model.server += 1;
                return self.set_clock().await;
            }
            Step::Reserve { node, count } => {
                (node, NodeRequest::ReserveCrawls { count: (*count).into() })
            }
            Step::Submit { node, crawl, limit, pages } => {
                let spec = CrawlSpec {
                    max_depth: 1,
                    urls_max: (*limit > 4).then_some((*limit).into()),
                    only_new: limit % 2 == 1,
                    document: format!("{{\"crawl\":{crawl}}}"),
                };
                let submit = Submit {
                    crawl: CrawlId(i64::from(*crawl) + 1),
                    spec: (*crawl < 3).then_some(spec),
                    pages: new_pages(pages),
                };
                (node, NodeRequest::Submit(submit))
            }
            Step::Claim { node, hosts, pages } => {
                let claim = Claim {
                    hosts: (*hosts).into(),
                    pages_per_host: (*pages).into(),
                    delay: secs(*hosts),
                };
                (node, NodeRequest::Claim(claim))
            }
            Step::Renew { node, skip, refill, live, pace } => {
                let mut leases = self.leases.clone();
                leases.reverse();
                leases.truncate(8);
                leases.sort();
                leases.reverse();
                leases.dedup_by(|a, b| a.0 == b.0);
                let held = leases.into_iter().enumerate();
                let held = held.filter(|(place, _)| *place != usize::from(*skip));
                let held = held.map(|(_, (host, epoch))| Held {
                    host,
                    epoch,
                    live: *live,
                    pace: pace_of(*pace),
                });
                let renew = Renew {
                    leases: held.collect(),
                    refill: (*refill).into(),
                    wanting: (*refill).into(),
                    drains: *live && *skip > 4,
                };
                (node, NodeRequest::Renew(renew))
            }
            Step::Record { node, page, cancelled, children } => {
                let Some((page, epoch)) = Pair::pick(&self.pages, *page) else {
                    return;
                };
                let result = HookResult {
                    plugin: "title".to_owned(),
                    hook: "title".to_owned(),
                    state: if children.len() % 2 == 0 {
                        ResultState::Succeeded
                    } else {
                        ResultState::Failed
                    },
                    output: Some("a title".to_owned()),
                    error: None,
                    size: 7,
                    attempts: 1,
                    took: None,
                };
                let record = Record {
                    page,
                    epoch,
                    end: if *cancelled { PageEnd::Cancelled } else { PageEnd::Sealed },
                    reason: None,
                    directory: (!*cancelled).then(|| "20271125/a.test/s1".to_owned()),
                    results: vec![result],
                    children: new_pages(children),
                    times: PageTimes::default(),
                };
                (node, NodeRequest::Record(record))
            }
            Step::GiveBack { node, page } => {
                let Some((page, epoch)) = Pair::pick(&self.pages, *page) else {
                    return;
                };
                (node, NodeRequest::GiveBack { page, epoch })
            }
            Step::Release { node, lease, pace } => {
                let Some((host, epoch)) = Pair::pick(&self.leases, *lease) else {
                    return;
                };
                let pace = pace.map(pace_of);
                (node, NodeRequest::Release(Release { host, epoch, pace }))
            }
            Step::Command { node, verb, target, of_page } => {
                return self.command(*node, *verb, *target, *of_page).await;
            }
            Step::Drain { node, of, draining } => {
                let request =
                    NodeRequest::Drain { node: NodeId(i64::from(*of) + 1), draining: *draining };
                (node, request)
            }
            Step::Leave { node, of } => {
                (node, NodeRequest::Leave { node: NodeId(i64::from(*of) + 1) })
            }
            Step::Goodbye { node } => (node, NodeRequest::Goodbye),
            Step::Close { node, crawl } => {
                let crawl = CrawlId(i64::from(*crawl) + 1);
                (node, NodeRequest::CrawlClosed { crawl })
            }
        };
        self.apply(*node, request).await;
    }

    async fn command(&mut self, node: u8, verb: u8, target: u8, of_page: bool) {
        let page = self.model.pages.keys().nth(usize::from(target) % self.model.pages.len().max(1));
        let crawl = Owner::Crawl(CrawlId(i64::from(target % 4) + 1));
        let target = match page {
            Some(page) if of_page => Owner::Snapshot(*page),
            _ => crawl,
        };
        let verb =
            [CommandVerb::Cancel, CommandVerb::Pause, CommandVerb::Resume, CommandVerb::Retry]
                [usize::from(verb)];
        // The statement ends cancelled pages of lost leases at once, the ledger with the next claim.
        let claim =
            NodeRequest::Claim(Claim { hosts: 0, pages_per_host: 0, delay: Duration::ZERO });
        let command = NodeRequest::Command(Command { verb, target });
        let session = self.sessions[usize::from(node)];
        let expected = self.model.apply(self.now, session, &command);
        let settled = self.model.apply(self.now, session, &claim);
        let translated = self.ids.request(&command);
        let real = refused(self.real.apply(session, &translated).await);
        let real_settled = refused(self.real.apply(session, &claim).await);
        assert_eq!(real.map_err(|refusal| self.ids.refusal(refusal)), expected, "{command:?}");
        assert_eq!(real_settled, settled);
        self.compare(&format!("{command:?}")).await;
    }
}

fn refused<T>(outcome: Result<T, Fault>) -> Result<T, NodeRefusal> {
    match outcome {
        Ok(value) => Ok(value),
        Err(Fault::Refused(refusal)) => Err(refusal),
        Err(Fault::Problem(problem)) => panic!("{problem}"),
    }
}

fn pretty(real: &Rows, expected: &Rows, after: &str) {
    assert!(real == expected, "after {after}\nPostgreSQL: {real:#?}\nledger: {expected:#?}");
}

#[test]
fn postgresql_does_what_the_ledger_does() {
    let Some(server) = shared() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig {
        // PROPTEST_CASES overrides this.
        cases: std::env::var("PROPTEST_CASES").map_or(40, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    };
    runtime.block_on(database(server, "differential"));
    let outcome = TestRunner::new(config).run(&vec(step(), 1..80), |steps| {
        let run = async {
            let ledger = fresh(server, "differential").await;
            let mut pair = Pair::new(ledger).await;
            for step in &steps {
                pair.step(step).await;
            }
        };
        runtime.block_on(run);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
