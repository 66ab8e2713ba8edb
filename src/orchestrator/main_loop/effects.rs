//! What the loop changes outside of the database, by collaborator. No call waits: what comes back
//! is an event. [`crate::main_loop::live`] has the implementations of the product; those of the
//! tests let PID 1 answer late, in another order, or not at all.

use crate::bus::call::Reply;
use crate::engine::commands::{Commands, RegisteredCommand};
use crate::machine::inspect::InspectedProgram;
use crate::main_loop::event::Event;
use crate::main_loop::measure::HookDirs;
use crate::main_loop::starts::Start;
use archivist_config::Scope;
use archivist_core::model::{CrawlId, RunId};
use archivist_core::plan::{Evidence, LoadLimits};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::signals::Signal;
use archivist_shared::systemd::{Release, Whom};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// systemd: calls for units. A unit gets its calls in order, once calls to freeze or thaw it are
/// answered.
pub trait Systemd {
    /// Starts a unit, after its files were prepared.
    fn start(&mut self, start: Start, scope: &Scope);
    /// Reads a unit. `early`: systemd has not answered the start of this run.
    fn read(&mut self, run: RunId, unit: String, early: bool, evidence: Option<Evidence>);
    fn release(&mut self, unit: String, how: Release);
    /// Releases the unit that blocks a start. If it is gone before, no signal follows, so that an
    /// event is made.
    fn unblock(&mut self, unit: String);
    fn signal(&mut self, unit: String, whom: Whom, signal: i32);
    /// Ends the processes of a unit as its KillMode= says, or by force, and answers then.
    fn end(&mut self, unit: String, force: bool, reply: Reply);
    fn freeze(&mut self, unit: String);
    fn thaw(&mut self, unit: String);
    /// Thaws units if the machine is shutting down.
    fn thaw_at_shutdown(&mut self, units: Vec<String>);
    fn stop_slice(&mut self, slice: String);
    /// Removes the files that systemd leaves of a unit that is gone.
    fn forget(&mut self, unit: &str);
    fn list(&mut self);
    /// Answers with an invocation as soon as the journal has everything that it logged.
    fn synchronize_journal(&mut self, invocation: String, reply: Reply);
}

/// Reads or writes files. It is called outside of the turn, on a thread.
pub type Job = Box<dyn FnOnce(&Scope) -> Event + Send>;

/// Makes the event of inspected programs.
pub type Inspection = Box<dyn FnOnce(Vec<InspectedProgram>) -> Event + Send>;

/// Work on threads, and the events of the loop itself.
pub trait Background {
    /// Makes this the next event but those that wait already.
    fn send(&mut self, event: Event);
    /// Runs a job, whose result is an event.
    fn run(&mut self, job: Job, scope: &Scope);
    /// Measures what hooks have written while the free space shrinks by `rate` bytes a second.
    fn measure(&mut self, hooks: Vec<HookDirs>, rate: u64);
    /// Inspects programs, and makes the event of what was found.
    fn inspect(&mut self, programs: Vec<(String, PathBuf)>, then: Inspection);
    /// Reads the free space of the archive from now on; none: no longer.
    fn watch_disk(&mut self, watched: Option<(PathBuf, LoadLimits)>);
}

/// Callers on the bus: their sockets, and signals to all.
pub trait Callers {
    fn followed(&self) -> BTreeSet<CrawlId>;
    /// Whether a client requested the signals about pages.
    fn is_subscribed(&self) -> bool;
    /// A new follower of a crawl, with the lines that show the present state.
    fn follow(&mut self, crawl: CrawlId, first: Vec<String>, claim: Claim, reply: &Reply);
    fn follow_status(&mut self, claim: Claim, reply: &Reply);
    fn tell(&mut self, crawl: CrawlId, line: &str, last: bool);
    /// The answer to a request for the status may have changed.
    fn tell_of_status(&mut self);
    /// The line of STATUS=. Returns whether it is sent later.
    fn status(&mut self, line: &str) -> Option<std::time::Duration>;
    /// A command holds the crawl in the foreground; `cancel`: the crawl is aborted when it ends.
    fn hold(&mut self, crawl: CrawlId, cancel: bool, claim: Claim, reply: &Reply);
    fn release_holds(&mut self, crawl: CrawlId);
    fn register(
        &mut self,
        commands: &mut Commands,
        command: RegisteredCommand,
        claim: Claim,
        reply: &Reply,
    );
    fn announce(&mut self, signal: Signal);
}

pub trait Effects: Systemd + Background + Callers {}
impl<T: Systemd + Background + Callers> Effects for T {}
