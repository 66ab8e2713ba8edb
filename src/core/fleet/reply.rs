//! Replies of the database.

use super::page::{CrawlSpec, LeasedPage};
use super::value::{Epoch, Generation, HostKey, Session, maybe_millis, millis};
use crate::model::{CrawlId, IdMarks, SnapshotId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// NodeReply to a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Sender of all further requests of this connection.
    pub session: Session,
    /// Number of failovers. If it has grown since the last connection, the node sends all kept
    /// entries of its outbox again.
    pub generation: Generation,
    /// Duration of leases.
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
        /// Number of ids.
        count: u32,
    },
    /// Number of pages that the crawl did not have and its limits allow.
    Submitted {
        /// Queued pages.
        inserted: u64,
    },
    /// The hosts.
    Claimed(Claimed),
    /// The leases that were extended, and those that were not.
    Renewed(Renewed),
    /// What became of a record.
    Recorded(Fate),
    /// What became of a page that was given back.
    GivenBack(Fate),
    /// What became of a release.
    Released(Fate),
    /// The command, or a piece of it, is carried out.
    Commanded {
        /// Pages remain: the request is sent again, for the next piece.
        more: bool,
    },
    /// What the database lacks of what the node has.
    Lacks {
        /// Crawls.
        crawls: Vec<CrawlId>,
        /// Pages, or their records.
        pages: Vec<SnapshotId>,
    },
    /// The pages are there.
    Restored {
        /// Those that are not, because the database has other pages with their ids or URLs.
        refused: Vec<SnapshotId>,
    },
    /// Done, now or before.
    Done,
}

/// What became of a request about a page or lease. All three are final: the node sends it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Carried out.
    Done,
    /// Carried out before: an earlier reply was lost.
    Already,
    /// The lease is of another node or epoch now, or the page was given to another node: the node
    /// discards what it has.
    Stale,
}

/// Crawls of pages in a reply.
pub type CrawlSpecs = Vec<(CrawlId, CrawlSpec)>;

/// NodeReply to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The hosts, those that were due first at the front.
    pub hosts: Vec<Grant>,
    /// Crawls of all their pages.
    pub crawls: CrawlSpecs,
}

/// A host that a node may visit until its lease ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The host.
    pub host: HostKey,
    /// Epoch of the lease.
    pub epoch: Epoch,
    /// Duration of the lease, from the time at which the request left the node.
    #[serde(with = "millis")]
    pub lease: Duration,
    /// No page starts earlier than this after the receipt of the reply.
    #[serde(with = "millis")]
    pub due_in: Duration,
    /// Delay between two starts.
    #[serde(with = "millis")]
    pub delay: Duration,
    /// Its pages, in the order in which they start; never empty.
    pub pages: Vec<LeasedPage>,
}

/// NodeReply to a renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// Leases that were extended.
    pub leases: Vec<Renewal>,
    /// Leases that were not: another node may own the host.
    pub lost: Vec<(HostKey, Epoch)>,
    /// Crawls of all new pages.
    pub crawls: CrawlSpecs,
    /// Wanted state of what the node works on.
    pub orders: Orders,
    /// Highest ids that the fleet has given, so that every node notices a database that went back.
    #[serde(default)]
    pub given: IdMarks,
}

/// A lease that was extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The host.
    pub host: HostKey,
    /// Epoch of the lease, unchanged.
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
    /// Work on it.
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
    Superseded {
        /// Name of the node.
        name: String,
    },
    /// The name belongs to another machine.
    #[error(
        "node '{name}' is another machine: choose another name, or remove it with 'archivist fleet leave {name}'"
    )]
    NameTaken {
        /// Name of the node.
        name: String,
    },
    /// Two machines have the identity of one node, as after the disk was cloned.
    #[error(
        "node '{name}' is running elsewhere: was its disk cloned? Give the copy a machine id and a name of its own"
    )]
    Cloned {
        /// Name of the node.
        name: String,
        /// When this machine may take over if the other is not seen again.
        #[serde(with = "millis")]
        retry_in: Duration,
    },
    /// No node has this id.
    #[error("no node has the number {node}")]
    UnknownNode {
        /// The id.
        node: i64,
    },
    /// No crawl has this id.
    #[error("there is no crawl {crawl}")]
    UnknownCrawl {
        /// The id.
        crawl: CrawlId,
    },
    /// No page has this id.
    #[error("there is no snapshot {page}")]
    UnknownPage {
        /// The id.
        page: SnapshotId,
    },
    /// The database lacks what it had: it went back, and no administrator declared that.
    #[error(
        "the database of the fleet went back to an earlier state; no node works with it. If it was restored from a backup, run 'archivist fleet restored' on one node; see archivist-backup(7)"
    )]
    WentBack,
    /// A value is longer, or another number, than the schema permits.
    #[error("the database permits no such value ({constraint})")]
    Unfit {
        /// The constraint.
        constraint: String,
    },
    /// The database belongs to a later version.
    #[error(
        "the database has schema {database}, and this program knows {program}: upgrade archivist on this machine"
    )]
    Schema {
        /// Schema of the database.
        database: u32,
        /// Schema of the program.
        program: u32,
    },
}
