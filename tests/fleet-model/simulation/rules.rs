//! Single rules of the ledger and the service, by example.

use crate::ledger::{DbTime, Ledger, PageState};
use archivist_core::fleet::service::{Action, Event, Service};
use archivist_core::fleet::{
    BootTime, Claim, Claimed, Command, CommandVerb, CrawlSpec, Delivery, Epoch, Fate, Grant, Held,
    Hello, Holdings, HostKey, Memory, NewPage, NodeRefusal, NodeReply, NodeRequest, OutboxEntry,
    Pace, PageEnd, PageTimes, Record, Release, Renew, Renewed, SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, IdMarks, Owner, SnapshotId};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(60);
pub(super) const CRAWL: CrawlId = CrawlId(1);

fn hello(name: &str, boot: &str, uptime: u64) -> Hello {
    Hello {
        name: name.into(),
        machine: format!("machine of {name}"),
        boot: boot.into(),
        uptime: Duration::from_secs(uptime),
        schema: SCHEMA,
        memory: None,
        lease: None,
    }
}

fn at(seconds: u64) -> DbTime {
    DbTime(1_000_000 + seconds * 1_000)
}

pub(super) fn page(host: &str, number: u32) -> NewPage {
    NewPage {
        url: format!("http://{host}/{number}"),
        host: HostKey(host.into()),
        depth: 0,
        given: true,
        title: None,
        bookmarked_at: None,
        tags: Vec::new(),
    }
}

/// A database with two nodes and a crawl of two pages on host `a`.
pub(super) fn fleet() -> (Ledger, Session, Session) {
    let mut ledger = Ledger::new(LEASE);
    let one = ledger.hello(at(0), &hello("one", "b1", 900)).unwrap().session;
    let two = ledger.hello(at(0), &hello("two", "b2", 900)).unwrap().session;
    let submit = Submit {
        crawl: CRAWL,
        spec: Some(CrawlSpec::default()),
        pages: vec![page("a", 1), page("a", 2), page("a", 1)],
    };
    let reply = ledger.apply(at(0), one, &NodeRequest::Submit(submit));
    assert_eq!(reply, Ok(NodeReply::Submitted { inserted: 2 }));
    (ledger, one, two)
}

fn claim(ledger: &mut Ledger, now: DbTime, session: Session) -> Vec<Grant> {
    let claim = Claim { hosts: 9, pages_per_host: 9, delay: 5 * SECOND };
    match ledger.apply(now, session, &NodeRequest::Claim(claim)) {
        Ok(NodeReply::Claimed(claimed)) => claimed.hosts,
        other => panic!("{other:?}"),
    }
}

fn renew(ledger: &mut Ledger, now: DbTime, session: Session, epoch: i64, live: bool) -> Renewed {
    let held = Held { host: HostKey("a".into()), epoch: Epoch(epoch), live, pace: Pace::default() };
    let renew = Renew { leases: vec![held], ..Renew::default() };
    match ledger.apply(now, session, &NodeRequest::Renew(renew)) {
        Ok(NodeReply::Renewed(renewed)) => renewed,
        other => panic!("{other:?}"),
    }
}

fn record(page: i64, epoch: i64) -> NodeRequest {
    NodeRequest::Record(Record {
        page: SnapshotId(page),
        epoch: Epoch(epoch),
        end: PageEnd::Sealed,
        reason: None,
        directory: None,
        results: Vec::new(),
        children: Vec::new(),
        times: PageTimes::default(),
    })
}

