//! Collects what was found by page: one hit for each URL, which stands for its newest snapshot.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// Snapshots that are kept while documents are collected; those with the lowest scores are left out then.
const KEPT_MAX: usize = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Best score of its snapshots.
    pub score: Score,
    /// Time of the newest.
    pub time: i64,
    /// The newest.
    pub address: DocAddress,
    pub page: u64,
}

/// Collects groups by the number in a field: that of the page, or that of the snapshot.
pub struct Grouped {
    pub by: &'static str,
    pub time: &'static str,
    /// Documents that are left out.
    pub without: Arc<HashSet<DocAddress>>,
}

/// The snapshots that were found, each as a group of its own until [`Groups::best`].
#[derive(Default)]
pub struct Groups {
    found: Vec<Group>,
    left_out: u64,
}

/// Best score first; among equals, the newest first.
fn order(a: &Group, b: &Group) -> Ordering {
    b.score.total_cmp(&a.score).then((b.time, b.address).cmp(&(a.time, a.address)))
}

impl Groups {
    fn add(&mut self, group: Group) {
        if self.found.len() >= KEPT_MAX {
            self.halve();
        }
        self.found.push(group);
    }

    /// Leaves out the half with the lowest scores.
    fn halve(&mut self) {
        let half = self.found.len() / 2;
        self.found.select_nth_unstable_by(half, order);
        self.left_out += (self.found.len() - half) as u64;
        self.found.truncate(half);
    }

    /// Number of the pages. If there are very many, each snapshot that was left out counts as one.
    pub fn total(&self) -> u64 {
        let mut pages: Vec<u64> = self.found.iter().map(|group| group.page).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.len() as u64 + self.left_out
    }

    /// One group for each of the best pages, best first, with the newest snapshot of the page that was found.
    pub fn best(mut self, count: usize) -> Vec<Group> {
        let mut best: BTreeMap<u64, Group> = BTreeMap::new();
        // Snapshots of one page can be next to each other, so more are looked at if they are too few pages.
        let mut looked_at = count.max(1).min(self.found.len());
        loop {
            if looked_at < self.found.len() {
                self.found.select_nth_unstable_by(looked_at, order);
            }
            self.found[..looked_at].sort_unstable_by(order);
            for group in &self.found[..looked_at] {
                if best.len() >= count {
                    break;
                }
                best.entry(group.page).or_insert(*group);
            }
            if looked_at == self.found.len() || best.len() >= count {
                break;
            }
            looked_at = (4 * looked_at).min(self.found.len());
        }
        for found in &self.found {
            if let Some(group) = best.get_mut(&found.page)
                && (found.time, found.address) > (group.time, group.address)
            {
                (group.time, group.address) = (found.time, found.address);
            }
        }
        let mut groups: Vec<Group> = best.into_values().collect();
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
            all.found.extend(segment.found);
            if all.found.len() > KEPT_MAX {
                all.halve();
            }
        }
        Ok(all)
    }
}

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
