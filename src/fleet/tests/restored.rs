//! A database that is restored from a real dump while two nodes work.

use crate::server::{programs, shared};
use crate::{administer, database, open};
use archivist_core::fleet::{
    BootTime, Claim, Command as FleetCommand, CommandVerb, CrawlSpec, Delivery, Hello, HookResult,
    HostKey, NewPage, NodeRefusal, NodeReply, NodeRequest, OutboxEntry, PageEnd, PageTimes, Record,
    Renew, SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, Owner, ResultState};
use archivist_fleet::ledger::{Fault, Ledger};
use archivist_fleet::members;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet_model::{Desk, Room};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio_postgres::Client;

const ROOM: Room = Room { hosts: 8, slots: 8, pages_per_host: 8, delay: Duration::ZERO };

struct Node {
    name: &'static str,
    machine: &'static str,
    ledger: Ledger,
    desk: Desk,
    session: Option<Session>,
}

impl Node {
    async fn new(name: &'static str, url: &str) -> Node {
        Node {
            name,
            machine: name,
            ledger: Ledger::new(open(url).await).with_eager_claims(),
            desk: Desk::default(),
            session: None,
        }
    }

    /// Milliseconds of the clock of the node.
    fn now() -> BootTime {
        BootTime(1_000_000)
    }

    fn deliver(&mut self, delivery: Delivery) {
        drop(self.desk.deliver(Node::now(), delivery, ROOM));
    }

    async fn hello(&mut self) -> Result<(), NodeRefusal> {
        let hello = Hello {
            name: self.name.to_owned(),
            machine: self.machine.to_owned(),
            boot: "1".to_owned(),
            uptime: Duration::from_secs(900),
            schema: SCHEMA,
            memory: self.desk.memory(),
            lease: None,
        };
        let welcome = match self.ledger.hello(&hello).await {
            Ok(welcome) => welcome,
            Err(Fault::Refused(refusal)) => return Err(refusal),
            Err(Fault::Problem(problem)) => panic!("{problem}"),
        };
        self.session = Some(welcome.session);
        self.deliver(Delivery::Welcomed {
            node: welcome.session.node,
            generation: welcome.generation,
            forgot: welcome.forgot,
        });
        self.renew(0).await;
        Ok(())
    }

    async fn send(&mut self, request: &NodeRequest) -> NodeReply {
        let reply = self.ledger.apply(self.session.unwrap(), request).await;
        reply.unwrap_or_else(|fault| panic!("{request:?}: {fault}"))
    }

    async fn renew(&mut self, refill: u32) {
        let leases = self.desk.holdings(Node::now(), ROOM).leases;
        let renew = Renew { leases, refill, ..Renew::default() };
        if let NodeReply::Renewed(renewed) = self.send(&NodeRequest::Renew(renew)).await {
            self.deliver(Delivery::Renewed { renewed, sent: Node::now(), refilled: refill > 0 });
        }
    }

    async fn flush(&mut self) -> Vec<OutboxEntry> {
        let mut sent = Vec::new();
        while let Some(entry) = self.desk.holdings(Node::now(), ROOM).entries.first() {
            let entry = entry.clone();
            let reply = self.send(&entry.request).await;
            let number = entry.number;
            self.deliver(Delivery::Answered { number, reply: Ok(reply) });
            sent.push(entry);
        }
        sent
    }

    async fn add(&mut self, crawl: i64, paths: std::ops::Range<u32>) {
        let page = |path| NewPage {
            url: format!("https://{}.c{crawl}.example/{path}", path % 4),
            host: HostKey(format!("{}.c{crawl}.example", path % 4)),
            depth: 0,
            given: true,
            title: None,
            bookmarked_at: None,
            tags: vec!["kept".to_owned()],
        };
        let spec = CrawlSpec { document: format!("{{\"crawl\":{crawl}}}"), ..CrawlSpec::default() };
        self.desk.outbox.push(NodeRequest::Submit(Submit {
            crawl: CrawlId(crawl),
            spec: Some(spec),
            pages: paths.map(page).collect(),
        }));
        self.flush().await;
    }

    /// Claims hosts and archives this number of pages.
    async fn archive(&mut self, most: usize) {
        if let Some(claim) = self.desk.holdings(Node::now(), ROOM).claim
            && let NodeReply::Claimed(claimed) = self.send(&NodeRequest::Claim(claim)).await
        {
            let sent = Node::now();
            self.deliver(Delivery::Claimed { claimed, sent });
        }
        let pages: Vec<_> = self.desk.pages.values().cloned().collect();
        for page in pages.into_iter().take(most) {
            let id = page.leased.id;
            let result = HookResult {
                plugin: "title".to_owned(),
                hook: "title".to_owned(),
                state: ResultState::Succeeded,
                output: Some(format!("{id} on {}", self.name)),
                error: None,
                size: 7,
                attempts: 1,
                took: None,
            };
            let record = Record {
                page: id,
                epoch: page.epoch,
                end: PageEnd::Sealed,
                reason: None,
                directory: Some(format!("20271125/{}/{id}", page.leased.page.host)),
                results: vec![result],
                children: Vec::new(),
                times: PageTimes::default(),
            };
            self.desk.end(record, Node::now());
        }
        self.flush().await;
    }

