//! What a reading of a unit means for its run, and which outcome is recorded.

use crate::model::{DEPENDENCY, Outcome, Reading};

const CLD_EXITED: i32 = 1;

/// What a signal of systemd said about a main process that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `CLD_EXITED` (1), `CLD_KILLED` (2) or `CLD_DUMPED` (3); 0 if there was no process.
    pub code: i32,
    /// Exit code or signal number.
    pub status: i32,
    /// Result of the unit: `success`, or why systemd regards it as failed.
    pub result: String,
}

#[derive(Clone, Copy, Debug)]
pub struct UnitSeen<'a> {
    pub reading: &'a Reading,
    /// What a signal of systemd reported about the end, if one did.
    pub evidence: Option<&'a Evidence>,
    /// systemd had not answered the start when the unit was read: that there is no unit, or the one
    /// of an earlier run, means nothing.
    pub early: bool,
    /// The system is shutting down.
    pub stopping: bool,
    /// The unit is the invocation of an earlier run, whose outcome is recorded.
    pub leftover: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UnitState {
    /// Nothing: a later signal or reading decides.
    Unknown,
    /// The start was recorded and never made: the run is lost, and the unit in its place is
    /// released.
    NeverStarted,
    Running,
    Ended {
        outcome: Outcome,
        /// With the evidence, if the unit is gone.
        reading: Box<Reading>,
        /// Whether systemd has the unit still, so that it must be released.
        loaded: bool,
    },
}

/// Decides what a reading means. A unit that is gone reads as success, so that its outcome comes
/// from the evidence, or is unknown.
pub fn unit_state(seen: &UnitSeen<'_>) -> UnitState {
    let gone = seen.reading.load_state == "not-found";
    let leftover = seen.leftover && !gone;
    if (gone || leftover) && seen.early {
        return UnitState::Unknown;
    }
    if leftover {
        return UnitState::NeverStarted;
    }
    let mut reading = seen.reading.clone();
    if gone && let Some(evidence) = seen.evidence {
        reading.exec_main_code = evidence.code;
        reading.exec_main_status = evidence.status;
        reading.result.clone_from(&evidence.result);
        reading.active_state = "failed".to_owned();
        // Without a stop, the unit would be there: RemainAfterExit= keeps one whose process was killed
        // by SIGTERM, and systemd one that failed.
        reading.was_stopped = evidence.code > CLD_EXITED;
    }
    let Some(outcome) = Outcome::of(&reading) else {
        return UnitState::Running;
    };
    let killed = matches!(outcome, Outcome::Signal(_) | Outcome::Lost);
    if seen.stopping && (killed || reading.result == DEPENDENCY) {
        // The work continues after the next boot.
        return UnitState::Unknown;
    }
    UnitState::Ended { outcome, reading: Box::new(reading), loaded: !gone }
}

/// Why a run ended that did not end by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    pub interrupted: bool,
    /// The disk was nearly full.
    pub short_of_disk: bool,
    /// Its crawl or snapshot was cancelled.
    pub cancelled: bool,
    /// It is a hook, and systemd stopped its unit.
    pub stopped: bool,
    /// The time has passed from which on it was not to be executed ([`UnitSpec::not_after`]).
    ///
    /// [`UnitSpec::not_after`]: crate::unit::UnitSpec::not_after
    pub expired: bool,
}

/// Exit status of the program that starts hooks if [`Ending::expired`] was so before the start.
const EXIT_LATE: i32 = 190;

/// The outcome to record: why the orchestrator ended the run, unless the run ended in another way
/// before that. systemd reports a time limit also for a unit that it killed after TimeoutStopSec=.
pub fn recorded_outcome(outcome: &Outcome, ending: Ending) -> Outcome {
    let by_signal = matches!(outcome, Outcome::Exit(_) | Outcome::Signal(_));
    if ending.interrupted {
        Outcome::Interrupted
    } else if ending.short_of_disk && by_signal {
        Outcome::DiskLimit
    } else if ending.expired && *outcome == Outcome::Exit(EXIT_LATE) {
        Outcome::Late
    } else if ending.cancelled && *outcome == Outcome::TimeLimit {
        Outcome::Killed
    } else if ending.stopped && !ending.cancelled && by_signal && !outcome.is_success() {
        Outcome::Stopped
    } else {
        outcome.clone()
    }
}

