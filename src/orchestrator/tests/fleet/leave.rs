//! The stop of the fleet service, and a node that leaves its fleet.

use super::node::*;
use crate::bus::call::Refusal;
use crate::orders::holdings::NodeCall;
use crate::tests::bed::Bed;
use archivist_core::fleet::{Delivery, Epoch, Fate, HostKey, NodeReply, PageEnd};
use archivist_core::model::Lifecycle;

#[test]
fn stop_of_the_fleet_service_releases_the_hosts_without_running_pages() {
    let mut bed = node();
    bed.claim(3, &[101, 102]);
    bed.request(NodeCall::Stop).unwrap().unwrap();
    let holdings = bed.holdings();
    assert!(holdings.leases.is_empty(), "{holdings:?}");
    assert_eq!(holdings.releases.len(), 1);
    assert_eq!(bed.outbox(), [], "waiting pages go back with their host");
    let released =
        Delivery::Released { host: HostKey(HOST.into()), epoch: Epoch(3), fate: Fate::Done };
    bed.deliver(released).unwrap();
    bed.claim(4, &[103]);
    bed.until_page_runs(103);
    bed.request(NodeCall::Stop).unwrap().unwrap();
    assert_eq!(bed.holdings().leases.len(), 1, "its page runs");
    bed.run_units();
    assert_eq!(bed.status(103), Lifecycle::Sealed);
}

#[test]
fn node_leaves_when_it_holds_nothing_and_keeps_its_pages() {
    let mut bed = node();
    bed.claim(3, &[101]);
    let leave = |bed: &mut Bed| bed.request(NodeCall::Leave).unwrap();
    let why = leave(&mut bed).unwrap_err();
    assert!(matches!(&why, Refusal::Invalid(why) if why.contains("1 hosts")), "{why:?}");
    bed.run_units();
    let mut renewed = renewal(3);
    renewed.orders.draining = true;
    bed.renew(renewed, false);
    bed.run_units();
    assert_eq!(bed.crawl_status(), Lifecycle::Sealed, "closed without waiting for more pages");
    let why = leave(&mut bed).unwrap_err();
    assert!(matches!(why, Refusal::Invalid(_)), "{why:?}");
    for entry in bed.look(|tx| tx.unanswered_entries(100)) {
        let (number, reply) = (entry.number, Ok(NodeReply::Done));
        bed.deliver(Delivery::Answered { number, reply }).unwrap();
    }
    let released =
        Delivery::Released { host: HostKey(HOST.into()), epoch: Epoch(3), fate: Fate::Done };
    bed.deliver(released).unwrap();
    leave(&mut bed).unwrap();
    assert_eq!(bed.holdings().node, None);
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    bed.add(1);
    bed.run_units();
    assert!(bed.outbox().is_empty(), "a crawl of this machine alone");
    // It joins again, and one of its pages is archived again.
    bed.deliver(welcome(3, 0)).unwrap();
    bed.claim(1, &[101]);
    bed.run_units();
    let outbox = bed.outbox();
    let recorded: Vec<_> = outbox.iter().map(recorded).collect();
    assert_eq!(recorded, [(101, 1, PageEnd::Sealed)]);
}