    /// Gives all hosts to the other nodes.
    async fn release(&mut self) {
        self.renew(ROOM.pages_per_host).await;
        while let Some(release) = self.desk.holdings(Node::now(), ROOM).releases.first() {
            let release = release.clone();
            let (host, epoch) = (release.host.clone(), release.epoch);
            if let NodeReply::Released(fate) = self.send(&NodeRequest::Release(release)).await {
                self.deliver(Delivery::Released { host, epoch, fate });
            }
        }
    }
}

/// What is listed of each page: address, state, node, directory and output.
async fn listed(client: &Client) -> BTreeMap<i64, String> {
    let rows = client
        .query(
            "SELECT p.id, format('c%s %s %s %s %s %s %s', p.crawl, p.url, p.status, n.name, p.directory, p.tags,
                 (SELECT output FROM archivist.result r WHERE r.page = p.id))
             FROM archivist.page p LEFT JOIN archivist.node n ON n.id = p.node",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn run(program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", program.display());
}

#[tokio::test]
async fn restored_database_gets_what_it_lacks_and_gives_no_id_again() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "restored").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let lease = "UPDATE archivist.fleet SET lease_ms = 1";
    let url = server.url("restored");
    let (mut first, mut second) = (Node::new("web1", &url).await, Node::new("web2", &url).await);
    for node in [&mut first, &mut second] {
        node.hello().await.unwrap();
    }
    first.send(&NodeRequest::ReserveCrawls { count: 9 }).await;
    first.add(1, 0..20).await;
    first.archive(6).await;

    let bin = programs().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let dump = directory.path().join("fleet.dump");
    let dump = dump.to_str().unwrap();
    let schema = "--schema=archivist";
    run(&bin.join("pg_dump"), &["--format=custom", schema, "--file", dump, "--dbname", &url]);

    // Later than the backup: pages of a known crawl, and a crawl with pages that nodes have and one that waits.
    first.archive(4).await;
    first.add(2, 100..112).await;
    second.archive(7).await;
    let before = listed(&link.client).await;
    let archived: BTreeMap<_, _> =
        before.iter().filter(|(_, row)| row.contains(" sealed ")).collect();
    assert_eq!((before.len(), archived.len()), (32, 17), "{before:#?}");
    let restore = ["--clean", "--if-exists", "--single-transaction", "--dbname", &url, dump];
    run(&bin.join("pg_restore"), &restore);
    assert_eq!(listed(&link.client).await.len(), 20);

    // The connections of before are open, and the dump has the numbers of their sessions: no page is handed out.
    for node in [&mut first, &mut second] {
        let claim =
            NodeRequest::Claim(Claim { hosts: 4, pages_per_host: 4, delay: Duration::ZERO });
        let answer = node.ledger.apply(node.session.unwrap(), &claim).await;
        assert!(
            matches!(answer, Err(Fault::Refused(NodeRefusal::Superseded { .. }))),
            "{}: {answer:?}",
            node.name
        );
    }

    // Undeclared, no node works with it, not even one without a memory.
    for node in [&mut second, &mut first] {
        node.ledger = Ledger::new(open(&url).await).with_eager_claims();
        assert_eq!(node.hello().await, Err(NodeRefusal::WentBack), "{}", node.name);
    }
    let mut third = Node::new("web3", &url).await;
    assert_eq!(third.hello().await, Err(NodeRefusal::WentBack));

    link.client.batch_execute(lease).await.unwrap();
    members::restored(&mut link).await.unwrap();
    for node in [&mut first, &mut second] {
        node.hello().await.unwrap();
        let sent = node.flush().await;
        let is_restore = |entry: &OutboxEntry| matches!(entry.request, NodeRequest::Restore { .. });
        assert!(sent.iter().any(is_restore), "{}", node.name);
    }
    let after = listed(&link.client).await;
    for (id, row) in archived {
        assert_eq!(after.get(id), Some(row), "s{id}");
    }
    assert_eq!(after.len(), 32, "{after:#?}");

    // The rest is archived, and what is there is not fetched again.
    for node in [&mut first, &mut second] {
        node.archive(64).await;
        node.release().await;
    }
    first.add(3, 200..203).await;
    second.archive(64).await;
    first.archive(64).await;
    let all = listed(&link.client).await;
    assert!(all.values().all(|row| row.contains(" sealed ")), "{all:#?}");
    assert_eq!(all.len(), 35);
    for (id, row) in &before {
        if row.contains(" sealed ") {
            assert_eq!(all.get(id), Some(row), "s{id}");
        }
    }
    let new: Vec<_> = all.keys().filter(|id| !before.contains_key(id)).collect();
    let highest = before.keys().max().unwrap();
    assert!(new.iter().all(|id| *id > highest), "{new:?} {highest}");
    let sums =
        "SELECT sum(pages)::bigint, sum(open)::bigint, sum(succeeded)::bigint FROM archivist.tally";
    let row = link.client.query_one(sums, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (35i64, 0i64, 35i64));
    drop((link, first, second, third));
    administer(server, "DROP DATABASE restored WITH (FORCE)").await;
}

