//! The simulated database: a ledger, its clock, its connections, and a replica that lags.

use super::mutation::Mutation;
use super::oracle::{DRIFT_PPM, Rows};
use super::random::Random;
use super::world::LEASE;
use crate::ledger::{DbTime, Ledger, SKIPPED_IDS};
use archivist_core::fleet::{Hello, NodeRefusal, NodeReply, NodeRequest, Session, Welcome};
use std::collections::BTreeSet;

pub(super) struct Database {
    pub(super) ledger: Ledger,
    pub(super) up: bool,
    /// Connections that the server has not noticed to be dead.
    pub(super) connections: BTreeSet<u64>,
    pub(super) replica: Option<(Ledger, Rows)>,
    /// Parts per million that the clock differs from true time, plus one million.
    rate: u64,
    /// Milliseconds.
    offset: u64,
}

impl Database {
    pub(super) fn new(random: &mut Random) -> Database {
        Database {
            ledger: Ledger::new(LEASE),
            up: true,
            connections: BTreeSet::new(),
            replica: None,
            rate: random.range(1_000_000 - DRIFT_PPM, 1_000_001 + DRIFT_PPM),
            offset: random.range(0, 1_000_000_000),
        }
    }

    pub(super) fn clock(&self, now: u64) -> DbTime {
        DbTime(now * self.rate / 1_000_000 + self.offset)
    }

    pub(super) fn hello(
        &mut self,
        now: u64,
        hello: &Hello,
        mutation: Option<Mutation>,
    ) -> Result<Welcome, NodeRefusal> {
        let now = self.clock(now);
        if mutation == Some(Mutation::ClonesAdmitted) {
            let nodes = self.ledger.nodes.values_mut();
            nodes.for_each(|node| node.ended = true);
        }
        let generation = self.ledger.generation;
        let welcome = self.ledger.hello(now, hello);
        if self.ledger.generation != generation {
            match mutation {
                Some(Mutation::NoGrace) => self.ledger.claims_from = DbTime(0),
                Some(Mutation::IdsRepeat) => self.ledger.next_page -= SKIPPED_IDS,
                _ => {}
            }
        }
        welcome
    }

    pub(super) fn apply(
        &mut self,
        now: u64,
        mut session: Session,
        request: &NodeRequest,
        mutation: Option<Mutation>,
    ) -> Result<NodeReply, NodeRefusal> {
        let now = self.clock(now);
        let Some(mutation) = mutation else {
            return self.ledger.apply(now, session, request);
        };
        let mut changed = request.clone();
        mutation.before(now, &mut self.ledger, &mut session, &mut changed);
        let reply = self.ledger.apply(now, session, &changed);
        mutation.after(&mut self.ledger, request);
        reply
    }

    /// The server ends and starts again: all connections are gone, all commits are there.
    pub(super) fn stop(&mut self) {
        self.up = false;
        self.connections.clear();
    }

    /// The replica takes over: everything after its last transaction is forgotten. Its clock may
    /// differ by a second.
    pub(super) fn fail_over(&mut self, random: &mut Random) -> Option<Rows> {
        let (mut ledger, rows) = self.replica.take()?;
        self.stop();
        self.up = true;
        ledger.server = self.ledger.server + 1;
        self.ledger = ledger;
        self.offset = (self.offset + random.range(0, 2_000)).saturating_sub(1_000);
        Some(rows)
    }
}
