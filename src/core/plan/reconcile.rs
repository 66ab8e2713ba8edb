//! Compares recorded runs with loaded units. Every start of the orchestrator begins with this.

use crate::model::RunId;
use std::collections::HashMap;

/// A run that has not ended according to its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub id: RunId,
    pub unit: String,
    /// systemd has not answered the start yet.
    pub unanswered: bool,
    pub boot: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveUnit {
    pub unit: String,
    pub active_state: String,
}

/// What to do about a run or a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The unit is loaded: read it to see whether it runs.
    Adopt(RunId),
    /// The unit is not listed. The list may be older than the unit, so read it to be sure.
    Check(RunId),
    /// The run was started during another boot: neither unit nor outcome exists.
    Lose(RunId),
    /// A unit without a row: stop it.
    Release(String),
}

/// Decides what to do about open runs and loaded units. During one boot a unit's name has at most
/// one open run.
pub fn reconcile(runs: &[OpenRun], live: &[LiveUnit], boot: &str) -> Vec<Repair> {
    let mut strangers: HashMap<&str, &LiveUnit> =
        live.iter().map(|unit| (unit.unit.as_str(), unit)).collect();
    let mut repairs = Vec::new();
    for run in runs {
        if run.boot != boot {
            repairs.push(Repair::Lose(run.id));
            continue;
        }
        let listed = strangers.remove(run.unit.as_str()).is_some();
        match (run.unanswered, listed) {
            (true, _) => {}
            (false, true) => repairs.push(Repair::Adopt(run.id)),
            (false, false) => repairs.push(Repair::Check(run.id)),
        }
    }
    let mut rest: Vec<_> = strangers.into_keys().collect();
    rest.sort_unstable();
    repairs.extend(rest.into_iter().map(|unit| Repair::Release(unit.to_owned())));
    repairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: i64, unit: &str, boot: &str) -> OpenRun {
        OpenRun { id: RunId(id), unit: unit.into(), unanswered: false, boot: boot.into() }
    }

    fn live(unit: &str) -> LiveUnit {
        LiveUnit { unit: unit.into(), active_state: "active".into() }
    }

    #[test]
    fn every_row_and_every_unit_gets_one_answer() {
        let runs = [run(1, "a", "now"), run(2, "b", "now"), run(3, "c", "before")];
        let units = [live("a"), live("d")];
        assert_eq!(
            reconcile(&runs, &units, "now"),
            [
                Repair::Adopt(RunId(1)),
                Repair::Check(RunId(2)),
                Repair::Lose(RunId(3)),
                Repair::Release("d".into())
            ]
        );
    }

    #[test]
    fn unit_of_this_boot_does_not_match_a_run_of_another() {
        let repairs = reconcile(&[run(1, "a", "before")], &[live("a")], "now");
        assert_eq!(repairs, [Repair::Lose(RunId(1)), Repair::Release("a".into())]);
    }

    #[test]
    fn unanswered_start_is_not_repaired() {
        let unanswered = OpenRun { unanswered: true, ..run(1, "a", "now") };
        let runs = [unanswered];
        assert_eq!(reconcile(&runs, &[], "now"), []);
        assert_eq!(reconcile(&runs, &[live("a")], "now"), []);
    }
}
