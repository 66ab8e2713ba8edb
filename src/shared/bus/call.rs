//! Calls of the D-Bus interfaces as values, each with the handle for its answer.

use super::callers::Claim;
use crate::bus::documents::report::{AddOptions, Filter, Refused, Registration};
use crate::bus::documents::watches::HistoryFilter;
use crate::bus::documents::work::Report;
use archivist_core::fleet::Delivery;
use archivist_core::model::search::SearchQuestion;
use archivist_core::model::{AnyId, CheckKind, CrawlId, Owner, RETRY_HOOK, RunId, SnapshotId};
use archivist_core::plan::RetentionRule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Error of a call; each variant is an error name on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is invalid; the caller can correct it.
    Invalid(String),
    /// No crawl or snapshot has this id.
    NoSuch(String),
    /// The caller has no permission.
    Denied(String),
    /// The orchestrator failed.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refusal::Invalid(why)
        | Refusal::NoSuch(why)
        | Refusal::Denied(why)
        | Refusal::Failed(why)) = self;
        f.write_str(why)
    }
}

/// Handle to answer a caller.
type Waiting<T> = Option<oneshot::Sender<Result<T, Refusal>>>;

/// A caller that waits for an answer. Only the first answer counts.
pub struct Reply<T>(Arc<Mutex<Waiting<T>>>);

impl<T> Clone for Reply<T> {
    fn clone(&self) -> Self {
        Reply(self.0.clone())
    }
}

impl<T> Reply<T> {
    /// Returns a reply and the end at which the interface waits for it.
    pub fn new() -> (Reply<T>, oneshot::Receiver<Result<T, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Answers the caller, unless an earlier call of this function did.
    pub fn send(&self, answer: Result<T, Refusal>) {
        let sender = self.0.lock().ok().and_then(|mut sender| sender.take());
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }
}

/// A list that is being added in parts.
#[derive(Clone, Debug, Default)]
pub struct Adding {
    /// `None` before the first line that names a page.
    pub crawl: Option<CrawlId>,
    /// Pages queued so far.
    pub accepted: u64,
    /// Lines refused so far.
    pub refused: Vec<Refused>,
    /// Number of pages that are left out because the archive has them.
    pub known: u64,
    /// Number of those that got tags, a title or a date from the list.
    pub completed: u64,
    /// Crawl of the first of them.
    pub known_in: Option<CrawlId>,
    /// Settings of the persona of the crawl, which filter its pages.
    pub persona: BTreeMap<String, String>,
    /// Processed lines, and their bytes.
    pub lines: usize,
    /// Bytes of these lines.
    pub bytes: usize,
}

/// A retry of very many pages that is being queued in parts.
#[derive(Clone, Debug, Default)]
pub struct Retrying {
    /// Results queued so far.
    pub count: u32,
    /// Ids of the affected pages: above the first, up to and including the second.
    pub range: (i64, i64),
    /// Pages up to this id are processed.
    pub after: i64,
    /// Crawls to start again when all pages are processed.
    pub reopened: BTreeSet<CrawlId>,
    /// All pages are queued; next come the crawls of `reopened` without such pages.
    pub leaving: bool,
}

/// The results that a retry queues again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that failed or were skipped.
    Failed,
    /// Those of this plugin or hook, which also runs on pages that have no result of it.
    Hook(String),
    /// All results of the pages.
    All,
    /// Those that a sealed page lacks of the plugins that its crawl would use now.
    Missing,
}

