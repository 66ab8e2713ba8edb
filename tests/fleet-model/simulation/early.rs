//! Requests that come before their time, because they probably bring something.

use super::rules::{CRAWL, fleet, greeted, page};
use archivist_core::fleet::service::{Action, Event, SOON, Service};
use archivist_core::fleet::{
    BootTime, Claim, Claimed, Epoch, Held, Holdings, HostKey, NodeReply, NodeRequest, OutboxEntry,
    Pace, Renew, Renewed, Session, Submit,
};
use std::time::Duration;

/// A service that has asked for everything and waits.
struct Waiting {
    service: Service,
    session: Session,
    now: BootTime,
}

impl Waiting {
    fn new(holdings: &Holdings) -> Waiting {
        let (mut ledger, _, _) = fleet();
        let mut service = Service::default();
        let session = greeted(&mut service, &mut ledger);
        let now = BootTime(1_001);
        let mut waiting = Waiting { service, session, now };
        let mut actions = waiting.step(Event::Holdings(holdings.clone()));
        while let [Action::Send(_, request)] = &actions[..] {
            let reply = nothing(request);
            actions = waiting.answer(reply, holdings);
        }
        assert!(matches!(actions[..], [Action::Wake(_)]), "{actions:?}");
        waiting
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        self.service.handle(self.now, 0.5, event)
    }

    /// Delivers a reply; returns what the service does next.
    fn answer(&mut self, reply: NodeReply, holdings: &Holdings) -> Vec<Action> {
        self.step(Event::Replied(Ok(reply)));
        self.step(Event::Delivered);
        self.step(Event::Holdings(holdings.clone()))
    }

