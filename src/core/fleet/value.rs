//! Ids, epochs and times of the protocol.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

pub const SCHEMA: u32 = 1;

pub const FLEET_USER: &str = "archivist-fleet";

/// Highest id of a crawl or page of a fleet. The ids of a machine that leaves a fleet continue above, and
/// SQLite has none after the highest 64-bit number.
pub const ID_MAX: i64 = 1 << 53;

/// Shortest duration of a lease that leaves time to work after its margin.
pub const LEASE_MIN: Duration = Duration::from_secs(30);

const MARGIN_MIN: Duration = Duration::from_secs(15);

/// Returns how long before the end of a lease, as the database sees it, the node stops its pages:
/// a tenth of the lease, at least 15 s, at most half of the lease. It covers clocks that differ in
/// speed by up to 2 % and the time that units need to end.
pub fn margin(lease: Duration) -> Duration {
    (lease / 10).max(MARGIN_MIN).min(lease / 2)
}

/// Allowed names of nodes, for messages.
pub const NODE_NAME_ALLOWED: &str =
    "letters, digits, '.', '-' and '_', 63 at most, beginning with a letter or digit";

/// Returns whether a node can have this name ([`NODE_NAME_ALLOWED`]).
pub fn is_node_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(
            /// As in the database.
            pub i64,
        );

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Number of a node, from 1.
    NodeId
);
number!(
    /// Number of a connection of a node: grows with each hello.
    Incarnation
);
number!(
    /// Number of failovers of the database, from 0.
    Generation
);
number!(
    /// Number of a claim of a host, from 1; 0 if the host was never claimed. The upper 31 bits are
    /// the generation in which it was claimed, so an epoch is never given twice.
    Epoch
);

impl Generation {
    /// Returns a number that all epochs of earlier generations are less than.
    pub fn floor(self) -> Epoch {
        Epoch(self.0 << 32)
    }
}

impl Epoch {
    /// Returns the epoch of the next claim of a host that has this one.
    pub fn next(self, generation: Generation) -> Epoch {
        Epoch(self.0.max(generation.floor().0) + 1)
    }
}

/// What the delay between two starts applies to: the name of a web server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostKey(pub String);

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sender of a request, from the reply to its hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub node: NodeId,
    pub incarnation: Incarnation,
}

/// A time on CLOCK_BOOTTIME, in milliseconds since the boot. Orchestrator and fleet service of a
/// machine read the same clock. It has no meaning in another boot.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BootTime(pub u64);

impl BootTime {
    /// Returns this time plus `duration`, saturating.
    pub fn after(self, duration: Duration) -> BootTime {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        BootTime(self.0.saturating_add(millis))
    }

    /// Returns this time minus `duration`; the boot if that is earlier.
    pub fn before(self, duration: Duration) -> BootTime {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        BootTime(self.0.saturating_sub(millis))
    }

    /// Returns the time from `now` until this time; zero if it has passed.
    pub fn until(self, now: BootTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(now.0))
    }
}

/// Durations on the wire: whole milliseconds.
pub(super) mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// [`millis`] for durations that may be missing.
pub(super) mod maybe_millis {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_a_tenth_within_bounds() {
        let margin = |seconds| margin(Duration::from_secs(seconds)).as_secs();
        assert_eq!((margin(300), margin(60), margin(20)), (30, 15, 10));
    }

    #[test]
    fn epochs_of_a_generation_exceed_those_of_earlier_generations() {
        let first = Epoch(7).next(Generation(0));
        assert_eq!(first, Epoch(8));
        let second = first.next(Generation(1));
        assert_eq!(second, Epoch((1 << 32) + 1));
        assert_eq!(second.next(Generation(1)), Epoch((1 << 32) + 2));
    }

    #[test]
    fn names_of_nodes() {
        for good in ["web2", "a", "db-1.example.org", "n_1"] {
            assert!(is_node_name(good), "{good}");
        }
        let long = "x".repeat(64);
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", "a\n", &long] {
            assert!(!is_node_name(bad), "{bad}");
        }
    }

    #[test]
    fn boot_times_saturate() {
        let at = BootTime(5_000);
        assert_eq!(at.before(Duration::from_secs(9)), BootTime(0));
        assert_eq!(at.after(Duration::MAX), BootTime(u64::MAX));
        assert_eq!(at.until(BootTime(2_000)), Duration::from_secs(3));
        assert_eq!(at.until(BootTime(9_000)), Duration::ZERO);
    }
}
