//! What the loop calls in the rooms above it. The house is the implementation (`house.rs`): the loop knows no
//! room.

use crate::main_loop::due::DueResult;
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::CrawlId;

/// A step of a turn.
pub(crate) type Step = fn(&mut Turn<'_>) -> TurnResult<()>;

pub(crate) trait Rooms: Sync {
    /// Steps before the events.
    fn before(&self) -> &'static [Step];

    /// Carries out what an event asks for.
    fn handle(&self, turn: &mut Turn<'_>, event: &Event) -> TurnResult<()>;

    /// Returns what may start now.
    fn due(&self, turn: &Turn<'_>) -> DueResult;

    /// Cancels as many waiting pages of a crawl as one turn may.
    fn cancel_some(&self, turn: &mut Turn<'_>, crawl: CrawlId, reason: &str) -> TurnResult<()>;

    /// Steps after the decisions.
    fn after(&self) -> &'static [Step];
}
