//! When an orchestrator with `--exit-on-idle` exits.

use super::Outlook;
use crate::model::Time;
use std::time::Duration;

/// Measures idleness for `--exit-on-idle`: over when nothing was queued, running or due later for
/// `timeout`. A timeout of zero means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Time without work after which the orchestrator exits; 0: never.
    pub timeout: Duration,
    /// Start of the present idle time; `None` while there is work.
    pub since: Option<Time>,
}

impl Idle {
    /// Records what is left to do, and returns when to check again. None while there is work, and if idleness
    /// never lasts long enough.
    pub fn observe(&mut self, outlook: &Outlook, now: Time) -> Option<Time> {
        if outlook.is_busy {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        (!self.timeout.is_zero()).then(|| since.after(self.timeout))
    }

    /// Whether it has lasted long enough.
    pub fn is_over(&self, now: Time) -> bool {
        let Some(since) = self.since else {
            return false;
        };
        !self.timeout.is_zero() && now >= since.after(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_must_last() {
        let mut idle = Idle { timeout: Duration::from_secs(3), since: None };
        let nothing = Outlook::default();
        let future = Outlook { is_busy: true, ..Outlook::default() };
        assert_eq!(idle.observe(&nothing, Time(1000)), Some(Time(4000)));
        assert!(!idle.is_over(Time(3999)));
        assert!(idle.is_over(Time(4000)));
        assert_eq!(idle.observe(&future, Time(3500)), None, "future work keeps it alive");
        assert!(!idle.is_over(Time(9000)));
        let mut never = Idle { timeout: Duration::ZERO, since: Some(Time(0)) };
        assert!(!never.is_over(Time(i64::MAX)));
        assert_eq!(never.observe(&nothing, Time(1)), None);
    }
}
