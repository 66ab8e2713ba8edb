//! What pausing and resuming mean in every state, and for the units that run.

use super::cancel::Wanted;
use crate::model::{Lifecycle, Outcome, Step};

pub fn pause(status: Lifecycle) -> Wanted {
    match status {
        Lifecycle::Paused => Wanted::Already,
        Lifecycle::Sealed | Lifecycle::Cancelled => Wanted::Final,
        Lifecycle::Queued | Lifecycle::Started => Wanted::Go,
    }
}

pub fn resume(status: Lifecycle) -> Wanted {
    match status {
        Lifecycle::Queued | Lifecycle::Started => Wanted::Already,
        Lifecycle::Sealed | Lifecycle::Cancelled => Wanted::Final,
        Lifecycle::Paused => Wanted::Go,
    }
}

/// The step that resumes. A worker without an attempt belongs to the time before a retry: it is
/// about to end, and does not continue the work.
pub fn resume_step(attempts: u32, has_worker: bool) -> Step {
    if attempts > 0 && has_worker { Step::Continue } else { Step::Resume }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningUnit {
    /// Stop it: its run was interrupted, or its crawl or snapshot is final.
    Stop,
    Freeze,
    /// Thaw it, if it was ever frozen.
    Thaw,
    /// Leave it as it is.
    Leave,
}

/// Decides what is done with a unit that runs. Workers are never frozen: they have a watchdog to
/// answer. The orchestrator may have ended between its record and its call, and a unit may have
/// started after the pause.
pub fn running_unit(is_hook: bool, is_over: bool, is_paused: bool) -> RunningUnit {
    if is_over {
        RunningUnit::Stop
    } else if !is_hook {
        RunningUnit::Leave
    } else if is_paused {
        RunningUnit::Freeze
    } else {
        RunningUnit::Thaw
    }
}

/// Whether a hook gets another run because it reached its time limit while it was frozen: the
/// limit belongs to systemd, which counts that time.
pub fn excuses_time_limit(was_frozen: bool, outcome: &Outcome) -> bool {
    was_frozen && *outcome == Outcome::TimeLimit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_by_state() {
        use Wanted::{Already, Final, Go};
        // In the order of ALL: queued, started, sealed, paused, cancelled.
        let pauses = [Go, Go, Final, Already, Final];
        let resumes = [Already, Already, Final, Go, Final];
        for (n, status) in Lifecycle::ALL.into_iter().enumerate() {
            assert_eq!(pause(status), pauses[n], "{status}");
            assert_eq!(resume(status), resumes[n], "{status}");
            let legal = status.apply(Step::Pause).is_ok();
            assert_eq!(pause(status) == Go, legal, "{status}");
            let legal = status.apply(resume_step(1, true)).is_ok();
            assert_eq!(resume(status) == Go, legal, "{status}");
        }
    }

    #[test]
    fn resume_continues_only_with_a_worker_of_this_attempt() {
        let table = [
            (0, false, Step::Resume),
            (0, true, Step::Resume),
            (1, false, Step::Resume),
            (1, true, Step::Continue),
        ];
        for (attempts, has_worker, want) in table {
            assert_eq!(resume_step(attempts, has_worker), want);
        }
    }

    #[test]
    fn running_units_by_kind_and_state() {
        use RunningUnit::{Freeze, Leave, Stop, Thaw};
        // Hook, over, paused.
        let table = [
            ([false, false, false], Leave),
            ([false, false, true], Leave),
            ([false, true, false], Stop),
            ([false, true, true], Stop),
            ([true, false, false], Thaw),
            ([true, false, true], Freeze),
            ([true, true, false], Stop),
            ([true, true, true], Stop),
        ];
        for ([is_hook, is_over, is_paused], want) in table {
            assert_eq!(running_unit(is_hook, is_over, is_paused), want);
        }
    }

    #[test]
    fn only_a_frozen_hook_is_excused_from_its_time_limit() {
        for (frozen, outcome, want) in [
            (true, Outcome::TimeLimit, true),
            (false, Outcome::TimeLimit, false),
            (true, Outcome::Exit(1), false),
            (true, Outcome::OutOfMemory, false),
            (false, Outcome::Exit(0), false),
        ] {
            assert_eq!(excuses_time_limit(frozen, &outcome), want);
        }
    }
}
