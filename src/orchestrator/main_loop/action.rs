//! What the loop does after the commit.

use crate::engine::commands::RegisteredCommand;
use crate::machine::library::Brought;
use crate::main_loop::effects::Job;
use crate::main_loop::event::Event;
use crate::main_loop::log::LogEntry;
use crate::main_loop::measure::HookDirs;
use crate::main_loop::starts::Output;
use archivist_core::model::{AnyId, CrawlId, Owner, RunId, SnapshotId, Time};
use archivist_core::plan::{Evidence, Lack};
use archivist_core::unit::UnitSpec;
use archivist_shared::bus::call::{Refusal, Reply, Request, Work};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::{Release, Whom};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Calls to systemd.
pub enum UnitAction {
    /// Start a unit whose run is recorded.
    Start {
        run: RunId,
        spec: Box<UnitSpec>,
        stdin: Option<Vec<u8>>,
        stdout: Output,
        /// Name of the watch without which the unit is not started.
        watch: Option<String>,
    },
    /// Read a unit. `evidence`: what a signal said about it.
    Read {
        run: RunId,
        unit: String,
        evidence: Option<Evidence>,
    },
    /// Release a unit whose outcome is recorded.
    Release {
        unit: String,
        how: Release,
    },
    Signal {
        unit: String,
        whom: Whom,
        signal: i32,
    },
    /// End a hook for its worker, as KillMode= of its unit says, or by force. The answer follows
    /// the call to systemd: an answered call that was not made would be lost with this process.
    End {
        unit: String,
        force: bool,
        reply: Reply<()>,
    },
    /// Freeze the processes of a hook.
    Freeze(String),
    /// Thaw them. Any other call for the unit follows.
    Thaw(String),
    /// Thaw these units before the loop ends, if the machine is shutting down.
    ThawAtShutdown(Vec<String>),
    StopSlice(String),
    /// Remove the files that systemd leaves of a unit that is gone.
    Forget(String),
    /// List all units, to reconcile.
    List,
}

/// Answers to callers, at once or once something has happened.
pub enum ReplyAction {
    Answer(CallerAnswer),
    /// Answer this caller when the run has ended.
    Join {
        run: RunId,
        reply: Reply<String>,
    },
    /// The run has ended; its worker is answered after a user's decision.
    Withhold(RunId),
    /// The run has ended: answer the callers that wait for it.
    Settle {
        run: RunId,
        ended: Ended,
    },
    /// Answer when the files of the snapshot are restored, or the store is tested.
    AwaitCopy {
        id: SnapshotId,
        reply: Reply<String>,
    },
    /// The files of the snapshot are restored, or the test of the store has ended: answer.
    CopyReady {
        id: SnapshotId,
        answer: Result<String, Refusal>,
    },
    /// Answer when the unit that asks the index of full text search has ended.
    AwaitSearch {
        run: RunId,
        reply: Reply<String>,
    },
    /// The index was asked: answer.
    Found {
        run: RunId,
        answer: Result<String, Refusal>,
    },
    /// Answer when the outbox has a new entry.
    AwaitOutbox(Reply<()>),
    /// The outbox has a new entry.
    OutboxChanged,
    /// Answer the crawl's worker when no snapshot is open.
    AwaitSnapshots {
        crawl: CrawlId,
        reply: Reply<()>,
    },
    /// No snapshot of the crawl is open: answer its worker.
    SnapshotsDone(CrawlId),
    /// Answer when the crawl or snapshot is final and none of its units runs, or the run has ended.
    AwaitUnits {
        of: AnyId,
        reply: Reply<()>,
    },
    /// The crawl or snapshot is final and none of its units runs, or the run has ended.
    UnitsEnded(AnyId),
    /// Keep a call of a worker until `Unpark`.
    Park(Work),
    /// Repeat the parked calls.
    Unpark,
    /// Answer with an invocation as soon as the journal has everything that it logged.
    SyncJournal {
        invocation: String,
        reply: Reply<String>,
    },
}

