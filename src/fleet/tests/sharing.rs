//! What nodes share: hosts between loaded and idle ones, the duration of leases, names, and what others
//! have archived.

use crate::server::{Server, shared};
use crate::{administer, database, open};
use archivist_core::fleet::{
    Claim, Command, CommandVerb, CrawlSpec, Fate, Grant, Hello, HookResult, HostKey, NewPage,
    NodeReply, NodeRequest, Pace, PageEnd, PageTimes, Record, Release, Renew, Renewed, SCHEMA,
    Session, Submit,
};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId};
use archivist_fleet::ledger::Ledger;
use archivist_fleet::members::{drain, fleet, until_drained};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet::view::View;
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot};
use std::time::Duration;

fn hello(name: &str) -> Hello {
    Hello {
        name: name.to_owned(),
        machine: format!("machine of {name}"),
        boot: "1".to_owned(),
        uptime: Duration::from_secs(900),
        schema: SCHEMA,
        memory: None,
        lease: None,
    }
}

fn page(host: &str, number: u32) -> NewPage {
    NewPage {
        url: format!("https://{host}/{number}"),
        host: HostKey(host.to_owned()),
        depth: 0,
        given: true,
        title: None,
        bookmarked_at: None,
        tags: Vec::new(),
    }
}

struct Bed {
    name: &'static str,
    nodes: Vec<(Ledger, Session)>,
}

impl Bed {
    async fn new(server: &Server, name: &'static str) -> Bed {
        let mut link = database(server, name).await;
        migrate(&mut link, MIGRATIONS).await.unwrap();
        let mut nodes = Vec::new();
        for node in ["web1", "web2"] {
            let mut ledger = Ledger::new(open(&server.url(name)).await);
            let session = ledger.hello(&hello(node)).await.unwrap().session;
            nodes.push((ledger, session));
        }
        Bed { name, nodes }
    }

    async fn end(self, server: &Server) {
        let name = self.name;
        drop(self);
        administer(server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }

    async fn apply(&mut self, node: usize, request: &NodeRequest) -> NodeReply {
        let (ledger, session) = &mut self.nodes[node];
        ledger.apply(*session, request).await.unwrap()
    }

    async fn submit(&mut self, crawl: i64, only_new: bool, pages: Vec<NewPage>) -> u64 {
        let spec = CrawlSpec {
            max_depth: 0,
            urls_max: None,
            only_new,
            document: r#"{"url":"https://a.example/"}"#.to_owned(),
        };
        let submit = NodeRequest::Submit(Submit { crawl: CrawlId(crawl), spec: Some(spec), pages });
        match self.apply(0, &submit).await {
            NodeReply::Submitted { inserted } => inserted,
            other => panic!("{other:?}"),
        }
    }

    async fn claim(&mut self, node: usize, hosts: u32) -> Vec<Grant> {
        let claim =
            NodeRequest::Claim(Claim { hosts, pages_per_host: 4, delay: Duration::from_secs(5) });
        match self.apply(node, &claim).await {
            NodeReply::Claimed(claimed) => claimed.hosts,
            other => panic!("{other:?}"),
        }
    }

    async fn renew(&mut self, node: usize, wanting: u32, drains: bool) -> Renewed {
        let renew = NodeRequest::Renew(Renew { wanting, drains, ..Renew::default() });
        match self.apply(node, &renew).await {
            NodeReply::Renewed(renewed) => renewed,
            other => panic!("{other:?}"),
        }
    }

    async fn record(&mut self, node: usize, grant: &Grant, directory: &str) {
        let record = Record {
            page: grant.pages[0].id,
            epoch: grant.epoch,
            end: PageEnd::Sealed,
            reason: None,
            directory: Some(directory.to_owned()),
            results: vec![HookResult {
                plugin: "wget".to_owned(),
                hook: "wget".to_owned(),
                state: ResultState::Succeeded,
                output: None,
                error: None,
                size: 7,
                attempts: 1,
                took: None,
            }],
            children: Vec::new(),
            times: PageTimes::default(),
        };
        let recorded = self.apply(node, &NodeRequest::Record(record)).await;
        assert_eq!(recorded, NodeReply::Recorded(Fate::Done));
    }

    async fn release(&mut self, node: usize, grant: &Grant) {
        let release =
            Release { host: grant.host.clone(), epoch: grant.epoch, pace: Some(Pace::default()) };
        let released = self.apply(node, &NodeRequest::Release(release)).await;
        assert_eq!(released, NodeReply::Released(Fate::Done));
    }

    async fn pages(&self, server: &Server) -> Vec<Snapshot> {
        let mut view = View::new(open(&server.url(self.name)).await, "web1");
        let filter = Filter { limit: 9, ..Filter::default() };
        serde_json::from_str(&view.list("snapshots", &filter).await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn loaded_node_hands_hosts_to_an_idle_one_which_gets_them() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "handover").await;
    let hosts = ["a", "b", "c", "d"].map(|host| page(host, 1));
    bed.submit(1, false, hosts.to_vec()).await;
    let grants = bed.claim(0, 9).await;
    assert_eq!((grants.len(), bed.claim(1, 4).await.len()), (4, 0));
    assert_eq!(bed.renew(0, 0, false).await.orders.hand_over, None);
    assert_eq!(bed.renew(1, 4, false).await.orders.hand_over, None);
    assert_eq!(bed.renew(0, 0, false).await.orders.hand_over, Some(2));
    for grant in &grants[..2] {
        bed.release(0, grant).await;
        assert!(bed.nodes[0].0.take_freed(), "its page waits");
    }
    assert_eq!(bed.claim(1, 4).await.len(), 2);
    assert_eq!(bed.renew(0, 0, false).await.orders.hand_over, None);
    bed.end(server).await;
}

#[tokio::test]
async fn drain_is_answered_when_the_node_starts_no_page() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "drained").await;
    let link = open(&server.url("drained")).await;
    assert!(drain(&link, "web2", true).await.unwrap());
    let early = tokio::time::timeout(Duration::from_millis(1200), until_drained(&link, "web2"));
    assert!(early.await.is_err(), "the node does not know yet");
    assert!(bed.renew(1, 0, false).await.orders.draining);
    bed.renew(1, 0, true).await;
    assert!(until_drained(&link, "web2").await.unwrap());
    // The next drain has a confirmation of its own.
    drain(&link, "web2", false).await.unwrap();
    drain(&link, "web2", true).await.unwrap();
    let quiet = "UPDATE archivist.node SET seen = now() - interval '14 s' WHERE name = 'web2'";
    link.client.batch_execute(quiet).await.unwrap();
    assert!(!until_drained(&link, "web2").await.unwrap());
    let nodes = fleet(&link).await.unwrap().nodes;
    let (connected, lost) = (nodes[1].is_connected, nodes[1].is_lost);
    assert_eq!((connected, lost), (false, false), "{nodes:?}");
    let later = "UPDATE archivist.node SET seen = now() - interval '301 s' WHERE name = 'web2'";
    link.client.batch_execute(later).await.unwrap();
    assert!(fleet(&link).await.unwrap().nodes[1].is_lost);
    drop(link);
    bed.end(server).await;
}

