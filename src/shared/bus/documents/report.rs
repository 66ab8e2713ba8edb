//! Documents of the interface for users: `--json`, `list`, `show`, `status` and the event stream of
//! `--wait`. Fields may be added; names and types do not change.

use archivist_core::model::{Accounting, CrawlId, Lifecycle, Outcome, Owner, ResultState, RunId};
pub use archivist_core::model::{OutputFile as File, Uses};
use archivist_core::model::{SnapshotId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by the name of the state.
pub type Counts = BTreeMap<String, u64>;

/// A crawl: one `archivist add`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crawl {
    pub id: CrawlId,
    pub status: Lifecycle,
    /// Reason for the state, if it is not obvious.
    pub reason: Option<String>,
    /// First of its URLs.
    pub url: String,
    pub max_depth: u32,
    pub tags: Vec<String>,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    pub config: BTreeMap<String, String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Not started before this time.
    pub retry_at: Option<Time>,
    pub attempts: u32,
    /// Number of snapshots by status.
    pub snapshots: Counts,
    /// Number of results by status.
    pub results: Counts,
    pub directory: Option<String>,
}

/// A snapshot: one page of a crawl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub crawl: CrawlId,
    pub url: String,
    pub title: Option<String>,
    pub depth: u32,
    pub parent: Option<SnapshotId>,
    pub status: Lifecycle,
    pub reason: Option<String>,
    pub tags: Vec<String>,
    /// Time of the bookmark, as in the list that named the page.
    #[serde(default)]
    pub bookmarked_at: Option<String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub retry_at: Option<Time>,
    pub attempts: u32,
    /// Its results by status.
    pub results: Counts,
    pub directory: Option<String>,
    /// While foreground hooks are left: the tens digit of the next hook's number, as older plugins
    /// count; hooks without a number count as 9.
    #[serde(default)]
    pub current_step: Option<u32>,
}

/// Result of one hook for one snapshot or for a whole crawl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookResult {
    /// Row number; later rows have higher numbers. `None` before the row exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub owner: Owner,
    pub plugin: String,
    /// File name of the hook without its last extension.
    pub hook: String,
    pub status: ResultState,
    /// Output as the hook states it: a path or a short text.
    pub output: Option<String>,
    /// Why the hook failed or was skipped.
    pub error: Option<String>,
    pub files: Vec<File>,
    /// Bytes of all files.
    pub size: u64,
    pub attempts: u32,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// A run: one unit, of a worker or of one attempt of a hook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub unit: String,
    /// `crawl`, `snapshot` (workers) or `hook`.
    pub kind: String,
    pub owner: Owner,
    pub plugin: Option<String>,
    pub hook: Option<String>,
    pub attempt: u32,
    /// `starting`, `running` or `ended`.
    pub status: String,
    pub outcome: Option<Outcome>,
    pub invocation: Option<String>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub argv: Vec<String>,
    #[serde(flatten)]
    pub accounting: Accounting,
}

/// A plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plugin {
    pub name: String,
    pub directory: String,
    pub description: String,
    pub hooks: Vec<String>,
    /// Why its hooks do not run; `None` if they run.
    pub skipped: Option<String>,
    /// The hooks do not run by configuration, or need not run.
    #[serde(default)]
    pub by_choice: bool,
    /// Command that fixes the problem, if any.
    #[serde(default)]
    pub fix: Option<String>,
    #[serde(default)]
    pub uses: Uses,
}

/// A program that plugins need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    pub name: String,
    /// Path; `None` while the program is missing.
    pub abspath: Option<String>,
    pub version: Option<String>,
    pub sha256: Option<String>,
    /// Provider plugin that installed it; `env` if it was installed before.
    pub provider: Option<String>,
    pub env: BTreeMap<String, String>,
    pub found_at: Option<Time>,
    /// Plugins that need it.
    pub plugins: Vec<String>,
    /// How to install it, if it is missing or too old.
    pub missing: Option<String>,
    /// Required version, if this one is too old.
    #[serde(default)]
    pub least: Option<String>,
    /// Uses by the plugins that need it.
    #[serde(default)]
    pub uses: Uses,
}

