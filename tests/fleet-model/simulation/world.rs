//! Simulated machines, their network and their database, event by event. All times of the world are
//! true times in milliseconds.

use super::database::Database;
use super::machine::{Machine, Unit};
use super::mutation::Mutation;
use super::oracle::{Checked, Oracle};
use super::random::Random;
use archivist_core::fleet::service::Event;
use archivist_core::fleet::{
    BootTime, CrawlSpec, Delivery, Epoch, Hello, HostKey, NewPage, NodeRefusal, NodeReply,
    NodeRequest, Session, Submit, Welcome,
};
use archivist_core::model::CrawlId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

pub(super) const LEASE: Duration = Duration::from_secs(60);

/// Hosts of the simulated web. The first asks for a long delay.
pub(super) const HOSTS: u64 = 4;
/// Delay that the first host asks for.
pub(super) const LONG_DELAY: Duration = Duration::from_secs(25);
/// HostDelay= of all nodes.
pub(super) const HOST_DELAY: Duration = Duration::from_secs(4);

#[derive(Clone, Debug)]
pub(super) enum ToDesk {
    /// The number of the call comes back with the answer.
    Ask(u64),
    Deliver(u64, Delivery),
    Began(u64, BootTime),
    NotBegun(u64),
    Ended(u64),
    /// The time of a decision has come.
    Turn(u64),
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Hello(Hello),
    NodeRequest(Session, NodeRequest),
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Welcome(Result<Welcome, NodeRefusal>),
    NodeReply(Result<NodeReply, NodeRefusal>),
}

/// An event of the world. `life` tells the processes of a machine apart that had its place one after
/// another.
#[derive(Clone, Debug)]
pub(super) enum What {
    Service { machine: usize, life: u64, call: Option<u64>, event: Event },
    Desk { machine: usize, life: u64, message: ToDesk },
    Database { connection: u64, machine: usize, request: u64, body: Body },
    Answered { machine: usize, life: u64, connection: u64, request: u64, answer: Answer },
    Begins { machine: usize, life: u64, unit: u64 },
    Ends { machine: usize, life: u64, unit: u64 },
    Fault(super::faults::Fault),
}

struct Due {
    at: u64,
    order: u64,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.order == other.order
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The network between nodes and database: chances in permille.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    /// Requests and replies that are lost.
    pub(super) lost: u64,
    /// Requests that arrive after the client gave up, and replies that are late.
    pub(super) late: u64,
    /// Requests that arrive twice.
    pub(super) twice: u64,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<Due>>,
    pub(super) random: Random,
    pub(super) machines: Vec<Machine>,
    pub(super) database: Database,
    pub(super) oracle: Oracle,
    pub(super) weather: Weather,
    pub(super) mutation: Option<Mutation>,
    /// Chance in permille that an orchestrator is stopped between a decision and its start.
    pub(super) stops_in_turn: u64,
    pub(super) pages: u64,
    pub(super) steps: u64,
    pub(super) connections: u64,
}

impl World {
    pub(super) fn new(seed: u64, mutation: Option<Mutation>) -> World {
        let mut random = Random::new(seed);
        let database = Database::new(&mut random);
        World {
            seed,
            now: 1_000_000,
            order: 0,
            queue: BinaryHeap::new(),
            random,
            machines: Vec::new(),
            database,
            oracle: Oracle::default(),
            weather: Weather::default(),
            mutation,
            stops_in_turn: 0,
            pages: 0,
            steps: 0,
            connections: 0,
        }
    }

    pub(super) fn at(&mut self, at: u64, what: What) {
        self.order += 1;
        let order = self.order;
        let at = at.max(self.now);
        self.queue.push(Reverse(Due { at, order, what }));
    }

    pub(super) fn soon(&mut self, what: What) {
        let delay = self.random.range(1, 20);
        self.at(self.now + delay, what);
    }

    /// Carries out the next event. Returns `false` if there is none before `end`.
    pub(super) fn step(&mut self, end: u64) -> Result<bool, String> {
        let Some(Reverse(due)) = self.queue.pop() else {
            return Ok(false);
        };
        if due.at > end {
            self.queue.push(Reverse(due));
            return Ok(false);
        }
        self.now = due.at;
        self.steps += 1;
        self.carry_out(due.what)?;
        if self.steps.is_multiple_of(64) {
            self.check_promises()?;
        }
        Ok(true)
    }

    pub(super) fn check_promises(&self) -> Checked {
        let outboxes = self.machines.iter().flat_map(|machine| machine.desk.outbox.all());
        let requests = outboxes.map(|entry| &entry.request);
        self.oracle.check_promises(&self.database.ledger, requests)
    }

