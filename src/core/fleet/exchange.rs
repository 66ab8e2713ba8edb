//! What the orchestrator and the fleet service of a machine say to each other. The service keeps
//! nothing: it asks for [`Holdings`] before each decision and delivers each reply.

use super::memory::Memory;
use super::outbox::OutboxEntry;
use super::request::{Claim, Held, Release};
use super::value::{BootTime, Epoch, Generation, HostKey, NodeId, maybe_millis};
use super::{Claimed, Fate, NodeRefusal, NodeReply, Renewed};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// Node id of the latest [`Delivery::Welcomed`]; `None` before the first.
    pub node: Option<NodeId>,
    pub generation: Generation,
    pub leases: Vec<Held>,
    /// Leased hosts without a page that waits.
    pub short: Vec<HostKey>,
    /// Number of open pages up to which such a host is filled.
    pub refill: u32,
    /// Hosts that the orchestrator has room for, at most as many as it needs to be busy.
    pub claim: Option<Claim>,
    /// First unanswered entries of the outbox, in order; while the node compares what it has with the
    /// database, the next request of that alone, with the number [`RECALL`](super::RECALL).
    pub entries: Vec<OutboxEntry>,
    /// Number of the last entry of the outbox; 0 if there was none.
    pub last_entry: u64,
    /// Leases that have no page and no unanswered entry left. They are not in `leases`.
    pub releases: Vec<Release>,
    /// All leases that are released and not acknowledged, those of `releases` included.
    pub releasing: Vec<(HostKey, Epoch)>,
    /// Number of hosts that the orchestrator can work on concurrently; 0 while it takes none.
    #[serde(default)]
    pub slots: u32,
    /// The orchestrator starts no page, because the node drains.
    #[serde(default)]
    pub drains: bool,
    /// What the next hello says of the database; `None` before the first welcome.
    pub memory: Option<Memory>,
}

/// A reply of the database, for the orchestrator. The orchestrator has stored it when it
/// acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "delivery", content = "value")]
pub enum Delivery {
    Welcomed {
        /// The node. If it is another one, the leases of the former are lost.
        node: NodeId,
        /// If it is another one, the node compares what it has with the database.
        generation: Generation,
        /// Time since the database knew of the node before: entries of the outbox that were answered
        /// since are sent again.
        #[serde(default, with = "maybe_millis")]
        forgot: Option<Duration>,
    },
    Claimed {
        claimed: Claimed,
        /// When the request left.
        sent: BootTime,
    },
    /// Leases that were extended or lost, and orders.
    Renewed {
        renewed: Renewed,
        /// When the request left.
        sent: BootTime,
        /// The request asked for further pages.
        refilled: bool,
    },
    /// The database has released a host, or had.
    Released {
        host: HostKey,
        epoch: Epoch,
        /// What became of the request; all are final.
        fate: Fate,
    },
    /// The database has carried out an entry of the outbox, or refuses it.
    Answered { number: u64, reply: Result<NodeReply, NodeRefusal> },
    /// The database refuses the node, which retries later. For display.
    Refused {
        refusal: NodeRefusal,
        /// Time until the next attempt.
        #[serde(with = "super::value::millis")]
        retry_in: Duration,
    },
}
