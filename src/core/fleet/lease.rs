//! A lease as its node sees it, on the clock of the present boot. These rules keep the politeness of
//! a host, whatever the database, the fleet service and the network do.

use super::request::{Held, Pace, Release};
use super::value::{BootTime, Epoch, HostKey, margin};
use super::{Grant, Renewal};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A lease that the orchestrator holds; on disk, with the boot to which its times belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The host.
    pub host: HostKey,
    /// Number of the claim.
    pub epoch: Epoch,
    /// No page starts, and no page runs, from this time on.
    pub deadline: BootTime,
    /// No page starts before: the time in the grant, or the last start plus the delay.
    pub next_at: BootTime,
    /// The host asked not to be visited before.
    pub blocked_until: BootTime,
    /// Delay between two starts.
    #[serde(with = "super::value::millis")]
    pub delay: Duration,
}

/// Whether a page of a leased host may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Yes. The unit must not begin at or after `not_after`, which it checks itself.
    Free {
        /// Deadline of the lease.
        not_after: BootTime,
    },
    /// Not before this time.
    Wait(BootTime),
    /// Only after a renewal: the deadline has passed.
    Ended,
}

/// What follows for a page that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRight {
    /// The page runs on. The next look is due at this time.
    Until(BootTime),
    /// The deadline has passed: stop the page and queue it again without counting an attempt. It
    /// starts again if the lease is renewed.
    Ended,
    /// The lease is lost: stop the page, discard its results, and remove it from the queue.
    Lost,
}

impl Lease {
    /// Returns the lease of a grant. `sent`: when the claim left; `now`: after the receipt of the
    /// reply; `delay`: what the node observes at least.
    pub fn granted(grant: &Grant, sent: BootTime, now: BootTime, delay: Duration) -> Lease {
        Lease {
            host: grant.host.clone(),
            epoch: grant.epoch,
            deadline: deadline(sent, grant.lease),
            next_at: now.after(grant.due_in),
            blocked_until: BootTime(0),
            delay: grant.delay.max(delay),
        }
    }

    /// Extends the lease. `sent`: when the renewal left; `now`: after the receipt of the reply.
    pub fn renew(&mut self, renewal: &Renewal, sent: BootTime, now: BootTime) {
        self.deadline = self.deadline.max(deadline(sent, renewal.lease));
        self.next_at = self.next_at.max(now.after(renewal.due_in));
    }

    /// Converts the lease of an earlier boot: its deadline has passed, and its last start is
    /// unknown.
    pub fn rebooted(&mut self, now: BootTime) {
        self.deadline = BootTime(0);
        self.next_at = now.after(self.delay);
        self.blocked_until = BootTime(0);
    }

    /// Returns whether a page may start.
    pub fn standing(&self, now: BootTime) -> Standing {
        let from = self.next_at.max(self.blocked_until);
        if now >= self.deadline {
            Standing::Ended
        } else if now < from {
            Standing::Wait(from)
        } else {
            Standing::Free {
                not_after: self.deadline,
            }
        }
    }

    /// Notes a start. Call it at the decision, and again with the time at which the unit really
    /// started, which is later if the orchestrator was delayed in between.
    pub fn started(&mut self, at: BootTime) {
        self.next_at = self.next_at.max(at.after(self.delay));
    }

    /// Notes what the host asked for: a delay between starts, a time without visits.
    pub fn asked(&mut self, delay: Option<Duration>, blocked_until: Option<BootTime>) {
        let longer = delay.filter(|delay| *delay > self.delay);
        if let Some(delay) = longer {
            // The last start was `self.delay` before `next_at`.
            self.next_at = self.next_at.after(delay - self.delay);
            self.delay = delay;
        }
        let blocked = blocked_until.unwrap_or_default();
        self.blocked_until = self.blocked_until.max(blocked);
    }

    /// Returns the lease as a renewal names it.
    pub fn held(&self, now: BootTime) -> Held {
        Held {
            host: self.host.clone(),
            epoch: self.epoch,
            live: now < self.deadline,
            pace: self.pace(now),
        }
    }

    /// Returns the request that ends the lease. No page of the host may run or start after it, even
    /// if the reply is lost.
    pub fn release(&self, now: BootTime) -> Release {
        Release {
            host: self.host.clone(),
            epoch: self.epoch,
            pace: Some(self.pace(now)),
        }
    }

