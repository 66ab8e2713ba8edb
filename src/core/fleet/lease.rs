//! A lease as its node sees it, on the clock of the present boot. These rules keep the politeness of
//! a host, whatever the database, the fleet service and the network do.

use super::value::{BootTime, Epoch, HostKey, margin};
use super::{Grant, Renewal};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A lease that the orchestrator holds; on disk, with the boot to which its times belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub host: HostKey,
    pub epoch: Epoch,
    /// No page starts, and no page runs, from this time on.
    pub deadline: BootTime,
    /// No page starts before: the time in the grant, or the last start plus the delay.
    pub next_at: BootTime,
    /// The host asked not to be visited before.
    pub blocked_until: BootTime,
    #[serde(with = "super::value::millis")]
    pub delay: Duration,
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
}

fn deadline(sent: BootTime, lease: Duration) -> BootTime {
    sent.after(lease.saturating_sub(margin(lease)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease of 300 s that was requested at 1 s and received at 9 s.
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
}