/// The dump has the pages of the node, as handed to it.
#[tokio::test]
async fn node_notices_that_the_database_lacks_nothing_but_its_records() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "records").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let url = server.url("records");
    let mut node = Node::new("web1", &url).await;
    node.hello().await.unwrap();
    node.send(&NodeRequest::ReserveCrawls { count: 2 }).await;
    node.add(1, 0..9).await;
    node.archive(2).await;
    let pages = "CREATE TABLE kept AS SELECT * FROM archivist.page";
    link.client.batch_execute(pages).await.unwrap();
    node.archive(3).await;
    let reconnect = async |node: &mut Node| {
        node.ledger = Ledger::new(open(&url).await).with_eager_claims();
        node.hello().await
    };
    // A retry hands the page to the node again.
    let last = node.desk.memory().unwrap().recorded.unwrap().0;
    let retry = FleetCommand { target: Owner::Snapshot(last), verb: CommandVerb::Retry };
    node.send(&NodeRequest::Command(retry)).await;
    node.renew(ROOM.pages_per_host).await;
    assert!(node.desk.pages.contains_key(&last));
    reconnect(&mut node).await.unwrap();
    let before = "DELETE FROM archivist.page; INSERT INTO archivist.page SELECT * FROM kept";
    link.client.batch_execute(before).await.unwrap();
    assert_eq!(reconnect(&mut node).await, Err(NodeRefusal::WentBack));
    drop((link, node));
    administer(server, "DROP DATABASE records WITH (FORCE)").await;
}

#[tokio::test]
async fn node_puts_everything_into_an_empty_database() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "emptied").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let url = server.url("emptied");
    let mut node = Node::new("web1", &url).await;
    node.hello().await.unwrap();
    node.send(&NodeRequest::ReserveCrawls { count: 2 }).await;
    node.add(1, 0..9).await;
    node.archive(5).await;
    let before = listed(&link.client).await;
    let drop_all = "DROP SCHEMA archivist CASCADE";
    link.client.batch_execute(drop_all).await.unwrap();
    migrate(&mut link, MIGRATIONS).await.unwrap();
    node.ledger = Ledger::new(open(&url).await).with_eager_claims();
    assert_eq!(node.hello().await, Err(NodeRefusal::WentBack));
    members::restored(&mut link).await.unwrap();
    node.hello().await.unwrap();
    node.flush().await;
    let after = listed(&link.client).await;
    assert_eq!(after.len(), 9);
    for (id, row) in before.iter().filter(|(_, row)| row.contains(" sealed ")) {
        assert_eq!(after.get(id), Some(row), "s{id}");
    }
    let given = node.send(&NodeRequest::ReserveCrawls { count: 1 }).await;
    assert!(matches!(given, NodeReply::CrawlIds { first, .. } if first.0 > 1_000_000), "{given:?}");
    // Pages that no node has archived come from the list that was sent again.
    let mut new = after.keys().filter(|id| !before.contains_key(id));
    assert!(new.all(|id| *id > 1_000_000), "{after:#?}");
    drop((link, node));
    administer(server, "DROP DATABASE emptied WITH (FORCE)").await;
}

/// As archivist-fleet(8) says: a copy of a disk gets a machine id and a name of its own.
#[tokio::test]
async fn copy_of_a_node_with_an_identity_of_its_own_is_welcome() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "copied").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let url = server.url("copied");
    let mut node = Node::new("web1", &url).await;
    node.hello().await.unwrap();
    node.send(&NodeRequest::ReserveCrawls { count: 2 }).await;
    node.add(1, 0..9).await;
    node.archive(3).await;
    let mut copy = Node::new("web2", &url).await;
    copy.desk = node.desk.clone();
    copy.hello().await.unwrap();
    assert_ne!(copy.desk.node, node.desk.node);
    node.archive(3).await;
    drop((link, node, copy));
    administer(server, "DROP DATABASE copied WITH (FORCE)").await;
}
