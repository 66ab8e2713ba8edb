//! The begin of a connection: names, clones, failovers.

use super::{DbTime, Ledger, NodeRow};
use crate::fleet::service::HEARTBEAT;
use crate::fleet::{Generation, Hello, Incarnation, NodeId, Refusal, SCHEMA, Session, Welcome};
use std::time::Duration;

/// How far ids skip ahead with each generation, more than are given within the transactions that a
/// replica can have lost.
pub const SKIPPED_IDS: i64 = 1_000_000;

/// A node without a request for this long is not connected. A machine that booted faster cannot be
/// told from a clone, and waits.
pub(super) const QUIET: Duration = HEARTBEAT.saturating_mul(3);

/// What clocks may differ by when uptime and the last sign of life of a node are compared, next to
/// 2 % of the uptime.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

impl Ledger {
    /// Begins a connection. Only the row of the node changes; its leases continue.
    pub fn hello(&mut self, now: DbTime, hello: &Hello) -> Result<Welcome, Refusal> {
        if hello.schema < SCHEMA {
            return Err(Refusal::Schema {
                database: SCHEMA,
                program: hello.schema,
            });
        }
        self.notice_failover(now);
        let id = self.admit(now, hello)?;
        let node = self.node_mut(id)?;
        node.incarnation = Incarnation(node.incarnation.0 + 1);
        node.boot.clone_from(&hello.boot);
        node.seen = now;
        node.ended = false;
        node.wanting = 0;
        node.drains = false;
        node.lease = hello.lease;
        let incarnation = node.incarnation;
        let members = self.nodes.values().filter(|node| node.name.is_some());
        if let Some(longest) = members.filter_map(|node| node.lease).max() {
            self.lease = longest;
        }
        let owned = self.hosts.iter().filter(|(_, row)| row.owner == Some(id));
        Ok(Welcome {
            session: Session {
                node: id,
                incarnation,
            },
            generation: self.generation,
            lease: self.lease,
            claims_in: self.claims_from.since(now),
            owned: owned.map(|(key, row)| (key.clone(), row.epoch)).collect(),
        })
    }

    /// Returns the node of this name, a new one if there is none.
    fn admit(&mut self, now: DbTime, hello: &Hello) -> Result<NodeId, Refusal> {
        let mut nodes = self.nodes.iter();
        let known = nodes.find(|(_, node)| node.name.as_deref() == Some(&*hello.name));
        let Some((id, node)) = known else {
            return Ok(self.join(hello));
        };
        let name = hello.name.clone();
        if node.machine != hello.machine {
            return Err(Refusal::NameTaken { name });
        }
        match self.is_clone(now, node, hello) {
            Some(retry_in) => Err(Refusal::Cloned { name, retry_in }),
            None => Ok(*id),
        }
    }

    /// Returns how long to refuse a machine that may not be the rebooted machine of the node: the
    /// earlier boot was seen after the new one began, or just now.
    fn is_clone(&self, now: DbTime, node: &NodeRow, hello: &Hello) -> Option<Duration> {
        let quiet = now.since(node.seen);
        let slack = hello.uptime / 50 + CLOCK_SLACK;
        let wait = if quiet + slack < hello.uptime {
            self.lease
        } else {
            QUIET.min(self.lease)
        };
        let is_successor = node.boot == hello.boot || node.ended || quiet >= wait;
        (!is_successor).then(|| wait.saturating_sub(quiet))
    }

    /// Adds a node. A machine that has left is the node that it was: its pages name it.
    fn join(&mut self, hello: &Hello) -> NodeId {
        let mut former = self.nodes.iter_mut().rev();
        let former = former.find(|(_, node)| node.name.is_none() && node.machine == hello.machine);
        if let Some((id, node)) = former {
            node.name = Some(hello.name.clone());
            node.draining = false;
            return *id;
        }
        let last = self.nodes.keys().next_back();
        let id = NodeId(last.map_or(1, |last| last.0 + 1));
        let node = NodeRow {
            name: Some(hello.name.clone()),
            machine: hello.machine.clone(),
            boot: hello.boot.clone(),
            incarnation: Incarnation(0),
            seen: DbTime(0),
            ended: false,
            draining: false,
            wanting: 0,
            drains: false,
            lease: None,
        };
        self.nodes.insert(id, node);
        id
    }

    /// Begins another generation if the server is not the one of the latest hello. For one lease,
    /// nothing is claimed: all leases that the database has forgotten end in it.
    fn notice_failover(&mut self, now: DbTime) {
        if self.server == self.server_seen {
            return;
        }
        self.server_seen = self.server;
        // A replica may lack an earlier failover, but never the timelines before its own.
        let timeline = i64::try_from(self.server).unwrap_or(i64::MAX);
        let generation = Generation(timeline.max(self.generation.0 + 1));
        let skipped = SKIPPED_IDS * (generation.0 - self.generation.0);
        self.generation = generation;
        self.claims_from = now.after(self.lease);
        self.next_crawl += skipped;
        self.next_page += skipped;
    }
}
