//! What the loop calls in the rooms above it. The house is the implementation (`house.rs`): the loop knows no
//! room.

use crate::database::SnapshotWork;
use crate::main_loop::due::DueResult;
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, Owner, RunId, SnapshotId};
use archivist_shared::bus::documents::report::{Details, Metrics, Reason, Status, WhyRun};

pub(crate) type Step = fn(&mut Turn<'_>) -> TurnResult<()>;

/// Adds what a room knows to an answer.
pub(crate) type Part<T> = fn(&Turn<'_>, &mut T) -> TurnResult<()>;

/// Refuses new pages with these tags of the user with this id.
pub(crate) type AdmitNew = fn(&Turn<'_>, &[String], u32) -> TurnResult<()>;

/// Adds reasons of a page.
pub(crate) type WhyPage = fn(&Turn<'_>, SnapshotId, &mut Vec<Reason>) -> TurnResult<()>;

/// Why a run of no crawl has not ended, or how it ended. `None` if it is not of the room.
pub(crate) type WhyOther = fn(&Turn<'_>, RunId) -> TurnResult<Option<WhyRun>>;

/// What rooms add to the steps and answers of others, which do not know them. Each list is called in its order.
pub(crate) struct Parts {
    pub admit_new: &'static [AdmitNew],
    /// What a page waits for before its worker starts: `false` if that is recorded.
    pub admit: &'static [fn(&mut Turn<'_>, &SnapshotWork) -> TurnResult<bool>],
    /// What follows from the seal of a page.
    pub sealed: &'static [fn(&mut Turn<'_>, SnapshotId) -> TurnResult<()>],
    /// What follows when time passed without a reading of the clock, or it is believed again.
    pub clock_gap: &'static [Step],
    pub status: &'static [Part<Status>],
    pub metrics: &'static [Part<Metrics>],
    pub details: &'static [Part<Details>],
    pub why: &'static [WhyPage],
    pub why_run: &'static [WhyOther],
}

/// The results that a retry queues again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that failed or were skipped.
    Failed,
    /// Those of this plugin or hook, which also runs on pages that have no result of it.
    Hook(String),
    All,
    /// Those that a sealed page lacks of the plugins that its crawl would use now.
    Missing,
    /// Those of sealed pages that were skipped because this program was missing or too old.
    Waiting(String),
}

pub(crate) trait Rooms: Sync {
    /// What a new process does first, and again with new settings.
    fn first(&self) -> Vec<Event>;

    /// Steps before the events.
    fn before(&self) -> &'static [Step];

    /// Carries out what an event asks for.
    fn handle(&self, turn: &mut Turn<'_>, event: &Event) -> TurnResult<()>;

    /// Returns what may start now.
    fn due(&self, turn: &Turn<'_>) -> DueResult;

    /// Cancels as many waiting pages of a crawl as one turn may.
    fn cancel_some(&self, turn: &mut Turn<'_>, crawl: CrawlId, reason: &str) -> TurnResult<()>;

    /// A retry that the program requests itself, of a crawl or snapshot or of the whole archive.
    fn retry(&self, id: Option<Owner>, which: Which) -> Call;

    /// Steps after the decisions.
    fn after(&self) -> &'static [Step];

    fn parts(&self) -> &'static Parts;
}
