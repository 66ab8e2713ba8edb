//! A node of a fleet: its pages come with leases of hosts, and everything that happens to them goes
//! into the outbox.

mod commands;
mod crawls;
mod handover;
mod late;
mod leave;
mod node;
mod outbox;
mod recall;
mod rows;

use super::bed::Bed;
use super::worker::Server;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::main_loop::event::Event;
use archivist_core::fleet::{
    BootTime, Claimed, CrawlUse, Delivery, Epoch, Fate, Grant, HostKey, NodeId, NodeRefusal,
    NodeReply, NodeRequest, PageEnd,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_shared::bus::documents::report::AddOptions;
use node::*;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn machine_with_open_crawls_joins_no_fleet() {
    let mut bed = Bed::new();
    bed.add(1);
    let refused = bed.deliver(welcome(2, 0)).unwrap_err();
    assert!(
        matches!(&refused, Refusal::Invalid(why) if why.contains("1 crawls of this machine")),
        "{refused:?}"
    );
    bed.come_to_an_end();
    bed.deliver(welcome(2, 0)).unwrap();
    assert_eq!(bed.holdings().node, Some(NodeId(2)));
}

#[test]
fn node_adds_no_crawl_of_its_own_before_the_fleet_welcomed_it() {
    let mut bed = Bed::new();
    bed.engine.settings.fleet_database = "postgresql://db.test/archive".to_owned();
    let refused = bed.request(Request::Add {
        lines: Arc::new(b"http://b.test/z\n".to_vec()),
        options: AddOptions::default(),
        user: 0,
        joins: false,
        so_far: None,
    });
    let refused = refused.unwrap().unwrap_err();
    assert!(
        matches!(&refused, Refusal::Failed(why) if why.contains("archivist doctor")),
        "{refused:?}"
    );
    bed.deliver(welcome(2, 0)).unwrap();
}

#[test]
fn added_list_goes_to_the_fleet_and_starts_nothing() {
    let mut bed = node();
    let asked = bed.holdings().entries;
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].request, NodeRequest::ReserveCrawls { count: 100 });
    assert_eq!(bed.holdings().entries.len(), 1, "it asks once");
    let reply = Ok(NodeReply::CrawlIds { first: CrawlId(7), count: 2 });
    let number = asked[0].number;
    bed.deliver(Delivery::Answered { number, reply }).unwrap();
    let added = bed.add_with("http://b.test/x", AddOptions::default());
    assert_eq!((added.crawl, added.accepted), (CrawlId(7), 1));
    let sent = bed.outbox();
    let [NodeRequest::Submit(crawl), NodeRequest::Submit(pages)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(crawl.spec.is_some() && crawl.crawl == CrawlId(7));
    assert_eq!(pages.pages[0].host.0, "b.test");
    assert!(pages.pages[0].given);
    bed.run_units();
    assert!(bed.world.units.is_empty());

    let options = AddOptions::default();
    assert_eq!(bed.add_with("http://b.test/y", options).crawl, CrawlId(8));
    let refused = bed.request(Request::Add {
        lines: Arc::new(b"http://b.test/z\n".to_vec()),
        options: AddOptions::default(),
        user: 0,
        joins: false,
        so_far: None,
    });
    let refused = refused.unwrap().unwrap_err();
    assert!(
        matches!(&refused, Refusal::Failed(why) if why.contains("reserved no id")),
        "{refused:?}"
    );
}

/// As a node of an older version does, when a newer one has migrated the schema of the database.
#[test]
fn refused_node_finishes_its_pages_accepts_crawls_and_keeps_the_outbox() {
    let mut bed = node();
    let reply = Ok(NodeReply::CrawlIds { first: CrawlId(70), count: 1 });
    let number = bed.holdings().entries[0].number;
    bed.deliver(Delivery::Answered { number, reply }).unwrap();
    bed.claim(3, &[101]);
    bed.until_page_runs(101);
    bed.deliver(Delivery::Refused {
        refusal: NodeRefusal::Schema { database: 2, program: 1 },
        retry_in: Duration::from_secs(10),
    })
    .unwrap();
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    let added = bed.add_with("http://b.test/x", AddOptions::default());
    assert_eq!(added.crawl, CrawlId(70));
    let kept = bed.outbox();
    assert_eq!(recorded(&kept[0]), (101, 3, PageEnd::Sealed));
    assert!(matches!(kept[1..], [NodeRequest::Submit(_), NodeRequest::Submit(_)]));
    bed.deliver(welcome(2, 0)).unwrap();
    assert_eq!(bed.outbox(), kept);
    assert_eq!(bed.holdings().leases.len(), 1);
}

