//! A simulated machine: its clock, its orchestrator, its fleet service, its units.

use super::oracle::DRIFT_PPM;
use super::random::Random;
use super::world::{Body, HOST_DELAY, LONG_DELAY, ToDesk, What, World};
use crate::{Desk, NodeLease, Room, Standing, Stop};
use archivist_core::fleet::service::{Action, Event, Service};
use archivist_core::fleet::{
    BootTime, Delivery, Epoch, Fate, Hello, HostKey, NodeId, NodeReply, NodeRequest, PageEnd,
    PageTimes, Record, SCHEMA,
};
use archivist_core::model::SnapshotId;
use std::collections::BTreeMap;
use std::time::Duration;

const ROOM: Room = Room { hosts: 3, slots: 3, pages_per_host: 5, delay: HOST_DELAY };

/// Units that a machine runs concurrently.
const SLOTS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) page: SnapshotId,
    pub(super) host: HostKey,
    pub(super) epoch: Epoch,
    pub(super) delay: Duration,
    pub(super) not_after: BootTime,
    pub(super) begun: bool,
}

pub(super) struct Machine {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) on: bool,
    pub(super) boot: u64,
    boot_at: u64,
    /// Parts per million.
    rate: u64,
    pub(super) desk: Desk,
    pub(super) desk_life: u64,
    pub(super) desk_stopped_until: u64,
    service: Service,
    pub(super) service_life: u64,
    pub(super) service_stopped_until: u64,
    /// Number of the call of the service that waits for an answer.
    pub(super) call: u64,
    pub(super) connection: u64,
    pub(super) request: u64,
    pub(super) cut_until: u64,
    pub(super) units: BTreeMap<u64, Unit>,
    unit_number: u64,
    turn: u64,
    /// Its disk was copied from another machine.
    pub(super) is_copy: bool,
}

impl Machine {
    pub(super) fn new(name: &str, id: &str, random: &mut Random) -> Machine {
        Machine {
            name: name.into(),
            id: id.into(),
            on: false,
            boot: 0,
            boot_at: 0,
            rate: random.range(1_000_000 - DRIFT_PPM, 1_000_001 + DRIFT_PPM),
            desk: Desk::default(),
            desk_life: 0,
            desk_stopped_until: 0,
            service: Service::default(),
            service_life: 0,
            service_stopped_until: 0,
            call: 0,
            connection: 0,
            request: 0,
            cut_until: 0,
            units: BTreeMap::new(),
            unit_number: 0,
            turn: 0,
            is_copy: false,
        }
    }

    /// A machine with the disk of this one.
    pub(super) fn copy(&self, random: &mut Random) -> Machine {
        Machine {
            desk: self.desk.clone(),
            is_copy: true,
            ..Machine::new(&self.name, &self.id, random)
        }
    }

    /// The end of a page that this delivery lets the machine discard.
    fn discarded_by(&self, delivery: &Delivery) -> Option<(SnapshotId, NodeId, Epoch)> {
        let Delivery::Answered { number, reply } = delivery else {
            return None;
        };
        let mut entries = self.desk.outbox.all();
        let entry = entries.find(|entry| entry.number == *number)?;
        let NodeRequest::Record(record) = &entry.request else {
            return None;
        };
        let is_stale = *reply == Ok(NodeReply::Recorded(Fate::Stale));
        is_stale.then_some((record.page, self.desk.node?, record.epoch))
    }

    /// CLOCK_BOOTTIME.
    pub(super) fn clock(&self, now: u64) -> BootTime {
        BootTime((now - self.boot_at) * self.rate / 1_000_000)
    }

    /// The true time of a time on the clock, rounded up.
    fn true_time(&self, at: BootTime) -> u64 {
        self.boot_at + at.0.min(1 << 40) * 1_000_000 / self.rate + 1
    }
}

impl World {
    pub(super) fn boot(&mut self, machine: usize) {
        let started = self.now - self.random.range(2_000, 5_000);
        let node = &mut self.machines[machine];
        node.on = true;
        node.boot += 1;
        node.boot_at = started;
        node.desk_life += 1;
        node.units.clear();
        node.connection = 0;
        let now = node.clock(self.now);
        node.desk.rebooted(now);
        if self.mutation == Some(super::mutation::Mutation::RebootForgetsStarts) {
            let leases = node.desk.leases.values_mut();
            leases.for_each(|lease| lease.next_at = BootTime(0));
        }
        self.start_service(machine);
        self.turn(machine);
    }

