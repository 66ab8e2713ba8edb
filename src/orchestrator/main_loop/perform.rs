//! Performs the actions of a turn. What a collaborator has to know between turns is here, so that
//! the product and its tests share it; the calls themselves are [`Effects`].

use crate::engine::input_files;
use crate::engine::state::Engine;
use crate::machine::clock;
use crate::main_loop::action::{
    Action, CallerAction, FileAction, LoopAction, ReplyAction, UnitAction,
};
use crate::main_loop::effects::Effects;
use crate::main_loop::event::Event;
use crate::main_loop::replies::Replies;
use crate::main_loop::starts::{After, Start, Starts};
use archivist_core::model::{RunId, Time};
use archivist_core::plan::Evidence;
use archivist_shared::systemd::Hint;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Default)]
pub struct Performer {
    starts: Starts,
    /// What signals said about main processes that ended.
    evidence: HashMap<String, Evidence>,
    replies: Replies,
    measuring: bool,
    pub wake_at: Option<Time>,
    pub exit: bool,
    pub failure: Option<&'static str>,
}

impl Performer {
    /// Runs whose start systemd has not answered.
    pub fn unanswered(&self) -> BTreeSet<RunId> {
        self.starts.unanswered()
    }

    /// Records what an event means for starts, before the turn takes it. Once for each event.
    pub fn observe(&mut self, event: &Event, effects: &mut impl Effects) {
        match event {
            Event::Hint(Hint::Exited { unit, .. }) => self.starts.on_exited(unit),
            Event::Measured(..) => self.measuring = false,
            Event::Hint(Hint::Removed { unit }) => self.starts.on_removed(unit),
            Event::Hint(Hint::JobRemoved { unit, .. }) => self.starts.on_job_removed(unit),
            Event::Started { run, unit, result } => {
                let error = result.as_ref().err().map(|error| error.kind);
                match self.starts.on_answer(*run, unit, error) {
                    After::Nothing => {}
                    After::Read => self.read(*run, unit.clone(), None, effects),
                    After::Unblock => effects.unblock(unit.clone()),
                }
            }
            _ => {}
        }
    }

    /// Performs the actions of a turn, then starts units, up to the limit of starts in flight.
    /// `decided`: the turn made decisions, and said when the next one is to make some.
    pub fn perform_all(
        &mut self,
        actions: Vec<Action>,
        decided: bool,
        engine: &mut Engine,
        effects: &mut impl Effects,
    ) {
        if decided {
            self.wake_at = None;
        }
        for action in actions {
            self.perform(action, engine, effects);
        }
        while let Some(start) = self.starts.next(engine.settings.starts_in_flight) {
            self.evidence.remove(&start.spec.name);
            effects.start(start, &engine.scope);
        }
    }

    fn perform(&mut self, action: Action, engine: &mut Engine, effects: &mut impl Effects) {
        match action {
            Action::Unit(action) => self.unit(action, effects),
            Action::Reply(action) => self.reply(action, effects),
            Action::File(action) => self.file(action, engine, effects),
            Action::Caller(action) => caller(action, engine, effects),
            Action::Engine(change) => change(engine),
            Action::Loop(action) => self.next(action, effects),
            Action::Log(write) => write(),
        }
    }

    fn unit(&mut self, action: UnitAction, effects: &mut impl Effects) {
        match action {
            UnitAction::Start { run, spec, stdin, stdout, needs } => self.starts.push(Start {
                run,
                spec: Arc::from(spec),
                stdin: stdin.map(Arc::new),
                stdout,
                needs,
            }),
            UnitAction::Read { run, unit, evidence } => self.read(run, unit, evidence, effects),
            UnitAction::Release { unit, how } => {
                self.evidence.remove(&unit);
                effects.release(unit, how);
            }
            UnitAction::Signal { unit, whom, signal } => effects.signal(unit, whom, signal),
            UnitAction::End { unit, force, reply } => effects.end(unit, force, reply),
            UnitAction::Freeze(unit) => effects.freeze(unit),
            UnitAction::Thaw(unit) => effects.thaw(unit),
            UnitAction::ThawAtShutdown(units) => effects.thaw_at_shutdown(units),
            UnitAction::StopSlice(slice) => effects.stop_slice(slice),
            UnitAction::Forget(unit) => effects.forget(&unit),
            UnitAction::Ended(run) => self.starts.on_ended(run),
            UnitAction::List => effects.list(),
        }
    }

    fn read(
        &mut self,
        run: RunId,
        unit: String,
        evidence: Option<Evidence>,
        effects: &mut impl Effects,
    ) {
        if let Some(evidence) = evidence {
            self.evidence.insert(unit.clone(), evidence);
        }
        let evidence = self.evidence.get(&unit).cloned();
        let early = self.starts.is_unanswered(run);
        effects.read(run, unit, early, evidence);
    }

    fn reply(&mut self, action: ReplyAction, effects: &mut impl Effects) {
        match action {
            ReplyAction::SyncJournal { invocation, reply } => {
                effects.synchronize_journal(invocation, reply);
            }
            ReplyAction::Unpark => {
                for call in self.replies.unpark() {
                    effects.send(Event::Call(call));
                }
            }
            action => self.replies.perform(action),
        }
    }

    fn file(&mut self, action: FileAction, engine: &Engine, effects: &mut impl Effects) {
        match action {
            FileAction::Run(job) => effects.run(job, &engine.scope),
            FileAction::Remove(path) => {
                let _ = std::fs::remove_file(path);
            }
            FileAction::KeepInputs(kept) => {
                input_files::remove_except(&engine.scope, &engine.names, &kept);
            }
            FileAction::WatchDisk(is_watched) => {
                let watched = is_watched.then(|| (engine.archive(), engine.load_limits()));
                effects.watch_disk(watched);
            }
            FileAction::Measure(hooks, rate) => {
                if !std::mem::replace(&mut self.measuring, true) {
                    effects.measure(hooks, rate);
                }
            }
            FileAction::Inspect(programs, then) => effects.inspect(programs, then),
        }
    }

    fn next(&mut self, action: LoopAction, effects: &mut impl Effects) {
        match action {
            LoopAction::Again(event) => effects.send(event),
            LoopAction::WakeAt(time) => self.wake_at(time),
            LoopAction::Status(line) => {
                if let Some(wait) = effects.status(&line) {
                    self.wake_at(clock::now().after(wait));
                }
            }
            LoopAction::Exit => self.exit = true,
            LoopAction::Fail(why) => self.failure = Some(why),
        }
    }

    fn wake_at(&mut self, time: Time) {
        self.wake_at = Some(self.wake_at.map_or(time, |other| other.min(time)));
    }
}

fn caller(action: CallerAction, engine: &mut Engine, effects: &mut impl Effects) {
    match action {
        CallerAction::Follow { crawl, first, claim, reply } => {
            effects.follow(crawl, first, claim, &reply)
        }
        CallerAction::FollowStatus { claim, reply } => effects.follow_status(claim, &reply),
        CallerAction::StatusChanged => effects.tell_of_status(),
        CallerAction::Tell { crawl, line, last } => effects.tell(crawl, &line, last),
        CallerAction::Hold { crawl, cancel, claim, reply } => {
            *engine.held.entry(crawl).or_default() += 1;
            effects.hold(crawl, cancel, claim, &reply);
        }
        CallerAction::ReleaseHolds(crawl) => {
            engine.held.remove(&crawl);
            effects.release_holds(crawl);
        }
        CallerAction::Register { command, claim, reply } => {
            effects.register(&mut engine.commands, command, claim, &reply)
        }
        CallerAction::Announce(signal) => effects.announce(signal),
    }
}
