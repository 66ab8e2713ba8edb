//! Names, clones, and connections that were replaced.

use crate::server::shared;
use crate::{database, open};
use archivist_core::fleet::{Hello, NodeRefusal, NodeReply, NodeRequest, SCHEMA};
use archivist_fleet::ledger::{Fault, Ledger};
use archivist_fleet::schema::{MIGRATIONS, migrate};
use std::time::Duration;

fn hello(machine: &str, boot: &str, uptime: u64) -> Hello {
    Hello {
        name: "web".to_owned(),
        machine: machine.to_owned(),
        boot: boot.to_owned(),
        uptime: Duration::from_secs(uptime),
        schema: SCHEMA,
        memory: None,
        lease: None,
    }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Fault>) -> NodeRefusal {
    match outcome {
        Err(Fault::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_name_belongs_to_one_machine_and_one_boot() {
    let Some(server) = shared() else { return };
    let mut link = database(server, "joining").await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let mut ledger = Ledger::new(link);
    let mut other = Ledger::new(open(&server.url("joining")).await);
    let first = ledger.hello(&hello("a", "1", 900)).await.unwrap().session;
    let taken = refusal(other.hello(&hello("b", "1", 900)).await);
    assert!(matches!(taken, NodeRefusal::NameTaken { .. }), "{taken}");
    // A clone that runs since before the last sign of life, and one that booted just now.
    for (uptime, longest) in [(900, 300), (1, 15)] {
        let cloned = refusal(other.hello(&hello("a", "2", uptime)).await);
        let NodeRefusal::Cloned { retry_in, .. } = cloned else {
            panic!("{cloned}");
        };
        let longest = Duration::from_secs(longest);
        assert!(retry_in <= longest && retry_in + Duration::from_secs(10) > longest);
    }
    let reply = ledger.apply(first, &NodeRequest::Goodbye).await.unwrap();
    assert_eq!(reply, NodeReply::Done);
    let second = other.hello(&hello("a", "2", 900)).await.unwrap().session;
    assert_eq!(second.node, first.node);
    for request in [NodeRequest::Goodbye, NodeRequest::ReserveCrawls { count: 1 }] {
        let replaced = refusal(ledger.apply(first, &request).await);
        assert!(matches!(replaced, NodeRefusal::Superseded { .. }), "{replaced}");
    }
}
