//! Whether the machine's way to the Internet is down, judged by the pages that it visits. Their hosts then
//! wait, as all pages do while the disk is full, and single pages try whether the Internet is back: no
//! event says that a name server answers again.

use crate::model::{NetworkError, SnapshotId, Time};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Time from a failure to the next trial. Each trial that fails doubles it, up to the longest.
const TRIAL_AFTER: Duration = Duration::from_secs(5);
const TRIAL_AFTER_MAX: Duration = Duration::from_secs(300);
/// Time after which another page is tried if the page of a trial has neither failed nor got an answer.
const TRIAL_LIMIT: Duration = Duration::from_secs(120);
/// Number of hosts that fail in a row with the same error before the machine is to blame.
const HOSTS: usize = 5;
/// Pages of such hosts that are queued again afterwards, at most.
const SILENT_MAX: usize = 10_000;

/// The machine does not reach the Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkOutage {
    /// Time of the first failure.
    pub since: Time,
    pub why: String,
    /// When the next page may try.
    pub next: Time,
    failed: u32,
    trial: Option<SnapshotId>,
}

impl std::fmt::Display for NetworkOutage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the network is down since {}: {}", self.since, self.why)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostNetwork {
    #[default]
    Up,
    /// One page of all hosts may start, as a trial.
    Trial(NetworkOutage),
    Down(NetworkOutage),
}

impl HostNetwork {
    /// Returns the outage, if no page of the host may start.
    pub fn outage(&self) -> Option<&NetworkOutage> {
        match self {
            HostNetwork::Down(outage) => Some(outage),
            HostNetwork::Up | HostNetwork::Trial(_) => None,
        }
    }
}

/// A page on the Internet that got no answer, although nothing showed that the machine is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Silent {
    page: SnapshotId,
    host: String,
}

/// What the visits of pages on the Internet have shown. Pages of hosts that the machine reaches without
/// the Internet never count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    outage: Option<NetworkOutage>,
    /// Pages that failed in a row with the same error, the oldest first.
    silent: VecDeque<Silent>,
    error: Option<NetworkError>,
    /// Pages that were queued again because others had failed like them. They never count again.
    excused: BTreeSet<SnapshotId>,
}

impl Network {
    /// The outage, if the machine does not reach the Internet.
    pub fn outage(&self) -> Option<&NetworkOutage> {
        self.outage.as_ref()
    }

    /// Whether this page is the one that tries whether the Internet is back.
    pub fn is_trial(&self, page: SnapshotId) -> bool {
        let outage = self.outage.as_ref();
        outage.is_some_and(|outage| outage.trial == Some(page))
    }

    /// What that means for a host. `is_on_internet`: the machine needs the Internet to reach it.
    pub fn of_host(&self, is_on_internet: bool, now: Time) -> HostNetwork {
        match &self.outage {
            Some(outage) if is_on_internet && outage.next <= now => {
                HostNetwork::Trial(outage.clone())
            }
            Some(outage) if is_on_internet => HostNetwork::Down(outage.clone()),
            _ => HostNetwork::Up,
        }
    }

    pub fn page_starts(&mut self, page: SnapshotId, now: Time) {
        if let Some(outage) = &mut self.outage {
            outage.trial = Some(page);
            outage.next = now.after(TRIAL_LIMIT);
        }
    }

    /// A hook of this page has found that the machine does not reach the Internet, for this reason.
    pub fn is_down(&mut self, page: SnapshotId, why: &str, now: Time) {
        let outage = self.outage.get_or_insert_with(|| NetworkOutage {
            since: now,
            why: String::new(),
            next: now,
            failed: 0,
            trial: Some(page),
        });
        why.clone_into(&mut outage.why);
        // Pages that had started before the first failure are no trials.
        if outage.trial == Some(page) {
            let doublings = outage.failed.min(16);
            let after = TRIAL_AFTER.saturating_mul(1 << doublings).min(TRIAL_AFTER_MAX);
            outage.failed = outage.failed.saturating_add(1);
            outage.next = now.after(after);
            outage.trial = None;
        }
    }

    /// A server on the Internet has answered a page. Returns the pages to queue again: they failed before
    /// for the machine.
    pub fn is_up(&mut self) -> Vec<SnapshotId> {
        let silent = std::mem::take(&mut self.silent);
        self.error = None;
        if self.outage.take().is_none() {
            return Vec::new();
        }
        let pages: Vec<SnapshotId> = silent.into_iter().map(|silent| silent.page).collect();
        self.excused.extend(&pages);
        pages
    }

