//! What a node remembers of the database, so that a database that went back to an earlier state, as one
//! that was restored from a backup, is noticed before any work is done with it.

use super::value::{Epoch, Generation, HostKey, NodeId};
use crate::model::{CrawlId, IdMarks, SnapshotId};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// What a node knows of the database from earlier connections. Everything but the generation is from this
/// generation; a database that did not go back still has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub node: NodeId,
    pub generation: Generation,
    /// Highest ids of the crawls and pages that the node has. An id that is reserved for a crawl counts.
    pub given: IdMarks,
    /// Crawl of the latest pages that the database acknowledged.
    pub submitted: Option<CrawlId>,
    /// Latest page with a directory whose record the database acknowledged, with the epoch of the record.
    pub recorded: Option<(SnapshotId, Epoch)>,
    pub claimed: Vec<(HostKey, Epoch)>,
    /// Highest ids that the machine knows, those of its archive included. New ids begin above them.
    pub highest: IdMarks,
}

/// What the database has of a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub generation: Generation,
    /// It has the node, maybe of another machine: that of a disk that was cloned.
    pub has_node: bool,
    pub next_crawl: i64,
    pub next_page: i64,
    /// It has the crawl in `submitted`, if there is one.
    pub has_submitted: bool,
    /// It has the page in `recorded` under this epoch or a later one, if there is one. If the page is handed
    /// to the node under the same epoch, that has to be after a retry: the node then has an older copy of it.
    pub has_recorded: bool,
    /// Each host in `claimed` has this epoch or a later one, as far as the epoch is of this generation.
    pub has_claimed: bool,
}

impl Memory {
    /// Returns whether the database went back to a state before one that this node has seen. In a later
    /// generation, it may lack something, which the node then sends again.
    pub fn contradicts(&self, found: &Found) -> bool {
        match self.generation.cmp(&found.generation) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => {
                let has_ids = self.given.crawl.0 < found.next_crawl
                    && self.given.snapshot.0 < found.next_page;
                let has_rows = found.has_submitted && found.has_recorded && found.has_claimed;
                !(found.has_node && has_ids && has_rows)
            }
        }
    }

    /// Returns the leases whose epoch is of the generation. The database may have forgotten others in a
    /// failover, and gets them with the next renewal.
    pub fn claims(&self) -> impl Iterator<Item = &(HostKey, Epoch)> {
        let floor = self.generation.floor();
        self.claimed.iter().filter(move |(_, epoch)| *epoch > floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory {
            node: NodeId(2),
            generation: Generation(3),
            given: IdMarks { crawl: CrawlId(40), snapshot: SnapshotId(900), ..IdMarks::default() },
            ..Memory::default()
        }
    }

    fn found() -> Found {
        Found {
            generation: Generation(3),
            has_node: true,
            next_crawl: 41,
            next_page: 901,
            has_submitted: true,
            has_recorded: true,
            has_claimed: true,
        }
    }

    #[test]
    fn each_missing_fact_shows_that_the_database_went_back() {
        assert!(!memory().contradicts(&found()));
        let earlier: [fn(&mut Found); 7] = [
            |found| found.generation = Generation(2),
            |found| found.has_node = false,
            |found| found.next_crawl = 40,
            |found| found.next_page = 900,
            |found| found.has_submitted = false,
            |found| found.has_recorded = false,
            |found| found.has_claimed = false,
        ];
        for (place, change) in earlier.into_iter().enumerate() {
            let mut went_back = found();
            change(&mut went_back);
            assert!(memory().contradicts(&went_back), "{place}");
            // It was declared, or the server failed over.
            went_back.generation = Generation(4);
            assert!(!memory().contradicts(&went_back), "{place}");
        }
    }

    #[test]
    fn leases_of_earlier_generations_prove_nothing() {
        let host = |name: &str| HostKey(name.to_owned());
        let memory = Memory {
            claimed: vec![(host("old"), Epoch((2 << 32) + 9)), (host("new"), Epoch((3 << 32) + 1))],
            ..memory()
        };
        let claims: Vec<_> = memory.claims().map(|(host, _)| host.0.as_str()).collect();
        assert_eq!(claims, ["new"]);
    }
}
