//! An orchestrator without systemd: the loop, one turn at a time.

mod progress;

use super::worker::Did;
use super::world::{BOOT, Call, Mood, World};
use crate::kinds::KINDS;
use crate::main_loop::action::Action;
use crate::main_loop::engine::{Engine, Programs};
use crate::main_loop::event::Event;
use crate::main_loop::input_files;
use crate::main_loop::prepare::prepare;
use crate::main_loop::starts::{After, Start, Starts};
use crate::main_loop::turn::Turn;
use crate::store::{Store, Tx};
use crate::watch::files::WatchRequest;
use crate::work::measure::HookDirs;
use archivist_core::model::{AnyId, CrawlId, Lifecycle, Owner, RunId, SnapshotId, Time};
use archivist_core::plan::Evidence;
use archivist_plugin::sample;
use archivist_shared::bus::call::{Reply, Work};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::signals::Signal;
use archivist_shared::config::{Scope, Settings};
use archivist_shared::systemd::{Hint, Release};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Name of the database.
pub const DATABASE: &str = "test.sqlite3";

/// Small limits, so that tests reach each of them.
fn settings() -> Settings {
    Settings {
        workers_per_kind: 3,
        workers_max: 4,
        snapshots_per_crawl: 2,
        starts_in_flight: 3,
        host_workers: 2,
        ..Settings::default()
    }
}

fn engine(directory: &TempDir) -> Engine {
    let plugins = [
        sample::plugin("alpha", json!({}), &["on_Snapshot__10_alpha.py"]),
        sample::plugin(
            "beta",
            json!({"required_binaries": [{"name": "tool", "binproviders": "shelf"}]}),
            &["on_Snapshot__20_beta.py"],
        ),
        sample::plugin("shelf", json!({}), &["on_BinaryRequest__10_shelf.py"]),
        sample::plugin(
            "setup",
            json!({}),
            &["on_CrawlSetup__10_setup.py", "on_CrawlCleanup__90_end.py"],
        ),
    ];
    Engine::new(
        Scope::system(directory.path()),
        settings(),
        sample::catalogue(plugins),
        BOOT.into(),
        Programs {
            worker: "/usr/lib/archivist/archivist-orchestrator".into(),
            archivist: "/usr/bin/archivist".into(),
            launcher: Some("/bin/launcher".into()),
            store: "/bin/store".into(),
        },
        "252".into(),
    )
}

fn open(directory: &TempDir, now: Time) -> Store {
    let mut store = Store::open(&directory.path().join(DATABASE)).unwrap();
    store.take_over("test.service", BOOT, now).unwrap();
    store
}

pub struct Bed {
    pub directory: TempDir,
    pub store: Store,
    pub engine: Engine,
    pub starts: Starts,
    pub world: World,
    pub now: Time,
    /// CLOCK_BOOTTIME in milliseconds.
    pub machine: i64,
    pub wake_at: Option<Time>,
    /// Whether a client requested the signals about pages.
    pub is_subscribed: bool,
    /// Signals of the last turn.
    pub signals: Vec<Signal>,
    /// Hooks to measure, and the rate at which the disk fills up.
    pub measured: Option<(Vec<HookDirs>, u64)>,
    /// Calls with their files, for the next turn.
    read: Vec<Event>,
    evidence: HashMap<String, Evidence>,
    joined: HashMap<RunId, Vec<Reply<String>>>,
    parked: Vec<Work>,
    /// Runs that were open after the last turn.
    pub known: BTreeSet<RunId>,
    /// When a snapshot of a host was started last.
    pub begun: BTreeMap<String, Time>,
    pub pace: Duration,
    /// How often the status was reported as changed.
    pub status_changes: u32,
    awaiting: HashMap<CrawlId, Vec<Reply<()>>>,
    awaiting_units: HashMap<AnyId, Vec<Reply<()>>>,
    awaiting_outbox: Vec<Reply<()>>,
    awaiting_copies: Vec<(SnapshotId, Reply<String>)>,
    /// Final items, and those that were retried since.
    pub finals: BTreeMap<Owner, Lifecycle>,
}

