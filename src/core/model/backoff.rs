//! Returns the delay before the next attempt after `attempts` failed ones, or `None` if there were
//! enough. `jitter` in 0..=1 spreads it over the upper half of the interval.

use std::time::Duration;

/// Exponential back-off with jitter and a cap on attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failed attempt.
    pub first: Duration,
    pub longest: Duration,
    pub attempts: u32,
}

impl Backoff {
    /// Delay before the attempt that follows `attempts` failed ones, or `None` when there were
    /// enough. `jitter` in 0..=1 spreads it over the upper half of the interval.
    pub fn delay(&self, attempts: u32, jitter: f64) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(20);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        Some(full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn doubles_up_to_the_cap_and_ends() {
        let backoff = Backoff { first: MINUTE, longest: MINUTE * 60, attempts: 5 };
        let delays: Vec<_> = (1..=5).map(|n| backoff.delay(n, 1.0).map(|d| d.as_secs())).collect();
        assert_eq!(delays, [Some(60), Some(120), Some(240), Some(480), None]);
        assert_eq!(backoff.delay(1, 0.0), Some(MINUTE / 2));
        let patient = Backoff { attempts: 100, ..backoff };
        assert_eq!(patient.delay(60, 1.0), Some(MINUTE * 60));
    }
}
