//! Replies of the database.

use super::page::{CrawlSpec, LeasedPage};
use super::value::{Epoch, Generation, HostKey, Session, maybe_millis, millis};
use crate::model::{CrawlId, IdMarks, SnapshotId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Sender of all further requests of this connection.
    pub session: Session,
    /// Number of failovers. If it has grown since the last connection, the node sends all kept
    /// entries of its outbox again.
    pub generation: Generation,
    #[serde(with = "millis")]
    pub lease: Duration,
    /// Time until hosts can be claimed; zero unless the database failed over.
    #[serde(with = "millis")]
    pub claims_in: Duration,
    /// Hosts that the database has leased to this node. The node releases those that it does not
    /// hold.
    pub owned: Vec<(HostKey, Epoch)>,
    /// If the node remembers another generation: how long ago the database last knew of the node, before
    /// it lost transactions or was restored.
    #[serde(default, with = "maybe_millis")]
    pub forgot: Option<Duration>,
}

/// NodeReply to any other request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reply", content = "value")]
pub enum NodeReply {
    /// Ids for crawls: the first, and their number.
    CrawlIds {
        /// First id; the others follow it.
        first: CrawlId,
        count: u32,
    },
    /// Number of pages that the crawl did not have and its limits allow.
    Submitted {
        inserted: u64,
    },
    Claimed(Claimed),
    /// The leases that were extended, and those that were not.
    Renewed(Renewed),
    Recorded(Fate),
    GivenBack(Fate),
    Released(Fate),
    /// The command, or a piece of it, is carried out.
    Commanded {
        /// Pages remain: the request is sent again, for the next piece.
        more: bool,
    },
    Lacks {
        crawls: Vec<CrawlId>,
        /// Pages, or their records.
        pages: Vec<SnapshotId>,
    },
    Restored {
        /// Pages that are not, because the database has others with their ids or URLs.
        refused: Vec<SnapshotId>,
    },
    /// Done, now or before.
    Done,
}

/// What became of a request about a page or lease. All three are final: the node sends it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    Done,
    /// Carried out before: an earlier reply was lost.
    Already,
    /// The lease is of another node or epoch now, or the page was given to another node: the node
    /// discards what it has.
    Stale,
}

pub type CrawlSpecs = Vec<(CrawlId, CrawlSpec)>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The hosts, those that were due first at the front.
    pub hosts: Vec<Grant>,
    pub crawls: CrawlSpecs,
}

/// A host that a node may visit until its lease ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub host: HostKey,
    pub epoch: Epoch,
    /// Duration of the lease, from the time at which the request left the node.
    #[serde(with = "millis")]
    pub lease: Duration,
    /// No page starts earlier than this after the receipt of the reply.
    #[serde(with = "millis")]
    pub due_in: Duration,
    #[serde(with = "millis")]
    pub delay: Duration,
    /// Its pages, in the order in which they start; never empty.
    pub pages: Vec<LeasedPage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    pub leases: Vec<Renewal>,
    /// Leases that were not: another node may own the host.
    pub lost: Vec<(HostKey, Epoch)>,
    pub crawls: CrawlSpecs,
    pub orders: Orders,
    /// Highest ids that the fleet has given, so that every node notices a database that went back.
    #[serde(default)]
    pub given: IdMarks,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    pub host: HostKey,
    pub epoch: Epoch,
    /// Duration of the lease, from the time at which the request left the node.
    #[serde(with = "millis")]
    pub lease: Duration,
    /// No page starts earlier than this after the receipt of the reply.
    #[serde(with = "millis")]
    pub due_in: Duration,
    /// Further pages. After a failover, they may include pages that the node has.
    pub pages: Vec<LeasedPage>,
}

/// What a node should do with a crawl or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Run,
    /// Freeze it and start nothing of it.
    Pause,
    /// End it and record its pages as cancelled.
    Cancel,
}

/// What all nodes have done of a crawl, and used of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlUse {
    /// Bytes of the output files of its recorded pages.
    pub bytes: u64,
    /// Time since it was added.
    #[serde(with = "millis")]
    pub age: Duration,
    /// All its pages are recorded: unless a user retries or adds some, no more come.
    #[serde(default)]
    pub is_done: bool,
}

/// The wanted state of everything that a node works on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// All crawls in which the node takes part and that it has not closed.
    pub crawls: Vec<(CrawlId, Order)>,
    /// What was done of these crawls, and used of their limits. Each node compares it with the limits.
    #[serde(default)]
    pub used: Vec<(CrawlId, CrawlUse)>,
    /// Pages that are open on the node and for which the order of their crawl does not hold.
    pub pages: Vec<(SnapshotId, Order)>,
    /// The node should start no page and release its hosts.
    pub draining: bool,
    /// Number of hosts that the node should release for a node with free slots. Until orders without
    /// a number, it claims none: hosts that wait are for nodes that have fewer.
    pub hand_over: Option<u32>,
}

/// Why the database refuses a request. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "refusal")]
pub enum NodeRefusal {
    /// A later connection of the node has taken over.
    #[error("another connection of node '{name}' has replaced this one")]
    Superseded { name: String },
    #[error(
        "node '{name}' is another machine: choose another name, or remove it with 'archivist fleet leave {name}'"
    )]
    NameTaken { name: String },
    /// Two machines have the identity of one node, as after the disk was cloned.
    #[error(
        "node '{name}' is running elsewhere: was its disk cloned? Give the copy a machine id and a name of its own"
    )]
    Cloned {
        name: String,
        /// When this machine may take over if the other is not seen again.
        #[serde(with = "millis")]
        retry_in: Duration,
    },
    #[error("no node has the number {node}")]
    UnknownNode { node: i64 },
    #[error("there is no crawl {crawl}")]
    UnknownCrawl { crawl: CrawlId },
    #[error("there is no snapshot {page}")]
    UnknownPage { page: SnapshotId },
    /// The database lacks what it had: it went back, and no administrator declared that.
    #[error(
        "the database of the fleet went back to an earlier state; no node works with it. If it was restored from a backup, run 'archivist fleet restored' on one node; see archivist-backup(7)"
    )]
    WentBack,
    /// A value is longer, or another number, than the schema permits.
    #[error("the database permits no such value ({constraint})")]
    Unfit { constraint: String },
    #[error(
        "the database has schema {database}, and this program knows {program}: upgrade archivist on this machine"
    )]
    Schema { database: u32, program: u32 },
}
