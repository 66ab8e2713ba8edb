//! What is due to start. Each kind of unit says that for itself; a turn makes the starts.

use crate::database::DatabaseError;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::plan::Outlook;
use std::fmt::Display;

/// The start of a unit: records its run and queues the start.
pub(crate) type Begin = Box<dyn FnOnce(&mut Turn<'_>) -> TurnResult<()>>;

/// A unit that is due to start.
pub(crate) struct DueUnit {
    /// What starts, for the log.
    pub what: String,
    pub begin: Begin,
}

impl DueUnit {
    /// The start of the unit for the row `id`, by `begin`.
    pub fn of<Id: Copy + 'static>(
        what: impl Display,
        id: Id,
        begin: fn(&mut Turn<'_>, Id) -> TurnResult<()>,
    ) -> DueUnit {
        DueUnit { what: what.to_string(), begin: Box::new(move |turn| begin(turn, id)) }
    }
}

/// What may start, unless the database fails.
pub(crate) type DueResult = Result<Due, DatabaseError>;

/// What a kind of unit may start now, and what is left to do.
#[derive(Default)]
pub(crate) struct Due {
    /// The starts that the limits allow, the first first.
    pub starts: Vec<DueUnit>,
    /// What is left to do, as it was before `starts`.
    pub outlook: Outlook,
}

impl Due {
    pub fn and(mut self, other: Due) -> Due {
        self.starts.extend(other.starts);
        self.outlook = self.outlook.and(other.outlook);
        self
    }
}
