//! What the fleet service does: one connection to the database, one request at a time. It decides
//! when to connect, renew, claim and send; the orchestrator decides what. Events in, actions out.

use super::exchange::{Delivery, Holdings};
use super::request::{NodeRequest, Release, Renew};
use super::value::{BootTime, Epoch, HostKey, Session};
use super::{NodeRefusal, NodeReply, Welcome};
use crate::model::{Backoff, IdMarks};
use std::time::Duration;

/// Longest time without a renewal, so that the database sees the node, and the node sees a dead
/// connection and its orders. Claims bring no orders.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time between two requests for work if the first brought nothing.
pub const LOOK: Duration = Duration::from_secs(3);

/// Time between two requests for further pages of leased hosts if the first brought nothing. Each
/// updates the rows of these hosts.
const REFILL: Duration = Duration::from_secs(10);

/// Shortest time between two requests of one kind that news calls for.
pub const SOON: Duration = Duration::from_secs(1);

/// Shortest time between two looks without a hint.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// Time between two attempts to connect.
pub const RECONNECT: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10), attempts: u32::MAX };

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The time of the latest [`Action::Wake`] has come.
    Tick,
    Connected,
    /// The connection failed, was lost, or did not answer in time.
    Disconnected,
    Welcomed(Result<Welcome, NodeRefusal>),
    Replied(Result<NodeReply, NodeRefusal>),
    /// Answer of the orchestrator to [`Action::Ask`].
    Holdings(Holdings),
    Delivered,
    /// The orchestrator did not answer, or answered with an error.
    Failed,
    /// There is something to do: the orchestrator says so.
    Hint,
    /// There are pages: another node says so, with NOTIFY.
    News,
    /// There are orders, for any node: the sender of a command says so, with NOTIFY.
    Orders,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Connect,
    /// Closes the connection; a request without reply can still take effect until the next hello.
    Disconnect,
    Hello,
    Send(Session, NodeRequest),
    /// Asks the orchestrator what it holds now.
    Ask,
    Deliver(Delivery),
    /// Calls again at this time; replaces the earlier wake.
    Wake(BootTime),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// No connection until the next wake.
    Down,
    /// Connecting, or waiting for the reply to the hello.
    Greeting,
    /// Waiting for the orchestrator, before the first request.
    Welcomed(Welcome),
    /// Nothing to do until the next wake.
    Idle(Link),
    /// Waiting for what the orchestrator holds.
    Asking(Link),
    /// Waiting for a reply. The time is that at which the request left.
    Sending(Link, BootTime, NodeRequest),
    /// Waiting for the orchestrator to store a reply.
    Delivering(Link),
}

/// A connection after its hello.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    session: Session,
    lease: Duration,
    /// Leases that the database names and the orchestrator may not know; until compared.
    owned: Option<Welcome>,
    /// Leases to release that the orchestrator does not know.
    unknown: Vec<Release>,
    /// The entries up to this number go before refill and claim.
    barrier: u64,
    entry: Option<u64>,
    /// The renewal that is being sent is for all leases.
    renews_all: bool,
    renew_at: BootTime,
    claim_at: BootTime,
    /// The same while enough leased hosts have pages: hosts that wait are for other nodes until then.
    claim_more_at: BootTime,
    refill_at: BootTime,
    beat_at: BootTime,
    early: Early,
    /// The last claim brought fewer hosts than it asked for.
    is_wanting: bool,
    /// Highest ids that the database had given at the last renewal. With lower ones it was restored, while this
    /// connection lasted, to an earlier state.
    given: IdMarks,
}

/// Requests that probably bring something before their time, so that a page or the end of a crawl
/// need not wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Early {
    /// Pages were queued in the fleet.
    claim: bool,
    /// Pages were queued by this node, maybe of hosts that it holds.
    refill: bool,
    /// The node has recorded something, or another one has news.
    beat: bool,
    /// A user has commanded something.
    orders: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    state: State,
    failures: u32,
    hinted: bool,
    has_news: bool,
    has_orders: bool,
}

impl Default for Service {
    fn default() -> Service {
        Service {
            state: State::Down,
            failures: 0,
            hinted: false,
            has_news: false,
            has_orders: false,
        }
    }
}

