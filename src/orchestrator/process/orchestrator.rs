//! The loop: it takes a batch of events in one transaction, then performs the actions.

use crate::bus::call::Refusal;
use crate::database::{Database, DatabaseError, Durability};
use crate::engine::state::Engine;
use crate::machine::clock;
use crate::machine::clock::{jitter, now};
use crate::machine::notify::{self, Beats};
use crate::machine::pressure;
use crate::main_loop::effects::Callers;
use crate::main_loop::event;
use crate::main_loop::event::Event;
use crate::main_loop::live::Live;
use crate::main_loop::perform::Performer;
use crate::main_loop::rooms::Rooms;
use crate::main_loop::transaction;
use crate::main_loop::transaction::{Committed, Moment};
use crate::main_loop::wait;
use crate::process::error::OrchestratorError;
use crate::process::setup;
use crate::runner::identity::Identity;
use archivist_core::model::{RunId, Runner};
use archivist_core::plan::{ClockReading, Idle, Load, Outlook, still};
use archivist_shared::archive;
use archivist_shared::outage;
use archivist_shared::systemd::Hint;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Interval of the watchdog's beats during long turns.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of the work before the process exits.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay of a retry after the database failed.
const DATABASE_PAUSE: Duration = Duration::from_secs(5);

pub struct Orchestrator<'a> {
    pub(crate) me: &'a Identity,
    pub(crate) rooms: &'static dyn Rooms,
    /// There was work in the last turn.
    pub(crate) busy: bool,
    pub(crate) engine: Engine,
    pub(crate) database: Database,
    pub(crate) performer: Performer,
    pub(crate) live: Live,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    pub(crate) idle: Option<Idle>,
    /// Events whose transaction failed, to be taken again.
    pub(crate) deferred: Vec<Event>,
    /// What was logged about the failed transaction; none after a transaction that succeeded.
    pub(crate) logged_failure: Option<String>,
    /// Events that the last turn had no time for.
    pub(crate) backlog: Vec<Event>,
    /// Work is waiting for disk space or memory.
    pub(crate) blocked: bool,
    pub(crate) machine: pressure::Machine,
    pub(crate) clock: clock::Clock,
}

