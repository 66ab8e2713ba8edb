//! The process of the orchestrator: from its start to the loop, and to the exit status.

use crate::calls::add;

use crate::bus::announcer::Announcer;
use crate::calls::retry;
use crate::database::{Database, DatabaseError};
use crate::machine::clock;
use crate::machine::clock::now;
use crate::machine::library;
use crate::machine::notify;
use crate::machine::pressure;
use crate::main_loop::effects::Systemd;
use crate::main_loop::live::Live;
use crate::main_loop::perform::Performer;
use crate::main_loop::rooms::Rooms;
use crate::process::database_check;
use crate::process::database_check::Checked;
use crate::process::error::OrchestratorError;
use crate::process::event_sources;
use crate::process::exit;
use crate::process::exit::{AfterRun, EXIT_CONFIG};
use crate::process::gate;
use crate::process::gate::Face;
use crate::process::orchestrator::Orchestrator;
use crate::process::setup;
use crate::runner::identity;
use crate::runner::identity::Identity;
use crate::work::ends::log_cancelled;
use archivist_config::{Scope, Settings};
use archivist_core::plan::Idle;
use archivist_core::text::human_span;
use archivist_shared::database;
use archivist_shared::journal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Shortest step back of the clock that is logged; time synchronisation makes shorter ones.
const STEP_LOGGED: Duration = Duration::from_secs(1);

pub struct Options {
    pub scope: Scope,
    /// Exit when there is no work, and none is due later.
    pub exit_on_idle: bool,
}

/// `archivist orchestrator`.
pub(crate) fn main(options: Options, rooms: &'static dyn Rooms) -> ExitCode {
    let field = journal::unit_field(options.scope.user);
    journal::init(identity::own_unit().map(|unit| (field, unit)));
    setup::take_descriptors();
    let mut me = None;
    let checked = Checked::default();
    loop {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!("failed to create the event loop: {error}");
                return ExitCode::FAILURE;
            }
        };
        let result = runtime.block_on(run(&options, rooms, &checked, &mut me));
        let ended_normally = result.is_ok();
        let after = runtime.block_on(exit::after(result, &options.scope, me.as_ref()));
        // This ends all connections, calls and tasks.
        runtime.shutdown_background();
        match after {
            AfterRun::Again => me.iter().for_each(Identity::stop_working),
            AfterRun::Damaged(why) => {
                checked.record(&options.scope, Some(why));
                return EXIT_CONFIG.into();
            }
            AfterRun::Exit(code) => {
                if ended_normally {
                    checked.record(&options.scope, None);
                }
                return code;
            }
        }
    }
}

async fn run(
    options: &Options,
    rooms: &'static dyn Rooms,
    checked: &Checked,
    me: &mut Option<Identity>,
) -> Result<(), OrchestratorError> {
    let scope = &options.scope;
    let file = database::path(scope);
    let failed = |error: DatabaseError| OrchestratorError::Failed(error.message(&file));
    let (sender, mut events) = mpsc::unbounded_channel();
    event_sources::signals(&sender)
        .map_err(|e| OrchestratorError::Failed(format!("signals: {e}")))?;
    let mut configuration = setup::configuration(scope).map_err(OrchestratorError::Unusable)?;
    if !database_check::before_work(scope, checked, &sender, &mut events).await? {
        return Ok(());
    }
    let mut database = setup::database(scope)?;
    let face = Face::new(scope).await?;
    if me.is_none() {
        *me = Some(Identity::new(scope).await.map_err(OrchestratorError::Failed)?);
    }
    let Some(me) = me else { return Ok(()) };
    let passed =
        gate::pass(face, me, &mut database, scope, &mut events, options.exit_on_idle).await?;
    let Some(passed) = passed else { return Ok(()) };
    if passed.stood_by {
        configuration = setup::configuration(scope).map_err(OrchestratorError::Unusable)?;
    }
    let fence = Arc::new(database.fence().map_err(failed)?);
    let (mut engine, manager) =
        setup::open(scope, configuration, (me, database.epoch()), &sender).await?;
    let manager = manager.guarded_by(Arc::new(move || fence.holds()));
    let announcer = Announcer::new(passed.connection.clone(), passed.subscribers);
    let live = Live::new(manager, sender.clone(), announcer);
    {
        let tx = database.begin().map_err(failed)?;
        engine.tokens.extend(tx.tokens().map_err(failed)?);
        let programs = tx.binaries().map_err(failed)?;
        engine.versions = library::versions(&programs);
        engine.library = library::library(programs);
        let cancelled = add::cancel_half_added(&tx, now()).map_err(failed)?;
        retry::begin_half_retried(&tx, now()).map_err(failed)?;
        tx.commit().map_err(failed)?;
        for crawl in cancelled {
            log_cancelled(crawl, add::HALF);
        }
        if let Err(error) = adjust_to_clock(&mut database, &engine.settings) {
            let why = error.message(&file);
            tracing::warn!("failed to adjust due times to the clock: {why}, ignoring");
        }
    }
    let idle = Idle { timeout: engine.settings.idle_timeout, since: None };
    // The archive may be on a file system of its own.
    let places = vec![scope.data_dir(), engine.archive()];
    let mut daemon = Orchestrator {
        machine: pressure::Machine::new(places),
        engine,
        database,
        performer: Performer::default(),
        live,
        events,
        idle: options.exit_on_idle.then_some(idle),
        deferred: Vec::new(),
        logged_failure: None,
        backlog: Vec::new(),
        me,
        rooms,
        busy: true,
        blocked: false,
        clock: clock::Clock::default(),
    };
    daemon.live.list();
    for call in passed.pending {
        let _ = sender.send(call.into());
    }
    for event in rooms.first() {
        let _ = sender.send(event);
    }
    database_check::next_to_work(scope, checked, sender.clone());
    tokio::spawn(event_sources::runner_changes(passed.news, sender.clone()));
    tokio::spawn(event_sources::hung_up(passed.connection.clone(), sender.clone()));
    tokio::spawn(event_sources::forward(passed.arriving, sender));
    notify::ready();
    let result = daemon.run().await;
    if result.is_ok() {
        let _ = daemon.database.leave(daemon.me.row.rank);
    }
    drop(passed.connection);
    result
}

/// If the ends of runs show that the clock was set back while no orchestrator ran, shifts all due times.
/// Then limits each due time to the latest possible one, counted from now.
fn adjust_to_clock(database: &mut Database, settings: &Settings) -> Result<(), DatabaseError> {
    let tx = database.begin()?;
    let now = now();
    let back = tx.set_back_by(now)?;
    if !back.is_zero() {
        tx.clock_set(-i64::try_from(back.as_millis()).unwrap_or(i64::MAX))?;
    }
    let count = tx.bring_forward(now, settings.retry_longest, settings.http_wait_max)?;
    tx.commit()?;
    if back >= STEP_LOGGED {
        let by = human_span(back);
        tracing::info!("clock was set back by {by} since the last run; shifted due times");
    } else if count > 0 {
        tracing::info!("clock was set back since the last start; adjusted {count} due times");
    }
    Ok(())
}
