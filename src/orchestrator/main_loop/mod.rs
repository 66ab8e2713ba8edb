//! The loop: events in, one transaction for a batch of them, actions out.

pub mod action;
pub mod clock;
pub mod engine;
pub mod event;
pub mod exit;
pub mod log;
pub mod notify;
pub mod perform;
pub mod prepare;
pub mod rows;
pub mod setup;
pub mod signals;
pub mod sources;
pub mod starts;
pub mod turn;
pub mod wait;

use crate::crawl::{add, retry};
use crate::programs::install;
use crate::runner::gate::Face;
use crate::runner::me::Me;
use crate::runner::{gate, me};
use crate::store::{Durability, Store, StoreError};
use crate::work::way_out::MachineAddresses;
use crate::work::{polite, pressure};
use archivist_core::model::{RunId, Runner, Time};
use archivist_core::plan::{Idle, View, still};
use archivist_shared::bus::call::{Refusal, Request};
use archivist_shared::config::Scope;
use archivist_shared::journal;
use archivist_shared::systemd::Hint;
use engine::Engine;
use event::Event;
use exit::After;
pub use exit::DaemonError;
use perform::Performer;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use turn::Turn;

/// From one beat of the watchdog to the next while there is a lot to do.
const BEAT_AGAIN: Duration = Duration::from_secs(1);
/// How long what is to be done before we leave may take.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long to wait before the database is tried again after it failed.
const DATABASE_PAUSE: Duration = Duration::from_secs(5);

/// How the orchestrator is run.
pub struct Options {
    pub scope: Scope,
    /// Leave when there is no work, and none to come.
    pub exit_on_idle: bool,
}

/// `archivist orchestrator`.
pub fn main(options: Options) -> ExitCode {
    let field = journal::unit_field(options.scope.user);
    journal::init(me::own_unit().map(|unit| (field, unit)));
    setup::take_descriptors();
    let mut me = None;
    loop {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!("cannot make an event loop: {error}");
                return ExitCode::FAILURE;
            }
        };
        let result = runtime.block_on(run(&options, &mut me));
        let after = runtime.block_on(exit::after(result, &options.scope, me.as_ref()));
        // With everything that still was under way: connections, calls, tasks.
        runtime.shutdown_background();
        match after {
            After::Again => me.iter().for_each(Me::stop_working),
            After::Exit(code) => return code,
        }
    }
}

async fn run(options: &Options, me: &mut Option<Me>) -> Result<(), DaemonError> {
    let failed = |error: StoreError| DaemonError::Failed(error.to_string());
    let scope = &options.scope;
    let (sender, mut events) = mpsc::unbounded_channel();
    signals::listen(&sender).map_err(|e| DaemonError::Failed(format!("signals: {e}")))?;
    let mut configuration = setup::configuration(scope).map_err(DaemonError::Unusable)?;
    let mut store = setup::store(scope)?;
    let face = Face::new(scope).await?;
    if me.is_none() {
        *me = Some(Me::new(scope).await.map_err(DaemonError::Failed)?);
    }
    let Some(me) = me else { return Ok(()) };
    let passed = gate::pass(
        face,
        me,
        &mut store,
        scope,
        &mut events,
        options.exit_on_idle,
    )
    .await?;
    let Some(passed) = passed else { return Ok(()) };
    if passed.stood_by {
        configuration = setup::configuration(scope).map_err(DaemonError::Unusable)?;
    }
    let fence = Arc::new(store.fence().map_err(failed)?);
    let (mut engine, manager) =
        setup::open(scope, configuration, (me, store.epoch()), &sender).await?;
    let manager = manager.guarded_by(Arc::new(move || fence.holds()));
    let performer = Performer::new(manager, sender.clone());
    {
        let tx = store.begin().map_err(failed)?;
        engine.tokens.extend(tx.tokens().map_err(failed)?);
        let programs = tx.binaries().map_err(failed)?;
        engine.versions = install::versions(&programs);
        engine.library = install::library(programs);
        let cancelled = add::cancel_half_added(&tx, now()).map_err(failed)?;
        retry::begin_half_retried(&tx, now()).map_err(failed)?;
        tx.commit().map_err(failed)?;
        for crawl in cancelled {
            log::LogEntry::Crawl(crawl, log::CrawlLog::Cancelled(add::HALF.to_owned())).write();
        }
        if let Err(error) = bring_forward(&mut store, engine.settings.retry_longest) {
            tracing::warn!("failed to adjust retry times: {error}, ignoring");
        }
    }
    let idle = Idle {
        timeout: engine.settings.idle_timeout,
        since: None,
    };
    // People put the archive on a disk of its own.
    let places = vec![scope.data_dir(), engine.archive()];
    let mut daemon = Daemon {
        machine: pressure::Machine::new(places),
        engine,
        store,
        performer,
        events,
        idle: options.exit_on_idle.then_some(idle),
        deferred: Vec::new(),
        backlog: Vec::new(),
        me,
        busy: true,
        blocked: false,
        clock: clock::Clock::default(),
    };
    daemon
        .performer
        .perform(action::Action::List, &mut daemon.engine);
    for call in passed.pending {
        let _ = sender.send(call.into());
    }
    setup::read_through(scope, sender.clone());
    tokio::spawn(sources::rivals(passed.news, sender.clone()));
    tokio::spawn(sources::hung_up(passed.connection.clone(), sender.clone()));
    tokio::spawn(sources::forward(passed.arriving, sender));
    notify::ready();
    let result = daemon.run().await;
    if result.is_ok() {
        let _ = daemon.store.leave(daemon.me.row.seat);
    }
    drop(passed.connection);
    result
}

