//! Which transfers to start now.

use super::{KeepLocal, Task};
use crate::model::{SnapshotId, Time};

/// Transfers that run concurrently: a store is slower than the disk, and pages have priority.
const TRANSFERS_MAX: u32 = 2;
/// Further transfers for which a user waits.
const URGENT_MAX: u32 = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Transfers that have a unit and for which no user waits.
    pub running: u32,
    /// Transfers that have a unit and for which a user waits.
    pub urgent_running: u32,
    /// Due ones, the first first.
    pub due: Vec<SnapshotId>,
    /// Due ones for which a user waits.
    pub urgent: Vec<SnapshotId>,
    /// When the next one is due that is not due yet.
    pub next: Option<Time>,
}

impl Transfers {
    /// Whether a transfer runs or may start now. One that waits for its next attempt does not keep
    /// an orchestrator that stands by.
    pub fn is_busy(&self) -> bool {
        self.running > 0
            || self.urgent_running > 0
            || !self.due.is_empty()
            || !self.urgent.is_empty()
    }

    /// How many further transfers may start: urgent ones, then others.
    pub fn free(&self) -> (u32, u32) {
        (URGENT_MAX.saturating_sub(self.urgent_running), TRANSFERS_MAX.saturating_sub(self.running))
    }

    /// The most rows of a queue that can start at once.
    pub const HEADS: u32 = if URGENT_MAX > TRANSFERS_MAX { URGENT_MAX } else { TRANSFERS_MAX };

    pub fn count(&mut self, task: Task, running: u32) {
        if task.is_urgent() {
            self.urgent_running += running;
        } else {
            self.running += running;
        }
    }
}

/// Returns the transfers to start, within the free slots.
pub fn decide_transfers(transfers: &Transfers) -> Vec<SnapshotId> {
    let (urgent, other) = transfers.free();
    let first = transfers.urgent.iter().take(urgent as usize);
    first.chain(transfers.due.iter().take(other as usize)).copied().collect()
}

/// Returns the time before which local files must have become complete to be removed now; `None` if
/// they stay.
pub fn drop_before(keep: KeepLocal, now: Time) -> Option<Time> {
    match keep {
        KeepLocal::Always => None,
        KeepLocal::For(span) => Some(now.before(span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn urgent_transfers_have_slots_of_their_own() {
        let transfers = Transfers {
            running: 1,
            urgent_running: 3,
            due: (1..9).map(SnapshotId).collect(),
            urgent: (11..19).map(SnapshotId).collect(),
            next: None,
        };
        assert_eq!(decide_transfers(&transfers), [SnapshotId(11), SnapshotId(1)]);
    }

    #[test]
    fn local_files_stay_for_the_span() {
        assert_eq!(drop_before(KeepLocal::Always, Time(5000)), None);
        let keep = KeepLocal::For(Duration::from_secs(2));
        assert_eq!(drop_before(keep, Time(5000)), Some(Time(3000)));
    }
}
