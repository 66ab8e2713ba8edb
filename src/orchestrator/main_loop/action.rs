//! What the loop does after the commit.

use crate::bus::call::{Answer, Refusal, Reply};
use crate::engine::commands::RegisteredCommand;
use crate::engine::state::Engine;
use crate::main_loop::effects::{Inspection, Job};
use crate::main_loop::event::Event;
use crate::main_loop::measure::HookDirs;
use crate::main_loop::order::{Call, Order};
use crate::main_loop::starts::{Need, Output};
use archivist_core::model::{CrawlId, RunId, Time};
use archivist_core::plan::Evidence;
use archivist_core::unit::UnitSpec;
use archivist_shared::bus::callers::Claim;
use archivist_shared::systemd::{Release, Whom};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub enum UnitAction {
    /// Start a unit whose run is recorded.
    Start {
        run: RunId,
        spec: Box<UnitSpec>,
        stdin: Option<Vec<u8>>,
        stdout: Output,
        needs: Option<Need>,
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
        reply: Reply,
    },
    Freeze(String),
    /// Thaw them. Any other call for the unit follows.
    Thaw(String),
    /// Thaw these units before the loop ends, if the machine is shutting down.
    ThawAtShutdown(Vec<String>),
    StopSlice(String),
    /// Remove the files that systemd leaves of a unit that is gone.
    Forget(String),
    /// The run has ended; its unit needs nothing more.
    Ended(RunId),
    /// List all units, to reconcile.
    List,
}

/// What callers wait for: a word of the room that answers them, and which one of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Awaited(&'static str, String);

impl Awaited {
    pub fn new(what: &'static str, which: impl ToString) -> Awaited {
        Awaited(what, which.to_string())
    }

    /// The end of a run.
    pub fn end_of(run: RunId) -> Awaited {
        Awaited::new("end", run)
    }
}

/// Answers to callers, at once or once something has happened.
pub enum ReplyAction {
    Answer(Reply, Result<Answer, Refusal>),
    /// Answer this caller when it has happened.
    Await(Awaited, Reply),
    /// It has happened: answer all that wait for it; without a text, that it is done.
    Settle(Awaited, Result<Option<String>, Refusal>),
    /// Keep a call of a worker until `Unpark`.
    Park(Call),
    Unpark,
    /// Answer with an invocation as soon as the journal has everything that it logged.
    SyncJournal {
        invocation: String,
        reply: Reply,
    },
}

/// Files, which are read and written outside of the transaction.
pub enum FileAction {
    /// Read files on a thread, which makes an event.
    Run(Job),
    Remove(PathBuf),
    /// Remove the standard inputs of units except these.
    KeepInputs(BTreeSet<PathBuf>),
    /// Measure what hooks have written. The free space shrinks by so many bytes a second.
    Measure(Vec<HookDirs>, u64),
    /// Read the free space of the archive from now on, or no longer.
    WatchDisk(bool),
    /// Inspect programs, which makes an event.
    Inspect(Vec<(String, PathBuf)>, Inspection),
}

/// Callers that hold a socket, and signals to all of them.
pub enum CallerAction {
    /// A new follower of a crawl, with the lines that show the present state.
    Follow {
        crawl: CrawlId,
        first: Vec<String>,
        claim: Claim,
        reply: Reply,
    },
    /// A caller wants a line for each change of the status.
    FollowStatus {
        claim: Claim,
        reply: Reply,
    },
    /// The answer to a request for the status may have changed.
    StatusChanged,
    Tell {
        crawl: CrawlId,
        line: String,
        last: bool,
    },
    Hold {
        crawl: CrawlId,
        cancel: bool,
        claim: Claim,
        reply: Reply,
    },
    /// No unit of the crawl is left: release the commands that hold it.
    ReleaseHolds(CrawlId),
    Register {
        command: RegisteredCommand,
        claim: Claim,
        reply: Reply,
    },
    Announce(archivist_shared::bus::signals::Signal),
}

pub enum LoopAction {
    /// The rest of an event, for the next turn.
    Again(Event),
    /// Run a turn at this time, or earlier.
    WakeAt(Time),
    /// The figures of the STATUS= line have changed.
    Status(String),
    Exit,
    /// End the loop for this reason, so that systemd restarts the service.
    Fail(&'static str),
}

impl LoopAction {
    /// The rest of a call, for the next turn.
    pub(crate) fn again(rest: impl Order, reply: &Reply) -> LoopAction {
        LoopAction::Again(Event::Call(Call::new(rest, reply)))
    }
}

/// One of all actions, for the collaborator that performs it.
pub enum Action {
    Unit(UnitAction),
    Reply(ReplyAction),
    File(FileAction),
    Caller(CallerAction),
    /// Changes what the process remembers.
    Engine(Box<dyn FnOnce(&mut Engine) + Send>),
    Loop(LoopAction),
    Log(Box<dyn FnOnce() + Send>),
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
    Loop LoopAction
}
