//! Documents about the fleet service of a machine.

use serde::{Deserialize, Serialize};

/// What the fleet service says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Name of this node.
    pub name: String,
    /// URL of the database, without secrets.
    pub database: String,
    /// Whether the last exchange with the database and the orchestrator succeeded. While neither
    /// this nor a fault is known, the service is connecting.
    pub works: bool,
    /// What does not work; the service tries again.
    pub fault: Option<String>,
    /// Leased hosts.
    pub hosts: u64,
    /// Whether something waits to be sent to the database.
    pub is_sending: bool,
}

/// The fleet as its database knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// URL of the database, without secrets.
    pub database: String,
    /// Version of PostgreSQL.
    pub server_version: String,
    /// Duration of leases.
    pub lease_ms: u64,
    /// Number of failovers of the database.
    pub generation: u64,
    /// Time until hosts are leased, after a failover.
    pub claims_in_ms: u64,
    /// By how much the clock of the server is ahead of that of this machine.
    pub clock_ahead_ms: i64,
    /// Pages that have not ended.
    pub open_pages: u64,
    /// Rows that vacuum has not removed yet.
    pub dead_rows: u64,
    /// All other rows.
    pub live_rows: u64,
    /// Age of the oldest open transaction, which keeps dead rows from being removed.
    pub oldest_transaction_ms: u64,
    /// The nodes, by name.
    pub nodes: Vec<Member>,
}

/// A node as the database knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Time since its latest claim or renewal.
    pub seen_ms: u64,
    /// Whether it was seen in the last ten seconds, and has not ended.
    pub is_connected: bool,
    /// Whether it was not seen for the duration of a lease, and has not ended: other nodes take its
    /// hosts over.
    pub is_lost: bool,
    /// Whether its fleet service was stopped in an orderly way.
    pub has_ended: bool,
    /// Whether it gets no more hosts.
    pub draining: bool,
    /// Hosts that it has leased.
    pub hosts: u64,
}
