//! Rows of the database.

use archivist_core::fleet::{
    CrawlSpec, Epoch, Generation, HostKey, Incarnation, NewPage, NodeId, Order, PageEnd,
};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use std::collections::BTreeSet;
use std::time::Duration;

/// A time of the database's clock, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DbTime(pub u64);

impl DbTime {
    /// Returns this time plus `duration`.
    pub fn after(self, duration: Duration) -> DbTime {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        DbTime(self.0.saturating_add(millis))
    }

    /// Returns the time from `earlier` until this time; zero if it is not earlier.
    pub fn since(self, earlier: DbTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Unique; `None` after it has left.
    pub name: Option<String>,
    pub machine: String,
    /// Life of its service manager at the latest hello.
    pub boot: String,
    pub incarnation: Incarnation,
    /// Time of its latest hello, claim or renewal.
    pub seen: DbTime,
    /// It said goodbye after its latest hello.
    pub ended: bool,
    pub draining: bool,
    /// Number of hosts that it could work on at its latest renewal, if its claims are not filled.
    pub wanting: u32,
    pub drains: bool,
    pub lease: Option<Duration>,
    /// While the node remembers another generation: when it was seen before its first hello in this one;
    /// 0 if the database did not have the node.
    pub lost_from: Option<DbTime>,
}

impl NodeRow {
    /// Removes the node: its name is free, and its connection is refused.
    pub(super) fn leave(&mut self) {
        self.name = None;
        self.draining = true;
    }
}

/// What refused nodes remember of a database that went back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    pub generation: Generation,
    pub highest: IdMarks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlState {
    Running,
    Paused,
    Cancelled,
}

impl CrawlState {
    pub fn order(self) -> Order {
        match self {
            CrawlState::Running => Order::Run,
            CrawlState::Paused => Order::Pause,
            CrawlState::Cancelled => Order::Cancel,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlRow {
    /// As submitted.
    pub spec: CrawlSpec,
    pub state: CrawlState,
    /// When it was added.
    pub added_at: DbTime,
    pub pages: u64,
    /// Bytes of the output files of its recorded pages.
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRow {
    /// Node that has the lease, even if it has expired; `None` if it was released.
    pub owner: Option<NodeId>,
    pub epoch: Epoch,
    pub lease_until: DbTime,
    pub next_at: DbTime,
    /// The host asked not to be visited before.
    pub blocked_until: DbTime,
    pub delay: Duration,
    /// When it was released, or its first page was queued: of the hosts that can be claimed, the one
    /// that has waited longest is first.
    pub ready_at: DbTime,
}

impl HostRow {
    /// Returns when another node may claim the host, its lease aside.
    pub fn due_at(&self) -> DbTime {
        self.ready_at.max(self.start_at())
    }

    /// Returns whether another node may claim the host.
    pub fn is_free(&self, now: DbTime) -> bool {
        self.owner.is_none() || self.lease_until <= now
    }

    /// Returns when the next page may start, as far as the database knows.
    pub fn start_at(&self) -> DbTime {
        self.next_at.max(self.blocked_until)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Waits.
    Queued,
    /// Handed to this node, under the epoch of the page.
    Open(NodeId),
    /// Recorded. The node is `None` if no node had it open.
    Final(PageEnd, Option<NodeId>),
}

impl PageState {
    /// Returns whether the page is recorded.
    pub fn is_final(self) -> bool {
        matches!(self, PageState::Final(..))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    pub crawl: CrawlId,
    /// The page with the link.
    pub parent: Option<SnapshotId>,
    pub page: NewPage,
    /// Queued, open or final.
    pub state: PageState,
    pub order: Order,
    /// Epoch of the host when the page was last handed to a node, or recorded.
    pub epoch: Epoch,
    /// Claims that were not given back, since the page was queued or retried.
    pub attempts: u32,
    /// Whether its record names a directory.
    pub has_directory: bool,
    /// Nodes with a directory of it from before a retry.
    pub copies: BTreeSet<NodeId>,
    pub bytes: u64,
    pub failed: bool,
    /// Whether its work was done, and one of them succeeded.
    pub complete: bool,
}

impl PageRow {
    pub fn host(&self) -> &HostKey {
        &self.page.host
    }

    /// Returns what users want of the page, in a crawl of this state: the page's own order if it is
    /// stricter.
    pub fn wanted(&self, crawl: CrawlState) -> Order {
        match (self.order, crawl.order()) {
            (Order::Cancel, _) | (_, Order::Cancel) => Order::Cancel,
            (Order::Pause, _) | (_, Order::Pause) => Order::Pause,
            (Order::Run, Order::Run) => Order::Run,
        }
    }
}
