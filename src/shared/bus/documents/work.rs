//! Documents between the orchestrator and its workers.

use crate::bus::documents::report::{File, HookResult};
use archivist_core::model::{
    CrawlId, Figures, HttpAnswer, IdMarks, Need, Outcome, Owner, ResultState, RunId, SnapshotId,
    Time, Verdict,
};
use archivist_core::plan::{PageRoles, VisitRules};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Exit status of a worker whose directory belongs to another crawl or snapshot (EX_CANTCREAT of
/// sysexits.h).
pub const DIRECTORY_TAKEN: i32 = 73;
/// Exit status of a worker whose page could not be visited because the machine does not reach the Internet
/// (EX_UNAVAILABLE of sysexits.h). Nothing of the visit is kept.
pub const NO_NETWORK: i32 = 69;

/// Assignment of a worker, read from standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Token that authenticates the worker to the orchestrator.
    pub token: String,
    /// Bus name of the orchestrator.
    pub bus_name: String,
    /// Whether the orchestrator is that of a user, on the session bus.
    pub user_scope: bool,
    /// Crawl or snapshot to work on.
    pub owner: Owner,
    /// URL of the snapshot, or the first URL of the crawl.
    pub url: String,
    /// Depth of the snapshot; 0 for a crawl.
    pub depth: u32,
    /// Links that the crawl follows.
    pub max_depth: u32,
    /// Directory of the snapshot, or of the crawl for a crawl's worker.
    pub directory: PathBuf,
    /// Directory of the crawl.
    pub crawl_directory: PathBuf,
    /// Identity of `directory`. `None` if an older version made the directory: it is not compared.
    pub identity: Option<String>,
    /// The same of `crawl_directory`.
    pub crawl_identity: Option<String>,
    /// Directory for temporary files that the hooks of the crawl share, if any.
    pub shared_tmp: Option<PathBuf>,
    /// The highest ids so far, which the worker notes in the archive.
    #[serde(default)]
    pub ids: IdMarks,
    /// Identity of the installation, which the worker leaves in the archive. `None`: unknown.
    pub installation: Option<String>,
    /// Hooks in the order of their start.
    pub hooks: Vec<HookTask>,
    /// Hooks that run after all others: for a crawl after its last snapshot.
    pub last_hooks: Vec<HookTask>,
    /// Time that the next hook waits for a daemon's first line of output.
    pub ready_limit: Duration,
    /// Longest time that a daemon may take to end after SIGTERM.
    pub stop_limit: Duration,
    /// Bytes of standard output after which a hook is stopped.
    pub output_limit: u64,
    /// Directory with the results that another program recorded of the page, as in [`staged`]. It may be
    /// gone already.
    ///
    /// [`staged`]: crate::staged
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<PathBuf>,
    /// How the bodies of the recording are shared with other recordings; `None`: not at all.
    #[serde(default)]
    pub sharing: Option<Sharing>,
    /// What the answer of the server means for the visit.
    #[serde(default)]
    pub visit: VisitRules,
    /// Facts for `index.jsonl` and the HTML pages.
    #[serde(default)]
    pub about: About,
}

/// With which recordings that of a page shares its bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Path of `archivist`.
    pub program: String,
    /// Name of the directory of the bodies: those of pages of other users or personas are in others.
    pub directory: String,
}

/// What the unit that removes deleted files reads from standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToRemove {
    /// Root directory of the archive.
    pub archive: PathBuf,
    /// What to remove.
    pub directories: Vec<Removed>,
    /// Crawls that exist still and have lost pages, with their directories.
    pub lists: BTreeMap<CrawlId, PathBuf>,
    /// First digits of the digests of imported files to which no page refers any more.
    #[serde(default)]
    pub imported: Vec<String>,
    /// Whether nothing else is deleted: lists are written after the last.
    pub is_last: bool,
}

/// What the unit reads from standard input that writes the directories of entries of a list, which are
/// kept without a visit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntriesToWrite {
    /// The pages, all of one crawl, each with the one hook that does not run.
    pub pages: Vec<Assignment>,
    /// Output of that hook.
    pub output: String,
    /// Whether an earlier unit may have written some of them.
    pub again: bool,
}

