//! What the orchestrator tells people: the documents behind `--json`, `list`, `show`, `status`
//! and the event stream of `--wait`. Additions are fine, changes of a name or type are not.

use archivist_core::model::{Accounting, CrawlId, Lifecycle, Outcome, Owner, ResultState, RunId};
pub use archivist_core::model::{OutputFile as File, Uses};
use archivist_core::model::{SnapshotId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by state, in the words of the states.
pub type Counts = BTreeMap<String, u64>;

/// One `archivist add`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crawl {
    pub id: CrawlId,
    pub status: Lifecycle,
    /// Why it stands where it stands, where that is not obvious.
    pub reason: Option<String>,
    /// The first of its URLs.
    pub url: String,
    pub max_depth: u32,
    pub tags: Vec<String>,
    /// The plugins it is limited to; empty means all.
    pub plugins: Vec<String>,
    pub config: BTreeMap<String, String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Not to be started before this time.
    pub retry_at: Option<Time>,
    pub attempts: u32,
    /// Its snapshots by status.
    pub snapshots: Counts,
    /// Its results by status.
    pub results: Counts,
    pub directory: Option<String>,
}

/// One page of a crawl.
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
    /// As the list of bookmarks has it that the page is from.
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
    /// While it is under way and a hook in the foreground is left: the tens digit of its number,
    /// as older plugins count; hooks without a number are at 9.
    #[serde(default)]
    pub current_step: Option<u32>,
}

/// What one hook made of one snapshot (or of a whole crawl).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookResult {
    /// Its number in the database, where later ones have higher ones; none until it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub owner: Owner,
    pub plugin: String,
    /// Name of the hook's file without its last extension.
    pub hook: String,
    pub status: ResultState,
    /// What the hook says it made: a path or a short text.
    pub output: Option<String>,
    /// Why it failed or was skipped.
    pub error: Option<String>,
    pub files: Vec<File>,
    /// Bytes of all files.
    pub size: u64,
    pub attempts: u32,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// One unit: a worker or one attempt of a hook.
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

/// One plugin as the orchestrator sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plugin {
    pub name: String,
    pub directory: String,
    pub description: String,
    pub hooks: Vec<String>,
    /// Why its hooks are not run, where they are not.
    pub skipped: Option<String>,
    /// That is how somebody wants it, or as it should be.
    #[serde(default)]
    pub by_choice: bool,
    /// The command that mends that, where there is one.
    #[serde(default)]
    pub fix: Option<String>,
    #[serde(default)]
    pub uses: Uses,
}

/// A program that plugins need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    pub name: String,
    /// None while it is missing.
    pub abspath: Option<String>,
    pub version: Option<String>,
    pub sha256: Option<String>,
    /// The provider plugin that brought it; `env` when it was there.
    pub provider: Option<String>,
    pub env: BTreeMap<String, String>,
    pub found_at: Option<Time>,
    /// The plugins that need it.
    pub plugins: Vec<String>,
    /// Where to get it, while it is missing or too old.
    pub missing: Option<String>,
    /// The version that is needed, while this one is too old.
    #[serde(default)]
    pub least: Option<String>,
    /// Of the plugins that need it.
    #[serde(default)]
    pub uses: Uses,
}

/// A plugin or a file that could not be used, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    pub path: String,
    pub what: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plugins {
    pub plugins: Vec<Plugin>,
    pub problems: Vec<Problem>,
}

/// An orchestrator that wants this data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// `active` or `waiting`.
    pub state: String,
    /// In its own PID namespace.
    pub pid: u32,
    /// The unit it is in; empty if that is not known.
    pub unit: String,
    pub components: String,
    pub since: Time,
    /// What an active one writes under.
    pub epoch: i64,
    /// Where it is, if not here.
    #[serde(default)]
    pub place: Option<String>,
}

/// `archivist status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub systemd: String,
    pub data: String,
    /// The STATUS= line.
    pub line: String,
    pub crawls: Counts,
    pub snapshots: Counts,
    /// Units that run now.
    pub running: Vec<Run>,
    /// The next time at which something becomes due.
    pub next: Option<Time>,
    /// Who works on this data directory, and who stands by or waits for that one to stop.
    #[serde(default)]
    pub runners: Vec<Runner>,
    /// Why nothing is started although something is due.
    #[serde(default)]
    pub blocked: Option<String>,
    /// Whose network hooks are in, and what they reach.
    #[serde(default)]
    pub network: String,
    /// Whether units can refuse addresses on this machine, if that was tried.
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
}

impl Details {
    /// The newest of them.
    pub fn runs(&self) -> &[Run] {
        match self {
            Details::Crawl { runs, .. } | Details::Snapshot { runs, .. } => runs,
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

/// One of the things that hold something up, or went wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// One word for programs, such as `paused`, `back-off`, `host-full`.
    pub code: String,
    /// A sentence for people.
    pub text: String,
    /// When that is over, where it is known.
    #[serde(default)]
    pub until: Option<Time>,
}

/// One line of the stream that follows a crawl; the first lines repeat the present state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum Event {
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

/// What `list` may be asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Filter {
    pub status: Option<String>,
    /// Only what belongs to this crawl or snapshot.
    pub owner: Option<Owner>,
    /// Newest first, at most so many; 0 for as many as one answer may have ([`ROWS_MAX`]).
    pub limit: u32,
    /// Only what is older than the row of this number: the rest of a long list.
    #[serde(default)]
    pub before: Option<i64>,
    /// For a time line, which is in pieces and the oldest first: only what came after this run.
    #[serde(default)]
    pub after: Option<RunId>,
}

impl Filter {
    /// The same, but for no more than one answer may have.
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

/// Most rows of one answer over the bus, which carries 32 MiB at most; longer lists are asked for in pieces.
pub const ROWS_MAX: u32 = 1000;

/// Bytes of text after which an answer has no further row, whatever was asked for.
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
    /// What became of the hook's result, if this is the last run of it.
    pub verdict: Option<ResultState>,
    /// When it was decided to start it.
    pub recorded_at: Option<Time>,
    pub started_at: Option<Time>,
    /// The first line of a hook in the background; known when that has ended.
    pub ready_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Microseconds.
    pub cpu_usec: Option<u64>,
    /// Bytes.
    pub memory_peak: Option<u64>,
    /// What the worker of a page works on.
    pub page: Option<SpanPage>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpanPage {
    pub url: String,
    pub title: Option<String>,
    pub depth: u32,
    /// When it was queued first.
    pub created_at: Time,
}

/// What `interrupt` answers: the hooks that are asked to end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interrupted {
    pub hooks: Vec<HookName>,
    /// The next hook waits for the word of whoever interrupted.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookName {
    pub owner: Owner,
    pub plugin: String,
    pub hook: String,
}

/// What a crawl would do with a page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Draft {
    /// In the order in which they would be started: before the first page, for each page, after
    /// the last page.
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

/// What `add` answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Added {
    pub crawl: CrawlId,
    /// Snapshots that were queued.
    pub accepted: u64,
    /// Lines that were not, with the reason.
    pub refused: Vec<Refused>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Counted from 1.
    pub line: u64,
    /// Shortened for showing.
    pub text: String,
    pub why: String,
}

/// What `add` may be told besides the URLs.
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
