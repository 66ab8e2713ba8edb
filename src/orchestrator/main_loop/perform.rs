//! Performs actions. Calls to systemd run in tasks of their own; their results are events.

use crate::crawl::commands;
use crate::crawl::followers::Followers;
use crate::crawl::freezer;
use crate::crawl::freezer::Freezer;
use crate::crawl::hold::Holds;
use crate::main_loop::action::Action;
use crate::main_loop::engine::Engine;
use crate::main_loop::event::Event;
use crate::main_loop::input_files;
use crate::main_loop::notify;
use crate::main_loop::prepare::prepared;
use crate::main_loop::starts::{After, Start, Starts};
use crate::programs::inspect;
use crate::units::Collect;
use crate::watch::files::WatchRequest;
use crate::work::disk_watch::DiskWatch;
use crate::work::measure::{HookDirs, measured};
use archivist_core::model::{AnyId, CrawlId, Reading, RunId, SnapshotId, Time};
use archivist_core::plan::Evidence;
use archivist_shared::bus::announcer::Announcer;
use archivist_shared::bus::call::{Reply, Request, WatchCall, Work};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::bus::signals::Signal;
use archivist_shared::config::Scope;
use archivist_shared::systemd::synchronize_journal;
use archivist_shared::systemd::{ErrorKind, Hint, Manager, Release, Whom};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// How long an orchestrator that exits waits for the bus to take its signals.
const SIGNALS_TIMEOUT: Duration = Duration::from_secs(1);

pub struct Performer {
    manager: Manager,
    events: mpsc::UnboundedSender<Event>,
    starts: Starts,
    /// What signals said about main processes that ended.
    evidence: HashMap<String, Evidence>,
    joined: HashMap<RunId, Vec<Reply<String>>>,
    awaiting: HashMap<CrawlId, Vec<Reply<()>>>,
    /// Callers that wait until no unit of a crawl or snapshot runs.
    awaiting_units: HashMap<AnyId, Vec<Reply<()>>>,
    awaiting_outbox: Vec<Reply<()>>,
    /// Callers that wait for restored files, by snapshot.
    awaiting_copies: HashMap<SnapshotId, Vec<Reply<String>>>,
    followers: Followers,
    /// None after the end of the loop.
    announcer: Option<Announcer>,
    holds: Holds,
    freezer: Freezer,
    parked: Vec<Work>,
    status: notify::Status,
    disk: DiskWatch,
    /// What hooks have written is being measured.
    measuring: bool,
    pub wake_at: Option<Time>,
    /// Work before the process exits.
    pub farewell: Option<tokio::task::JoinHandle<()>>,
    pub exit: bool,
    pub failure: Option<&'static str>,
}

impl Performer {
    pub fn new(
        manager: Manager,
        events: mpsc::UnboundedSender<Event>,
        announcer: Announcer,
    ) -> Performer {
        Performer {
            manager,
            events,
            starts: Starts::default(),
            evidence: HashMap::new(),
            joined: HashMap::new(),
            awaiting: HashMap::new(),
            awaiting_units: HashMap::new(),
            awaiting_outbox: Vec::new(),
            awaiting_copies: HashMap::new(),
            followers: Followers::default(),
            announcer: Some(announcer),
            holds: Holds::default(),
            freezer: Freezer::default(),
            parked: Vec::new(),
            status: notify::Status::default(),
            disk: DiskWatch::default(),
            measuring: false,
            wake_at: None,
            farewell: None,
            exit: false,
            failure: None,
        }
    }

    /// Crawls that have followers.
    pub fn followed(&self) -> BTreeSet<CrawlId> {
        self.followers.crawls()
    }

    /// Whether a client requested the signals about pages.
    pub fn is_subscribed(&self) -> bool {
        let announcer = self.announcer.as_ref();
        announcer.is_some_and(Announcer::is_subscribed)
    }

    fn announce(&mut self, signal: Signal) {
        if let Some(announcer) = &mut self.announcer {
            announcer.announce(signal);
        }
    }