/// What a page was before its record looks like what it is after a retry, but for the older copy.
#[test]
fn page_that_is_handed_out_again_is_no_proof_that_the_database_went_back() {
    let (mut ledger, one, _) = fleet();
    let grants = claim(&mut ledger, at(0), one);
    let (id, epoch) = (grants[0].pages[0].id, grants[0].epoch);
    let backup = ledger.clone();
    let NodeRequest::Record(mut end) = record(id.0, epoch.0) else { panic!("not a record") };
    end.directory = Some("s1".to_owned());
    let done = ledger.apply(at(1), one, &NodeRequest::Record(end));
    assert_eq!(done, Ok(NodeReply::Recorded(Fate::Done)));
    let mut again = hello("one", "b1", 900);
    again.memory = Some(Memory {
        node: one.node,
        generation: ledger.generation,
        recorded: Some((id, epoch)),
        ..Memory::default()
    });
    let retry = Command { target: Owner::Snapshot(id), verb: CommandVerb::Retry };
    ledger.apply(at(2), one, &NodeRequest::Command(retry)).unwrap();
    let held = Held { host: HostKey("a".into()), epoch, live: true, pace: Pace::default() };
    let refill = Renew { leases: vec![held], refill: 9, ..Renew::default() };
    ledger.apply(at(3), one, &NodeRequest::Renew(refill)).unwrap();
    let row = &ledger.pages[&id];
    assert_eq!((row.state, row.epoch), (PageState::Open(one.node), epoch));
    assert!(ledger.hello(at(4), &again).is_ok());

    let mut restored = backup;
    assert_eq!(restored.pages[&id].state, PageState::Open(one.node));
    assert_eq!(restored.hello(at(4), &again), Err(NodeRefusal::WentBack));
}

#[test]
fn expired_host_is_claimed_after_its_delay_and_late_record_is_stale() {
    let (mut ledger, one, two) = fleet();
    let first = claim(&mut ledger, at(1), one);
    assert_eq!((first[0].epoch, first[0].pages.len()), (Epoch(1), 2));
    assert_eq!(claim(&mut ledger, at(60), two), []);
    let second = claim(&mut ledger, at(61), two);
    assert_eq!((second[0].epoch, second[0].due_in), (Epoch(2), 5 * SECOND));
    assert_eq!(second[0].pages[0].attempts, 2);
    let late = ledger.apply(at(62), one, &record(1, 1));
    assert_eq!(late, Ok(NodeReply::Recorded(Fate::Stale)));
    let valid = ledger.apply(at(62), two, &record(1, 2));
    assert_eq!(valid, Ok(NodeReply::Recorded(Fate::Done)));
    let again = ledger.apply(at(63), two, &record(1, 2));
    assert_eq!(again, Ok(NodeReply::Recorded(Fate::Already)));
}

#[test]
fn expired_lease_is_renewed_while_the_host_is_not_claimed() {
    let (mut ledger, one, two) = fleet();
    claim(&mut ledger, at(1), one);
    assert_eq!(renew(&mut ledger, at(500), one, 1, false).lost, []);
    assert_eq!(claim(&mut ledger, at(501), two), []);
    claim(&mut ledger, at(900), two);
    assert_eq!(renew(&mut ledger, at(901), one, 1, true).lost.len(), 1);
}

#[test]
fn release_keeps_the_gap_and_counts_no_attempt() {
    let (mut ledger, one, two) = fleet();
    claim(&mut ledger, at(1), one);
    let release = NodeRequest::Release(Release {
        host: HostKey("a".into()),
        epoch: Epoch(1),
        pace: Some(Pace { next_in: 4 * SECOND, blocked_for: Duration::ZERO, delay: 5 * SECOND }),
    });
    let released = ledger.apply(at(10), one, &release);
    assert_eq!(released, Ok(NodeReply::Released(Fate::Done)));
    let again = ledger.apply(at(11), one, &release);
    assert_eq!(again, Ok(NodeReply::Released(Fate::Already)));
    assert_eq!(claim(&mut ledger, at(13), two), []);
    let grants = claim(&mut ledger, at(14), two);
    assert_eq!(grants[0].pages[0].attempts, 1);
}

#[test]
fn forgotten_lease_is_renewed_within_the_grace_only_if_live() {
    let (mut ledger, one, two) = fleet();
    let replica = ledger.clone();
    claim(&mut ledger, at(1), one);
    for (live, lost) in [(true, 0), (false, 1)] {
        let mut ledger = replica.clone();
        ledger.server += 1;
        let one = ledger.hello(at(10), &hello("one", "b1", 910)).unwrap();
        assert_eq!((one.generation.0, one.claims_in), (1, LEASE));
        let one = one.session;
        assert_eq!(claim(&mut ledger, at(11), one), []);
        assert_eq!(renew(&mut ledger, at(12), one, 1, live).lost.len(), lost);
        let recorded = ledger.apply(at(13), one, &record(1, 1));
        assert_eq!(recorded, Ok(NodeReply::Recorded(Fate::Done)));
        let next = claim(&mut ledger, at(140), two);
        assert!(next[0].epoch > Epoch(1 << 32), "{next:?}");
    }
}

