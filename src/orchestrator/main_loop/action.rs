//! What the loop does, after the commit.

use crate::main_loop::event::Event;
use crate::main_loop::log::LogEntry;
use crate::main_loop::starts::Output;
use crate::programs::library::Brought;
use crate::watch::files::CheckEnd;
use crate::work::measure::HookDirs;
use archivist_core::model::{CrawlId, Owner, RunId};
use archivist_core::plan::{Evidence, Lack};
use archivist_core::unit::UnitSpec;
use archivist_shared::bus::call::{Refusal, Reply, Request, WatchCall, Work};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::{Release, Whom};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub enum Action {
    /// Start a unit whose run is recorded.
    Start {
        run: RunId,
        spec: Box<UnitSpec>,
        stdin: Option<Vec<u8>>,
        stdout: Output,
        /// Name of the watch without which the unit is not started.
        watch: Option<String>,
    },
    /// Read the files that a call about watches is about.
    ReadWatches {
        call: WatchCall,
        reply: Reply<String>,
    },
    /// Read the files of a check whose unit has ended.
    CollectCheck(Box<CheckEnd>),
    /// Read a unit, with what a signal said of it.
    Read {
        run: RunId,
        unit: String,
        evidence: Option<Evidence>,
    },
    /// Let a unit go whose outcome is on disk.
    Release {
        unit: String,
        how: Release,
    },
    Signal {
        unit: String,
        whom: Whom,
        signal: i32,
    },
    /// End a hook for its worker, as its unit's KillMode= says or by force. The answer comes when
    /// that is done: what was only going to be done would be forgotten with us.
    End {
        unit: String,
        force: bool,
        reply: Reply<()>,
    },
    /// Hold the processes of a hook still.
    Freeze(String),
    /// Let them go on; whatever else is done with the unit is done after that.
    Thaw(String),
    /// A worker asked for what must not be started now: it asks again after `Unpark`.
    Park(Work),
    /// What was parked is asked again.
    Unpark,
    StopSlice(String),
    /// Remove what systemd leaves of a unit that is gone.
    Forget(String),
    /// A file of ours is not needed any more.
    Remove(PathBuf),
    /// List all units, to reconcile.
    List,
    /// A worker waits for the end of this run.
    Join {
        run: RunId,
        reply: Reply<String>,
    },
    /// The run has ended, and who waits for it hears of that when somebody has said what next.
    Withhold(RunId),
    /// The run has ended: tell who waits.
    Settle {
        run: RunId,
        ended: Ended,
    },
    /// Answer with an invocation as soon as the journal has everything that it logged.
    SyncJournal {
        invocation: String,
        reply: Reply<String>,
    },
    /// A crawl's worker waits for its snapshots.
    AwaitSnapshots {
        crawl: CrawlId,
        reply: Reply<()>,
    },
    /// The crawl has no open snapshot any more: tell who waits.
    SnapshotsDone(CrawlId),
    /// From now on this token proves this owner.
    Admit {
        token: String,
        owner: Owner,
    },
    /// It does so no longer.
    Dismiss(Owner),
    /// A follower of a crawl, with the lines that bring it up to date.
    Follow {
        crawl: CrawlId,
        first: Vec<String>,
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    /// A command holds the crawl in the foreground.
    Hold {
        crawl: CrawlId,
        cancel: bool,
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    /// One that did is gone.
    Unhold(CrawlId),
    /// Nothing of the crawl is left: who holds it may go.
    LetGo(CrawlId),
    /// A line for the followers of a crawl.
    Tell {
        crawl: CrawlId,
        line: String,
        last: bool,
    },
    Answer(Answer),
    /// Write a log entry.
    Log(LogEntry),
    /// The figures of the STATUS= line have changed.
    Status(String),
    /// Come back at this time at the latest.
    WakeAt(archivist_core::model::Time),

    /// Measure what hooks have written.
    Measure(Vec<HookDirs>),
    /// A hook was ended for want of this.
    DiskLacked(Lack),

    /// Look at programs, and then take the request once more that waits for it.
    Inspect {
        programs: Vec<(String, PathBuf)>,
        then: Option<Request>,
    },
    /// What is at this path has this version from now on, or none that is known.
    Version {
        path: PathBuf,
        version: Option<String>,
    },
    /// From now on a program of this name is in the library.
    Shelve {
        name: String,
        brought: Brought,
    },

    /// The rest of an event that was too much for one turn.
    Again(Event),
    /// Before the loop is left: thaw these units if the machine goes down.
    ThawAtShutdown(Vec<String>),
    /// Leave the loop.
    Exit,
    /// Leave it for this reason, to be started anew.
    Fail(&'static str),
}

/// An answer to a caller.
pub enum Answer {
    Text(Reply<String>, Result<String, Refusal>),
    Number(Reply<u32>, Result<u32, Refusal>),
    Done(Reply<()>, Result<(), Refusal>),
    /// The descriptor that was asked for is refused.
    NoDescriptor(Reply<OwnedFd>, Refusal),
}

impl Answer {
    pub fn send(self) {
        match self {
            Answer::Text(reply, answer) => reply.send(answer),
            Answer::Number(reply, answer) => reply.send(answer),
            Answer::Done(reply, answer) => reply.send(answer),
            Answer::NoDescriptor(reply, refusal) => reply.send(Err(refusal)),
        }
    }
}
