//! Faults: what goes wrong in a run, and when. All have ended before the time of [`LAST`].

use super::machine::Machine;
use super::world::{LEASE, Weather, What, World};
use archivist_core::fleet::{Command, CommandVerb, NodeId, NodeRequest, Session};
use archivist_core::model::{CrawlId, Owner, SnapshotId};

/// Time from the begin of a run to the end of the last fault, in milliseconds.
pub(super) const LAST: u64 = 400_000;

#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The network between machine and database is cut for this time.
    Cut(usize, u64),
    /// SIGSTOP of the orchestrator, the fleet service, or both, then SIGCONT.
    Stop {
        machine: usize,
        desk: bool,
        service: bool,
        length: u64,
    },
    PowerOff(usize),
    Boot(usize),
    KillService(usize),
    KillDesk(usize),
    StopDatabase,
    StartDatabase,
    Replicate,
    FailOver,
    /// A copy of this machine boots.
    Clone(usize),
    CloneEnds,
    Drain(usize, bool),
    Command(CommandVerb),
    Add(usize, CrawlId, u64),
    Weather(Weather),
}

impl World {
    /// Sets up machines and crawls, and plans the faults of this seed.
    pub(super) fn plan(&mut self) {
        let nodes = 2 + self.random.index(2);
        for number in 0..nodes {
            let (name, id) = (format!("web{number}"), format!("machine{number}"));
            let machine = Machine::new(&name, &id, &mut self.random);
            self.machines.push(machine);
            let after = self.random.range(0, 3_000);
            self.later(after, Fault::Boot(number));
        }
        for crawl in 1..=5 {
            let machine = self.random.index(nodes);
            let after = self.random.range(1, if crawl < 3 { 30_000 } else { 200_000 });
            let pages = self.random.range(1, 6);
            self.later(after, Fault::Add(machine, CrawlId(crawl), pages));
        }
        if self.seed.is_multiple_of(12) {
            let after = self.random.range(20_000, 150_000);
            self.later(after, Fault::Clone(0));
            self.later(after + 100_000, Fault::CloneEnds);
            return;
        }
        let weather = Weather {
            lost: self.random.range(0, 40),
            late: self.random.range(0, 60),
            twice: self.random.range(0, 40),
        };
        self.later(1, Fault::Weather(weather));
        self.later(LAST, Fault::Weather(Weather::default()));
        self.stops_in_turn = self.random.range(0, 60);
        for _ in 0..self.random.range(1, 7) {
            let at = self.random.range(5_000, LAST - 200_000);
            self.plan_fault(at, nodes);
        }
    }

    fn plan_fault(&mut self, at: u64, nodes: usize) {
        let machine = self.random.index(nodes);
        let lease = LEASE.as_millis() as u64;
        let length = self.random.range(1_000, 3 * lease);
        match self.random.index(12) {
            0 | 1 => self.later(at, Fault::Cut(machine, length)),
            2..=4 => {
                let (desk, service) =
                    [(true, false), (false, true), (true, true)][self.random.index(3)];
                let stop = Fault::Stop { machine, desk, service, length };
                self.later(at, stop);
            }
            5 | 6 => {
                let is_short = self.random.chance(500);
                let length = if is_short { length / 10 } else { length };
                self.later(at, Fault::PowerOff(machine));
                self.later(at + length.max(6_000), Fault::Boot(machine));
            }
            7 => self.later(at, Fault::KillService(machine)),
            8 => self.later(at, Fault::KillDesk(machine)),
            9 => {
                self.later(at, Fault::StopDatabase);
                self.later(at + length, Fault::StartDatabase);
            }
            10 => {
                let lag = self.random.range(100, 20_000);
                self.later(at, Fault::Replicate);
                self.later(at + lag, Fault::FailOver);
            }
            _ => self.plan_command(at, length, machine),
        }
    }

    fn plan_command(&mut self, at: u64, length: u64, machine: usize) {
        match self.random.index(4) {
            0 => {
                self.later(at, Fault::Drain(machine, true));
                self.later(at + length, Fault::Drain(machine, false));
            }
            1 => {
                self.later(at, Fault::Command(CommandVerb::Pause));
                // All crawls and pages.
                self.later(at + length, Fault::Command(CommandVerb::Resume));
            }
            2 => self.later(at, Fault::Command(CommandVerb::Cancel)),
            _ => self.later(at, Fault::Command(CommandVerb::Retry)),
        }
    }

