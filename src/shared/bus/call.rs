//! The calls of our two interfaces as values, each with the one who waits for its answer.

use super::callers::Claim;
use crate::bus::documents::report::{AddOptions, Filter, Refused};
use crate::bus::documents::watches::HistoryFilter;
use crate::bus::documents::work::Report;
use archivist_core::model::{CheckKind, CrawlId, Owner, RunId};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Why a caller gets an error, by the names of our D-Bus errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What was asked for makes no sense: the caller can mend it.
    Invalid(String),
    /// There is no crawl or snapshot of that id.
    NoSuch(String),
    /// The caller has no right to it.
    Denied(String),
    /// We failed.
    Failed(String),
}

/// The way back to a caller, until it is answered.
type Waiting<T> = Option<oneshot::Sender<Result<T, Refusal>>>;

/// A caller that waits for an answer. Answering twice is answering once.
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

/// A list that is being added.
#[derive(Clone, Debug, Default)]
pub struct Adding {
    /// None before the first line that names a page.
    pub crawl: Option<CrawlId>,
    pub accepted: u64,
    pub refused: Vec<Refused>,
    /// Lines, and bytes of them, that are dealt with.
    pub lines: usize,
    pub bytes: usize,
}

/// A retry of very many pages that has begun.
#[derive(Clone, Debug, Default)]
pub struct Retrying {
    /// What is queued again so far.
    pub count: u32,
    /// Ids of pages: all that it is about are above the first and up to the second.
    pub range: (i64, i64),
    /// The pages up to this id are dealt with.
    pub after: i64,
    /// Crawls that are to be begun again when all is done.
    pub reopened: BTreeSet<CrawlId>,
    /// All pages are queued; those that the crawls of `reopened` leave behind are looked for.
    pub leaving: bool,
}

/// A call of the interface for people.
#[derive(Clone)]
pub enum Request {
    Add {
        lines: Arc<Vec<u8>>,
        options: AddOptions,
        /// The user id of the caller.
        user: u32,
        /// What was made of the first lines of a long list, of which the rest comes again.
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
    /// Without an id: of every page that has a failed result.
    Retry {
        id: Option<Owner>,
        hook: Option<String>,
        /// How far a retry of many pages has come, of which the rest comes again.
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
        /// Give the crawl up when the caller goes away.
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

/// What people ask of watches.
#[derive(Clone)]
pub enum WatchCall {
    /// Queue checks of these kinds.
    Check {
        watch: String,
        kinds: Vec<CheckKind>,
    },
    /// Answer when this check is over.
    Await(RunId),
    /// All watches, or the one of this name.
    List(Option<String>),
    History {
        watch: String,
        filter: HistoryFilter,
    },
    /// Why its checks wait or are not good.
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
        /// How many of its child pages are queued already; the rest of a long report comes again.
        done: usize,
        /// The verdict as it is on record.
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