/// The directory of a deleted crawl or snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Removed {
    /// The crawl or snapshot.
    pub owner: Owner,
    /// Its directory.
    pub directory: PathBuf,
    /// Identity of the directory: if it has another one, it stays. `None` if an older version made the
    /// directory.
    pub identity: Option<String>,
    /// Key of the URL of a snapshot, whose list has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_key: Option<String>,
}

/// Facts about the owner for `index.jsonl` and the HTML pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// Root directory of the archive.
    pub archive: PathBuf,
    /// Crawl of the snapshot; `None` for the worker of a crawl.
    pub crawl: Option<CrawlId>,
    /// When the snapshot was queued; `None` for the worker of a crawl.
    pub added_at: Option<Time>,
    /// Title of the snapshot so far.
    pub title: Option<String>,
    /// Tags of the snapshot so far.
    pub tags: Vec<String>,
    /// Hooks that do not run.
    pub skipped: Vec<Skipped>,
    /// What plugins do for the snapshot.
    #[serde(default)]
    pub roles: PageRoles,
    /// When the snapshot was visited; `None` for the worker of a crawl.
    pub visited_at: Option<Time>,
    /// The newest other snapshots of the same page that have a directory, in no order.
    pub versions: Vec<OtherVersion>,
}

/// Another snapshot of the page of an assignment, which may be in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherVersion {
    /// Its id.
    pub id: SnapshotId,
    /// Its directory.
    pub directory: PathBuf,
    /// When it was visited.
    pub at: Time,
    /// HTTP status of its document.
    pub http_status: Option<u16>,
    /// When it was sealed; `None` if it was in progress.
    pub ended_at: Option<Time>,
}

/// A hook that does not run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Name of its plugin.
    pub plugin: String,
    /// Name of the hook.
    pub hook: String,
    /// Reason.
    pub why: String,
}

/// One hook of an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTask {
    /// `PLUGIN/HOOK`, where HOOK is the name of its file without the last extension.
    pub key: String,
    /// Name of its plugin.
    pub plugin: String,
    /// Name of its file without the last extension.
    pub hook: String,
    /// How the worker waits for it.
    pub mode: HookMode,
    /// Time limit of one run.
    pub limit: Duration,
    /// Time limit of its plugin, which a daemon gets to do its work and to end.
    #[serde(default)]
    pub patience: Duration,
    /// Plugins during whose foreground hooks this hook may start.
    #[serde(default)]
    pub alongside: Vec<String>,
    /// All background hooks must end before this hook starts.
    #[serde(default)]
    pub after_background: bool,
    /// A plugin that its plugin requires has a daemon, such as a browser, with which it works.
    #[serde(default)]
    pub uses_daemon: bool,
    /// Keys of the daemons for which this hook waits: until each has printed its first line, has ended,
    /// or has used up its [`HookTask::patience`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<String>,
    /// Without which the worker does not have the hook started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Need>,
}

impl HookTask {
    /// Server that a hook of `plugin` requested.
    pub fn sonic(plugin: &str, limit: Duration) -> HookTask {
        HookTask {
            key: format!("{plugin}/sonic"),
            plugin: plugin.to_owned(),
            hook: "sonic".to_owned(),
            mode: HookMode::Daemon,
            limit,
            patience: Duration::ZERO,
            alongside: Vec::new(),
            after_background: false,
            uses_daemon: false,
            awaits: Vec::new(),
            needs: None,
        }
    }
}

/// How other hooks wait for this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookMode {
    /// The next hook waits until this one ends, unless it may run alongside it.
    Foreground,
    /// Background hook that ends by itself.
    Finite,
    /// Background hook that runs until it is stopped.
    Daemon,
}

/// State of earlier work, for a worker that continues it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Hooks that have started before.
    pub hooks: Vec<Known>,
    /// What a retry of the page must not lose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
}

/// The page as it was before a retry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Earlier {
    /// Its results.
    pub results: Vec<HookResult>,
    /// How the server answered.
    pub answer: Option<HttpAnswer>,
}

/// The state of one hook of the assignment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Known {
    /// `PLUGIN/HOOK`.
    pub key: String,
    /// State of its result.
    pub state: ResultState,
    /// It runs, or ended without a reported result: a call of `Run` joins this run.
    pub joinable: bool,
}

