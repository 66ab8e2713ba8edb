//! What the answer of the server means for a visit: one request for a page by all of its hooks.
//!
//! A server that is overloaded or limits requests sends status 429 or 503 instead of the page. Such
//! a visit counts for nothing: the page waits, and all hooks visit it again. After the last visit
//! the results that show the document fail. Other errors are kept unless a setting says otherwise.

use crate::model::{
    Backoff, HttpAnswer, HttpErrors, Outcome, ResultState, Time, Verdict, is_http_error,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Least time between two visits, whatever the server asks for.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The rules of one visit. The orchestrator makes them, and the worker applies the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VisitRules {
    /// Number of the visit, which results have as well. Workers that continue a visit have the same.
    pub number: u32,
    pub errors: HttpErrors,
    /// Whether no other visit follows if the server refuses this one.
    pub is_last: bool,
    /// Whether no result of an earlier visit stays.
    pub is_whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The results of the visit stay.
    Keep,
    /// Results that show the document fail.
    Fail,
    /// The visit counts for nothing; the next one follows later.
    Wait,
    /// Results that show the document fail, and no other visit follows.
    GiveUp,
}

impl VisitRules {
    /// Whether a server that answers like this refuses the visit.
    fn refuses(&self, status: u16) -> bool {
        match self.errors {
            HttpErrors::Retry => is_http_error(status),
            HttpErrors::Keep | HttpErrors::Fail => matches!(status, 429 | 503),
        }
    }

    /// Returns the answer that counts, of `known` and one that is reported after it. One program that
    /// is refused is enough, because hooks must not see different documents. In the last visit, the
    /// answer to the browser counts: the server may refuse only the other programs.
    pub fn newer(&self, known: Option<HttpAnswer>, answer: HttpAnswer) -> HttpAnswer {
        match known {
            Some(known) if !self.is_last && self.refuses(known.status) => known,
            Some(_) if !self.is_last && self.refuses(answer.status) => answer,
            Some(known) => known.or_newer(answer),
            None => answer,
        }
    }

    /// Returns what follows from the answer of the whole visit.
    pub fn treatment(&self, answer: Option<&HttpAnswer>) -> Treatment {
        let Some(status) = answer.map(|answer| answer.status) else {
            return Treatment::Keep;
        };
        match self.errors {
            _ if self.refuses(status) && self.is_last => Treatment::GiveUp,
            _ if self.refuses(status) => Treatment::Wait,
            HttpErrors::Fail if is_http_error(status) => Treatment::Fail,
            HttpErrors::Keep | HttpErrors::Fail | HttpErrors::Retry => Treatment::Keep,
        }
    }

    /// Returns the verdict on a hook of a visit with this answer. A visit that is repeated ends hooks
    /// that run, which is no failure of theirs; in the last one, their reason is the answer.
    pub fn verdict(
        &self,
        verdict: Verdict,
        outcome: &Outcome,
        answer: Option<&HttpAnswer>,
    ) -> Verdict {
        let Some(answer) = answer.filter(|_| verdict.state == ResultState::Failed) else {
            return verdict;
        };
        match self.treatment(Some(answer)) {
            Treatment::Wait => skipped_with_visit(verdict, &answer.reason()),
            Treatment::GiveUp if matches!(outcome, Outcome::Signal(_)) => {
                Verdict { error: Some(answer.reason()), ..verdict }
            }
            Treatment::GiveUp | Treatment::Fail | Treatment::Keep => verdict,
        }
    }

    /// Whether the visit ends now, because no later answer changes what follows.
    pub fn ends_early(&self, answer: Option<&HttpAnswer>) -> bool {
        match self.treatment(answer) {
            Treatment::Wait => true,
            Treatment::GiveUp => answer.is_some_and(HttpAnswer::is_of_browser),
            Treatment::Keep | Treatment::Fail => false,
        }
    }
}

/// The verdict on a hook that failed in a visit which is repeated for this reason.
pub fn skipped_with_visit(verdict: Verdict, why: &str) -> Verdict {
    match verdict.state {
        ResultState::Failed => Verdict {
            state: ResultState::Skipped,
            error: Some(format!("the visit ended: {why}; the page is visited again")),
        },
        _ => verdict,
    }
}

/// Whether results of this plugin show the document. The headers are those of the answer itself.
pub fn shows_document(plugin: &str) -> bool {
    plugin != HEADERS
}

/// Plugin whose results are about the answer and stay when the document is an error.
pub const HEADERS: &str = "headers";

/// A visit that has ended, with the answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub rules: VisitRules,
    pub answer: HttpAnswer,
    /// Visits in a row that the server refused before this one.
    pub refused: u32,
    /// Time before which the server wants no other visit (Retry-After).
    pub asked: Option<Time>,
    /// Delays between visits, and how many there are.
    pub backoff: Backoff,
}

