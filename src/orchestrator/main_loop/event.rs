//! The events of the loop.

use crate::bus::call::Reply;
use crate::database::Durability;
use crate::main_loop::order::Call;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, Outcome, Reading, RunId};
use archivist_core::plan::{Evidence, Writer};
use archivist_core::unit::{Names, UnitKind};
use archivist_plugin::Catalogue;
use archivist_shared::systemd::{Hint, HintQueue, LoadedUnit, ManagerError};
use std::any::Any;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct UnitEnd {
    pub outcome: Outcome,
    pub reading: Reading,
    /// Whether systemd has the unit still.
    pub loaded: bool,
}

impl UnitEnd {
    /// The end of a unit that does not exist.
    pub fn without_unit(outcome: Outcome) -> UnitEnd {
        UnitEnd { outcome, reading: Reading::default(), loaded: false }
    }
}

/// What the files of a unit say, in the type of its kind.
pub type Contents = Arc<dyn Any + Send + Sync>;

/// A unit that has ended, with what its files say.
#[derive(Clone)]
pub struct Collected {
    pub run: RunId,
    pub end: UnitEnd,
    pub contents: Contents,
}

/// What became of something that a room asked for, or what it does next.
pub type Occurrence = Arc<dyn Fn(&mut Turn<'_>) -> TurnResult<()> + Send + Sync>;

#[derive(Clone)]
pub enum Event {
    Call(Call),
    Hint(Hint),
    /// Hints are waiting; all are taken together.
    Hinted(HintQueue),
    /// systemd answered a start.
    Started {
        run: RunId,
        unit: String,
        result: Result<(), ManagerError>,
    },
    /// A unit was read, because of a hint or to adopt it. `early`: systemd had not answered the
    /// start of this run by then. `stopping`: the system goes down.
    Read {
        run: RunId,
        unit: String,
        early: bool,
        evidence: Option<Evidence>,
        result: Result<Box<Reading>, ManagerError>,
        stopping: bool,
    },
    /// The units that systemd has, for reconciling.
    Listed(Result<Vec<LoadedUnit>, ManagerError>),
    /// The files of a unit that has ended were read.
    Collected(Box<Collected>),
    /// What only its room knows.
    Of(Occurrence),
    /// The disk is nearly full, or shrinks by so many bytes a second that it soon will be.
    DiskShort(u64),
    /// What hooks have written was measured, at this rate.
    Measured(Vec<Writer>, u64),
    /// A command that held a crawl in the foreground has ended; `cancel`: the crawl is aborted.
    Abandoned {
        crawl: CrawlId,
        cancel: bool,
    },
    /// The registered command of this number has ended.
    CommandEnded(u64),
    /// The wall clock was set by this number of milliseconds.
    ClockSet(i64),
    HungUp,
    /// The check of the database found damage.
    Damaged(String),
    /// A requested time has come.
    Due,
    RunnersChanged,
    Reload,
    /// SIGTERM or SIGINT.
    Terminate,
}

impl Event {
    /// An event that its room takes with this function.
    pub fn of(take: impl Fn(&mut Turn<'_>) -> TurnResult<()> + Send + Sync + 'static) -> Event {
        Event::Of(Arc::new(take))
    }

    /// What the commit must survive. Anything a user may have seen survives a power cut: requests,
    /// results of hooks, and the end of a page or crawl, which the end of its worker decides.
    /// Starts and ends of hooks are found out again after a power cut.
    pub fn durability(&self, names: &Names) -> Durability {
        let is_hook = |unit: &str| names.kind_of(unit) == Some(UnitKind::Hook);
        match self {
            Event::Hint(_) | Event::Started { result: Ok(()), .. } => Durability::ProcessCrash,
            Event::Call(call) => call.order.durability(),
            Event::Read { unit, .. } if is_hook(unit) => Durability::ProcessCrash,
            _ => Durability::PowerLoss,
        }
    }

    /// Whether the event may take long and can wait for a later turn: no event of systemd, and
    /// every request but that for the status.
    pub fn is_heavy(&self) -> bool {
        matches!(self, Event::Call(call) if call.order.is_heavy())
    }

    /// Whether configuration and plugins are read again before it.
    pub fn reloads(&self) -> bool {
        match self {
            Event::Reload => true,
            Event::Call(call) => call.order.reloads(),
            _ => false,
        }
    }

    /// Whether it is a call that names a plugin or setting that is not in the catalogue.
    pub fn names_unknown(&self, catalogue: &Catalogue) -> bool {
        matches!(self, Event::Call(call) if call.order.names_unknown(catalogue))
    }

    /// The caller that waits for the answer, if one does.
    pub fn caller(&self) -> Option<&Reply> {
        match self {
            Event::Call(call) => Some(&call.reply),
            _ => None,
        }
    }

    /// Whether a start or a message may become possible with this event. A hint only leads to a
    /// reading, and a confirmed start changes no count.
    pub fn decides(&self) -> bool {
        !matches!(self, Event::Hint(_) | Event::Started { result: Ok(()), .. })
    }
}

impl From<Call> for Event {
    fn from(call: Call) -> Event {
        Event::Call(call)
    }
}

/// The circumstances of a reading, see `UnitSeen`.
pub(crate) struct ReadingContext<'a> {
    pub early: bool,
    pub evidence: Option<&'a Evidence>,
    pub stopping: bool,
}

/// Replaces the events that hints are waiting by the hints.
pub fn unfold(batch: Vec<Event>) -> Vec<Event> {
    let unfolded = batch.into_iter().flat_map(|event| match event {
        Event::Hinted(hints) => hints.take_all().into_iter().map(Event::Hint).collect(),
        other => vec![other],
    });
    unfolded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Reading;

    #[test]
    fn hints_are_unfolded_in_their_place() {
        let hints = HintQueue::default();
        hints.push(Hint::Reloaded);
        let batch = vec![Event::Due, Event::Hinted(hints.clone()), Event::RunnersChanged];
        hints.push(Hint::Disconnected);
        let batch = unfold(batch);
        use Event::{Due, RunnersChanged};
        assert!(matches!(
            batch[..],
            [Due, Event::Hint(Hint::Reloaded), Event::Hint(Hint::Disconnected), RunnersChanged]
        ));
    }

    #[test]
    fn results_survive_power_loss() {
        let names = Names::new("archivist");
        let read = |unit: &str| {
            let event = Event::Read {
                run: RunId(1),
                unit: unit.into(),
                early: false,
                evidence: None,
                result: Ok(Box::new(Reading::default())),
                stopping: false,
            };
            event.durability(&names)
        };
        assert_eq!(read("archivist-hook-wget-s3.service"), Durability::ProcessCrash);
        assert_eq!(read("archivist-snapshot-3.service"), Durability::PowerLoss);
        assert_eq!(read("archivist-crawl-1.service"), Durability::PowerLoss);
        assert_eq!(Event::Hint(Hint::Reloaded).durability(&names), Durability::ProcessCrash);
        assert_eq!(Event::Due.durability(&names), Durability::PowerLoss);
    }
}
