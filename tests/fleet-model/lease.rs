//! What a node knows of a lease: when its pages may start, and what it tells the database.

use archivist_core::fleet::{BootTime, Held, Lease, Pace, Release};
use std::time::Duration;

/// Whether a page of a leased host may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Yes. The unit must not begin at or after `not_after`, which it checks itself.
    Free { not_after: BootTime },
    /// Not before this time.
    Wait(BootTime),
    /// Only after a renewal: the deadline has passed.
    Ended,
}

/// What a node does with a lease that it holds.
pub trait NodeLease {
    /// Converts the lease of an earlier boot: its deadline has passed, and its last start is
    /// unknown.
    fn rebooted(&mut self, now: BootTime);
    fn standing(&self, now: BootTime) -> Standing;
    /// Notes a start. Call it at the decision, and again with the time at which the unit really
    /// started, which is later if the orchestrator was delayed in between.
    fn started(&mut self, at: BootTime);
    /// Notes what the host asked for: a delay between starts, a time without visits.
    fn asked(&mut self, delay: Option<Duration>, blocked_until: Option<BootTime>);
    /// Returns the lease as a renewal names it.
    fn held(&self, now: BootTime) -> Held;
    /// Returns the request that ends the lease. No page of the host may run or start after it, even
    /// if the reply is lost.
    fn release(&self, now: BootTime) -> Release;
}

impl NodeLease for Lease {
    fn rebooted(&mut self, now: BootTime) {
        self.deadline = BootTime(0);
        self.next_at = now.after(self.delay);
        self.blocked_until = BootTime(0);
    }

    fn standing(&self, now: BootTime) -> Standing {
        let from = self.next_at.max(self.blocked_until);
        if now >= self.deadline {
            Standing::Ended
        } else if now < from {
            Standing::Wait(from)
        } else {
            Standing::Free { not_after: self.deadline }
        }
    }

    fn started(&mut self, at: BootTime) {
        self.next_at = self.next_at.max(at.after(self.delay));
    }

    fn asked(&mut self, delay: Option<Duration>, blocked_until: Option<BootTime>) {
        let longer = delay.filter(|delay| *delay > self.delay);
        if let Some(delay) = longer {
            // The last start was `self.delay` before `next_at`.
            self.next_at = self.next_at.after(delay - self.delay);
            self.delay = delay;
        }
        let blocked = blocked_until.unwrap_or_default();
        self.blocked_until = self.blocked_until.max(blocked);
    }

    fn held(&self, now: BootTime) -> Held {
        Held {
            host: self.host.clone(),
            epoch: self.epoch,
            live: now < self.deadline,
            pace: pace(self, now),
        }
    }

    fn release(&self, now: BootTime) -> Release {
        Release { host: self.host.clone(), epoch: self.epoch, pace: Some(pace(self, now)) }
    }
}

fn pace(lease: &Lease, now: BootTime) -> Pace {
    Pace {
        next_in: lease.next_at.until(now),
        blocked_for: lease.blocked_until.until(now),
        delay: lease.delay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::fleet::{Epoch, HostKey};

    const SECOND: Duration = Duration::from_secs(1);

    fn lease() -> Lease {
        Lease {
            host: HostKey("a.example".into()),
            epoch: Epoch(3),
            deadline: BootTime(271_000),
            next_at: BootTime(13_000),
            blocked_until: BootTime(0),
            delay: 5 * SECOND,
        }
    }

    #[test]
    fn standing_at_each_time() {
        let mut lease = lease();
        let not_after = lease.deadline;
        assert_eq!(lease.standing(BootTime(12_999)), Standing::Wait(BootTime(13_000)));
        assert_eq!(lease.standing(BootTime(13_000)), Standing::Free { not_after });
        lease.started(BootTime(13_000));
        assert_eq!(lease.standing(BootTime(13_001)), Standing::Wait(BootTime(18_000)));
        // The unit began later than decided.
        lease.started(BootTime(15_000));
        assert_eq!(lease.standing(BootTime(18_000)), Standing::Wait(BootTime(20_000)));
        lease.asked(Some(9 * SECOND), Some(BootTime(50_000)));
        assert_eq!(lease.next_at, BootTime(24_000));
        assert_eq!(lease.standing(BootTime(24_000)), Standing::Wait(BootTime(50_000)));
        assert_eq!(lease.standing(not_after), Standing::Ended);
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
}