/// The answer to `Run`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The run, if there was one.
    pub run: Option<RunId>,
    /// Name of its unit; `None` if the hook was not started.
    pub unit: Option<String>,
    /// Program and arguments.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Run of the worker.
    pub parent: Option<RunId>,
    /// How the run ended.
    pub outcome: Outcome,
    /// The user interrupted it in order to run it again.
    #[serde(default)]
    pub again: bool,
    /// Lack of disk space during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    /// Verdict that is already recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// When its main process started.
    pub started_at: Option<Time>,
    /// When its main process ended.
    pub ended_at: Option<Time>,
}

impl Ended {
    /// End of a hook without a unit.
    pub fn without_run(outcome: Outcome) -> Ended {
        Ended {
            run: None,
            unit: None,
            argv: Vec::new(),
            parent: None,
            outcome,
            again: false,
            lack: None,
            verdict: None,
            started_at: None,
            ended_at: None,
        }
    }
}

/// Result of a hook, with what it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// `PLUGIN/HOOK`.
    pub key: String,
    /// State of the result, with the reason.
    pub verdict: Verdict,
    /// Output as the hook states it: a path or a short text.
    pub output: Option<String>,
    /// Files that the hook left, up to the limit of the list.
    pub files: Vec<File>,
    /// Size of all files in bytes, including those beyond the limit of the list.
    pub size: u64,
    /// Pages that the hook found, up to the limits of [`bounds`](crate::bus::documents::bounds).
    #[serde(default)]
    pub children: Vec<Child>,
    /// Tags that the hook found.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Title of the page, if the hook found one.
    pub title: Option<String>,
    /// Program that a provider hook installed.
    pub binary: Option<Found>,
    /// Settings and requests for later hooks.
    #[serde(default)]
    pub derived: Derived,
    /// HTTP status of the page's document, if the hook saw the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Plugin that requested the document, if that is another plugin than the hook's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_plugin: Option<String>,
    /// Why the machine, and not the site, is to blame for the failure of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_fault: Option<String>,
    /// Seconds that the host asks to wait.
    pub retry_after: Option<u64>,
    /// Milliseconds that the host asks to wait between two pages.
    pub crawl_delay: Option<u64>,
    /// When a background hook printed its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
    /// Start and end, if another program made the result. `None`: the result is of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<(Time, Time)>,
    /// Numbers that the hook states.
    #[serde(default, skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
}

impl Report {
    /// How the server answered the request for the page, if the hook saw that.
    pub fn answer(&self) -> Option<HttpAnswer> {
        let own = self.key.split('/').next().unwrap_or_default();
        Some(HttpAnswer {
            status: self.http_status?,
            plugin: self.http_plugin.clone().unwrap_or_else(|| own.to_owned()),
        })
    }
}

/// What a hook passes to later hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Derived {
    /// Settings of Machine records.
    pub settings: BTreeMap<String, String>,
    /// Programs that the hook found.
    pub programs: Vec<Found>,
    /// Programs that the hook requests, each with its providers, separated by commas.
    pub wanted: BTreeMap<String, String>,
    /// Server that the hook requests in its record.
    pub sonic: Option<SonicWish>,
}

/// A sonic server that runs as long as the crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SonicWish {
    /// Path of its configuration file.
    pub config_path: String,
    /// Host name or address at which it listens, if the hook names one.
    pub host: Option<String>,
    /// Port at which it listens, if the hook names one.
    pub port: Option<u16>,
}

/// A program as its provider hook reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Name of the program.
    pub name: String,
    /// Its path.
    pub abspath: String,
    /// Its version, if known.
    pub version: Option<String>,
    /// Provider plugin that installed it.
    pub provider: Option<String>,
    /// Variables that hooks get when they use it.
    pub env: BTreeMap<String, String>,
}

/// A page that a hook found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Address of the page.
    pub url: String,
    /// Text of the link or title in the list.
    pub title: Option<String>,
    /// Time of the bookmark, as in the list.
    pub bookmarked_at: Option<String>,
    /// Tags in the list.
    #[serde(default)]
    pub tags: Vec<String>,
}
