//! Lengths of texts: what the schema permits, what nodes send, and lists of the longest rows.

use crate::server::{Server, shared};
use crate::{database, open, view};
use archivist_core::fleet::{
    Claim, Command, CommandVerb, CrawlSpec, HookResult, HostKey, NewPage, NodeRefusal, NodeReply,
    NodeRequest, PageEnd, PageTimes, Record, Session, Submit, bounds,
};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId};
use archivist_fleet::connect::Link;
use archivist_fleet::ledger::{Fault, Ledger};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet::view::View;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::{ANSWER_BYTES, Filter};
use serde::de::DeserializeOwned;
use std::time::Duration;

const CRAWL: CrawlId = CrawlId(1);
/// Text that JSON and PostgreSQL store as it is.
const LONG: usize = 1 << 20;

fn submit(crawl: CrawlId, document: String, pages: Vec<NewPage>) -> NodeRequest {
    let spec = CrawlSpec { document, ..CrawlSpec::default() };
    NodeRequest::Submit(Submit { crawl, spec: Some(spec), pages })
}

fn page(title: Option<String>, bookmarked_at: Option<String>, tags: Vec<String>) -> NewPage {
    NewPage {
        url: "https://a.example/".to_owned(),
        host: HostKey("a.example".to_owned()),
        depth: 0,
        given: true,
        title,
        bookmarked_at,
        tags,
    }
}

struct Bed {
    ledger: Ledger,
    session: Session,
    view: View,
    link: Link,
}

impl Bed {
    async fn new(server: &Server, name: &str) -> Bed {
        let mut link = database(server, name).await;
        migrate(&mut link, MIGRATIONS).await.unwrap();
        let (ledger, session) = view::node(server, name, "web1").await;
        let view = View::new(open(&server.url(name)).await, "web1");
        Bed { ledger, session, view, link }
    }

    async fn apply(&mut self, request: NodeRequest) -> Result<NodeReply, Fault> {
        self.ledger.apply(self.session, &request).await
    }

    async fn run(&self, sql: &str) {
        let done = self.link.client.batch_execute(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Returns the rows of a list, answer by answer as the command line reads it.
    async fn list<T: DeserializeOwned>(&mut self, what: &str, id: impl Fn(&T) -> i64) -> Vec<T> {
        let (mut all, mut filter) = (Vec::new(), Filter::default());
        loop {
            let text = self.view.list(what, &filter).await.unwrap();
            assert!(text.len() < ANSWER_BYTES + (1 << 20), "{}", text.len());
            let rows: Vec<T> = serde_json::from_str(&text).unwrap();
            let is_last = text.len() < ANSWER_BYTES;
            filter.before = rows.last().map(&id);
            all.extend(rows);
            if is_last {
                return all;
            }
        }
    }
}

/// A value of a type that is so long.
fn value(kind: &str, length: usize) -> String {
    match kind {
        "bytea" => format!("convert_to(repeat('x', {length}), 'UTF8')"),
        _ => format!("repeat('x', {length})"),
    }
}

/// Sets a column of all rows, and rolls back. Returns whether the schema permits the value.
async fn permits(link: &mut Link, table: &str, column: &str, value: &str) -> bool {
    let work = link.client.transaction().await.unwrap();
    let sql = format!("UPDATE archivist.{table} SET {column} = {value}");
    match work.execute(&sql, &[]).await {
        Ok(rows) => {
            assert_eq!(rows, 1, "{sql}");
            true
        }
        Err(error) => {
            let code = error.code().map(|code| code.code().to_owned());
            assert_eq!(code.as_deref(), Some("23514"), "{sql}: {error}");
            false
        }
    }
}

#[tokio::test]
async fn schema_has_the_bounds_of_the_nodes() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "schema_bounds").await;
    let page = page(None, None, Vec::new());
    let request = submit(CRAWL, "{}".to_owned(), vec![page]);
    bed.apply(request).await.unwrap();
    bed.run(
        "INSERT INTO archivist.result (page, plugin, hook, state, size, attempts) VALUES (1, 'p', 'h', 'failed', 1, 1)",
    )
    .await;
    let sql = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
        WHERE table_schema = 'archivist' AND data_type NOT IN
            ('bigint', 'integer', 'boolean', 'timestamp with time zone')";
    let mut seen = 0;
    for row in bed.link.client.query(sql, &[]).await.unwrap() {
        let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let bound = bounds::COLUMNS.iter().find(|bound| (bound.0, bound.1) == (&table, &column));
        let at = |length| value(&kind, length);
        let link = &mut bed.link;
        match bound {
            Some((.., most)) => {
                seen += 1;
                assert!(permits(link, &table, &column, &at(*most)).await, "{column}");
                let longer = at(most + 1);
                assert!(!permits(link, &table, &column, &longer).await, "{column}");
            }
            None if kind == "ARRAY" => {
                let of = |count| format!("array_fill(1::bigint, '{{{count}}}')");
                assert!(permits(link, &table, &column, &of(bounds::COPIES_MAX)).await);
                assert!(!permits(link, &table, &column, &of(bounds::COPIES_MAX + 1)).await);
                assert!(!permits(link, &table, &column, "'{{1, 2}, {3, 4}}'").await);
            }
            // The column has a vocabulary.
            None => assert!(!permits(link, &table, &column, &at(9)).await, "{column}"),
        }
    }
    assert_eq!(seen, bounds::COLUMNS.len());
}

