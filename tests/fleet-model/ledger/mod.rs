//! The ledger: what the database does for each request, as a state machine of values. It is the
//! reference for the SQL statements and the database of the simulation; no program uses it.
//!
//! [`Ledger::hello`] and [`Ledger::apply`] are one transaction each. Rows are public, so that tests
//! can compare them with those of PostgreSQL.

mod claim;
mod command;
mod hello;
mod page;
mod recall;
mod rows;

pub use hello::SKIPPED_IDS;
pub use rows::{CrawlRow, CrawlState, DbTime, HostRow, NodeRow, PageRow, PageState, Remembered};

use archivist_core::fleet::{
    Fate, Generation, HostKey, LeasedPage, NodeId, NodeRefusal, NodeReply, NodeRequest, Orders,
    Renewal, Renewed, Session,
};
use archivist_core::model::{CrawlId, SnapshotId};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub lease: Duration,
    /// Timeline of the server at present: grows with each promotion of a replica.
    pub server: u64,
    /// The same at the latest hello.
    pub server_seen: u64,
    pub generation: Generation,
    /// The database went back to an earlier state, and all nodes are refused until that is declared.
    pub went_back: bool,
    /// The highest generation and ids that nodes remembered when they were refused for that.
    pub remembered: Remembered,
    /// Nothing is claimed before this time.
    pub claims_from: DbTime,
    pub next_crawl: i64,
    pub next_page: i64,
    pub nodes: BTreeMap<NodeId, NodeRow>,
    pub crawls: BTreeMap<CrawlId, CrawlRow>,
    pub hosts: BTreeMap<HostKey, HostRow>,
    pub pages: BTreeMap<SnapshotId, PageRow>,
    /// Nodes that took part in a crawl; `true` if they have closed it.
    pub parts: BTreeMap<(CrawlId, NodeId), bool>,
}

impl Ledger {
    /// Returns an empty database with leases of this duration.
    pub fn new(lease: Duration) -> Ledger {
        Ledger {
            lease,
            server: 0,
            server_seen: 0,
            generation: Generation(0),
            went_back: false,
            remembered: Remembered::default(),
            claims_from: DbTime(0),
            next_crawl: 1,
            next_page: 1,
            nodes: BTreeMap::new(),
            crawls: BTreeMap::new(),
            hosts: BTreeMap::new(),
            pages: BTreeMap::new(),
            parts: BTreeMap::new(),
        }
    }

    /// Carries out a request. A refusal changes nothing.
    pub fn apply(
        &mut self,
        now: DbTime,
        session: Session,
        request: &NodeRequest,
    ) -> Result<NodeReply, NodeRefusal> {
        self.check(session)?;
        let me = session.node;
        let reply = match request {
            NodeRequest::ReserveCrawls { count } => self.reserve_crawls(*count),
            NodeRequest::Submit(submit) => {
                NodeReply::Submitted { inserted: self.submit(now, submit)? }
            }
            NodeRequest::Claim(claim) => NodeReply::Claimed(self.claim(now, me, *claim)),
            NodeRequest::Renew(renew) => NodeReply::Renewed(self.renew(now, me, renew)),
            NodeRequest::Record(record) => NodeReply::Recorded(self.record(now, me, record)),
            NodeRequest::GiveBack { page, epoch } => {
                NodeReply::GivenBack(self.give_back(me, *page, *epoch))
            }
            NodeRequest::Release(release) => NodeReply::Released(self.release(now, me, release)),
            NodeRequest::Command(command) => {
                self.command(*command)?;
                NodeReply::Commanded { more: false }
            }
            NodeRequest::Drain { node, draining } => {
                let node = self.node_mut(*node)?;
                node.draining = *draining;
                // Until its next renewal.
                node.drains = false;
                NodeReply::Done
            }
            NodeRequest::Leave { node } => {
                self.node_mut(*node)?.leave();
                NodeReply::Done
            }
            NodeRequest::Goodbye => {
                self.node_mut(me)?.ended = true;
                NodeReply::Done
            }
            NodeRequest::CrawlClosed { crawl } => {
                self.parts.insert((*crawl, me), true);
                NodeReply::Done
            }
            NodeRequest::Compare(compare) => self.compare(me, compare),
            NodeRequest::Restore { pages } => {
                NodeReply::Restored { refused: self.restore(now, me, pages) }
            }
        };
        // Only these requests write the row of the node: the others are far more frequent.
        let is_sign_of_life = matches!(request, NodeRequest::Claim(_) | NodeRequest::Renew(_));
        if let Some(node) = self.nodes.get_mut(&me).filter(|_| is_sign_of_life) {
            node.seen = now;
        }
        Ok(reply)
    }

    /// Returns whether a crawl is complete: no page waits or is open, and each node that took part
    /// has closed it or holds no lease.
    pub fn is_sealed(&self, crawl: CrawlId, now: DbTime) -> bool {
        let mut pages = self.pages.values().filter(|page| page.crawl == crawl);
        let leases = |node: NodeId| {
            let mut hosts = self.hosts.values();
            hosts.any(|host| host.owner == Some(node) && host.lease_until > now)
        };
        let mut parts = self.parts.iter().filter(|((of, _), _)| *of == crawl);
        pages.all(|page| page.state.is_final())
            && parts.all(|((_, node), closed)| *closed || !leases(*node))
    }

    fn check(&self, session: Session) -> Result<(), NodeRefusal> {
        let node = self.nodes.get(&session.node);
        let node = node.ok_or(NodeRefusal::UnknownNode { node: session.node.0 })?;
        if node.incarnation != session.incarnation || node.name.is_none() {
            let name = node.name.clone().unwrap_or_default();
            return Err(NodeRefusal::Superseded { name });
        }
        Ok(())
    }

    fn node_mut(&mut self, id: NodeId) -> Result<&mut NodeRow, NodeRefusal> {
        let node = self.nodes.get_mut(&id);
        node.ok_or(NodeRefusal::UnknownNode { node: id.0 })
    }

    fn reserve_crawls(&mut self, count: u32) -> NodeReply {
        let first = CrawlId(self.next_crawl);
        self.next_crawl += i64::from(count);
        NodeReply::CrawlIds { first, count }
    }
}