    /// Returns the requests until the service waits, and for how long it then waits.
    fn requests(&mut self, event: Event, holdings: &Holdings) -> (Vec<NodeRequest>, Duration) {
        let mut requests = Vec::new();
        assert_eq!(self.step(event), [Action::Ask]);
        let mut actions = self.step(Event::Holdings(holdings.clone()));
        loop {
            match &actions[..] {
                [Action::Send(session, request)] => {
                    assert_eq!(*session, self.session);
                    let reply = nothing(request);
                    requests.push(request.clone());
                    // The orchestrator removes an entry that is answered.
                    let mut rest = holdings.clone();
                    rest.entries.clear();
                    actions = self.answer(reply, &rest);
                }
                [Action::Wake(at)] => return (requests, at.until(self.now)),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A reply without pages and orders.
fn nothing(request: &NodeRequest) -> NodeReply {
    match request {
        NodeRequest::Claim(_) => NodeReply::Claimed(Claimed::default()),
        NodeRequest::Renew(_) => NodeReply::Renewed(Renewed::default()),
        NodeRequest::Submit(submit) => NodeReply::Submitted { inserted: submit.pages.len() as u64 },
        NodeRequest::CrawlClosed { .. } => NodeReply::Done,
        other => panic!("{other:?}"),
    }
}

fn claims() -> Holdings {
    let claim = Claim { hosts: 1, pages_per_host: 1, delay: Duration::ZERO };
    Holdings { claim: Some(claim), ..Holdings::default() }
}

fn kinds(requests: &[NodeRequest]) -> Vec<&'static str> {
    let kind = |request: &NodeRequest| match request {
        NodeRequest::Claim(_) => "claim",
        NodeRequest::Renew(Renew { refill: 0, .. }) => "heartbeat",
        NodeRequest::Renew(_) => "refill",
        NodeRequest::Submit(_) => "submit",
        _ => "other",
    };
    requests.iter().map(kind).collect()
}

#[test]
fn news_brings_pages_and_orders_a_second_after_the_last_ones() {
    let holdings = claims();
    let mut waiting = Waiting::new(&holdings);
    let (requests, wait) = waiting.requests(Event::News, &holdings);
    assert_eq!((kinds(&requests), wait), (vec![], SOON));
    waiting.now = waiting.now.after(SOON);
    let (requests, wait) = waiting.requests(Event::Tick, &holdings);
    assert_eq!(kinds(&requests), ["claim", "heartbeat"]);
    assert!(wait > SOON, "{wait:?}");
}

#[test]
fn orders_reach_a_node_that_works_and_it_confirms_a_drain() {
    let lease =
        Held { host: HostKey("a".into()), epoch: Epoch(1), live: true, pace: Pace::default() };
    let mut holdings = Holdings { leases: vec![lease], ..Holdings::default() };
    let mut waiting = Waiting::new(&holdings);
    waiting.now = waiting.now.after(SOON);
    waiting.requests(Event::News, &holdings);
    waiting.now = waiting.now.after(SOON);
    let (requests, _) = waiting.requests(Event::Orders, &holdings);
    assert!(kinds(&requests).contains(&"heartbeat"), "{requests:?}");
    // As if that had brought the order to drain.
    waiting.now = waiting.now.after(SOON);
    assert_eq!(waiting.step(Event::Orders), [Action::Ask]);
    let actions = waiting.step(Event::Holdings(holdings.clone()));
    assert!(matches!(actions[..], [Action::Send(_, NodeRequest::Renew(_))]), "{actions:?}");
    holdings.drains = true;
    let mut renewed = Renewed::default();
    renewed.orders.draining = true;
    let actions = waiting.answer(NodeReply::Renewed(renewed), &holdings);
    let [Action::Wake(at)] = actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!(at.until(waiting.now), SOON);
    waiting.now = at;
    let (requests, _) = waiting.requests(Event::Tick, &holdings);
    let confirms =
        |request: &NodeRequest| matches!(request, NodeRequest::Renew(renew) if renew.drains);
    assert!(requests.iter().all(confirms) && requests.len() == 1, "{requests:?}");
}

#[test]
fn node_whose_claim_is_not_filled_wants_hosts_of_others() {
    let holdings = Holdings { slots: 4, ..claims() };
    let mut waiting = Waiting::new(&holdings);
    waiting.now = waiting.now.after(SOON);
    let (requests, _) = waiting.requests(Event::Orders, &holdings);
    let wanting: Vec<u32> = requests
        .iter()
        .filter_map(|request| match request {
            NodeRequest::Renew(renew) => Some(renew.wanting),
            _ => None,
        })
        .collect();
    assert_eq!(wanting, [4]);
}

#[test]
fn own_hint_without_entries_brings_nothing() {
    let holdings = claims();
    let mut waiting = Waiting::new(&holdings);
    let (requests, wait) = waiting.requests(Event::Hint, &holdings);
    assert_eq!(kinds(&requests), [""; 0]);
    assert!(wait > SOON, "{wait:?}");
}

#[test]
fn node_gets_the_pages_that_it_has_submitted_at_once() {
    let lease =
        Held { host: HostKey("a".into()), epoch: Epoch(1), live: true, pace: Pace::default() };
    let mut holdings =
        Holdings { short: vec![lease.host.clone()], leases: vec![lease], refill: 16, ..claims() };
    let mut waiting = Waiting::new(&holdings);
    waiting.now = waiting.now.after(SOON);
    holdings.entries = vec![OutboxEntry {
        number: 1,
        request: NodeRequest::Submit(Submit {
            crawl: CRAWL,
            spec: None,
            pages: vec![page("b", 1)],
        }),
    }];
    let (requests, _) = waiting.requests(Event::Hint, &holdings);
    assert_eq!(kinds(&requests)[..3], ["submit", "claim", "refill"]);
}

#[test]
fn idle_node_asks_for_orders_when_a_crawl_is_closed() {
    let mut holdings = claims();
    let mut waiting = Waiting::new(&holdings);
    waiting.now = waiting.now.after(SOON);
    holdings.entries =
        vec![OutboxEntry { number: 1, request: NodeRequest::CrawlClosed { crawl: CRAWL } }];
    let (requests, _) = waiting.requests(Event::Hint, &holdings);
    assert_eq!(kinds(&requests), ["other", "heartbeat"]);
}
