//! Machines that archived before they join a fleet.

use crate::server::shared;
use crate::{administer, database, open};
use archivist_core::fleet::{Hello, NodeReply, NodeRequest, SCHEMA};
use archivist_core::model::CrawlId;
use archivist_fleet::ledger::Ledger;
use archivist_fleet::own_ids::{OwnIds, begin_after, overlap};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::time::Duration;

#[tokio::test]
async fn ids_of_a_fleet_begin_after_those_of_its_first_machine() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "own_ids").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let ids = |crawl, page| OwnIds { crawl, page };
    begin_after(&mut link, ids(40, 900)).await.unwrap();
    for fits in [ids(0, 0), ids(40, 900), ids(3, 7)] {
        assert_eq!(overlap(&link, fits).await.unwrap(), None, "{fits:?}");
    }
    for bad in [ids(41, 7), ids(3, 901)] {
        let why = overlap(&link, bad).await.unwrap().unwrap().to_string();
        assert!(why.contains("begin at c41 and s901"), "{why}");
    }
    let mut ledger = Ledger::new(open(&server.url("own_ids")).await);
    let hello = Hello {
        name: "web".to_owned(),
        machine: "a".to_owned(),
        boot: "1".to_owned(),
        uptime: Duration::from_secs(900),
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    let session = ledger.hello(&hello).await.unwrap().session;
    let reserved = ledger.apply(session, &NodeRequest::ReserveCrawls { count: 1 }).await;
    let (first, count) = (CrawlId(41), 1);
    assert_eq!(reserved.unwrap(), NodeReply::CrawlIds { first, count });
    // A machine that was a node and left has crawls and pages of the fleet.
    let rows = "INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES (41, 0, '', now());
        INSERT INTO archivist.page (crawl, depth, host, url, url_key) VALUES (41, 0, 'a', 'b', 'c')";
    link.client.batch_execute(rows).await.unwrap();
    assert_eq!(overlap(&link, ids(41, 901)).await.unwrap(), None);
    drop((link, ledger));
    administer(server, "DROP DATABASE own_ids WITH (FORCE)").await;
}
