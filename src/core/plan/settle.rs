//! What the end of a worker means for its crawl or snapshot.

use crate::model::{Backoff, Lifecycle, Outcome, Step, Time};
use std::time::Duration;

/// Reason that is recorded for what a user paused.
pub const PAUSED: &str = "paused by request";

/// Reason that is recorded for a page that no plugin archives.
const WITHOUT_HOOKS: &str =
    "nothing was archived: none of the plugins of its crawl has a hook for pages";

/// SIGTERM. Workers get it only from systemctl, as the orchestrator stops slices.
const SIGTERM: i32 = 15;

/// The end of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEnd {
    /// How its unit ended.
    pub outcome: Outcome,
    /// Attempts so far, this one included.
    pub attempts: u32,
    /// A hook has to run again.
    pub unfinished: bool,
    /// Why there is no further attempt: the worker had all the time that there is.
    pub spent: Option<String>,
    /// The worker's snapshot was paused while it ran.
    pub was_paused: bool,
    /// The worker had no hook to run for its snapshot.
    pub without_hooks: bool,
}

impl WorkerEnd {
    /// An administrator stopped the unit; the system is not shutting down.
    fn is_stopped_by_hand(&self) -> bool {
        self.outcome == Outcome::Signal(SIGTERM)
    }

    /// The worker reached its time limit, in which time it was paused: there is another attempt,
    /// however many there were.
    fn is_excused(&self) -> bool {
        self.was_paused && self.outcome == Outcome::TimeLimit
    }
}

/// What follows: the step, the time of the next attempt, and the reason to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Step of the crawl or snapshot.
    pub step: Step,
    /// When the next attempt is due.
    pub retry_at: Option<Time>,
    /// Reason to record and show.
    pub reason: Option<String>,
}

/// Decides what the end of a worker means. A worker that did its work seals, and one that was
/// stopped by hand cancels. After one that died, a delay and the next attempt follow, until the
/// attempts or the time are used up.
pub fn settle_worker(end: &WorkerEnd, backoff: &Backoff, now: Time, jitter: f64) -> Settled {
    if end.outcome.is_success() && !end.unfinished {
        return Settled {
            step: Step::Seal,
            retry_at: None,
            reason: end.without_hooks.then(|| WITHOUT_HOOKS.to_owned()),
        };
    }
    if let Some(why) = &end.spent {
        return Settled {
            step: Step::Seal,
            retry_at: None,
            reason: Some(why.clone()),
        };
    }
    if end.is_stopped_by_hand() {
        let reason = Some("its worker was stopped with systemctl".to_owned());
        return Settled {
            step: Step::Cancel,
            retry_at: None,
            reason,
        };
    }
    let what = if end.outcome.is_success() {
        "a hook has to run again".to_owned()
    } else {
        format!("worker: {}", end.outcome)
    };
    let delay = backoff.delay(end.attempts, jitter);
    match delay.or(end.is_excused().then_some(Duration::ZERO)) {
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
                "given up after {} attempts; the last ended with: {what}",
                end.attempts
            )),
        },
    }
}

/// Whether the worker that ended belongs to the present attempt. A retry counts attempts from zero,
/// so that without any the worker is one from before the retry.
fn is_of_this_attempt(status: Lifecycle, attempts: u32) -> bool {
    match status {
        Lifecycle::Started => true,
        Lifecycle::Paused => attempts > 0,
        Lifecycle::Queued | Lifecycle::Sealed | Lifecycle::Cancelled => false,
    }
}

/// What the end of its worker means for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterWorker {
    /// Nothing: the snapshot is not started, or the worker is of an earlier attempt.
    Nothing,
    /// The snapshot stays paused, and gets another worker after it is resumed.
    StayPaused {
        /// When the next attempt is due after the resume.
        retry_at: Option<Time>,
        /// Reason to record and show.
        reason: String,
    },
    /// Apply this step.
    Step(Settled),
}