    /// A page of this host on the Internet has ended with this error, without an answer of a server. The
    /// same error of different hosts in a row, none of which answers in between, is the machine's.
    pub fn is_silent(&mut self, page: SnapshotId, host: &str, error: NetworkError, now: Time) {
        if self.excused.contains(&page) {
            return;
        }
        if self.error != Some(error) && self.outage.is_none() {
            self.silent.clear();
        }
        self.error = Some(error);
        self.silent.retain(|silent| silent.page != page);
        if self.silent.len() < SILENT_MAX {
            let host = host.to_owned();
            self.silent.push_back(Silent { page, host });
        }
        let hosts: BTreeSet<&str> = self.silent.iter().map(|silent| &*silent.host).collect();
        if let Some(why) = self.outage.as_ref().map(|outage| outage.why.clone()) {
            self.is_down(page, &why, now);
        } else if hosts.len() >= HOSTS {
            let why = format!("different sites fail with the same error: {error}");
            self.is_down(page, &why, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO_NAMES: &str = "names cannot be resolved";
    const ERROR: NetworkError = NetworkError::TimedOut;

    fn page(id: i64) -> SnapshotId {
        SnapshotId(id)
    }

    #[test]
    fn trials_follow_with_growing_delays_until_one_is_answered() {
        let mut network = Network::default();
        let mut now = Time(1_000_000);
        let since = now;
        network.is_down(page(1), NO_NAMES, now);
        // Another page that had started before.
        network.is_down(page(2), NO_NAMES, now.after(Duration::from_secs(1)));
        let mut delays = Vec::new();
        for trial in 3..12 {
            let next = network.outage().unwrap().next;
            delays.push((next.0 - now.0) / 1000);
            assert!(matches!(
                network.of_host(true, next.before(Duration::from_millis(1))),
                HostNetwork::Down(_)
            ));
            assert!(matches!(network.of_host(true, next), HostNetwork::Trial(_)));
            assert_eq!(network.of_host(false, now), HostNetwork::Up);
            now = next;
            network.page_starts(page(trial), now);
            assert!(matches!(network.of_host(true, now), HostNetwork::Down(_)), "one at a time");
            network.is_down(page(trial), NO_NAMES, now);
        }
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        let outage = network.outage().unwrap();
        assert_eq!(outage.since, since);
        assert!(outage.to_string().ends_with(": names cannot be resolved"), "{outage}");
        assert_eq!(network.is_up(), []);
        assert_eq!(network.of_host(true, now), HostNetwork::Up);
    }

    #[test]
    fn same_error_of_many_hosts_holds_and_queues_their_pages_again() {
        let mut network = Network::default();
        for id in 1..5 {
            network.is_silent(page(id), &format!("{id}.example"), ERROR, Time(id));
            assert_eq!(network.outage(), None, "{id} hosts");
        }
        network.is_silent(page(5), "5.example", ERROR, Time(5));
        let why = network.outage().unwrap().why.clone();
        assert_eq!(why, format!("different sites fail with the same error: {ERROR}"));
        network.page_starts(page(6), Time(9_000));
        network.is_silent(page(6), "6.example", NetworkError::Refused, Time(9_001));
        assert!(network.outage().unwrap().next > Time(9_001), "a trial failed");
        let again: Vec<SnapshotId> = (1..7).map(page).collect();
        assert_eq!(network.is_up(), again);
        // Sites that are gone fail again, and hold nothing.
        for id in 1..7 {
            network.is_silent(page(id), &format!("{id}.example"), ERROR, Time(id));
        }
        assert_eq!(network.outage(), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Silent(i64, u8, bool),
        Down(i64),
        Up,
        Start(i64),
    }

    fn steps(hosts: u8) -> impl Strategy<Value = Vec<(u16, Step)>> {
        let step = prop_oneof![
            (0..40i64, 0..hosts, any::<bool>())
                .prop_map(|(page, host, other)| Step::Silent(page, host, other)),
            (0..40i64).prop_map(Step::Down),
            Just(Step::Up),
            (0..40i64).prop_map(Step::Start),
        ];
        proptest::collection::vec((any::<u16>(), step), 0..80)
    }

    fn take(network: &mut Network, step: &Step, now: Time) -> Vec<SnapshotId> {
        match step {
            Step::Silent(id, host, other) => {
                let error = if *other { NetworkError::Refused } else { ERROR };
                network.is_silent(page(*id), &host.to_string(), error, now);
            }
            Step::Down(id) => network.is_down(page(*id), NO_NAMES, now),
            Step::Up => return network.is_up(),
            Step::Start(id) => network.page_starts(page(*id), now),
        }
        Vec::new()
    }

    proptest! {
        /// However often the pages of few hosts fail, nothing waits unless a hook says why.
        #[test]
        fn few_hosts_hold_nothing(steps in steps(HOSTS as u8 - 1)) {
            let (mut network, mut now) = (Network::default(), Time(0));
            for (passed, step) in steps {
                now = now.after(Duration::from_millis(passed.into()));
                if !matches!(step, Step::Down(_)) {
                    take(&mut network, &step, now);
                }
                prop_assert_eq!(network.outage(), None);
            }
        }

        /// An answer ends each outage, the next trial is never far, no page is queued again twice, and
        /// hosts that need no Internet never wait.
        #[test]
        fn every_outage_ends(steps in steps(20)) {
            let (mut network, mut now) = (Network::default(), Time(0));
            let mut again = BTreeSet::new();
            for (passed, step) in steps {
                now = now.after(Duration::from_millis(passed.into()));
                let since = network.outage().map(|outage| outage.since);
                for page in take(&mut network, &step, now) {
                    prop_assert!(again.insert(page), "{} twice", page);
                }
                prop_assert_eq!(network.of_host(false, now), HostNetwork::Up);
                if let Some(outage) = network.outage() {
                    prop_assert!(!matches!(step, Step::Up));
                    prop_assert!(outage.next <= now.after(TRIAL_AFTER_MAX));
                    prop_assert!(since.is_none_or(|since| since == outage.since));
                } else {
                    prop_assert!(!matches!(step, Step::Down(_)));
                    prop_assert_eq!(network.of_host(true, now), HostNetwork::Up);
                }
            }
        }
    }
}