#[tokio::test]
async fn machine_that_left_keeps_its_pages_by_name() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "rejoined").await;
    bed.submit(1, false, vec![page("a", 1)]).await;
    let grant = bed.claim(1, 1).await.remove(0);
    bed.record(1, &grant, "/archive/s1").await;
    bed.release(1, &grant).await;
    let node = bed.nodes[1].1.node;
    assert_eq!(bed.apply(1, &NodeRequest::Leave { node }).await, NodeReply::Done);
    let named = bed.pages(server).await.remove(0).node;
    assert_eq!(named.as_deref(), Some("web2 (left)"));
    let again = bed.nodes[1].0.hello(&hello("web2")).await.unwrap();
    assert_eq!(again.session.node, node);
    let named = bed.pages(server).await.remove(0).node;
    assert_eq!(named.as_deref(), Some("web2"));
    bed.end(server).await;
}

#[tokio::test]
async fn newest_copy_of_a_page_is_named_with_older_ones() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "copies").await;
    bed.submit(1, false, vec![page("a", 1)]).await;
    let page = Owner::Snapshot(SnapshotId(1));
    let verb = CommandVerb::Retry;
    let retry = NodeRequest::Command(Command { verb, target: page });
    for (node, older) in [(0, vec![]), (1, vec!["web1"]), (0, vec!["web2"])] {
        let grant = bed.claim(node, 1).await.remove(0);
        let directory = format!("/archive/of{node}");
        bed.record(node, &grant, &directory).await;
        bed.release(node, &grant).await;
        let page = bed.pages(server).await.remove(0);
        let name = format!("web{}", node + 1);
        assert_eq!(page.node, Some(name));
        assert_eq!(
            (page.directory, page.older_copies),
            (Some(directory), older.iter().map(|name| (*name).to_owned()).collect())
        );
        bed.apply(0, &retry).await;
    }
    let page = bed.pages(server).await.remove(0);
    assert_eq!((page.node, page.directory), (None, None));
    assert_eq!(page.older_copies, ["web1", "web2"]);
    bed.end(server).await;
}

#[tokio::test]
async fn only_new_leaves_out_what_any_node_has() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "news").await;
    assert_eq!(bed.submit(1, false, vec![page("a", 1), page("b", 1)]).await, 2);
    let grant = bed.claim(1, 1).await.remove(0);
    bed.record(1, &grant, "/archive/s1").await;
    // One is archived by the other node, one waits.
    assert_eq!(bed.submit(2, true, vec![page("a", 1), page("b", 1)]).await, 0);
    assert_eq!(bed.submit(3, true, vec![page("a", 1), page("c", 1)]).await, 1);
    assert_eq!(bed.submit(4, false, vec![page("a", 1)]).await, 1);
    let mut view = View::new(open(&server.url("news")).await, "web1");
    let nothing: Crawl = view.crawl(CrawlId(2)).await.unwrap().unwrap();
    let reason = nothing.reason.unwrap_or_default();
    assert!(nothing.status.is_final() && reason.contains("nothing new"), "{reason}");
    drop(view);
    bed.end(server).await;
}

#[tokio::test]
async fn crawls_are_listed_by_time() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "times").await;
    // Nodes reserve ids in blocks.
    for crawl in [201, 7, 202, 8] {
        bed.submit(crawl, false, vec![page("a", 1)]).await;
    }
    let mut view = View::new(open(&server.url("times")).await, "web1");
    let mut listed = Vec::new();
    let mut before = None;
    for _ in 0..4 {
        let filter = Filter { limit: 1, before, ..Filter::default() };
        let page = view.list("crawls", &filter).await.unwrap();
        let page: Vec<Crawl> = serde_json::from_str(&page).unwrap();
        before = Some(page[0].id.0);
        listed.push(page[0].id.0);
    }
    assert_eq!(listed, [8, 202, 7, 201]);
    drop(view);
    bed.end(server).await;
}
