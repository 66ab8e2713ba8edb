//! Documents of `status`, and what commands in the foreground say about themselves.

use super::{Counts, Fleet, Run, StoreStatus};
use crate::bus::documents::watches::Certificate;
use archivist_core::model::{CrawlId, IdMarks, Owner, SnapshotId, Time, Uses, cut};
use serde::{Deserialize, Serialize};

/// An orchestrator that uses or waits for this data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// `active` or `waiting`.
    pub state: String,
    /// In its own PID namespace.
    pub pid: u32,
    /// Unit of the process; empty if unknown.
    pub unit: String,
    /// Components that it runs, or would run.
    pub components: String,
    /// When it registered.
    pub since: Time,
    /// Epoch in which an active orchestrator writes.
    pub epoch: i64,
    /// Where the process is, if not on this machine in this PID namespace.
    pub place: Option<String>,
    /// Working directory of the orchestrator that answers; `None` for others.
    pub directory: Option<String>,
}

/// Pages whose replay shows less than [`REPLAY_HOLDS`](archivist_core::model::REPLAY_HOLDS) of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfaithful {
    /// Number of these pages.
    pub pages: u64,
    /// The newest of them, at most five.
    pub newest: Vec<SnapshotId>,
}

/// `archivist status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Version of archivist.
    pub version: String,
    /// Version of systemd.
    pub systemd: String,
    /// Path of the data directory.
    pub data: String,
    /// STATUS= of the unit (sd_notify(3)).
    pub line: String,
    /// Number of crawls by status.
    pub crawls: Counts,
    /// Number of snapshots by status.
    pub snapshots: Counts,
    /// Pages that ended before their work was done.
    #[serde(default)]
    pub incomplete: u64,
    /// Pages whose replay does not hold, as far as they were verified.
    #[serde(default)]
    pub unfaithful: Unfaithful,
    /// Running units.
    pub running: Vec<Run>,
    /// How often hooks succeeded and failed on this machine, also in attempts that were retried.
    #[serde(default)]
    pub uses: Uses,
    /// The highest ids that were handed out.
    #[serde(default)]
    pub ids: IdMarks,
    /// Next time at which something becomes due.
    pub next: Option<Time>,
    /// The active orchestrator of this data directory, and those that wait for it to stop.
    #[serde(default)]
    pub runners: Vec<Runner>,
    /// Commands that work in the foreground, the oldest first.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// Why nothing starts although something is due.
    pub blocked: Option<String>,
    /// Why the machine does not reach the Internet, and since when, if so: pages on it wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_outage: Option<String>,
    /// Network of hooks, and what they may reach.
    #[serde(default)]
    pub network: String,
    /// Whether address filters of units work on this machine; `None` if not tested.
    pub address_filter: Option<bool>,
    /// The fleet of this machine, which the command line adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
    /// Certificates of watched sites that have expired or expire within `CertificateWarnDays=`, the
    /// next first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// The store; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
    /// Number of deleted crawls and snapshots whose files are not removed yet.
    #[serde(default)]
    pub deleting: u64,
    /// Number of deleted snapshots whose copies are not removed from the store yet.
    #[serde(default)]
    pub deleting_copies: u64,
    /// Deleted crawls and snapshots whose files could not be removed in several attempts: a number and the
    /// first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_removals: Option<(u64, Owner)>,
    /// Why the rules of `Retention=` delete nothing, if they wait for an administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_held: Option<String>,
    /// Pages that ended while the clock was not believed, or with times in the future: a number and the
    /// first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undated: Option<(u64, SnapshotId)>,
    /// The index of full text search; `None` if its program is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStatus>,
}

/// How far the index of full text search is behind the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchStatus {
    /// Number of snapshots whose changes it lacks, at most [`SEARCH_QUEUED_MAX`].
    pub queued: u32,
    /// Whether it is being built again.
    pub is_building: bool,
    /// Failed attempts in a row to change it.
    pub failed: u32,
}

/// Changes of the index that are counted.
pub const SEARCH_QUEUED_MAX: u32 = 100_000;

/// Most crawls and snapshots of one registration; further ones are left out.
pub const TARGETS_MAX: usize = 100;

/// What a command in the foreground says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registration {
    /// Its verb, such as `run`.
    pub verb: String,
    /// Crawls and snapshots that it works on.
    pub targets: Vec<Owner>,
    /// Its working directory; empty if unknown.
    pub directory: String,
    /// When it started; `None` means now.
    pub since: Option<Time>,
}

impl Registration {
    /// Returns the registration with texts and list limited, as it is kept while the command runs.
    pub fn bounded(mut self) -> Registration {
        self.verb = cut(self.verb);
        self.directory = cut(self.directory);
        self.targets.truncate(TARGETS_MAX);
        self.targets.shrink_to_fit();
        self
    }
}

/// A registered command in the foreground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its verb, such as `run`.
    pub verb: String,
    /// Crawls and snapshots that it works on.
    pub targets: Vec<Target>,
    /// Its working directory; empty if unknown.
    pub directory: String,
    /// Its process, as the bus reports it.
    pub pid: Option<u32>,
    /// Its user, as the bus reports it.
    pub user: Option<u32>,
    /// When it started.
    pub since: Time,
}

/// A crawl or snapshot that a command works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The crawl or snapshot.
    pub id: Owner,
    /// Its crawl, which is `id` for a crawl.
    pub crawl: CrawlId,
    /// Address of the page, or the first one of the crawl.
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::TEXT_MAX;

    #[test]
    fn registration_of_any_size_is_limited() {
        let large = Registration {
            verb: "run".into(),
            targets: vec![Owner::Crawl(CrawlId(1)); TARGETS_MAX + 1],
            directory: "x".repeat(2 * TEXT_MAX),
            since: None,
        };
        let kept = large.bounded();
        assert_eq!(kept.targets.len(), TARGETS_MAX);
        assert!(kept.directory.len() < TEXT_MAX + 9);
        let empty: Registration = serde_json::from_str("{}").unwrap();
        assert_eq!(empty, Registration::default());
    }
}
