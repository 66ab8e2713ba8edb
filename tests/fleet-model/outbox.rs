//! The outbox as a value.

use archivist_core::fleet::{BootTime, KEEP, KEEP_LONG, NodeRequest, OutboxEntry, is_kept_long};
use std::collections::VecDeque;

/// An entry and when the database answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    entry: OutboxEntry,
    answered: Option<BootTime>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    kept: VecDeque<Kept>,
    last: u64,
}

impl Outbox {
    pub fn push(&mut self, request: NodeRequest) -> u64 {
        self.last += 1;
        let entry = OutboxEntry { number: self.last, request };
        self.kept.push_back(Kept { entry, answered: None });
        self.last
    }

    pub fn unanswered(&self) -> impl Iterator<Item = &OutboxEntry> {
        let open = self.kept.iter().filter(|kept| kept.answered.is_none());
        open.map(|kept| &kept.entry)
    }

    /// Returns the number of the last entry; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the request of an entry, if it is kept.
    pub fn request(&self, number: u64) -> Option<&NodeRequest> {
        let mut entries = self.all();
        let entry = entries.find(|entry| entry.number == number);
        entry.map(|entry| &entry.request)
    }

    pub fn all(&self) -> impl Iterator<Item = &OutboxEntry> {
        self.kept.iter().map(|kept| &kept.entry)
    }

    /// Notes the reply to an entry, and drops entries that were kept long enough.
    pub fn answered(&mut self, number: u64, now: BootTime) {
        let mut kept = self.kept.iter_mut();
        if let Some(kept) = kept.find(|kept| kept.entry.number == number) {
            kept.answered = kept.answered.or(Some(now));
        }
        self.kept.retain(|kept| kept.stays(now));
    }

    /// Drops an entry whose answer is that the node must discard what the entry is about, or that the
    /// database refuses. A database that forgets this answer must not get the entry again.
    pub fn refused(&mut self, number: u64) {
        self.kept.retain(|kept| kept.entry.number != number);
    }

    /// The database failed over, or was restored: kept entries that were answered since this time are
    /// sent again.
    pub fn resend(&mut self, since: BootTime) {
        let lost = |kept: &&mut Kept| kept.answered.is_some_and(|answered| answered >= since);
        let lost = self.kept.iter_mut().filter(lost);
        lost.for_each(|kept| kept.answered = None);
    }

    /// The clock began again with the boot: answered entries are kept from now on.
    pub fn rebooted(&mut self, now: BootTime) {
        let answered = self.kept.iter_mut().filter_map(|kept| kept.answered.as_mut());
        answered.for_each(|answered| *answered = now);
    }

    /// Drops the entries that `withdrawn` names, because they are no longer true: a crawl that was
    /// closed and has pages again.
    pub fn withdraw(&mut self, withdrawn: impl Fn(&NodeRequest) -> bool) {
        self.kept.retain(|kept| !withdrawn(&kept.entry.request));
    }
}

impl Kept {
    /// Returns whether an entry is kept: until the database answers it, and for a while after that.
    fn stays(&self, now: BootTime) -> bool {
        let keep = if is_kept_long(&self.entry.request) { KEEP_LONG } else { KEEP };
        self.answered.is_none_or(|answered| now < answered.after(keep))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::fleet::Epoch;
    use archivist_core::model::{CrawlId, SnapshotId};

    fn closed(crawl: i64) -> NodeRequest {
        NodeRequest::CrawlClosed { crawl: CrawlId(crawl) }
    }

    fn numbers(outbox: &Outbox) -> Vec<u64> {
        outbox.unanswered().map(|entry| entry.number).collect()
    }

    fn given_back(page: i64) -> NodeRequest {
        NodeRequest::GiveBack { page: SnapshotId(page), epoch: Epoch(1) }
    }

    #[test]
    fn entries_are_sent_again_in_order_within_an_hour() {
        let mut outbox = Outbox::default();
        for page in 1..=3 {
            outbox.push(given_back(page));
        }
        outbox.answered(1, BootTime(0));
        outbox.answered(2, BootTime(1_000));
        assert_eq!(numbers(&outbox), [3]);
        outbox.answered(3, BootTime(3_600_000));
        outbox.resend(BootTime(0));
        assert_eq!(numbers(&outbox), [2, 3]);
    }

    #[test]
    fn what_rows_do_not_have_is_kept_for_days_and_sent_again_if_it_is_later() {
        let mut outbox = Outbox::default();
        outbox.push(closed(1));
        outbox.push(closed(2));
        outbox.push(given_back(3));
        let day = |days: u64| BootTime(days * 86_400_000);
        for (number, days) in [(1, 0), (2, 5), (3, 6)] {
            outbox.answered(number, day(days));
        }
        outbox.resend(day(6));
        assert_eq!(numbers(&outbox), [3]);
        outbox.answered(3, day(6));
        outbox.resend(day(5));
        assert_eq!(numbers(&outbox), [2, 3]);
        // After a week, the first one is gone.
        outbox.answered(3, day(7));
        outbox.answered(2, day(7));
        outbox.resend(day(0));
        assert_eq!(numbers(&outbox), [2, 3]);
    }

    #[test]
    fn reboot_keeps_answered_entries_for_another_hour() {
        let mut outbox = Outbox::default();
        outbox.push(given_back(1));
        outbox.answered(1, BootTime(9_000_000));
        outbox.rebooted(BootTime(5));
        outbox.push(given_back(2));
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
        outbox.resend(BootTime(0));
        assert_eq!(numbers(&outbox), [3]);
    }
}
