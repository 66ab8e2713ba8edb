//! What the orchestrator and its workers tell each other.

use crate::bus::documents::report::File;
use archivist_core::model::{CrawlId, Outcome, Owner, ResultState, RunId, Time, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything a worker needs, read from its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Proves to the orchestrator who calls.
    pub token: String,
    /// The orchestrator's name on the bus.
    pub bus_name: String,
    pub user_scope: bool,
    pub owner: Owner,
    pub url: String,
    pub depth: u32,
    pub max_depth: u32,
    /// Directory of the snapshot, or of the crawl for a crawl's worker.
    pub directory: PathBuf,
    pub crawl_directory: PathBuf,
    /// Directory for temporary files that the hooks of the crawl share, where they do.
    #[serde(default)]
    pub shared_tmp: Option<PathBuf>,
    /// In the order in which they are to be started.
    pub hooks: Vec<HookTask>,
    /// What runs when the others have ended: for a crawl after its last snapshot.
    pub last_hooks: Vec<HookTask>,
    /// How long a background hook may take until its first line of output.
    pub ready_limit: Duration,
    /// How long a background hook may take to end after SIGTERM.
    pub stop_limit: Duration,
    /// Bytes of standard output after which a hook is ended.
    pub output_limit: u64,
    #[serde(default)]
    pub about: About,
}

/// What is known of an owner besides its work: for `index.jsonl` and the pages to look at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The directory that all others are in.
    pub archive: PathBuf,
    pub crawl: Option<CrawlId>,
    pub added_at: Option<Time>,
    pub title: Option<String>,
    pub tags: Vec<String>,
    /// Hooks that are not run.
    pub skipped: Vec<Skipped>,
}

/// A hook that is not run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub plugin: String,
    pub hook: String,
    pub why: String,
}

/// One hook of an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTask {
    /// `PLUGIN/HOOK`, where HOOK is the name of its file without the last extension.
    pub key: String,
    pub plugin: String,
    /// Name of its file without the last extension.
    pub hook: String,
    pub mode: HookMode,
    /// Time limit of one run.
    pub limit: Duration,
    /// How long a daemon is waited for where no hook runs in the foreground.
    #[serde(default)]
    pub patience: Duration,
    /// All background hooks are to end before it starts.
    #[serde(default)]
    pub after_background: bool,
}

impl HookTask {
    /// The server that a hook of `plugin` asked for.
    pub fn sonic(plugin: &str, limit: Duration) -> HookTask {
        HookTask {
            key: format!("{plugin}/sonic"),
            plugin: plugin.to_owned(),
            hook: "sonic".to_owned(),
            mode: HookMode::Daemon,
            limit,
            patience: Duration::ZERO,
            after_background: false,
        }
    }
}

/// How the others relate to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookMode {
    /// The next hook waits for its end.
    Foreground,
    /// In the background, ends by itself.
    Finite,
    /// In the background until told to end.
    Daemon,
}

/// What was done before, for a worker that takes up an owner once more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    pub hooks: Vec<Known>,
}

/// The state of one hook of the assignment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Known {
    pub key: String,
    pub state: ResultState,
    /// It runs now, or ended without its result having been reported: a call of `Run` joins it.
    pub joinable: bool,
}

/// The answer to `Run`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The run, where there was one.
    #[serde(default)]
    pub run: Option<RunId>,
    #[serde(default)]
    pub unit: Option<String>,
    #[serde(default)]
    pub argv: Vec<String>,
    pub outcome: Outcome,
    /// Somebody interrupted it to have it run once more.
    #[serde(default)]
    pub again: bool,
    /// What the disk lacked meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    /// What the orchestrator has judged and recorded already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

impl Ended {
    /// The end of a hook that needed no unit, or got none.
    pub fn without_run(outcome: Outcome) -> Ended {
        Ended {
            run: None,
            unit: None,
            argv: Vec::new(),
            outcome,
            again: false,
            lack: None,
            verdict: None,
            started_at: None,
            ended_at: None,
        }
    }
}

/// The result of a hook, with what it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub key: String,
    pub verdict: Verdict,
    pub output: Option<String>,
    pub files: Vec<File>,
    /// Bytes of all files, also of those beyond the list's cap.
    pub size: u64,
    #[serde(default)]
    pub children: Vec<Child>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Title of the page, where the hook is one that finds it.
    #[serde(default)]
    pub title: Option<String>,
    /// The program that a provider hook brought.
    #[serde(default)]
    pub binary: Option<Found>,
    #[serde(default)]
    pub derived: Derived,
    /// Seconds for which the host asks to be left alone.
    #[serde(default)]
    pub retry_after: Option<u64>,
    /// Milliseconds that the host asks to have between two pages.
    #[serde(default)]
    pub crawl_delay: Option<u64>,
    /// When a hook in the background had printed its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
}

/// What a hook says for the hooks after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Derived {
    /// Settings of Machine records.
    pub settings: BTreeMap<String, String>,
    /// Programs that it found.
    pub programs: Vec<Found>,
    /// Programs that it asks for, with where they may come from, separated by commas.
    pub wanted: BTreeMap<String, String>,
    /// The server it wants to be there, as the record says.
    pub sonic: Option<SonicWish>,
}

/// A sonic server that is to run as long as the crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SonicWish {
    pub config_path: String,
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// A program, as its provider's hook says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub name: String,
    pub abspath: String,
    pub version: Option<String>,
    pub provider: Option<String>,
    pub env: BTreeMap<String, String>,
}

/// A page that a hook found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub url: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub bookmarked_at: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
}
