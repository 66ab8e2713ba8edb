//! systemd and the workers as a turn sees them: loaded units, calls to PID 1, and signals and
//! answers of it. Answers may overtake each other and signals; signals keep their order.

use super::worker::{Fault, Server, Worker};
use crate::main_loop::event::Event;
use crate::main_loop::measure::HookDirs;
use crate::main_loop::starts::Start;
use archivist_core::model::{Reading, RunId};
use archivist_core::plan::Evidence;
use archivist_shared::bus::signals::Signal;
use archivist_shared::systemd::{ErrorKind, Hint, LoadedUnit, ManagerError, Release};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub const BOOT: &str = "boot";

/// A call that PID 1 has not handled yet.
pub enum Call {
    Start(Start),
    Release(String, Release),
    Kill(String, i32),
    /// Freeze, or thaw.
    Freezer(String, bool),
    StopSlice(String),
    Read {
        run: RunId,
        unit: String,
        early: bool,
        evidence: Option<Evidence>,
    },
    /// Whether the blocking unit is gone.
    Gone(String),
    List,
}

/// The state of a unit's main process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    /// RemainAfterExit=: active (exited).
    Exited,
    Failed(Evidence),
}

#[derive(Debug)]
pub struct Unit {
    pub invocation: String,
    pub slice: String,
    pub state: State,
    /// A stop job ended its main process.
    pub was_stopped: bool,
    pub frozen: bool,
    /// The time from which on the launcher executes nothing.
    pub not_after: Option<u64>,
    /// The worker process of the unit, if it has one.
    pub worker: Option<Worker>,
    pub stdin: Option<Arc<Vec<u8>>>,
    pub credentials: Vec<(String, String)>,
}

/// How PID 1 handles the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Fine,
    Refuse,
    /// The call fails: the machine lacks space in `/run`, for example.
    Lack,
    /// The call succeeds, and the program cannot be executed.
    Broken,
}

#[derive(Default)]
pub struct World {
    pub units: BTreeMap<String, Unit>,
    pub calls: VecDeque<Call>,
    pub signals: VecDeque<Event>,
    pub answers: Vec<Event>,
    /// The units that started units wanted (Wants=).
    pub wanted: Vec<String>,
    /// The server of all pages, of workers that start from now on.
    pub server: Option<Server>,
    /// Why the hooks of pages fail on the Internet, likewise.
    pub fault: Option<Fault>,
    /// Whether a client requested the signals about pages.
    pub is_subscribed: bool,
    pub announced: Vec<Signal>,
    /// How often the status was reported as changed.
    pub status_changes: u32,
    /// Hooks to measure, and the rate at which the disk fills up.
    pub measured: Option<(Vec<HookDirs>, u64)>,
    /// Calls with their files, for the turn after this one.
    pub read: Vec<Event>,
    invocations: u32,
}

fn evidence(code: i32, status: i32, result: &str) -> Evidence {
    let result = result.to_owned();
    Evidence { code, status, result }
}

fn reading(unit: Option<&Unit>) -> Reading {
    let Some(unit) = unit else {
        return Reading {
            load_state: "not-found".into(),
            active_state: "inactive".into(),
            result: "success".into(),
            ..Reading::default()
        };
    };
    let (active, evidence) = match &unit.state {
        State::Running => ("active", evidence(0, 0, "success")),
        State::Exited => ("active", evidence(1, 0, "success")),
        State::Failed(evidence) => ("failed", evidence.clone()),
    };
    Reading {
        load_state: "loaded".into(),
        active_state: active.into(),
        result: evidence.result,
        exec_main_code: evidence.code,
        exec_main_status: evidence.status,
        invocation: unit.invocation.clone(),
        was_stopped: unit.was_stopped,
        ..Reading::default()
    }
}

impl World {
    fn signal(&mut self, hint: Hint) {
        self.signals.push_back(Event::Hint(hint));
    }

    fn job_removed(&mut self, unit: &str, result: &str) {
        let (unit, result) = (unit.to_owned(), result.to_owned());
        self.signal(Hint::JobRemoved { unit, result });
    }

    fn exited(&mut self, unit: &str, evidence: &Evidence) {
        self.signal(Hint::Exited {
            unit: unit.to_owned(),
            code: evidence.code,
            status: evidence.status,
            result: evidence.result.clone(),
        });
    }

    /// PID 1 handles the oldest call; whether there was one.
    pub fn handle(&mut self, mood: Mood) -> bool {
        let Some(call) = self.calls.pop_front() else {
            return false;
        };
        match call {
            Call::Start(start) => self.start(start, mood),
            Call::Release(unit, Release::Stop) => self.stop(&unit),
            Call::Release(unit, Release::Reset) => {
                if let Some(State::Failed(_)) = self.units.get(&unit).map(|unit| &unit.state) {
                    self.units.remove(&unit);
                    self.signal(Hint::Removed { unit });
                }
            }
            Call::Kill(unit, signal) => {
                self.end(&unit, 2, signal, "signal");
            }
            Call::Freezer(unit, freeze) => {
                if let Some(unit) = self.units.get_mut(&unit) {
                    assert!(unit.worker.is_none() || !freeze, "a worker is frozen");
                    unit.frozen = freeze;
                }
            }
            Call::StopSlice(slice) => {
                let inside: Vec<String> = self
                    .units
                    .iter()
                    .filter(|(_, unit)| unit.slice == slice)
                    .map(|(name, _)| name.clone())
                    .collect();
                for unit in inside {
                    self.stop(&unit);
                }
            }
            Call::Read { run, unit, early, evidence } => {
                let result = Ok(Box::new(reading(self.units.get(&unit))));
                self.answers.push(Event::Read {
                    run,
                    unit,
                    early,
                    evidence,
                    result,
                    stopping: false,
                });
            }
            Call::Gone(unit) => {
                if !self.units.contains_key(&unit) {
                    self.answers.push(Event::Hint(Hint::Removed { unit }));
                }
            }
            Call::List => {
                let listed = self
                    .units
                    .keys()
                    .map(|name| LoadedUnit { name: name.clone(), active_state: "active".into() });
                self.answers.push(Event::Listed(Ok(listed.collect())));
            }
        }
        true
    }