/// A plugin or a file that cannot be used, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginProblem {
    pub path: String,
    pub what: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plugins {
    pub plugins: Vec<Plugin>,
    pub problems: Vec<PluginProblem>,
}

/// An orchestrator that uses or waits for this data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// `active` or `waiting`.
    pub state: String,
    /// In its own PID namespace.
    pub pid: u32,
    /// Unit of the process; empty if unknown.
    pub unit: String,
    pub components: String,
    pub since: Time,
    /// Epoch in which an active orchestrator writes.
    pub epoch: i64,
    /// Where the process is, if not on this machine in this PID namespace.
    #[serde(default)]
    pub place: Option<String>,
}

/// `archivist status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub systemd: String,
    pub data: String,
    /// STATUS= of the unit (sd_notify(3)).
    pub line: String,
    pub crawls: Counts,
    pub snapshots: Counts,
    /// Running units.
    pub running: Vec<Run>,
    /// Next time at which something becomes due.
    pub next: Option<Time>,
    /// The active orchestrator of this data directory, and those that wait for it to stop.
    #[serde(default)]
    pub runners: Vec<Runner>,
    /// Why nothing starts although something is due.
    #[serde(default)]
    pub blocked: Option<String>,
    /// Network of hooks, and what they may reach.
    #[serde(default)]
    pub network: String,
    /// Whether address filters of units work on this machine; `None` if not tested.
    #[serde(default)]
    pub address_filter: Option<bool>,
}

/// Everything about one id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Details {
    Crawl {
        crawl: Crawl,
        snapshots: Vec<Snapshot>,
        results: Vec<HookResult>,
        runs: Vec<Run>,
    },
    Snapshot {
        snapshot: Snapshot,
        results: Vec<HookResult>,
        runs: Vec<Run>,
    },
    /// A single run; `result` is that of its hook, which later attempts replace.
    Run {
        run: Box<Run>,
        result: Option<Box<HookResult>>,
    },
}

impl Details {
    /// Newest rows only.
    pub fn runs(&self) -> &[Run] {
        match self {
            Details::Crawl { runs, .. } | Details::Snapshot { runs, .. } => runs,
            Details::Run { run, .. } => std::slice::from_ref(run),
        }
    }
}

/// `archivist why`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Why {
    pub id: Owner,
    pub status: Lifecycle,
    pub reasons: Vec<Reason>,
}

/// `archivist why` of a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhyWatch {
    pub watch: String,
    pub reasons: Vec<Reason>,
}

/// A reason why something waits or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Reason code for programs, such as `paused`, `back-off`, `host-full`.
    pub code: String,
    /// Reason as a sentence.
    pub text: String,
    /// When the reason ends, if known.
    #[serde(default)]
    pub until: Option<Time>,
}

/// One line of the stream that follows a crawl; the first lines repeat the present state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum CrawlEvent {
    Crawl {
        crawl: Crawl,
    },
    Snapshot {
        snapshot: Snapshot,
    },
    /// A hook started, became ready or ended.
    Hook {
        result: HookResult,
    },
}

/// Filter of `list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Filter {
    pub status: Option<String>,
    /// Only rows of this crawl or snapshot.
    pub owner: Option<Owner>,
    /// Most rows, newest first; 0 means as many as one answer may have ([`ROWS_MAX`]).
    pub limit: u32,
    /// Only rows before the row of this number: the next batch of a long list.
    #[serde(default)]
    pub before: Option<i64>,
    /// Of a time line, which comes in batches, oldest first: only runs after this one.
    #[serde(default)]
    pub after: Option<RunId>,
}

impl Filter {
    /// Returns the filter limited to one answer.
    pub fn piece(&self) -> Filter {
        let limit = match self.limit {
            0 => ROWS_MAX,
            limit => limit.min(ROWS_MAX),
        };
        Filter {
            limit,
            ..self.clone()
        }
    }
}

