//! The order in which pages start: the turns of the hosts of a crawl, and the order of the pages of
//! one host. This is the only place that decides it. The database has an index for the order of
//! pages (`snapshot_lane`), so that `Tx::view` of the store reads only the first pages of each
//! host.

use super::view::{Due, HostId};
use crate::model::{SnapshotId, Time};

/// The place of a queued page among the pages of its host: pages start in ascending order. The page
/// that is due first is first; of pages that are due at the same time, the one that was queued
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PagePosition {
    /// When the page is due: when it was queued, or the end of its back-off.
    pub retry_at: Time,
    /// Breaks ties.
    pub id: SnapshotId,
}

/// Hosts after `after`, up to and including `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// Excluded.
    pub after: HostId,
    /// Included.
    pub up_to: HostId,
}

/// Returns in which order the hosts of a crawl have their turns: by number, from the host after
/// `last`, where a page started last, round to `last` itself.
pub fn host_turns(last: HostId) -> [HostRange; 2] {
    let range = |after, up_to| HostRange { after, up_to };
    [range(last, HostId(i64::MAX)), range(HostId(i64::MIN), last)]
}

/// Merges the due pages of several hosts, given in the order of the hosts' turns: the first page of
/// each host, then the second of each, and so on, at most `limit` in total.
pub fn take_turns(hosts: &[Vec<Due>], limit: usize) -> Vec<Due> {
    let rounds = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..rounds).flat_map(|round| hosts.iter().filter_map(move |pages| pages.get(round)));
    turns.take(limit).copied().collect()
}

/// Puts pages that are due for a retry before those that have not started yet, at most `limit` in
/// total. What an earlier attempt left running, such as the tab of a browser, waits for the retry.
pub fn retries_first(retries: &[Due], turns: &[Due], limit: usize) -> Vec<Due> {
    let is_retry = |page: &Due| retries.iter().any(|retry| retry.id == page.id);
    let others = turns.iter().filter(|page| !is_retry(page));
    retries.iter().chain(others).take(limit).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(id: i64, host: i64) -> Due {
        Due { id: SnapshotId(id), host: HostId(host) }
    }

    #[test]
    fn every_host_has_one_turn_in_a_round() {
        let within = |range: HostRange, host| host > range.after && host <= range.up_to;
        for last in [0, 2, 9] {
            let turns = host_turns(HostId(last));
            let order: Vec<i64> = turns
                .into_iter()
                .flat_map(|range| (1..=3).filter(move |host| within(range, HostId(*host))))
                .collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 3], "after host {last}");
            let first = if last == 2 { 3 } else { 1 };
            assert_eq!(order[0], first, "after host {last}");
        }
    }

    #[test]
    fn hosts_take_turns_page_by_page() {
        let hosts =
            [vec![due(1, 7), due(2, 7), due(3, 7)], vec![due(9, 8)], vec![due(4, 9), due(5, 9)]];
        let order = |limit| -> Vec<i64> {
            let turns = take_turns(&hosts, limit);
            turns.iter().map(|page| page.id.0).collect()
        };
        assert_eq!(order(9), [1, 9, 4, 2, 5, 3]);
        assert_eq!(order(2), [1, 9]);
        assert!(take_turns(&[], 3).is_empty());
    }

    #[test]
    fn retries_precede_new_pages_and_count_once() {
        let turns = [due(1, 7), due(9, 8), due(2, 7)];
        let order = |retries: &[Due], limit| -> Vec<i64> {
            let pages = retries_first(retries, &turns, limit);
            pages.iter().map(|page| page.id.0).collect()
        };
        assert_eq!(order(&[due(2, 7), due(5, 8)], 9), [2, 5, 1, 9]);
        assert_eq!(order(&[due(5, 8)], 2), [5, 1]);
        assert_eq!(order(&[], 9), [1, 9, 2]);
    }

    #[test]
    fn page_that_is_due_first_starts_first() {
        let position = |retry_at, id| PagePosition { retry_at: Time(retry_at), id: SnapshotId(id) };
        assert!(position(1, 9) < position(2, 3));
        assert!(position(2, 3) < position(2, 4));
    }
}