    fn pace(&self, now: BootTime) -> Pace {
        Pace {
            next_in: self.next_at.until(now),
            blocked_for: self.blocked_until.until(now),
            delay: self.delay,
        }
    }
}

fn deadline(sent: BootTime, lease: Duration) -> BootTime {
    sent.after(lease.saturating_sub(margin(lease)))
}

/// Returns what follows for a page that was handed to this node under `epoch`. `lease`: what the
/// node holds of its host.
pub fn right(lease: Option<&Lease>, epoch: Epoch, now: BootTime) -> PageRight {
    match lease {
        Some(lease) if lease.epoch != epoch => PageRight::Lost,
        Some(lease) if now < lease.deadline => PageRight::Until(lease.deadline),
        Some(_) => PageRight::Ended,
        None => PageRight::Lost,
    }
}

/// Returns whether the end of a page goes into the outbox: while the node has not learned that the
/// lease is lost, even after its deadline.
pub fn is_recorded(lease: Option<&Lease>, epoch: Epoch) -> bool {
    lease.is_some_and(|lease| lease.epoch == epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lease() -> Lease {
        let grant = Grant {
            host: HostKey("a.example".into()),
            epoch: Epoch(3),
            lease: 300 * SECOND,
            due_in: 4 * SECOND,
            delay: 5 * SECOND,
            pages: Vec::new(),
        };
        Lease::granted(&grant, BootTime(1_000), BootTime(9_000), SECOND)
    }

    #[test]
    fn deadline_counts_from_sending_and_due_from_receipt() {
        let lease = lease();
        assert_eq!(lease.deadline, BootTime(1_000 + 270_000));
        assert_eq!(lease.next_at, BootTime(9_000 + 4_000));
        assert_eq!(lease.delay, 5 * SECOND);
    }

    #[test]
    fn standing_at_each_time() {
        let mut lease = lease();
        let not_after = lease.deadline;
        assert_eq!(
            lease.standing(BootTime(12_999)),
            Standing::Wait(BootTime(13_000))
        );
        assert_eq!(
            lease.standing(BootTime(13_000)),
            Standing::Free { not_after }
        );
        lease.started(BootTime(13_000));
        assert_eq!(
            lease.standing(BootTime(13_001)),
            Standing::Wait(BootTime(18_000))
        );
        // The unit began later than decided.
        lease.started(BootTime(15_000));
        assert_eq!(
            lease.standing(BootTime(18_000)),
            Standing::Wait(BootTime(20_000))
        );
        lease.asked(Some(9 * SECOND), Some(BootTime(50_000)));
        assert_eq!(lease.next_at, BootTime(24_000));
        assert_eq!(
            lease.standing(BootTime(24_000)),
            Standing::Wait(BootTime(50_000))
        );
        assert_eq!(lease.standing(not_after), Standing::Ended);
    }

    #[test]
    fn renewal_never_shortens_a_lease() {
        let mut lease = lease();
        let renewal = Renewal {
            host: lease.host.clone(),
            epoch: lease.epoch,
            lease: 300 * SECOND,
            due_in: Duration::ZERO,
            pages: Vec::new(),
        };
        lease.renew(&renewal, BootTime(500), BootTime(9_000));
        assert_eq!(lease.deadline, BootTime(271_000));
        lease.renew(&renewal, BootTime(80_000), BootTime(80_100));
        assert_eq!(lease.deadline, BootTime(350_000));
    }

    #[test]
    fn rebooted_node_waits_for_renewal_and_one_delay() {
        let mut lease = lease();
        lease.started(BootTime(200_000));
        lease.rebooted(BootTime(3_000));
        assert_eq!(lease.standing(BootTime(3_000)), Standing::Ended);
        let held = lease.held(BootTime(3_000));
        assert!(!held.live);
        assert_eq!(held.pace.next_in, 5 * SECOND);
    }

    #[test]
    fn rights_of_pages() {
        let lease = lease();
        let (now, end) = (BootTime(20_000), lease.deadline);
        let right = |epoch, now| super::right(Some(&lease), Epoch(epoch), now);
        assert_eq!(right(3, now), PageRight::Until(end));
        assert_eq!(right(3, end), PageRight::Ended);
        assert_eq!(right(2, now), PageRight::Lost);
        assert_eq!(super::right(None, Epoch(3), now), PageRight::Lost);
        assert!(is_recorded(Some(&lease), Epoch(3)));
        assert!(!is_recorded(Some(&lease), Epoch(2)));
        assert!(!is_recorded(None, Epoch(3)));
    }
}
