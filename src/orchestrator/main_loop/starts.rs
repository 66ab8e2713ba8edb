//! Starts on their way to systemd: those that wait for their turn, those in flight, and those that
//! are blocked by the unit before them. Pure; [`crate::main_loop::perform`] carries out what it says.

use archivist_core::model::RunId;
use archivist_core::unit::UnitSpec;
use archivist_shared::systemd::ErrorKind;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// A unit that is to be started, kept until systemd has taken it.
#[derive(Clone)]
pub struct Start {
    pub run: RunId,
    pub spec: Arc<UnitSpec>,
    pub stdin: Option<Arc<Vec<u8>>>,
    pub stdout: Output,
    /// Name of the watch without which the unit is not started.
    pub watch: Option<String>,
}

/// The standard output of a unit.
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
    /// systemd has answered that it took the start upon itself.
    accepted: bool,
    /// A job of the unit ended before the answer came: this one's, or one of the unit before.
    job_done: bool,
    /// Something was said of the unit before the answer came, and nobody could judge it then.
    doubtful: bool,
}

/// What is to be done after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// Signals came before the answer did: read the unit now.
    Read,
    /// The unit before it is loaded still: let that go.
    Unblock,
}

#[derive(Default)]
pub struct Starts {
    waiting: VecDeque<Start>,
    /// By unit, until the job is done.
    in_flight: HashMap<String, Flight>,
    /// By unit, until that is not loaded any more.
    blocked: HashMap<String, Start>,
}

impl Starts {
    pub fn push(&mut self, start: Start) {
        self.waiting.push_back(start);
    }

    /// The next start to be made, if fewer than `limit` are in flight: more than a few only add
    /// latency, and very many make PID 1 lose its own bus connection.
    pub fn next(&mut self, limit: u32) -> Option<Start> {
        if self.in_flight.len() >= limit.max(1) as usize {
            return None;
        }
        let start = self.waiting.pop_front()?;
        let flight = Flight {
            start: start.clone(),
            accepted: false,
            job_done: false,
            doubtful: false,
        };
        self.in_flight.insert(start.spec.name.clone(), flight);
        Some(start)
    }

    /// The main process of a unit ended.
    pub fn on_exited(&mut self, unit: &str) {
        if let Some(flight) = self.in_flight.get_mut(unit) {
            flight.doubtful |= !flight.accepted;
        }
    }

    /// A unit is not loaded any more: what waited for that may go on.
    pub fn on_removed(&mut self, unit: &str) {
        self.on_exited(unit);
        if let Some(start) = self.blocked.remove(unit) {
            self.waiting.push_back(start);
        }
    }

    /// A job of a unit ended. It may be the stop of the unit before, so a place in flight is free
    /// only if the start was answered.
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
            return if doubtful {
                After::Read
            } else {
                After::Nothing
            };
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

    /// A run is over: whatever became of its job, it takes no place any more.
    pub fn on_ended(&mut self, run: RunId) {
        self.in_flight
            .retain(|_, flight| flight.start.run != run || !flight.accepted);
    }

    /// Runs whose start systemd has not answered: that there is no unit says nothing about them.
    pub fn unanswered(&self) -> BTreeSet<RunId> {
        let in_flight = self.in_flight.values().filter(|flight| !flight.accepted);
        let in_flight = in_flight.map(|flight| flight.start.run);
        let others = self.waiting.iter().chain(self.blocked.values());
        in_flight.chain(others.map(|start| start.run)).collect()
    }

    pub fn is_unanswered(&self, run: RunId) -> bool {
        let in_flight = self.in_flight.values().filter(|flight| !flight.accepted);
        let in_flight = in_flight.map(|flight| &flight.start);
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
            watch: None,
        }
    }

    fn in_flight(run: i64) -> Starts {
        let mut starts = Starts::default();
        starts.push(start(run));
        assert_eq!(starts.next(1).unwrap().run, RunId(run));
        starts
    }

    #[test]
    fn a_place_is_free_when_the_job_is_done() {
        let mut starts = in_flight(1);
        starts.push(start(2));
        assert!(starts.next(1).is_none());
        assert_eq!(starts.on_answer(RunId(1), UNIT, None), After::Nothing);
        assert!(starts.next(1).is_none(), "its job is not done");
        starts.on_job_removed(UNIT);
        assert_eq!(starts.next(1).unwrap().run, RunId(2));
    }

    #[test]
    fn the_job_may_be_done_before_the_answer() {
        let mut starts = in_flight(1);
        starts.on_job_removed(UNIT);
        assert_eq!(starts.unanswered(), [RunId(1)].into());
        starts.on_answer(RunId(1), UNIT, None);
        assert!(starts.in_flight.is_empty());
    }

    /// The stop of the unit before ends between our start and its refusal: the start is kept.
    #[test]
    fn the_job_of_the_unit_before_does_not_lose_a_start() {
        let mut starts = in_flight(1);
        starts.on_job_removed(UNIT);
        let answer = starts.on_answer(RunId(1), UNIT, Some(ErrorKind::UnitExists));
        assert_eq!(answer, After::Unblock);
        assert_eq!(starts.unanswered(), [RunId(1)].into());
        starts.on_removed(UNIT);
        assert_eq!(starts.next(1).unwrap().run, RunId(1));
    }

    #[test]
    fn what_was_said_before_the_answer_is_looked_at_after_it() {
        let mut starts = in_flight(1);
        starts.on_removed(UNIT);
        assert_eq!(starts.on_answer(RunId(1), UNIT, None), After::Read);
    }

    #[test]
    fn a_run_that_ended_takes_no_place() {
        let mut starts = in_flight(1);
        starts.on_answer(RunId(1), UNIT, None);
        starts.on_ended(RunId(1));
        assert!(starts.in_flight.is_empty());
        let mut starts = in_flight(2);
        starts.on_ended(RunId(2));
        assert!(!starts.in_flight.is_empty(), "its answer is still to come");
    }
}