impl Service {
    /// Decides what follows from an event. `jitter` in 0..=1 spreads reconnections and looks. The
    /// first event is [`Event::Tick`].
    pub fn handle(&mut self, now: BootTime, jitter: f64, event: Event) -> Vec<Action> {
        let state = std::mem::replace(&mut self.state, State::Down);
        self.has_orders |= event == Event::Orders;
        let is_news = matches!(event, Event::News | Event::Orders);
        let (state, actions) = match (state, event) {
            (State::Down, Event::Tick) => (State::Greeting, vec![Action::Connect]),
            (State::Greeting, Event::Connected) => (State::Greeting, vec![Action::Hello]),
            (State::Greeting, Event::Welcomed(Ok(welcome))) => {
                self.failures = 0;
                let delivery = Delivery::Welcomed {
                    node: welcome.session.node,
                    generation: welcome.generation,
                    forgot: welcome.forgot,
                };
                (State::Welcomed(welcome), vec![Action::Deliver(delivery)])
            }
            (State::Greeting, Event::Welcomed(Err(refusal))) => self.refused(now, jitter, refusal),
            (State::Welcomed(welcome), Event::Delivered) => {
                let link = Link::new(now, welcome);
                (State::Asking(link), vec![Action::Ask])
            }
            (State::Idle(link), Event::Tick | Event::Hint | Event::News | Event::Orders) => {
                self.hinted = false;
                self.has_news |= is_news;
                (State::Asking(link), vec![Action::Ask])
            }
            (State::Asking(link), Event::Holdings(holdings)) => self.next(now, link, &holdings),
            (State::Sending(link, sent, request), Event::Replied(reply)) => {
                self.replied(now, jitter, link, sent, request, reply)
            }
            (State::Delivering(link), Event::Delivered) => (State::Asking(link), vec![Action::Ask]),
            // What the orchestrator did not store, it does not hold: the next hello names it.
            (State::Down, Event::Disconnected | Event::Failed) => (State::Down, Vec::new()),
            (_, Event::Disconnected | Event::Failed) => self.down(now, jitter),
            (state, Event::Hint | Event::News | Event::Orders) => {
                self.hinted = true;
                self.has_news |= is_news;
                (state, Vec::new())
            }
            (state, _) => (state, Vec::new()),
        };
        self.state = state;
        actions
    }

    fn down(&mut self, now: BootTime, jitter: f64) -> (State, Vec<Action>) {
        self.failures = self.failures.saturating_add(1);
        let delay = RECONNECT.delay(self.failures, jitter).unwrap_or(RECONNECT.longest);
        let wake = Action::Wake(now.after(delay));
        (State::Down, vec![Action::Disconnect, wake])
    }

    /// The database does not know the sender: it tries again, not too often.
    fn refused(
        &mut self,
        now: BootTime,
        jitter: f64,
        refusal: NodeRefusal,
    ) -> (State, Vec<Action>) {
        let (state, mut actions) = self.down(now, jitter);
        let delay = RECONNECT.delay(self.failures, jitter).unwrap_or(RECONNECT.longest);
        actions.push(Action::Deliver(Delivery::Refused { refusal, retry_in: delay }));
        (state, actions)
    }

    /// Chooses the next request, the most urgent first.
    fn next(&mut self, now: BootTime, mut link: Link, has: &Holdings) -> (State, Vec<Action>) {
        link.compare(has);
        if std::mem::take(&mut self.has_news) {
            link.early.claim = true;
            link.early.beat = true;
        }
        link.early.orders |= std::mem::take(&mut self.has_orders);
        let request = link.choose(now, has);
        if let Some(request) = request {
            let send = Action::Send(link.session, request.clone());
            return (State::Sending(link, now, request), vec![send]);
        }
        if std::mem::take(&mut self.hinted) {
            return (State::Asking(link), vec![Action::Ask]);
        }
        let wake = Action::Wake(link.wake_at(now, has));
        (State::Idle(link), vec![wake])
    }

