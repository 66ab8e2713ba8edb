//! Runs whose unit is gone and whose end nothing shows: systemd keeps units that end by themselves, so the
//! unit was stopped while no orchestrator worked, by a stop of archivist.slice, for example, or at the end of
//! a user's session. That is an interruption and no failed attempt.

use crate::database::{FORGIVEN_MAX, RunRow};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::Outcome;
use archivist_core::plan::Uncounted;
use archivist_core::unit::UnitKind;
use std::time::Duration;

/// Takes back the attempt of a hook that was lost in this way.
pub(super) fn forgive_lost_hook(
    turn: &mut Turn<'_>,
    run: &RunRow,
    outcome: &Outcome,
) -> TurnResult<()> {
    if run.kind == UnitKind::Hook && is_interruption(turn, run, outcome)? {
        turn.tx.take_back_hook_attempt(run)?;
    }
    Ok(())
}

/// Why a worker that was lost in this way made no failed attempt.
pub(super) fn lost_worker(turn: &Turn<'_>, run: &RunRow) -> TurnResult<Option<Uncounted>> {
    let Some(outcome) = &run.outcome else {
        return Ok(None);
    };
    Ok(is_interruption(turn, run, outcome)?.then(|| Uncounted {
        why: "its units were stopped while no orchestrator was running; the attempt does not count"
            .to_owned(),
        delay: Duration::ZERO,
    }))
}

/// Attempts that a crash of the machine interrupted are counted elsewhere. A unit that is lost each
/// time is quarantined in the end.
fn is_interruption(turn: &Turn<'_>, run: &RunRow, outcome: &Outcome) -> TurnResult<bool> {
    let is_lost = *outcome == Outcome::Lost && run.boot == turn.engine.boot;
    Ok(is_lost && turn.tx.lost_runs(&run.unit)? < FORGIVEN_MAX)
}
