//! Timers of watches. Only systemd knows when they elapse.

use crate::client::exit::Failure;
use crate::client::server::systemctl;
use archivist_config::Scope;
use archivist_config::declare::watch::Schedule;
use archivist_core::model::{CheckKind, Time};
use archivist_generator::watch::{service_name, timer_name};
use archivist_shared::bus::documents::watches::Watch;
use archivist_shared::systemd::{Job, ManagerError, Properties, SystemdClient};
use nix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};

pub type Next = BTreeMap<(String, CheckKind), Time>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    pub next: Next,
    started: BTreeSet<(String, CheckKind)>,
}

impl Timers {
    /// Returns the timers of a watch that its file schedules and that are not started: systemd does
    /// not start the units of a new file by itself before the next boot. A file with problems has
    /// no timers.
    pub fn not_started(&self, watch: &Watch) -> Vec<String> {
        if !watch.problems.is_empty() {
            return Vec::new();
        }
        let off = Schedule::off().words;
        let scheduled = watch.schedules.iter().filter(|(_, words)| **words != off);
        scheduled
            .map(|(kind, _)| (watch.name.clone(), *kind))
            .filter(|timer| !self.started.contains(timer))
            .map(|(name, kind)| timer_name(&name, kind))
            .collect()
    }

    /// Returns a sentence about the timers of a watch that are not started, with the command that
    /// starts them.
    pub fn problem(&self, watch: &Watch, scope: &Scope) -> Option<String> {
        let timers = self.not_started(watch);
        let command = start_command(&timers, scope)?;
        Some(format!("{}: timers not started; run: {command}", watch.name))
    }
}

/// Returns the command that starts timers; a file that systemd has not read yet has none before the
/// reload.
pub fn start_command(timers: &[String], scope: &Scope) -> Option<String> {
    let systemctl = systemctl(scope);
    (!timers.is_empty())
        .then(|| format!("{systemctl} daemon-reload && {systemctl} start {}", timers.join(" ")))
}

pub async fn connect(scope: &Scope) -> Result<SystemdClient, Failure> {
    SystemdClient::subscribed(scope.user).await.map_err(failed)
}

fn failed(error: ManagerError) -> Failure {
    Failure::failed(error.to_string())
}

/// Returns the timers of all watches; `None` if systemd does not answer.
pub async fn all(scope: &Scope) -> Option<Timers> {
    ask(&connect(scope).await.ok()?).await.ok()
}

async fn ask(systemd: &SystemdClient) -> Result<Timers, ManagerError> {
    let mut timers = Timers::default();
    let patterns = ["archivist-watch-*.timer".to_owned()];
    for unit in systemd.loaded(&patterns).await? {
        let Some(key) = key(&unit.name) else { continue };
        if unit.active_state != "active" {
            continue;
        }
        let timer = systemd.timer(&unit.name).await?;
        if let Some(time) = elapses(&timer) {
            timers.next.insert(key.clone(), time);
        }
        timers.started.insert(key);
    }
    Ok(timers)
}

fn key(unit: &str) -> Option<(String, CheckKind)> {
    let stem = unit.strip_prefix("archivist-watch-")?.strip_suffix(".timer")?;
    let (name, kind) = stem.rsplit_once('-')?;
    Some((name.to_owned(), CheckKind::parse(kind)?))
}

/// Returns when a timer elapses next, by the calendar or the monotonic clock; the earlier one if it
/// has both.
fn elapses(timer: &Properties) -> Option<Time> {
    let some = |name: &str| Some(timer.number(name)).filter(|usec| *usec > 0);
    let monotonic = some("NextElapseUSecMonotonic").and_then(|at| {
        let (now, real) = (usec(ClockId::CLOCK_MONOTONIC)?, usec(ClockId::CLOCK_REALTIME)?);
        Some(real + at.saturating_sub(now))
    });
    let soonest = some("NextElapseUSecRealtime").into_iter().chain(monotonic).min()?;
    Some(Time(i64::try_from(soonest / 1000).ok()?))
}

