//! Hook families: the first word of a hook's file name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The family of a hook: when it runs, and which generation of the contract it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Event {
    /// Find or install one program (modern).
    BinaryRequest,
    /// Once per crawl, before its snapshots (modern).
    CrawlSetup,
    /// Once per page (both generations).
    Snapshot,
    /// Find or install one program (older).
    Binary,
    /// Once per crawl, before its snapshots (older).
    Crawl,
    /// Once per crawl, after its snapshots (older).
    CrawlEnd,
    /// After a crawl's daemons have ended; known as a name only.
    CrawlCleanup,
    /// After a snapshot's daemons have ended; known as a name only.
    SnapshotCleanup,
}

/// What a family belongs to: hooks of one owner live in one name space of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Crawl,
    Snapshot,
    Binary,
}

impl Event {
    pub const ALL: [Event; 8] = [
        Event::BinaryRequest,
        Event::CrawlSetup,
        Event::Snapshot,
        Event::Binary,
        Event::Crawl,
        Event::CrawlEnd,
        Event::CrawlCleanup,
        Event::SnapshotCleanup,
    ];

    /// The word in the file name.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::BinaryRequest => "BinaryRequest",
            Event::CrawlSetup => "CrawlSetup",
            Event::Snapshot => "Snapshot",
            Event::Binary => "Binary",
            Event::Crawl => "Crawl",
            Event::CrawlEnd => "CrawlEnd",
            Event::CrawlCleanup => "CrawlCleanup",
            Event::SnapshotCleanup => "SnapshotCleanup",
        }
    }

    /// Whether only the modern contract has this family. `Snapshot` exists in both and is not.
    pub fn is_modern(self) -> bool {
        matches!(
            self,
            Event::BinaryRequest | Event::CrawlSetup | Event::CrawlCleanup | Event::SnapshotCleanup
        )
    }

    pub fn owner(self) -> Owner {
        match self {
            Event::BinaryRequest | Event::Binary => Owner::Binary,
            Event::Snapshot | Event::SnapshotCleanup => Owner::Snapshot,
            Event::CrawlSetup | Event::Crawl | Event::CrawlEnd | Event::CrawlCleanup => {
                Owner::Crawl
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A family name that neither generation of the contract knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown hook family '{0}'")]
pub struct UnknownEvent(pub String);

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Event::ALL
            .into_iter()
            .find(|event| event.as_str() == text)
            .ok_or_else(|| UnknownEvent(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_round_trip() {
        for event in Event::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
        }
        assert!("Chapter".parse::<Event>().is_err());
        assert!(Event::CrawlSetup.is_modern() && !Event::Crawl.is_modern());
    }
}
