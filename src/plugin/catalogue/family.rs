//! Hook families: the first word in a hook's file name.

use serde::{Deserialize, Serialize};

archivist_core::text::named! {
    /// Family of a hook: when it runs, and which generation of the contract it follows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum HookFamily {
        /// Finds or installs a program (modern).
        BinaryRequest = "BinaryRequest",
        /// Runs once per crawl, before its snapshots (modern).
        CrawlSetup = "CrawlSetup",
        /// Runs once per page (both generations).
        Snapshot = "Snapshot",
        /// Finds or installs a program (older).
        Binary = "Binary",
        /// Runs once per crawl, before its snapshots (older).
        Crawl = "Crawl",
        /// Runs once per crawl, after its snapshots (older).
        CrawlEnd = "CrawlEnd",
        /// Runs after a crawl's daemons have ended.
        CrawlCleanup = "CrawlCleanup",
        /// Runs after a snapshot's daemons have ended.
        SnapshotCleanup = "SnapshotCleanup",
    }
}

/// What a family belongs to. Hooks with the same owner share a name space for units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The crawl: its setup and its last hooks.
    Crawl,
    Snapshot,
    /// A request for a program, in a crawl of its own.
    Binary,
}

impl HookFamily {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_round_trip() {
        for family in HookFamily::ALL {
            assert_eq!(HookFamily::parse(family.as_str()), Some(family));
        }
        assert!(HookFamily::parse("Chapter").is_none());
        assert!(HookFamily::CrawlSetup.is_modern() && !HookFamily::Crawl.is_modern());
    }
}