#[test]
fn node_without_network_claims_no_more_than_it_needs_to_try() {
    let mut bed = node();
    let hosts = |bed: &mut Bed| bed.holdings().claim.map(|claim| claim.hosts);
    assert!(hosts(&mut bed) > Some(1));
    bed.engine.network.borrow_mut().is_down(SnapshotId(101), "no name server", bed.now);
    assert_eq!(hosts(&mut bed), Some(1));
    bed.claim(3, &[101]);
    assert_eq!(hosts(&mut bed), None);
}

#[test]
fn leased_pages_run_and_their_ends_are_reported_once() {
    let mut bed = node();
    bed.claim(3, &[101, 102]);
    bed.run_units();
    let sealed = [(101, 3, PageEnd::Sealed), (102, 3, PageEnd::Sealed)];
    assert_eq!(bed.outbox().iter().map(recorded).collect::<Vec<_>>(), sealed);
    bed.turn(vec![Event::Due]);
    assert_eq!(bed.outbox().len(), 2);
}

/// The fleet has archived a page that is recorded without a reason.
#[test]
fn page_that_was_not_saved_is_recorded_with_a_reason() {
    for (status, reason) in [(200, None), (404, Some("the server answered with an error"))] {
        let mut bed = node();
        bed.world.server = Some(Server { status, retry_after: None });
        bed.claim(3, &[101]);
        bed.run_units();
        let outbox = bed.outbox();
        let [NodeRequest::Record(record)] = &outbox[..] else {
            panic!("{outbox:?}");
        };
        assert_eq!(record.reason.as_deref(), reason, "HTTP status {status}");
    }
}

#[test]
fn record_states_how_long_ago_the_page_ended() {
    let mut bed = node();
    bed.claim(3, &[101]);
    bed.run_units();
    for passed in [0, 90_000] {
        bed.pass(passed);
        let entries = bed.holdings().entries;
        let ago = entries.iter().find_map(|entry| match &entry.request {
            NodeRequest::Record(record) => Some(record.times.ended_ago),
            _ => None,
        });
        assert_eq!(ago, Some(Duration::from_millis(passed)));
    }
}

#[test]
fn answered_entries_leave_the_queue_and_are_sent_again_after_a_failover() {
    let mut bed = node();
    bed.claim(1, &[101]);
    bed.run_units();
    let entry = bed.look(|tx| tx.unanswered_entries(1)).remove(0);
    let (number, reply) = (entry.number, Ok(NodeReply::Done));
    bed.deliver(Delivery::Answered { number, reply }).unwrap();
    assert_eq!(bed.outbox(), []);
    bed.deliver(welcome(2, 1)).unwrap();
    assert_eq!(bed.outbox(), [entry.request]);
}

#[test]
fn stale_entry_is_never_sent_again() {
    let mut bed = node();
    bed.claim(1, &[101]);
    bed.run_units();
    let number = bed.look(|tx| tx.unanswered_entries(1))[0].number;
    let reply = Ok(NodeReply::Recorded(Fate::Stale));
    bed.deliver(Delivery::Answered { number, reply }).unwrap();
    bed.deliver(welcome(2, 1)).unwrap();
    assert_eq!(bed.outbox(), []);
}

