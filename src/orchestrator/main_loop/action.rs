//! What the loop does after the commit.

use crate::crawl::commands::RegisteredCommand;
use crate::main_loop::event::Event;
use crate::main_loop::log::LogEntry;
use crate::main_loop::starts::Output;
use crate::programs::library::Brought;
use crate::units::Collect;
use crate::work::measure::HookDirs;
use archivist_core::model::{AnyId, CrawlId, Owner, RunId, SnapshotId};
use archivist_core::plan::{Evidence, Lack};
use archivist_core::unit::UnitSpec;
use archivist_shared::bus::call::{Refusal, Reply, Request, WatchCall, Work};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::{Release, Whom};
use std::collections::BTreeSet;
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
    /// Read the files of a unit that has ended.
    Collect(Collect),
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
    /// Keep a call of a worker until `Unpark`.
    Park(Work),
    /// Repeat the parked calls.
    Unpark,
    StopSlice(String),
    /// Remove the files that systemd leaves of a unit that is gone.
    Forget(String),
    /// Remove a file of the orchestrator.
    Remove(PathBuf),
    /// Remove the standard inputs of units except these.
    KeepInputs(BTreeSet<PathBuf>),
    /// List all units, to reconcile.
    List,
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
    /// Answer with an invocation as soon as the journal has everything that it logged.
    SyncJournal {
        invocation: String,
        reply: Reply<String>,
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
    /// Answer when the crawl or snapshot is final and none of its units runs, or the run has ended.
    AwaitUnits {
        of: AnyId,
        reply: Reply<()>,
    },
    /// The crawl or snapshot is final and none of its units runs, or the run has ended.
    UnitsEnded(AnyId),
    /// No snapshot of the crawl is open: answer its worker.
    SnapshotsDone(CrawlId),
    /// Accept this token for this owner.
    Admit {
        token: String,
        owner: Owner,
    },
    /// Reject the token of this owner.
    Dismiss(Owner),
    /// A new follower of a crawl, with the lines that show the present state.
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
    /// A caller wants a line for each change of the status.
    FollowStatus {
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    /// The answer to a request for the status may have changed.
    StatusChanged,
    /// A command in the foreground registers.
    Register {
        command: RegisteredCommand,
        claim: Claim,
        reply: Reply<OwnedFd>,
    },
    /// The registered command of this number has ended.
    Deregister(u64),
    /// A command that held the crawl has ended.
    Unhold(CrawlId),
    /// No unit of the crawl is left: release the commands that hold it.
    ReleaseHolds(CrawlId),
    /// A line for the followers of a crawl.
    Tell {
        crawl: CrawlId,
        line: String,
        last: bool,
    },
    Answer(Answer),
    /// Write a log entry.
    Log(LogEntry),
    /// Send a signal on the bus.
    Announce(archivist_shared::bus::signals::Signal),
    /// The figures of the STATUS= line have changed.
    Status(String),
    /// Run a turn at this time, or earlier.
    WakeAt(archivist_core::model::Time),

    /// Read the free space of the archive from now on, or no longer.
    WatchDisk(bool),
    /// Measure what hooks have written. The free space shrinks by so many bytes a second.
    Measure(Vec<HookDirs>, u64),
    /// A hook was ended because this was short.
    DiskLacked(Lack),

    /// Inspect programs, then repeat the request that waits for it.
    Inspect {
        programs: Vec<(String, PathBuf)>,
        then: Option<Request>,
    },
    /// The program at this path has this version; none if unknown.
    Version {
        path: PathBuf,
        version: Option<String>,
    },
    /// A program of this name is in the library.
    Shelve {
        name: String,
        brought: Brought,
    },

    /// The rest of an event, for the next turn.
    Again(Event),
    /// Thaw these units before the loop ends, if the machine is shutting down.
    ThawAtShutdown(Vec<String>),
    /// End the loop.
    Exit,
    /// End the loop for this reason, so that systemd restarts the service.
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