/// Files, which are read and written outside of the transaction.
pub enum FileAction {
    /// Read files on a thread, which makes an event.
    Run(Job),
    /// Remove a file of the orchestrator.
    Remove(PathBuf),
    /// Record what was deleted where a restored backup does not replace it.
    RecordDeleted {
        /// The crawls and pages.
        ids: Vec<Owner>,
        /// When they were deleted.
        at: Time,
    },
    /// Remove the standard inputs of units except these.
    KeepInputs(BTreeSet<PathBuf>),
    /// Measure what hooks have written. The free space shrinks by so many bytes a second.
    Measure(Vec<HookDirs>, u64),
    /// Read the free space of the archive from now on, or no longer.
    WatchDisk(bool),
    /// Inspect programs, then repeat the request that waits for it.
    Inspect { programs: Vec<(String, PathBuf)>, then: Option<Request> },
}

/// Callers that hold a socket, and signals to all of them.
pub enum CallerAction {
    /// A new follower of a crawl, with the lines that show the present state.
    Follow { crawl: CrawlId, first: Vec<String>, claim: Claim, reply: Reply<OwnedFd> },
    /// A caller wants a line for each change of the status.
    FollowStatus { claim: Claim, reply: Reply<OwnedFd> },
    /// The answer to a request for the status may have changed.
    StatusChanged,
    /// A line for the followers of a crawl.
    Tell { crawl: CrawlId, line: String, last: bool },
    /// A command holds the crawl in the foreground.
    Hold { crawl: CrawlId, cancel: bool, claim: Claim, reply: Reply<OwnedFd> },
    /// No unit of the crawl is left: release the commands that hold it.
    ReleaseHolds(CrawlId),
    /// A command in the foreground registers.
    Register { command: RegisteredCommand, claim: Claim, reply: Reply<OwnedFd> },
    /// Send a signal on the bus.
    Announce(archivist_shared::bus::signals::Signal),
}

/// What the orchestrator keeps in memory.
pub enum EngineAction {
    /// Accept this token for this owner.
    Admit { token: String, owner: Owner },
    /// Reject the token of this owner.
    Dismiss(Owner),
    /// The registered command of this number has ended.
    Deregister(u64),
    /// A command that held the crawl has ended.
    Unhold(CrawlId),
    /// A hook was ended because this was short.
    DiskLacked(Lack),
    /// The program at this path has this version; none if unknown.
    Version { path: PathBuf, version: Option<String> },
    /// A program of this name is in the library.
    Shelve { name: String, brought: Brought },
}

/// The loop itself.
pub enum LoopAction {
    /// The rest of an event, for the next turn.
    Again(Event),
    /// Run a turn at this time, or earlier.
    WakeAt(archivist_core::model::Time),
    /// The figures of the STATUS= line have changed.
    Status(String),
    /// End the loop.
    Exit,
    /// End the loop for this reason, so that systemd restarts the service.
    Fail(&'static str),
}

/// One of all actions, for the collaborator that performs it.
pub enum Action {
    Unit(UnitAction),
    Reply(ReplyAction),
    File(FileAction),
    Caller(CallerAction),
    Engine(EngineAction),
    Loop(LoopAction),
    /// Write a log entry.
    Log(LogEntry),
}

macro_rules! action_of {
    ($($kind:ident $action:ident)*) => {$(
        impl From<$action> for Action {
            fn from(action: $action) -> Action {
                Action::$kind(action)
            }
        }
    )*};
}

action_of! {
    Unit UnitAction
    Reply ReplyAction
    File FileAction
    Caller CallerAction
    Engine EngineAction
    Loop LoopAction
    Log LogEntry
}

/// An answer to a caller.
pub enum CallerAnswer {
    Text(Reply<String>, Result<String, Refusal>),
    Number(Reply<u32>, Result<u32, Refusal>),
    Done(Reply<()>, Result<(), Refusal>),
    /// The descriptor that was asked for is refused.
    NoDescriptor(Reply<OwnedFd>, Refusal),
}

impl CallerAnswer {
    pub fn send(self) {
        match self {
            CallerAnswer::Text(reply, answer) => reply.send(answer),
            CallerAnswer::Number(reply, answer) => reply.send(answer),
            CallerAnswer::Done(reply, answer) => reply.send(answer),
            CallerAnswer::NoDescriptor(reply, refusal) => reply.send(Err(refusal)),
        }
    }
}
