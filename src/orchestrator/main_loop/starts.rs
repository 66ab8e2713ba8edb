//! Starts of units: waiting, in flight, and blocked by an earlier unit. Pure;
//! [`crate::main_loop::perform`] makes the calls.

use archivist_config::Scope;
use archivist_core::model::RunId;
use archivist_core::unit::UnitSpec;
use archivist_shared::systemd::ErrorKind;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// A start, kept until systemd has accepted it.
#[derive(Clone)]
pub struct Start {
    pub run: RunId,
    pub spec: Arc<UnitSpec>,
    /// Content of the file that is its standard input.
    pub stdin: Option<Arc<Vec<u8>>>,
    pub stdout: Output,
    pub needs: Option<Need>,
}

/// Looks whether what a unit needs is there still, or returns why not.
pub type Need = Arc<dyn Fn(&Scope) -> Result<(), String> + Send + Sync>;

#[derive(Clone)]
pub enum Output {
    /// What the unit's own settings say.
    OfUnit,
    Descriptor(Arc<OwnedFd>),
    /// A file, which is made right before the start.
    Record(PathBuf),
}

struct Flight {
    start: Start,
    /// systemd has accepted the start.
    accepted: bool,
    /// A job of the unit ended before the answer: that of this start, or of the earlier unit.
    job_done: bool,
    /// A signal about the unit came before the answer, and may be about the earlier unit.
    doubtful: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// Signals came before the answer: read the unit.
    Read,
    /// The earlier unit is still loaded: release it.
    Unblock,
}

#[derive(Default)]
pub struct Starts {
    waiting: VecDeque<Start>,
    /// By unit, until the job is done.
    in_flight: HashMap<String, Flight>,
    /// By unit, until the earlier unit is gone.
    blocked: HashMap<String, Start>,
}

impl Starts {
    pub fn push(&mut self, start: Start) {
        self.waiting.push_back(start);
    }

    /// The next start, if fewer than `limit` are in flight: more than a few only add latency, and
    /// very many make PID 1 lose its own bus connection.
    pub fn next(&mut self, limit: u32) -> Option<Start> {
        if self.in_flight.len() >= limit.max(1) as usize {
            return None;
        }
        let start = self.waiting.pop_front()?;
        let flight =
            Flight { start: start.clone(), accepted: false, job_done: false, doubtful: false };
        self.in_flight.insert(start.spec.name.clone(), flight);
        Some(start)
    }

    pub fn on_exited(&mut self, unit: &str) {
        if let Some(flight) = self.in_flight.get_mut(unit) {
            flight.doubtful |= !flight.accepted;
        }
    }

    /// A unit is gone: the start that waited for this is no longer blocked.
    pub fn on_removed(&mut self, unit: &str) {
        self.on_exited(unit);
        if let Some(start) = self.blocked.remove(unit) {
            self.waiting.push_back(start);
        }
    }

    /// A job of a unit ended. It may be the stop of the earlier unit, so that the slot is free only
    /// if the start was answered.
    pub fn on_job_removed(&mut self, unit: &str) {
        let Some(flight) = self.in_flight.get_mut(unit) else {
            return;
        };
        flight.job_done = true;
        flight.doubtful |= !flight.accepted;
        if flight.accepted {
            self.in_flight.remove(unit);
        }
    }

    /// systemd answered the start of `run`.
    pub fn on_answer(&mut self, run: RunId, unit: &str, error: Option<ErrorKind>) -> After {
        let Some(flight) = self.in_flight.get_mut(unit) else {
            return After::Nothing;
        };
        if flight.start.run != run {
            return After::Nothing;
        }
        let Some(error) = error else {
            flight.accepted = true;
            let (doubtful, job_done) = (flight.doubtful, flight.job_done);
            if job_done {
                self.in_flight.remove(unit);
            }
            return if doubtful { After::Read } else { After::Nothing };
        };
        let flight = self.in_flight.remove(unit);
        match flight {
            Some(flight) if error == ErrorKind::UnitExists => {
                self.blocked.insert(unit.to_owned(), flight.start);
                After::Unblock
            }
            _ => After::Nothing,
        }
    }

