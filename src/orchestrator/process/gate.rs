//! One active orchestrator for each data directory: the newest.
//!
//! An orchestrator registers, acquires the lock of its rank, and asks
//! [`gate()`](archivist_core::plan::gate). To replace older ones, it takes the bus name from them,
//! requests their stop, waits 5 s, kills what is left of their units, and is promoted when the
//! kernel has released their locks. To stand by, it waits until the newer one's lock is free.
//! Orchestrators of other machines and PID namespaces are not killed: their writes are refused,
//! because their epoch is not current.
//!
//! | in ArchiveBox's takeover_util | here |
//! |---|---|
//! | runtime_stack_owner_types, foreground_runner_owner_types | one kind of runner: the orchestrator; commands in the foreground are its callers |
//! | current_command | `Store::register`; for commands in the foreground `Manager.Register` |
//! | live_processes, newest_live_process, command_is_newest | `Store::runners`, `RunnerLocks::is_alive`, `gate()` |
//! | runtime_stack_owner, foreground_runner_owner | the active row; the owner of the bus name |
//! | command_owns_runtime_stack, command_owns_foreground_runner | `Fence::holds` |
//! | runtime_stack_component_label | `Runner::components` |
//! | ensure_daemon_stack | bus activation; units and background hooks instead of daemons |
//! | healthy_orchestrator | `archivist status`, sd_notify(3) and its watchdog |
//! | _runner_sort_key | `Runner::rank` |
//! | live_runner_processes | `OtherRunner`, `Locality` |
//! | enter_single_runner_gate | `pass()` |
//! | standby_until_leader_needed, standby_until_runtime_stack_needed | `Gate::StandBy` |
//! | standby_until_foreground_runner_needed | the same for an orchestrator; `archivist run` follows its crawl under the active one |

use crate::bus::call::{Answer, Refusal};
use crate::bus::subscribers::Subscribers;
use crate::database::{Database, DatabaseError};
use crate::machine::clock::now;
use crate::machine::notify::{self, Beats};
use crate::main_loop::event::Event;
use crate::main_loop::order::{Call, Calls};
use crate::process::error::OrchestratorError;
use crate::runner::identity::Identity;
use crate::runner::locks::{Lock, News};
use crate::runner::reported::reported;
use crate::service::{offer, request_name};
use archivist_config::Scope;
use archivist_core::model::{Locality, Runner};
use archivist_core::plan;
use archivist_core::plan::{Gate, OtherRunner, may_be_killed};
use archivist_shared::bus::client::Address;
use archivist_shared::bus::documents::report;
use archivist_shared::database;
use archivist_shared::journal::message;
use archivist_shared::systemd::kill_all;
use futures_util::StreamExt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Time for an older orchestrator to stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The bus connection of the active orchestrator.
pub struct Passed {
    pub connection: zbus::Connection,
    pub subscribers: Subscribers,
    /// Calls that came before the promotion.
    pub pending: Vec<Call>,
    pub arriving: mpsc::UnboundedReceiver<Call>,
    pub news: News,
    /// It stood by, so that settings may have changed.
    pub stood_by: bool,
}

/// The connection to the bus before the promotion.
pub struct Face {
    address: Address,
    connection: zbus::Connection,
    subscribers: Subscribers,
    /// How the bus name was requested; none if not yet.
    asked: Option<bool>,
    pending: Vec<Call>,
    arriving: mpsc::UnboundedReceiver<Call>,
}

impl Face {
    pub async fn new(scope: &Scope) -> Result<Face, OrchestratorError> {
        let address = Address::new(scope.user, scope.instance.as_deref());
        let (calls, arriving) = Calls::new();
        let subscribers = Subscribers::default();
        let connection = offer(&address, calls, subscribers.clone()).await.map_err(failed)?;
        Ok(Face { address, connection, subscribers, asked: None, pending: Vec::new(), arriving })
    }

    async fn request_name(&mut self, replace: bool) -> Result<(), OrchestratorError> {
        if self.asked != Some(replace) {
            request_name(&self.connection, &self.address, replace).await.map_err(failed)?;
            self.asked = Some(replace);
        }
        Ok(())
    }
}

