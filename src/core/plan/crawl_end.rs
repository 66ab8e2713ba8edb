//! Whether a crawl ended with success: the exit status of commands that wait for it, and the units
//! that start at its end.

use super::notice::Notice;
use crate::model::Lifecycle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlEnd {
    pub status: Lifecycle,
    /// A reason for the state is recorded: something failed or was left out.
    pub has_reason: bool,
    /// Results that failed, of the crawl and its pages.
    pub failed_results: u64,
    /// Pages that were cancelled, or sealed with a reason or with the document of an HTTP error.
    pub bad_pages: u64,
}

impl CrawlEnd {
    /// Whether the crawl is sealed, and nothing of it failed, was cancelled or left out.
    pub fn is_success(&self) -> bool {
        self.status == Lifecycle::Sealed
            && !self.has_reason
            && self.failed_results == 0
            && self.bad_pages == 0
    }
}

crate::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Occasion {
        /// `OnSealed=`: a crawl was sealed with success.
        Sealed = "sealed",
        /// `OnFailed=`: a crawl was sealed, and something of it failed.
        Failed = "failed",
        /// `OnIdle=`: the last open crawl has ended.
        Idle = "idle",
    }
}

impl Occasion {
    /// Returns the occasion of a change of a crawl. A crawl that a user cancelled is none: the user
    /// knows.
    pub fn of(notice: Notice, end: &CrawlEnd) -> Option<Occasion> {
        match notice {
            Notice::Sealed if end.is_success() => Some(Occasion::Sealed),
            Notice::Sealed => Some(Occasion::Failed),
            Notice::Added | Notice::Started | Notice::Cancelled | Notice::Changed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: CrawlEnd =
        CrawlEnd { status: Lifecycle::Sealed, has_reason: false, failed_results: 0, bad_pages: 0 };

    #[test]
    fn any_failure_makes_the_end_of_a_crawl_a_failure() {
        let bad = [
            CrawlEnd { has_reason: true, ..GOOD },
            CrawlEnd { failed_results: 1, ..GOOD },
            CrawlEnd { bad_pages: 1, ..GOOD },
        ];
        assert_eq!(Occasion::of(Notice::Sealed, &GOOD), Some(Occasion::Sealed));
        for end in bad {
            assert!(!end.is_success(), "{end:?}");
            assert_eq!(Occasion::of(Notice::Sealed, &end), Some(Occasion::Failed));
        }
        for status in Lifecycle::ALL {
            let end = CrawlEnd { status, ..GOOD };
            assert_eq!(end.is_success(), status == Lifecycle::Sealed, "{status}");
        }
    }

    #[test]
    fn only_the_seal_of_a_crawl_is_an_occasion() {
        for notice in Notice::ALL {
            let occasion = Occasion::of(notice, &GOOD);
            assert_eq!(occasion.is_some(), notice == Notice::Sealed, "{notice:?}");
        }
    }
}
