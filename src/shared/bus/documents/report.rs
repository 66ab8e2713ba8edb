//! Documents of the interface for users: `--json`, `list`, `show`, `status` and the event stream of
//! `--wait`. Fields may be added; names and types do not change.

use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{
    Accounting, CrawlId, HttpRange, LACKS, Lifecycle, Outcome, Owner, ResultState, RunId,
};
pub use archivist_core::model::{Figures, OutputFile as File, Uses};
use archivist_core::model::{SnapshotId, Time, Unsaved};
use archivist_core::plan::{PageResult, is_saved};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod add;
mod alike;
mod copy;
mod fleet;
mod host;
mod metrics;
mod status;
mod timeline;

pub use add::{AddOptions, Added, Draft, DraftHook, DraftSkip, Refused};
pub use alike::{Alike, sum_up};
pub use copy::{Copy, StoreStatus};
pub use fleet::{Fleet, FleetNode};
pub use host::{Host, Tag};
pub use metrics::{DURATIONS_MS, HookEnds, HostQueue, METRIC_HOSTS_MAX, Metrics, SiteHealth};
pub use status::{
    Command, Registration, Runner, SEARCH_QUEUED_MAX, SearchStatus, Status, Target, Unfaithful,
};
pub use timeline::{Span, SpanPage};

/// Counts by the name of the state.
pub type Counts = BTreeMap<String, u64>;

/// A crawl: one `archivist add`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crawl {
    /// Its id, such as `c12`.
    pub id: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Reason for the state, if it is not obvious.
    pub reason: Option<String>,
    /// First of its URLs.
    pub url: String,
    /// Links to follow from the given pages; 0 archives only these.
    pub max_depth: u32,
    /// Tags of all its pages.
    pub tags: Vec<String>,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    /// Settings of the crawl, which take precedence over the configuration.
    pub config: BTreeMap<String, String>,
    /// When it was added.
    pub created_at: Time,
    /// When its newest attempt started.
    pub started_at: Option<Time>,
    /// When it was sealed or cancelled.
    pub ended_at: Option<Time>,
    /// Not started before this time.
    pub retry_at: Option<Time>,
    /// Starts of its worker.
    pub attempts: u32,
    /// Number of snapshots by status.
    pub snapshots: Counts,
    /// Snapshots that ended before their work was done.
    #[serde(default)]
    pub incomplete: u64,
    /// Other snapshots whose server answered with an HTTP error instead of the page.
    #[serde(default)]
    pub errors: u64,
    /// Saved snapshots of which files lack parts of the page.
    #[serde(default)]
    pub partial: u64,
    /// Number of results by status.
    pub results: Counts,
    /// How many of them succeeded or had nothing to save, and how many failed.
    #[serde(default)]
    pub uses: Uses,
    /// Path of its directory; `None` before its first start.
    pub directory: Option<String>,
    /// Whether it is kept from deletion, with all its pages.
    #[serde(default)]
    pub pinned: bool,
    /// Ids of the users who added it or changed its settings, on the machine where it was added.
    #[serde(default)]
    pub users: BTreeSet<u32>,
    /// Nodes of the fleet that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

