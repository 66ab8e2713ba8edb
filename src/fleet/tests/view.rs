//! What users see of a fleet.

use crate::server::{Server, shared};
use crate::{database, open};
use archivist_core::fleet::{
    Claim, Command, CommandVerb, CrawlSpec, Grant, Hello, HookResult, HostKey, NewPage, NodeReply,
    NodeRequest, PageEnd, PageTimes, Record, SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_fleet::ledger::Ledger;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet::view::{View, ViewFault};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::{Details, Filter};
use serde::de::DeserializeOwned;
use std::time::Duration;

pub(crate) const CRAWL: CrawlId = CrawlId(1);
const DELAY: Duration = Duration::from_secs(5);

/// Two nodes, and the view of the first.
pub(crate) struct Bed {
    nodes: Vec<(Ledger, Session)>,
    view: View,
}

pub(crate) async fn node(server: &Server, database: &str, name: &str) -> (Ledger, Session) {
    let mut ledger = Ledger::new(open(&server.url(database)).await);
    let hello = Hello {
        name: name.to_owned(),
        machine: name.to_owned(),
        boot: "1".to_owned(),
        uptime: Duration::from_secs(900),
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    let session = ledger.hello(&hello).await.unwrap().session;
    (ledger, session)
}

pub(crate) fn page(host: &str, number: u32) -> NewPage {
    NewPage {
        url: format!("https://me:secret@{host}/{number}"),
        host: HostKey(host.to_owned()),
        depth: 0,
        given: true,
        title: None,
        bookmarked_at: None,
        tags: vec!["news".to_owned()],
    }
}

fn result(plugin: &str, state: ResultState) -> HookResult {
    HookResult {
        plugin: plugin.to_owned(),
        hook: format!("on_Snapshot__{plugin}"),
        state,
        output: None,
        error: (state == ResultState::Failed).then(|| "connection refused".to_owned()),
        size: 100,
        attempts: 1,
        took: Some(Duration::from_millis(1500)),
    }
}

impl Bed {
    pub(crate) async fn new(server: &Server, name: &str) -> Bed {
        let mut link = database(server, name).await;
        migrate(&mut link, MIGRATIONS).await.unwrap();
        let nodes = vec![node(server, name, "web1").await, node(server, name, "web2").await];
        let view = View::new(open(&server.url(name)).await, "web1");
        Bed { nodes, view }
    }

    pub(crate) async fn apply(&mut self, node: usize, request: NodeRequest) -> NodeReply {
        let (ledger, session) = &mut self.nodes[node];
        ledger.apply(*session, &request).await.unwrap()
    }

    pub(crate) async fn submit(&mut self, pages: Vec<NewPage>) {
        let document = serde_json::json!({
            "url": "https://me:secret@a.example/0", "plugins": [], "user": 0, "tags": ["news"],
            "config": {"API_KEY": "secret"}
        });
        let spec = CrawlSpec {
            max_depth: 1,
            urls_max: None,
            only_new: false,
            document: document.to_string(),
        };
        let submit = Submit { crawl: CRAWL, spec: Some(spec), pages };
        self.apply(0, NodeRequest::Submit(submit)).await;
    }

    pub(crate) async fn claim(&mut self, node: usize, hosts: u32, pages: u32) -> Vec<Grant> {
        let claim = Claim { hosts, pages_per_host: pages, delay: DELAY };
        match self.apply(node, NodeRequest::Claim(claim)).await {
            NodeReply::Claimed(claimed) => claimed.hosts,
            other => panic!("{other:?}"),
        }
    }

    async fn record(&mut self, node: usize, grant: &Grant, page: SnapshotId, plugins: &[&str]) {
        let mut results: Vec<_> =
            plugins.iter().map(|plugin| result(plugin, ResultState::Succeeded)).collect();
        results.push(result("wget", ResultState::Failed));
        let record = Record {
            page,
            epoch: grant.epoch,
            end: PageEnd::Sealed,
            reason: None,
            directory: None,
            results,
            children: Vec::new(),
            times: PageTimes::default(),
        };
        self.apply(node, NodeRequest::Record(record)).await;
    }

    pub(crate) async fn command(&mut self, verb: CommandVerb, target: Owner) {
        self.apply(0, NodeRequest::Command(Command { verb, target })).await;
    }

    pub(crate) async fn list<T: DeserializeOwned>(&mut self, what: &str, filter: Filter) -> Vec<T> {
        serde_json::from_str(&self.view.list(what, &filter).await.unwrap()).unwrap()
    }

    async fn why(&mut self, id: Owner) -> (Lifecycle, String) {
        let why: report::Why = serde_json::from_str(&self.view.why(id).await.unwrap()).unwrap();
        let texts: Vec<_> = why.reasons.into_iter().map(|reason| reason.text).collect();
        (why.status, texts.join("\n"))
    }

    async fn crawl(&mut self) -> report::Crawl {
        self.view.crawl(CRAWL).await.unwrap().unwrap()
    }
}

fn counted(counts: &report::Counts) -> Vec<(&str, u64)> {
    counts.iter().map(|(name, n)| (name.as_str(), *n)).collect()
}

#[tokio::test]
async fn documents_of_a_fleet_name_nodes_and_hide_secrets() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "view").await;
    let pages = (0..3).map(|n| page("a.example", n)).chain([page("b.example", 0)]);
    bed.submit(pages.collect()).await;
    let queued = bed.crawl().await;
    assert_eq!(queued.status, Lifecycle::Queued);
    assert_eq!(counted(&queued.snapshots), [("queued", 4)]);

    let grant = bed.claim(1, 1, 2).await.remove(0);
    bed.record(1, &grant, grant.pages[0].id, &["title", "dom"]).await;
    let crawl = bed.crawl().await;
    assert_eq!(crawl.status, Lifecycle::Started);
    assert_eq!((crawl.nodes.as_slice(), crawl.max_depth), (&["web2".to_owned()][..], 1));
    assert_eq!(counted(&crawl.snapshots), [("queued", 2), ("sealed", 1), ("started", 1)]);
    assert_eq!(counted(&crawl.results), [("failed", 1), ("succeeded", 2)]);

    let all: Vec<report::Snapshot> = bed.list("snapshots", Filter::default()).await;
    let states: Vec<_> =
        all.iter().map(|page| (page.status.as_str(), page.node.as_deref())).collect();
    let (web2, none) = (Some("web2"), None);
    let want = [("queued", none), ("queued", none), ("started", web2), ("sealed", web2)];
    assert_eq!(states, want);
    for status in ["queued", "started", "sealed", "paused"] {
        for owner in [None, Some(Owner::Crawl(CRAWL))] {
            let filter = Filter { status: Some(status.to_owned()), owner, ..Filter::default() };
            let some: Vec<report::Snapshot> = bed.list("snapshots", filter).await;
            let want = all.iter().filter(|page| page.status.as_str() == status);
            assert!(some.iter().map(|page| page.id).eq(want.map(|page| page.id)), "{status}");
        }
    }
    let shown = bed.view.show(Owner::Crawl(CRAWL)).await.unwrap();
    assert!(!shown.contains("secret"), "{shown}");
    let shown = bed.view.show(Owner::Snapshot(grant.pages[0].id)).await.unwrap();
    let Details::Snapshot { snapshot, results, .. } = serde_json::from_str(&shown).unwrap() else {
        panic!("{shown}");
    };
    assert_eq!((snapshot.tags.len(), results.len(), snapshot.uses.failed), (1, 3, 1));
    assert!(!shown.contains("secret"), "{shown}");

    let hosts: Vec<report::Host> = bed.list("hosts", Filter::default()).await;
    let hosts: Vec<_> =
        hosts.iter().map(|host| (&*host.name, host.node.as_deref(), host.open)).collect();
    assert_eq!(hosts, [("a.example", web2, Some(2)), ("b.example", none, Some(1))]);
    let fleet: report::Fleet = serde_json::from_str(&bed.view.status().await.unwrap()).unwrap();
    let nodes: Vec<_> = fleet
        .nodes
        .iter()
        .map(|node| (&*node.name, node.state(), node.hosts, node.pages))
        .collect();
    assert_eq!(nodes, [("web1", "connected", 0, 0), ("web2", "connected", 1, 1)]);
    assert_eq!(counted(&fleet.crawls), [("started", 1)]);
    assert_eq!(fleet.due_hosts, 1);
    let missing = bed.view.show(Owner::Snapshot(SnapshotId(99))).await.unwrap_err();
    assert_eq!(missing.to_string(), "there is no s99");
    assert!(matches!(bed.view.why(Owner::Crawl(CrawlId(9))).await, Err(ViewFault::NoSuch(_))));
}

