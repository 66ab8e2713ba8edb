//! Restarts of failed workers: after a growing delay, without end, unless a worker never stays up.

use crate::Context;
use crate::unit_file::UnitFile;
use archivist_config::declare::reader::Reader;
use archivist_core::text::exact_span;
use std::time::Duration;

pub const FIRST: Duration = Duration::from_secs(1);
pub const LONGEST: Duration = Duration::from_secs(10);

/// Restarts until the longest delay is reached.
const STEPS: u32 = 4;

/// Starts in a row after which systemd stops restarting a worker, if each lasted less than
/// [`SHORT_LIFE`] on average: such a worker does not start at all. A worker that lives longer is
/// restarted without end, however often it fails.
const BURST: u32 = 20;
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// First systemd with RestartSteps=.
const KNOWS_STEPS: u32 = 254;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarts {
    first: Duration,
    longest: Duration,
    /// Number of steps; 0 if this systemd has no growing delays, or if the delay does not grow.
    steps: u32,
}

impl Restarts {
    pub fn read(reader: &mut Reader<'_>, context: &Context) -> Restarts {
        let first = reader.span("RestartSec").unwrap_or(FIRST);
        let longest = reader.span("RestartMaxSec");
        if let (Some(longest), Some(entry)) = (longest, reader.last("RestartMaxSec"))
            && longest < first
        {
            reader.refuse(
                entry,
                "RestartMaxSec= is shorter than RestartSec=; make it longer, or leave it out",
            );
        }
        let longest = longest.unwrap_or(LONGEST).max(first);
        let grows = context.systemd >= KNOWS_STEPS && !first.is_zero() && longest > first;
        Restarts { first, longest, steps: if grows { STEPS } else { 0 } }
    }

    /// Returns the delay before restart `number`, from 1, as systemd computes it.
    fn delay(&self, number: u32) -> Duration {
        if number <= 1 || self.steps == 0 {
            return self.first;
        }
        if number > self.steps {
            return self.longest;
        }
        let ratio = self.longest.as_secs_f64() / self.first.as_secs_f64();
        let exponent = f64::from(number - 1) / f64::from(self.steps);
        self.first.mul_f64(ratio.powf(exponent))
    }

    /// Returns the time that the limited number of starts takes if every worker fails early.
    fn interval(&self) -> Duration {
        let delays: Duration = (1..BURST).map(|number| self.delay(number)).sum();
        let interval = delays + SHORT_LIFE * BURST;
        Duration::from_secs(interval.as_secs())
    }

    pub fn set_limit(&self, file: &mut UnitFile) {
        file.set("Unit", "StartLimitIntervalSec", &exact_span(self.interval()));
        file.set("Unit", "StartLimitBurst", &BURST.to_string());
    }

    pub fn set_delays(&self, file: &mut UnitFile) {
        file.set("Service", "Restart", "always");
        file.set("Service", "RestartSec", &exact_span(self.first));
        if self.steps > 0 {
            file.set("Service", "RestartSteps", &self.steps.to_string());
            file.set("Service", "RestartMaxDelaySec", &exact_span(self.longest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_as_in_systemd() {
        let restarts = Restarts { first: FIRST, longest: LONGEST, steps: STEPS };
        let delays: Vec<_> = (1..=6).map(|n| restarts.delay(n).as_millis()).collect();
        assert_eq!(delays, [1000, 1778, 3162, 5623, 10_000, 10_000]);
        assert_eq!(restarts.interval(), Duration::from_secs(181));
        let constant = Restarts { steps: 0, ..restarts };
        assert_eq!(constant.delay(9), FIRST);
        assert_eq!(constant.interval(), Duration::from_secs(39));
    }
}
