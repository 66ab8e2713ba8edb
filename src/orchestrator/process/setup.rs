//! What the loop requires: settings, plugins, database, systemd.

use crate::database::damage::{FileCheck, check, log_is_damaged};
use crate::database::{Database, OpenError};
use crate::engine::state::{Engine, OwnRunner, Programs};
use crate::main_loop::event::Event;
use crate::process::error::OrchestratorError;
use crate::process::startup_wait;
use crate::runner::identity::Identity;
use archivist_config as config;
use archivist_config::programs::{
    ARCHIVIST, FLEET, FLEET_FIX, FLEET_MISSING, LAUNCHER, SEARCH, STORE, of_workers,
};
use archivist_config::{Scope, Settings};
use archivist_core::plan::{Quota, QuotaOf};
use archivist_core::unit::Names;
use archivist_plugin::programs::distribution::Distribution;
use archivist_plugin::{Catalogue, Trust};
use archivist_shared::database;
use archivist_shared::journal::message;
use archivist_shared::systemd::{HintQueue, Manager, ManagerError};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::User;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// LimitNOFILE= of the unit: the orchestrator has one descriptor for each running hook, its
/// standard output.
const DESCRIPTORS_MAX: u64 = 65_536;

/// Raises the limit of descriptors to that of the unit: a process that was started by hand has
/// 1,024.
pub fn take_descriptors() {
    let taken = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        match DESCRIPTORS_MAX.min(hard) {
            wanted if wanted > soft => setrlimit(Resource::RLIMIT_NOFILE, wanted, hard),
            _ => Ok(()),
        }
    });
    if let Err(error) = taken {
        tracing::warn!("failed to raise the limit of open files: {error}, ignoring");
    }
}

/// Reads settings and plugins. Errors in single plugins or keys are logged and ignored.
pub fn configuration(scope: &Scope) -> Result<(Settings, Catalogue), String> {
    let (mut settings, warnings) = config::load(scope).map_err(|error| error.to_string())?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    find_users(&mut settings.quotas);
    if settings.is_in_fleet() && !scope.user && scope.instance.is_none() && !FLEET.is_installed() {
        tracing::warn!("{FLEET_MISSING}, so crawls of the fleet wait; {FLEET_FIX}");
    }
    let catalogue = plugins(scope, &settings);
    Ok((settings, catalogue))
}

/// Looks up the users that have a quota of their own.
fn find_users(quotas: &mut [Quota]) {
    for quota in quotas {
        let QuotaOf::User { name, uid: uid @ None } = &mut quota.of else {
            continue;
        };
        let why = match User::from_name(name) {
            Ok(Some(user)) => {
                *uid = Some(user.uid.as_raw());
                continue;
            }
            Ok(None) => format!("there is no user '{name}'"),
            Err(error) => format!("failed to look up user '{name}': {error}"),
        };
        tracing::warn!("Quota={}: {why}, ignoring", quota.text);
    }
}

/// Reads the plugins. Errors in single plugins are logged and ignored.
pub fn plugins(scope: &Scope, settings: &Settings) -> Catalogue {
    let trust = if scope.user { Trust::User(nix::unistd::geteuid().as_raw()) } else { Trust::Root };
    let mut catalogue = Catalogue::load(&scope.plugin_roots(settings), trust);
    catalogue.default_timeout(settings.hook_timeout);
    let os_release = std::fs::read_to_string(scope.rooted("/etc/os-release")).unwrap_or_default();
    catalogue.distribution = Distribution::of(&os_release);
    for problem in &catalogue.problems {
        tracing::warn!("plugin file '{}': {}, ignoring", problem.path.display(), problem.what);
    }
    catalogue
}

/// Opens the database. A user gets errors in this order: configuration, database, systemd.
pub fn database(scope: &Scope) -> Result<Database, OrchestratorError> {
    let data = scope.data_dir();
    if scope.user {
        let archive = data.join("archive");
        std::fs::create_dir_all(&archive).map_err(|error| {
            OrchestratorError::Unusable(format!(
                "failed to create '{}': {error}",
                archive.display()
            ))
        })?;
    }
    let path = database::path(scope);
    keep_damaged_log(&path);
    Database::open(&path).map_err(|error| {
        if error.may_pass() && startup_wait::data_obstacle(scope).is_some() {
            return OrchestratorError::Failed(error.to_string());
        }
        refused(&path, &error)
    })
}

