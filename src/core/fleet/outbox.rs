//! The outbox of a node: requests that must reach the database, in order. On disk, each entry is a
//! row that is written in the transaction of its cause.

use super::request::Request;
use super::value::BootTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// How long an answered entry is kept, to send it again after a failover to a replica that lost it.
pub const KEEP: Duration = Duration::from_secs(3600);

/// A request that waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Position in the outbox; grows.
    pub number: u64,
    /// Submit, record, give back, or crawl closed.
    pub request: Request,
}

/// An entry and when the database answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    entry: Entry,
    answered: Option<BootTime>,
}

/// All entries of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    kept: VecDeque<Kept>,
    last: u64,
}

impl Outbox {
    /// Appends a request and returns its number.
    pub fn push(&mut self, request: Request) -> u64 {
        self.last += 1;
        let entry = Entry {
            number: self.last,
            request,
        };
        self.kept.push_back(Kept {
            entry,
            answered: None,
        });
        self.last
    }

    /// Returns the unanswered entries, in order.
    pub fn unanswered(&self) -> impl Iterator<Item = &Entry> {
        let open = self.kept.iter().filter(|kept| kept.answered.is_none());
        open.map(|kept| &kept.entry)
    }

    /// Returns the number of the last entry; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns all entries, in order.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.kept.iter().map(|kept| &kept.entry)
    }

    /// Notes the reply to an entry, and drops entries that were kept long enough.
    pub fn answered(&mut self, number: u64, now: BootTime) {
        let mut kept = self.kept.iter_mut();
        if let Some(kept) = kept.find(|kept| kept.entry.number == number) {
            kept.answered = kept.answered.or(Some(now));
        }
        self.kept.retain(|kept| is_kept(kept.answered, now));
    }

    /// Drops an entry whose answer is that the node must discard what the entry is about, or that the
    /// database refuses. A database that forgets this answer must not get the entry again.
    pub fn refused(&mut self, number: u64) {
        self.kept.retain(|kept| kept.entry.number != number);
    }

    /// The database failed over: all kept entries are sent again.
    pub fn resend(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.answered = None);
    }

    /// The clock began again with the boot: answered entries are kept from now on.
    pub fn rebooted(&mut self, now: BootTime) {
        let answered = self
            .kept
            .iter_mut()
            .filter_map(|kept| kept.answered.as_mut());
        answered.for_each(|answered| *answered = now);
    }

    /// Drops the entries that `withdrawn` names, because they are no longer true: a crawl that was
    /// closed and has pages again.
    pub fn withdraw(&mut self, withdrawn: impl Fn(&Request) -> bool) {
        self.kept.retain(|kept| !withdrawn(&kept.entry.request));
    }
}

/// Returns whether an entry is kept: until the database answers it, and for an hour after that.
pub fn is_kept(answered: Option<BootTime>, now: BootTime) -> bool {
    answered.is_none_or(|answered| now < answered.after(KEEP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CrawlId;

    fn closed(crawl: i64) -> Request {
        Request::CrawlClosed {
            crawl: CrawlId(crawl),
        }
    }

    fn numbers(outbox: &Outbox) -> Vec<u64> {
        outbox.unanswered().map(|entry| entry.number).collect()
    }

    #[test]
    fn entries_are_sent_again_in_order_within_an_hour() {
        let mut outbox = Outbox::default();
        for crawl in 1..=3 {
            outbox.push(closed(crawl));
        }
        outbox.answered(1, BootTime(0));
        outbox.answered(2, BootTime(1_000));
        assert_eq!(numbers(&outbox), [3]);
        outbox.answered(3, BootTime(3_600_000));
        outbox.resend();
        assert_eq!(numbers(&outbox), [2, 3]);
    }

    #[test]
    fn reboot_keeps_answered_entries_for_another_hour() {
        let mut outbox = Outbox::default();
        outbox.push(closed(1));
        outbox.answered(1, BootTime(9_000_000));
        outbox.rebooted(BootTime(5));
        outbox.push(closed(2));
        outbox.answered(2, BootTime(3_600_004));
        assert_eq!(outbox.all().count(), 2);
        outbox.answered(2, BootTime(3_600_005));
        assert_eq!(outbox.all().count(), 1);
    }

    #[test]
    fn withdrawn_entries_are_gone() {
        let mut outbox = Outbox::default();
        outbox.push(closed(1));
        outbox.push(closed(2));
        outbox.withdraw(|request| *request == closed(1));
        assert_eq!(numbers(&outbox), [2]);
        assert_eq!(outbox.push(closed(1)), 3);
        outbox.refused(2);
        outbox.resend();
        assert_eq!(numbers(&outbox), [3]);
    }
}