/// Most rows of one answer; the bus carries at most 32 MiB, so longer lists come in batches.
pub const ROWS_MAX: u32 = 1000;

/// Size after which an answer gets no further row, in bytes.
pub const ANSWER_BYTES: usize = 4 << 20;

/// One unit on the time line of a crawl or page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Span {
    pub id: RunId,
    pub unit: String,
    /// `crawl`, `snapshot` (workers) or `hook`.
    pub kind: String,
    pub owner: Owner,
    pub plugin: Option<String>,
    pub hook: Option<String>,
    pub attempt: u32,
    /// `starting`, `running` or `ended`.
    pub status: String,
    pub outcome: Option<Outcome>,
    /// Status of the hook's result, if this is its last run.
    pub verdict: Option<ResultState>,
    /// When its start was decided.
    pub recorded_at: Option<Time>,
    pub started_at: Option<Time>,
    /// When a background hook printed its first line; known after its end.
    pub ready_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Microseconds.
    pub cpu_usec: Option<u64>,
    /// Bytes.
    pub memory_peak: Option<u64>,
    /// Page of a worker.
    pub page: Option<SpanPage>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpanPage {
    pub url: String,
    pub title: Option<String>,
    pub depth: u32,
    /// When the page was first queued.
    pub created_at: Time,
}

/// Answer of `interrupt`: the interrupted hooks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interrupted {
    pub hooks: Vec<HookName>,
    /// The next hook waits for the decision of the user.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookName {
    pub owner: Owner,
    pub plugin: String,
    pub hook: String,
}

/// Answer of `draft`: what a crawl would do with a page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Draft {
    /// Hooks in the order of their start: before the first page, for each page, after the last
    /// page.
    pub setup: Vec<DraftHook>,
    pub page: Vec<DraftHook>,
    pub end: Vec<DraftHook>,
    /// Plugins whose hooks would not run, and why.
    pub skipped: Vec<DraftSkip>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DraftHook {
    pub plugin: String,
    pub hook: String,
    /// `foreground`, `finite` (in the background, ends by itself) or `daemon`.
    pub mode: String,
    /// Time limit in seconds.
    pub limit: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DraftSkip {
    pub plugin: String,
    pub why: String,
}

/// Answer of `add`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Added {
    pub crawl: CrawlId,
    /// Number of queued snapshots.
    pub accepted: u64,
    /// Refused lines, with the reason.
    pub refused: Vec<Refused>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Counts from 1.
    pub line: u64,
    /// Text of the line, shortened.
    pub text: String,
    pub why: String,
}

/// Options of `add`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddOptions {
    pub depth: u32,
    pub tags: Vec<String>,
    pub plugins: Vec<String>,
    pub config: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Documents that anybody on the bus may send: taken as they are, or refused.
        #[test]
        fn any_options_are_refused_or_read_back(depth: u32, tags: Vec<String>, plugins: Vec<String>, config: BTreeMap<String, String>,
            key in "[a-z_]{1,8}", noise in ".{0,60}") {
            let options = AddOptions { depth, tags, plugins, config };
            let text = serde_json::to_string(&options).unwrap();
            let read: AddOptions = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text.clone());
            let known = ["depth", "tags", "plugins", "config"].contains(&key.as_str());
            let odd = text.replacen('{', &format!("{{\"{key}\": null, "), 1);
            prop_assert!(known || serde_json::from_str::<AddOptions>(&odd).is_err());
            for text in [noise.clone(), format!("{{\"owner\": {noise:?}, \"limit\": 1}}")] {
                let _ = serde_json::from_str::<AddOptions>(&text);
                if let Ok(Filter { owner: Some(owner), .. }) = serde_json::from_str(&text) {
                    prop_assert_eq!(owner.to_string(), noise.clone());
                }
            }
        }
    }
}
