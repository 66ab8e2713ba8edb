//! Two clocks: the wall's, whose times the database has and which people set, and the machine's own,
//! which only ever goes on. What is due at a time of the first stays as far away as it was when that
//! one is set.

use archivist_core::model::Time;
use nix::time::{ClockId, clock_gettime};

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

/// Less than this, in milliseconds, is not made up for: the clock is only made to go faster or slower.
const STEP_MIN_MS: i64 = 1000;

/// How far the wall clock is ahead, in milliseconds; none before it was looked at.
#[derive(Default)]
pub struct Clock {
    ahead: Option<i64>,
}

impl Clock {
    /// Takes both times, in milliseconds. Answers by how much the wall clock was set since the last time.
    pub fn observe(&mut self, wall: Time, machine: i64) -> Option<i64> {
        let ahead = wall.0.saturating_sub(machine);
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.abs() < STEP_MIN_MS {
            return None;
        }
        self.ahead = Some(ahead);
        Some(by)
    }
}

/// Milliseconds since the machine was switched on, those asleep included: a machine that wakes up has
/// not had its clock set.
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
    fn what_goes_on_with_time_is_not_set() {
        let mut clock = Clock::default();
        assert_eq!(clock.observe(Time(5 * DAY), 100), None);
        assert_eq!(clock.observe(Time(6 * DAY), 100 + DAY), None);
        assert_eq!(clock.observe(Time(6 * DAY + 900), 100 + DAY), None);
    }

    #[test]
    fn a_step_is_told_once_and_slewing_adds_up() {
        let mut clock = Clock::default();
        clock.observe(Time(5 * DAY), 0);
        assert_eq!(clock.observe(Time(4 * DAY + 7), 7), Some(-DAY));
        assert_eq!(clock.observe(Time(4 * DAY + 8), 8), None);
        assert_eq!(clock.observe(Time(5 * DAY + 9), 9), Some(DAY));
        assert_eq!(clock.observe(Time(5 * DAY + 609), 9), None);
        assert_eq!(clock.observe(Time(5 * DAY + 1209), 9), Some(1200));
    }

    #[test]
    fn the_machine_s_own_clock_goes_on() {
        let before = machine();
        assert!(before > 0 && machine() >= before);
    }
}