    /// Reports that the orchestrator exits, and waits until the signals are sent.
    pub async fn finish_signals(&mut self) {
        self.announce(Signal::Stopping);
        if let Some(announcer) = self.announcer.take() {
            announcer.finish(SIGNALS_TIMEOUT).await;
        }
    }

    /// Runs whose start systemd has not answered.
    pub fn unanswered(&self) -> BTreeSet<RunId> {
        self.starts.unanswered()
    }

    /// Records what an event means for starts, before the turn takes it. Once for each event.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Hint(Hint::Exited { unit, .. }) => self.starts.on_exited(unit),
            Event::Measured(..) => self.measuring = false,
            Event::Hint(Hint::Removed { unit }) => self.starts.on_removed(unit),
            Event::Hint(Hint::JobRemoved { unit, .. }) => self.starts.on_job_removed(unit),
            Event::Started { run, unit, result } => {
                let error = result.as_ref().err().map(|error| error.kind);
                match self.starts.on_answer(*run, unit, error) {
                    After::Nothing => {}
                    After::Read => self.read(*run, unit.clone(), None),
                    After::Unblock => self.unblock(unit.clone()),
                }
            }
            _ => {}
        }
    }

    /// Releases the unit that blocks a start. If it was gone before, no signal follows, so that an
    /// event is made.
    fn unblock(&self, unit: String) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            freezer::thaw(&manager, &unit).await;
            for how in [Release::Stop, Release::Reset] {
                if let Err(error) = manager.release(&unit, how).await {
                    tracing::warn!("{error}, ignoring");
                }
            }
            let gone = |reading: &Reading| reading.load_state == "not-found";
            if manager.read(&unit).await.as_ref().is_ok_and(gone) {
                let _ = events.send(Event::Hint(Hint::Removed { unit }));
            }
        });
    }

    pub fn perform(&mut self, action: Action, engine: &mut Engine) {
        match action {
            Action::Start {
                run,
                spec,
                stdin,
                stdout,
                watch,
            } => {
                let (spec, stdin) = (Arc::from(spec), stdin.map(Arc::new));
                self.starts.push(Start {
                    run,
                    spec,
                    stdin,
                    stdout,
                    watch,
                });
            }
            Action::Collect(collect) => self.collect(collect, engine.scope.clone()),
            Action::AwaitCopy { id, reply } => {
                self.awaiting_copies.entry(id).or_default().push(reply);
            }
            Action::CopyReady { id, answer } => {
                for reply in self.awaiting_copies.remove(&id).unwrap_or_default() {
                    reply.send(answer.clone());
                }
            }
            Action::ReadWatches { call, reply } => {
                self.read_watches(call, reply, engine.scope.clone());
            }
            Action::Read {
                run,
                unit,
                evidence,
            } => self.read(run, unit, evidence),
            Action::Release { unit, how } => {
                self.evidence.remove(&unit);
                self.release(unit, how);
            }
            Action::Signal { unit, whom, signal } => self.signal(unit, whom, signal),
            Action::End { unit, force, reply } => self.end(unit, force, reply),
            Action::Freeze(unit) => self.freezer.freeze(&self.manager, unit),
            Action::Thaw(unit) => self.freezer.thaw(&self.manager, unit),
            Action::Park(work) => self.parked.push(work),
            Action::Unpark => {
                for work in self.parked.drain(..) {
                    let _ = self.events.send(Event::Work(work));
                }
            }
            Action::StopSlice(slice) => self.stop_slice(slice),
            Action::Forget(unit) => self.manager.forget(&unit),
            Action::Remove(path) => {
                let _ = std::fs::remove_file(path);
            }
            Action::KeepInputs(kept) => {
                input_files::remove_except(&engine.scope, &engine.names, &kept);
            }
            Action::List => self.list(),
            Action::Join { run, reply } => self.joined.entry(run).or_default().push(reply),
            Action::Withhold(run) => self.starts.on_ended(run),
            Action::Settle { run, ended } => {
                self.starts.on_ended(run);
                self.settle(run, &ended);
            }
            Action::AwaitOutbox(reply) => self.awaiting_outbox.push(reply),
            Action::OutboxChanged => {
                for reply in self.awaiting_outbox.drain(..) {
                    reply.send(Ok(()));
                }
            }
            Action::AwaitSnapshots { crawl, reply } => {
                self.awaiting.entry(crawl).or_default().push(reply);
            }
            Action::AwaitUnits { of, reply } => {
                self.awaiting_units.entry(of).or_default().push(reply);
            }
            Action::UnitsEnded(of) => {
                for reply in self.awaiting_units.remove(&of).unwrap_or_default() {
                    reply.send(Ok(()));
                }
            }
            Action::SnapshotsDone(crawl) => {
                for reply in self.awaiting.remove(&crawl).unwrap_or_default() {
                    reply.send(Ok(()));
                }
            }
            Action::Admit { token, owner } => {
                engine.tokens.insert(token, owner);
            }
            Action::Dismiss(owner) => engine.tokens.retain(|_, other| *other != owner),
            Action::Follow {
                crawl,
                first,
                claim,
                reply,
            } => self.followers.follow(crawl, first, claim, &reply),
            Action::FollowStatus { claim, reply } => self.followers.follow_status(claim, &reply),
            Action::StatusChanged => self.followers.tell_of_status(),
            Action::WatchDisk(true) => {
                self.disk
                    .begin(engine.archive(), engine.load_limits(), &self.events);
            }
            Action::WatchDisk(false) => self.disk.end(),
            Action::Measure(dirs, rate) => self.measure(dirs, rate),
            Action::DiskLacked(lack) => engine.disk_lack = Some(lack),
            Action::Hold {
                crawl,
                cancel,
                claim,
                reply,
            } => {
                *engine.held.entry(crawl).or_default() += 1;
                self.holds
                    .hold((crawl, cancel), claim, &reply, &self.events);
            }
            Action::Register {
                command,
                claim,
                reply,
            } => commands::register(&mut engine.commands, command, claim, &reply, &self.events),
            Action::Deregister(number) => engine.commands.remove(number),
            Action::Unhold(crawl) => engine.unhold(crawl),
            Action::ReleaseHolds(crawl) => {
                engine.held.remove(&crawl);
                self.holds.release(crawl);
            }
            Action::Tell { crawl, line, last } => self.followers.tell(crawl, &line, last),
            Action::Answer(answer) => answer.send(),
            Action::Log(entry) => entry.write(),
            Action::Announce(signal) => self.announce(signal),
            Action::Again(event) => {
                let _ = self.events.send(event);
            }
            Action::Status(line) => {
                self.followers.compare_line(&line);
                if let Some(wait) = self.status.tell(&line) {
                    self.wake_at(crate::main_loop::clock::now().after(wait));
                }
            }
            Action::SyncJournal { invocation, reply } => {
                tokio::spawn(async move {
                    synchronize_journal().await;
                    reply.send(Ok(invocation));
                });
            }
            Action::WakeAt(time) => self.wake_at(time),
            Action::Inspect { programs, then } => {
                self.inspect(programs, then);
            }
            Action::Version { path, version } => {
                match version {
                    Some(version) => engine.versions.insert(path, version),
                    None => engine.versions.remove(&path),
                };
            }
            Action::Shelve { name, brought } => {
                engine.library.insert(name, brought);
            }
            Action::ThawAtShutdown(units) => {
                let farewell = freezer::thaw_at_shutdown(self.manager.clone(), units);
                self.farewell = Some(tokio::spawn(farewell));
            }
            Action::Exit => self.exit = true,
            Action::Fail(why) => self.failure = Some(why),
        }
    }

    /// Starts what waits, up to the limit of starts in flight.
    pub fn start_waiting(&mut self, limit: u32, scope: &Scope) {
        while let Some(start) = self.starts.next(limit) {
            let unit = start.spec.name.clone();
            self.evidence.remove(&unit);
            let (manager, events) = (self.manager.clone(), self.events.clone());
            let scope = scope.clone();
            tokio::spawn(async move {
                let result = match prepared(&start, scope).await {
                    Ok(stdout) => manager.start(&start.spec, stdout.as_ref()).await,
                    Err(error) => Err(error),
                };
                let _ = events.send(Event::Started {
                    run: start.run,
                    unit,
                    result,
                });
            });
        }
    }

    fn wake_at(&mut self, time: Time) {
        self.wake_at = Some(self.wake_at.map_or(time, |other| other.min(time)));
    }

    fn read(&mut self, run: RunId, unit: String, evidence: Option<Evidence>) {
        if let Some(evidence) = evidence {
            self.evidence.insert(unit.clone(), evidence);
        }
        let evidence = self.evidence.get(&unit).cloned();
        let early = self.starts.is_unanswered(run);
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            let result = manager.read(&unit).await.map(Box::new);
            let killed = match &result {
                Ok(reading) => reading.exec_main_code > 1 || reading.load_state == "not-found",
                Err(_) => false,
            };
            let stopping = killed && manager.is_stopping().await.unwrap_or(true);
            let _ = events.send(Event::Read {
                run,
                unit,
                early,
                evidence,
                result,
                stopping,
            });
        });
    }

    fn release(&self, unit: String, how: Release) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.release(&unit, how).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    fn signal(&self, unit: String, whom: Whom, signal: i32) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.kill(&unit, whom, signal).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    /// Sends SIGTERM as KillMode= of the unit says, or SIGKILL to all, without stopping the unit,
    /// whose outcome has to be read.
    fn end(&self, unit: String, force: bool, reply: Reply<()>) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            let (whom, signal) = if force {
                (Whom::All, SIGKILL)
            } else {
                let mode = manager.read(&unit).await.map(|reading| reading.kill_mode);
                match mode.as_deref() {
                    Ok("mixed" | "process") => (Whom::Main, SIGTERM),
                    _ => (Whom::All, SIGTERM),
                }
            };
            match manager.kill(&unit, whom, signal).await {
                Err(error) if error.kind == ErrorKind::Unreachable => {
                    // The process ends with the connection; the worker repeats the call.
                    return tracing::warn!("{error}");
                }
                Err(error) => tracing::warn!("{error}, ignoring"),
                Ok(()) => {}
            }
            reply.send(Ok(()));
        });
    }

    fn stop_slice(&self, slice: String) {
        let (manager, settled) = (self.manager.clone(), self.freezer.all_settled());
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.stop_slice(&slice).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    fn list(&self) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            let _ = events.send(Event::Listed(manager.list().await));
        });
    }

    fn measure(&mut self, dirs: Vec<HookDirs>, rate: u64) {
        if std::mem::replace(&mut self.measuring, true) {
            return;
        }
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let _ = events.send(Event::Measured(measured(&dirs), rate));
        });
    }

    fn inspect(&self, programs: Vec<(String, PathBuf)>, then: Option<Request>) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let inspected = inspect::look(&programs, Path::new(inspect::DPKG));
            let _ = events.send(Event::Inspected(inspected));
            if let Some(request) = then {
                let _ = events.send(Event::Request(request));
            }
        });
    }

    fn collect(&self, collect: Collect, scope: Scope) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let collected = Box::new(collect.collected(&scope));
            let _ = events.send(Event::Collected(collected));
        });
    }

    fn read_watches(&self, call: WatchCall, reply: Reply<String>, scope: Scope) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let request = WatchRequest::read(&scope, call, reply);
            let _ = events.send(Event::Watches(request));
        });
    }

    fn settle(&mut self, run: RunId, ended: &Ended) {
        let text = serde_json::to_string(ended).unwrap_or_default();
        for reply in self.joined.remove(&run).unwrap_or_default() {
            reply.send(Ok(text.clone()));
        }
    }
}