struct Waiter<'a> {
    me: &'a mut Identity,
    database: &'a mut Database,
    scope: &'a Scope,
    face: Face,
    news: News,
    deadline: Option<Instant>,
    /// Whether orchestrators that may not be killed have time to stop.
    patient: bool,
    /// Older orchestrators whose stop was requested.
    asked: BTreeSet<i64>,
    line: String,
    /// The active orchestrator, while this one stands by.
    leader: Option<Runner>,
}

fn failed(error: impl std::fmt::Display) -> OrchestratorError {
    OrchestratorError::Failed(error.to_string())
}

fn not_stored(scope: &Scope, error: &DatabaseError) -> OrchestratorError {
    OrchestratorError::Failed(error.message(&database::path(scope)))
}

/// Returns when this process is the active orchestrator; none if it has to exit instead.
pub async fn pass(
    face: Face,
    me: &mut Identity,
    database: &mut Database,
    scope: &Scope,
    events: &mut mpsc::UnboundedReceiver<Event>,
    leave_when_done: bool,
) -> Result<Option<Passed>, OrchestratorError> {
    // Watch from now on, so that no later registration is missed.
    let news = me.locks.news().map_err(failed)?;
    if !register(me, database, scope, events).await? {
        return Ok(None);
    }
    me.locks.tell();
    let waiter = Waiter {
        face,
        me,
        database,
        scope,
        news,
        deadline: None,
        patient: true,
        asked: BTreeSet::new(),
        line: String::new(),
        leader: None,
    };
    waiter.pass(events, leave_when_done).await
}

/// Registers this process. An orchestrator that was stopped in a transaction blocks all writers:
/// one of this machine is killed; for another the registration waits, 5 s at a time (the busy
/// timeout of SQLite). Returns false if this process received SIGTERM.
async fn register(
    me: &mut Identity,
    database: &mut Database,
    scope: &Scope,
    events: &mut mpsc::UnboundedReceiver<Event>,
) -> Result<bool, OrchestratorError> {
    loop {
        let registered = database.register(&me.row, me.heir, |rank| me.hold_rank(rank));
        match registered {
            Ok(rank) => {
                me.row.rank = rank;
                return Ok(true);
            }
            Err(error) if error.is_busy() => {
                let line = "waiting for an orchestrator that was stopped in a transaction";
                tracing::warn!("{}, {line}", error.message(&database::path(scope)));
                notify::status(line);
                notify::starting(STOP_TIMEOUT * 3);
                for runner in working(me, database, scope)? {
                    end(me, scope, &runner).await;
                }
            }
            Err(error) => return Err(not_stored(scope, &error)),
        }
        // Events that arrived while SQLite waited.
        tokio::task::yield_now().await;
        while let Ok(event) = events.try_recv() {
            if matches!(event, Event::Terminate) {
                return Ok(false);
            }
        }
    }
}

/// All other orchestrators that work.
fn working(
    me: &Identity,
    database: &Database,
    scope: &Scope,
) -> Result<Vec<Runner>, OrchestratorError> {
    let mut runners = database.runners().map_err(|error| not_stored(scope, &error))?;
    runners
        .retain(|runner| runner.rank != me.row.rank && me.locks.is_held(Lock::Work(runner.rank)));
    Ok(runners)
}

/// Kills an orchestrator of this machine; does nothing for others.
async fn end(me: &Identity, scope: &Scope, runner: &Runner) {
    if !may_be_killed(&me.row.place, runner) || runner.pid == 0 {
        return;
    }
    tracing::warn!("{} did not stop, killing it", runner.named());
    // A unit with another name may contain other processes.
    let own = format!("{}-", scope.unit_prefix());
    if runner.unit.starts_with(&own) {
        match kill_all(scope.user, &runner.unit).await {
            Ok(()) => return,
            Err(error) => tracing::warn!("{error}, killing only its process"),
        }
    }
    // It holds its lock, so that the pid is still its own.
    if me.locks.is_alive(runner)
        && let Err(error) = kill(Pid::from_raw(runner.pid as i32), Signal::SIGKILL)
    {
        tracing::warn!("failed to kill {}: {error}, ignoring", runner.named());
    }
}

