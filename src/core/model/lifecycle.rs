//! The states of crawls and snapshots, and their steps; those of results and runs follow from them.
//!
//! ```text
//! crawl, snapshot   queued ─Start→ started ─Seal→ sealed            Requeue: started → queued, with retry_at
//!                   queued, started, paused ─Cancel→ cancelled      Retry: sealed, cancelled → queued
//!                   queued, started ─Pause→ paused ─Resume→ queued; ─Continue→ started while its worker runs; ─Seal→ sealed
//! result            queued → started → succeeded | failed | skipped | noresults;  started → backoff → started
//! run               starting → running → ended (outcome)
//! outcome           exit · signal · time-limit · watchdog · out-of-memory · disk-limit · interrupted · killed · late · not-started · lost
//! ```
//!
//! `Lifecycle::apply` is the only place that changes a state; an illegal step is an error that names
//! state and step. A sealed or cancelled owner has no open result, a final crawl no open snapshot.

use serde::{Deserialize, Serialize};
use std::fmt;

crate::text::named! {
    /// State of a crawl or snapshot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Lifecycle {
        /// Waits in the queue, or until its `retry_at`.
        Queued = "queued",
        /// Has a worker, or had one that will be replaced.
        Started = "started",
        /// Finished, with success or not; the reason says which.
        Sealed = "sealed",
        /// Paused by a user; keeps its position in the queue.
        Paused = "paused",
        /// Cancelled by a user, or with the command that held it.
        Cancelled = "cancelled",
    }
}

/// A step of a crawl or snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A worker is about to start; the attempt is counted now.
    Start,
    /// The worker ended before the work was done; back to the queue.
    Requeue,
    /// The work is complete, or abandoned after too many attempts.
    Seal,
    Pause,
    /// A user resumes it, and it has no worker.
    Resume,
    /// A user resumes it, and its worker still runs.
    Continue,
    Cancel,
    Retry,
}

/// A step that the present state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step} is not possible while it is {state}")]
pub struct IllegalTransition {
    /// State before the step.
    pub state: Lifecycle,
    pub step: Step,
}

impl Lifecycle {
    /// Returns the state after `step`, or the illegal transition.
    pub fn apply(self, step: Step) -> Result<Lifecycle, IllegalTransition> {
        use Lifecycle::*;
        match (self, step) {
            (Queued, Step::Start) => Ok(Started),
            (Started, Step::Requeue) => Ok(Queued),
            // A hook that was about to end may complete the work of a paused page.
            (Queued | Started | Paused, Step::Seal) => Ok(Sealed),
            (Queued | Started, Step::Pause) => Ok(Paused),
            (Paused, Step::Resume) => Ok(Queued),
            (Paused, Step::Continue) => Ok(Started),
            (Queued | Started | Paused, Step::Cancel) => Ok(Cancelled),
            (Sealed | Cancelled, Step::Retry) => Ok(Queued),
            (state, step) => Err(IllegalTransition { state, step }),
        }
    }

    /// Returns whether the state changes only by a user's request.
    pub fn is_final(self) -> bool {
        matches!(self, Lifecycle::Sealed | Lifecycle::Cancelled)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Start => "starting",
            Step::Requeue => "queueing again",
            Step::Seal => "sealing",
            Step::Pause => "pausing",
            Step::Resume | Step::Continue => "resuming",
            Step::Cancel => "cancelling",
            Step::Retry => "retrying",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 8] = [
        Step::Start,
        Step::Requeue,
        Step::Seal,
        Step::Pause,
        Step::Resume,
        Step::Cancel,
        Step::Retry,
        Step::Continue,
    ];

    /// Every state by every step: rows in the order of `ALL`, columns in the order of `STEPS`.
    #[test]
    fn the_whole_table() {
        let table = [
            "started - sealed paused - cancelled -",   // queued
            "- queued sealed paused - cancelled -",    // started
            "- - - - - - queued",                      // sealed
            "- - sealed - queued cancelled - started", // paused
            "- - - - - - queued",                      // cancelled
        ];
        for (state, row) in Lifecycle::ALL.into_iter().zip(table) {
            for (step, want) in STEPS.into_iter().zip(row.split(' ').chain(std::iter::repeat("-")))
            {
                let got = state.apply(step).map_or("-", Lifecycle::as_str);
                assert_eq!(got, want, "{state} + {step:?}");
            }
        }
    }

    #[test]
    fn an_illegal_step_names_state_and_step() {
        let error = Lifecycle::Sealed.apply(Step::Start).unwrap_err();
        assert_eq!(error.to_string(), "starting is not possible while it is sealed");
    }
}
