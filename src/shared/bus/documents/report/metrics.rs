//! The document of `metrics`: counts and times for a monitoring system, without addresses of pages.

use super::{Counts, SearchStatus, StoreStatus};
use archivist_core::model::Time;
use serde::{Deserialize, Serialize};

/// Most hosts of the document: those with the most queued pages.
pub const METRIC_HOSTS_MAX: u32 = 50;

/// Durations in milliseconds up to which ended hooks are counted.
pub const DURATIONS_MS: [u64; 10] =
    [100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];

/// Counts and times of the orchestrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Version of archivist.
    pub version: String,
    /// When the counts were taken.
    pub now: Time,
    /// Number of crawls by status.
    pub crawls: Counts,
    /// Number of pages by status.
    pub snapshots: Counts,
    /// Number of running units by kind.
    pub running: Counts,
    /// How hooks ended.
    pub hooks: Vec<HookEnds>,
    /// Since when the queued page is due that has been due for the longest time.
    pub due_since: Option<Time>,
    /// Number of hosts with queued pages.
    pub hosts_queued: u64,
    /// Of these, the hosts whose next page waits for a delay of the host.
    pub hosts_delayed: u64,
    /// The hosts with the most queued pages, at most [`METRIC_HOSTS_MAX`].
    pub hosts: Vec<HostQueue>,
    /// Free bytes of the archive; `None` if not measured.
    pub free_bytes: Option<u64>,
    /// Free bytes below which nothing starts.
    pub min_free_bytes: u64,
    /// Whether nothing starts although something is due.
    pub is_blocked: bool,
    /// Sites of watches.
    pub sites: Vec<SiteHealth>,
    /// The store; `None` if there is none.
    pub store: Option<StoreStatus>,
    /// Number of deleted crawls and snapshots whose files are not removed yet.
    pub deleting: u64,
    /// Number of pages whose replay does not hold.
    #[serde(default)]
    pub unfaithful: u64,
    /// The index of full text search; `None` if its program is not installed.
    #[serde(default)]
    pub search: Option<SearchStatus>,
}

/// Ends of the hooks of a plugin with the same status and similar durations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEnds {
    /// Name of the plugin.
    pub plugin: String,
    /// `succeeded`, `noresults`, `failed` or `skipped`.
    pub status: String,
    /// The duration is at most this element of [`DURATIONS_MS`], and above the one before; 0 for hooks
    /// that did not run, and `None` for those above all.
    pub up_to_ms: Option<u64>,
    /// Number of ends.
    pub count: u64,
    /// Sum of their durations.
    pub milliseconds: u64,
    /// Sum of the bytes of their output files.
    pub bytes: u64,
}

/// The queue of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostQueue {
    /// Name of the host.
    pub host: String,
    /// Number of its queued pages.
    pub queued: u64,
}

/// A site of a watch, as its newest status check found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteHealth {
    /// Name of the watch.
    pub watch: String,
    /// Whether it is down.
    pub is_down: bool,
    /// Time until the headers of the answer.
    pub response_ms: Option<u64>,
    /// When the first of its certificates expires.
    pub certificate_expires: Option<Time>,
}
