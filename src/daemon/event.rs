//! What the loop hears.

use super::inspect::Seen;
use crate::bus::call::{Call, Request, Work};
use crate::manager::{Hint, Listed, ManagerError};
use crate::model::{CrawlId, Reading, RunId};
use crate::store::Lasting;

/// The evidence in a signal about a main process that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub code: i32,
    pub status: i32,
    pub result: String,
}

/// Everything that can happen.
#[derive(Clone)]
pub enum Event {
    Request(Request),
    Work(Work),
    Hint(Hint),
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
    Listed(Result<Vec<Listed>, ManagerError>),
    /// Programs were looked at.
    Inspected(Vec<Seen>),
    /// Whoever held a crawl in the foreground is gone; `cancel`: it goes with them.
    Abandoned {
        crawl: CrawlId,
        cancel: bool,
    },
    /// The wall clock was set by so many milliseconds.
    ClockSet(i64),
    /// The bus hung up on us.
    HungUp,
    /// The database was read through, and is damaged.
    Damaged(String),
    /// A time has come that was asked for.
    Due,
    /// The table of runners changed.
    Rival,
    /// SIGHUP.
    Reload,
    /// SIGTERM or SIGINT.
    Terminate,
}

impl Event {
    /// What its transaction is to outlast. What people were told and what hooks came to is kept for
    /// good; what a power cut takes of the rest, the next orchestrator does again.
    pub fn lasting(&self) -> Lasting {
        let kept = matches!(
            self,
            Event::Request(_)
                | Event::Work(Work::Report { .. } | Work::SnapshotsDone { .. })
                | Event::Abandoned { .. }
                | Event::Terminate
        );
        match kept {
            true => Lasting::PowerCuts,
            false => Lasting::Kills,
        }
    }
}

impl From<Call> for Event {
    fn from(call: Call) -> Event {
        match call {
            Call::Request(request) => Event::Request(request),
            Call::Work(work) => Event::Work(work),
        }
    }
}

impl From<Hint> for Event {
    fn from(hint: Hint) -> Event {
        Event::Hint(hint)
    }
}