#[test]
fn running_page_is_stopped_at_the_deadline_and_continues_after_a_renewal() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    bed.pass(LIVE_MS - 1);
    assert_eq!(bed.status(101), Lifecycle::Started);
    bed.pass(1);
    assert_eq!(bed.status(101), Lifecycle::Queued);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Queued);
    let running = bed.world.running();
    assert!(!running.iter().any(|unit| unit.contains("101")), "{running:?}");
    assert_eq!(bed.outbox(), []);
    bed.renew(renewal(5), false);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    let page = bed.look(|tx| tx.snapshot(SnapshotId(101))).unwrap();
    assert_eq!(page.attempts, 1);
}

#[test]
fn hook_that_the_deadline_stops_runs_again_after_a_renewal() {
    let mut bed = node();
    bed.claim(5, &[101]);
    let hook = bed.until_hook_runs(101);
    bed.pass(LIVE_MS);
    bed.run_units();
    assert!(!bed.world.units.contains_key(&hook));
    bed.renew(renewal(5), false);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    let results = bed.look(|tx| tx.results(Owner::Snapshot(SnapshotId(101))));
    let states: Vec<_> = results.iter().map(|result| result.status).collect();
    assert_eq!(states, vec![ResultState::Succeeded; states.len()]);
}

#[test]
fn hooks_of_a_page_start_until_the_deadline_of_its_lease() {
    let mut bed = node();
    bed.claim(5, &[101]);
    let deadline = bed.machine as u64 + LIVE_MS;
    let hook = &bed.until_hook_runs(101);
    let hook = &bed.world.units[hook];
    assert_eq!(hook.not_after, Some(deadline));
    let worker = &bed.world.units["archivist-snapshot-101.service"];
    assert_eq!(worker.not_after, None);
}

#[test]
fn limits_of_a_crawl_count_what_all_nodes_used() {
    let minute = Duration::from_secs(60);
    let cases = [
        ("CRAWL_MAX_SIZE", "5000", (4999, minute), (5000, minute)),
        ("CRAWL_TIMEOUT", "90", (0, Duration::from_secs(80)), (0, Duration::from_secs(90))),
    ];
    for (name, value, below, reached) in cases {
        for ((bytes, age), is_reached) in [(below, false), (reached, true)] {
            let mut bed = node();
            let used = CrawlUse { bytes, age, is_done: false };
            let claimed = Claimed {
                hosts: vec![bed.grant(5, &[101])],
                crawls: vec![(CRAWL, limited_spec(name, value))],
            };
            let sent = BootTime(bed.machine as u64);
            bed.deliver(Delivery::Claimed { claimed, sent }).unwrap();
            bed.use_limits(used);
            bed.run_units();
            let page = bed.look(|tx| tx.snapshot(SnapshotId(101))).unwrap();
            let reason = format!("{name}={value} reached");
            let expected = is_reached.then_some(reason);
            assert_eq!(page.reason, expected, "{name} {used:?}");
        }
    }
}

#[test]
fn renewed_lease_keeps_its_pages_running() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    for _ in 0..5 {
        bed.pass(LIVE_MS / 2);
        bed.renew(renewal(5), false);
    }
    assert_eq!(bed.status(101), Lifecycle::Started);
    // The answer to a renewal of an earlier lease extends nothing.
    bed.renew(renewal(4), false);
    bed.pass(LIVE_MS);
    assert_eq!(bed.status(101), Lifecycle::Queued);
}

#[test]
fn page_of_a_lost_lease_is_stopped_and_not_reported() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    bed.renew(lost(4), false);
    assert_eq!(bed.status(101), Lifecycle::Started);
    bed.renew(lost(5), false);
    assert_eq!(bed.status(101), Lifecycle::Cancelled);
    assert_eq!(bed.holdings().leases, []);
    bed.run_units();
    let running = bed.world.running();
    assert!(!running.iter().any(|unit| unit.contains("101")), "{running:?}");
    assert_eq!(bed.outbox(), []);
    // The same page comes again.
    bed.claim(6, &[101]);
    bed.run_units();
    let sealed = (101, 6, PageEnd::Sealed);
    assert_eq!(bed.outbox().iter().map(recorded).collect::<Vec<_>>(), [sealed]);
}