/// A snapshot: one page of a crawl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its id, such as `s345`.
    pub id: SnapshotId,
    /// Its crawl.
    pub crawl: CrawlId,
    /// Address of the page.
    pub url: String,
    /// Title that a hook or the list gave; a hook takes precedence.
    pub title: Option<String>,
    /// Number of links from a page that the user added, which has depth 0.
    pub depth: u32,
    /// Page that links to it; `None` for a page that the user added.
    pub parent: Option<SnapshotId>,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Reason for the state, if it is not obvious.
    pub reason: Option<String>,
    /// Tags of the page.
    pub tags: Vec<String>,
    /// Time of the bookmark, as in the list that named the page.
    pub bookmarked_at: Option<String>,
    /// When it was visited: the start of the visit of which its files are, or, for an imported page, when
    /// another program saved it; before its first start, when it was queued. The versions of a page
    /// have this order.
    pub visited_at: Time,
    /// When it was queued.
    pub created_at: Time,
    /// When its newest attempt started.
    pub started_at: Option<Time>,
    /// When it was sealed or cancelled.
    pub ended_at: Option<Time>,
    /// Not started before this time.
    pub retry_at: Option<Time>,
    /// Starts of its worker.
    pub attempts: u32,
    /// Its results by status.
    pub results: Counts,
    /// How many of them succeeded or had nothing to save, and how many failed.
    #[serde(default)]
    pub uses: Uses,
    /// Path of its directory; `None` before its first start.
    pub directory: Option<String>,
    /// While foreground hooks are left: the tens digit of the next hook's number, as older plugins
    /// count; hooks without a number count as 9.
    pub current_step: Option<u32>,
    /// HTTP status of its document: the final response that the hooks saw. `None` if no hook reported
    /// one.
    pub http_status: Option<u16>,
    /// Why it is not a saved page; `None` for a saved one, and before it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<Unsaved>,
    /// Whether it, or its crawl, is kept from deletion.
    #[serde(default)]
    pub pinned: bool,
    /// Settings of the page alone, which take precedence over those of the crawl.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Node of the fleet that has the page, or archived it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Other nodes of the fleet, which archived the page before a retry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_copies: Vec<String>,
    /// Figures of the plugin wacz about the recording of the page, such as `requests` and `kept`;
    /// `None` if the page has no recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Figures>,
    /// Figures of the plugin verify about a replay of the recording, such as `fidelity`, the lowest;
    /// `None` if the recording was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Figures>,
    /// Results whose files lack parts of the page, such as requests without an answer or the end of a
    /// picture: the plugin, and its remark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Snapshot {
    /// Whether it is a saved page.
    pub fn is_saved(&self) -> bool {
        is_saved(self.status, self.unsaved)
    }

    /// Returns why its work ended early, or what it lacks.
    pub fn lack(&self) -> Option<&str> {
        self.reason.as_deref().or(self.unsaved.map(Unsaved::text))
    }

    /// Returns what it lacks: the page, or parts of it. Empty for a whole one.
    pub fn lacks(&self) -> String {
        self.lack().map_or_else(|| self.missing.join("; "), str::to_owned)
    }
}

/// A snapshot as one of the versions of its page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Version {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// Bytes of the files that its plugins kept.
    pub bytes: u64,
    /// Plugins that kept files of the page, in the order of their names.
    pub plugins: Vec<String>,
}

/// Result of one hook for one snapshot or for a whole crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResult {
    /// Row number; later rows have higher numbers. `None` before the row exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Crawl or snapshot of the hook.
    pub owner: Owner,
    /// Name of its plugin.
    pub plugin: String,
    /// File name of the hook without its last extension.
    pub hook: String,
    /// From queued to a final state, such as succeeded.
    pub status: ResultState,
    /// Output as the hook states it: a path or a short text.
    pub output: Option<String>,
    /// Why the hook failed or was skipped.
    pub error: Option<String>,
    /// Files that the hook left, up to the limit of the list.
    pub files: Vec<File>,
    /// Bytes of all files.
    pub size: u64,
    /// Attempts so far.
    pub attempts: u32,
    /// When the newest run started.
    pub started_at: Option<Time>,
    /// When the newest run ended.
    pub ended_at: Option<Time>,
    /// Numbers that the hook states, such as how many requests a recording has.
    #[serde(default, skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
}

impl HookResult {
    /// Whether its files lack parts of the page.
    pub fn lacks_parts(&self) -> bool {
        let lacks = self.figures.get(LACKS).is_some_and(|parts| parts > 0.0);
        self.status == ResultState::Succeeded && lacks
    }

    /// Returns what shows whether its page was saved.
    pub fn of_page(&self) -> PageResult<'_> {
        PageResult {
            plugin: &self.plugin,
            state: self.status,
            error: self.error.as_deref(),
            size: self.size,
            files: &self.files,
        }
    }
}

