//! What connects the processes: calls between orchestrator and fleet service, and the network to the
//! database, which loses, delays and repeats.

use super::oracle::Checked;
use super::world::{Answer, Body, ToDesk, What, World};
use archivist_core::fleet::Delivery;
use archivist_core::fleet::service::Event;

/// Time that a client waits for a reply of the database.
const REPLY_TIMEOUT: u64 = 10_000;
/// Time that the fleet service waits for the orchestrator.
const BUS_TIMEOUT: u64 = 25_000;

impl World {
    pub(super) fn tell_desk(&mut self, machine: usize, message: ToDesk) {
        let life = self.machines[machine].desk_life;
        self.soon(What::Desk { machine, life, message });
    }

    pub(super) fn tell_service(&mut self, machine: usize, call: Option<u64>, event: Event) {
        let life = self.machines[machine].service_life;
        self.soon(What::Service { machine, life, call, event });
    }

    /// Calls the service back after a time, unless it has gone on to another call.
    pub(super) fn time_limit(&mut self, machine: usize, call: u64, after: u64, event: Event) {
        let life = self.machines[machine].service_life;
        let at = self.now + after;
        self.at(at, What::Service { machine, life, call: Some(call), event });
    }

    pub(super) fn call_desk(&mut self, machine: usize, delivery: Option<Delivery>) {
        let node = &mut self.machines[machine];
        node.call += 1;
        let call = node.call;
        self.time_limit(machine, call, BUS_TIMEOUT, Event::Failed);
        self.tell_desk(
            machine,
            match delivery {
                Some(delivery) => ToDesk::Deliver(call, delivery),
                None => ToDesk::Ask(call),
            },
        );
    }

    pub(super) fn connect(&mut self, machine: usize) {
        self.machines[machine].call += 1;
        let call = self.machines[machine].call;
        if !self.database.up || self.is_cut(machine) {
            let after = self.random.range(1, REPLY_TIMEOUT);
            self.time_limit(machine, call, after, Event::Disconnected);
            return;
        }
        self.connections += 1;
        self.machines[machine].connection = self.connections;
        self.database.connections.insert(self.connections);
        self.tell_service(machine, Some(call), Event::Connected);
    }

    pub(super) fn is_cut(&self, machine: usize) -> bool {
        self.machines[machine].cut_until > self.now
    }

    /// Sends a request to the database, through the weather.
    pub(super) fn send(&mut self, machine: usize, body: Body) {
        let node = &mut self.machines[machine];
        node.call += 1;
        node.request += 1;
        let (call, connection, request) = (node.call, node.connection, node.request);
        self.time_limit(machine, call, REPLY_TIMEOUT, Event::Disconnected);
        if self.is_cut(machine) || self.random.chance(self.weather.lost) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.weather.twice));
        for copy in 0..copies {
            let is_late = copy > 0 || self.random.chance(self.weather.late);
            let longest = if is_late { 40_000 } else { 60 };
            let at = self.now + self.random.range(1, longest);
            let body = body.clone();
            self.at(at, What::Database { connection, machine, request, body });
        }
    }

    pub(super) fn database_gets(
        &mut self,
        connection: u64,
        machine: usize,
        request: u64,
        body: Body,
    ) -> Checked {
        if !self.database.up || !self.database.connections.contains(&connection) {
            return Ok(());
        }
        let now = self.now;
        let answer = match body {
            Body::Hello(hello) => Answer::Welcome(self.database.hello(now, &hello, self.mutation)),
            Body::NodeRequest(session, asked) => {
                let reply = self.database.apply(now, session, &asked, self.mutation);
                if let Ok(reply) = &reply {
                    let ledger = &self.database.ledger;
                    self.oracle.carried_out(ledger, session, &asked, reply)?;
                }
                Answer::NodeReply(reply)
            }
        };
        if self.is_cut(machine) || self.random.chance(self.weather.lost) {
            return Ok(());
        }
        let is_late = self.random.chance(self.weather.late);
        let longest = if is_late { 9_000 } else { 60 };
        let at = now + self.random.range(1, longest);
        let life = self.machines[machine].service_life;
        self.at(at, What::Answered { machine, life, connection, request, answer });
        Ok(())
    }
}