    fn start(&mut self, start: Start, mood: Mood) {
        let (run, unit) = (start.run, start.spec.name.clone());
        let error = |kind| ManagerError {
            verb: "start unit",
            object: unit.clone(),
            why: "no".into(),
            kind,
        };
        let refusal = match mood {
            _ if self.units.contains_key(&unit) => Some(ErrorKind::UnitExists),
            Mood::Refuse => Some(ErrorKind::Refused),
            Mood::Lack => Some(ErrorKind::Machine),
            _ => None,
        };
        let result = match refusal {
            Some(kind) => Err(error(kind)),
            None => {
                self.load(&start, mood);
                Ok(())
            }
        };
        self.answers.push(Event::Started { run, unit, result });
    }

    fn load(&mut self, start: &Start, mood: Mood) {
        self.invocations += 1;
        self.wanted.extend(start.spec.wants.iter().cloned());
        let unit = start.spec.name.clone();
        let loaded = Unit {
            invocation: format!("{:032x}", self.invocations),
            slice: start.spec.slice.clone(),
            credentials: start.spec.credentials.clone(),
            state: State::Running,
            was_stopped: false,
            frozen: false,
            not_after: start.spec.not_after,
            worker: (start.stdin.as_ref().filter(|_| start.spec.notify))
                .map(|bytes| Worker::new(bytes, self.server, self.fault)),
            stdin: start.stdin.clone(),
        };
        self.units.insert(unit.clone(), loaded);
        match mood {
            Mood::Broken => {
                self.end(&unit, 1, 203, "exit-code");
                self.job_removed(&unit, "failed");
            }
            _ => self.job_removed(&unit, "done"),
        }
    }

    fn stop(&mut self, unit: &str) {
        let frozen = self.units.get(unit).is_some_and(|unit| unit.frozen);
        assert!(!frozen, "{unit} is stopped while it is frozen");
        match self.units.get(unit).map(|unit| &unit.state) {
            None => return,
            Some(State::Running) => {
                let killed = evidence(2, 15, "success");
                self.exited(unit, &killed);
            }
            Some(State::Exited) => {}
            // Only ResetFailedUnit releases a failed unit.
            Some(State::Failed(_)) => return self.job_removed(unit, "done"),
        }
        self.units.remove(unit);
        self.job_removed(unit, "done");
        let unit = unit.to_owned();
        self.signal(Hint::Removed { unit });
    }

    /// Names of the units whose main process runs.
    pub fn running(&self) -> Vec<String> {
        let running = self.units.iter().filter(|(_, u)| u.state == State::Running);
        running.map(|(name, _)| name.clone()).collect()
    }

    pub fn end(&mut self, unit: &str, code: i32, status: i32, result: &str) {
        let Some(loaded) = self.units.get_mut(unit) else {
            return;
        };
        if loaded.state != State::Running {
            return;
        }
        let evidence = evidence(code, status, result);
        loaded.worker = None;
        loaded.state = match (code, status) {
            (1, 0) => State::Exited,
            _ => State::Failed(evidence.clone()),
        };
        self.exited(unit, &evidence);
    }

    /// A unit goes away without evidence of its end.
    pub fn vanish(&mut self, unit: &str) {
        if self.units.remove(unit).is_some() {
            let unit = unit.to_owned();
            self.signal(Hint::Removed { unit });
        }
    }

    /// `systemctl stop` of what may be frozen: systemd 252 thaws it first. (257 refuses.)
    pub fn stop_by_hand(&mut self, unit: &str) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.frozen = false;
        }
        self.stop(unit);
    }

    /// The same of a unit whose main process exits with a failure when it gets SIGTERM.
    pub fn fail_at_stop(&mut self, unit: &str, status: i32) {
        self.end(unit, 1, status, "exit-code");
        if let Some(unit) = self.units.get_mut(unit) {
            unit.was_stopped = true;
        }
    }

    /// Whether no call, signal or answer is in transit.
    pub fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.signals.is_empty() && self.answers.is_empty()
    }

    /// The orchestrator is killed: PID 1 still handles the first `heard` calls, and their results
    /// and all earlier ones are lost.
    pub fn orphan(&mut self, heard: usize) {
        for _ in 0..heard {
            self.handle(Mood::Fine);
        }
        self.calls.clear();
        self.signals.clear();
        self.answers.clear();
        for unit in self.units.values_mut() {
            if let Some(worker) = &mut unit.worker {
                worker.call_again();
            }
        }
    }
}
