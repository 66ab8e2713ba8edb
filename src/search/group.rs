//! Collects what was found by page: one hit for each URL, which stands for its newest snapshot.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// Pages that are kept while documents are collected; those with the lowest scores are left out then.
const KEPT_MAX: usize = 400_000;

/// A page that was found.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Best score of its snapshots.
    pub score: Score,
    /// Time of the newest.
    pub time: i64,
    /// The newest.
    pub address: DocAddress,
    /// Number of the page.
    pub page: u64,
}

/// Collects groups by the number in a field: that of the page, or that of the snapshot.
pub struct Grouped {
    /// Name of the field.
    pub by: &'static str,
    /// Name of the field of times.
    pub time: &'static str,
    /// Documents that are left out.
    pub without: Arc<HashSet<DocAddress>>,
}

/// Hashes the number of a page, which is a hash already, but one that the author of a page can choose
/// with its URL. The product with a random odd number is cheap for thousands of pages, and its upper half
/// depends on all bits.
#[derive(Clone, Copy)]
struct PageHash {
    factor: u64,
    hash: u64,
}

impl Default for PageHash {
    fn default() -> PageHash {
        PageHash {
            factor: RandomState::new().hash_one(0) | 1,
            hash: 0,
        }
    }
}

impl BuildHasher for PageHash {
    type Hasher = PageHash;
    fn build_hasher(&self) -> PageHash {
        *self
    }
}

impl Hasher for PageHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.hash ^ number) * u128::from(self.factor);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }
    fn finish(&self) -> u64 {
        self.hash
    }
}

/// The groups, and the number of those that were found.
#[derive(Default)]
pub struct Groups {
    found: HashMap<u64, Group, PageHash>,
    left_out: u64,
}

impl Groups {
    fn add(&mut self, group: Group) {
        match self.found.entry(group.page) {
            Entry::Vacant(new) => {
                new.insert(group);
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.score = known.score.max(group.score);
                if (group.time, group.address) > (known.time, known.address) {
                    (known.time, known.address) = (group.time, group.address);
                }
            }
        }
        if self.found.len() > KEPT_MAX {
            self.halve();
        }
    }

    /// Leaves out half of the groups.
    fn halve(&mut self) {
        let mut groups: Vec<Group> = self.found.drain().map(|(_, group)| group).collect();
        let half = groups.len() / 2;
        groups.select_nth_unstable_by(half, |a, b| b.score.total_cmp(&a.score));
        self.left_out += (groups.len() - half) as u64;
        groups.truncate(half);
        self.found
            .extend(groups.into_iter().map(|group| (group.page, group)));
    }

    /// Number of the groups.
    pub fn total(&self) -> u64 {
        self.found.len() as u64 + self.left_out
    }

    /// The best groups, best first; among equals, the newest first.
    pub fn best(self, count: usize) -> Vec<Group> {
        let mut groups: Vec<Group> = self.found.into_values().collect();
        let order = |a: &Group, b: &Group| {
            b.score
                .total_cmp(&a.score)
                .then((b.time, b.address).cmp(&(a.time, a.address)))
        };
        if groups.len() > count {
            groups.select_nth_unstable_by(count, order);
            groups.truncate(count);
        }
        groups.sort_unstable_by(order);
        groups
    }
}

impl Collector for Grouped {
    type Fruit = Groups;
    type Child = SegmentGroups;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentGroups> {
        let columns = reader.fast_fields();
        Ok(SegmentGroups {
            groups: Groups::default(),
            segment,
            without: self.without.clone(),
            pages: columns.u64(self.by)?,
            times: columns.i64(self.time)?,
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, segments: Vec<Groups>) -> tantivy::Result<Groups> {
        let mut segments = segments.into_iter();
        let mut all = segments.next().unwrap_or_default();
        for segment in segments {
            all.left_out += segment.left_out;
            for group in segment.found.into_values() {
                all.add(group);
            }
        }
        Ok(all)
    }
}

/// The groups of one segment.
pub struct SegmentGroups {
    groups: Groups,
    segment: SegmentOrdinal,
    without: Arc<HashSet<DocAddress>>,
    pages: Column<u64>,
    times: Column<i64>,
}

impl SegmentCollector for SegmentGroups {
    type Fruit = Groups;

    fn collect(&mut self, document: DocId, score: Score) {
        let address = DocAddress::new(self.segment, document);
        if !self.without.is_empty() && self.without.contains(&address) {
            return;
        }
        self.groups.add(Group {
            score,
            time: self.times.first(document).unwrap_or(i64::MIN),
            address,
            page: self.pages.first(document).unwrap_or(0),
        });
    }

    fn harvest(self) -> Groups {
        self.groups
    }
}