/// A run: one unit, of a worker or of one attempt of a hook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its id, such as `r678`.
    pub id: RunId,
    /// Name of the unit.
    pub unit: String,
    /// `crawl`, `snapshot` (workers) or `hook`.
    pub kind: String,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// Plugin of a hook; `None` for workers.
    pub plugin: Option<String>,
    /// Name of a hook; `None` for workers.
    pub hook: Option<String>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// `starting`, `running` or `ended`.
    pub status: String,
    /// How the unit ended; `None` before.
    pub outcome: Option<Outcome>,
    /// InvocationID of the unit, once known.
    pub invocation: Option<String>,
    /// When its main process started.
    pub started_at: Option<Time>,
    /// When its main process ended.
    pub ended_at: Option<Time>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Run of the worker that asked for it; `None` for the worker of a crawl, which the orchestrator
    /// starts.
    pub parent: Option<RunId>,
    /// Working directory; `None` for that of systemd.
    pub directory: Option<String>,
    /// Time limit in seconds; `None` without one.
    pub limit: Option<u64>,
    /// Variables without secrets; only in the document about a single run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// CPU time, memory and traffic; known after the end.
    #[serde(flatten)]
    pub accounting: Accounting,
}

/// A plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Path of its directory.
    pub directory: String,
    /// Description in its config.json; empty without one.
    pub description: String,
    /// File names of its hooks without the last extension.
    pub hooks: Vec<String>,
    /// Why its hooks do not run; `None` if they run.
    pub skipped: Option<String>,
    /// The hooks do not run by configuration, or need not run.
    #[serde(default)]
    pub by_choice: bool,
    /// Command that fixes the problem, if any.
    pub fix: Option<String>,
    /// Runs of its hooks so far.
    #[serde(default)]
    pub uses: Uses,
}

/// A program that plugins need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    /// Name of the program.
    pub name: String,
    /// Path; `None` while the program is missing.
    pub abspath: Option<String>,
    /// Version that it printed, if known.
    pub version: Option<String>,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: Option<String>,
    /// Provider plugin that installed it; `env` if it was installed before.
    pub provider: Option<String>,
    /// Variables that hooks get when they use it.
    pub env: BTreeMap<String, String>,
    /// When it was found.
    pub found_at: Option<Time>,
    /// Plugins that need it.
    pub plugins: Vec<String>,
    /// How to install it, if it is missing or too old.
    pub missing: Option<String>,
    /// Required version, if this one is too old.
    pub least: Option<String>,
    /// Uses by the plugins that need it.
    #[serde(default)]
    pub uses: Uses,
}

/// A plugin or a file that cannot be used, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PluginProblem {
    /// File or directory.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

/// Answer of `plugins`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plugins {
    /// All plugins that were found.
    pub plugins: Vec<Plugin>,
    /// Plugins and files that cannot be used.
    pub problems: Vec<PluginProblem>,
}

/// Everything about one id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "there is one of these in an answer")]
pub enum Details {
    /// Of a crawl.
    Crawl {
        /// The crawl.
        crawl: Crawl,
        /// Its newest snapshots, the oldest of these first.
        snapshots: Vec<Snapshot>,
        /// The newest results of the crawl and its snapshots, in the same order.
        results: Vec<HookResult>,
        /// The newest runs of the crawl and its snapshots, in the same order.
        runs: Vec<Run>,
    },
    /// Of a snapshot.
    Snapshot {
        /// The snapshot.
        snapshot: Snapshot,
        /// Results of its hooks.
        results: Vec<HookResult>,
        /// Runs of its worker and its hooks.
        runs: Vec<Run>,
        /// Its copy in the store; `None` if it never had any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<Copy>,
    },
    /// A single run of a hook or worker.
    Run {
        /// The run.
        run: Box<Run>,
        /// Result of its hook, which later attempts replace.
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
    /// The crawl or snapshot.
    pub id: Owner,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Empty if nothing waits or has failed.
    pub reasons: Vec<Reason>,
    /// Node of the fleet that has the page, or archived it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// `archivist why` of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhyRun {
    /// The run.
    pub run: RunId,
    /// `starting`, `running` or `ended`; of a check `queued`, `starting`, `running` or `done`.
    pub status: String,
    /// Why it has not ended, or how it ended and what followed.
    pub reasons: Vec<Reason>,
}

/// `archivist why` of a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhyWatch {
    /// Name of the watch.
    pub watch: String,
    /// Empty if nothing waits or has failed.
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
    pub until: Option<Time>,
}

