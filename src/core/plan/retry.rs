//! What a retry means in every state.

use crate::model::Lifecycle;

/// What a retry of a page leads to.
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
    Retry {
        results,
        requeue: results > 0 && status.is_final(),
    }
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
                let want = Retry {
                    results,
                    requeue: results > 0 && requeues[n],
                };
                assert_eq!(
                    retry(status, requeued, of_all, has_reason),
                    want,
                    "{status}"
                );
            }
        }
    }
}