    fn carry_out(&mut self, what: What) -> Checked {
        match &what {
            What::Service { machine, life, .. } | What::Answered { machine, life, .. } => {
                let node = &self.machines[*machine];
                if !node.on || node.service_life != *life {
                    return Ok(());
                }
                if node.service_stopped_until > self.now {
                    let until = node.service_stopped_until;
                    self.at(until, what);
                    return Ok(());
                }
            }
            What::Desk { machine, life, .. } => {
                let node = &self.machines[*machine];
                if !node.on || node.desk_life != *life {
                    return Ok(());
                }
                if node.desk_stopped_until > self.now {
                    let until = node.desk_stopped_until;
                    self.at(until, what);
                    return Ok(());
                }
            }
            _ => {}
        }
        match what {
            What::Service { machine, call, event, .. } => {
                let node = &self.machines[machine];
                // An answer or the time limit of a call that has ended.
                if call.is_none_or(|call| node.call == call) {
                    self.service(machine, event);
                }
            }
            What::Answered { machine, connection, request, answer, .. } => {
                let node = &self.machines[machine];
                if node.connection == connection && node.request == request {
                    self.service(
                        machine,
                        match answer {
                            Answer::Welcome(welcome) => Event::Welcomed(welcome),
                            Answer::NodeReply(reply) => Event::Replied(reply),
                        },
                    );
                }
            }
            What::Desk { machine, message, .. } => self.desk(machine, message),
            What::Database { connection, machine, request, body } => {
                return self.database_gets(connection, machine, request, body);
            }
            What::Begins { machine, life, unit } => return self.unit_begins(machine, life, unit),
            What::Ends { machine, life, unit } => {
                let node = &self.machines[machine];
                if node.on && node.boot == life && node.units.contains_key(&unit) {
                    self.tell_desk(machine, ToDesk::Ended(unit));
                }
            }
            What::Fault(fault) => self.fault(fault),
        }
        Ok(())
    }

    /// PID 1 starts a unit. The unit compares the clock with its deadline first.
    fn unit_begins(&mut self, machine: usize, life: u64, number: u64) -> Checked {
        let node = &mut self.machines[machine];
        if !node.on || node.boot != life {
            return Ok(());
        }
        let at = node.clock(self.now);
        let Some(unit) = node.units.get_mut(&number) else {
            return Ok(());
        };
        if at >= unit.not_after && self.mutation != Some(Mutation::NoCheckByUnit) {
            self.tell_desk(machine, ToDesk::NotBegun(number));
            return Ok(());
        }
        unit.begun = true;
        let Unit { host, delay, epoch, .. } = unit.clone();
        let takes = if self.random.chance(60) { 90_000 } else { 8_000 };
        let ends = self.now + self.random.range(100, takes);
        self.at(ends, What::Ends { machine, life, unit: number });
        self.tell_desk(machine, ToDesk::Began(number, at));
        self.check_lease(&host, epoch)?;
        self.oracle.started(self.now, &host, delay)
    }

    /// I2: no page starts after the end of its lease by the clock of the database, or under another
    /// lease than the one that the database knows; except while it cannot know, after a failover.
    fn check_lease(&self, host: &HostKey, epoch: Epoch) -> Checked {
        let ledger = &self.database.ledger;
        let now = self.database.clock(self.now);
        let forgets = ledger.server != ledger.server_seen || now < ledger.claims_from;
        let Some(row) = ledger.hosts.get(host).filter(|_| !forgets) else {
            return Ok(());
        };
        if row.epoch == epoch && row.owner.is_some() && now < row.lease_until {
            return Ok(());
        }
        Err(format!("I2: {host} had a start under {epoch} at {now:?}: {row:?}"))
    }

    /// A user adds pages on a machine. They are promised as soon as they are in the outbox.
    pub(super) fn add(&mut self, machine: usize, crawl: CrawlId, count: u64) {
        let pages: Vec<_> = (0..count).map(|_| self.new_page(0)).collect();
        let urls = pages.iter().map(|page| (crawl, page.url.clone()));
        self.oracle.promised.extend(urls);
        let spec = CrawlSpec { max_depth: 2, ..CrawlSpec::default() };
        let submit = Submit { crawl, spec: Some(spec), pages };
        self.machines[machine].desk.outbox.push(NodeRequest::Submit(submit));
        self.tell_service(machine, None, Event::Hint);
        // Before the commit, or long after it: news is only a hint.
        for other in 0..self.machines.len() {
            self.tell_service(other, None, Event::News);
        }
    }

    pub(super) fn new_page(&mut self, depth: u32) -> NewPage {
        self.pages += 1;
        let host = self.random.range(0, HOSTS + 2).saturating_sub(2);
        NewPage {
            url: format!("http://h{host}/{}", self.pages),
            host: HostKey(format!("h{host}")),
            depth,
            given: depth == 0,
            title: None,
            bookmarked_at: None,
            tags: Vec::new(),
        }
    }

    /// Whether all pages are recorded, and every crawl is sealed.
    pub(super) fn is_done(&self) -> bool {
        let ledger = &self.database.ledger;
        let now = self.database.clock(self.now);
        let mut machines = self.machines.iter().filter(|machine| !machine.is_copy);
        machines.all(|machine| machine.desk.outbox.unanswered().next().is_none())
            && ledger.pages.values().all(|page| page.state.is_final())
            && ledger.crawls.keys().all(|crawl| ledger.is_sealed(*crawl, now))
    }
}

impl World {
    /// What keeps a run from its end, for the message of a failure.
    pub(super) fn remaining(&self) -> String {
        let ledger = &self.database.ledger;
        let pages = ledger.pages.iter().filter(|(_, page)| !page.state.is_final());
        let pages: Vec<_> = pages
            .map(|(id, page)| format!("{id} {:?} {:?} of {}", page.state, page.order, page.host()))
            .collect();
        let outboxes = self.machines.iter().map(|machine| machine.desk.outbox.unanswered().count());
        let outboxes: Vec<_> = outboxes.collect();
        format!(
            "pages {pages:?}, crawls {:?}, parts {:?}, outboxes {outboxes:?}, hosts {:?}",
            ledger.crawls, ledger.parts, ledger.hosts
        )
    }
}