#[tokio::test]
async fn lists_in_pieces_have_each_row_once() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "pieces").await;
    bed.submit((0..5).map(|n| page(&format!("h{n}.example"), n)).collect()).await;
    for grant in bed.claim(0, 5, 1).await {
        bed.record(0, &grant, grant.pages[0].id, &["title", "dom", "pdf"]).await;
    }
    for (owner, status, all) in [
        (None, None, 20),
        (Some(Owner::Crawl(CRAWL)), None, 20),
        (Some(Owner::Snapshot(SnapshotId(2))), None, 4),
        (Some(Owner::Crawl(CRAWL)), Some("failed"), 5),
        (None, Some("succeeded"), 15),
    ] {
        let mut filter =
            Filter { owner, status: status.map(str::to_owned), limit: 3, ..Filter::default() };
        let mut seen = Vec::new();
        loop {
            let some: Vec<report::HookResult> = bed.list("results", filter.clone()).await;
            filter.before = some.last().and_then(|result| result.id);
            let is_last = some.len() < 3;
            seen.extend(some);
            if is_last {
                break;
            }
        }
        assert_eq!(seen.len(), all, "{owner:?} {status:?}");
        assert!(seen.is_sorted_by(|one, two| one.id > two.id), "{owner:?} {status:?}");
    }
    let mut filter =
        Filter { limit: 2, after_host: Some("h0.example".to_owned()), ..Filter::default() };
    let some: Vec<report::Host> = bed.list("hosts", filter.clone()).await;
    assert_eq!(some[1].name, "h2.example");
    filter.before = Some(3);
    let pages: Vec<report::Snapshot> = bed.list("snapshots", filter).await;
    assert_eq!(pages.iter().map(|page| page.id.0).collect::<Vec<_>>(), [2, 1]);
}