impl Visit {
    pub fn treatment(&self) -> Treatment {
        self.rules.treatment(Some(&self.answer))
    }

    /// The reason for a visit that failed, in short.
    pub fn reason(&self) -> String {
        self.answer.reason()
    }

    /// Returns when the next visit is due: when the server allows it, but not later than the longest
    /// delay from now.
    pub fn next_at(&self, now: Time, jitter: f64) -> Time {
        let number = self.refused.saturating_add(1).min(self.backoff.attempts - 1);
        let delay = self.backoff.delay(number, jitter);
        let delay = match self.asked {
            Some(asked) => asked.until(now),
            None => delay.unwrap_or(self.backoff.longest),
        };
        now.after(delay.min(self.backoff.longest).max(WAIT_MIN))
    }

    /// Why the page waits.
    pub fn wait_reason(&self) -> String {
        let asked = match self.asked {
            Some(_) => "the server asks to wait (Retry-After); ",
            None => "",
        };
        format!(
            "{}; {asked}visit {} of {} was refused",
            self.reason(),
            self.refused.saturating_add(1),
            self.backoff.attempts
        )
    }
}

/// Whether a retry got an error in place of the document that was saved `before`.
pub fn became_error(before: Option<&HttpAnswer>, after: Option<&HttpAnswer>) -> bool {
    let is_error = |answer: Option<&HttpAnswer>| answer.is_some_and(|a| is_http_error(a.status));
    is_error(after) && !is_error(before)
}

/// Whether a retry loses a result that had the state `before`. The results of one page are of one
/// visit, so one loss restores the whole page as it was before the retry.
pub fn is_lost(before: ResultState, after: ResultState) -> bool {
    before == ResultState::Succeeded
        && !matches!(after, ResultState::Succeeded | ResultState::NoResults)
}

/// Note of a result that stays because its hook failed in a retry, for this reason if known.
pub fn kept_note(reason: Option<&str>) -> String {
    format!("the retry failed: {}", reason.unwrap_or("the hook did not run"))
}

