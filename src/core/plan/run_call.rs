//! What the call `Run` of a worker leads to.

use crate::model::{Outcome, ResultState};

/// The newest run of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun<'a> {
    /// None while the run has not ended.
    pub outcome: Option<&'a Outcome>,
    /// It was interrupted, and the user has not decided yet how to continue.
    pub awaits_decision: bool,
}

/// Everything that the answer to a call of `Run` depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFacts<'a> {
    /// The hook would install a program that is installed by now.
    pub installed: bool,
    /// The newest run of the hook in this attempt.
    pub last: Option<LastRun<'a>>,
    /// The state of the hook's result, if there is one.
    pub result: Option<ResultState>,
    /// The hook's snapshot, or its crawl, is paused.
    pub paused: bool,
    /// The hook cleans up after others: the limit of a page's size does not hold for it.
    pub is_cleanup: bool,
    /// The page is as large as it may become.
    pub is_too_large: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunCall {
    /// Answer that the hook was skipped: its program is installed.
    SkipInstalled,
    /// Answer when the newest run has ended and its result is decided.
    Join,
    /// Answer now with the end of the newest run.
    Answer,
    /// Ask again when the pause is over.
    Park,
    /// Record the result as skipped: the page is too large.
    SkipTooLarge,
    Begin,
}

/// Whether a worker that calls `Run` gets the newest run instead of a new one: a run that has not
/// ended, or one whose end no worker has reported. A run that was lost or stopped is not joined.
pub fn is_joinable(outcome: Option<&Outcome>, result: Option<ResultState>) -> bool {
    let unreported = result == Some(ResultState::Started);
    match outcome {
        None => true,
        // The result was skipped for the worker, or waits for another run.
        Some(Outcome::Interrupted) => unreported || result.is_some_and(ResultState::is_final),
        Some(Outcome::Lost | Outcome::Stopped) => false,
        Some(_) => unreported,
    }
}

/// Decides about one call of `Run`.
pub fn run_call(facts: &RunFacts<'_>) -> RunCall {
    if facts.installed {
        return RunCall::SkipInstalled;
    }
    let last = facts.last.filter(|run| is_joinable(run.outcome, facts.result));
    match last {
        Some(run) if run.outcome.is_some() && !run.awaits_decision => RunCall::Answer,
        Some(_) => RunCall::Join,
        None if facts.paused => RunCall::Park,
        None if facts.is_too_large && !facts.is_cleanup => RunCall::SkipTooLarge,
        None => RunCall::Begin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RunCall::{Answer, Begin, Join, Park, SkipInstalled, SkipTooLarge};

    fn outcomes() -> [Option<Outcome>; 7] {
        [
            None,
            Some(Outcome::Exit(0)),
            Some(Outcome::TimeLimit),
            Some(Outcome::NotStarted("x".to_owned())),
            Some(Outcome::Interrupted),
            Some(Outcome::Lost),
            Some(Outcome::Stopped),
        ]
    }

    /// Columns: no result, then all states of results in the order of `ALL`.
    #[test]
    fn joinable_runs_by_outcome_and_result() {
        let table = [
            "yes yes yes yes yes yes yes yes", // has not ended
            "-   -   yes -   -   -   -   -  ", // exit 0
            "-   -   yes -   -   -   -   -  ", // time limit
            "-   -   yes -   -   -   -   -  ", // not started
            "-   -   yes -   yes yes yes yes", // interrupted
            "-   -   -   -   -   -   -   -  ", // lost
            "-   -   -   -   -   -   -   -  ", // stopped
        ];
        for (outcome, row) in outcomes().iter().zip(table) {
            let results = std::iter::once(None).chain(ResultState::ALL.map(Some));
            for (result, want) in results.zip(row.split_whitespace()) {
                let got = is_joinable(outcome.as_ref(), result);
                assert_eq!(got, want == "yes", "{outcome:?} {result:?}");
            }
        }
    }

    /// Columns: neither, paused, too large, paused and too large.
    #[test]
    fn answers_by_last_run_and_limits() {
        let exited = Outcome::Exit(0);
        let run = |outcome, awaits_decision| Some(LastRun { outcome, awaits_decision });
        let started = Some(ResultState::Started);
        let succeeded = Some(ResultState::Succeeded);
        let table = [
            (None, None, false, [Begin, Park, SkipTooLarge, Park]),
            (None, None, true, [Begin, Park, Begin, Park]),
            (run(None, false), started, false, [Join; 4]),
            (run(None, true), started, false, [Join; 4]),
            (run(Some(&exited), false), started, false, [Answer; 4]),
            (run(Some(&exited), true), started, false, [Join; 4]),
            (run(Some(&exited), false), succeeded, false, [Begin, Park, SkipTooLarge, Park]),
            (run(Some(&Outcome::Lost), false), started, true, [Begin, Park, Begin, Park]),
            (run(Some(&Outcome::Interrupted), true), started, false, [Join; 4]),
            (run(Some(&Outcome::Interrupted), false), started, false, [Answer; 4]),
        ];
        for (last, result, is_cleanup, wanted) in table {
            for (n, want) in wanted.into_iter().enumerate() {
                let facts = RunFacts {
                    installed: false,
                    last,
                    result,
                    is_cleanup,
                    paused: n % 2 == 1,
                    is_too_large: n > 1,
                };
                assert_eq!(run_call(&facts), want, "{facts:?}");
                let installed = RunFacts { installed: true, ..facts };
                assert_eq!(run_call(&installed), SkipInstalled);
            }
        }
    }
}
