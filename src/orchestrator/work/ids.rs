//! Ids that the archive knows and the database does not: the database was replaced by an older copy or
//! by a new one, or a second data directory uses the same archive. `main_loop/fact_reader.rs` reads them.

use crate::main_loop::log::Problem;
use crate::main_loop::turn::Turn;
use crate::store::Result;
use archivist_core::model::IdMarks;

/// Hands out only ids above those of the archive from now on, and logs it if they are new.
pub(crate) fn raise_ids(turn: &mut Turn<'_>, archive: IdMarks) -> Result<()> {
    if let Some(database) = turn.tx.raise_ids(archive)? {
        turn.log_problem(Problem::IdsRaised { database, archive });
    }
    Ok(())
}
