//! Ends a worker whose health check failed by SIGTERM, then SIGKILL after its StopSec=. systemd restarts it
//! like any worker that fails, unless it is being stopped. A check that was not executed, or failed itself,
//! does not end its worker.

use crate::fault::{check_fault, unhealthy_reason};
use crate::health::{record_fault, record_restart};
use archivist_config::Scope;
use archivist_core::text::human_span;
use archivist_shared::systemd::{Properties, SystemdClient, Whom};
use futures_util::StreamExt;
use nix::sys::signal::Signal;
use std::process::ExitCode;
use std::time::Duration;

/// Longest StopSec= that is honoured; systemd reports "infinity" as the largest number.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    name: String,
    index: u32,
}

impl Worker {
    /// Reads NAME-INDEX, the instance of archivist-unhealthy@.service.
    pub fn parse(text: &str) -> Option<Worker> {
        let (name, index) = text.rsplit_once('-')?;
        Some(Worker { name: name.to_owned(), index: index.parse().ok()? })
    }

    fn unit(&self) -> String {
        format!("archivist-pool-{}@{}.service", self.name, self.index)
    }

    fn health_timer(&self) -> String {
        format!("archivist-pool-{}-health@{}.timer", self.name, self.index)
    }

    /// Returns the name of its files of [`crate::health`].
    fn key(&self) -> String {
        format!("{}-{}", self.name, self.index)
    }
}

/// Ends the worker if its failed check says that it is unhealthy. Reads the result of the check from
/// the environment (systemd.exec(5), $MONITOR_SERVICE_RESULT and its siblings).
pub fn main(scope: &Scope, worker: &Worker) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(end(scope, worker)),
        Err(error) => Err(format!("failed to start the async runtime: {error}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("archivist: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn end(scope: &Scope, worker: &Worker) -> Result<(), String> {
    let unit = worker.unit();
    if let Some(fault) = fault() {
        println!("the health check of {unit} says nothing about it, ignoring the check: {fault}");
        return record_fault(&worker.key(), &fault, scope);
    }
    let systemd = SystemdClient::subscribed(scope.user).await.map_err(text)?;
    let mut changes = systemd.changes(&unit).await.map_err(text)?;
    let service = systemd.service(&unit).await.map_err(text)?;
    if service.text("ActiveState") != "active" {
        println!("{unit} has already ended");
        return Ok(());
    }
    if let Some(grace) = grace(worker, &service, &systemd).await? {
        let grace = human_span(grace);
        println!("{unit} started less than {grace} before its health check: not ended yet");
        return Ok(());
    }
    let reason = unhealthy_reason(&said("MONITOR_SERVICE_RESULT"));
    println!("{unit} failed its health check, ending it: {reason}");
    let restarts = service.number("NRestarts");
    if let Err(why) = record_restart(&worker.key(), restarts, reason, scope) {
        println!("{why}, ignoring");
    }
    let life = service.number("ActiveEnterTimestampMonotonic");
    let signal = |signal: Signal| systemd.kill(&unit, Whom::All, signal as i32);
    signal(Signal::SIGTERM).await.map_err(text)?;
    let gone = async {
        while is_alive(&systemd.service(&unit).await.map_err(text)?, life) {
            changes.next().await;
        }
        Ok::<(), String>(())
    };
    match tokio::time::timeout(patience(&service), gone).await {
        Ok(gone) => gone?,
        Err(_) if is_alive(&systemd.service(&unit).await.map_err(text)?, life) => {
            println!("{unit} ignores SIGTERM, killing it");
            signal(Signal::SIGKILL).await.map_err(text)?;
        }
        Err(_) => {}
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn said(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns why the check that systemd reports as failed says nothing about the worker.
fn fault() -> Option<String> {
    let result = said("MONITOR_SERVICE_RESULT");
    let code = said("MONITOR_EXIT_CODE");
    check_fault(&result, &code, &said("MONITOR_EXIT_STATUS"))
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
    worker: &Worker,
    service: &Properties,
    systemd: &SystemdClient,
) -> Result<Option<Duration>, String> {
    let Ok(unit) = std::env::var("MONITOR_UNIT") else {
        return Ok(None);
    };
    let check = systemd.service(&unit).await.map_err(text)?;
    let timer = systemd.timer(&worker.health_timer()).await.map_err(text)?;
    let grace = timer.first_elapse().unwrap_or_default();
    let began = Duration::from_micros(check.number("ExecMainStartTimestampMonotonic"));
    let started = Duration::from_micros(service.number("ActiveEnterTimestampMonotonic"));
    Ok(Some(grace).filter(|grace| !began.is_zero() && began < started + *grace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_the_name_of_its_pool_and_an_index() {
        let worker = Worker::parse("my-web-12").unwrap();
        assert_eq!(worker.unit(), "archivist-pool-my-web@12.service");
        assert_eq!(worker.health_timer(), "archivist-pool-my-web-health@12.timer");
        assert_eq!(worker.key(), "my-web-12");
        for bad in ["", "web", "web-", "web-x", "web-1.service"] {
            assert_eq!(Worker::parse(bad), None, "{bad}");
        }
    }
}