impl Bed {
    pub fn new() -> Bed {
        // The tests ask SQLite for many durable commits.
        let directory = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let now = Time(1_000_000);
        Bed {
            store: open(&directory, now),
            engine: engine(&directory),
            directory,
            starts: Starts::default(),
            world: World::default(),
            now,
            machine: 0,
            wake_at: None,
            is_subscribed: false,
            signals: Vec::new(),
            measured: None,
            read: Vec::new(),
            evidence: HashMap::new(),
            joined: HashMap::new(),
            parked: Vec::new(),
            known: BTreeSet::new(),
            begun: BTreeMap::new(),
            pace: Duration::ZERO,
            status_changes: 0,
            awaiting: HashMap::new(),
            awaiting_units: HashMap::new(),
            awaiting_outbox: Vec::new(),
            awaiting_copies: Vec::new(),
            finals: BTreeMap::new(),
        }
    }

    /// The same with so much time from one start on a host to the next.
    pub fn with_pace(pace: Duration) -> Bed {
        let mut bed = Bed::new();
        bed.engine.settings.host_delay = pace;
        Bed { pace, ..bed }
    }

    pub fn look<T>(&mut self, read: impl FnOnce(&Tx<'_>) -> crate::store::Result<T>) -> T {
        read(&self.store.begin().unwrap()).unwrap()
    }

    /// One turn of the loop, as the orchestrator makes it.
    pub fn turn(&mut self, batch: Vec<Event>) {
        self.try_turn(batch).unwrap();
    }

    /// The same; an error if the transaction was not committed, and nothing was done then.
    pub fn try_turn(&mut self, batch: Vec<Event>) -> crate::store::Result<()> {
        let unanswered = self.starts.unanswered();
        for event in &batch {
            self.observe(event);
        }
        let followed = BTreeSet::new();
        self.engine.read_start_facts();
        self.engine.read_facts();
        let marks = self.engine.unknown_ids();
        let tx = self.store.begin().unwrap();
        let mut turn = Turn {
            tx: &tx,
            engine: &self.engine,
            kinds: KINDS,
            now: self.now,
            machine: self.machine,
            jitter: 0.5,
            followed: &followed,
            is_subscribed: self.is_subscribed,
            announced: 0,
            unanswered: &unanswered,
            leaving_out: BTreeSet::new(),
            disk_rate: 0,
            actions: Vec::new(),
            changes: BTreeSet::new(),
        };
        if let Some(marks) = marks {
            turn.raise_ids(marks)?;
        }
        turn.open()?;
        let mut left = Vec::new();
        for event in &batch {
            if !turn.event(event)? {
                left.push(event.clone());
            }
        }
        if batch.iter().any(Event::decides) {
            let view = turn.decide()?;
            turn.close(&view)?;
        }
        let actions = turn.actions;
        tx.commit()?;
        for action in actions {
            self.perform(action);
        }
        while let Some(start) = self.starts.next(self.engine.settings.starts_in_flight) {
            self.evidence.remove(&start.spec.name);
            match prepare(&start, &self.engine.scope) {
                Ok(_) => self.world.calls.push_back(Call::Start(start)),
                Err(error) => self.world.answers.push(Event::Started {
                    run: start.run,
                    unit: start.spec.name.clone(),
                    result: Err(error),
                }),
            }
        }
        if self.engine.facts.are_awaited() {
            left.push(Event::Due);
            return self.try_turn(left);
        }
        self.check();
        match std::mem::take(&mut self.read) {
            read if read.is_empty() => Ok(()),
            read => self.try_turn(read),
        }
    }

    fn observe(&mut self, event: &Event) {
        match event {
            Event::Hint(Hint::Exited { unit, .. }) => self.starts.on_exited(unit),
            Event::Hint(Hint::Removed { unit }) => self.starts.on_removed(unit),
            Event::Hint(Hint::JobRemoved { unit, .. }) => self.starts.on_job_removed(unit),
            Event::Started { run, unit, result } => {
                let error = result.as_ref().err().map(|error| error.kind);
                match self.starts.on_answer(*run, unit, error) {
                    After::Nothing => {}
                    After::Read => self.read(*run, unit.clone(), None),
                    After::Unblock => {
                        let unit = unit.clone();
                        let calls = &mut self.world.calls;
                        calls.push_back(Call::Freezer(unit.clone(), false));
                        calls.push_back(Call::Release(unit.clone(), Release::Stop));
                        calls.push_back(Call::Release(unit.clone(), Release::Reset));
                        calls.push_back(Call::Gone(unit));
                    }
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, run: RunId, unit: String, evidence: Option<Evidence>) {
        if let Some(evidence) = evidence {
            self.evidence.insert(unit.clone(), evidence);
        }
        self.world.calls.push_back(Call::Read {
            run,
            early: self.starts.is_unanswered(run),
            evidence: self.evidence.get(&unit).cloned(),
            unit,
        });
    }

    fn perform(&mut self, action: Action) {
        let calls = &mut self.world.calls;
        match action {
            Action::Start {
                run,
                spec,
                stdin,
                stdout,
                watch,
            } => self.starts.push(Start {
                run,
                spec: Arc::from(spec),
                stdin: stdin.map(Arc::new),
                stdout,
                watch,
            }),
            Action::Collect(collect) => {
                let collected = collect.collected(&self.engine.scope);
                let event = Event::Collected(Box::new(collected));
                self.world.answers.push(event);
            }
            Action::AwaitCopy { id, reply } => self.awaiting_copies.push((id, reply)),
            Action::CopyReady { id, answer } => {
                for (other, reply) in std::mem::take(&mut self.awaiting_copies) {
                    assert_eq!(other, id, "another copy is awaited");
                    reply.send(answer.clone());
                }
            }
            Action::ReadWatches { call, reply } => {
                let request = WatchRequest::read(&self.engine.scope, call, reply);
                self.read.push(Event::Watches(request));
            }
            Action::Read {
                run,
                unit,
                evidence,
            } => self.read(run, unit, evidence),
            Action::Release { unit, how } => {
                self.evidence.remove(&unit);
                calls.push_back(Call::Release(unit, how));
            }
            Action::Signal { unit, signal, .. } => calls.push_back(Call::Kill(unit, signal)),
            Action::End { unit, force, reply } => {
                calls.push_back(Call::Kill(unit, if force { 9 } else { 15 }));
                reply.send(Ok(()));
            }
            Action::Freeze(unit) => calls.push_back(Call::Freezer(unit, true)),
            Action::Thaw(unit) => calls.push_back(Call::Freezer(unit, false)),
            Action::Park(work) => self.parked.push(work),
            Action::Unpark => {
                let parked = self.parked.drain(..).map(Event::Work);
                self.world.answers.extend(parked);
            }
            Action::Remove(path) => std::fs::remove_file(path).unwrap_or_default(),
            Action::KeepInputs(kept) => {
                input_files::remove_except(&self.engine.scope, &self.engine.names, &kept);
            }
            Action::StopSlice(slice) => calls.push_back(Call::StopSlice(slice)),
            Action::Forget(_) => {}
            Action::List => calls.push_back(Call::List),
            Action::Join { run, reply } => self.joined.entry(run).or_default().push(reply),
            Action::Withhold(run) => self.starts.on_ended(run),
            Action::Hold { crawl, .. } => *self.engine.held.entry(crawl).or_default() += 1,
            Action::Register { command, .. } => {
                self.engine.commands.add(command);
            }
            Action::Deregister(number) => self.engine.commands.remove(number),
            Action::Unhold(crawl) => self.engine.unhold(crawl),
            Action::ReleaseHolds(crawl) => {
                self.engine.held.remove(&crawl);
            }
            Action::Settle { run, ended } => {
                self.starts.on_ended(run);
                let text = serde_json::to_string(&ended).unwrap();
                for reply in self.joined.remove(&run).unwrap_or_default() {
                    reply.send(Ok(text.clone()));
                }
            }
            Action::AwaitSnapshots { crawl, reply } => {
                self.awaiting.entry(crawl).or_default().push(reply);
            }
            Action::AwaitOutbox(reply) => self.awaiting_outbox.push(reply),
            Action::OutboxChanged => {
                for reply in self.awaiting_outbox.drain(..) {
                    reply.send(Ok(()));
                }
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
                self.engine.tokens.insert(token, owner);
            }
            Action::Dismiss(owner) => self.engine.tokens.retain(|_, other| *other != owner),
            Action::Answer(answer) => answer.send(),
            Action::Log(entry) => entry.write(),
            Action::Announce(signal) => self.signals.push(signal),
            Action::Again(event) => self.world.answers.push(event),
            Action::WakeAt(time) => self.wake_at = Some(time),
            Action::WatchDisk(_) => {}
            Action::Measure(hooks, rate) => self.measured = Some((hooks, rate)),
            Action::DiskLacked(lack) => self.engine.disk_lack = Some(lack),
            Action::Exit | Action::Fail(_) => panic!("nothing here ends the orchestrator"),
            Action::Follow { .. } | Action::Tell { .. } | Action::Status(_) => {}
            Action::FollowStatus { .. } => {}
            Action::StatusChanged => self.status_changes += 1,
            Action::SyncJournal { invocation, reply } => reply.send(Ok(invocation)),
            Action::Inspect { .. } | Action::ThawAtShutdown(_) | Action::Version { .. } => {}
            Action::Shelve { name, brought } => {
                self.engine.library.insert(name, brought);
            }
        }
    }

    /// One of the crawls.
    pub fn crawl(&mut self, n: usize) -> Option<CrawlId> {
        let crawls = self.look(|tx| tx.list_crawls(&Filter::default()));
        (!crawls.is_empty()).then(|| crawls[n % crawls.len()].id)
    }

    /// One of the crawls and snapshots.
    pub fn owner(&mut self, n: usize) -> Option<Owner> {
        let all = Filter::default();
        let crawls = self.look(|tx| tx.list_crawls(&all));
        let snapshots = self.look(|tx| tx.list_snapshots(&all));
        let crawls = crawls.iter().map(|crawl| Owner::Crawl(crawl.id));
        let snapshots = snapshots.iter().map(|s| Owner::Snapshot(s.id));
        let owners: Vec<Owner> = crawls.chain(snapshots).collect();
        (!owners.is_empty()).then(|| owners[n % owners.len()])
    }

    pub fn turn_with(&mut self, signals: usize, answers: usize, seed: usize) {
        let mut batch = Vec::new();
        let signals = signals.min(self.world.signals.len());
        batch.extend(self.world.signals.drain(..signals));
        for n in 0..answers {
            let there = self.world.answers.len();
            if there > 0 {
                let answer = self.world.answers.remove((seed >> (3 * (n % 20))) % there);
                let place = (seed >> (2 * (n % 20))) % (batch.len() + 1);
                batch.insert(place, answer);
            }
        }
        // Signals keep their order among themselves; answers may stand anywhere.
        self.turn(batch);
    }

    /// One of the workers takes its next step.
    pub fn work(&mut self, n: usize) -> bool {
        let units = self.world.units.iter();
        let workers = units.filter(|(_, unit)| unit.worker.is_some());
        let names: Vec<String> = workers.map(|(name, _)| name.clone()).collect();
        let Some(name) = (!names.is_empty()).then(|| names[n % names.len()].clone()) else {
            return false;
        };
        let unit = self.world.units.get_mut(&name).unwrap();
        match unit.worker.as_mut().unwrap().step() {
            Did::Called(event) => self.turn(vec![*event]),
            Did::Waits => return false,
            Did::Exits(0) => self.world.end(&name, 1, 0, "success"),
            Did::Exits(code) => self.world.end(&name, 1, code, "exit-code"),
        }
        true
    }

    /// Returns the next call of a worker without making it.
    pub fn next_call(&mut self) -> Event {
        let workers = self.world.units.values_mut();
        let mut steps =
            workers.filter_map(|unit| unit.worker.as_mut().map(super::worker::Worker::step));
        let call = steps.find_map(|did| match did {
            Did::Called(event) => Some(*event),
            _ => None,
        });
        call.expect("a worker that calls")
    }

    pub fn of_running(&mut self, n: usize, what: impl FnOnce(&mut World, &str)) {
        let running = self.world.running();
        if !running.is_empty() {
            what(&mut self.world, &running[n % running.len()]);
        }
    }
}
