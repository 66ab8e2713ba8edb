//! What the loop calls in the rooms above it. The house is the implementation (`house.rs`): the loop knows no
//! room.

use crate::main_loop::due::DueResult;
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, Owner};

pub(crate) type Step = fn(&mut Turn<'_>) -> TurnResult<()>;

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
}