/// One line of the stream that follows a crawl; the first lines repeat the present state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum CrawlEvent {
    /// The state of the crawl changed.
    Crawl {
        /// The crawl afterwards.
        crawl: Crawl,
    },
    /// A snapshot was added, or its state changed.
    Snapshot {
        /// The snapshot afterwards.
        snapshot: Snapshot,
    },
    /// A hook started, became ready or ended.
    Hook {
        /// The result afterwards.
        result: HookResult,
    },
}

/// Filter of `list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Filter {
    /// Only rows with this status.
    pub status: Option<String>,
    /// Only rows of this crawl or snapshot.
    pub owner: Option<Owner>,
    /// Only snapshots whose documents have these HTTP statuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpRange>,
    /// Only snapshots with this tag, or of crawls with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only snapshots of exactly this URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_url: Option<String>,
    /// Only snapshots whose URL begins with this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_prefix: Option<String>,
    /// Only snapshots of these pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlPattern>,
    /// Most rows, newest first; 0 means as many as one answer may have ([`ROWS_MAX`]).
    pub limit: u32,
    /// Only rows before the row of this number: the next batch of a long list.
    pub before: Option<i64>,
    /// Of the hosts of a fleet, which come in the order of their names: only those after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_host: Option<String>,
    /// Of snapshots, and of the time line of a fleet: only pages after that of this number, oldest first; 0
    /// means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_page: Option<i64>,
    /// Of a time line, which comes in batches, oldest first: only runs after this one.
    pub after: Option<RunId>,
}

impl Filter {
    /// Returns the filter for everything of a crawl or snapshot.
    pub fn of(owner: Owner) -> Filter {
        Filter { owner: Some(owner), ..Filter::default() }
    }

    /// Returns the filter limited to one answer.
    pub fn piece(&self) -> Filter {
        let limit = match self.limit {
            0 => ROWS_MAX,
            limit => limit.min(ROWS_MAX),
        };
        Filter { limit, ..self.clone() }
    }
}

/// The answer of `Manager.Delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Number of deleted snapshots. Those of crawls are deleted one after another from now on.
    pub pages: u64,
    /// Bytes of the files of their hooks.
    pub bytes: u64,
    /// What was not deleted.
    pub left: Vec<NotDeleted>,
}

/// A crawl or snapshot that was not deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotDeleted {
    /// The crawl or snapshot.
    pub id: Owner,
    /// The reason.
    pub reason: String,
}

/// Pages that the rules of `Retention=` delete now, from some of the archive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Expired {
    /// The pages, the oldest first.
    pub pages: Vec<Snapshot>,
    /// Argument of the next call; `None` if no page follows.
    pub next: Option<i64>,
}

/// Most rows of one answer; the bus carries at most 32 MiB, so longer lists come in batches.
pub const ROWS_MAX: u32 = 1000;

/// Size after which an answer gets no further row, in bytes.
pub const ANSWER_BYTES: usize = 4 << 20;

/// Answer of `interrupt`: the interrupted hooks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interrupted {
    /// The hooks that were stopped.
    pub hooks: Vec<HookName>,
    /// The next hook waits for the decision of the user.
    pub waits: bool,
}

/// A hook of a crawl or snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookName {
    /// The crawl or snapshot.
    pub owner: Owner,
    /// Name of its plugin.
    pub plugin: String,
    /// Name of the hook.
    pub hook: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Documents that anybody on the bus may send: taken as they are, or refused.
        #[test]
        fn any_options_are_refused_or_read_back(depth: u32, tags: Vec<String>, plugins: Vec<String>, config: BTreeMap<String, String>, only_new: bool,
            key in "[a-z_]{1,8}", noise in ".{0,60}") {
            let options = AddOptions { depth, tags, plugins, config, only_new };
            let text = serde_json::to_string(&options).unwrap();
            let read: AddOptions = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text.clone());
            let known = ["depth", "tags", "plugins", "config", "only_new"].contains(&key.as_str());
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
