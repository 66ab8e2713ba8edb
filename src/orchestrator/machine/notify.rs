//! Notifications for systemd: readiness, the watchdog's beats and the STATUS= line.

use archivist_shared::bus::documents::report::Counts;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use sd_notify::NotifyState;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// `crawl=3q/1w snapshot=20q/8w hook=11w`: queued items and working units by kind, of which `queued` has those
/// that wait and `units` those that work. No unit runs while it says idle.
pub fn line(crawls: &Counts, snapshots: &Counts, queued: &Counts, units: &Counts) -> String {
    let number = |counts: &Counts, of: &str| counts.get(of).copied().unwrap_or(0);
    let mut parts = Vec::new();
    for (kind, counts) in [("crawl", crawls), ("snapshot", snapshots)] {
        let (queued, working) = (number(counts, "queued"), number(units, kind));
        if queued + working > 0 {
            parts.push(format!("{kind}={queued}q/{working}w"));
        }
    }
    let others: BTreeSet<&str> = queued.keys().chain(units.keys()).map(String::as_str).collect();
    for kind in others.into_iter().filter(|kind| !["crawl", "snapshot"].contains(kind)) {
        let working = number(units, kind);
        parts.push(match number(queued, kind) {
            0 => format!("{kind}={working}w"),
            queued => format!("{kind}={queued}q/{working}w"),
        });
    }
    if parts.is_empty() { "idle, waiting for work".to_owned() } else { parts.join(" ") }
}

/// A timer of the kernel, which alone wakes a process: one of tokio wakes it several times before its time.
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// When the watchdog expects a beat.
pub struct Beats(Option<AsyncFd<Timer>>);

impl Beats {
    /// Beats at half the period of the watchdog; none if this process has no watchdog.
    ///
    /// # Errors
    /// If the kernel gives no timer.
    pub fn of_watchdog() -> io::Result<Beats> {
        Beats::every(sd_notify::watchdog_enabled().map(|limit| limit / 2))
    }

    pub fn every(span: Option<Duration>) -> io::Result<Beats> {
        let Some(span) = span else {
            return Ok(Beats(None));
        };
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        timer.set(Expiration::Interval(span.into()), TimerSetTimeFlags::empty())?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe; the descriptor is that of the timer inside"
        )]
        let timer = AsyncFd::with_interest(Timer(timer), Interest::READABLE)?;
        Ok(Beats(Some(timer)))
    }

    pub fn are_expected(&self) -> bool {
        self.0.is_some()
    }

    /// Returns at the time of the next beat.
    pub async fn due(&self) {
        while let Some(timer) = &self.0
            && let Ok(mut ready) = timer.readable().await
        {
            // An earlier call may have read the expiration.
            if let Ok(Ok(())) = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
                return;
            }
        }
        std::future::pending().await
    }
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
        let none = Counts::new();
        let units = Counts::from([("crawl".to_owned(), 1), ("snapshot".to_owned(), 8)]);
        assert_eq!(line(&count(3), &count(20), &none, &units), "crawl=3q/1w snapshot=20q/8w");
        assert_eq!(line(&count(0), &none, &none, &none), "idle, waiting for work");
        let units = Counts::from([("verify".to_owned(), 1), ("hook".to_owned(), 2)]);
        let queued = Counts::from([("check".to_owned(), 3)]);
        assert_eq!(line(&count(0), &none, &queued, &units), "check=3q/0w hook=2w verify=1w");
    }
}