/// Limits every retry time to what it may be at most, counted from now: the clock may have been set
/// back while no orchestrator ran.
fn bring_forward(store: &mut Store, longest: Duration) -> Result<(), StoreError> {
    let tx = store.begin()?;
    let count = tx.bring_forward(now(), longest, polite::WAIT_MAX)?;
    tx.commit()?;
    if count > 0 {
        tracing::info!("clock was set back since the last start; adjusted {count} retry times");
    }
    Ok(())
}

struct Daemon<'a> {
    me: &'a Me,
    /// There was work in the last turn.
    busy: bool,
    engine: Engine,
    store: Store,
    performer: Performer,
    events: mpsc::UnboundedReceiver<Event>,
    idle: Option<Idle>,
    /// Events that the database could not take: they are taken again.
    deferred: Vec<Event>,
    /// Events that the last turn had no time for.
    backlog: Vec<Event>,
    /// There is work that is not started for want of space or memory.
    blocked: bool,
    machine: pressure::Machine,
    clock: clock::Clock,
}

pub(crate) fn now() -> Time {
    jiff::Timestamp::now().into()
}

/// A number in 0..1 to spread delays.
fn jitter() -> f64 {
    let mut bytes = [0; 2];
    let _ = getrandom::fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / 65536.0
}