/// The second replica has nothing of what happened on the first.
#[test]
fn second_failover_repeats_no_generation_and_no_id() {
    let (ledger, ..) = fleet();
    let fail_over = |server: u64| {
        let mut ledger = ledger.clone();
        ledger.server = server;
        let welcome = ledger.hello(at(10), &hello("one", "b1", 910)).unwrap();
        (welcome.generation.0, ledger.next_crawl, ledger.next_page)
    };
    let (first, second) = (fail_over(2), fail_over(3));
    assert!(first.0 < second.0, "{first:?} {second:?}");
    assert!(first.1 + 999_999 < second.1 && first.2 + 999_999 < second.2);
}

#[test]
fn node_with_most_hosts_hands_half_of_the_difference_to_one_with_free_slots() {
    let (mut ledger, one, two) = fleet();
    let submit = Submit {
        crawl: CRAWL,
        spec: None,
        pages: ["b", "c", "d", "e"].map(|host| page(host, 1)).to_vec(),
    };
    let submitted = ledger.apply(at(1), one, &NodeRequest::Submit(submit));
    assert_eq!(submitted, Ok(NodeReply::Submitted { inserted: 4 }));
    let grants = claim(&mut ledger, at(1), one);
    assert_eq!(grants.len(), 5);
    let mut order = |now, session, wanting| {
        let renew = NodeRequest::Renew(Renew { wanting, ..Renew::default() });
        match ledger.apply(now, session, &renew) {
            Ok(NodeReply::Renewed(renewed)) => renewed.orders.hand_over,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(order(at(2), two, 0), None);
    assert_eq!(order(at(2), one, 0), None, "no node wants a host");
    assert_eq!(order(at(3), two, 4), None);
    assert_eq!(order(at(3), one, 0), Some(2));
    assert_eq!(order(at(4), two, 1), None);
    assert_eq!(order(at(4), one, 0), Some(1), "no more than the node wants");
    assert_eq!(order(at(20), one, 0), None, "the other was not seen");
}

#[test]
fn machine_that_joins_again_is_the_node_that_it_was() {
    let (mut ledger, one, two) = fleet();
    let left = ledger.apply(at(1), one, &NodeRequest::Leave { node: one.node });
    assert_eq!(left, Ok(NodeReply::Done));
    let again = ledger.hello(at(2), &hello("one", "b1", 902)).unwrap();
    assert_eq!(again.session.node, one.node);
    assert!(again.session.incarnation > one.incarnation);
    assert_ne!(claim(&mut ledger, at(2), again.session), [], "it drains no more");
    // Another machine may take the name of one that has left.
    let left = ledger.apply(at(3), two, &NodeRequest::Leave { node: two.node });
    assert_eq!(left, Ok(NodeReply::Done));
    let other = Hello { machine: "another machine".into(), ..hello("two", "b1", 903) };
    let other = ledger.hello(at(4), &other).unwrap();
    assert_ne!(other.session.node, two.node);
}

#[test]
fn longest_lease_that_a_node_is_configured_for_holds() {
    let mut ledger = Ledger::new(LEASE);
    let configured = |name: &str, seconds: Option<u64>| Hello {
        lease: seconds.map(Duration::from_secs),
        ..hello(name, "b1", 900)
    };
    for (name, seconds, lease) in [
        ("one", None, 60),
        ("one", Some(90), 90),
        ("two", Some(40), 90),
        ("one", Some(30), 40),
        ("two", None, 30),
        ("one", None, 30),
    ] {
        let welcome = ledger.hello(at(1), &configured(name, seconds)).unwrap();
        assert_eq!(welcome.lease.as_secs(), lease, "{name} {seconds:?}");
    }
}

#[test]
fn clones_and_foreign_machines_are_refused() {
    let (mut ledger, _, _) = fleet();
    let clone = ledger.hello(at(20), &hello("one", "b3", 30));
    let Err(NodeRefusal::Cloned { retry_in, .. }) = clone else {
        panic!("{clone:?}");
    };
    assert_eq!(retry_in, 40 * SECOND);
    let mut other = hello("one", "b4", 5);
    other.machine = "another".into();
    let taken = ledger.hello(at(20), &other);
    assert!(matches!(taken, Err(NodeRefusal::NameTaken { .. })), "{taken:?}");
    // Rebooted: it was not seen since the new boot began.
    assert!(ledger.hello(at(20), &hello("one", "b3", 15)).is_ok());
    // The former one is refused now.
    let former = ledger.hello(at(25), &hello("one", "b1", 925));
    assert!(matches!(former, Err(NodeRefusal::Cloned { .. })), "{former:?}");
}

#[test]
fn earlier_connection_is_refused() {
    let (mut ledger, one, _) = fleet();
    ledger.hello(at(1), &hello("one", "b1", 901)).unwrap();
    let late = ledger.apply(at(2), one, &NodeRequest::Goodbye);
    assert!(matches!(late, Err(NodeRefusal::Superseded { .. })), "{late:?}");
    let mut old = hello("one", "b1", 903);
    old.schema = SCHEMA - 1;
    assert!(matches!(ledger.hello(at(3), &old), Err(NodeRefusal::Schema { .. })));
}

#[test]
fn cancelled_pages_end_with_their_node_or_their_lease() {
    let (mut ledger, one, two) = fleet();
    claim(&mut ledger, at(1), one);
    let command = |verb| NodeRequest::Command(Command { verb, target: Owner::Crawl(CRAWL) });
    let cancelled = ledger.apply(at(2), two, &command(CommandVerb::Cancel));
    assert_eq!(cancelled, Ok(NodeReply::Commanded { more: false }));
    let orders = renew(&mut ledger, at(3), one, 1, true).orders;
    assert_eq!(orders.crawls, [(CRAWL, archivist_core::fleet::Order::Cancel)]);
    assert_eq!(claim(&mut ledger, at(100), two), []);
    let ends = ledger.pages.values().map(|page| page.state);
    let cancelled = PageState::Final(PageEnd::Cancelled, None);
    assert!(ends.into_iter().all(|state| state == cancelled));
    assert!(ledger.is_sealed(CRAWL, at(100)));
    ledger.apply(at(101), two, &command(CommandVerb::Retry)).unwrap();
    assert_eq!(claim(&mut ledger, at(110), two)[0].pages.len(), 2);
}

/// Drives a service to the point where it asks the orchestrator, after its first hello.
pub(super) fn greeted(service: &mut Service, ledger: &mut Ledger) -> Session {
    let now = BootTime(1_000);
    assert_eq!(service.handle(now, 0.5, Event::Tick), [Action::Connect]);
    assert_eq!(service.handle(now, 0.5, Event::Connected), [Action::Hello]);
    let welcome = ledger.hello(at(0), &hello("one", "b1", 900)).unwrap();
    let session = welcome.session;
    let actions = service.handle(now, 0.5, Event::Welcomed(Ok(welcome)));
    assert!(matches!(actions[..], [Action::Deliver(Delivery::Welcomed { .. })]));
    assert_eq!(service.handle(now, 0.5, Event::Delivered), [Action::Ask]);
    session
}

#[test]
fn service_releases_what_the_orchestrator_does_not_hold() {
    let (mut ledger, one, _) = fleet();
    claim(&mut ledger, at(0), one);
    let mut service = Service::default();
    let session = greeted(&mut service, &mut ledger);
    let holdings = Event::Holdings(Holdings::default());
    let actions = service.handle(BootTime(1_001), 0.5, holdings);
    let release = Release { host: HostKey("a".into()), epoch: Epoch(1), pace: None };
    assert_eq!(actions, [Action::Send(session, NodeRequest::Release(release))]);
}

#[test]
fn service_renews_leases_between_the_pieces_of_a_command() {
    let (mut ledger, _, _) = fleet();
    let mut service = Service::default();
    let session = greeted(&mut service, &mut ledger);
    let command =
        NodeRequest::Command(Command { verb: CommandVerb::Cancel, target: Owner::Crawl(CRAWL) });
    let entry = OutboxEntry { number: 1, request: command.clone() };
    let held =
        Held { host: HostKey("a".into()), epoch: Epoch(1), live: true, pace: Pace::default() };
    let asked = Event::Holdings(Holdings {
        leases: vec![held],
        entries: vec![entry],
        ..Holdings::default()
    });
    let more = |more| Event::Replied(Ok(NodeReply::Commanded { more }));
    service.handle(BootTime(1_001), 0.5, asked.clone());
    let renewed = Event::Replied(Ok(NodeReply::Renewed(Renewed::default())));
    service.handle(BootTime(1_002), 0.5, renewed);
    service.handle(BootTime(1_003), 0.5, Event::Delivered);
    let send = [Action::Send(session, command)];
    let first = service.handle(BootTime(1_004), 0.5, asked.clone());
    assert_eq!(first, send);
    let ask = service.handle(BootTime(2_000), 0.5, more(true));
    assert_eq!(ask, [Action::Ask], "the orchestrator keeps the entry");
    assert_eq!(service.handle(BootTime(2_001), 0.5, asked.clone()), send);
    service.handle(BootTime(90_000), 0.5, more(true));
    let renewal = service.handle(BootTime(90_001), 0.5, asked);
    assert!(
        matches!(&renewal[..], [Action::Send(_, NodeRequest::Renew(renew))] if renew.leases.len() == 1),
        "{renewal:?}"
    );
}

/// `pg_restore` replaces the tables under an open connection, which then says no hello.
#[test]
fn database_that_goes_back_under_a_connection_is_noticed_by_the_next_renewal() {
    let (mut ledger, _, _) = fleet();
    let mut service = Service::default();
    greeted(&mut service, &mut ledger);
    let with = |page: i64| {
        Event::Replied(Ok(NodeReply::Renewed(Renewed {
            given: IdMarks { snapshot: SnapshotId(page), ..IdMarks::default() },
            ..Renewed::default()
        })))
    };
    let asked = || Event::Holdings(Holdings::default());
    for (at, page) in [(10_000, 40), (20_000, 48)] {
        service.handle(BootTime(at), 0.5, asked());
        let delivered = service.handle(BootTime(at), 0.5, with(page));
        assert!(
            matches!(delivered[..], [Action::Deliver(Delivery::Renewed { .. })]),
            "{delivered:?}"
        );
        service.handle(BootTime(at), 0.5, Event::Delivered);
        service.handle(BootTime(at), 0.5, asked());
        service.handle(BootTime(at + 9_000), 0.5, Event::Tick);
    }
    service.handle(BootTime(30_000), 0.5, asked());
    let back = service.handle(BootTime(30_000), 0.5, with(47));
    assert!(
        matches!(
            &back[..],
            [
                Action::Disconnect,
                Action::Wake(_),
                Action::Deliver(Delivery::Refused { refusal: NodeRefusal::WentBack, .. })
            ]
        ),
        "{back:?}"
    );
}

#[test]
fn service_looks_again_after_a_time_if_there_is_no_work() {
    let (mut ledger, _, _) = fleet();
    let mut service = Service::default();
    greeted(&mut service, &mut ledger);
    let claim = Claim { hosts: 1, pages_per_host: 1, delay: SECOND };
    let holdings = Holdings { claim: Some(claim), ..Holdings::default() };
    let asked = Event::Holdings(holdings.clone());
    let actions = service.handle(BootTime(1_001), 0.5, asked.clone());
    assert!(matches!(actions[..], [Action::Send(_, NodeRequest::Claim(_))]));
    let nothing = Event::Replied(Ok(NodeReply::Claimed(Claimed::default())));
    service.handle(BootTime(1_002), 0.5, nothing);
    service.handle(BootTime(1_003), 0.5, Event::Delivered);
    let renew = service.handle(BootTime(1_004), 0.5, asked.clone());
    assert!(
        matches!(&renew[..], [Action::Send(_, NodeRequest::Renew(renew))] if renew.leases.is_empty()),
        "a claim brings no orders: {renew:?}"
    );
    let orders = Event::Replied(Ok(NodeReply::Renewed(Renewed::default())));
    service.handle(BootTime(1_005), 0.5, orders);
    service.handle(BootTime(1_006), 0.5, Event::Delivered);
    let actions = service.handle(BootTime(1_007), 0.5, asked);
    assert_eq!(actions, [Action::Wake(BootTime(4_002))]);
}

#[test]
fn busy_node_leaves_further_hosts_to_others_for_a_while() {
    let (mut ledger, _, _) = fleet();
    let mut service = Service::default();
    greeted(&mut service, &mut ledger);
    let grant = |host: &str| Grant {
        host: HostKey(host.into()),
        epoch: Epoch(1),
        lease: LEASE,
        due_in: Duration::ZERO,
        delay: Duration::ZERO,
        pages: Vec::new(),
    };
    let held = |host: &str| Held {
        host: HostKey(host.into()),
        epoch: Epoch(1),
        live: true,
        pace: Pace::default(),
    };
    let claim = Claim { hosts: 2, pages_per_host: 1, delay: SECOND };
    let holdings = |leases: &[&str], short: &[&str]| {
        Event::Holdings(Holdings {
            claim: Some(claim),
            leases: leases.iter().map(|host| held(host)).collect(),
            short: short.iter().map(|host| HostKey((*host).into())).collect(),
            ..Holdings::default()
        })
    };
    let claimed = Claimed { hosts: vec![grant("a"), grant("b")], crawls: Vec::new() };
    let claims = |actions: &[Action]| matches!(actions, [Action::Send(_, NodeRequest::Claim(_))]);
    assert!(claims(&service.handle(BootTime(1_001), 0.5, holdings(&[], &[]))));
    service.handle(BootTime(1_002), 0.5, Event::Replied(Ok(NodeReply::Claimed(claimed))));
    service.handle(BootTime(1_003), 0.5, Event::Delivered);
    let mut idle = service.clone();
    let heartbeat = service.handle(BootTime(1_004), 0.5, holdings(&["a", "b"], &[]));
    assert!(matches!(heartbeat[..], [Action::Send(_, NodeRequest::Renew(_))]));
    let orders = Event::Replied(Ok(NodeReply::Renewed(Renewed::default())));
    service.handle(BootTime(1_005), 0.5, orders);
    service.handle(BootTime(1_006), 0.5, Event::Delivered);
    let actions = service.handle(BootTime(1_007), 0.5, holdings(&["a", "b"], &[]));
    assert_eq!(actions, [Action::Wake(BootTime(4_002))]);
    assert_eq!(service.handle(BootTime(4_002), 0.5, Event::Tick), [Action::Ask]);
    assert!(claims(&service.handle(BootTime(4_003), 0.5, holdings(&["a", "b"], &[]))));
    // A host without a page that waits keeps no slot busy.
    assert!(claims(&idle.handle(BootTime(1_004), 0.5, holdings(&["a", "b"], &["b"]))));
}

#[test]
fn service_reconnects_later_if_it_was_replaced() {
    let (mut ledger, _, _) = fleet();
    let mut service = Service::default();
    greeted(&mut service, &mut ledger);
    let now = BootTime(9_000);
    let send = service.handle(now, 0.5, Event::Holdings(Holdings::default()));
    assert!(matches!(send[..], [Action::Send(_, NodeRequest::Renew(_))]), "{send:?}");
    let name = "one".into();
    let refused = Event::Replied(Err(NodeRefusal::Superseded { name }));
    let actions = service.handle(now, 0.5, refused);
    assert!(
        matches!(
            actions[..],
            [Action::Disconnect, Action::Wake(_), Action::Deliver(Delivery::Refused { .. })]
        ),
        "{actions:?}"
    );
}
