//! The one state machine of crawls and snapshots: `queued → started → sealed`, both also
//! `paused` and `cancelled`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a crawl or a snapshot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Waits for its turn, or for its `retry_at`.
    Queued,
    /// Has a worker, or had one that is to be replaced.
    Started,
    /// Done for good, well or badly; the reason says which.
    Sealed,
    /// Set aside by somebody; keeps its place.
    Paused,
    /// Given up by somebody.
    Cancelled,
}

/// What may happen to a crawl or a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A worker is about to be started for it; its attempt is counted now.
    Start,
    /// Its worker ended before the work was done; it goes back to the queue.
    Requeue,
    /// Its work is complete, or given up after too many attempts.
    Seal,
    /// Somebody wants it to wait.
    Pause,
    /// Somebody wants it to go on, and it has no worker.
    Resume,
    /// Somebody wants it to go on, and its worker is there still.
    Continue,
    /// Somebody does not want it any more.
    Cancel,
    /// Somebody wants it once more.
    Retry,
}

/// A step that the present state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step} is not possible while it is {state}")]
pub struct IllegalTransition {
    pub state: Lifecycle,
    pub step: Step,
}

impl Lifecycle {
    pub const ALL: [Lifecycle; 5] = [
        Lifecycle::Queued,
        Lifecycle::Started,
        Lifecycle::Sealed,
        Lifecycle::Paused,
        Lifecycle::Cancelled,
    ];

    /// The state after `step`, or why there is none.
    pub fn apply(self, step: Step) -> Result<Lifecycle, IllegalTransition> {
        use Lifecycle::*;
        match (self, step) {
            (Queued, Step::Start) => Ok(Started),
            (Started, Step::Requeue) => Ok(Queued),
            // A hook that was at its end already may complete the work of what is paused.
            (Queued | Started | Paused, Step::Seal) => Ok(Sealed),
            (Queued | Started, Step::Pause) => Ok(Paused),
            (Paused, Step::Resume) => Ok(Queued),
            (Paused, Step::Continue) => Ok(Started),
            (Queued | Started | Paused, Step::Cancel) => Ok(Cancelled),
            (Sealed | Cancelled, Step::Retry) => Ok(Queued),
            (state, step) => Err(IllegalTransition { state, step }),
        }
    }

    /// Whether nothing happens any more by itself.
    pub fn is_final(self) -> bool {
        matches!(self, Lifecycle::Sealed | Lifecycle::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Lifecycle::Queued => "queued",
            Lifecycle::Started => "started",
            Lifecycle::Sealed => "sealed",
            Lifecycle::Paused => "paused",
            Lifecycle::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Lifecycle> {
        Lifecycle::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
            for (step, want) in STEPS
                .into_iter()
                .zip(row.split(' ').chain(std::iter::repeat("-")))
            {
                let got = state.apply(step).map_or("-", Lifecycle::as_str);
                assert_eq!(got, want, "{state} + {step:?}");
            }
        }
    }

    #[test]
    fn an_illegal_step_names_state_and_step() {
        let error = Lifecycle::Sealed.apply(Step::Start).unwrap_err();
        assert_eq!(
            error.to_string(),
            "starting is not possible while it is sealed"
        );
    }
}