    fn replied(
        &mut self,
        now: BootTime,
        jitter: f64,
        mut link: Link,
        sent: BootTime,
        request: NodeRequest,
        reply: Result<NodeReply, NodeRefusal>,
    ) -> (State, Vec<Action>) {
        if let Err(refusal @ (NodeRefusal::Superseded { .. } | NodeRefusal::UnknownNode { .. })) =
            reply
        {
            return self.refused(now, jitter, refusal);
        }
        link.early.learn(&request, &reply);
        if matches!(request, NodeRequest::Renew(_)) {
            link.beat_at = sent.after(HEARTBEAT);
        }
        if let Ok(NodeReply::Commanded { more: true }) = reply {
            // The entry is chosen again, after everything that is more urgent.
            return (State::Asking(link), vec![Action::Ask]);
        }
        let look = LOOK.mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0);
        let delivery = match (request, reply) {
            (NodeRequest::Renew(_), Ok(NodeReply::Renewed(renewed)))
                if renewed.given.crawl < link.given.crawl
                    || renewed.given.snapshot < link.given.snapshot =>
            {
                return self.refused(now, jitter, NodeRefusal::WentBack);
            }
            (NodeRequest::Renew(renew), Ok(NodeReply::Renewed(renewed))) => {
                link.given = renewed.given;
                let refilled = renew.refill > 0;
                let brought = renewed.leases.iter().any(|lease| !lease.pages.is_empty());
                if link.renews_all {
                    link.renew_at = sent.after(link.lease / 4);
                }
                if refilled && !brought {
                    link.refill_at = now.after(REFILL);
                }
                Delivery::Renewed { renewed, sent, refilled }
            }
            (NodeRequest::Claim(claim), Ok(NodeReply::Claimed(claimed))) => {
                link.is_wanting = claimed.hosts.len() < claim.hosts as usize;
                link.claim_more_at = now.after(look);
                if claimed.hosts.is_empty() {
                    link.claim_at = link.claim_more_at;
                } else if link.renew_at <= now {
                    link.renew_at = sent.after(link.lease / 4);
                }
                Delivery::Claimed { claimed, sent }
            }
            (NodeRequest::Release(release), Ok(NodeReply::Released(fate))) => {
                Delivery::Released { host: release.host, epoch: release.epoch, fate }
            }
            (_, reply) => match link.entry.take() {
                Some(number) => Delivery::Answered { number, reply },
                None => return self.down(now, jitter),
            },
        };
        (State::Delivering(link), vec![Action::Deliver(delivery)])
    }
}

impl Link {
    fn new(now: BootTime, welcome: Welcome) -> Link {
        Link {
            session: welcome.session,
            lease: welcome.lease,
            claim_at: now.after(welcome.claims_in),
            claim_more_at: now,
            owned: Some(welcome),
            unknown: Vec::new(),
            barrier: 0,
            entry: None,
            renews_all: false,
            renew_at: now,
            refill_at: now,
            beat_at: now,
            early: Early::default(),
            is_wanting: false,
            given: IdMarks::default(),
        }
    }

    /// After the hello: finds the leases that only the database knows, and the entries that may
    /// have been sent before.
    fn compare(&mut self, has: &Holdings) {
        let Some(welcome) = self.owned.take() else {
            return;
        };
        self.barrier = has.last_entry;
        let held = |host: &HostKey, epoch: Epoch| {
            let mut leases = has.leases.iter();
            leases.any(|lease| lease.host == *host && lease.epoch == epoch)
        };
        let unknown = welcome.owned.into_iter().filter(|lease| {
            let (host, epoch) = lease;
            !held(host, *epoch) && !has.releasing.contains(lease)
        });
        self.unknown = unknown.map(|(host, epoch)| Release { host, epoch, pace: None }).collect();
    }

