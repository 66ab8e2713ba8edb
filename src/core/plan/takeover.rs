//! Which orchestrator is active on a data directory: the newest. Each asks whether to work, to
//! stand by, or to replace others first. Locks that the kernel releases with the process show which
//! are alive and which work, so that no dead process counts as alive.

use crate::model::{Locality, ProcessLocation, Runner};

/// Another orchestrator, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRunner {
    pub runner: Runner,
    /// Its process is alive: it holds its lock.
    pub alive: bool,
    /// It holds the lock for working.
    pub working: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Work. The rows of `gone` are deleted; other orchestrators keep their ranks.
    Pass {
        /// Epochs of orchestrators that have ended.
        gone: Vec<i64>,
    },
    /// Wait: this orchestrator is newer.
    StandBy(Runner),
    /// These orchestrators still work, and must stop first.
    Replace(Vec<Runner>),
}

/// Whether its process may be killed from here. A pid or the name of a unit of another machine,
/// boot or namespace means nothing here.
pub fn may_be_killed(here: &ProcessLocation, runner: &Runner) -> bool {
    Locality::of(here, &runner.place) == Locality::Here
}

/// Decides for the orchestrator with this `rank`. `patient`: orchestrators that may not be killed
/// have time to stop; after that their writes are refused, because their epoch is not current.
pub fn gate(
    here: &ProcessLocation,
    rank: i64,
    other_runners: &[OtherRunner],
    patient: bool,
) -> Gate {
    let newer = other_runners.iter().filter(|other| other.alive && other.runner.rank > rank);
    if let Some(newest) = newer.max_by_key(|other| other.runner.rank) {
        return Gate::StandBy(newest.runner.clone());
    }
    let in_the_way =
        |other: &&OtherRunner| other.working && (patient || may_be_killed(here, &other.runner));
    let older: Vec<Runner> =
        other_runners.iter().filter(in_the_way).map(|other| other.runner.clone()).collect();
    if !older.is_empty() {
        return Gate::Replace(older);
    }
    // This includes a frozen process that did not stop in time: it finds its row when it continues.
    let kept = |other: &&OtherRunner| {
        let locality = Locality::of(here, &other.runner.place);
        let again =
            other.runner.restarts && matches!(locality, Locality::Here | Locality::OtherNamespace);
        other.alive || again
    };
    let gone = other_runners.iter().filter(|other| !kept(other));
    Gate::Pass { gone: gone.map(|other| other.runner.epoch).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> ProcessLocation {
        ProcessLocation { machine: "m".into(), boot: "b".into(), namespace: "n".into() }
    }

    fn other_runner(rank: i64, alive: bool, working: bool) -> OtherRunner {
        let runner = Runner { epoch: rank * 10, rank, place: here(), ..Runner::default() };
        OtherRunner { runner, alive, working }
    }

    fn elsewhere(mut other: OtherRunner, change: impl FnOnce(&mut ProcessLocation)) -> OtherRunner {
        change(&mut other.runner.place);
        other
    }

    #[test]
    fn single_orchestrator_passes() {
        assert_eq!(gate(&here(), 1, &[], true), Gate::Pass { gone: vec![] });
    }

    #[test]
    fn newest_live_orchestrator_wins() {
        let other_runners = [
            other_runner(2, true, true),
            other_runner(7, true, false),
            other_runner(9, false, false),
        ];
        let Gate::StandBy(newest) = gate(&here(), 5, &other_runners, true) else {
            panic!("not standing by");
        };
        assert_eq!(newest.rank, 7);
        // The same seen by the newest.
        let other_runners = [
            other_runner(2, true, true),
            other_runner(5, true, false),
            other_runner(9, false, false),
        ];
        let Gate::Replace(older) = gate(&here(), 7, &other_runners, true) else {
            panic!("no runner to replace");
        };
        assert_eq!(older[0].rank, 2);
    }

    #[test]
    fn row_of_a_killed_orchestrator_does_not_block() {
        let mut dead = other_runner(3, false, false);
        dead.runner.active = true;
        let other_runners = [dead, other_runner(9, false, false)];
        assert_eq!(gate(&here(), 5, &other_runners, true), Gate::Pass { gone: vec![30, 90] });
    }

    #[test]
    fn standby_and_restarting_orchestrators_keep_their_rank() {
        let mut service = other_runner(2, false, false);
        service.runner.restarts = true;
        let other_runners = [service.clone(), other_runner(3, true, false)];
        assert_eq!(gate(&here(), 5, &other_runners, true), Gate::Pass { gone: vec![] });
        let other_runners = [elsewhere(service.clone(), |place| place.namespace = "o".into())];
        assert_eq!(gate(&here(), 5, &other_runners, true), Gate::Pass { gone: vec![] });
        let other_runners = [elsewhere(service, |place| place.boot = "c".into())];
        assert_eq!(gate(&here(), 5, &other_runners, true), Gate::Pass { gone: vec![20] });
    }

    #[test]
    fn foreign_orchestrators_are_not_killed_and_block_for_a_limited_time() {
        let changes: [fn(&mut ProcessLocation); 2] =
            [|place| place.namespace = "o".into(), |place| place.machine = "o".into()];
        for change in changes {
            let stranger = elsewhere(other_runner(2, true, true), change);
            assert!(!may_be_killed(&here(), &stranger.runner));
            let other_runners = [stranger];
            assert!(matches!(gate(&here(), 5, &other_runners, true), Gate::Replace(_)));
            assert_eq!(gate(&here(), 5, &other_runners, false), Gate::Pass { gone: vec![] });
        }
        // For a process in this namespace there is no deadline, because it can be killed.
        let other_runners = [other_runner(2, true, true)];
        assert!(matches!(gate(&here(), 5, &other_runners, false), Gate::Replace(_)));
    }

    /// Of any set of orchestrators exactly one does not stand by.
    #[test]
    fn exactly_one_orchestrator_does_not_stand_by() {
        for count in 1..6 {
            let standing = (1..=count).filter(|rank| {
                let others = (1..=count).filter(|other| other != rank);
                let other_runners: Vec<OtherRunner> =
                    others.map(|other| other_runner(other, true, false)).collect();
                !matches!(gate(&here(), *rank, &other_runners, true), Gate::StandBy(_))
            });
            assert_eq!(standing.collect::<Vec<_>>(), [count]);
        }
    }
}
