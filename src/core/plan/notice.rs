//! Which changes the signals of the bus report.

use crate::model::{Owner, Step};

/// Signals that a turn may leave out after this number. A turn that changes more pages, as when a
/// large crawl is cancelled, reports the rest with the signal about the crawl.
pub const NOTICES_MAX: usize = 256;

/// What a signal reports about a crawl or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// It was queued for the first time.
    Added,
    /// It gets a worker.
    Started,
    /// It is finished, with success or not.
    Sealed,
    Cancelled,
    /// It was paused, resumed or queued again.
    Changed,
}

impl Notice {
    /// Every notice.
    pub const ALL: [Notice; 5] =
        [Notice::Added, Notice::Started, Notice::Sealed, Notice::Cancelled, Notice::Changed];

    pub fn of(step: Step) -> Notice {
        match step {
            Step::Start => Notice::Started,
            Step::Seal => Notice::Sealed,
            Step::Cancel => Notice::Cancelled,
            Step::Requeue | Step::Pause | Step::Resume | Step::Continue | Step::Retry => {
                Notice::Changed
            }
        }
    }

    /// Whether this is the last notice, unless a user retries the crawl or page.
    pub fn is_end(self) -> bool {
        matches!(self, Notice::Sealed | Notice::Cancelled)
    }
}

/// Whether a turn that has sent `sent` signals sends another one about `owner`. Crawls are few, so
/// that the signals about them are sent, unless a retry changes very many; those about pages
/// require a subscriber.
pub fn is_announced(owner: Owner, notice: Notice, sent: usize, is_subscribed: bool) -> bool {
    match owner {
        Owner::Crawl(_) => notice != Notice::Changed || sent < NOTICES_MAX,
        Owner::Snapshot(_) => is_subscribed && sent < NOTICES_MAX,
    }
}

/// Whether the last work ends in a turn that ended a crawl or not; `is_open`: a crawl is queued,
/// started or paused after it. Checks of watches do not count: they end many times an hour.
pub fn becomes_idle(has_ended: bool, is_open: bool) -> bool {
    has_ended && !is_open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CrawlId, SnapshotId};

    #[test]
    fn notice_of_every_step() {
        let table = [
            (Step::Start, Notice::Started),
            (Step::Requeue, Notice::Changed),
            (Step::Seal, Notice::Sealed),
            (Step::Pause, Notice::Changed),
            (Step::Resume, Notice::Changed),
            (Step::Continue, Notice::Changed),
            (Step::Cancel, Notice::Cancelled),
            (Step::Retry, Notice::Changed),
        ];
        for (step, notice) in table {
            assert_eq!(Notice::of(step), notice, "{step}");
        }
        let ends = Notice::ALL.map(Notice::is_end);
        assert_eq!(ends, [false, false, true, true, false]);
    }

    #[test]
    fn pages_are_announced_to_subscribers_up_to_the_limit_of_a_turn() {
        let (crawl, page) = (Owner::Crawl(CrawlId(1)), Owner::Snapshot(SnapshotId(1)));
        for sent in [0, NOTICES_MAX - 1, NOTICES_MAX] {
            let fits = sent < NOTICES_MAX;
            for notice in Notice::ALL {
                let always = notice != Notice::Changed;
                assert_eq!(is_announced(crawl, notice, sent, false), always || fits);
                assert!(!is_announced(page, notice, sent, false), "{notice:?}");
                assert_eq!(is_announced(page, notice, sent, true), fits);
            }
        }
    }

    #[test]
    fn idleness_begins_with_the_end_of_the_last_crawl() {
        assert!(becomes_idle(true, false));
        assert!(!becomes_idle(true, true));
        assert!(!becomes_idle(false, false), "an orchestrator that starts");
    }
}
