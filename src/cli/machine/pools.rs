//! The declared pools, and the state of their workers as systemd reports it.

use crate::client::exit::Failure;
use crate::display::style;
use archivist_config::Scope;
use archivist_config::declare::files;
use archivist_core::model::Time;
use archivist_core::text::{Problem, human_span};
use archivist_generator::Pool;
use archivist_pools::health::{fault_path, restart_reason};
use archivist_shared::systemd::{ErrorKind, ManagerError, Properties, SystemdClient};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

/// Time after the start of a worker within which systemd starts the timer of its health check.
const TIMER_START_MAX: Duration = Duration::from_secs(2);
/// How much earlier than the clock the kernel may set the time of a file: one tick at 100 Hz.
const MTIME_LAG: Duration = Duration::from_millis(10);

/// Lines of the log of a check that are read.
const LOG_LINES: u32 = 100;
/// How Python begins what it prints of an exception that nothing caught, before it exits with status 1.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// Returns the last lines that a unit logged before this time; empty if the journal cannot be read.
fn log_before(unit: &str, time: Time, scope: &Scope) -> String {
    let mut journalctl = Command::new("journalctl");
    journalctl.args(["--quiet", "--output=cat"]).stdin(Stdio::null()).stderr(Stdio::null());
    journalctl.arg(format!("--until=@{}", time.0.div_euclid(1000) + 1));
    journalctl.arg(format!("--lines={LOG_LINES}"));
    let of = if scope.user { "--user-unit" } else { "--unit" };
    let said = journalctl.arg(format!("{of}={unit}")).output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
}

/// Returns the exception of a traceback since the last start of a unit.
fn traceback(log: &str) -> Option<&str> {
    let (_, last) = log.rsplit_once("\nStarting ").unwrap_or(("", log));
    let (_, after) = last.rsplit_once(TRACEBACK)?;
    let mut lines = after.lines().filter(|line| !line.is_empty());
    lines.find(|line| !line.starts_with(' '))
}

/// Returns all declared pools, and the problems of their files.
pub fn declared(scope: &Scope) -> (Vec<Pool>, Vec<Problem>) {
    let (declarations, problems) = files::read(scope);
    (Pool::all(&declarations), problems)
}

/// Returns all pools with their workers; an instance has none.
pub async fn reports(scope: &Scope) -> Result<Vec<PoolReport>, Failure> {
    let pools = match scope.instance {
        Some(_) => Vec::new(),
        None => declared(scope).0,
    };
    if pools.is_empty() {
        return Ok(Vec::new());
    }
    let systemd = connect(scope).await?;
    let mut reports = Vec::new();
    for pool in &pools {
        reports.push(of(pool, &systemd, scope, style::now()).await?);
    }
    Ok(reports)
}

pub async fn connect(scope: &Scope) -> Result<SystemdClient, Failure> {
    SystemdClient::subscribed(scope.user).await.map_err(failure)
}

/// Returns an error of systemd, with a hint if there is one.
pub fn failure(error: ManagerError) -> Failure {
    let denied = ["ccess denied", "ermission denied", "nteractive authentication"];
    let hint = if denied.iter().any(|words| error.why.contains(words)) {
        "; use sudo, or --user for your own service manager"
    } else if error.kind == ErrorKind::NoSuchUnit {
        "; 'systemctl daemon-reload' creates the units of new files, 'archivist generate --dry-run' prints problems of files"
    } else {
        ""
    };
    Failure::failed(format!("{error}{hint}"))
}