    /// Returns the most urgent request, if any.
    fn choose(&mut self, now: BootTime, has: &Holdings) -> Option<NodeRequest> {
        self.entry = None;
        self.renews_all = now >= self.renew_at && !has.leases.is_empty();
        let first = has.entries.first();
        // What was sent before the hello may have been carried out: it is repeated before anything
        // that can bring the same pages again.
        let is_settled = first.is_none_or(|entry| entry.number > self.barrier);
        let fills = is_settled && now >= self.refills_at() && !has.short.is_empty();
        let renewal = Renew {
            wanting: if self.is_wanting { has.slots } else { 0 },
            drains: has.drains,
            ..Renew::default()
        };
        if self.renews_all {
            return Some(NodeRequest::Renew(Renew {
                leases: has.leases.clone(),
                refill: if fills { has.refill } else { 0 },
                ..renewal
            }));
        }
        // A database that forgot a release may have forgotten the records before it, too.
        if is_settled && let Some(release) = self.unknown.pop() {
            return Some(NodeRequest::Release(release));
        }
        if let Some(release) = has.releases.first() {
            return Some(NodeRequest::Release(release.clone()));
        }
        if is_settled && self.claims_at(has).is_some_and(|due| now >= due) {
            return has.claim.map(NodeRequest::Claim);
        }
        if fills {
            let leases = has.leases.iter();
            let short = leases.filter(|lease| has.short.contains(&lease.host));
            return Some(NodeRequest::Renew(Renew {
                leases: short.cloned().collect(),
                refill: has.refill,
                ..renewal
            }));
        }
        if now >= self.beats_at(has) {
            return Some(NodeRequest::Renew(renewal));
        }
        self.entry = first.map(|entry| entry.number);
        first.map(|entry| entry.request.clone())
    }

    /// Returns when the node may claim further hosts; `None` if it has no room. A node that took all
    /// the hosts that it has room for at once would leave none to the others.
    fn claims_at(&self, has: &Holdings) -> Option<BootTime> {
        let claim = has.claim?;
        let busy = has.leases.len().saturating_sub(has.short.len());
        let has_enough = busy >= claim.hosts.try_into().unwrap_or(usize::MAX);
        let claim_at = earlier(self.claim_at, LOOK, self.early.claim);
        Some(if has_enough { claim_at.max(self.claim_more_at) } else { claim_at })
    }

    fn refills_at(&self) -> BootTime {
        earlier(self.refill_at, REFILL, self.early.refill)
    }

    /// Returns when the next heartbeat is due. A node that works learns little from an early one, unless
    /// there are orders, or it confirms that it drains.
    fn beats_at(&self, has: &Holdings) -> BootTime {
        let is_idle = has.entries.is_empty() && has.short.len() == has.leases.len();
        let is_early = self.early.orders || (self.early.beat && is_idle);
        earlier(self.beat_at, HEARTBEAT, is_early)
    }

    /// Returns when the next request may be due.
    fn wake_at(&self, now: BootTime, has: &Holdings) -> BootTime {
        let renew = (!has.leases.is_empty()).then_some(self.renew_at);
        let claim = self.claims_at(has);
        let refill = (!has.short.is_empty()).then_some(self.refills_at());
        let due = [renew, claim, refill].into_iter().flatten();
        due.fold(self.beats_at(has), BootTime::min).max(now.after(SHORTEST_WAIT))
    }
}

impl Early {
    /// Notes what a reply says about later requests, and which of them it is the answer to.
    fn learn(&mut self, request: &NodeRequest, reply: &Result<NodeReply, NodeRefusal>) {
        match (request, reply) {
            (NodeRequest::Claim(_), _) => self.claim = false,
            (NodeRequest::Renew(renew), reply) => {
                self.beat = false;
                self.refill &= renew.refill == 0;
                // The next renewal confirms a change.
                self.orders = matches!(reply, Ok(NodeReply::Renewed(renewed))
                    if renewed.orders.draining != renew.drains);
            }
            (NodeRequest::Submit(_), Ok(NodeReply::Submitted { inserted })) if *inserted > 0 => {
                *self = Early { claim: true, refill: true, beat: true, ..*self };
            }
            (NodeRequest::Record(record), Ok(NodeReply::Recorded(_))) => {
                self.beat = true;
                if !record.children.is_empty() {
                    self.claim = true;
                    self.refill = true;
                }
            }
            (NodeRequest::CrawlClosed { .. } | NodeRequest::Command(_), _) => self.beat = true,
            _ => {}
        }
    }
}

/// Returns the time of a request that is due `interval` after the one before it, or with `is_early`
/// already [`SOON`] after that one.
fn earlier(due: BootTime, interval: Duration, is_early: bool) -> BootTime {
    if is_early { due.min(due.before(interval).after(SOON)) } else { due }
}