#[tokio::test]
async fn reasons_follow_leases_pauses_drains_and_cancels() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "reasons").await;
    bed.submit((0..3).map(|n| page("a.example", n)).collect()).await;
    let (first, last) = (Owner::Snapshot(SnapshotId(1)), Owner::Snapshot(SnapshotId(3)));
    let crawl = Owner::Crawl(CRAWL);
    let (status, text) = bed.why(last).await;
    assert_eq!(status, Lifecycle::Queued);
    assert!(text.contains("2 pages of host a.example are ahead"), "{text}");
    let grant = bed.claim(1, 1, 1).await.remove(0);
    let (status, text) = bed.why(first).await;
    assert_eq!(status, Lifecycle::Started);
    assert!(
        text.starts_with("leased to web2 until 20") && text.ends_with("host delay 5.0s"),
        "{text}"
    );
    let (_, text) = bed.why(last).await;
    assert!(text.contains("host a.example, which is leased to web2 until 20"), "{text}");
    let (_, text) = bed.why(crawl).await;
    assert!(text.contains("nodes have 1 of its pages: web2\n2 pages wait for a node"), "{text}");

    bed.command(CommandVerb::Pause, crawl).await;
    let (status, text) = bed.why(last).await;
    assert_eq!(
        (status, &*text),
        (Lifecycle::Paused, "c1 is paused in the fleet; to continue: archivist resume c1")
    );
    assert_eq!(bed.crawl().await.status, Lifecycle::Paused);
    bed.command(CommandVerb::Resume, crawl).await;

    bed.record(1, &grant, SnapshotId(1), &["title"]).await;
    let (status, text) = bed.why(first).await;
    assert_eq!(status, Lifecycle::Sealed);
    assert_eq!(text, "done on web2\nwget/on_Snapshot__wget of s1 failed: connection refused");
    bed.command(CommandVerb::Retry, first).await;
    assert_eq!(counted(&bed.crawl().await.results), []);

    for node in [0, 1] {
        let session = bed.nodes[node].1;
        bed.apply(node, NodeRequest::Drain { node: session.node, draining: true }).await;
    }
    let pace = None;
    let release = archivist_core::fleet::Release { host: grant.host, epoch: grant.epoch, pace };
    bed.apply(1, NodeRequest::Release(release)).await;
    let (_, text) = bed.why(last).await;
    assert!(text.starts_with("all 2 connected nodes drain"), "{text}");
    for node in [0, 1] {
        bed.apply(node, NodeRequest::Goodbye).await;
    }
    assert!(bed.why(last).await.1.starts_with("no node is connected"));

    bed.nodes[0] = node(server, "reasons", "web1").await;
    bed.command(CommandVerb::Cancel, crawl).await;
    assert_eq!(bed.why(last).await, (Lifecycle::Cancelled, "cancelled".to_owned()));
    let counts = bed.crawl().await;
    assert_eq!(counts.status, Lifecycle::Cancelled);
    assert_eq!(counted(&counts.snapshots), [("cancelled", 3)]);
}

