//! Rows with absurd values, as a program or a person with the password of the database could write: the
//! schema refuses them, or they concern nothing but themselves.

use crate::server::{Server, shared};
use crate::{database, open, view};
use archivist_core::fleet::{
    Claim, CrawlSpec, Fate, Grant, Held, HostKey, NewPage, NodeReply, NodeRequest, Pace, PageEnd,
    PageTimes, Record, Release, Renew, Session, Submit,
};
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_fleet::connect::Link;
use archivist_fleet::ledger::Ledger;
use archivist_fleet::members;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use archivist_fleet::view::View;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::Filter;
use serde::de::DeserializeOwned;
use std::time::Duration;

const NAME: &str = "absurd";
/// The crawl that works, and the one with the absurd rows.
const GOOD: CrawlId = CrawlId(1);
const BAD: CrawlId = CrawlId(2);
/// Tables with rows of their own for each node, crawl, host or page. The table `fleet` has one row, for
/// all.
const TABLES: [&str; 7] = ["node", "crawl", "part", "host", "page", "result", "tally"];

/// Absurd values of a type, as SQL.
fn values(kind: &str) -> &'static [&'static str] {
    match kind {
        "bigint" => &["-9223372036854775808", "-1", "0", "9223372036854775807"],
        "integer" => &["-2147483648", "0", "2147483647"],
        "timestamp with time zone" => &["'infinity'", "'-infinity'"],
        "text" => &["E'\\e[31m\\u202e\\n'", "repeat('x', 100000)", "repeat('x', 40000000)"],
        // Both are sound.
        "boolean" => &[],
        "ARRAY" => &[
            "'{-9223372036854775808, 0, 9223372036854775807}'",
            "'{{1, 2}, {3, 4}}'",
            "array_fill(1::bigint, '{5000000}')",
        ],
        "bytea" => &["''", "convert_to(repeat('x', 40000000), 'UTF8')"],
        other => panic!("no values of type {other}"),
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
    ledger: Ledger,
    session: Session,
    view: View,
    link: Link,
}

impl Bed {
    async fn new(server: &Server) -> Bed {
        let mut link = database(server, NAME).await;
        migrate(&mut link, MIGRATIONS).await.unwrap();
        // Its rows are the absurd ones: a node, its part of a crawl, a host with a page and a result.
        let (mut gone, of_gone) = view::node(server, NAME, "gone").await;
        for (crawl, host) in [(GOOD, "good.example"), (BAD, "bad.example")] {
            let spec = CrawlSpec { document: "{}".to_owned(), ..CrawlSpec::default() };
            let submit = Submit {
                crawl,
                spec: Some(spec),
                pages: (0..3).map(|number| page(host, number)).collect(),
            };
            gone.apply(of_gone, &NodeRequest::Submit(submit)).await.unwrap();
        }
        link.client
            .batch_execute(&format!(
                "INSERT INTO archivist.part (node, crawl) VALUES ({}, 2);
                 INSERT INTO archivist.result (page, plugin, hook, state, size, attempts)
                     SELECT min(id), 'p', 'h', 'failed', 1, 1 FROM archivist.page WHERE crawl = 2;
                 CREATE SCHEMA saved",
                of_gone.node
            ))
            .await
            .unwrap();
        for table in TABLES {
            let copy = format!("CREATE TABLE saved.{table} AS TABLE archivist.{table}");
            link.client.batch_execute(&copy).await.unwrap();
        }
        let (ledger, session) = view::node(server, NAME, "web1").await;
        let view = View::new(open(&server.url(NAME)).await, "web1");
        Bed { ledger, session, view, link }
    }

    async fn columns(&self, table: &str) -> Vec<(String, String)> {
        let sql = "SELECT column_name::text, data_type::text FROM information_schema.columns
            WHERE table_schema = 'archivist' AND table_name = $1 ORDER BY ordinal_position";
        let rows = self.link.client.query(sql, &[&table]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// The condition of the row of a table that becomes absurd.
    fn row(table: &str) -> &'static str {
        match table {
            "node" => "name = 'gone'",
            "host" => "key = 'bad.example'",
            "crawl" => "id = 2",
            "page" => "id = (SELECT min(id) FROM archivist.page WHERE crawl = 2)",
            "result" => "plugin = 'p'",
            _ => "crawl = 2",
        }
    }

    /// Sets one value. Returns whether the schema accepts it.
    async fn set(&self, table: &str, column: &str, value: &str) -> bool {
        let row = Bed::row(table);
        let sql = format!("UPDATE archivist.{table} SET {column} = {value} WHERE {row}");
        match self.link.client.execute(&sql, &[]).await {
            Ok(changed) => {
                assert!(changed > 0, "{sql}");
                true
            }
            Err(error) => {
                let refused = error.as_db_error().map(|error| error.code().code().to_owned());
                // Integrity constraints: check, unique, not null.
                assert!(refused.is_some_and(|code| code.starts_with("23")), "{sql}: {error}");
                false
            }
        }
    }

    async fn restore(&self) {
        let mut sql = "BEGIN;".to_owned();
        for table in TABLES.iter().filter(|table| **table != "node") {
            // Faster than TRUNCATE for so few rows.
            sql += &format!(
                "DELETE FROM archivist.{table}; INSERT INTO archivist.{table} TABLE saved.{table};"
            );
        }
        // The session of the node that works continues.
        sql += "DELETE FROM archivist.node WHERE name IS DISTINCT FROM 'web1';
            INSERT INTO archivist.node TABLE saved.node; COMMIT";
        self.link.client.batch_execute(&sql).await.unwrap();
    }

    async fn apply(&mut self, request: NodeRequest) -> Result<NodeReply, String> {
        let reply = self.ledger.apply(self.session, &request).await;
        let reply = reply.map_err(|fault| format!("{request:?}: {fault}"))?;
        // As it reaches the orchestrator.
        let text = serde_json::to_string(&reply).unwrap();
        match serde_json::from_str::<NodeReply>(&text) {
            Ok(read) if read == reply => Ok(reply),
            Ok(read) => Err(format!("{reply:?} is read as {read:?}")),
            Err(error) => Err(format!("{text}: {error}")),
        }
    }

    /// Claims all hosts, and returns the one that works.
    async fn claim(&mut self) -> Result<Grant, String> {
        let claim = Claim { hosts: 9, pages_per_host: 2, delay: Duration::ZERO };
        let NodeReply::Claimed(claimed) = self.apply(NodeRequest::Claim(claim)).await? else {
            return Err("no answer to the claim".to_owned());
        };
        let mut hosts = claimed.hosts.into_iter();
        let good = hosts.find(|grant| grant.host.0 == "good.example");
        good.ok_or_else(|| "the claim brought no host".to_owned())
    }

    async fn record(&mut self, grant: &Grant, page: SnapshotId) -> Result<(), String> {
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
        match self.apply(NodeRequest::Record(record)).await? {
            NodeReply::Recorded(Fate::Done) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    async fn list<T: DeserializeOwned>(&mut self, what: &str) -> Result<usize, String> {
        let filter = Filter { limit: 100, ..Filter::default() };
        let list = self.view.list(what, &filter).await;
        let text = list.map_err(|fault| format!("list of {what}: {fault}"))?;
        let rows = serde_json::from_str::<Vec<T>>(&text);
        Ok(rows.map_err(|error| format!("{text}: {error}"))?.len())
    }

    /// What a node and its users do with the rest of the fleet.
    async fn works(&mut self) -> Result<(), String> {
        self.ledger.sweep().await.map_err(|fault| format!("sweep: {fault}"))?;
        self.ledger.fold(100).await.map_err(|fault| format!("fold: {fault}"))?;
        let submit = Submit { crawl: GOOD, spec: None, pages: vec![page("good.example", 77)] };
        self.apply(NodeRequest::Submit(submit)).await?;
        let grant = self.claim().await?;
        let renew = Renew {
            leases: vec![Held {
                host: grant.host.clone(),
                epoch: grant.epoch,
                live: true,
                pace: Pace::default(),
            }],
            refill: 3,
            ..Renew::default()
        };
        let NodeReply::Renewed(renewed) = self.apply(NodeRequest::Renew(renew)).await? else {
            return Err("no answer to the renewal".to_owned());
        };
        if renewed.leases.len() != 1 {
            return Err(format!("the lease was not renewed: {renewed:?}"));
        }
        self.record(&grant, grant.pages[0].id).await?;
        let release = Release { host: grant.host.clone(), epoch: grant.epoch, pace: None };
        self.apply(NodeRequest::Release(release)).await?;
        let status = self.view.status().await;
        status.map_err(|fault| format!("status: {fault}"))?;
        self.list::<report::Crawl>("crawls").await?;
        self.list::<report::Snapshot>("snapshots").await?;
        self.list::<report::HookResult>("results").await?;
        self.list::<report::Host>("hosts").await?;
        for id in [Owner::Crawl(GOOD), Owner::Snapshot(grant.pages[0].id)] {
            let shown = self.view.show(id).await;
            shown.map_err(|fault| format!("show {id}: {fault}"))?;
            let why = self.view.why(id).await;
            why.map_err(|fault| format!("why {id}: {fault}"))?;
        }
        let fleet = members::fleet(&self.link).await;
        fleet.map_err(|problem| format!("nodes: {problem}"))?;
        Ok(())
    }
}

#[tokio::test]
async fn absurd_values_stop_nothing_but_their_row() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server).await;
    bed.works().await.unwrap();
    bed.restore().await;
    let (mut accepted, mut refused, mut stopped) = (0, 0, Vec::new());
    for table in TABLES {
        for (column, kind) in bed.columns(table).await {
            for value in values(&kind) {
                if !bed.set(table, &column, value).await {
                    refused += 1;
                    continue;
                }
                accepted += 1;
                if let Err(why) = bed.works().await {
                    let why: String = why.chars().take(300).collect();
                    stopped.push(format!("{table}.{column} = {value}: {why}"));
                }
                bed.restore().await;
            }
        }
    }
    assert!(stopped.is_empty(), "{}", stopped.join("\n"));
    assert!(accepted > 50 && refused > 50, "{accepted} {refused}");
}