fn usec(clock: ClockId) -> Option<u64> {
    let now = clock_gettime(clock).ok()?;
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec()), u64::try_from(now.tv_nsec()));
    Some(seconds.ok()? * 1_000_000 + nanoseconds.ok()? / 1000)
}

/// Makes systemd load the timers of a watch again, and starts them. Returns the first timer that
/// systemd cannot load; then none is started.
pub async fn start(
    systemd: &SystemdClient,
    name: &str,
    kinds: &[CheckKind],
) -> Result<Option<CheckKind>, Failure> {
    systemd.reload().await.map_err(failed)?;
    let mut timers = Vec::new();
    for kind in kinds {
        let timer = timer_name(name, *kind);
        let state = systemd.timer(&timer).await.map_err(failed)?;
        if state.text("LoadState") == "bad-setting" {
            return Ok(Some(*kind));
        }
        timers.push(timer);
    }
    // Timers of a replaced watch still run with their old times.
    let undone = systemd.run(Job::Restart, &timers, true).await;
    match undone.map_err(failed)?.into_iter().next() {
        None => Ok(None),
        Some(undone) => Err(Failure::failed(format!(
            "failed to start {}: {}; see: systemctl status {}",
            undone.unit, undone.result, undone.unit
        ))),
    }
}

/// Stops the timers of some kinds of a watch and the units that they started, and makes systemd
/// forget when they elapsed. A timer that does not exist is stopped already.
pub async fn stop(
    systemd: &SystemdClient,
    name: &str,
    kinds: impl IntoIterator<Item = CheckKind>,
) -> Result<(), Failure> {
    let (timers, services): (Vec<String>, Vec<String>) =
        kinds.into_iter().map(|kind| (timer_name(name, kind), service_name(name, kind))).unzip();
    let units = [timers.as_slice(), &services].concat();
    systemd.run(Job::Stop, &units, true).await.map_err(failed)?;
    for timer in &timers {
        systemd.clean(timer).await.map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_watches_have_a_watch_and_a_kind() {
        let own = ("my-site".to_owned(), CheckKind::Status);
        assert_eq!(key("archivist-watch-my-site-status.timer"), Some(own));
        for other in
            ["other.timer", "archivist-watch-my-site-nosuch.timer", "archivist-watch-x.timer"]
        {
            assert_eq!(key(other), None, "{other}");
        }
        assert_eq!(key(&timer_name("a.b-c", CheckKind::Crawl)).unwrap().0, "a.b-c");
    }

    #[test]
    fn scheduled_kinds_without_a_timer_are_not_started() {
        let mut watch = Watch {
            name: "site".to_owned(),
            label: String::new(),
            notes: Vec::new(),
            file: "/etc/archivist/site.watch".to_owned(),
            problems: Vec::new(),
            headers: Vec::new(),
            left_out: Vec::new(),
            schedules: [
                (CheckKind::Status, "every 3min".to_owned()),
                (CheckKind::Crawl, "weekly".to_owned()),
                (CheckKind::Archive, "no".to_owned()),
            ]
            .into(),
            retention_s: BTreeMap::new(),
            sites: Vec::new(),
        };
        let timers = Timers {
            started: [("site".to_owned(), CheckKind::Status)].into(),
            ..Timers::default()
        };
        assert_eq!(
            timers.problem(&watch, &Scope::system("/")).unwrap(),
            "site: timers not started; run: systemctl daemon-reload && systemctl start \
             archivist-watch-site-crawl.timer"
        );
        watch.problems.push("site.watch:3: no such key".to_owned());
        assert_eq!(timers.problem(&watch, &Scope::system("/")), None);
    }

    #[test]
    fn a_timer_without_a_time_has_none() {
        assert_eq!(elapses(&Properties::default()), None);
    }
}
