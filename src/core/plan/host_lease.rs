//! Which machine may start the pages of a host. In a fleet a node leases the host from the database
//! until a deadline on its own boot clock, so that two nodes never work on one host, whatever
//! connection or clock fails. The rules of leases are in `core/fleet`.

use crate::model::Time;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLease {
    #[default]
    NotNeeded,
    /// In a fleet, without a lease of the host.
    Missing,
    /// In a fleet: the host is for another node, as soon as no page of it runs.
    Leaving,
    /// In a fleet: no page starts at this time or later.
    Until(Time),
}

/// A lease as the database of the node records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLease {
    /// No page of the host runs from this time on, in milliseconds on CLOCK_BOOTTIME.
    pub deadline: i64,
    /// Whether the clock has not started again since.
    pub of_this_boot: bool,
}

impl RecordedLease {
    /// Whether the deadline has not passed.
    pub fn is_live(&self, clocks: &Clocks) -> bool {
        self.of_this_boot && self.deadline > clocks.machine
    }
}

/// The present time on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub now: Time,
    /// CLOCK_BOOTTIME, in milliseconds.
    pub machine: i64,
}

impl Clocks {
    /// Returns the wall-clock time at which the machine clock will show `machine`, if the wall clock
    /// is not set until then.
    pub fn wall(&self, machine: i64) -> Time {
        Time(self.now.0.saturating_add(machine.saturating_sub(self.machine)))
    }
}

impl HostLease {
    /// Returns what a recorded lease means now for a node of a fleet.
    pub fn of(recorded: Option<RecordedLease>, clocks: &Clocks) -> HostLease {
        match recorded {
            Some(lease) if lease.is_live(clocks) => HostLease::Until(clocks.wall(lease.deadline)),
            _ => HostLease::Missing,
        }
    }

    /// Whether a page may start at `now`.
    pub fn allows(self, now: Time) -> bool {
        match self {
            HostLease::NotNeeded => true,
            HostLease::Missing | HostLease::Leaving => false,
            HostLease::Until(end) => now < end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: Clocks = Clocks { now: Time(1_000_000), machine: 5_000 };

    fn lease(deadline: i64, of_this_boot: bool) -> HostLease {
        let recorded = RecordedLease { deadline, of_this_boot };
        HostLease::of(Some(recorded), &CLOCKS)
    }

    #[test]
    fn lease_allows_starts_until_its_deadline() {
        let held = lease(5_001, true);
        assert_eq!(held, HostLease::Until(Time(1_000_001)));
        assert!(held.allows(Time(1_000_000)));
        assert!(!held.allows(Time(1_000_001)));
        assert_eq!(lease(5_000, true), HostLease::Missing);
    }

    #[test]
    fn lease_of_an_earlier_boot_is_none() {
        assert_eq!(lease(99_000, false), HostLease::Missing);
        assert_eq!(HostLease::of(None, &CLOCKS), HostLease::Missing);
        assert!(!HostLease::Missing.allows(Time(0)));
    }

    #[test]
    fn setting_the_wall_clock_moves_no_lease() {
        let clocks = Clocks { now: Time(CLOCKS.now.0 - 86_400_000), ..CLOCKS };
        let recorded = RecordedLease { deadline: 6_000, of_this_boot: true };
        let held = HostLease::of(Some(recorded), &clocks);
        assert_eq!(held, HostLease::Until(Time(clocks.now.0 + 1_000)));
    }
}
