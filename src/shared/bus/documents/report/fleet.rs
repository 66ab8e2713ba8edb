//! The document of a fleet: several machines with one archive.

use super::Counts;
use archivist_core::model::{Time, Uses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fleet, as its database shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// Name of the node that answers.
    pub node: String,
    /// URL of the database without secrets.
    pub server: String,
    /// Time of the database.
    pub now: Time,
    /// All nodes, by name.
    pub nodes: Vec<FleetNode>,
    /// Number of crawls by status; paused and cancelled ones count as such while pages of them are
    /// running.
    pub crawls: Counts,
    /// Number of pages by status.
    pub snapshots: Counts,
    /// How often hooks succeeded and failed, of the present results of all pages.
    pub uses: Uses,
    /// Hosts that wait for a node, up to a limit.
    pub due_hosts: u64,
    /// After a failover of the database: no host is claimed before this time.
    pub claims_from: Option<Time>,
    /// Dead rows by table: those that vacuum has not removed yet.
    pub dead_rows: BTreeMap<String, u64>,
    /// Start of the oldest open transaction of the database, which keeps dead rows.
    pub oldest_transaction: Option<Time>,
}

/// A node of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetNode {
    /// Its name.
    pub name: String,
    /// The database heard from the node within the last 10 s.
    pub connected: bool,
    /// It did not for the duration of a lease: other nodes take its hosts over.
    #[serde(default)]
    pub lost: bool,
    /// It gets no hosts and no pages.
    pub draining: bool,
    /// When the database last heard from it.
    pub seen_at: Time,
    /// Hosts that it leases.
    pub hosts: u64,
    /// Pages that it has and that are not final.
    pub pages: u64,
}

impl FleetNode {
    /// Returns `connected`, `draining`, `lost`, or `not seen`.
    pub fn state(&self) -> &'static str {
        if self.lost {
            "lost"
        } else if !self.connected {
            "not seen"
        } else if self.draining {
            "draining"
        } else {
            "connected"
        }
    }
}
