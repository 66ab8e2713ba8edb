//! What the report of a worker means: when its pages are queued, and which of them.

use crate::model::{Lifecycle, Owner, ResultState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    Page,
    /// A crawl whose pages have not begun: it may add to them.
    Setup,
    /// A crawl after its setup: no worker is left for further pages.
    End,
}

impl Reporter {
    /// The reporter for an owner; `ready`: the setup of the crawl is done.
    pub fn of(owner: Owner, ready: bool) -> Reporter {
        match owner {
            Owner::Snapshot(_) => Reporter::Page,
            Owner::Crawl(_) if ready => Reporter::End,
            Owner::Crawl(_) => Reporter::Setup,
        }
    }

    /// Whether pages that the hook found are queued.
    pub fn takes_children(self) -> bool {
        self != Reporter::End
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStep {
    /// Queue the next pages of a long report; the result is recorded after the last.
    QueueChildren,
    Record,
}

/// Decides how a turn continues with a report. `is_short`: all its pages fit into the turn that
/// records the result; `is_rest_empty`: all pages are queued; `result`: its state so far.
pub fn report_step(
    reporter: Reporter,
    is_short: bool,
    is_rest_empty: bool,
    result: Option<ResultState>,
) -> ReportStep {
    let too_late = result.is_some_and(ResultState::is_final);
    if is_short || is_rest_empty || too_late || !reporter.takes_children() {
        ReportStep::Record
    } else {
        ReportStep::QueueChildren
    }
}

/// Whether pages at this depth are queued for a crawl.
pub fn takes_depth(status: Lifecycle, depth: u32, max_depth: u32) -> bool {
    depth <= max_depth && !status.is_final()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CrawlId, SnapshotId};

    #[test]
    fn reporters_by_owner() {
        let (crawl, page) = (Owner::Crawl(CrawlId(1)), Owner::Snapshot(SnapshotId(1)));
        let table = [
            (crawl, false, Reporter::Setup, true),
            (crawl, true, Reporter::End, false),
            (page, false, Reporter::Page, true),
            (page, true, Reporter::Page, true),
        ];
        for (owner, ready, reporter, takes) in table {
            assert_eq!(Reporter::of(owner, ready), reporter);
            assert_eq!(reporter.takes_children(), takes);
        }
    }

    #[test]
    fn children_are_queued_first_only_of_a_long_report_that_counts() {
        use ReportStep::{QueueChildren, Record};
        // No result, then in the order of ALL.
        let of_long = [
            QueueChildren,
            QueueChildren,
            QueueChildren,
            QueueChildren,
            Record,
            Record,
            Record,
            Record,
        ];
        let results = || std::iter::once(None).chain(ResultState::ALL.map(Some));
        for reporter in [Reporter::Page, Reporter::Setup, Reporter::End] {
            for (result, want) in results().zip(of_long) {
                let want = match reporter {
                    Reporter::End => Record,
                    _ => want,
                };
                assert_eq!(report_step(reporter, false, false, result), want);
                assert_eq!(report_step(reporter, false, true, result), Record);
                assert_eq!(report_step(reporter, true, false, result), Record);
                assert_eq!(report_step(reporter, true, true, result), Record);
            }
        }
    }

    #[test]
    fn depth_and_state_limit_pages() {
        // In the order of ALL.
        let open = [true, true, false, true, false];
        for (status, open) in Lifecycle::ALL.into_iter().zip(open) {
            assert_eq!(takes_depth(status, 1, 1), open, "{status}");
            assert!(!takes_depth(status, 2, 1), "{status}");
        }
    }
}