impl Daemon<'_> {
    async fn run(&mut self) -> Result<(), DaemonError> {
        let beat = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        let mut beats = tokio::time::interval(beat.unwrap_or(Duration::from_secs(3600)));
        let told = Cell::new(None);
        let tell = || {
            if beat.is_some() {
                notify::beat();
                told.set(Some(Instant::now()));
            }
        };
        loop {
            let wake_at = self.performer.wake_at;
            let alarm = wake_at.and_then(|time| Instant::now().checked_add(time.until(now())));
            let batch = if self.backlog.is_empty() {
                wait::next(&mut self.events, alarm, &mut beats, tell).await
            } else {
                Some(wait::more(&mut self.events))
            };
            let Some(batch) = batch else { return Ok(()) };
            let began = Instant::now();
            self.turn(batch)?;
            wait::let_in(began).await;
            // Long turns in a row, such as for very long lists, leave no room for a tick.
            if told.get().is_none_or(|told| told.elapsed() >= BEAT_AGAIN) {
                tell();
            }
            if let Some(why) = self.performer.failure {
                return Err(DaemonError::Failed(format!("{why}, starting anew")));
            }
            if self.performer.exit {
                notify::stopping();
                if let Some(farewell) = self.performer.farewell.take() {
                    let _ = tokio::time::timeout(FAREWELL, farewell).await;
                }
                return Ok(());
            }
        }
    }

    /// Takes a batch of events: one transaction, then the actions.
    fn turn(&mut self, batch: Vec<Event>) -> Result<(), DaemonError> {
        let batch = event::unfold(batch);
        // As it was before this batch: a reading in it may be older than an answer in it.
        let unanswered = self.performer.unanswered();
        for event in &batch {
            self.performer.observe(event);
            if matches!(
                event,
                Event::Reload | Event::Request(Request::Reload { .. })
            ) {
                self.reload();
            }
            if let Event::Damaged(what) = event {
                return Err(setup::damaged(&self.engine.scope, what));
            }
            if matches!(event, Event::Rival) {
                self.yield_to_newer()?;
            }
        }
        let set = self.clock.observe(now(), clock::machine());
        if let Some(by) = set {
            tracing::info!("the clock was set by {} s", by / 1000);
        }
        let mut events: Vec<Event> = set.map(Event::ClockSet).into_iter().collect();
        events.append(&mut self.deferred);
        events.append(&mut self.backlog);
        events.extend(batch);
        match self.transact(&mut events, &unanswered) {
            Ok((actions, view, taken)) => {
                self.backlog = events.split_off(taken);
                if view.is_some() {
                    self.performer.wake_at = None;
                }
                for action in actions {
                    self.performer.perform(action, &mut self.engine);
                }
                self.performer
                    .start_waiting(self.engine.settings.starts_in_flight, &self.engine.scope);
                if let Some(view) = view {
                    self.observe_idleness(&view);
                    self.tell_of_the_end(&view);
                    self.observe_pressure(&view);
                }
                Ok(())
            }
            Err(error @ StoreError::Superseded(_)) => {
                let runners = self.store.runners().unwrap_or_default();
                let active = runners.into_iter().find(|runner| runner.active);
                Err(match active {
                    Some(newer) => DaemonError::Displaced(Box::new(newer)),
                    None => DaemonError::Failed(error.to_string()),
                })
            }
            Err(error) if error.is_damage() => {
                Err(setup::damaged(&self.engine.scope, &error.to_string()))
            }
            Err(error) => {
                self.defer(events, &error);
                Ok(())
            }
        }
    }

    /// The view that is left is none after events that make room for nothing. Of the events so many were
    /// taken; the rest is for the next turn.
    fn transact(
        &mut self,
        events: &mut [Event],
        unanswered: &BTreeSet<RunId>,
    ) -> Result<(Vec<action::Action>, Option<View>, usize), StoreError> {
        let decides = events.iter().any(Event::decides);
        let followed = self.performer.followed();
        if decides {
            self.engine.strain = self.machine.look();
            self.engine.shortage.observe(&self.engine.strain, now());
            let limits = self.engine.strains();
            self.engine.disk_lack = still(&self.engine.strain, &limits, self.engine.disk_lack);
            self.engine.addresses = MachineAddresses::read(&self.engine.scope);
        }
        let names = &self.engine.names;
        let durability = events.iter().map(|event| event.durability(names)).max();
        let tx = self
            .store
            .begin_with(durability.unwrap_or(Durability::ProcessCrash))?;
        let mut turn = Turn {
            tx: &tx,
            engine: &self.engine,
            now: now(),
            jitter: jitter(),
            followed: &followed,
            unanswered,
            leaving_out: BTreeSet::new(),
            actions: Vec::new(),
            changes: Default::default(),
        };
        let taken = wait::in_turn(events, |event| turn.event(event))?;
        let view = if decides {
            let view = turn.decide()?;
            turn.close(&view)?;
            Some(view)
        } else {
            None
        };
        let actions = turn.actions;
        tx.commit()?;
        Ok((actions, view, taken))
    }

    /// The database took nothing. People are told at once; what systemd and workers said is kept
    /// and taken again, so that nothing is lost.
    fn defer(&mut self, events: Vec<Event>, error: &StoreError) {
        let pause = DATABASE_PAUSE;
        tracing::error!("{error}; trying again in {} s", pause.as_secs());
        notify::status(&format!("database trouble: {error}"));
        for event in events {
            match &event {
                Event::Request(_) | Event::Watches(_) => {
                    let refusal = Refusal::Failed(error.to_string());
                    if let Some(answer) = turn::refuse(&event, refusal) {
                        answer.send();
                    }
                }
                Event::Due => {}
                // What is paused cannot be thawed first: that would have to be on record.
                Event::Terminate => self.performer.exit = true,
                // It is out of date by then: a hint makes for another one.
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
        match setup::configuration(&self.engine.scope) {
            Ok((settings, catalogue)) => {
                self.engine.replace(settings, catalogue);
                tracing::info!("configuration and plugins are read anew");
            }
            Err(error) => tracing::error!("{error}; going on with the configuration as it was"),
        }
    }

    /// A newer runner that lives gets the work at once, whatever was asked meanwhile.
    fn yield_to_newer(&self) -> Result<(), DaemonError> {
        let runners = match self.store.runners() {
            Ok(runners) => runners,
            Err(error) => {
                tracing::warn!("{error}, ignoring");
                return Ok(());
            }
        };
        let newer =
            |runner: &Runner| runner.seat > self.me.row.seat && self.me.seats.is_alive(runner);
        match runners.into_iter().rev().find(newer) {
            Some(newer) => Err(DaemonError::Displaced(Box::new(newer))),
            None => Ok(()),
        }
    }

    /// Who stands by may leave when there is no more work.
    fn tell_of_the_end(&mut self, view: &View) {
        let busy = view.is_busy();
        if self.busy && !busy {
            self.me.seats.tell();
        }
        self.busy = busy;
    }

    /// Says once when nothing can be started, and once when that is over.
    fn observe_pressure(&mut self, view: &View) {
        let why = view.blocked();
        match (self.blocked, why) {
            (false, Some(why)) => tracing::warn!("nothing is started until there is room: {why}"),
            (true, None) => tracing::info!("there is room again, going on"),
            _ => {}
        }
        self.blocked = why.is_some();
    }

    fn observe_idleness(&mut self, view: &View) {
        let Some(idle) = &mut self.idle else { return };
        if let Some(look_again) = idle.observe(view, now()) {
            if idle.is_over(now()) {
                tracing::info!("all work complete, leaving");
                self.performer.exit = true;
            }
            let wake = self
                .performer
                .wake_at
                .map_or(look_again, |time| time.min(look_again));
            self.performer.wake_at = Some(wake);
        }
    }
}