    pub(super) fn power_off(&mut self, machine: usize) {
        let node = &mut self.machines[machine];
        node.on = false;
        node.units.clear();
        node.desk_stopped_until = 0;
        node.service_stopped_until = 0;
    }

    pub(super) fn start_service(&mut self, machine: usize) {
        let node = &mut self.machines[machine];
        node.service = Service::default();
        node.service_life += 1;
        node.connection = 0;
        node.call += 1;
        self.tell_service(machine, None, Event::Tick);
    }

    /// The orchestrator is killed and started again: calls to it fail, units run on.
    pub(super) fn restart_desk(&mut self, machine: usize) {
        let node = &mut self.machines[machine];
        node.desk_life += 1;
        node.desk_stopped_until = self.now + 500;
        let lost: Vec<_> = node.units.iter().filter(|(_, unit)| !unit.begun).collect();
        let lost: Vec<_> = lost.into_iter().map(|(number, _)| *number).collect();
        let ended: Vec<_> = node.units.keys().copied().collect();
        let call = node.call;
        self.tell_service(machine, Some(call), Event::Failed);
        // It lists its units: those that ended meanwhile are read, starts that were not made failed.
        for unit in ended {
            if lost.contains(&unit) {
                self.tell_desk(machine, ToDesk::NotBegun(unit));
            } else {
                let takes = self.random.range(600, 9_000);
                let life = self.machines[machine].boot;
                self.at(self.now + takes, What::Ends { machine, life, unit });
            }
        }
        let turn = self.machines[machine].turn;
        self.tell_desk(machine, ToDesk::Turn(turn));
    }

    /// The fleet service gets an event.
    pub(super) fn service(&mut self, machine: usize, event: Event) {
        let jitter = self.random.unit();
        let node = &mut self.machines[machine];
        let now = node.clock(self.now);
        let actions = node.service.handle(now, jitter, event);
        for action in actions {
            self.perform(machine, now, action);
        }
    }

    fn perform(&mut self, machine: usize, now: BootTime, action: Action) {
        match action {
            Action::Connect => self.connect(machine),
            Action::Disconnect => {
                let node = &mut self.machines[machine];
                node.connection = 0;
                node.call += 1;
            }
            Action::Hello => {
                let node = &self.machines[machine];
                let hello = Hello {
                    name: node.name.clone(),
                    machine: node.id.clone(),
                    boot: format!("{}-{}", machine, node.boot),
                    uptime: Duration::from_millis(now.0),
                    schema: SCHEMA,
                    lease: None,
                    memory: node.desk.memory(),
                };
                self.send(machine, Body::Hello(hello));
            }
            Action::Send(session, request) => {
                self.send(machine, Body::NodeRequest(session, request))
            }
            Action::Ask => self.call_desk(machine, None),
            Action::Deliver(Delivery::Refused { .. }) => {}
            Action::Deliver(delivery) => {
                self.call_desk(machine, Some(delivery));
            }
            Action::Wake(at) => {
                let node = &mut self.machines[machine];
                node.call += 1;
                let (call, at) = (node.call, node.true_time(at));
                let after = at.saturating_sub(self.now);
                self.time_limit(machine, call, after, Event::Tick);
            }
        }
    }

    /// The orchestrator gets a message.
    pub(super) fn desk(&mut self, machine: usize, message: ToDesk) {
        let node = &mut self.machines[machine];
        let now = node.clock(self.now);
        match message {
            ToDesk::Ask(call) => {
                let holdings = node.desk.holdings(now, ROOM);
                self.tell_service(machine, Some(call), Event::Holdings(holdings));
            }
            ToDesk::Deliver(call, mut delivery) => {
                if let Some(mutation) = self.mutation {
                    mutation.delivery(now, &mut delivery);
                }
                let discarded = node.discarded_by(&delivery);
                self.oracle.discarded.extend(discarded);
                let former = self.mutation.map(|mutation| (mutation, node.desk.clone()));
                let stops = node.desk.deliver(now, delivery, ROOM);
                if let Some((mutation, former)) = former {
                    mutation.desk(&former, &mut node.desk);
                }
                self.stop_units(machine, stops);
                self.tell_service(machine, Some(call), Event::Delivered);
            }
            ToDesk::Began(unit, at) => {
                if let Some(unit) = node.units.get(&unit) {
                    node.desk.started(unit.page, at);
                }
            }
            ToDesk::NotBegun(unit) => {
                if let Some(unit) = node.units.remove(&unit) {
                    node.desk.requeue(unit.page);
                }
            }
            ToDesk::Ended(unit) => {
                if let Some(unit) = node.units.remove(&unit) {
                    self.record(machine, unit.page, unit.epoch, PageEnd::Sealed);
                }
            }
            ToDesk::Turn(turn) if turn != node.turn => return,
            ToDesk::Turn(_) => {}
        }
        self.turn(machine);
    }