#[derive(Debug, Serialize)]
pub struct PoolReport {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub file: String,
    pub declared: u32,
    pub running: usize,
    pub restarts: u64,
    pub pids: Vec<u64>,
    pub workers: Vec<Worker>,
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Worker {
    pub index: u32,
    pub name: String,
    pub unit: String,
    pub state: State,
    pub alive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_sec: Option<u64>,
    /// Start time, not counting automatic restarts.
    pub restarts: u64,
    /// Why a health check caused the newest restart, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_beat: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Running,
    Starting,
    /// Failed, and waits for its restart.
    Restarting,
    Stopping,
    Stopped,
    /// Failed, and will not be restarted.
    Failed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Starting => "starting",
            State::Restarting => "restarting",
            State::Stopping => "stopping",
            State::Stopped => "stopped",
            State::Failed => "failed",
        }
    }

    fn of(service: &Properties) -> State {
        let (active, sub) = (service.text("ActiveState"), service.text("SubState"));
        match (active.as_str(), sub.as_str()) {
            ("active" | "reloading" | "refreshing", _) => State::Running,
            ("activating", "auto-restart" | "auto-restart-queued") => State::Restarting,
            ("activating", _) => State::Starting,
            // Will be restarted too, unless it is being stopped.
            ("deactivating", _) => State::Stopping,
            ("failed", _) => State::Failed,
            _ => State::Stopped,
        }
    }
}

/// Queries systemd for all workers of `pool`: declared ones, and others that still run.
pub async fn of(
    pool: &Pool,
    systemd: &SystemdClient,
    scope: &Scope,
    now: Time,
) -> Result<PoolReport, Failure> {
    let loaded = systemd.loaded(&[pool.pattern()]).await.map_err(failure)?;
    let left = loaded
        .iter()
        .filter(|unit| unit.active_state != "inactive")
        .filter_map(|unit| pool.index_of(&unit.name));
    let indices: BTreeSet<u32> = (0..pool.workers).chain(left).collect();
    let mut workers = Vec::new();
    for index in indices {
        let unit = pool.worker(index);
        let service = systemd.service(&unit).await.map_err(failure)?;
        let mut worker = worker(pool, index, unit, &service, now);
        if pool.checked && worker.alive {
            let fault = check_problem(pool, &worker, systemd, scope, now).await?;
            worker.problem = fault.or(worker.problem);
            let key = format!("{}-{index}", pool.name);
            let since = worker.since.unwrap_or(now);
            let reason = restart_reason(&key, worker.restarts, since, scope);
            worker.restart_reason = reason.map(|why| {
                let log = log_before(&pool.health_service(index), since, scope);
                traceback(&log).map_or(why.clone(), |error| {
                    format!("{why}: exit status 1 of a traceback, so the check itself may have failed: {error}")
                })
            });
        }
        workers.push(worker);
    }
    let mut problems: Vec<_> = pool.problems.iter().map(ToString::to_string).collect();
    let is_fatal = pool.problems.iter().any(|problem| problem.fatal);
    if !is_fatal && pool.workers > 0 {
        let any = systemd.service(&pool.worker(0)).await.map_err(failure)?;
        if any.text("LoadState") == "not-found" {
            problems.push(format!(
                "{}: systemd has not read this file yet; run 'systemctl daemon-reload'",
                pool.path.display()
            ));
        }
    }
    Ok(PoolReport {
        name: pool.name.clone(),
        description: pool.description.clone(),
        file: pool.path.display().to_string(),
        declared: pool.workers,
        running: workers.iter().filter(|worker| worker.alive).count(),
        restarts: workers.iter().map(|worker| worker.restarts).sum(),
        pids: workers.iter().filter_map(|worker| worker.pid).collect(),
        workers,
        problems,
    })
}

fn time(service: &Properties, property: &str) -> Option<Time> {
    let usec = service.number(property);
    let msec = i64::try_from(usec / 1000).ok()?;
    (msec != 0).then_some(Time(msec))
}

fn worker(pool: &Pool, index: u32, unit: String, service: &Properties, now: Time) -> Worker {
    let state = State::of(service);
    let alive = state == State::Running;
    let since = alive.then(|| time(service, "ExecMainStartTimestamp")).flatten();
    let pid = Some(service.number("MainPID")).filter(|pid| *pid != 0);
    let last_beat = time(service, "WatchdogTimestamp").filter(|_| alive);
    let uptime = since.map(|since| now.until(since));
    Worker {
        index,
        name: name_of(service, index),
        unit,
        state,
        alive,
        pid,
        since,
        uptime_sec: uptime.map(|uptime| uptime.as_secs()),
        restarts: service.number("NRestarts"),
        restart_reason: None,
        last_beat,
        problem: problem(pool, state, service, last_beat, uptime.unwrap_or_default()),
    }
}