    fn later(&mut self, after: u64, fault: Fault) {
        self.at(self.now + after, What::Fault(fault));
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Cut(machine, length) => self.machines[machine].cut_until = now + length,
            Fault::Stop { machine, desk, service, length } => {
                let node = &mut self.machines[machine];
                if desk {
                    node.desk_stopped_until = node.desk_stopped_until.max(now + length);
                }
                if service {
                    node.service_stopped_until = node.service_stopped_until.max(now + length);
                }
            }
            Fault::PowerOff(machine) => self.power_off(machine),
            Fault::Boot(machine) if !self.machines[machine].on => self.boot(machine),
            Fault::Boot(_) => {}
            Fault::KillService(machine) if self.machines[machine].on => {
                self.start_service(machine);
            }
            Fault::KillDesk(machine) if self.machines[machine].on => self.restart_desk(machine),
            Fault::KillService(_) | Fault::KillDesk(_) => {}
            Fault::StopDatabase => self.database.stop(),
            Fault::StartDatabase => self.database.up = true,
            Fault::Replicate => {
                let rows = self.oracle.rows.clone();
                self.database.replica = Some((self.database.ledger.clone(), rows));
            }
            Fault::FailOver => {
                if let Some(rows) = self.database.fail_over(&mut self.random) {
                    self.oracle.rows = rows;
                }
            }
            Fault::Clone(machine) => {
                let copy = self.machines[machine].copy(&mut self.random);
                self.machines.push(copy);
                self.boot(self.machines.len() - 1);
            }
            Fault::CloneEnds => self.power_off(self.machines.len() - 1),
            Fault::Drain(machine, draining) => self.drain(machine, draining),
            Fault::Command(verb) => self.command(verb),
            Fault::Add(machine, crawl, pages) => self.add(machine, crawl, pages),
            Fault::Weather(weather) => {
                self.weather = weather;
                self.stops_in_turn = if weather.twice + weather.late + weather.lost > 0 {
                    self.stops_in_turn
                } else {
                    0
                };
            }
        }
    }

    /// A user drains a node, on any machine.
    fn drain(&mut self, machine: usize, draining: bool) {
        let name = self.machines[machine].name.clone();
        let nodes = self.database.ledger.nodes.iter();
        let mut named = nodes.filter(|(_, node)| node.name.as_deref() == Some(&*name));
        if let Some(node) = named.next().map(|(id, _)| *id) {
            self.by_user(&NodeRequest::Drain { node, draining });
        }
    }

    /// A user gives a command; a resume is for everything.
    fn command(&mut self, verb: CommandVerb) {
        let ledger = &self.database.ledger;
        let crawls: Vec<_> = ledger.crawls.keys().map(|id| Owner::Crawl(*id)).collect();
        let pages: Vec<_> = ledger.pages.keys().map(|id| Owner::Snapshot(*id)).collect();
        let targets = if verb == CommandVerb::Resume {
            [crawls, pages].concat()
        } else if self.random.chance(300) {
            let crawl = crawls.get(self.random.index(crawls.len().max(1)));
            crawl.copied().into_iter().collect()
        } else {
            let page = pages.get(self.random.index(pages.len().max(1)));
            page.copied().into_iter().collect()
        };
        for target in targets {
            // A cancelled crawl takes no further pages: those that were promised must be there.
            if let (CommandVerb::Cancel, Owner::Crawl(crawl)) = (verb, target)
                && !self.has_all(crawl)
            {
                continue;
            }
            self.by_user(&NodeRequest::Command(Command { verb, target }));
            self.oracle.retried(&self.database.ledger);
        }
    }

    fn has_all(&self, crawl: CrawlId) -> bool {
        let has = |url: &str| {
            let mut pages = self.database.ledger.pages.values();
            pages.any(|page| page.crawl == crawl && page.page.url == url)
        };
        let promised = self.oracle.promised.iter().filter(|(of, _)| *of == crawl);
        let urls: Vec<_> = promised.collect();
        !urls.is_empty() && urls.iter().all(|(_, url)| has(url))
    }

    /// Carries out a request of a user through the node that the database knows first.
    fn by_user(&mut self, request: &NodeRequest) {
        let mut nodes = self.database.ledger.nodes.iter();
        let session =
            nodes.next().map(|(id, node)| Session { node: *id, incarnation: node.incarnation });
        if let Some(session) = session.filter(|_| self.database.up) {
            let _ = self.database.apply(self.now, session, request, None);
        }
    }

    /// The drains and pauses that a failover or an outage has swallowed end, too.
    pub(super) fn end_faults(&mut self) {
        let nodes: Vec<NodeId> = self.database.ledger.nodes.keys().copied().collect();
        for node in nodes {
            self.by_user(&NodeRequest::Drain { node, draining: false });
        }
        self.command(CommandVerb::Resume);
    }

    pub(super) fn page_count(&self) -> usize {
        let pages: Vec<SnapshotId> = self.database.ledger.pages.keys().copied().collect();
        pages.len()
    }
}
