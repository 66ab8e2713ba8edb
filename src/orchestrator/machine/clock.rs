//! Two clocks: the wall clock, which is in the database and which users set, and the clock of the
//! machine, which only runs forward. When the wall clock is set, what is due keeps its distance.

use archivist_config::Scope;
use archivist_core::model::Time;
use archivist_shared::systemd::is_clock_synchronized;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The wall clock's time.
pub fn now() -> Time {
    jiff::Timestamp::now().into()
}

/// A random number in 0..1, to spread delays.
pub fn jitter() -> f64 {
    let mut bytes = [0; 2];
    let _ = getrandom::fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / 65536.0
}

/// Smaller steps, in milliseconds, are ignored: the clock is only slewed.
const STEP_MIN_MS: i64 = 1000;

/// How long the answer counts, in milliseconds, that no time server has set the clock. Each question starts
/// timedated, and a time server that sets the clock is noticed by the step.
const UNSYNCHRONIZED_MS: i64 = 600_000;
/// Time limit of timedated.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What is known of the clocks.
#[derive(Default)]
pub struct Clock {
    /// How far the wall clock is ahead, in milliseconds; none before the first reading.
    ahead: Option<i64>,
    /// When it was asked whether a time server has set the clock, and the answer; none since a step.
    synchronized: Option<(i64, bool)>,
}

impl Clock {
    /// Returns whether a time server has set the wall clock. `ask` is called at first, when the clock was
    /// set since, and again a while after it said no.
    pub async fn is_synchronized(&mut self, machine: i64, ask: impl AsyncFn() -> bool) -> bool {
        match self.synchronized {
            Some((at, known)) if known || machine - at < UNSYNCHRONIZED_MS => known,
            _ => {
                let answer = ask().await;
                self.synchronized = Some((machine, answer));
                answer
            }
        }
    }

    /// Takes both times, in milliseconds, and returns by how much the wall clock was set.
    pub fn observe(&mut self, wall: Time, machine: i64) -> Option<i64> {
        let ahead = wall.0.saturating_sub(machine);
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.abs() < STEP_MIN_MS {
            return None;
        }
        self.ahead = Some(ahead);
        self.synchronized = None;
        Some(by)
    }
}

/// File that systemd-timesyncd creates once a time server has set the clock (systemd-timesyncd(8)).
const SYNCHRONIZED: &str = "run/systemd/timesync/synchronized";

/// Whether a time server has set the clock, as timedated says. If it does not answer, as without a system
/// bus, whether systemd-timesyncd says so.
pub async fn is_synchronized(scope: &Scope) -> bool {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, is_clock_synchronized()).await;
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => scope.root.join(SYNCHRONIZED).exists(),
    }
}

/// Milliseconds since the machine was switched on, those asleep included: a machine that wakes up
/// has not had its clock set.
pub fn machine() -> i64 {
    match clock_gettime(ClockId::CLOCK_BOOTTIME) {
        Ok(time) => time.tv_sec() * 1000 + time.tv_nsec() / 1_000_000,
        Err(error) => unreachable!("clock_gettime(CLOCK_BOOTTIME): {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn slewing_is_not_a_step() {
        let mut clock = Clock::default();
        assert_eq!(clock.observe(Time(5 * DAY), 100), None);
        assert_eq!(clock.observe(Time(6 * DAY), 100 + DAY), None);
        assert_eq!(clock.observe(Time(6 * DAY + 900), 100 + DAY), None);
    }

    #[test]
    fn step_is_reported_once_and_slewing_adds_up() {
        let mut clock = Clock::default();
        clock.observe(Time(5 * DAY), 0);
        assert_eq!(clock.observe(Time(4 * DAY + 7), 7), Some(-DAY));
        assert_eq!(clock.observe(Time(4 * DAY + 8), 8), None);
        assert_eq!(clock.observe(Time(5 * DAY + 9), 9), Some(DAY));
        assert_eq!(clock.observe(Time(5 * DAY + 609), 9), None);
        assert_eq!(clock.observe(Time(5 * DAY + 1209), 9), Some(1200));
    }

    #[tokio::test]
    async fn time_server_is_asked_for_when_the_clock_is_set() {
        let mut clock = Clock::default();
        clock.observe(Time(0), 0);
        assert!(clock.is_synchronized(0, async || true).await, "at first");
        assert!(clock.is_synchronized(DAY, async || false).await);
        clock.observe(Time(5 * DAY), DAY);
        assert!(!clock.is_synchronized(DAY, async || false).await, "set by hand");
        assert!(!clock.is_synchronized(DAY + 1, async || true).await);
        assert!(clock.is_synchronized(DAY + UNSYNCHRONIZED_MS, async || true).await);
        clock.observe(Time(2 * DAY), 2 * DAY);
        assert!(!clock.is_synchronized(2 * DAY, async || false).await, "set once more");
    }

    #[test]
    fn machine_clock_is_monotonic() {
        let before = machine();
        assert!(before > 0 && machine() >= before);
    }
}
