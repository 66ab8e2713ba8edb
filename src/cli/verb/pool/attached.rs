//! `archivist pool run --attached`: a pool that ends with the command that started it. The command
//! runs in a scope, to which the workers are bound, so that systemd stops them even if the command
//! is killed.

use crate::client::exit::Failure;
use crate::machine::pools::failure;
use archivist_config::Scope;
use archivist_generator::Pool;
use archivist_shared::systemd::{SystemdClient, enter_scope};
use futures_util::StreamExt;
use std::slice::from_ref;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct EndSignals([Signal; 3]);

impl EndSignals {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on.
    pub fn caught() -> Result<EndSignals, Failure> {
        let catch = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("failed to catch a signal: {error}")))
        };
        Ok(EndSignals([
            catch(SignalKind::interrupt())?,
            catch(SignalKind::terminate())?,
            catch(SignalKind::hangup())?,
        ]))
    }

    async fn received(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Returns the scope of the command that runs the pool `name`.
pub fn scope_of(name: &str) -> String {
    format!("archivist-attached-{name}.scope")
}

/// Moves this process into the scope of its pool.
pub async fn enter(name: &str, scope: &Scope) -> Result<(), Failure> {
    const SLICE: &str = "archivist.slice";
    let description = format!("archivist: command of pool {name}");
    let unit = scope_of(name);
    let entered = enter_scope(scope.user, &unit, &description, SLICE, 0).await;
    entered.map_err(failure)
}

/// Waits for a signal, or until the pool is stopped.
pub async fn ended(
    systemd: &SystemdClient,
    pool: &Pool,
    signals: &mut EndSignals,
) -> Result<(), Failure> {
    let target = pool.target();
    let mut changes = systemd.changes(&target).await.map_err(failure)?;
    let stopped = async {
        loop {
            let loaded = systemd.loaded(from_ref(&target)).await.map_err(failure)?;
            if !loaded.iter().any(|unit| unit.active_state == "active") {
                return Ok(());
            }
            if changes.next().await.is_none() {
                return Ok(());
            }
        }
    };
    tokio::select! {
        () = signals.received() => Ok(()),
        stopped = stopped => stopped,
    }
}