    fn stop_units(&mut self, machine: usize, stops: Vec<Stop>) {
        for stop in stops {
            let node = &mut self.machines[machine];
            let (Stop::Requeue(page) | Stop::Discard(page) | Stop::Cancel(page)) = stop;
            let unit = node.units.iter().find(|(_, unit)| unit.page == page);
            let unit = unit.map(|(number, unit)| (*number, unit.epoch));
            let Some((number, epoch)) = unit else {
                continue;
            };
            node.units.remove(&number);
            if matches!(stop, Stop::Cancel(_)) {
                self.record(machine, page, epoch, PageEnd::Cancelled);
            }
        }
    }

    fn record(&mut self, machine: usize, page: SnapshotId, epoch: Epoch, end: PageEnd) {
        let node = &self.machines[machine];
        let Some(leased) = node.desk.pages.get(&page).map(|page| page.leased.clone()) else {
            return;
        };
        let found = if end == PageEnd::Sealed && leased.page.depth < 2 && self.pages < 36 {
            self.random.range(0, 3)
        } else {
            0
        };
        let depth = leased.page.depth + 1;
        let children = (0..found).map(|_| self.new_page(depth)).collect();
        let node = &mut self.machines[machine];
        if leased.page.host.0 == "h0"
            && let Some(lease) = node.desk.leases.get_mut(&leased.page.host)
        {
            lease.asked(Some(LONG_DELAY), None);
        }
        let now = node.clock(self.now);
        let record = Record {
            page,
            epoch,
            end,
            reason: None,
            directory: Some(format!("{page}")),
            results: Vec::new(),
            children,
            times: PageTimes::default(),
        };
        let is_sent = node.desk.end(record, now);
        if is_sent {
            self.tell_service(machine, None, Event::Hint);
        }
    }

    /// The orchestrator decides: what stops, what starts, when the next decision is due.
    pub(super) fn turn(&mut self, machine: usize) {
        let node = &mut self.machines[machine];
        let now = node.clock(self.now);
        let stops = node.desk.stops(now);
        self.stop_units(machine, stops);
        let node = &mut self.machines[machine];
        for page in node.desk.cancelled() {
            let epoch = self.machines[machine].desk.pages[&page].epoch;
            self.record(machine, page, epoch, PageEnd::Cancelled);
        }
        self.start_units(machine, now);
        let node = &mut self.machines[machine];
        let crawls: Vec<_> = node.desk.crawls.iter().copied().collect();
        for crawl in crawls {
            node.desk.close(crawl);
        }
        let waits = node.desk.pages.keys().filter_map(|id| {
            let standing = node.desk.standing(*id, now)?;
            match standing {
                Standing::Wait(at) => Some(at),
                Standing::Free { not_after } => Some(not_after),
                Standing::Ended => None,
            }
        });
        let deadlines = node.desk.leases.values().map(|lease| lease.deadline);
        let next = waits.chain(deadlines).filter(|at| *at > now).min();
        if let Some(next) = next {
            node.turn += 1;
            let (life, turn, at) = (node.desk_life, node.turn, node.true_time(next));
            let message = ToDesk::Turn(turn);
            self.at(at, What::Desk { machine, life, message });
        }
    }

    fn start_units(&mut self, machine: usize, now: BootTime) {
        let pages: Vec<_> = self.machines[machine].desk.pages.keys().copied().collect();
        for page in pages {
            let node = &mut self.machines[machine];
            let host = node.desk.pages[&page].leased.page.host.clone();
            if node.units.len() >= SLOTS {
                break;
            }
            let Some(Standing::Free { not_after }) = node.desk.standing(page, now) else {
                continue;
            };
            node.desk.start(page, now);
            node.unit_number += 1;
            let unit = Unit {
                page,
                epoch: node.desk.pages[&page].epoch,
                delay: node.desk.leases[&host].delay,
                host,
                not_after,
                begun: false,
            };
            let (number, life) = (node.unit_number, node.boot);
            node.units.insert(number, unit);
            let mut after = self.random.range(2, 60);
            // The orchestrator is stopped between its decision and the call.
            if self.random.chance(self.stops_in_turn) {
                after += self.random.range(1_000, 100_000);
                let node = &mut self.machines[machine];
                node.desk_stopped_until = node.desk_stopped_until.max(self.now + after);
            }
            self.at(self.now + after, What::Begins { machine, life, unit: number });
        }
    }
}
