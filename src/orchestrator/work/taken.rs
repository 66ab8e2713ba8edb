//! A directory that belongs to another page: after the database was replaced by an older copy or a new
//! one, ids are handed out again, and with them the names of directories.

use crate::database::RunRow;
use crate::machine::token::token;
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::work::ends;
use archivist_core::model::Outcome;
use archivist_core::plan::Uncounted;
use archivist_shared::bus::documents::work::DIRECTORY_TAKEN;
use std::path::Path;
use std::time::Duration;

/// Characters of the identity in the name of a directory.
const SUFFIX: usize = 8;

/// If the worker of this run found its directory taken, gives the crawl or snapshot another one,
/// whose name no other can have. The id stays: callers, the fleet and the store know it already.
/// Only a directory of the usual name is replaced, so that this happens once.
pub(super) fn leave_taken(
    turn: &mut Turn<'_>,
    run: &RunRow,
    directory: Option<&str>,
) -> TurnResult<Option<Uncounted>> {
    let owner = run.owner;
    let is_taken = run.outcome == Some(Outcome::Exit(DIRECTORY_TAKEN));
    let Some(taken) = directory.filter(|_| is_taken).map(Path::new) else {
        return Ok(None);
    };
    if !taken.ends_with(owner.to_string()) {
        return Ok(None);
    }
    // Of an earlier worker, in the directory that the page leaves.
    ends::kill_hooks(turn, owner)?;
    // Another data directory may use the archive.
    turn.engine.are_ids_known.set(false);
    let identity = token().map_err(|error| failed(error.to_string()))?;
    let suffix = identity.get(..SUFFIX).unwrap_or(&identity);
    let other = taken.with_file_name(format!("{owner}-{suffix}"));
    turn.tx.relocate(owner, &other.to_string_lossy(), &identity)?;
    let (from, to) = (taken.to_owned(), other.clone());
    turn.log(move || {
        tracing::warn!(
            "directory '{}' belongs to another page than {owner}, which gets '{}'; was the database replaced by an older one?",
            from.display(),
            to.display()
        )
    });
    Ok(Some(Uncounted {
        why: format!(
            "its directory '{}' belongs to another page; it gets '{}'",
            taken.display(),
            other.display()
        ),
        delay: Duration::ZERO,
    }))
}
