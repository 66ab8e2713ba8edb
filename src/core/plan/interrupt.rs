//! What an interrupt means: which hooks it ends, what waits for a decision, and which runs are made
//! again.

use crate::model::{Outcome, ResultState};

/// How a crawl waits for a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// Until the hook ends, before the next hook starts.
    Foreground,
    /// In the background, until the hook ends by itself.
    Finite,
}

/// The runs that an interrupt ends: those in the foreground, or, if there is none, those in the
/// background that end by themselves.
pub fn interrupted<T>(runs: Vec<(WaitedFor, T)>) -> Vec<T> {
    let has_foreground = runs.iter().any(|(wait, _)| *wait == WaitedFor::Foreground);
    let chosen = if has_foreground { WaitedFor::Foreground } else { WaitedFor::Finite };
    runs.into_iter().filter(|(wait, _)| *wait == chosen).map(|(_, run)| run).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFlags {
    pub interrupted: bool,
    pub frozen: bool,
    /// systemd has not confirmed its start.
    pub starting: bool,
}

/// Whether a user has to decide what follows an interrupted run: a command holds the crawl in the
/// foreground, and nothing was decided yet.
pub fn awaits_decision(interrupted: bool, is_held: bool, result: Option<ResultState>) -> bool {
    interrupted && is_held && result == Some(ResultState::Started)
}

/// Whether the worker runs the hook again: its result waits for another run after an interrupt or a
/// pause, or the run was never started. A late run has the deadline of a lease that was renewed since:
/// without a renewal, its page is stopped.
pub fn runs_again(run: RunFlags, outcome: Option<&Outcome>, result: Option<ResultState>) -> bool {
    let put_off = result == Some(ResultState::Backoff);
    let never_started = run.starting && outcome == Some(&Outcome::Lost);
    let late = outcome == Some(&Outcome::Late);
    ((run.interrupted || run.frozen || late) && put_off) || never_started
}

#[cfg(test)]
mod tests {
    use super::*;
    use WaitedFor::{Finite, Foreground};

    #[test]
    fn foreground_hooks_are_interrupted_first() {
        type Case = (&'static [(WaitedFor, u8)], &'static [u8]);
        let table: [Case; 4] = [
            (&[], &[]),
            (&[(Finite, 1), (Finite, 2)], &[1, 2]),
            (&[(Finite, 1), (Foreground, 2)], &[2]),
            (&[(Foreground, 1), (Finite, 2), (Foreground, 3)], &[1, 3]),
        ];
        for (runs, want) in table {
            assert_eq!(interrupted(runs.to_vec()), want);
        }
    }

    #[test]
    fn only_a_held_and_undecided_interrupt_awaits_a_decision() {
        for result in std::iter::once(None).chain(ResultState::ALL.map(Some)) {
            let undecided = result == Some(ResultState::Started);
            assert_eq!(awaits_decision(true, true, result), undecided);
            assert!(!awaits_decision(true, false, result));
            assert!(!awaits_decision(false, true, result));
            assert!(!awaits_decision(false, false, result));
        }
    }

    /// Every combination of flags, by outcome and result.
    #[test]
    fn runs_again_by_flags_outcome_and_result() {
        for n in 0..8 {
            let run =
                RunFlags { interrupted: n & 1 != 0, frozen: n & 2 != 0, starting: n & 4 != 0 };
            let outcomes = [Outcome::Exit(0), Outcome::Late, Outcome::Lost];
            for outcome in std::iter::once(None).chain(outcomes.iter().map(Some)) {
                for result in std::iter::once(None).chain(ResultState::ALL.map(Some)) {
                    let lost = matches!(outcome, Some(Outcome::Lost));
                    let late = matches!(outcome, Some(Outcome::Late));
                    let want = match (n & 3, n & 4) {
                        (_, 4) if lost => true,
                        (0, _) if !late => false,
                        _ => matches!(result, Some(ResultState::Backoff)),
                    };
                    assert_eq!(runs_again(run, outcome, result), want, "{run:?} {result:?}");
                }
            }
        }
    }
}