/// Rows of pages and results that were read so far, and sequential scans of these tables.
async fn read(view: &View) -> (i64, i64) {
    view.link().client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let query = "SELECT sum(seq_scan)::bigint, sum(idx_tup_fetch)::bigint FROM pg_stat_user_tables
        WHERE relid IN ('archivist.page'::regclass, 'archivist.result'::regclass)";
    let row = view.link().client.query_one(query, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Of a long queue, an answer reads what it shows, and little more.
#[tokio::test]
async fn answers_read_few_rows_of_a_long_queue() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "long").await;
    bed.submit(vec![page("a.example", 0)]).await;
    let fill = "
        INSERT INTO archivist.host (key, ready_at, due_at) SELECT 'h' || g, now(), now() FROM generate_series(0, 99) g;
        INSERT INTO archivist.page (crawl, depth, host, url, url_key, status, node)
            SELECT 1 + g % 2, 0, 'h' || g % 100, 'https://h' || g % 100 || '/' || g, int8send(g),
                CASE WHEN g < 20000 THEN 'sealed' ELSE 'open' END, 1
            FROM generate_series(1, 60000) g;
        INSERT INTO archivist.result (page, plugin, hook, state, size, attempts)
            SELECT p.id, 'p' || g, 'p' || g, CASE WHEN p.id % 5000 = 0 AND g = 1 THEN 'failed' ELSE 'succeeded' END, 1, 1
            FROM archivist.page p, generate_series(1, 3) g WHERE p.status = 'sealed';
        INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES (2, 0, '{}', now());
        INSERT INTO archivist.tally SELECT crawl, count(*), count(*) FILTER (WHERE status = 'open'), 0
            FROM archivist.page WHERE id > 1 GROUP BY crawl;
        ANALYZE";
    bed.view.link().client.batch_execute(fill).await.unwrap();
    let filter = |status: Option<&str>, owner| Filter {
        status: status.map(str::to_owned),
        owner,
        limit: 50,
        ..Filter::default()
    };
    let crawl = Some(Owner::Crawl(CRAWL));
    let mut before = read(&bed.view).await;
    for (what, status, owner) in [
        ("crawls", None, None),
        ("snapshots", None, None),
        ("snapshots", Some("queued"), None),
        ("snapshots", None, crawl),
        ("snapshots", Some("sealed"), crawl),
        ("results", None, None),
        ("results", None, crawl),
        ("results", Some("failed"), None),
        ("results", Some("failed"), crawl),
        ("timeline", None, crawl),
        ("hosts", None, None),
    ] {
        bed.view.list(what, &filter(status, owner)).await.unwrap();
        let after = read(&bed.view).await;
        assert_eq!(after.0, before.0, "{what} {status:?} {owner:?} scanned a table");
        let rows = after.1 - before.1;
        // The open pages of each host are counted.
        assert!(
            rows <= 45_000 && (rows <= 2_000 || what == "hosts"),
            "{what} {status:?} {owner:?}: {rows} rows"
        );
        before = after;
    }
    for id in [Owner::Snapshot(SnapshotId(777)), Owner::Snapshot(SnapshotId(59_999))] {
        bed.view.show(id).await.unwrap();
        bed.view.why(id).await.unwrap();
        let after = read(&bed.view).await;
        assert_eq!(after.0, before.0, "{id}");
        assert!(after.1 - before.1 <= 2_000, "{id}: {} rows", after.1 - before.1);
        before = after;
    }
    bed.view.show(Owner::Crawl(CRAWL)).await.unwrap();
    bed.view.why(Owner::Crawl(CRAWL)).await.unwrap();
    bed.view.status().await.unwrap();
    let after = read(&bed.view).await;
    assert_eq!(after.0, before.0);
    assert!(after.1 - before.1 <= 30_000, "{} rows", after.1 - before.1);
    let piece = filter(None, crawl);
    let pages: Vec<report::Snapshot> = bed.list("snapshots", piece).await;
    assert_eq!(pages.len(), 50);
}
