//! The answer of a worker about a run that has ended.

use crate::database::RunRow;
use crate::main_loop;
use crate::main_loop::action::UnitAction;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::CrawlId;
use archivist_core::model::{Outcome, ResultState};
use archivist_core::plan::{RunFlags, awaits_decision, runs_again};
use archivist_shared::bus::documents::work::Ended;

fn state_of_result(turn: &Turn<'_>, run: &RunRow) -> TurnResult<Option<ResultState>> {
    match (&run.plugin, &run.hook) {
        (Some(plugin), Some(hook)) => main_loop::result_state(turn, run.owner, plugin, hook),
        _ => Ok(None),
    }
}

/// Whether a user has to decide what follows this run.
pub(super) fn is_undecided(turn: &Turn<'_>, run: &RunRow) -> TurnResult<bool> {
    let result = state_of_result(turn, run)?;
    let is_held = is_held(turn, run.crawl);
    Ok(awaits_decision(run.interrupted, is_held, result))
}

/// Answers the callers that wait for a run that has ended, unless a decision about it is open.
pub(crate) fn settle(turn: &mut Turn<'_>, run: &RunRow) -> TurnResult<()> {
    if is_undecided(turn, run)? {
        turn.act(UnitAction::Ended(run.id));
        return Ok(());
    }
    let ended = run_result(turn, run)?;
    turn.settle(run.id, &ended)
}

pub(super) fn run_result(turn: &Turn<'_>, run: &RunRow) -> TurnResult<Ended> {
    let flags =
        RunFlags { interrupted: run.interrupted, frozen: run.frozen, starting: run.starting };
    let result = state_of_result(turn, run)?;
    let shortage = &turn.engine.shortage;
    let met = shortage.met(run.started_at, run.ended_at);
    let met = met.map(|stuck| stuck.why.clone());
    let unable = run.outcome.as_ref().filter(|it| it.is_unable_to_start());
    Ok(Ended {
        run: Some(run.id),
        unit: Some(run.unit.clone()),
        argv: run.argv.clone(),
        parent: run.parent,
        outcome: run.outcome.clone().unwrap_or(Outcome::Lost),
        again: runs_again(flags, run.outcome.as_ref(), result),
        lack: met.or(unable.map(Outcome::to_string)),
        verdict: None,
        started_at: run.started_at,
        ended_at: run.ended_at,
    })
}

pub(crate) fn is_held(turn: &Turn<'_>, crawl: CrawlId) -> bool {
    turn.engine.held.contains_key(&crawl)
}