#[test]
fn lease_of_an_earlier_boot_waits_for_its_renewal() {
    let mut bed = node();
    bed.claim(5, &[101]);
    let tx = bed.database.begin().unwrap();
    tx.reboot_leases("another boot").unwrap();
    tx.commit().unwrap();
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Queued);
    assert!(!bed.holdings().leases[0].live);
    bed.renew(renewal(5), false);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
}

#[test]
fn lease_survives_a_restart_of_the_orchestrator() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.until_page_runs(101);
    bed.restart(1);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    assert_eq!(bed.outbox().len(), 1);
}

#[test]
fn host_waits_as_long_as_the_database_says() {
    let mut bed = node();
    let grant = Grant {
        due_in: Duration::from_secs(40),
        delay: Duration::from_secs(5),
        ..bed.grant(5, &[101, 102])
    };
    bed.claim_as(grant);
    let pace = bed.holdings().leases[0].pace;
    assert_eq!(pace.next_in, Duration::from_secs(40));
    assert_eq!(pace.delay, Duration::from_secs(5));
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Queued);
    bed.pass(40_000);
    bed.run_units();
    assert_eq!(bed.status(101), Lifecycle::Sealed);
    assert_eq!(bed.status(102), Lifecycle::Queued);
    bed.pass(5_000);
    bed.run_units();
    assert_eq!(bed.status(102), Lifecycle::Sealed);
}

#[test]
fn idle_host_is_released_after_its_records() {
    let mut bed = node();
    bed.claim(5, &[101]);
    bed.run_units();
    let short = bed.holdings().short;
    assert_eq!(short, [HostKey(HOST.into())]);
    bed.renew(renewal(5), true);
    let holdings = bed.holdings();
    let name = (HostKey(HOST.into()), Epoch(5));
    assert_eq!((holdings.leases.len(), &holdings.releasing), (0, &vec![name]));
    // The record of its page goes first.
    assert_eq!(holdings.releases, []);
    for entry in holdings.entries {
        let (number, reply) = (entry.number, Ok(NodeReply::Done));
        bed.deliver(Delivery::Answered { number, reply }).unwrap();
    }
    let release = bed.holdings().releases.remove(0);
    assert_eq!(release.epoch, Epoch(5));
    bed.deliver(Delivery::Released { host: release.host, epoch: release.epoch, fate: Fate::Done })
        .unwrap();
    assert!(bed.holdings().releasing.is_empty());
}

#[test]
fn draining_node_finishes_what_runs_and_releases_the_rest() {
    let mut bed = node();
    bed.engine.settings.host_workers = 1;
    bed.claim(5, &[101, 102]);
    bed.until_page_runs(101);
    let mut renewed = renewal(5);
    renewed.orders.draining = true;
    bed.renew(renewed.clone(), false);
    assert_eq!(bed.holdings().leases.len(), 1);
    while bed.status(101) != Lifecycle::Sealed {
        assert!(bed.moves_on());
    }
    bed.renew(renewed, false);
    assert_eq!(bed.holdings().leases.len(), usize::from(bed.status(102) == Lifecycle::Started));
}

#[test]
fn page_that_a_failover_gave_another_id_replaces_the_former_one() {
    for is_done in [false, true] {
        let mut bed = node();
        bed.claim(3, &[101]);
        if is_done {
            bed.run_units();
        } else {
            bed.until_page_runs(101);
        }
        let mut grant = bed.grant(4, &[1_000_101]);
        grant.pages[0].page.url = leased(101).page.url;
        bed.claim_as(grant);
        bed.run_units();
        assert_eq!(bed.status(1_000_101), Lifecycle::Sealed);
        let former = if is_done { Lifecycle::Sealed } else { Lifecycle::Cancelled };
        assert_eq!(bed.status(101), former);
        let ends = bed.outbox().iter().map(recorded).collect::<Vec<_>>();
        assert_eq!(ends.last(), Some(&(1_000_101, 4, PageEnd::Sealed)));
        assert_eq!(ends.len(), if is_done { 2 } else { 1 }, "{ends:?}");
    }
}