/// Decides what the end of its worker means for a crawl or snapshot in this state.
pub fn after_worker(
    status: Lifecycle,
    end: &WorkerEnd,
    backoff: &Backoff,
    now: Time,
    jitter: f64,
) -> AfterWorker {
    if !is_of_this_attempt(status, end.attempts) {
        return AfterWorker::Nothing;
    }
    let settled = settle_worker(end, backoff, now, jitter);
    if settled.step != Step::Requeue || status != Lifecycle::Paused {
        return AfterWorker::Step(settled);
    }
    AfterWorker::StayPaused {
        retry_at: settled.retry_at,
        reason: match settled.reason {
            Some(reason) => format!("{PAUSED}; {reason}"),
            None => PAUSED.to_owned(),
        },
    }
}

/// What the end of its worker means for a crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterCrawlWorker {
    /// Nothing: the crawl is not started, or the worker is of an earlier attempt.
    Nothing,
    /// The crawl stays paused, and gets another worker after it is resumed.
    StayPaused {
        /// When the next attempt is due after the resume.
        retry_at: Option<Time>,
        /// Reason to record and show.
        reason: String,
    },
    /// Queue the crawl again.
    Requeue {
        /// When the next attempt is due; `None`: now.
        retry_at: Option<Time>,
        /// Reason to record and show.
        reason: Option<String>,
    },
    /// All is done.
    Seal,
    /// The crawl cannot continue: seal it, and fail what is open.
    GiveUp(String),
    /// Cancel the crawl, for this reason.
    Cancel(String),
}