/// Returns why no health check of a running worker is executed: its timer does not run, or the
/// newest check that has ended was not executed.
async fn check_problem(
    pool: &Pool,
    worker: &Worker,
    systemd: &SystemdClient,
    scope: &Scope,
    now: Time,
) -> Result<Option<String>, Failure> {
    let name = pool.health_timer(worker.index);
    let timer = systemd.timer(&name).await.map_err(failure)?;
    let since = worker.since.unwrap_or(now);
    if timer.text("ActiveState") != "active" {
        // systemd starts it right after the worker.
        let is_late = now.until(since) > TIMER_START_MAX;
        return Ok(
            is_late.then(|| format!("the health check does not run; see: systemctl status {name}"))
        );
    }
    let path = fault_path(&format!("{}-{}", pool.name, worker.index), scope);
    // What the last check that ended left stays until the next one has ended.
    let check = systemd.service(&pool.health_service(worker.index)).await.map_err(failure)?;
    let last_end = time(&check, "InactiveEnterTimestamp").unwrap_or(since);
    let Some(fault) = fault_since(&path, since.max(last_end)) else {
        return Ok(None);
    };
    Ok(Some(format!(
        "the health check says nothing about this worker, so it is not checked: {fault}; see \
         HealthCheck= in {}",
        pool.path.display()
    )))
}

/// Returns the text of a file that was written after `since`.
fn fault_since(path: &Path, since: Time) -> Option<String> {
    let modified = path.metadata().ok()?.modified().ok()?;
    let written = modified.duration_since(UNIX_EPOCH).ok()?;
    let is_current = Time(0).after(written + MTIME_LAG) >= since;
    let text = std::fs::read_to_string(path).ok();
    text.filter(|_| is_current)
}

/// Name in the environment of the worker.
fn name_of(service: &Properties, index: u32) -> String {
    let environment = service.list("Environment");
    let name = environment.iter().find_map(|pair| pair.strip_prefix("ARCHIVIST_WORKER_NAME="));
    name.map_or_else(|| format!("worker-{index}"), str::to_owned)
}

fn problem(
    pool: &Pool,
    state: State,
    service: &Properties,
    last_beat: Option<Time>,
    uptime: Duration,
) -> Option<String> {
    let logs = format!("see: archivist pool logs {}", pool.name);
    match state {
        State::Failed => {
            let why = match service.text("Restart").as_str() {
                "no" => "because of Monitor=no",
                _ => "because it failed right after every start",
            };
            Some(format!(
                "failed ({}) and does not restart, {why}; {logs}; 'archivist pool start {}' starts it again",
                service.text("Result"),
                pool.name
            ))
        }
        State::Restarting => Some(match service.text("Result").as_str() {
            // Nothing of the worker failed, such as after its health check has ended it.
            "success" => "has ended, restarts soon".to_owned(),
            result => format!("failed ({result}), restarts soon"),
        }),
        State::Running => {
            let limit = pool.heartbeat?;
            let watched = service.number("WatchdogUSec") != 0;
            match last_beat {
                None if uptime > limit => Some(format!(
                    "no heartbeat in {}, so systemd cannot notice if it hangs: its program must run \
                     'archivist heartbeat' at least every {}, or omit HeartbeatSec=",
                    human_span(uptime),
                    human_span(limit)
                )),
                Some(_) if !watched => Some(
                    "sends heartbeats without their interval: its first heartbeat must send \
                     WATCHDOG_USEC=$ARCHIVIST_HEARTBEAT_USEC, as 'archivist heartbeat' does"
                        .to_owned(),
                ),
                _ => None,
            }
        }
        State::Starting | State::Stopping | State::Stopped => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_that_failed_itself_differs_from_an_unhealthy_worker() {
        let failed = "Starting a check...\nTraceback (most recent call last):\n  File \"x\", line 1, in f\n    \
                      f()\nValueError: no port\na.service: Main process exited\n";
        assert_eq!(traceback(failed), Some("ValueError: no port"));
        assert_eq!(traceback(&format!("{failed}Starting a check...\nno answer\n")), None);
        assert_eq!(traceback("no answer\n"), None);
    }
}