/// Whether the visit that follows `refused` refused ones is the last of `attempts`.
pub fn is_last_visit(refused: u32, attempts: u32) -> bool {
    refused.saturating_add(1) >= attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, plugin: &str) -> HttpAnswer {
        HttpAnswer { status, plugin: plugin.to_owned() }
    }

    fn rules(errors: HttpErrors, is_last: bool) -> VisitRules {
        VisitRules { errors, is_last, ..VisitRules::default() }
    }

    /// Every setting, before and at the last visit, by the status.
    #[test]
    fn treatment_by_setting_and_status() {
        use HttpErrors as Set;
        use Treatment::{Fail, GiveUp, Keep, Wait};
        let statuses = [200, 204, 304, 404, 410, 429, 500, 503];
        let table = [
            (Set::Keep, false, [Keep, Keep, Keep, Keep, Keep, Wait, Keep, Wait]),
            (Set::Keep, true, [Keep, Keep, Keep, Keep, Keep, GiveUp, Keep, GiveUp]),
            (Set::Fail, false, [Keep, Keep, Keep, Fail, Fail, Wait, Fail, Wait]),
            (Set::Fail, true, [Keep, Keep, Keep, Fail, Fail, GiveUp, Fail, GiveUp]),
            (Set::Retry, false, [Keep, Keep, Keep, Wait, Wait, Wait, Wait, Wait]),
            (Set::Retry, true, [Keep, Keep, Keep, GiveUp, GiveUp, GiveUp, GiveUp, GiveUp]),
        ];
        for (errors, is_last, row) in table {
            let rules = rules(errors, is_last);
            assert_eq!(rules.treatment(None), Keep);
            for (status, want) in statuses.into_iter().zip(row) {
                for plugin in ["chromium", "headers"] {
                    let answer = answer(status, plugin);
                    assert_eq!(rules.treatment(Some(&answer)), want, "{errors} {status}");
                    let ends = want == Wait || (want == GiveUp && plugin == "chromium");
                    assert_eq!(rules.ends_early(Some(&answer)), ends, "{errors} {status}");
                }
            }
        }
    }

    #[test]
    fn only_what_succeeded_can_be_lost() {
        for before in ResultState::ALL {
            for after in ResultState::ALL {
                let is_good =
                    |state| [ResultState::Succeeded, ResultState::NoResults].contains(&state);
                let want = before == ResultState::Succeeded && !is_good(after);
                assert_eq!(is_lost(before, after), want, "{before} {after}");
            }
        }
    }

    #[test]
    fn error_does_not_replace_a_document() {
        let statuses = [None, Some(200), Some(304), Some(404), Some(500)];
        for before in statuses {
            for after in statuses {
                let became = after >= Some(400) && before < Some(400);
                let [before, after] =
                    [before, after].map(|status| status.map(|status| answer(status, "chromium")));
                let found = became_error(before.as_ref(), after.as_ref());
                assert_eq!(found, became, "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn one_refused_program_refuses_the_visit_except_the_last() {
        let newer = |is_last, known: (u16, &str), new: (u16, &str)| {
            let known = answer(known.0, known.1);
            let new = answer(new.0, new.1);
            rules(HttpErrors::Keep, is_last).newer(Some(known), new).status
        };
        let table = [
            ((429, "headers"), (200, "chromium"), 429, 200),
            ((200, "chromium"), (429, "headers"), 429, 200),
            ((429, "chromium"), (200, "headers"), 429, 429),
            ((403, "headers"), (200, "chromium"), 200, 200),
            ((200, "headers"), (404, "wget"), 404, 404),
            ((503, "headers"), (429, "chromium"), 503, 429),
        ];
        for (known, new, before, at_the_last) in table {
            assert_eq!(newer(false, known, new), before, "{known:?} {new:?}");
            assert_eq!(newer(true, known, new), at_the_last, "{known:?} {new:?}");
        }
        let first = rules(HttpErrors::Keep, false).newer(None, answer(429, "wget"));
        assert_eq!(first.status, 429);
    }

    fn visit(refused: u32, asked: Option<i64>) -> Visit {
        Visit {
            rules: VisitRules::default(),
            answer: answer(429, "headers"),
            refused,
            asked: asked.map(Time),
            backoff: Backoff {
                first: Duration::from_secs(10),
                longest: Duration::from_secs(3600),
                attempts: 5,
            },
        }
    }

    #[test]
    fn hooks_that_a_refused_visit_ends_have_not_failed() {
        let terminated = Outcome::Signal(15);
        let verdict = |is_last: bool, outcome: &Outcome, status: u16| {
            let failed = Verdict { state: ResultState::Failed, error: Some(outcome.to_string()) };
            rules(HttpErrors::Keep, is_last).verdict(failed, outcome, Some(&answer(status, "wget")))
        };
        let repeated = verdict(false, &terminated, 503);
        assert_eq!(repeated.state, ResultState::Skipped);
        assert_eq!(
            repeated.error.as_deref(),
            Some("the visit ended: http 503; the page is visited again")
        );
        assert_eq!(verdict(false, &terminated, 200).state, ResultState::Failed);

        let last = verdict(true, &terminated, 429);
        assert_eq!(last.state, ResultState::Failed);
        assert_eq!(last.error.as_deref(), Some("http 429"));
        assert_eq!(verdict(true, &Outcome::Exit(1), 429).error.as_deref(), Some("exit code 1"));
    }

    #[test]
    fn next_visit_is_when_the_server_allows_it() {
        let now = Time(1_000_000);
        let after = |visit: Visit| visit.next_at(now, 1.0).0 - now.0;
        assert_eq!(after(visit(0, Some(1_008_000))), 8_000);
        assert_eq!(after(visit(0, Some(900_000))), 1_000, "the time has passed");
        assert_eq!(after(visit(0, Some(i64::MAX))), 3_600_000, "the longest wait");
        let delays: Vec<i64> = (0..6).map(|refused| after(visit(refused, None))).collect();
        assert_eq!(delays, [10_000, 20_000, 40_000, 80_000, 80_000, 80_000]);
    }

    #[test]
    fn reason_names_status_and_visit() {
        assert_eq!(visit(0, None).wait_reason(), "http 429; visit 1 of 5 was refused");
        assert_eq!(
            visit(1, Some(5)).wait_reason(),
            "http 429; the server asks to wait (Retry-After); visit 2 of 5 was refused"
        );
        assert!(!is_last_visit(3, 5) && is_last_visit(4, 5) && is_last_visit(0, 1));
    }
}
