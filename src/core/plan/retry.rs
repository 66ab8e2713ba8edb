//! What a retry means in every state.

use crate::model::{Lifecycle, ResultState, is_http_error};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many results are run again; 1 also for a page that ended before all of its hooks ran.
    pub results: u32,
    /// The page is queued again.
    pub requeue: bool,
}

/// Whether a page may be retried: it is final, or waits for its next attempt.
pub fn may_retry(status: Lifecycle) -> bool {
    status.is_final() || status == Lifecycle::Queued
}

/// Decides what a retry of a page leads to, in a state that allows one. `requeued`: results that
/// were queued again; `of_all`: the caller named no hook; `has_reason`: why the page ended early is
/// recorded.
pub fn retry(status: Lifecycle, requeued: u32, of_all: bool, has_reason: bool) -> Retry {
    let unfinished = requeued == 0 && of_all && has_reason;
    let results = if unfinished { 1 } else { requeued };
    Retry { results, requeue: results > 0 && status.is_final() }
}

/// Whether a retry runs all hooks of a page, because single ones would see another document than the
/// rest: that of the page was not saved as it should be. `http_status`: of the document, if known;
/// `load_failed`: the browser did not load the page; `names_hook`: the caller, or what the page lacks,
/// names hooks, and `queued` of their results were queued.
pub fn retries_whole_page(
    http_status: Option<u16>,
    load_failed: bool,
    names_hook: bool,
    queued: u32,
) -> bool {
    let is_saved = !http_status.is_some_and(is_http_error) && !load_failed;
    !is_saved && (queued > 0 || !names_hook)
}

/// Whether a page lacks a hook that its crawl would run now: it has no result of the hook, or one
/// that was skipped without a run. `result`: its state and the number of attempts.
pub fn lacks(result: Option<(ResultState, u32)>) -> bool {
    matches!(result, None | Some((ResultState::Skipped, 0)))
}

/// Returns the selection of a crawl with a plugin that a retry names; `None` if it does not change.
/// `own`: the plugins that the crawl names; `general`: those of the configuration. An empty list
/// selects all plugins.
pub fn with_plugin(own: &[String], general: &[String], plugin: &str) -> Option<Vec<String>> {
    let selected = if own.is_empty() { general } else { own };
    let mut names = selected.iter();
    if selected.is_empty() || names.any(|name| name.trim().eq_ignore_ascii_case(plugin)) {
        return None;
    }
    let plugin = plugin.to_owned();
    Some(selected.iter().cloned().chain([plugin]).collect())
}

/// Whether a crawl is queued again because one of its pages is retried.
pub fn reopens_crawl(status: Lifecycle) -> bool {
    status.is_final()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Step;

    #[test]
    fn only_hooks_that_never_ran_are_lacking() {
        assert!(lacks(None));
        for state in ResultState::ALL {
            assert_eq!(lacks(Some((state, 0))), state == ResultState::Skipped);
            assert!(!lacks(Some((state, 1))), "{state}");
        }
    }

    #[test]
    fn a_named_plugin_joins_a_limited_selection() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let with = |own: &[&str], general: &[&str]| -> Option<Vec<String>> {
            let (own, general): (Vec<_>, Vec<_>) = (list(own), list(general));
            with_plugin(&own, &general, "late")
        };
        assert_eq!(with(&[], &[]), None);
        assert_eq!(with(&["wget", "Late"], &[]), None);
        assert_eq!(with(&["wget"], &["late"]), Some(list(&["wget", "late"])));
        assert_eq!(with(&[], &["dom"]), Some(list(&["dom", "late"])));
    }

    #[test]
    fn retry_by_state() {
        // In the order of ALL: queued, started, sealed, paused, cancelled.
        let may = [true, false, true, false, true];
        let requeues = [false, false, true, false, true];
        for (n, status) in Lifecycle::ALL.into_iter().enumerate() {
            assert_eq!(may_retry(status), may[n], "{status}");
            assert_eq!(reopens_crawl(status), requeues[n], "{status}");
            assert_eq!(status.apply(Step::Retry).is_ok(), requeues[n], "{status}");
            for (requeued, of_all, has_reason, results) in [
                (0, false, false, 0),
                (0, false, true, 0),
                (0, true, false, 0),
                (0, true, true, 1),
                (3, false, false, 3),
                (3, false, true, 3),
                (3, true, false, 3),
                (3, true, true, 3),
            ] {
                let want = Retry { results, requeue: results > 0 && requeues[n] };
                assert_eq!(retry(status, requeued, of_all, has_reason), want, "{status}");
            }
        }
    }

    #[test]
    fn all_hooks_run_again_unless_the_document_was_saved() {
        for (http_status, load_failed, is_saved) in [
            (None, false, true),
            (Some(200), false, true),
            (Some(304), false, true),
            (Some(404), false, false),
            (Some(429), false, false),
            (Some(503), true, false),
            (Some(200), true, false),
            (None, true, false),
        ] {
            for (names_hook, queued, may) in
                [(false, 0, true), (false, 2, true), (true, 0, false), (true, 1, true)]
            {
                let whole = retries_whole_page(http_status, load_failed, names_hook, queued);
                assert_eq!(whole, may && !is_saved, "{http_status:?} {load_failed} {names_hook}");
            }
        }
    }
}