    /// A run has ended, and needs no slot.
    pub fn on_ended(&mut self, run: RunId) {
        self.in_flight.retain(|_, flight| flight.start.run != run || !flight.accepted);
    }

    /// Runs whose start systemd has not answered. A missing unit means nothing for them.
    pub fn unanswered(&self) -> BTreeSet<RunId> {
        let in_flight = self
            .in_flight
            .values()
            .filter(|flight| !flight.accepted)
            .map(|flight| flight.start.run);
        let others = self.waiting.iter().chain(self.blocked.values());
        in_flight.chain(others.map(|start| start.run)).collect()
    }

    pub fn is_unanswered(&self, run: RunId) -> bool {
        let in_flight =
            self.in_flight.values().filter(|flight| !flight.accepted).map(|flight| &flight.start);
        let mut all = in_flight.chain(&self.waiting).chain(self.blocked.values());
        all.any(|start| start.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, Owner};
    use archivist_core::unit::{Names, WorkerSpec};

    const UNIT: &str = "archivist-crawl-1.service";

    fn start(run: i64) -> Start {
        let worker = WorkerSpec {
            owner: Owner::Crawl(CrawlId(1)),
            crawl: CrawlId(1),
            url: "http://a.example/",
            program: "/usr/bin/archivist",
            user_scope: false,
            archive: "/archive".into(),
            limit: None,
            network: None,
        };
        Start {
            run: RunId(run),
            spec: Arc::new(UnitSpec::worker(&Names::new("archivist"), worker)),
            stdin: None,
            stdout: Output::OfUnit,
            needs: None,
        }
    }

    fn in_flight(run: i64) -> Starts {
        let mut starts = Starts::default();
        starts.push(start(run));
        assert_eq!(starts.next(1).unwrap().run, RunId(run));
        starts
    }

    #[test]
    fn slot_is_free_after_answer_and_job() {
        let mut starts = in_flight(1);
        starts.push(start(2));
        assert!(starts.next(1).is_none());
        assert_eq!(starts.on_answer(RunId(1), UNIT, None), After::Nothing);
        assert!(starts.next(1).is_none(), "its job is not done");
        starts.on_job_removed(UNIT);
        assert_eq!(starts.next(1).unwrap().run, RunId(2));
    }

    #[test]
    fn job_may_end_before_the_answer() {
        let mut starts = in_flight(1);
        starts.on_job_removed(UNIT);
        assert_eq!(starts.unanswered(), [RunId(1)].into());
        starts.on_answer(RunId(1), UNIT, None);
        assert!(starts.in_flight.is_empty());
    }

    /// The stop of the earlier unit ends between the start and its refusal: the start is kept.
    #[test]
    fn job_of_the_earlier_unit_keeps_the_start() {
        let mut starts = in_flight(1);
        starts.on_job_removed(UNIT);
        let answer = starts.on_answer(RunId(1), UNIT, Some(ErrorKind::UnitExists));
        assert_eq!(answer, After::Unblock);
        assert_eq!(starts.unanswered(), [RunId(1)].into());
        starts.on_removed(UNIT);
        assert_eq!(starts.next(1).unwrap().run, RunId(1));
    }

    #[test]
    fn early_signal_leads_to_a_reading_after_the_answer() {
        let mut starts = in_flight(1);
        starts.on_removed(UNIT);
        assert_eq!(starts.on_answer(RunId(1), UNIT, None), After::Read);
    }

    #[test]
    fn ended_run_uses_no_slot() {
        let mut starts = in_flight(1);
        starts.on_answer(RunId(1), UNIT, None);
        starts.on_ended(RunId(1));
        assert!(starts.in_flight.is_empty());
        let mut starts = in_flight(2);
        starts.on_ended(RunId(2));
        assert!(!starts.in_flight.is_empty(), "its answer is still to come");
    }
}