/// A call of the interface for users.
#[derive(Clone)]
pub enum Request {
    /// Queue a crawl, or the next part of a long list.
    Add {
        /// The list, one URL or JSON object per line.
        lines: Arc<Vec<u8>>,
        /// Depth, tags, plugins and settings of the crawl.
        options: AddOptions,
        /// User id of the caller.
        user: u32,
        /// Whether the caller works in the foreground: it joins an open crawl of another such caller
        /// with the same list, options and user.
        joins: bool,
        /// Progress of a long list, which is processed in parts.
        so_far: Option<Box<Adding>>,
        /// Gets the JSON of [`Added`](crate::bus::documents::report::Added).
        reply: Reply<String>,
    },
    /// Queue the installation of programs.
    Install {
        /// Names of plugins or programs.
        names: Vec<String>,
        /// User id of the caller.
        user: u32,
        /// Gets the JSON of [`Added`](crate::bus::documents::report::Added).
        reply: Reply<String>,
    },
    /// Cancel a crawl or snapshot, and stop its units.
    Cancel {
        /// The crawl or snapshot.
        id: Owner,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Delete crawls and snapshots that have ended.
    Delete {
        /// The crawls and snapshots.
        ids: Vec<Owner>,
        /// Whether nothing is deleted, and the answer says what would be.
        dry_run: bool,
        /// User id of the caller.
        user: u32,
        /// Gets the JSON of [`Deleted`](crate::bus::documents::report::Deleted).
        reply: Reply<String>,
    },
    /// List pages that rules of `Retention=` delete now.
    Expired {
        /// The rules; empty means the configured ones.
        rules: Vec<RetentionRule>,
        /// Only pages with ids above this one.
        after: i64,
        /// Gets the JSON of [`Expired`](crate::bus::documents::report::Expired).
        reply: Reply<String>,
    },
    /// Keep a crawl or snapshot from deletion, or no longer.
    Pin {
        /// The crawl or snapshot.
        id: Owner,
        /// Whether it is kept from now on.
        pinned: bool,
        /// Whether nothing is changed, and the answer says what would be.
        dry_run: bool,
        /// User id of the caller.
        user: u32,
        /// Gets 1 if this is a change, otherwise 0.
        reply: Reply<u32>,
    },
    /// Ask the index of full text search.
    Search {
        /// The question.
        question: SearchQuestion,
        /// Gets the answer as JSON.
        reply: Reply<String>,
    },
    /// Build the index of full text search again.
    RebuildSearch {
        /// User id of the caller.
        user: u32,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Let the rules of `Retention=` delete what is due, and believe the clock.
    ConfirmRetention {
        /// User id of the caller.
        user: u32,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Answers with those of these settings that no plugin has.
    UnknownSettings {
        /// Names of settings.
        names: Vec<String>,
        /// Gets a JSON list of names.
        reply: Reply<String>,
    },
    /// Answers when the crawl or snapshot is final and none of its units runs, or the run has ended.
    AwaitUnits {
        /// The crawl, snapshot or run.
        id: AnyId,
        /// Answered when it is over.
        reply: Reply<()>,
    },
    /// End the hook of this run; its page continues.
    CancelRun {
        /// The run.
        id: RunId,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Cancel the open pages of a crawl, then run its last hooks.
    Abort {
        /// The crawl.
        id: CrawlId,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Pause a crawl or snapshot, and freeze its hooks.
    Pause {
        /// The crawl or snapshot.
        id: Owner,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Resume a paused crawl or snapshot.
    Resume {
        /// The crawl or snapshot.
        id: Owner,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Replace settings of a crawl, or of a page alone.
    Amend {
        /// The crawl or snapshot.
        id: Owner,
        /// New values; other settings stay.
        config: BTreeMap<String, String>,
        /// User id of the caller.
        user: u32,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Without an id: the whole archive; of its failures, those of sealed pages.
    Retry {
        /// The crawl or snapshot.
        id: Option<Owner>,
        /// Which results are queued.
        which: Which,
        /// User id of the caller.
        user: u32,
        /// Progress of a retry of many pages, which is processed in parts.
        so_far: Option<Box<Retrying>>,
        /// Gets the number of queued results.
        reply: Reply<u32>,
    },
    /// Describe queue, running units and machine.
    Status {
        /// Gets the JSON of [`Status`](crate::bus::documents::report::Status).
        reply: Reply<String>,
    },
    /// Count for a monitoring system.
    Metrics {
        /// Gets the JSON of [`Metrics`](crate::bus::documents::report::Metrics).
        reply: Reply<String>,
    },
    /// List rows of the database.
    List {
        /// `crawls`, `snapshots`, `results`, `runs`, `hosts`, `timeline` or `binaries`.
        what: String,
        /// Which rows.
        filter: Box<Filter>,
        /// Gets a JSON list.
        reply: Reply<String>,
    },
    /// Describe a crawl or snapshot with its results and runs.
    Show {
        /// The crawl or snapshot.
        id: Owner,
        /// Gets the JSON of [`Details`](crate::bus::documents::report::Details).
        reply: Reply<String>,
    },
    /// Describe a single run of a hook or worker.
    ShowRun {
        /// The run.
        id: RunId,
        /// Gets the JSON of [`Details`](crate::bus::documents::report::Details).
        reply: Reply<String>,
    },
    /// Explain why a crawl, snapshot or run waits or has failed.
    Why {
        /// The crawl, snapshot or run.
        id: AnyId,
        /// Gets the JSON of [`Why`](crate::bus::documents::report::Why), or for a run of
        /// [`WhyRun`](crate::bus::documents::report::WhyRun).
        reply: Reply<String>,
    },
    /// Restore the files of a snapshot that only the store has.
    Fetch {
        /// The snapshot.
        id: SnapshotId,
        /// Gets the JSON of [`Copy`](crate::bus::documents::report::Copy) when the files are there.
        reply: Reply<String>,
    },
    /// Test whether the store can be written and read.
    TestStore {
        /// User id of the caller.
        user: u32,
        /// Gets the name of the store when the test has succeeded; an empty text without a store.
        reply: Reply<String>,
    },
    /// List plugins and their problems.
    Plugins {
        /// Gets the JSON of [`Plugins`](crate::bus::documents::report::Plugins).
        reply: Reply<String>,
    },
    /// Report the changes of a crawl.
    Watch {
        /// The crawl.
        crawl: CrawlId,
        /// Counts for the caller while the stream is open.
        claim: Claim,
        /// Gets a stream of [`CrawlEvent`](crate::bus::documents::report::CrawlEvent), one JSON
        /// document per line.
        reply: Reply<OwnedFd>,
    },
    /// Report when the answer to `Status` may have changed.
    WatchStatus {
        /// Counts for the caller while the stream is open.
        claim: Claim,
        /// Gets a stream of empty lines.
        reply: Reply<OwnedFd>,
    },
    /// Keep a crawl for a command in the foreground.
    Hold {
        /// The crawl.
        crawl: CrawlId,
        /// Cancel the crawl when the caller disconnects.
        cancel: bool,
        /// Counts for the caller while the descriptor is open.
        claim: Claim,
        /// Gets a descriptor that closes when the crawl has ended and none of its units runs.
        reply: Reply<OwnedFd>,
    },
    /// Register a command in the foreground, for `Status`.
    Register {
        /// What the command says about itself.
        command: Registration,
        /// Its process, as the bus reports it.
        pid: Option<u32>,
        /// Its user, as the bus reports it.
        user: Option<u32>,
        /// Counts for the caller while the descriptor is open.
        claim: Claim,
        /// Gets a descriptor that is open on both sides while the command is registered.
        reply: Reply<OwnedFd>,
    },
    /// Interrupt the hooks that a held crawl or its snapshot waits for.
    Interrupt {
        /// The crawl or snapshot.
        id: Owner,
        /// Gets the JSON of [`Interrupted`](crate::bus::documents::report::Interrupted).
        reply: Reply<String>,
    },
    /// Continue after an interruption.
    Proceed {
        /// The crawl.
        crawl: CrawlId,
        /// Whether the interrupted hooks run again instead of being skipped.
        again: bool,
        /// Gets the number of interrupted hooks.
        reply: Reply<u32>,
    },
    /// Describe what `Add` with these options would do.
    Draft {
        /// Depth, tags, plugins and settings.
        options: AddOptions,
        /// User id of the caller.
        user: u32,
        /// Gets the JSON of [`Draft`](crate::bus::documents::report::Draft).
        reply: Reply<String>,
    },
    /// Read configuration and plugins again.
    Reload {
        /// User id of the caller.
        user: u32,
        /// Answered in the turn that uses the files.
        reply: Reply<()>,
    },
    /// A call about watches.
    Watches {
        /// Which call.
        call: WatchCall,
        /// Gets a JSON document.
        reply: Reply<String>,
    },
}

impl Request {
    /// Returns the name of the call, an entry of [`CALLS`](archivist_core::model::CALLS).
    pub fn call(&self) -> &'static str {
        match self {
            Request::Add { joins: false, .. } => "Add",
            Request::Add { joins: true, .. } => "Run",
            Request::Install { .. } => "Install",
            Request::Cancel { .. } | Request::CancelRun { .. } => "Cancel",
            Request::Delete { .. } => "Delete",
            Request::Expired { .. } => "Expired",
            Request::Pin { pinned: true, .. } => "Pin",
            Request::Pin { pinned: false, .. } => "Unpin",
            Request::Search { .. } => "Search",
            Request::RebuildSearch { .. } => "RebuildSearch",
            Request::ConfirmRetention { .. } => "ConfirmRetention",
            Request::UnknownSettings { .. } => "UnknownSettings",
            Request::AwaitUnits { .. } => "AwaitUnits",
            Request::Abort { .. } => "Abort",
            Request::Pause { .. } => "Pause",
            Request::Resume { .. } => "Resume",
            Request::Amend { .. } => "Amend",
            Request::Retry { id, which, .. } => match which {
                Which::Failed => "Retry",
                Which::Hook(_) if id.is_some() => RETRY_HOOK,
                Which::Hook(_) => "Retry",
                Which::All => "RetryAll",
                Which::Missing => "Update",
            },
            Request::Status { .. } => "Status",
            Request::Metrics { .. } => "Metrics",
            Request::List { .. } => "List",
            Request::Show { .. } | Request::ShowRun { .. } => "Show",
            Request::Why { .. } => "Why",
            Request::Fetch { .. } => "Fetch",
            Request::TestStore { .. } => "TestStore",
            Request::Plugins { .. } => "Plugins",
            Request::Watch { .. } => "Watch",
            Request::WatchStatus { .. } => "WatchStatus",
            Request::Hold { .. } => "Hold",
            Request::Register { .. } => "Register",
            Request::Interrupt { .. } => "Interrupt",
            Request::Proceed { .. } => "Proceed",
            Request::Draft { .. } => "Draft",
            Request::Reload { .. } => "Reload",
            Request::Watches { call, .. } => match call {
                WatchCall::Check { .. } => "Check",
                WatchCall::Await(_) => "AwaitCheck",
                WatchCall::List(_) => "Watches",
                WatchCall::History { .. } => "History",
                WatchCall::Why(_) => "Why",
            },
        }
    }

    /// Returns the user id of the caller, if the request has one, and the crawls and snapshots that it names.
    pub fn caller(&self) -> (Option<u32>, &[Owner]) {
        use std::slice::from_ref;
        match self {
            Request::Add { user, .. }
            | Request::Install { user, .. }
            | Request::Draft { user, .. }
            | Request::RebuildSearch { user, .. }
            | Request::ConfirmRetention { user, .. }
            | Request::TestStore { user, .. }
            | Request::Reload { user, .. } => (Some(*user), &[]),
            Request::Delete { ids, user, .. } => (Some(*user), ids),
            Request::Pin { id, user, .. } | Request::Amend { id, user, .. } => {
                (Some(*user), from_ref(id))
            }
            Request::Retry { id, user, .. } => (Some(*user), id.as_slice()),
            _ => (None, &[]),
        }
    }
}

/// A call about watches.
#[derive(Clone)]
pub enum WatchCall {
    /// Queue checks of these kinds.
    Check {
        /// Name of the watch.
        watch: String,
        /// Empty: all kinds that the watch has.
        kinds: Vec<CheckKind>,
    },
    /// Answer when this check has ended.
    Await(RunId),
    /// All watches, or the watch of this name.
    List(Option<String>),
    /// List checks of a watch, the newest first.
    History {
        /// Name of the watch.
        watch: String,
        /// Which checks.
        filter: HistoryFilter,
    },
    /// Why checks of the watch wait or fail.
    Why(String),
}

/// A call of the interface for workers.
#[derive(Clone)]
pub enum Work {
    /// Start or continue the work of a worker.
    Attach {
        /// Token of its assignment.
        token: String,
        /// Gets the JSON of [`Standing`](crate::bus::documents::work::Standing).
        reply: Reply<String>,
    },
    /// Run a hook, or join its run.
    Run {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
        /// File for standard output of the hook.
        stdout: Arc<OwnedFd>,
        /// Gets the JSON of [`Ended`](crate::bus::documents::work::Ended) when the hook has ended.
        reply: Reply<String>,
    },
    /// Stop a running hook.
    Stop {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
        /// Kill it instead of sending SIGTERM.
        force: bool,
        /// Answered after the call to systemd.
        reply: Reply<()>,
    },
    /// Record the result of a hook.
    Report {
        /// Token of the worker's assignment.
        token: String,
        /// The result, with what the hook found.
        report: Arc<Report>,
        /// Number of child pages that are queued already; a long report is processed in parts.
        done: usize,
        /// The recorded verdict.
        reply: Reply<String>,
    },
    /// The InvocationID of the newest run of this hook.
    Invocation {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
        /// Gets 32 hexadecimal digits, or an empty text if the run has not ended.
        reply: Reply<String>,
    },
    /// Wait until no snapshot of the crawl is open.
    SnapshotsDone {
        /// Token of the crawl worker's assignment.
        token: String,
        /// Answered when the last snapshot is sealed or cancelled.
        reply: Reply<()>,
    },
}

/// A call of the interface for the fleet service.
#[derive(Clone)]
pub enum NodeCall {
    /// What the node holds and wants.
    Holdings {
        /// Gets the JSON of [`Holdings`](archivist_core::fleet::Holdings).
        reply: Reply<String>,
    },
    /// Store a reply of the fleet's database.
    Deliver {
        /// The reply.
        delivery: Arc<Delivery>,
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Release the hosts that have no running page.
    Stop {
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Forget the fleet.
    Leave {
        /// Answered after the commit.
        reply: Reply<()>,
    },
    /// Wait until the outbox has a new entry.
    Await {
        /// Answered then.
        reply: Reply<()>,
    },
}

/// A call of one of the interfaces.
pub enum Call {
    /// Of the interface for users.
    Request(Request),
    /// Of the interface for workers.
    Work(Work),
    /// Of the interface for the fleet service.
    Node(NodeCall),
}
