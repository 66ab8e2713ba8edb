//! Calls of the two D-Bus interfaces as values, each with the handle for its answer.

use super::callers::Claim;
use crate::bus::documents::report::{AddOptions, Filter, Refused};
use crate::bus::documents::watches::HistoryFilter;
use crate::bus::documents::work::Report;
use archivist_core::model::{AnyId, CheckKind, CrawlId, Owner, RunId};
use std::collections::{BTreeMap, BTreeSet};
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
    pub fn new() -> (Reply<T>, oneshot::Receiver<Result<T, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

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
    pub accepted: u64,
    pub refused: Vec<Refused>,
    /// Processed lines, and their bytes.
    pub lines: usize,
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

/// A call of the interface for users.
#[derive(Clone)]
pub enum Request {
    Add {
        lines: Arc<Vec<u8>>,
        options: AddOptions,
        /// User id of the caller.
        user: u32,
        /// Progress of a long list, which is processed in parts.
        so_far: Option<Box<Adding>>,
        reply: Reply<String>,
    },
    Install {
        names: Vec<String>,
        user: u32,
        reply: Reply<String>,
    },
    Cancel {
        id: Owner,
        reply: Reply<()>,
    },
    /// Answers when the crawl or snapshot is final and none of its units runs, or the run has ended.
    AwaitUnits {
        id: AnyId,
        reply: Reply<()>,
    },
    /// End the hook of this run; its page continues.
    CancelRun {
        id: RunId,
        reply: Reply<()>,
    },
    Abort {
        id: CrawlId,
        reply: Reply<()>,
    },
    Pause {
        id: Owner,
        reply: Reply<()>,
    },
    Resume {
        id: Owner,
        reply: Reply<()>,
    },
    Amend {
        id: CrawlId,
        config: BTreeMap<String, String>,
        user: u32,
        reply: Reply<()>,
    },
    /// Without an id: every page with a failed result.
    Retry {
        id: Option<Owner>,
        hook: Option<String>,
        /// Progress of a retry of many pages, which is processed in parts.
        so_far: Option<Box<Retrying>>,
        reply: Reply<u32>,
    },
    Status {
        reply: Reply<String>,
    },
    List {
        what: String,
        filter: Filter,
        reply: Reply<String>,
    },
    Show {
        id: Owner,
        reply: Reply<String>,
    },
    ShowRun {
        id: RunId,
        reply: Reply<String>,
    },
    Why {
        id: Owner,
        reply: Reply<String>,
    },
    Plugins {
        reply: Reply<String>,
    },
    Watch {
        crawl: CrawlId,
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    Hold {
        crawl: CrawlId,
        /// Cancel the crawl when the caller disconnects.
        cancel: bool,
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    Interrupt {
        id: Owner,
        reply: Reply<String>,
    },
    Proceed {
        crawl: CrawlId,
        again: bool,
        reply: Reply<u32>,
    },
    Draft {
        options: AddOptions,
        user: u32,
        reply: Reply<String>,
    },
    Reload {
        reply: Reply<()>,
    },
    Watches {
        call: WatchCall,
        reply: Reply<String>,
    },
}

/// A call about watches.
#[derive(Clone)]
pub enum WatchCall {
    /// Queue checks of these kinds.
    Check {
        watch: String,
        kinds: Vec<CheckKind>,
    },
    /// Answer when this check has ended.
    Await(RunId),
    /// All watches, or the watch of this name.
    List(Option<String>),
    History {
        watch: String,
        filter: HistoryFilter,
    },
    /// Why checks of the watch wait or fail.
    Why(String),
}

/// A call of the interface for workers.
#[derive(Clone)]
pub enum Work {
    Attach {
        token: String,
        reply: Reply<String>,
    },
    Run {
        token: String,
        hook: String,
        stdout: Arc<OwnedFd>,
        reply: Reply<String>,
    },
    Stop {
        token: String,
        hook: String,
        force: bool,
        reply: Reply<()>,
    },
    Report {
        token: String,
        report: Arc<Report>,
        /// Number of child pages that are queued already; a long report is processed in parts.
        done: usize,
        /// The recorded verdict.
        reply: Reply<String>,
    },
    /// The InvocationID of the newest run of this hook.
    Invocation {
        token: String,
        hook: String,
        reply: Reply<String>,
    },
    SnapshotsDone {
        token: String,
        reply: Reply<()>,
    },
}

/// A call of either interface.
pub enum Call {
    Request(Request),
    Work(Work),
}
