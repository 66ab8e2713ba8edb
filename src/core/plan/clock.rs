//! Whether the wall clock can be believed. Deletion by age relies on it, and a clock that is a year
//! wrong makes every page old.

use crate::model::Time;
use crate::text::human_span;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Difference between the wall clock and what is expected of it above which it is doubted.
pub const CLOCK_STEP_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long a machine may have been switched off without a doubt.
const OFF_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a believed reading is recorded.
const RECORD_EVERY: Duration = Duration::from_secs(3600);
/// Without a reading for this time, pages that became due meanwhile are counted before any is deleted.
const GAP_MIN: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    pub wall: Time,
    pub boot: String,
    /// CLOCK_BOOTTIME, in milliseconds.
    pub machine: i64,
}

/// Why the wall clock is not believed, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockDoubt {
    /// The first reading that was not believed.
    pub since: ClockReading,
    /// For users.
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    /// The last reading that was believed.
    pub last: Option<ClockReading>,
    /// Set while the clock is not believed.
    pub doubt: Option<ClockDoubt>,
    /// Number of doubts so far. Pages that are visited during one have its number.
    pub doubts: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockChange {
    pub state: ClockState,
    /// Much may have become due at once: time passed without a reading, or the clock is believed again.
    pub has_gap: bool,
    /// The times that were written during the doubt are right.
    pub confirms_doubt: bool,
}

fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Returns why a reading does not follow from an earlier one, if so.
fn contradiction(earlier: &ClockReading, now: &ClockReading) -> Option<String> {
    let step = milliseconds(CLOCK_STEP_MAX);
    let span = |millis: i64| human_span(Duration::from_millis(millis.unsigned_abs()));
    let passed = now.wall.0.saturating_sub(earlier.wall.0);
    let (ran, off) = if now.boot == earlier.boot {
        (now.machine.saturating_sub(earlier.machine), 0)
    } else {
        (now.machine, milliseconds(OFF_MAX))
    };
    // Neither clock runs backwards within a boot.
    let behind = ran.saturating_sub(passed).max(passed.min(0).saturating_neg());
    if ran < -step || behind > step {
        let behind = behind.max(ran.saturating_neg());
        return Some(format!(
            "the clock is {} behind what was expected: it shows {}",
            span(behind),
            now.wall
        ));
    }
    let ahead = passed.saturating_sub(ran).saturating_sub(off);
    (ahead > step).then(|| {
        format!(
            "the clock is {} ahead of what was expected: it shows {}",
            span(ahead.saturating_add(off)),
            now.wall
        )
    })
}

impl ClockState {
    /// Whether a reading follows from the last one that was believed.
    pub fn expects(&self, now: &ClockReading) -> bool {
        self.last.as_ref().is_none_or(|last| contradiction(last, now).is_none())
    }

    /// Returns what follows from a reading; `None` if nothing must be recorded. `is_synchronized`: a
    /// time server confirms the wall clock.
    pub fn observe(&self, now: ClockReading, is_synchronized: bool) -> Option<ClockChange> {
        let Some(last) = &self.last else {
            return Some(self.believed(now));
        };
        match contradiction(last, &now) {
            Some(_) if is_synchronized => Some(self.believed(now)),
            Some(why) => {
                let continues = |doubt: &ClockDoubt| contradiction(&doubt.since, &now).is_none();
                if self.doubt.as_ref().is_some_and(continues) {
                    return None;
                }
                let state = ClockState {
                    last: self.last.clone(),
                    doubt: Some(ClockDoubt { since: now, why }),
                    doubts: self.doubts.saturating_add(1),
                };
                Some(ClockChange { state, has_gap: false, confirms_doubt: false })
            }
            None => {
                let passed = Duration::from_millis(now.wall.0.abs_diff(last.wall.0));
                let is_due =
                    self.doubt.is_some() || passed >= RECORD_EVERY || now.boot != last.boot;
                is_due.then(|| ClockChange {
                    has_gap: self.doubt.is_some() || passed >= GAP_MIN,
                    confirms_doubt: false,
                    ..self.believed(now)
                })
            }
        }
    }

