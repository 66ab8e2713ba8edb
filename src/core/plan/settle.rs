//! What the end of a worker means for its crawl or snapshot.

use super::visit::{Treatment, Visit};
use crate::model::{Backoff, Lifecycle, Outcome, Step, Time};
use std::time::Duration;

/// Reason that is recorded for what a user paused.
pub const PAUSED: &str = "paused by request";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithoutHooks {
    /// None of the plugins of its crawl has a hook for pages.
    NoPlugin,
    /// All hooks were skipped; the reason of the first.
    AllSkipped(String),
}

impl std::fmt::Display for WithoutHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing was archived: ")?;
        match self {
            WithoutHooks::NoPlugin => {
                f.write_str("none of the plugins of its crawl has a hook for pages")
            }
            WithoutHooks::AllSkipped(why) => write!(f, "all hooks were skipped ({why})"),
        }
    }
}

/// SIGTERM. Workers get it only from systemctl, as the orchestrator stops slices.
const SIGTERM: i32 = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEnd {
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
    pub without_hooks: Option<WithoutHooks>,
    /// The visit of a page, if the server answered it.
    pub visit: Option<Visit>,
    /// Starts of workers since the last retry for visits that the server refused. These are no failed
    /// attempts.
    pub refused: u32,
    /// Why the failure is not one of the page, if so: the attempt does not count.
    pub uncounted: Option<Uncounted>,
}

/// Why the end of a worker does not count as a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    pub why: String,
    pub delay: Duration,
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

    /// Whether the worker did its work, and no hook has to run again.
    pub fn is_complete(&self) -> bool {
        self.outcome.is_success() && !self.unfinished
    }

    /// Returns what follows from the answer of the server, once the worker is done.
    pub fn treatment(&self) -> Treatment {
        match &self.visit {
            Some(visit) if self.is_complete() => visit.treatment(),
            _ => Treatment::Keep,
        }
    }
}

/// What follows: the step, the time of the next attempt, and the reason to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Step of the crawl or snapshot.
    pub step: Step,
    /// When the next attempt is due.
    pub retry_at: Option<Time>,
    pub reason: Option<String>,
}

/// Decides what the end of a worker means. A worker that did its work seals, and one that was
/// stopped by hand cancels. After one that died, a delay and the next attempt follow, until the
/// attempts or the time are used up.
pub fn settle_worker(end: &WorkerEnd, backoff: &Backoff, now: Time, jitter: f64) -> Settled {
    if let Some(visit) = &end.visit
        && end.is_complete()
        && visit.treatment() != Treatment::Keep
    {
        return settle_refused(visit, now, jitter);
    }
    if end.is_complete() {
        return Settled {
            step: Step::Seal,
            retry_at: None,
            reason: end.without_hooks.as_ref().map(ToString::to_string),
        };
    }
    if let Some(why) = &end.spent {
        return Settled { step: Step::Seal, retry_at: None, reason: Some(why.clone()) };
    }
    if end.is_stopped_by_hand() {
        let reason = Some("its worker was stopped with systemctl".to_owned());
        return Settled { step: Step::Cancel, retry_at: None, reason };
    }
    if let Some(Uncounted { why, delay }) = &end.uncounted {
        return Settled {
            step: Step::Requeue,
            retry_at: Some(now.after((*delay).max(Duration::from_millis(1)))),
            reason: Some(why.clone()),
        };
    }
    let what = if end.outcome.is_success() {
        "a hook has to run again".to_owned()
    } else {
        format!("worker: {}", end.outcome)
    };
    let attempts = end.attempts.saturating_sub(end.refused).max(1);
    let delay = backoff.delay(attempts, jitter);
    match delay.or(end.is_excused().then_some(Duration::ZERO)) {
        Some(delay) => Settled {
            step: Step::Requeue,
            retry_at: Some(now.after(delay.max(Duration::from_millis(1)))),
            reason: Some(format!("{what}; attempt {attempts} of {}", backoff.attempts)),
        },
        None => Settled {
            step: Step::Seal,
            retry_at: None,
            reason: Some(format!(
                "given up after {attempts} attempts; the last ended with: {what}"
            )),
        },
    }
}

/// Decides what follows a visit that got an HTTP error instead of the page.
fn settle_refused(visit: &Visit, now: Time, jitter: f64) -> Settled {
    match visit.treatment() {
        Treatment::Wait => Settled {
            step: Step::Requeue,
            retry_at: Some(visit.next_at(now, jitter)),
            reason: Some(visit.wait_reason()),
        },
        Treatment::Keep | Treatment::Fail | Treatment::GiveUp => {
            Settled { step: Step::Seal, retry_at: None, reason: Some(visit.reason()) }
        }
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterWorker {
    /// Nothing: the snapshot is not started, or the worker is of an earlier attempt.
    Nothing,
    /// The snapshot stays paused, and gets another worker after it is resumed.
    StayPaused {
        /// When the next attempt is due after the resume.
        retry_at: Option<Time>,
        reason: String,
    },
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterCrawlWorker {
    /// Nothing: the crawl is not started, or the worker is of an earlier attempt.
    Nothing,
    /// The crawl stays paused, and gets another worker after it is resumed.
    StayPaused {
        /// When the next attempt is due after the resume.
        retry_at: Option<Time>,
        reason: String,
    },
    /// Queue the crawl again.
    Requeue {
        /// When the next attempt is due; `None`: now.
        retry_at: Option<Time>,
        reason: Option<String>,
    },
    /// All is done.
    Seal,
    /// The crawl cannot continue: seal it, and fail what is open.
    GiveUp(String),
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
            AfterCrawlWorker::StayPaused { retry_at: Some(now), reason: PAUSED.to_owned() }
        }
        (Step::Seal, None, _) if has_open_snapshots => {
            AfterCrawlWorker::Requeue { retry_at: Some(now), reason: None }
        }
        (Step::Seal, None, Some(reason)) => AfterCrawlWorker::Cancel(reason),
        (Step::Seal, None, None) => AfterCrawlWorker::Seal,
        (Step::Seal, Some(reason), _) => AfterCrawlWorker::GiveUp(reason),
        (Step::Requeue, reason, _) => {
            AfterCrawlWorker::Requeue { retry_at: settled.retry_at, reason }
        }
        (_, reason, _) => AfterCrawlWorker::Cancel(reason.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
