//! What the end of a worker means for its crawl or snapshot.

use crate::model::{Backoff, Outcome, Step, Time};
use std::time::Duration;

/// The end of a worker, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEnd {
    pub outcome: Outcome,
    /// Somebody stopped the unit from outside, and the system is not going down.
    pub stopped_by_hand: bool,
    /// Attempts so far, this one included.
    pub attempts: u32,
    /// A hook is to be tried again.
    pub unfinished: bool,
    /// Why there is no further attempt: it had all the time that there is.
    pub spent: Option<String>,
    /// It reached its limit, and was paused meanwhile: that is not held against it, whatever the number
    /// of this attempt.
    pub excused: bool,
}

/// What follows: the step, when to try again, and the reason to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub step: Step,
    pub retry_at: Option<Time>,
    pub reason: Option<String>,
}

/// A worker that did its work seals; one that was stopped by hand cancels; one that died is
/// followed by another after a while, until there were enough of them or there is no time left.
pub fn settle_worker(end: &WorkerEnd, backoff: &Backoff, now: Time, jitter: f64) -> Settled {
    if end.outcome.is_success() && !end.unfinished {
        return Settled {
            step: Step::Seal,
            retry_at: None,
            reason: None,
        };
    }
    if let Some(why) = &end.spent {
        return Settled {
            step: Step::Seal,
            retry_at: None,
            reason: Some(why.clone()),
        };
    }
    if end.stopped_by_hand {
        let reason = Some("its worker was stopped with systemctl".to_owned());
        return Settled {
            step: Step::Cancel,
            retry_at: None,
            reason,
        };
    }
    let what = if end.outcome.is_success() {
        "a hook is to be run again".to_owned()
    } else {
        format!("worker: {}", end.outcome)
    };
    let delay = backoff.delay(end.attempts, jitter);
    match delay.or(end.excused.then_some(Duration::ZERO)) {
        Some(delay) => Settled {
            step: Step::Requeue,
            retry_at: Some(now.after(delay.max(Duration::from_millis(1)))),
            reason: Some(format!(
                "{what}; attempt {} of {}",
                end.attempts, backoff.attempts
            )),
        },
        None => Settled {
            step: Step::Seal,
            retry_at: None,
            reason: Some(format!(
                "given up after {} attempts, the last: {what}",
                end.attempts
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_secs(60),
        longest: Duration::from_secs(3600),
        attempts: 3,
    };

    fn end(outcome: Outcome, attempts: u32) -> WorkerEnd {
        WorkerEnd {
            outcome,
            stopped_by_hand: false,
            attempts,
            unfinished: false,
            spent: None,
            excused: false,
        }
    }

    #[test]
    fn the_five_ways() {
        let settle = |end: &WorkerEnd| settle_worker(end, &BACKOFF, Time(0), 1.0);
        assert_eq!(settle(&end(Outcome::Exit(0), 1)).step, Step::Seal);
        let again = settle(&end(Outcome::Signal(9), 1));
        assert_eq!(
            (again.step, again.retry_at),
            (Step::Requeue, Some(Time(60_000)))
        );
        let enough = settle(&end(Outcome::Watchdog, 3));
        assert_eq!(enough.step, Step::Seal);
        assert!(enough.reason.unwrap().contains("given up after 3 attempts"));
        let spent = WorkerEnd {
            spent: Some("12h are over".to_owned()),
            ..end(Outcome::TimeLimit, 1)
        };
        let settled = settle(&spent);
        assert_eq!((settled.step, settled.retry_at), (Step::Seal, None));
        assert_eq!(settled.reason, spent.spent);
        let by_hand = WorkerEnd {
            stopped_by_hand: true,
            ..end(Outcome::Signal(15), 1)
        };
        assert_eq!(settle(&by_hand).step, Step::Cancel);
    }

    #[test]
    fn the_last_attempt_may_be_excused() {
        let excused = WorkerEnd {
            excused: true,
            ..end(Outcome::TimeLimit, 3)
        };
        let settled = settle_worker(&excused, &BACKOFF, Time(0), 0.5);
        assert_eq!(
            (settled.step, settled.retry_at),
            (Step::Requeue, Some(Time(1)))
        );
    }

    #[test]
    fn success_with_a_lost_hook_is_not_the_end() {
        let end = WorkerEnd {
            unfinished: true,
            ..end(Outcome::Exit(0), 1)
        };
        assert_eq!(
            settle_worker(&end, &BACKOFF, Time(0), 0.5).step,
            Step::Requeue
        );
    }
}