impl Waiter<'_> {
    async fn pass(
        mut self,
        events: &mut mpsc::UnboundedReceiver<Event>,
        leave_when_done: bool,
    ) -> Result<Option<Passed>, OrchestratorError> {
        let beats = Beats::of_watchdog().map_err(failed)?;
        let mut waiting: Option<(Lock, oneshot::Receiver<io::Result<()>>)> = None;
        let mut stood_by = false;
        loop {
            let lock = match self.judge()? {
                Gate::Pass { .. } => {
                    if self.face.connection.is_closed() {
                        // The bus was restarted.
                        self.face = Face::new(self.scope).await?;
                    }
                    self.face.request_name(true).await?;
                    // The next takeover is logged again.
                    self.me.named.retain(|rank| *rank < 0);
                    // Orchestrators that stand by read the table again.
                    self.me.locks.tell();
                    return Ok(Some(Passed {
                        connection: self.face.connection,
                        subscribers: self.face.subscribers,
                        pending: self.face.pending,
                        arriving: self.face.arriving,
                        news: self.news,
                        stood_by,
                    }));
                }
                Gate::StandBy(newer) => {
                    stood_by = true;
                    let not_stored = |error| not_stored(self.scope, &error);
                    if leave_when_done && !self.database.has_work().map_err(not_stored)? {
                        tracing::info!("all work complete, exiting");
                        self.database.leave(self.me.row.rank).map_err(not_stored)?;
                        return Ok(None);
                    }
                    self.stand_by(&newer).await?;
                    Lock::Rank(newer.rank)
                }
                Gate::Replace(older) => {
                    self.replace(&older).await?;
                    Lock::Work(older[0].rank)
                }
            };
            let mut freed = match waiting.take() {
                Some((other, freed)) if other == lock => freed,
                _ => self.me.locks.until_free(lock),
            };
            loop {
                let deadline = self.deadline;
                let grace = async {
                    match deadline {
                        Some(deadline) => tokio::time::sleep_until(deadline).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    free = &mut freed => {
                        free.map_err(failed)?.map_err(failed)?;
                        break;
                    }
                    news = self.news.next() => {
                        if let Some(Err(error)) = news {
                            return Err(failed(error));
                        }
                        waiting = Some((lock, freed));
                        break;
                    }
                    () = grace => {
                        self.run_out_of_patience().await?;
                        waiting = Some((lock, freed));
                        break;
                    }
                    Some(call) = self.face.arriving.recv() => self.take(call),
                    Some(event) = events.recv() => if matches!(event, Event::Terminate) {
                        notify::stopping();
                        // If this fails, the released lock shows that this process is gone.
                        let _ = self.database.leave(self.me.row.rank);
                        return Ok(None);
                    },
                    () = beats.due() => notify::beat(),
                }
            }
        }
    }

    /// Decides, and promotes this orchestrator if it is the newest.
    fn judge(&mut self) -> Result<Gate, OrchestratorError> {
        let me = &mut *self.me;
        let (patient, rank) = (self.patient, me.row.rank);
        let named = &mut me.named;
        let judge = |others: &[Runner]| {
            let other_runners: Vec<OtherRunner> = others
                .iter()
                .map(|runner| OtherRunner {
                    runner: runner.clone(),
                    alive: me.locks.is_alive(runner),
                    working: me.locks.is_held(Lock::Work(runner.rank)),
                })
                .collect();
            for other in &other_runners {
                warn_of(&me.row, other, named);
            }
            let verdict = plan::gate(&me.row.place, rank, &other_runners, patient);
            match verdict {
                // Before the row shows this orchestrator as the active one.
                Gate::Pass { .. } if !me.locks.hold_soon(Lock::Work(rank)) => {
                    Gate::Replace(vec![me.row.clone()])
                }
                verdict => verdict,
            }
        };
        match self.database.promote(rank, now(), judge) {
            Err(error) if error.is_busy() => {
                let working = working(self.me, self.database, self.scope)?;
                if working.is_empty() {
                    Err(not_stored(self.scope, &error))
                } else {
                    Ok(Gate::Replace(working))
                }
            }
            other => other.map_err(|error| not_stored(self.scope, &error)),
        }
    }

    /// Logs once which orchestrator took over, and shows it in STATUS=.
    async fn stand_by(&mut self, newer: &Runner) -> Result<(), OrchestratorError> {
        self.deadline = None;
        self.patient = true;
        self.leader = Some(newer.clone());
        // Callers repeat their calls at the active orchestrator.
        self.face.pending.clear();
        self.face.request_name(false).await?;
        if self.me.named.insert(newer.rank) && !self.me.heir {
            announce(newer);
        }
        self.line = format!("standing by: {} is active on this data directory", newer.named());
        notify::ready();
        notify::status(&self.line);
        Ok(())
    }

    async fn replace(&mut self, older: &[Runner]) -> Result<(), OrchestratorError> {
        let names: Vec<String> = older.iter().map(Runner::named).collect();
        self.line = format!("waiting for {} to stop", names.join("; "));
        self.leader = None;
        notify::status(&self.line);
        if self.deadline.is_none() {
            self.deadline = Some(Instant::now() + STOP_TIMEOUT);
        }
        if older.iter().any(|runner| self.asked.insert(runner.rank)) {
            tracing::info!(
                "taking over from {}: requested its stop within {} s",
                names.join("; "),
                STOP_TIMEOUT.as_secs()
            );
            self.face.request_name(true).await?;
            self.me.locks.tell();
        }
        Ok(())
    }

    async fn run_out_of_patience(&mut self) -> Result<(), OrchestratorError> {
        self.patient = false;
        self.deadline = Some(Instant::now() + STOP_TIMEOUT);
        for runner in working(self.me, self.database, self.scope)? {
            end(self.me, self.scope, &runner).await;
        }
        Ok(())
    }

    /// Answers a status request at once, and keeps other calls until the promotion. Calls from
    /// before a newer orchestrator came are dropped: their callers repeat them there.
    fn take(&mut self, call: Call) {
        if self.leader.as_ref().is_some_and(|newer| self.me.locks.is_alive(newer)) {
            return;
        }
        if call.name() != Some("Status") {
            return self.face.pending.push(call);
        }
        let runners = self.database.runners().unwrap_or_default();
        let status = report::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data: self.scope.data_dir().to_string_lossy().into_owned(),
            line: self.line.clone(),
            runners: reported(&runners, self.me.row.rank, &self.me.row.place, |runner| {
                self.me.locks.is_alive(runner)
            }),
            ..report::Status::default()
        };
        let answer = Answer::json(&status);
        call.reply.send(answer.map_err(|error| Refusal::Failed(error.to_string())));
    }
}

