//! Ends a worker whose health check failed: SIGTERM, then SIGKILL after its StopSec=. systemd
//! restarts it like any worker that fails, unless it is being stopped. A check that was not
//! executed, or failed itself, does not end its worker.

use super::{connect, failure};
use crate::client::exit::{Exit, Failure};
use archivist_config::Scope;
use archivist_core::model::Time;
use archivist_core::plan::{check_fault, unhealthy_reason};
use archivist_core::text::human_span;
use archivist_shared::systemd::{Properties, SystemdClient, Whom};
use clap::Args;
use futures_util::StreamExt;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

#[derive(Args)]
pub struct UnhealthyArgs {
    /// NAME-INDEX
    worker: String,
}

/// Longest StopSec= that is honoured; systemd reports "infinity" as the largest number.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

pub async fn run(args: UnhealthyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let Some((name, index)) = args.worker.rsplit_once('-') else {
        let what = format!("'{}' is not NAME-INDEX of a worker", args.worker);
        return Err(Failure::usage(what));
    };
    let unit = format!("archivist-pool-{name}@{index}.service");
    if let Some(fault) = fault() {
        println!("the health check of {unit} says nothing about it, ignoring the check: {fault}");
        record_fault(&args.worker, &fault, scope)?;
        return Ok(Exit::Done);
    }
    let systemd = connect(scope).await?;
    let mut changes = systemd.changes(&unit).await.map_err(failure)?;
    let worker = systemd.service(&unit).await.map_err(failure)?;
    if worker.text("ActiveState") != "active" {
        println!("{unit} has already ended");
        return Ok(Exit::Done);
    }
    if let Some(grace) = grace(name, index, &worker, &systemd).await? {
        let grace = human_span(grace);
        println!("{unit} started less than {grace} before its health check: not ended yet");
        return Ok(Exit::Done);
    }
    let reason = unhealthy_reason(&std::env::var("MONITOR_SERVICE_RESULT").unwrap_or_default());
    println!("{unit} failed its health check, ending it: {reason}");
    let restarts = worker.number("NRestarts");
    if let Err(failure) = record_restart(&args.worker, restarts, reason, scope) {
        println!("{}, ignoring", failure.message());
    }
    let life = worker.number("ActiveEnterTimestampMonotonic");
    let signal = |signal: Signal| systemd.kill(&unit, Whom::All, signal as i32);
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

/// Returns why the check that systemd reports as failed says nothing about the worker.
fn fault() -> Option<String> {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let result = said("MONITOR_SERVICE_RESULT");
    let code = said("MONITOR_EXIT_CODE");
    check_fault(&result, &code, &said("MONITOR_EXIT_STATUS"))
}

/// Path of the file with the last fault of a worker's check. `worker` is NAME-INDEX.
pub fn fault_path(worker: &str, scope: &Scope) -> PathBuf {
    scope.runtime_dir().join("pool-health").join(worker)
}

/// Writes the fault for `archivist pool status`: systemd forgets a failed check at once.
fn record_fault(worker: &str, fault: &str, scope: &Scope) -> Result<(), Failure> {
    let path = fault_path(worker, scope);
    std::fs::write(&path, fault)
        .map_err(|error| Failure::failed(format!("failed to write '{}': {error}", path.display())))
}

/// Path of the file with the reason of a worker's newest restart by a check. `worker` is NAME-INDEX.
fn restart_path(worker: &str, scope: &Scope) -> PathBuf {
    let name = format!("{worker}.restart");
    scope.runtime_dir().join("pool-health").join(name)
}

/// Writes why the worker is ended after this number of restarts.
fn record_restart(worker: &str, restarts: u64, why: &str, scope: &Scope) -> Result<(), Failure> {
    let path = restart_path(worker, scope);
    std::fs::write(&path, format!("{restarts}\n{why}"))
        .map_err(|error| Failure::failed(format!("failed to write '{}': {error}", path.display())))
}

/// Returns why a check caused the restart with this number, counted from 1, of a process that started
/// at `since`.
pub fn restart_reason(worker: &str, restarts: u64, since: Time, scope: &Scope) -> Option<String> {
    let path = restart_path(worker, scope);
    let modified = path.metadata().ok()?.modified().ok()?;
    let written = Time(0).after(modified.duration_since(UNIX_EPOCH).ok()?);
    let text = std::fs::read_to_string(path).ok()?;
    let (before, why) = text.split_once('\n')?;
    let is_of_this = before.parse::<u64>().ok()? + 1 == restarts;
    // systemd counts from 0 again after a manual start.
    let is_recent = written <= since && since.until(written) < PATIENCE_MAX;
    (is_of_this && is_recent).then(|| why.to_owned())
}

/// Returns whether the worker still runs since that start and is not being stopped.
fn is_alive(worker: &Properties, life: u64) -> bool {
    worker.text("ActiveState") == "active" && worker.number("ActiveEnterTimestampMonotonic") == life
}

fn patience(worker: &Properties) -> Duration {
    match worker.number("TimeoutStopUSec") {
        0 => PATIENCE_MAX,
        usec => Duration::from_micros(usec).min(PATIENCE_MAX),
    }
}

/// Returns the time that a worker has before its first check, if the failed check began within it.
/// systemd names that check (systemd.exec(5), $MONITOR_UNIT). The timer lives as long as the worker
/// but counts from the end of the last check, which may be one of the previous process.
async fn grace(
    name: &str,
    index: &str,
    worker: &Properties,
    systemd: &SystemdClient,
) -> Result<Option<Duration>, Failure> {
    let Ok(unit) = std::env::var("MONITOR_UNIT") else {
        return Ok(None);
    };
    let check = systemd.service(&unit).await.map_err(failure)?;
    let unit = format!("archivist-pool-{name}-health@{index}.timer");
    let timer = systemd.timer(&unit).await.map_err(failure)?;
    let grace = timer.first_elapse().unwrap_or_default();
    let began = Duration::from_micros(check.number("ExecMainStartTimestampMonotonic"));
    let started = Duration::from_micros(worker.number("ActiveEnterTimestampMonotonic"));
    Ok(Some(grace).filter(|grace| !began.is_zero() && began < started + *grace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_by_a_check_keeps_its_reason() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let path = restart_path("web-0", &scope);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        record_restart("web-0", 2, "its health check did not end in time", &scope).unwrap();
        let modified = path.metadata().unwrap().modified().unwrap();
        let written = Time(0).after(modified.duration_since(UNIX_EPOCH).unwrap());
        let reason = |restarts, seconds| {
            let since = written.after(Duration::from_secs(seconds));
            restart_reason("web-0", restarts, since, &scope)
        };
        assert_eq!(
            reason(3, 1).unwrap(),
            "its health check did not end in time"
        );
        // Another restart, one of an earlier life of the pool, and another worker.
        assert_eq!(reason(4, 1), None);
        assert_eq!(reason(3, 7200), None);
        assert_eq!(restart_reason("web-1", 3, written, &scope), None);
    }
}