/// Decides what the end of its worker means for a crawl. `has_open_snapshots`: a snapshot was
/// retried after the worker had heard that all are done. `aborted`: why its pages were cancelled
/// with it.
pub fn after_crawl_worker(
    after: AfterWorker,
    now: Time,
    has_open_snapshots: bool,
    aborted: Option<String>,
    status: Lifecycle,
) -> AfterCrawlWorker {
    let settled = match after {
        AfterWorker::Nothing => return AfterCrawlWorker::Nothing,
        AfterWorker::StayPaused { retry_at, reason } => {
            return AfterCrawlWorker::StayPaused { retry_at, reason };
        }
        AfterWorker::Step(settled) => settled,
    };
    match (settled.step, settled.reason, aborted) {
        (Step::Seal, None, _) if has_open_snapshots && status == Lifecycle::Paused => {
            AfterCrawlWorker::StayPaused {
                retry_at: Some(now),
                reason: PAUSED.to_owned(),
            }
        }
        (Step::Seal, None, _) if has_open_snapshots => AfterCrawlWorker::Requeue {
            retry_at: Some(now),
            reason: None,
        },
        (Step::Seal, None, Some(reason)) => AfterCrawlWorker::Cancel(reason),
        (Step::Seal, None, None) => AfterCrawlWorker::Seal,
        (Step::Seal, Some(reason), _) => AfterCrawlWorker::GiveUp(reason),
        (Step::Requeue, reason, _) => AfterCrawlWorker::Requeue {
            retry_at: settled.retry_at,
            reason,
        },
        (_, reason, _) => AfterCrawlWorker::Cancel(reason.unwrap_or_default()),
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
            attempts,
            unfinished: false,
            spent: None,
            was_paused: false,
            without_hooks: false,
        }
    }

    #[test]
    fn page_without_hooks_is_sealed_with_a_reason() {
        let without = WorkerEnd {
            without_hooks: true,
            ..end(Outcome::Exit(0), 1)
        };
        let settled = settle_worker(&without, &BACKOFF, Time(0), 1.0);
        assert_eq!(settled.step, Step::Seal);
        assert_eq!(settled.reason.as_deref(), Some(WITHOUT_HOOKS));
        let with = settle_worker(&end(Outcome::Exit(0), 1), &BACKOFF, Time(0), 1.0);
        assert_eq!(with.reason, None);
    }

    #[test]
    fn step_by_outcome() {
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
        assert_eq!(settle(&end(Outcome::Signal(15), 1)).step, Step::Cancel);
    }

    #[test]
    fn time_limit_of_a_paused_worker_allows_another_attempt() {
        let excused = WorkerEnd {
            was_paused: true,
            ..end(Outcome::TimeLimit, 3)
        };
        let settled = settle_worker(&excused, &BACKOFF, Time(0), 0.5);
        assert_eq!(
            (settled.step, settled.retry_at),
            (Step::Requeue, Some(Time(1)))
        );
    }

    #[test]
    fn success_with_an_unfinished_hook_requeues() {
        let end = WorkerEnd {
            unfinished: true,
            ..end(Outcome::Exit(0), 1)
        };
        assert_eq!(
            settle_worker(&end, &BACKOFF, Time(0), 0.5).step,
            Step::Requeue
        );
    }

    /// Ends of a worker: done, died, given up, stopped by hand.
    fn ends() -> [WorkerEnd; 4] {
        [
            end(Outcome::Exit(0), 1),
            end(Outcome::Signal(9), 1),
            end(Outcome::Signal(9), 3),
            end(Outcome::Signal(15), 1),
        ]
    }

    fn word(after: &AfterWorker) -> &'static str {
        match after {
            AfterWorker::Nothing => "-",
            AfterWorker::StayPaused { .. } => "paused",
            AfterWorker::Step(settled) => match settled.step {
                Step::Seal => "seal",
                Step::Requeue => "requeue",
                Step::Cancel => "cancel",
                other => panic!("{other:?}"),
            },
        }
    }

    /// Every state by every end.
    #[test]
    fn end_of_a_worker_by_state() {
        let table = [
            "- - - -",                  // queued
            "seal requeue seal cancel", // started
            "- - - -",                  // sealed
            "seal paused seal cancel",  // paused
            "- - - -",                  // cancelled
        ];
        for (status, row) in Lifecycle::ALL.into_iter().zip(table) {
            for (end, want) in ends().iter().zip(row.split(' ')) {
                let after = after_worker(status, end, &BACKOFF, Time(0), 0.5);
                assert_eq!(word(&after), want, "{status} {end:?}");
                let before_retry = WorkerEnd {
                    attempts: 0,
                    ..end.clone()
                };
                let after = after_worker(status, &before_retry, &BACKOFF, Time(0), 0.5);
                let started = status == Lifecycle::Started;
                assert_eq!(after != AfterWorker::Nothing, started, "{status} {end:?}");
            }
        }
    }

    #[test]
    fn a_paused_crawl_keeps_the_reason_of_its_worker() {
        let after = after_worker(Lifecycle::Paused, &ends()[1], &BACKOFF, Time(0), 1.0);
        let AfterWorker::StayPaused { retry_at, reason } = after else {
            panic!("{after:?}");
        };
        assert_eq!(retry_at, Some(Time(60_000)));
        assert!(
            reason.starts_with("paused by request; worker: "),
            "{reason}"
        );
    }

    /// Columns: nothing open, aborted, snapshots open, both.
    #[test]
    fn end_of_a_crawl_worker_by_state_and_pages() {
        let table = [
            (Lifecycle::Started, 0, "seal cancel requeue requeue"),
            (Lifecycle::Started, 1, "requeue requeue requeue requeue"),
            (Lifecycle::Started, 2, "give-up give-up give-up give-up"),
            (Lifecycle::Started, 3, "cancel cancel cancel cancel"),
            (Lifecycle::Paused, 0, "seal cancel paused paused"),
            (Lifecycle::Paused, 1, "paused paused paused paused"),
            (Lifecycle::Paused, 2, "give-up give-up give-up give-up"),
            (Lifecycle::Paused, 3, "cancel cancel cancel cancel"),
            (Lifecycle::Queued, 0, "- - - -"),
            (Lifecycle::Sealed, 1, "- - - -"),
            (Lifecycle::Cancelled, 2, "- - - -"),
        ];
        for (status, which, row) in table {
            for (n, want) in row.split(' ').enumerate() {
                let after = after_worker(status, &ends()[which], &BACKOFF, Time(0), 0.5);
                let aborted = (n % 2 == 1).then(|| "aborted".to_owned());
                let after = after_crawl_worker(after, Time(0), n > 1, aborted, status);
                let got = match after {
                    AfterCrawlWorker::Nothing => "-",
                    AfterCrawlWorker::StayPaused { .. } => "paused",
                    AfterCrawlWorker::Requeue { .. } => "requeue",
                    AfterCrawlWorker::Seal => "seal",
                    AfterCrawlWorker::GiveUp(_) => "give-up",
                    AfterCrawlWorker::Cancel(_) => "cancel",
                };
                assert_eq!(got, want, "{status} {which} {n}");
            }
        }
    }
}
