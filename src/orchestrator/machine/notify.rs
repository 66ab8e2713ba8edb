//! Notifications for systemd: readiness, the watchdog's beats and the STATUS= line.

use archivist_shared::bus::documents::report::{Counts, Run};
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Running units by kind.
pub type Units = BTreeMap<String, u64>;

pub fn units(running: &[Run]) -> Units {
    let mut units = Units::new();
    for run in running {
        *units.entry(run.kind.clone()).or_default() += 1;
    }
    units
}

/// `crawl=3q/1w snapshot=20q/8w hook=11w`: queued items and working units by kind.
pub fn line(crawls: &Counts, snapshots: &Counts, units: &Units, checks: (u64, u64)) -> String {
    let queued = |counts: &Counts| counts.get("queued").copied().unwrap_or(0);
    let working = |kind: &str| units.get(kind).copied().unwrap_or(0);
    let mut parts = Vec::new();
    for (kind, counts) in [("crawl", crawls), ("snapshot", snapshots)] {
        let (queued, working) = (queued(counts), working(kind));
        if queued + working > 0 {
            parts.push(format!("{kind}={queued}q/{working}w"));
        }
    }
    if working("hook") > 0 {
        parts.push(format!("hook={}w", working("hook")));
    }
    if checks != (0, 0) {
        parts.push(format!("check={}q/{}w", checks.0, checks.1));
    }
    if parts.is_empty() { "idle, waiting for work".to_owned() } else { parts.join(" ") }
}

pub fn ready() {
    send(&[NotifyState::Ready]);
}

/// Extends the time limit of the start.
pub fn starting(more: Duration) {
    let micros = u32::try_from(more.as_micros()).unwrap_or(u32::MAX);
    send(&[NotifyState::ExtendTimeoutUsec(micros)]);
}

pub fn status(line: &str) {
    send(&[NotifyState::Status(line)]);
}

/// Minimum interval of STATUS= lines: systemd sends a signal for every new line.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// The line that systemd has.
#[derive(Default)]
pub struct Status {
    told: String,
    at: Option<Instant>,
}

impl Status {
    /// Sends the line, or returns how long to wait if another was sent a moment ago.
    pub fn tell(&mut self, line: &str) -> Option<Duration> {
        if line == self.told {
            return None;
        }
        let elapsed = self.at.map(|at| at.elapsed());
        if let Some(elapsed) = elapsed.filter(|elapsed| *elapsed < STATUS_INTERVAL) {
            return Some(STATUS_INTERVAL.saturating_sub(elapsed));
        }
        status(line);
        self.told = line.to_owned();
        self.at = Some(Instant::now());
        None
    }
}

pub fn beat() {
    send(&[NotifyState::Watchdog]);
}

pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("failed to notify systemd: {error}, ignoring");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_are_rate_limited() {
        let mut status = Status::default();
        assert_eq!(status.tell("one"), None);
        assert_eq!(status.tell("one"), None);
        let wait = status.tell("two").expect("a wait");
        assert!(wait <= STATUS_INTERVAL && !wait.is_zero(), "{wait:?}");
        status.at = status.at.and_then(|at| at.checked_sub(STATUS_INTERVAL));
        assert_eq!(status.tell("two"), None);
        assert_eq!(status.told, "two");
    }

    #[test]
    fn status_line_counts_queued_and_running() {
        let count = |n| Counts::from([("queued".to_owned(), n)]);
        let units = Units::from([("crawl".to_owned(), 1), ("snapshot".to_owned(), 8)]);
        assert_eq!(line(&count(3), &count(20), &units, (0, 0)), "crawl=3q/1w snapshot=20q/8w");
        assert_eq!(
            line(&count(0), &Counts::new(), &Units::new(), (0, 0)),
            "idle, waiting for work"
        );
    }
}
