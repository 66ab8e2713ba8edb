//! What has to be there before the loop can turn: settings, plugins, database, systemd.

use super::DaemonError;
use super::engine::{Engine, Seated};
use super::event::Event;
use super::me::Me;
use super::room;
use crate::config::{self, Scope, Settings};
use crate::journal::message;
use crate::manager::{Manager, ManagerError};
use crate::plugin::{Catalogue, Trust};
use crate::store::Store;
use crate::unit::Names;
use tokio::sync::mpsc;

/// Name of the database in the data directory.
const DATABASE: &str = "archivist.sqlite3";

/// Reads settings and plugins; what is wrong with single plugins or keys is logged and survived.
pub fn configuration(scope: &Scope) -> Result<(Settings, Catalogue), String> {
    let (settings, warnings) = config::load(scope).map_err(|error| error.to_string())?;
    for warning in warnings {
        tracing::warn!("{}: {}, ignoring", warning.place, warning.what);
    }
    let trust = match scope.user {
        true => Trust::User(nix::unistd::geteuid().as_raw()),
        false => Trust::Root,
    };
    let catalogue = Catalogue::load(&scope.plugin_roots(&settings), trust);
    for problem in &catalogue.problems {
        tracing::warn!(
            "plugin file '{}': {}, ignoring",
            problem.path.display(),
            problem.what
        );
    }
    Ok((settings, catalogue))
}

/// Opens the database. The order is the one in which a user would want to hear of a problem:
/// configuration, database, systemd.
pub fn store(scope: &Scope) -> Result<Store, DaemonError> {
    let data = scope.data_dir();
    if scope.user {
        let archive = data.join("archive");
        std::fs::create_dir_all(&archive).map_err(|error| {
            DaemonError::Unusable(format!("cannot make '{}': {error}", archive.display()))
        })?;
    }
    let path = data.join(DATABASE);
    Store::open(&path).map_err(|error| {
        if error.may_pass() && room::lack(scope).is_some() {
            return DaemonError::Failed(error.to_string());
        }
        tracing::error!(
            message_id = message::DATABASE_REFUSED,
            archivist_database = %path.display(),
            archivist_reason = %error,
            "{error}"
        );
        DaemonError::Unusable("the database cannot be used".to_owned())
    })
}

/// What the active runner works with.
pub async fn open(
    scope: &Scope,
    (settings, catalogue): (Settings, Catalogue),
    (me, epoch): (&Me, i64),
    events: &mpsc::UnboundedSender<Event>,
) -> Result<(Engine, Manager), DaemonError> {
    let failed = |error: ManagerError| DaemonError::Failed(error.to_string());
    let program = std::env::current_exe()
        .map_err(|error| DaemonError::Failed(format!("cannot find our own program: {error}")))?
        .to_string_lossy()
        .into_owned();
    let (hints, arriving) = mpsc::unbounded_channel();
    let names = Names::new(scope.unit_prefix());
    let manager = Manager::connect(scope.user, names, hints)
        .await
        .map_err(failed)?;
    tokio::spawn(super::forward(arriving, events.clone()));
    let systemd = manager.version().await.map_err(failed)?;
    tracing::info!(
        "archivist {} on systemd {systemd}, data in {}, epoch {epoch}",
        env!("CARGO_PKG_VERSION"),
        scope.data_dir().display()
    );
    let boot = me.row.place.boot.clone();
    let mut engine = Engine::new(scope.clone(), settings, catalogue, boot, program, systemd);
    engine.me = Some(Seated {
        seat: me.row.seat,
        place: me.row.place.clone(),
        seats: me.seats.clone(),
    });
    Ok((engine, manager))
}
