//! Hook families: the first word in a hook's file name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Family of a hook: when it runs, and which generation of the contract it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HookFamily {
    /// Finds or installs a program (modern).
    BinaryRequest,
    /// Runs once per crawl, before its snapshots (modern).
    CrawlSetup,
    /// Runs once per page (both generations).
    Snapshot,
    /// Finds or installs a program (older).
    Binary,
    /// Runs once per crawl, before its snapshots (older).
    Crawl,
    /// Runs once per crawl, after its snapshots (older).
    CrawlEnd,
    /// Runs after a crawl's daemons have ended.
    CrawlCleanup,
    /// Runs after a snapshot's daemons have ended.
    SnapshotCleanup,
}

/// What a family belongs to. Hooks with the same owner share a name space for units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The crawl: its setup and its last hooks.
    Crawl,
    /// One page.
    Snapshot,
    /// A request for a program, in a crawl of its own.
    Binary,
}

impl HookFamily {
    /// Every family.
    pub const ALL: [HookFamily; 8] = [
        HookFamily::BinaryRequest,
        HookFamily::CrawlSetup,
        HookFamily::Snapshot,
        HookFamily::Binary,
        HookFamily::Crawl,
        HookFamily::CrawlEnd,
        HookFamily::CrawlCleanup,
        HookFamily::SnapshotCleanup,
    ];

    /// The word in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            HookFamily::BinaryRequest => "BinaryRequest",
            HookFamily::CrawlSetup => "CrawlSetup",
            HookFamily::Snapshot => "Snapshot",
            HookFamily::Binary => "Binary",
            HookFamily::Crawl => "Crawl",
            HookFamily::CrawlEnd => "CrawlEnd",
            HookFamily::CrawlCleanup => "CrawlCleanup",
            HookFamily::SnapshotCleanup => "SnapshotCleanup",
        }
    }

    /// Whether only the modern generation has this family. False for `Snapshot`, which both have.
    pub fn is_modern(self) -> bool {
        matches!(
            self,
            HookFamily::BinaryRequest
                | HookFamily::CrawlSetup
                | HookFamily::CrawlCleanup
                | HookFamily::SnapshotCleanup
        )
    }

    /// Returns what a hook of this family works on.
    pub fn owner(self) -> Owner {
        match self {
            HookFamily::BinaryRequest | HookFamily::Binary => Owner::Binary,
            HookFamily::Snapshot | HookFamily::SnapshotCleanup => Owner::Snapshot,
            HookFamily::CrawlSetup
            | HookFamily::Crawl
            | HookFamily::CrawlEnd
            | HookFamily::CrawlCleanup => Owner::Crawl,
        }
    }
}

impl fmt::Display for HookFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A family name that neither generation has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown hook family '{0}'")]
pub struct UnknownFamily(pub String);

impl FromStr for HookFamily {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        HookFamily::ALL
            .into_iter()
            .find(|family| family.as_str() == text)
            .ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_round_trip() {
        for family in HookFamily::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
        }
        assert!("Chapter".parse::<HookFamily>().is_err());
        assert!(HookFamily::CrawlSetup.is_modern() && !HookFamily::Crawl.is_modern());
    }
}
