//! The end of a worker whose health check failed: SIGTERM, and SIGKILL after its StopSec=. It is
//! only ever ended here; systemd restarts it as any worker that dies, unless somebody stops it.

use super::super::exit::{Exit, Failure};
use super::{connect, failure};
use crate::config::Scope;
use crate::manager::{Properties, Systemd};
use clap::Args;
use futures_util::StreamExt;
use nix::sys::signal::Signal;
use std::time::Duration;

#[derive(Args)]
pub struct UnhealthyArgs {
    /// NAME-INDEX
    worker: String,
}

/// The longest StopSec= that is waited for; systemd writes "infinity" as the largest number.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

pub async fn run(args: UnhealthyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let Some((name, index)) = args.worker.rsplit_once('-') else {
        let what = format!("'{}' is not the NAME-INDEX of a worker", args.worker);
        return Err(Failure::usage(what));
    };
    let unit = format!("archivist-pool-{name}@{index}.service");
    let systemd = connect(scope).await?;
    let mut changes = systemd.changes(&unit).await.map_err(failure)?;
    let worker = systemd.service(&unit).await.map_err(failure)?;
    if worker.text("ActiveState") != "active" || is_younger(&worker, &systemd).await? {
        println!("{unit} has ended by itself meanwhile");
        return Ok(Exit::Done);
    }
    println!("{unit} failed its health check, ending it");
    let life = worker.number("ActiveEnterTimestampMonotonic");
    let signal = |signal: Signal| systemd.kill(&unit, signal as i32);
    signal(Signal::SIGTERM).await.map_err(failure)?;
    let gone = async {
        while is_alive(&systemd.service(&unit).await.map_err(failure)?, life) {
            changes.next().await;
        }
        Ok::<(), Failure>(())
    };
    match tokio::time::timeout(patience(&worker), gone).await {
        Ok(gone) => gone?,
        Err(_) if is_alive(&systemd.service(&unit).await.map_err(failure)?, life) => {
            println!("{unit} ignores SIGTERM, killing it");
            signal(Signal::SIGKILL).await.map_err(failure)?;
        }
        Err(_) => {}
    }
    Ok(Exit::Done)
}

/// Whether it still is in the life that began then, and nobody stops it.
fn is_alive(worker: &Properties, life: u64) -> bool {
    worker.text("ActiveState") == "active" && worker.number("ActiveEnterTimestampMonotonic") == life
}

fn patience(worker: &Properties) -> Duration {
    match worker.number("TimeoutStopUSec") {
        0 => PATIENCE_MAX,
        usec => Duration::from_micros(usec).min(PATIENCE_MAX),
    }
}

/// Whether the worker was restarted after the check that failed had begun; systemd names that check
/// (systemd.exec(5), $MONITOR_UNIT).
async fn is_younger(worker: &Properties, systemd: &Systemd) -> Result<bool, Failure> {
    let Ok(check) = std::env::var("MONITOR_UNIT") else {
        return Ok(false);
    };
    let check = systemd.service(&check).await.map_err(failure)?;
    let began = check.number("ExecMainStartTimestampMonotonic");
    Ok(began != 0 && worker.number("ActiveEnterTimestampMonotonic") > began)
}