#[tokio::test]
async fn nodes_send_texts_that_the_schema_permits() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "sent_bounds").await;
    let long = || "\0é".repeat(LONG);
    let tags = (0..1000).map(|n| format!("{n:x>200}")).collect();
    let page = page(Some(long()), Some(long()), tags);
    let request = submit(CRAWL, "{}".to_owned(), vec![page]);
    bed.apply(request).await.unwrap();
    let claim = Claim { hosts: 1, pages_per_host: 1, delay: Duration::ZERO };
    let Ok(NodeReply::Claimed(claimed)) = bed.apply(NodeRequest::Claim(claim)).await else {
        panic!("no answer to the claim");
    };
    let result = HookResult {
        plugin: "wget".to_owned(),
        hook: "on_Snapshot__wget".to_owned(),
        state: ResultState::Failed,
        output: Some(long()),
        error: Some(long()),
        size: 1,
        attempts: 1,
        took: None,
    };
    let record = Record {
        page: SnapshotId(1),
        epoch: claimed.hosts[0].epoch,
        end: PageEnd::Sealed,
        reason: Some(long()),
        directory: Some(long()),
        results: vec![result],
        children: Vec::new(),
        times: PageTimes::default(),
    };
    bed.apply(NodeRequest::Record(record)).await.unwrap();
    let row: report::Snapshot = bed.list("snapshots", |_| 0).await.remove(0);
    let cut = |text: Option<String>| {
        let text = text.unwrap();
        assert!(text.starts_with("\u{fffd}é") && text.ends_with('…'));
        assert!(text.len() <= bounds::CUT_MAX && text.len() > bounds::CUT_MAX - 9);
    };
    cut(row.title);
    cut(row.reason);
    assert_eq!((row.bookmarked_at, row.directory), (None, None));
    assert!((150..1000).contains(&row.tags.len()), "{}", row.tags.len());
    let result: report::HookResult = bed.list("results", |_| 0).await.remove(0);
    cut(result.output);
    cut(result.error);
}

#[tokio::test]
async fn a_request_that_the_schema_does_not_permit_is_refused_alone() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "refused_bounds").await;
    let long = "x".repeat(bounds::DOCUMENT_MAX + 1);
    let refused = bed.apply(submit(CRAWL, long, Vec::new())).await;
    let constraint = "crawl_lengths".to_owned();
    let Err(Fault::Refused(refusal)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refusal, NodeRefusal::Unfit { constraint });
    let next = submit(CRAWL, "{}".to_owned(), Vec::new());
    bed.apply(next).await.unwrap();
}

#[tokio::test]
async fn a_page_that_is_queued_again_keeps_the_newest_copies() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "copies_bound").await;
    let page = page(None, None, Vec::new());
    let request = submit(CRAWL, "{}".to_owned(), vec![page]);
    bed.apply(request).await.unwrap();
    bed.run(
        "UPDATE archivist.page SET status = 'sealed', node = 1, directory = '/a',
            copies = (SELECT array_agg(n) FROM generate_series(101, 200) n)",
    )
    .await;
    let retry = Command { verb: CommandVerb::Retry, target: Owner::Snapshot(SnapshotId(1)) };
    bed.apply(NodeRequest::Command(retry)).await.unwrap();
    let row = bed.link.client.query_one("SELECT copies FROM archivist.page", &[]);
    let copies: Vec<i64> = row.await.unwrap().get(0);
    let newest: Vec<i64> = (102..=200).chain([1]).collect();
    assert_eq!(copies, newest);
}

#[tokio::test]
async fn lists_of_the_longest_rows_come_in_answers_that_the_bus_carries() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "long_lists").await;
    let (cut, path, tags, url, document) = (
        bounds::CUT_MAX,
        bounds::PATH_MAX,
        bounds::TAGS_BYTES_MAX - 4,
        bounds::URL_MAX - 30,
        bounds::DOCUMENT_MAX - 100,
    );
    bed.run(&format!(
        "INSERT INTO archivist.crawl (id, max_depth, document, created_at)
            SELECT n, 0, json_build_object('url', 'https://a.example/', 'config',
                json_build_object('A', repeat('x', {document}))), now() FROM generate_series(1, 20) n;
         INSERT INTO archivist.host (key, ready_at) VALUES ('a.example', now());
         INSERT INTO archivist.page (crawl, depth, host, url, url_key, title, tags, reason, directory, status, node)
            SELECT 1, 0, 'a.example', 'https://a.example/' || n || repeat('x', {url}), decode(md5(n::text), 'hex'),
                repeat('x', {cut}), '[\"' || repeat('x', {tags}) || '\"]', repeat('x', {cut}), repeat('x', {path}),
                'sealed', 1
            FROM generate_series(1, 300) n;
         INSERT INTO archivist.result (page, plugin, hook, state, output, error, size, attempts)
            SELECT id, 'p', 'h', 'failed', repeat('x', {cut}), repeat('x', {cut}), 1, 1 FROM archivist.page;
         INSERT INTO archivist.result (page, plugin, hook, state, output, error, size, attempts)
            SELECT id, 'p', 'i', 'failed', repeat('x', {cut}), repeat('x', {cut}), 1, 1 FROM archivist.page"
    ))
    .await;
    let crawls: Vec<report::Crawl> = bed.list("crawls", |crawl: &report::Crawl| crawl.id.0).await;
    assert_eq!(crawls.len(), 20);
    let id = |page: &report::Snapshot| page.id.0;
    let pages: Vec<report::Snapshot> = bed.list("snapshots", id).await;
    assert_eq!(pages.len(), 300);
    let id = |result: &report::HookResult| result.id.unwrap();
    let results: Vec<report::HookResult> = bed.list("results", id).await;
    assert_eq!(results.len(), 600);
}
