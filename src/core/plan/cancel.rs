//! What cancelling means in every state: by a user, and by a command in the foreground that is
//! gone.

use crate::model::{Lifecycle, Outcome, Step};

/// Whether a user's request about a crawl or snapshot is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing to do: the state is the requested one, as when an answer was lost and the call is
    /// made again.
    Already,
    /// Refused: the crawl or snapshot is final.
    Final,
    Go,
}

pub fn cancel(status: Lifecycle) -> Wanted {
    match status {
        Lifecycle::Cancelled => Wanted::Already,
        Lifecycle::Sealed => Wanted::Final,
        Lifecycle::Queued | Lifecycle::Started | Lifecycle::Paused => Wanted::Go,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRun {
    /// Nothing to do: an earlier request ended or is ending the run.
    Already,
    /// Refused: the run ended by itself.
    Ended,
    /// Refused: a worker ends with its crawl or snapshot only.
    Worker,
    Go,
}

/// Decides about a request to end a run. `outcome`: of a run that has ended; `interrupted`: the end
/// of the run was requested before.
pub fn end_run(is_hook: bool, outcome: Option<&Outcome>, interrupted: bool) -> EndRun {
    match outcome {
        _ if interrupted => EndRun::Already,
        Some(_) => EndRun::Ended,
        None if !is_hook => EndRun::Worker,
        None => EndRun::Go,
    }
}

/// What is cancelled when a crawl is to end before its pages are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The crawl as a whole: no worker waits for its pages.
    Crawl,
    /// The open pages. The crawl's worker then runs the last hooks.
    Pages,
}

/// Decides what an abort of a crawl cancels.
pub fn abort(status: Lifecycle, ready: bool, has_open_snapshots: bool) -> Abort {
    if status == Lifecycle::Started && ready && has_open_snapshots {
        Abort::Pages
    } else {
        Abort::Crawl
    }
}

/// Whether a crawl is aborted because the command that held it in the foreground is gone.
/// `cancel`: the command asked for that. `is_held`: another command still holds the crawl.
pub fn is_abandoned(status: Lifecycle, cancel: bool, is_held: bool) -> bool {
    cancel && !is_held && status.apply(Step::Cancel).is_ok()
}

/// What is done for a crawl after something of it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tidy {
    /// Tell the crawl's worker that no snapshot is open.
    pub snapshots_done: bool,
    /// Stop the crawl's slice and release the commands that hold it.
    pub stop_slice: bool,
}

/// Decides what is done for a crawl after something of it has ended.
pub fn tidy(status: Lifecycle, has_open_snapshots: bool, has_open_runs: bool) -> Tidy {
    Tidy { snapshots_done: !has_open_snapshots, stop_slice: status.is_final() && !has_open_runs }
}

/// Whether the token of a worker is valid in this state of its crawl or snapshot. A cancel may have
/// been recorded a moment ago, in the same transaction.
pub fn admits_worker(status: Lifecycle) -> bool {
    matches!(status, Lifecycle::Started | Lifecycle::Paused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_and_token_by_state() {
        use Wanted::{Already, Final, Go};
        // In the order of ALL: queued, started, sealed, paused, cancelled.
        let cancels = [Go, Go, Final, Go, Already];
        let tokens = [false, true, false, true, false];
        let abandons = [true, true, false, true, false];
        for (n, status) in Lifecycle::ALL.into_iter().enumerate() {
            assert_eq!(cancel(status), cancels[n], "{status}");
            assert_eq!(admits_worker(status), tokens[n], "{status}");
            assert_eq!(is_abandoned(status, true, false), abandons[n], "{status}");
            assert!(!is_abandoned(status, true, true), "{status}");
            assert!(!is_abandoned(status, false, false), "{status}");
        }
    }

    #[test]
    fn only_a_hook_that_runs_is_ended_alone() {
        let exited = Outcome::Exit(0);
        for is_hook in [true, false] {
            let running = if is_hook { EndRun::Go } else { EndRun::Worker };
            assert_eq!(end_run(is_hook, None, false), running);
            assert_eq!(end_run(is_hook, Some(&exited), false), EndRun::Ended);
            for outcome in [None, Some(&Outcome::Interrupted)] {
                assert_eq!(end_run(is_hook, outcome, true), EndRun::Already);
            }
        }
    }

    #[test]
    fn abort_cancels_pages_only_if_a_worker_waits_for_them() {
        for status in Lifecycle::ALL {
            for (ready, open) in [(false, false), (false, true), (true, false), (true, true)] {
                let waits = (status, ready, open) == (Lifecycle::Started, true, true);
                let want = if waits { Abort::Pages } else { Abort::Crawl };
                assert_eq!(abort(status, ready, open), want, "{status} {ready} {open}");
            }
        }
    }

    #[test]
    fn tidy_by_state_and_what_is_open() {
        // In the order of ALL.
        let stops = [false, false, true, false, true];
        for (status, stops) in Lifecycle::ALL.into_iter().zip(stops) {
            for (snapshots, runs) in [(false, false), (false, true), (true, false), (true, true)] {
                let want = Tidy { snapshots_done: !snapshots, stop_slice: stops && !runs };
                assert_eq!(tidy(status, snapshots, runs), want, "{status}");
            }
        }
    }
}