    /// Returns what follows when a time server or an administrator confirms the clock.
    pub fn believed(&self, now: ClockReading) -> ClockChange {
        let doubt = self.doubt.as_ref();
        ClockChange {
            confirms_doubt: doubt.is_some_and(|doubt| contradiction(&doubt.since, &now).is_none()),
            has_gap: true,
            state: ClockState { last: Some(now), doubt: None, doubts: self.doubts },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    fn reading(boot: &str, wall: i64, machine: i64) -> ClockReading {
        ClockReading { wall: Time(wall), boot: boot.to_owned(), machine }
    }

    fn known(last: ClockReading) -> ClockState {
        ClockState::default().believed(last).state
    }

    #[test]
    fn running_clock_is_recorded_every_hour() {
        let state = known(reading("a", YEAR, HOUR));
        let observe = |wall, machine| state.observe(reading("a", wall, machine), false);
        assert_eq!(observe(YEAR + HOUR / 2, HOUR + HOUR / 2), None);
        let change = observe(YEAR + 2 * HOUR, 3 * HOUR).unwrap();
        assert!(!change.has_gap && change.state.doubt.is_none());
        // The machine slept, or nothing happened.
        assert!(observe(YEAR + 9 * DAY, HOUR + 9 * DAY).unwrap().has_gap);
    }

    #[test]
    fn step_of_the_clock_is_doubted_until_it_is_undone() {
        for by in [-YEAR, YEAR, 2 * DAY, -2 * DAY] {
            let state = known(reading("a", 2 * YEAR, YEAR));
            let change = state.observe(reading("a", 2 * YEAR + by, YEAR + 9), false).unwrap();
            assert!(change.state.doubt.is_some() && !change.has_gap, "{by}");
            let doubted = change.state;
            assert_eq!(doubted.observe(reading("a", 2 * YEAR + by + DAY, YEAR + DAY), false), None);
            let back = doubted.observe(reading("a", 2 * YEAR + 20, YEAR + 20), false).unwrap();
            assert!(back.state.doubt.is_none() && back.has_gap && !back.confirms_doubt, "{by}");
        }
    }

    /// As a program sees them whose clocks are all set, or a machine whose clock runs backwards.
    #[test]
    fn clocks_that_run_backwards_are_doubted() {
        let state = known(reading("a", 3 * YEAR, 2 * YEAR));
        let change = state.observe(reading("a", 2 * YEAR, YEAR), false).unwrap();
        assert!(change.state.doubt.is_some());
        let ahead = state.observe(reading("a", 4 * YEAR, 3 * YEAR), false).unwrap();
        assert!(ahead.has_gap && ahead.state.doubt.is_none());
    }

    #[test]
    fn machine_may_have_been_off_for_a_month() {
        let state = known(reading("a", YEAR, DAY));
        let after = |off: i64| state.observe(reading("b", YEAR + off + 9, 9), false).unwrap();
        assert!(!after(HOUR).has_gap);
        assert!(after(20 * DAY).has_gap && after(20 * DAY).state.doubt.is_none());
        assert!(after(60 * DAY).state.doubt.is_some());
        assert!(after(-3 * DAY).state.doubt.is_some());
    }

    #[test]
    fn time_server_or_administrator_ends_a_doubt() {
        let state = known(reading("a", YEAR, DAY));
        let doubted = state.observe(reading("b", YEAR + 90 * DAY, 9), false).unwrap().state;
        let confirmed = doubted.observe(reading("b", YEAR + 91 * DAY, DAY), true).unwrap();
        assert!(confirmed.state.doubt.is_none() && confirmed.confirms_doubt && confirmed.has_gap);
        let corrected = doubted.observe(reading("b", YEAR + 40 * DAY, DAY), true).unwrap();
        assert!(!corrected.confirms_doubt, "the times were wrong");
        assert!(doubted.believed(reading("b", YEAR + 90 * DAY, 10)).confirms_doubt);
        assert_eq!((doubted.doubts, corrected.state.doubts), (1, 1));
    }
}