/// Logs which orchestrator took over.
pub fn announce(newer: &Runner) {
    tracing::warn!(
        message_id = message::TAKEN_OVER,
        archivist_runner_pid = newer.pid,
        archivist_runner_unit = %newer.unit,
        archivist_reason = %newer.components,
        "a newer process took over {} ({}); work will continue there and will resume here if that process exits and work remains",
        newer.components,
        newer.named()
    );
}

/// Logs once about each orchestrator in another place.
fn warn_of(me: &Runner, other: &OtherRunner, named: &mut BTreeSet<i64>) {
    let runner = &other.runner;
    let locality = Locality::of(&me.place, &runner.place);
    let far = matches!(locality, Locality::OtherMachine | Locality::OtherNamespace);
    // Ranks are positive: negative numbers mark warnings.
    if !far || runner.rank > me.rank || !named.insert(-runner.rank) {
        return;
    }
    let (who, place) = (runner.named(), locality.words());
    match (other.alive, locality) {
        (true, _) => tracing::warn!(
            "an orchestrator {place} ({who}) uses this data directory: its stop is requested, it cannot be killed from here, and its writes are refused after {} s",
            STOP_TIMEOUT.as_secs()
        ),
        (false, Locality::OtherMachine) => tracing::warn!(
            "an orchestrator {place} ({who}) used this data directory last: if it is still running, stop it there; its writes are refused from now on"
        ),
        (false, _) => tracing::info!("an orchestrator {place} ({who}) has ended"),
    }
}