/// Why systemd did not start a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    UnitExists,
    /// The connection failed: whether the call had an effect is unknown.
    Unreachable,
    GoingDown,
    /// The machine lacks what every start requires.
    Machine,
    /// Another error: access denied, an invalid property, a full table of jobs.
    Refused,
}

/// What follows from systemd's answer to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// The unit exists: wait for its end.
    Running,
    /// The start is made again when the unit in its place is gone.
    Waiting,
    /// All units are listed and compared with the runs.
    Reconcile,
    /// The run is lost, and does not count as an attempt.
    Lost,
    /// The run has failed to start.
    Failed,
    /// The same, for the machine: it does not count as an attempt.
    Unable,
}

/// Decides what systemd's answer to a start means.
pub fn started(answer: Result<(), StartError>) -> Started {
    match answer {
        Ok(()) => Started::Running,
        Err(StartError::UnitExists) => Started::Waiting,
        Err(StartError::Unreachable) => Started::Reconcile,
        Err(StartError::GoingDown) => Started::Lost,
        Err(StartError::Machine) => Started::Unable,
        Err(StartError::Refused) => Started::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone() -> Reading {
        Reading {
            load_state: "not-found".to_owned(),
            active_state: "inactive".to_owned(),
            result: "success".to_owned(),
            ..Reading::default()
        }
    }

    fn loaded(active_state: &str, code: i32, status: i32) -> Reading {
        Reading {
            load_state: "loaded".to_owned(),
            active_state: active_state.to_owned(),
            result: "success".to_owned(),
            exec_main_code: code,
            exec_main_status: status,
            ..Reading::default()
        }
    }

    fn word(state: &UnitState) -> String {
        match state {
            UnitState::Unknown => "unknown".to_owned(),
            UnitState::NeverStarted => "never".to_owned(),
            UnitState::Running => "running".to_owned(),
            UnitState::Ended { outcome, loaded, .. } => {
                let outcome = match outcome {
                    Outcome::Exit(code) => format!("exit{code}"),
                    Outcome::Signal(signal) => format!("signal{signal}"),
                    Outcome::NotStarted(_) => "held".to_owned(),
                    other => format!("{other:?}").to_lowercase(),
                };
                format!("{outcome}{}", if *loaded { "+" } else { "" })
            }
        }
    }

    /// Each unit with each evidence. Columns: as it is, early, stopping, leftover, leftover and
    /// early.
    #[test]
    fn unit_states_by_reading_and_circumstances() {
        let evidence =
            |code, status, result: &str| Evidence { code, status, result: result.to_owned() };
        let killed = evidence(2, 15, "success");
        let exited = evidence(1, 0, "success");
        let held = evidence(0, 0, DEPENDENCY);
        let running = "running running running never unknown";
        let table = [
            (gone(), None, "lost unknown unknown lost unknown"),
            (gone(), Some(&killed), "signal15 unknown unknown signal15 unknown"),
            (gone(), Some(&exited), "exit0 unknown exit0 exit0 unknown"),
            (gone(), Some(&held), "held unknown unknown held unknown"),
            (loaded("active", 0, 0), None, running),
            (loaded("active", 0, 0), Some(&killed), running),
            (loaded("deactivating", 1, 0), None, running),
            (loaded("active", 1, 0), None, "exit0+ exit0+ exit0+ never unknown"),
            (loaded("failed", 1, 1), Some(&exited), "exit1+ exit1+ exit1+ never unknown"),
            (loaded("failed", 2, 9), None, "signal9+ signal9+ unknown never unknown"),
        ];
        for (reading, evidence, row) in &table {
            let columns = row.split_whitespace().enumerate();
            for (n, want) in columns {
                let seen = UnitSeen {
                    reading,
                    evidence: *evidence,
                    early: n == 1 || n == 4,
                    stopping: n == 2,
                    leftover: n >= 3,
                };
                assert_eq!(word(&unit_state(&seen)), want, "{seen:?}");
            }
        }
    }

    #[test]
    fn recorded_outcome_says_who_ended_the_run() {
        use Outcome::{DiskLimit, Exit, Interrupted, Lost, Signal, TimeLimit};
        // As it ended; short of disk; interrupted; both.
        let table = [
            (Exit(0), [Exit(0), DiskLimit, Interrupted, Interrupted]),
            (Signal(9), [Signal(9), DiskLimit, Interrupted, Interrupted]),
            (TimeLimit, [TimeLimit, TimeLimit, Interrupted, Interrupted]),
            (Lost, [Lost, Lost, Interrupted, Interrupted]),
        ];
        for (outcome, wanted) in table {
            for (n, want) in wanted.into_iter().enumerate() {
                let ending =
                    Ending { interrupted: n > 1, short_of_disk: n % 2 == 1, ..Ending::default() };
                assert_eq!(recorded_outcome(&outcome, ending), want);
            }
        }
        let cancelled = Ending { cancelled: true, ..Ending::default() };
        assert_eq!(recorded_outcome(&TimeLimit, cancelled), Outcome::Killed);
        assert_eq!(recorded_outcome(&Signal(15), cancelled), Signal(15));
    }

    #[test]
    fn hook_that_systemd_stopped_did_not_fail() {
        let stopped = Ending { stopped: true, ..Ending::default() };
        for outcome in [Outcome::Exit(1), Outcome::Signal(15), Outcome::Signal(9)] {
            assert_eq!(recorded_outcome(&outcome, stopped), Outcome::Stopped);
            let cancelled = Ending { cancelled: true, ..stopped };
            assert_eq!(recorded_outcome(&outcome, cancelled), outcome);
        }
        for outcome in [Outcome::Exit(0), Outcome::TimeLimit, Outcome::Lost] {
            assert_eq!(recorded_outcome(&outcome, stopped), outcome);
        }
    }

    #[test]
    fn unit_that_is_gone_although_it_was_killed_was_stopped() {
        let was_stopped = |code, status| {
            let evidence = Evidence { code, status, result: "success".to_owned() };
            let seen = UnitSeen {
                reading: &gone(),
                evidence: Some(&evidence),
                early: false,
                stopping: false,
                leftover: false,
            };
            match unit_state(&seen) {
                UnitState::Ended { reading, .. } => reading.was_stopped,
                other => panic!("{other:?}"),
            }
        };
        assert!(was_stopped(2, 15));
        assert!(!was_stopped(1, 0), "it may have exited before");
    }

    #[test]
    fn hook_was_late_only_if_its_time_had_passed() {
        let late = Outcome::Exit(EXIT_LATE);
        let expired = Ending { expired: true, ..Ending::default() };
        assert_eq!(recorded_outcome(&late, expired), Outcome::Late);
        assert_eq!(recorded_outcome(&late, Ending::default()), late);
        let failed = Outcome::Exit(1);
        assert_eq!(recorded_outcome(&failed, expired), failed);
    }

    #[test]
    fn started_by_answer() {
        let table = [
            (Ok(()), Started::Running),
            (Err(StartError::UnitExists), Started::Waiting),
            (Err(StartError::Unreachable), Started::Reconcile),
            (Err(StartError::GoingDown), Started::Lost),
            (Err(StartError::Machine), Started::Unable),
            (Err(StartError::Refused), Started::Failed),
        ];
        for (answer, want) in table {
            assert_eq!(started(answer), want);
        }
    }
}
