//! Whether the clock of the machine is believed. It is looked at in each turn, and what is known of it
//! is recorded, because the clock may be set while no orchestrator runs.

use crate::main_loop::action::CallerAction;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::plan::{ClockChange, ClockReading};

fn reading(turn: &Turn<'_>) -> ClockReading {
    ClockReading { wall: turn.now, boot: turn.engine.boot.clone(), machine: turn.boottime }
}

pub(crate) fn observe(turn: &mut Turn<'_>) -> TurnResult<()> {
    let state = turn.tx.clock_state()?;
    let is_synchronized = turn.engine.is_clock_synchronized;
    match state.observe(reading(turn), is_synchronized) {
        Some(change) => take(turn, change),
        None => Ok(()),
    }
}

/// An administrator confirms the clock.
pub(crate) fn confirm(turn: &mut Turn<'_>) -> TurnResult<()> {
    let change = turn.tx.clock_state()?.believed(reading(turn));
    take(turn, change)
}

fn take(turn: &mut Turn<'_>, change: ClockChange) -> TurnResult<()> {
    let ClockChange { state, has_gap, confirms_doubt } = change;
    if let Some(doubt) = &state.doubt {
        let why = doubt.why.clone();
        turn.log(move || {
            tracing::warn!(
                "{why}: nothing is deleted because of its age until the clock is right, a time server confirms it, or: archivist delete --by-retention"
            )
        });
        turn.act(CallerAction::StatusChanged);
    }
    turn.tx.set_clock_state(&state, confirms_doubt)?;
    for step in turn.rooms.parts().clock_gap.iter().filter(|_| has_gap) {
        step(turn)?;
    }
    Ok(())
}
