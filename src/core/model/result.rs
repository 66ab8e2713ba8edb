//! Result of one hook for one snapshot, and how an outcome determines it.

use super::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Relative to the directory of the hook's plugin.
    pub path: String,
    /// MIME type; empty if unknown.
    pub mimetype: String,
    /// In bytes.
    pub size: u64,
}

/// Name of the file in the directory of a hook's plugin with the end of what the hook wrote to
/// standard error, if it failed.
pub fn stderr_file(hook: &str) -> String {
    format!("{hook}.stderr.log")
}

/// Numbers that a hook states about its result, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, Number>);

/// Figure of a result: how many parts of the page its output lacks, such as requests without an answer,
/// what is beyond the end of a picture, or fonts. Its note names them.
pub const LACKS: &str = "lacks";

const FIGURES_MAX: usize = 32;
/// Longest name of a figure in bytes.
const FIGURE_NAME_MAX: usize = 64;

impl Figures {
    /// Returns the numbers among the members of a record, within the bounds.
    pub fn of(members: &Map<String, Value>) -> Figures {
        let numbers = members.iter().filter_map(|(name, value)| match value {
            Value::Number(number) => Some((name.clone(), number.clone())),
            _ => None,
        });
        Figures(numbers.collect()).bounded()
    }

    /// Returns the first figures with names that are not too long.
    pub fn bounded(self) -> Figures {
        let figures = self.0.into_iter();
        let short = figures.filter(|(name, _)| name.len() <= FIGURE_NAME_MAX);
        Figures(short.take(FIGURES_MAX).collect())
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all names.
    pub fn bytes(&self) -> usize {
        self.0.keys().map(String::len).sum()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses {
    /// Whether they found something or not.
    pub succeeded: u64,
    pub failed: u64,
}

impl Uses {
    /// Returns the uses that results by status show: a skipped or open result is none.
    pub fn of_results(counts: &BTreeMap<String, u64>) -> Uses {
        let count = |state: ResultState| counts.get(state.as_str()).copied().unwrap_or(0);
        Uses {
            succeeded: count(ResultState::Succeeded) + count(ResultState::NoResults),
            failed: count(ResultState::Failed),
        }
    }

    pub fn all(self) -> u64 {
        self.succeeded.saturating_add(self.failed)
    }

    /// Returns the share that succeeded, in percent, rounded down; `None` without any use.
    pub fn health(self) -> Option<u64> {
        self.succeeded.saturating_mul(100).checked_div(self.all())
    }
}

impl std::iter::Sum for Uses {
    fn sum<I: Iterator<Item = Uses>>(all: I) -> Uses {
        all.fold(Uses::default(), |sum, uses| Uses {
            succeeded: sum.succeeded + uses.succeeded,
            failed: sum.failed + uses.failed,
        })
    }
}

crate::text::named! {
    /// `queued → started → succeeded | failed | skipped | noresults`, `backoff` between attempts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ResultState {
        /// Not run yet.
        Queued = "queued",
        /// Running, or waiting for its answer.
        Started = "started",
        /// Waiting for the next attempt.
        Backoff = "backoff",
        /// Done, with a result.
        Succeeded = "succeeded",
        /// Failed, and not retried by itself.
        Failed = "failed",
        /// Not applicable, as the hook or the plan says.
        Skipped = "skipped",
        /// Done; the hook found nothing.
        NoResults = "noresults",
    }
}

impl ResultState {
    /// Returns whether only a retry changes the state.
    pub fn is_final(self) -> bool {
        !matches!(self, ResultState::Queued | ResultState::Started | ResultState::Backoff)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub state: ResultState,
    /// Reason if the hook gave none, shown with `failed` and `skipped`. With other states, a remark
    /// on what is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Exit code of a hook that does not apply ("skipped"; PROCESS_EXIT_SKIPPED of abx-dl).
pub const EXIT_SKIPPED: i32 = 10;

impl Verdict {
    pub fn with_remark(self, remark: Option<String>) -> Verdict {
        let error = self.error.into_iter().chain(remark);
        Verdict {
            state: self.state,
            error: error.reduce(|said, remark| format!("{said}; {remark}")),
        }
    }

    /// Returns the verdict on a finished run. `stated` is the status in a record of the hook, which
    /// overrides its exit code, but not a run that systemd had to end; `brought` says whether the
    /// hook left what it exists for: any file, for a hook of a page. A lost, late or stopped run is retried.
    pub fn of(outcome: &Outcome, stated: Option<ResultState>, brought: bool) -> Verdict {
        let plain = |state| Verdict { state, error: None };
        let failed = || Verdict { state: ResultState::Failed, error: Some(outcome.to_string()) };
        match (outcome, stated) {
            // Its record may say that it was stopped.
            (Outcome::Stopped, _) | (Outcome::Lost | Outcome::Late, None) => {
                Verdict { state: ResultState::Backoff, error: Some(outcome.to_string()) }
            }
            (Outcome::Interrupted, _) => {
                Verdict { state: ResultState::Skipped, error: Some(outcome.to_string()) }
            }
            (
                Outcome::TimeLimit | Outcome::OutOfMemory | Outcome::DiskLimit | Outcome::Killed,
                _,
            ) => failed(),
            // A hook that left a record did start, even if its exit code is one that systemd uses
            // too.
            (Outcome::NotStarted(_), None) => failed(),
            (_, Some(state)) => plain(state),
            (Outcome::Exit(0), None) if brought => plain(ResultState::Succeeded),
            (Outcome::Exit(0), None) => plain(ResultState::NoResults),
            (Outcome::Exit(EXIT_SKIPPED), None) => plain(ResultState::Skipped),
            _ => failed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ResultState::*;

    #[test]
    fn figures_are_numbers_with_short_names() {
        let mut members = Map::new();
        members.insert("a".to_owned(), 7.into());
        members.insert("text".to_owned(), "7".into());
        members.insert("long".repeat(FIGURE_NAME_MAX), 7.into());
        let figures = Figures::of(&members);
        assert_eq!((figures.get("a"), figures.bytes()), (Some(7.0), 1));
        members.extend((0..99).map(|n| (format!("n{n:02}"), n.into())));
        let bounded = Figures::of(&members);
        assert_eq!(bounded.bytes(), 1 + 3 * (FIGURES_MAX - 1));
        assert_eq!((bounded.get("n30"), bounded.get("n31")), (Some(30.0), None));
    }

    #[test]
    fn exit_codes_and_files() {
        let state = |outcome, files| Verdict::of(&outcome, None, files).state;
        assert_eq!(state(Outcome::Exit(0), true), Succeeded);
        assert_eq!(state(Outcome::Exit(0), false), NoResults);
        assert_eq!(state(Outcome::Exit(EXIT_SKIPPED), true), Skipped);
        assert_eq!(state(Outcome::Exit(1), true), Failed);
        assert_eq!(state(Outcome::Signal(11), true), Failed);
        assert_eq!(state(Outcome::Lost, true), Backoff);
        assert_eq!(state(Outcome::Late, true), Backoff);
    }

    #[test]
    fn a_record_outranks_the_exit_code_but_not_a_limit() {
        let stated = |outcome| Verdict::of(&outcome, Some(NoResults), true).state;
        assert_eq!(stated(Outcome::Exit(1)), NoResults);
        assert_eq!(stated(Outcome::Signal(15)), NoResults);
        assert_eq!(stated(Outcome::TimeLimit), Failed);
        assert_eq!(stated(Outcome::OutOfMemory), Failed);
        assert_eq!(stated(Outcome::Killed), Failed);
        assert_eq!(stated(Outcome::DiskLimit), Failed);
        assert_eq!(stated(Outcome::Interrupted), Skipped);
    }

    #[test]
    fn success_is_never_invented() {
        for outcome in [Outcome::Signal(9), Outcome::Lost, Outcome::Watchdog, Outcome::Exit(137)] {
            assert_ne!(Verdict::of(&outcome, None, true).state, Succeeded, "{outcome}");
        }
    }

    #[test]
    fn health_is_the_share_that_did_not_fail() {
        let counts = |counts: &[(&str, u64)]| {
            let owned = counts.iter().map(|(state, n)| ((*state).to_owned(), *n));
            Uses::of_results(&owned.collect())
        };
        assert_eq!(counts(&[("skipped", 3), ("started", 1)]).health(), None);
        let some = counts(&[("succeeded", 1), ("noresults", 1), ("failed", 1), ("skipped", 9)]);
        assert_eq!((some.succeeded, some.failed, some.health()), (2, 1, Some(66)));
        // Complete health is never rounded up to.
        assert_eq!(counts(&[("succeeded", 999), ("failed", 1)]).health(), Some(99));
        assert_eq!(counts(&[("failed", 1)]).health(), Some(0));
    }
}
