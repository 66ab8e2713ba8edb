//! Who runs a data directory: the newest. Whoever asks is told whether to work, to stand by, or
//! whom to replace first. What lives and what works is seen by locks that the kernel frees with
//! the process, so nobody is taken for alive who is not.

use crate::model::{Locality, Place, Runner};

/// Another runner as it is seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRunner {
    pub runner: Runner,
    /// Its process is there: it holds its seat.
    pub alive: bool,
    /// It holds the lock of those who work.
    pub working: bool,
}

/// What is to be done by who holds a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Work. The rows of `gone` are over; others keep their seats.
    Pass { gone: Vec<i64> },
    /// This one arrived later.
    StandBy(Runner),
    /// These work still: they are to stop first.
    Replace(Vec<Runner>),
}

/// May its process be killed from here? What a pid or a unit's name means elsewhere is not known.
pub fn may_be_killed(here: &Place, runner: &Runner) -> bool {
    Locality::of(here, &runner.place) == Locality::Here
}

/// Decides for the holder of `seat`. `patient`: whoever may not be killed still has time to stop;
/// after that the epoch keeps it from writing.
pub fn gate(here: &Place, seat: i64, rivals: &[OtherRunner], patient: bool) -> Gate {
    let newer = rivals
        .iter()
        .filter(|rival| rival.alive && rival.runner.seat > seat);
    if let Some(newest) = newer.max_by_key(|rival| rival.runner.seat) {
        return Gate::StandBy(newest.runner.clone());
    }
    let in_the_way =
        |rival: &&OtherRunner| rival.working && (patient || may_be_killed(here, &rival.runner));
    let older: Vec<Runner> = rivals
        .iter()
        .filter(in_the_way)
        .map(|rival| rival.runner.clone())
        .collect();
    if !older.is_empty() {
        return Gate::Replace(older);
    }
    // Also the frozen one that was waited for in vain: it finds its seat when it wakes up.
    let kept = |rival: &&OtherRunner| {
        let kin = Locality::of(here, &rival.runner.place);
        let again =
            rival.runner.restarts && matches!(kin, Locality::Here | Locality::OtherNamespace);
        rival.alive || again
    };
    let gone = rivals.iter().filter(|rival| !kept(rival));
    Gate::Pass {
        gone: gone.map(|rival| rival.runner.epoch).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Place {
        Place {
            machine: "m".into(),
            boot: "b".into(),
            namespace: "n".into(),
        }
    }

    fn rival(seat: i64, alive: bool, working: bool) -> OtherRunner {
        let runner = Runner {
            epoch: seat * 10,
            seat,
            place: here(),
            ..Runner::default()
        };
        OtherRunner {
            runner,
            alive,
            working,
        }
    }

    fn elsewhere(mut rival: OtherRunner, change: impl FnOnce(&mut Place)) -> OtherRunner {
        change(&mut rival.runner.place);
        rival
    }

    #[test]
    fn alone_it_passes() {
        assert_eq!(gate(&here(), 1, &[], true), Gate::Pass { gone: vec![] });
    }

    #[test]
    fn the_newest_of_the_living_wins() {
        let rivals = [
            rival(2, true, true),
            rival(7, true, false),
            rival(9, false, false),
        ];
        let Gate::StandBy(newest) = gate(&here(), 5, &rivals, true) else {
            panic!("not standing by");
        };
        assert_eq!(newest.seat, 7);
        // The same seen by the newest.
        let rivals = [
            rival(2, true, true),
            rival(5, true, false),
            rival(9, false, false),
        ];
        let Gate::Replace(older) = gate(&here(), 7, &rivals, true) else {
            panic!("nobody to replace");
        };
        assert_eq!(older[0].seat, 2);
    }

    #[test]
    fn what_a_hard_kill_left_blocks_nobody() {
        let mut dead = rival(3, false, false);
        dead.runner.active = true;
        let rivals = [dead, rival(9, false, false)];
        assert_eq!(
            gate(&here(), 5, &rivals, true),
            Gate::Pass { gone: vec![30, 90] }
        );
    }

    #[test]
    fn who_stands_by_and_who_is_started_again_keep_their_seats() {
        let mut service = rival(2, false, false);
        service.runner.restarts = true;
        let rivals = [service.clone(), rival(3, true, false)];
        assert_eq!(gate(&here(), 5, &rivals, true), Gate::Pass { gone: vec![] });
        let rivals = [elsewhere(service.clone(), |place| {
            place.namespace = "o".into()
        })];
        assert_eq!(gate(&here(), 5, &rivals, true), Gate::Pass { gone: vec![] });
        let rivals = [elsewhere(service, |place| place.boot = "c".into())];
        assert_eq!(
            gate(&here(), 5, &rivals, true),
            Gate::Pass { gone: vec![20] }
        );
    }

    #[test]
    fn strangers_are_told_but_never_killed_and_do_not_block_for_ever() {
        let changes: [fn(&mut Place); 2] = [
            |place| place.namespace = "o".into(),
            |place| place.machine = "o".into(),
        ];
        for change in changes {
            let stranger = elsewhere(rival(2, true, true), change);
            assert!(!may_be_killed(&here(), &stranger.runner));
            let rivals = [stranger];
            assert!(matches!(gate(&here(), 5, &rivals, true), Gate::Replace(_)));
            assert_eq!(
                gate(&here(), 5, &rivals, false),
                Gate::Pass { gone: vec![] }
            );
        }
        // Who is here is waited for without end: it can be killed.
        let rivals = [rival(2, true, true)];
        assert!(matches!(gate(&here(), 5, &rivals, false), Gate::Replace(_)));
    }

    /// Any set of runners has exactly one that does not stand by.
    #[test]
    fn one_of_all_is_the_one() {
        for count in 1..6 {
            let standing = (1..=count).filter(|seat| {
                let others = (1..=count).filter(|other| other != seat);
                let rivals: Vec<OtherRunner> =
                    others.map(|other| rival(other, true, false)).collect();
                !matches!(gate(&here(), *seat, &rivals, true), Gate::StandBy(_))
            });
            assert_eq!(standing.collect::<Vec<_>>(), [count]);
        }
    }
}
