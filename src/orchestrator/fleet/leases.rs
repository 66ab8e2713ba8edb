//! Deadlines of leases, and pages whose lease is lost.

use crate::database::RunRow;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{Outcome, SnapshotId};

/// Returns the time on CLOCK_BOOTTIME, in milliseconds, from which on no hook of a page starts: the
/// end of the lease of its host. `None` outside of a fleet.
pub(crate) fn not_after(turn: &Turn<'_>, page: Option<SnapshotId>) -> TurnResult<Option<u64>> {
    let Some(page) = page else {
        return Ok(None);
    };
    let deadline = turn.tx.page_deadline(page, &turn.engine.boot)?;
    Ok(deadline.map(|deadline| deadline.0))
}

/// Whether the time has passed from which on a run is not executed.
pub(crate) fn is_expired(turn: &Turn<'_>, run: &RunRow) -> bool {
    let now = turn.boottime.unsigned_abs();
    run.not_after.is_some_and(|end| now >= end)
}

/// Lets a hook run again, without counting the attempt, that was not executed because the lease of
/// its host had ended. The page is stopped if the lease was not renewed since.
pub(crate) fn forgive_late(turn: &Turn<'_>, run: &RunRow, outcome: &Outcome) -> TurnResult<()> {
    if *outcome == Outcome::Late
        && let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook)
    {
        turn.tx.put_off_uncounted(run.owner, plugin, hook)?;
    }
    Ok(())
}