fn refused(path: &Path, error: &OpenError) -> OrchestratorError {
    tracing::error!(
        message_id = message::DATABASE_REFUSED,
        archivist_database = %path.display(),
        archivist_reason = %error,
        "{error}"
    );
    match error {
        OpenError::Damaged { .. } | OpenError::Garbage { .. } => {
            OrchestratorError::DatabaseDamaged(error.to_string())
        }
        _ => OrchestratorError::DatabaseRefused(error.to_string()),
    }
}

/// Copies a damaged log of the database. SQLite uses the records before the damage: an earlier
/// state, without the last transactions.
fn keep_damaged_log(path: &Path) {
    let log = database::log_of(path);
    match log_is_damaged(&log) {
        Ok(false) => {}
        Ok(true) => {
            let kept = log.with_extension("sqlite3-wal.damaged");
            let copied = match std::fs::copy(&log, &kept) {
                Ok(_) => format!("a copy is in '{}'", kept.display()),
                Err(error) => format!("failed to copy it: {error}"),
            };
            tracing::error!(
                "'{}' is damaged, and the last records are lost: some crawls may have to be added again; {copied}",
                log.display()
            );
        }
        Err(error) => tracing::warn!("failed to read '{}': {error}, ignoring", log.display()),
    }
}

/// The error for a damaged database, which must not be written.
pub fn damaged(scope: &Scope, what: &str) -> OrchestratorError {
    let (path, what) = (database::path(scope), what.to_owned());
    let error = OpenError::Damaged { path: path.clone(), what };
    refused(&path, &error)
}

/// Replaces an error by that of the database, if the database is damaged.
pub fn explain(scope: &Scope, error: OrchestratorError) -> OrchestratorError {
    let OrchestratorError::Failed(_) = &error else {
        return error;
    };
    match check(&database::path(scope)) {
        FileCheck::Damaged(what) => damaged(scope, &what),
        FileCheck::Whole | FileCheck::Unknown => error,
    }
}

fn programs(scope: &Scope) -> Result<Programs, OrchestratorError> {
    let own = std::env::current_exe().map_err(|error| {
        OrchestratorError::Failed(format!("failed to find the program of this process: {error}"))
    })?;
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(Programs {
        archivist: text(ARCHIVIST.path_from(&own)),
        store: text(STORE.path_from(&own)),
        search: text(SEARCH.path_from(&own)),
        launcher: (!scope.user).then(|| text(LAUNCHER.path_from(&own))),
        worker: text(of_workers(&own)),
    })
}

/// Checks that drop-ins set the user and the sandbox of units.
fn need_sandbox(scope: &Scope) -> Result<(), OrchestratorError> {
    let missing = config::sandbox::missing_drop_ins(scope);
    if missing.is_empty() {
        return Ok(());
    }
    Err(OrchestratorError::Unusable(format!(
        "no sandbox for its units: {} in /etc/systemd/system and the other directories of units have no drop-ins; INSTANCES in \
         archivist-orchestrator.service(8) shows how to create them",
        missing.join(", ")
    )))
}

/// Connects to systemd, and makes the engine of the active orchestrator.
pub async fn open(
    scope: &Scope,
    (settings, catalogue): (Settings, Catalogue),
    (me, epoch): (&Identity, i64),
    events: &mpsc::UnboundedSender<Event>,
) -> Result<(Engine, Manager), OrchestratorError> {
    let failed = |error: ManagerError| OrchestratorError::Failed(error.to_string());
    need_sandbox(scope)?;
    let programs = programs(scope)?;
    let hints = HintQueue::default();
    let names = Names::new(scope.unit_prefix());
    let manager = Manager::connect(scope.user, names, hints.clone()).await.map_err(failed)?;
    tokio::spawn(crate::process::event_sources::hints(hints, events.clone()));
    let systemd = manager.version().await.map_err(failed)?;
    tracing::info!(
        "archivist {} on systemd {systemd}, data in {}, epoch {epoch}",
        env!("CARGO_PKG_VERSION"),
        scope.data_dir().display()
    );
    let boot = me.row.place.boot.clone();
    let mut engine = Engine::new(scope.clone(), settings, catalogue, boot, programs, systemd);
    engine.me = Some(OwnRunner {
        rank: me.row.rank,
        place: me.row.place.clone(),
        locks: me.locks.clone(),
        directory: std::env::current_dir()
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
    });
    engine.filter_holds = crate::engine::way_out::filter_holds(&manager, scope).await;
    crate::work::reach::warn(&engine);
    Ok((engine, manager))
}
