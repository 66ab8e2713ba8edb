//! Nodes as `archivist fleet` shows and removes them.

use crate::server::shared;
use crate::{administer, database, open};
use archivist_core::fleet::{Hello, SCHEMA};
use archivist_fleet::ledger::Ledger;
use archivist_fleet::members::{Removal, drain, fleet, remove};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::time::Duration;

async fn join(ledger: &mut Ledger, name: &str) {
    let hello = Hello {
        name: name.to_owned(),
        machine: name.to_owned(),
        boot: "1".to_owned(),
        uptime: Duration::from_secs(900),
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    ledger.hello(&hello).await.unwrap();
}

#[tokio::test]
async fn nodes_are_listed_drained_and_removed_when_they_are_gone() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "members").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let mut ledger = Ledger::new(open(&server.url("members")).await);
    for name in ["web2", "web1"] {
        join(&mut ledger, name).await;
    }
    let found = fleet(&link).await.unwrap();
    let names = found.nodes.iter().map(|node| node.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["web1", "web2"]);
    assert!(found.nodes.iter().all(|node| node.is_connected && !node.draining));
    assert_eq!(found.lease_ms, 300_000);
    assert!(found.clock_ahead_ms.abs() < 1_000, "{found:?}");

    assert!(drain(&link, "web2", true).await.unwrap());
    assert!(!drain(&link, "web3", true).await.unwrap());
    assert!(fleet(&link).await.unwrap().nodes[1].draining);

    assert_eq!(remove(&link, "web2").await.unwrap(), Removal::Alive);
    assert_eq!(remove(&link, "web3").await.unwrap(), Removal::Unknown);
    let past = "UPDATE archivist.node SET seen = now() - interval '1 hour' WHERE name = 'web2'";
    link.client.batch_execute(past).await.unwrap();
    assert!(!fleet(&link).await.unwrap().nodes[1].is_connected);
    assert_eq!(remove(&link, "web2").await.unwrap(), Removal::Done);
    assert_eq!(fleet(&link).await.unwrap().nodes.len(), 1);
    drop((link, ledger));
    administer(server, "DROP DATABASE members WITH (FORCE)").await;
}
