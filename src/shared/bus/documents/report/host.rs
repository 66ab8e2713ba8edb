//! The documents of web hosts and tags.

use archivist_core::model::{Time, Uses};
use serde::{Deserialize, Serialize};

/// A web host, with the results of its newest pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name, with the port unless it is the usual one.
    pub name: String,
    /// Number of its pages that have such results.
    pub pages: u64,
    /// How many of these results succeeded and failed.
    pub uses: Uses,
    /// When the newest of them started.
    pub used_at: Option<Time>,
    /// Row number of the newest of them; the next batch of a long list is before it.
    pub last_result: i64,
    /// Delay between two starts that the host asks for, in milliseconds.
    pub delay_ms: u64,
    /// Why the host was delayed last.
    pub asked: Option<String>,
    /// In a fleet: number of its pages that are not final, up to a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// Node of the fleet that leases the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When the lease ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_until: Option<Time>,
}

/// A tag that pages have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// Its name, at most 200 bytes.
    pub name: String,
    /// Number of its pages, which have it themselves or by their crawl.
    pub pages: u64,
    /// Row number; the next batch of a long list is before it.
    pub row: i64,
}