impl Orchestrator<'_> {
    /// Runs until the process should end.
    pub async fn run(&mut self) -> Result<(), OrchestratorError> {
        let beats = Beats::of_watchdog();
        let beats = beats.map_err(|error| OrchestratorError::Failed(error.to_string()))?;
        let mut yielding = wait::Yielding::default();
        let told = Cell::new(None);
        let tell = || {
            if beats.are_expected() {
                notify::beat();
                told.set(Some(Instant::now()));
            }
        };
        loop {
            let wake_at = self.performer.wake_at;
            let alarm = wake_at.and_then(|time| Instant::now().checked_add(time.until(now())));
            let batch = if self.backlog.is_empty() {
                wait::next(&mut self.events, alarm, &beats, tell).await
            } else {
                Some(wait::more(&mut self.events))
            };
            let Some(batch) = batch else { return Ok(()) };
            let began = Instant::now();
            let set = self.look_at_clock().await;
            self.turn(batch, set)?;
            yielding.let_in(began).await;
            // During consecutive long turns, such as for a very long list, the timer gets no chance
            // to tick.
            if told.get().is_none_or(|told| told.elapsed() >= BEAT_INTERVAL) {
                tell();
            }
            if let Some(why) = self.performer.failure {
                return Err(OrchestratorError::Failed(format!("{why}; restarting")));
            }
            if self.performer.exit {
                notify::stopping();
                if let Some(farewell) = self.live.farewell.take() {
                    let _ = tokio::time::timeout(FAREWELL_TIMEOUT, farewell).await;
                }
                self.live.finish_signals().await;
                return Ok(());
            }
        }
    }

    /// Reads the clock. Returns by how many milliseconds it was set since. Only of a clock that does not run as
    /// expected it is asked whether a time server has set it: the question starts a service.
    async fn look_at_clock(&mut self) -> Option<i64> {
        let machine = clock::machine();
        let wall = now();
        let set = self.clock.observe(wall, machine);
        let reading = ClockReading { wall, boot: self.engine.boot.clone(), machine };
        let is_unexpected = self.database.clock_state().is_ok_and(|state| !state.expects(&reading));
        let scope = &self.engine.scope;
        let ask = async || clock::is_synchronized(scope).await;
        self.engine.is_clock_synchronized =
            is_unexpected && self.clock.is_synchronized(machine, ask).await;
        set
    }

    /// Takes a batch of events: one transaction, then the actions. `set`: by how much the clock was set.
    fn turn(&mut self, batch: Vec<Event>, set: Option<i64>) -> Result<(), OrchestratorError> {
        let batch = event::unfold(batch);
        // The state before this batch: a reading in it may be older than an answer in it.
        let unanswered = self.performer.unanswered();
        for event in &batch {
            self.performer.observe(event, &mut self.live);
            if event.reloads() {
                self.reload();
            } else if event.names_unknown(&self.engine.catalogue) {
                self.look_for_plugins(event);
            }
            if let Event::Damaged(what) = event {
                return Err(setup::damaged(&self.engine.scope, what));
            }
            if matches!(event, Event::RunnersChanged) {
                self.yield_to_newer()?;
            }
        }
        if outage::has_lost_runtime_directory(&self.engine.scope) {
            let directory = self.engine.scope.runtime_dir();
            let why = format!("'{}' was removed; restarting", directory.display());
            return Err(OrchestratorError::Failed(why));
        }
        if let Some(by) = set {
            tracing::info!("clock was set by {} s", by / 1000);
        }
        let mut events: Vec<Event> = set.map(Event::ClockSet).into_iter().collect();
        events.append(&mut self.deferred);
        events.append(&mut self.backlog);
        events.extend(batch);
        match self.transact(&mut events, &unanswered) {
            Ok(Committed { actions, outlook, left }) => {
                self.logged_failure = None;
                self.backlog = picked(events, &left);
                let facts = &self.engine.facts;
                if facts.are_awaited() && !self.backlog.iter().any(Event::decides) {
                    self.backlog.push(Event::Due);
                }
                self.performer.perform_all(
                    actions,
                    outlook.is_some(),
                    &mut self.engine,
                    &mut self.live,
                );
                if let Some(outlook) = outlook {
                    self.observe_idleness(&outlook);
                    self.tell_of_the_end(&outlook);
                    self.observe_pressure(&outlook);
                }
                Ok(())
            }
            Err(error @ DatabaseError::Superseded(_)) => {
                let runners = self.database.runners().unwrap_or_default();
                let active = runners.into_iter().find(|runner| runner.active);
                Err(match active {
                    Some(newer) => OrchestratorError::Displaced(Box::new(newer)),
                    None => OrchestratorError::Failed(error.message(self.database.path())),
                })
            }
            // The file that is there now is checked by the next process.
            Err(error @ DatabaseError::Moved) if self.database.has_file() => {
                Err(OrchestratorError::Failed(error.message(self.database.path())))
            }
            Err(error) => match error.damage() {
                Some(what) => Err(setup::damaged(&self.engine.scope, &what)),
                None => {
                    if matches!(error, DatabaseError::Moved) {
                        self.observe_moved_data();
                    }
                    self.defer(events, &error);
                    Ok(())
                }
            },
        }
    }

    fn transact(
        &mut self,
        events: &mut [Event],
        unanswered: &BTreeSet<RunId>,
    ) -> Result<Committed, DatabaseError> {
        let decides = events.iter().any(Event::decides);
        let followed = self.live.followed();
        if decides {
            self.engine.load = self.machine.look();
            self.engine.load.outage = self.outage();
            self.engine.shortage.observe(&self.engine.load, now());
            let limits = self.engine.load_limits();
            self.engine.disk_lack = still(&self.engine.load, &limits, self.engine.disk_lack);
            self.engine.read_start_facts();
        }
        let names = &self.engine.names;
        let durability = events.iter().map(|event| event.durability(names)).max();
        let moment = Moment {
            now: now(),
            boottime: clock::machine(),
            jitter: jitter(),
            followed: &followed,
            is_subscribed: self.live.is_subscribed(),
            unanswered,
            durability: durability.unwrap_or(Durability::ProcessCrash),
        };
        transaction::run(&mut self.database, &mut self.engine, self.rooms, &moment, events)
    }

    /// Why the machine can do no work at all, if so.
    fn outage(&self) -> Option<String> {
        let scope = &self.engine.scope;
        outage::clock(now())
            .or_else(|| outage::data_directory(scope))
            .or_else(|| outage::runtime_directory(scope))
            .map(|outage| outage.what)
            .or_else(|| self.archive_problem())
    }

    /// Why no page can be written to the archive, if so.
    fn archive_problem(&self) -> Option<String> {
        let problem = archive::problem(&self.engine.scope, &self.engine.archive())?;
        let is_usual = problem.is_usual_at_first(&self.engine.scope);
        let is_new = is_usual && !self.database.has_archived().unwrap_or(false);
        (!is_new).then(|| problem.to_string())
    }

    /// Remembers that the data directory was moved away: hooks that failed meanwhile run again.
    fn observe_moved_data(&mut self) {
        let moved = Load {
            outage: Some("the data directory was moved away".to_owned()),
            ..Load::default()
        };
        self.engine.shortage.observe(&moved, now());
    }

    /// The transaction failed. Users get an error; events of systemd and workers are kept and taken
    /// again, so that nothing is lost.
    fn defer(&mut self, events: Vec<Event>, error: &DatabaseError) {
        // It may have been the one that raised the ids.
        self.engine.are_ids_known.set(false);
        let pause = DATABASE_PAUSE;
        let message = error.message(self.database.path());
        let line = message.replace('\n', "; ");
        // Each call of a user begins another transaction.
        if self.logged_failure.as_ref() != Some(&line) {
            let seconds = pause.as_secs();
            tracing::error!("{line}; retrying every {seconds} s, logging it once");
            notify::status(&format!("database error: {line}"));
            self.logged_failure = Some(line);
        }
        for event in events {
            match &event {
                Event::Call(call) if call.name().is_some() => {
                    call.reply.send(Err(Refusal::Failed(message.clone())));
                }
                Event::Due => {}
                // Paused hooks cannot be thawed first: that would have to be recorded.
                Event::Terminate => self.performer.exit = true,
                // The reading would be out of date: a hint leads to a new one.
                Event::Read { unit, .. } => {
                    let unit = unit.clone();
                    self.deferred.push(Event::Hint(Hint::Removed { unit }));
                }
                _ => self.deferred.push(event),
            }
        }
        self.performer.wake_at = Some(now().after(pause));
    }

    fn reload(&mut self) {
        self.engine.are_ids_known.set(false);
        match setup::configuration(&self.engine.scope) {
            Ok((settings, catalogue)) => {
                self.engine.replace(settings, catalogue);
                tracing::info!("reloaded configuration and plugins");
            }
            Err(error) => tracing::error!(
                "failed to reload the configuration: {error}; keeping the previous one"
            ),
        }
    }

    /// Reads the plugins again for a request that names an unknown one. The new ones count only if
    /// the request can be carried out with them.
    fn look_for_plugins(&mut self, event: &Event) {
        let catalogue = setup::plugins(&self.engine.scope, &self.engine.settings);
        if !event.names_unknown(&catalogue) {
            let settings = self.engine.settings.clone();
            self.engine.replace(settings, catalogue);
            tracing::info!("read the plugins again for a request that names a new one");
        }
    }

    /// Yields to a newer orchestrator that is alive, whatever the batch contains.
    fn yield_to_newer(&self) -> Result<(), OrchestratorError> {
        let runners = match self.database.runners() {
            Ok(runners) => runners,
            Err(error) => {
                tracing::warn!("{}, ignoring", error.message(self.database.path()));
                return Ok(());
            }
        };
        let newer =
            |runner: &Runner| runner.rank > self.me.row.rank && self.me.locks.is_alive(runner);
        match runners.into_iter().rev().find(newer) {
            Some(newer) => Err(OrchestratorError::Displaced(Box::new(newer))),
            None => Ok(()),
        }
    }

    /// Notifies orchestrators that stand by when there is no more work.
    fn tell_of_the_end(&mut self, outlook: &Outlook) {
        if self.busy && !outlook.is_busy {
            self.me.locks.tell();
        }
        self.busy = outlook.is_busy;
    }

    /// Logs once when nothing can be started, and once when that is over.
    fn observe_pressure(&mut self, outlook: &Outlook) {
        let why = &outlook.blocked;
        match (self.blocked, why) {
            (false, Some(why)) => tracing::warn!("starting nothing: {why}"),
            (true, None) => tracing::info!("resources are available again, continuing"),
            _ => {}
        }
        self.blocked = why.is_some();
    }

    fn observe_idleness(&mut self, outlook: &Outlook) {
        let Some(idle) = &mut self.idle else { return };
        if let Some(look_again) = idle.observe(outlook, now()) {
            if idle.is_over(now()) {
                tracing::info!("all work complete, exiting");
                self.performer.exit = true;
            }
            let wake = self.performer.wake_at.map_or(look_again, |time| time.min(look_again));
            self.performer.wake_at = Some(wake);
        }
    }
}

/// The events at these positions, which are in order.
fn picked(events: Vec<Event>, positions: &[usize]) -> Vec<Event> {
    let numbered = events.into_iter().enumerate();
    let picked = numbered.filter(|(n, _)| positions.binary_search(n).is_ok());
    picked.map(|(_, event)| event).collect()
}
