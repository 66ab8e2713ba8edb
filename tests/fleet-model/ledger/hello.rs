//! The begin of a connection: names, clones, failovers.

use super::{DbTime, Ledger, NodeRow, PageRow, PageState};
use archivist_core::fleet::service::HEARTBEAT;
use archivist_core::fleet::{
    Found, Generation, Hello, Incarnation, Memory, NodeId, NodeRefusal, SCHEMA, Session, Welcome,
};
use archivist_core::model::IdMarks;
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
    pub fn hello(&mut self, now: DbTime, hello: &Hello) -> Result<Welcome, NodeRefusal> {
        if hello.schema < SCHEMA {
            return Err(NodeRefusal::Schema { database: SCHEMA, program: hello.schema });
        }
        self.notice_failover(now);
        if let Some(memory) = &hello.memory {
            self.notice_return(memory, &hello.machine)?;
        }
        if self.went_back {
            return Err(NodeRefusal::WentBack);
        }
        let id = self.admit(now, hello)?;
        let generation = self.generation;
        let node = self.node_mut(id)?;
        let memory = hello.memory.as_ref();
        node.lost_from = match memory.filter(|memory| memory.generation != generation) {
            Some(_) => node.lost_from.or(Some(node.seen)),
            None => None,
        };
        let lost_from = node.lost_from;
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
        if let Some(memory) = memory {
            self.skip_ids(memory.highest, 0);
        }
        let owned = self.hosts.iter().filter(|(_, row)| row.owner == Some(id));
        Ok(Welcome {
            session: Session { node: id, incarnation },
            generation: self.generation,
            lease: self.lease,
            claims_in: self.claims_from.since(now),
            owned: owned.map(|(key, row)| (key.clone(), row.epoch)).collect(),
            forgot: lost_from.map(|lost_from| now.since(lost_from)),
        })
    }

    /// Refuses a node that remembers a later state of the database, and from then on all of them. A machine
    /// that the database does not know proves nothing about others.
    fn notice_return(&mut self, memory: &Memory, machine: &str) -> Result<(), NodeRefusal> {
        if !self.went_back && !memory.contradicts(&self.found(memory)) {
            return Ok(());
        }
        let row = self.nodes.get(&memory.node);
        let is_known = row.is_some_and(|row| row.machine == machine);
        if is_known && !self.went_back {
            self.went_back = true;
            self.end_sessions();
        }
        let known = &mut self.remembered;
        known.generation = known.generation.max(memory.generation);
        known.highest = known.highest.or_higher(memory.highest);
        Err(NodeRefusal::WentBack)
    }

    fn found(&self, memory: &Memory) -> Found {
        let has_record = |(page, epoch)| {
            let row = self.pages.get(&page);
            let is_before = |row: &PageRow| {
                row.state == PageState::Open(memory.node) && !row.copies.contains(&memory.node)
            };
            row.is_some_and(|row| row.epoch > epoch || row.epoch == epoch && !is_before(row))
        };
        let mut claims = memory.claims();
        Found {
            generation: self.generation,
            has_node: self.nodes.contains_key(&memory.node),
            next_crawl: self.next_crawl,
            next_page: self.next_page,
            has_submitted: memory.submitted.is_none_or(|crawl| self.crawls.contains_key(&crawl)),
            has_recorded: memory.recorded.is_none_or(has_record),
            has_claimed: claims.all(|(host, epoch)| {
                let row = self.hosts.get(host);
                row.is_some_and(|row| row.epoch >= *epoch)
            }),
        }
    }

    /// Begins another generation, because an administrator says that the database was restored: as after a
    /// failover, but above everything that nodes remember.
    pub fn restored(&mut self, now: DbTime) {
        self.server_seen = self.server;
        let before = self.generation.max(self.remembered.generation);
        let timeline = i64::try_from(self.server).unwrap_or(i64::MAX);
        self.generation = Generation(timeline.max(before.0 + 1));
        self.claims_from = now.after(self.lease);
        self.skip_ids(self.remembered.highest, SKIPPED_IDS);
        self.went_back = false;
        self.end_sessions();
    }

    /// Gives no id up to `highest`, nor any of the next ones.
    fn skip_ids(&mut self, highest: IdMarks, next: i64) {
        self.next_crawl = self.next_crawl.max(highest.crawl.0 + 1) + next;
        self.next_page = self.next_page.max(highest.snapshot.0 + 1) + next;
    }

    /// Refuses the requests of all connections: each node has to say hello again.
    fn end_sessions(&mut self) {
        for node in self.nodes.values_mut() {
            node.incarnation = Incarnation(node.incarnation.0 + 1);
        }
    }

    /// Returns the node of this name, a new one if there is none.
    fn admit(&mut self, now: DbTime, hello: &Hello) -> Result<NodeId, NodeRefusal> {
        let mut nodes = self.nodes.iter();
        let known = nodes.find(|(_, node)| node.name.as_deref() == Some(&*hello.name));
        let Some((id, node)) = known else {
            return Ok(self.join(hello));
        };
        let name = hello.name.clone();
        if node.machine != hello.machine {
            return Err(NodeRefusal::NameTaken { name });
        }
        match self.is_clone(now, node, hello) {
            Some(retry_in) => Err(NodeRefusal::Cloned { name, retry_in }),
            None => Ok(*id),
        }
    }

    /// Returns how long to refuse a machine that may not be the rebooted machine of the node: the
    /// earlier boot was seen after the new one began, or just now.
    fn is_clone(&self, now: DbTime, node: &NodeRow, hello: &Hello) -> Option<Duration> {
        let quiet = now.since(node.seen);
        let slack = hello.uptime / 50 + CLOCK_SLACK;
        let wait = if quiet + slack < hello.uptime { self.lease } else { QUIET.min(self.lease) };
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
            lost_from: None,
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
