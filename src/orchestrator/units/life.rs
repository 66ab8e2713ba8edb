//! The steps in the life of a unit, whatever its kind: the answer to its start, its end, and the
//! comparison with the rows of runs at the orchestrator's own start.

use super::Kinds;
use crate::database::UnitRow;
use crate::main_loop::action::{FileAction, LoopAction, UnitAction};
use crate::main_loop::allowance;
use crate::main_loop::due::{Due, DueResult};
use crate::main_loop::event::{Collected, Contents, UnitEnd};
use crate::main_loop::event::{Event, ReadingContext};
use crate::main_loop::starts::{Need, Output};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{DEPENDENCY, Outcome, Reading, RunId};
use archivist_core::plan::{
    Evidence, LiveUnit, OpenRun, Repair, StartError, Started, UnitSeen, UnitState, reconcile,
    started, unit_state,
};
use archivist_core::unit::UnitSpec;
use archivist_shared::journal::message;
use archivist_shared::systemd::{ErrorKind, Hint, LoadedUnit, ManagerError, Release};

/// systemd's answer to a start, as the plan takes it.
fn start_answer(result: &Result<(), ManagerError>) -> Result<(), StartError> {
    let error = match result {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    Err(match error.kind {
        ErrorKind::UnitExists => StartError::UnitExists,
        ErrorKind::Unreachable => StartError::Unreachable,
        ErrorKind::GoingDown => StartError::GoingDown,
        ErrorKind::Machine => StartError::Machine,
        ErrorKind::NoSuchUnit | ErrorKind::Busy | ErrorKind::Refused => StartError::Refused,
    })
}

/// Why systemd did not start a unit; empty if it did.
fn reason(result: &Result<(), ManagerError>) -> String {
    let error = result.as_ref().err();
    error.map(|error| error.why.clone()).unwrap_or_default()
}

pub(crate) fn due(turn: &Turn<'_>, kinds: Kinds) -> DueResult {
    let allowance = allowance(turn)?;
    let mut each = kinds.all().map(|kind| kind.due(turn, &allowance));
    each.try_fold(Due::default(), |all, due| Ok(all.and(due?)))
}

/// A signal of systemd arrived: the unit is read.
pub(crate) fn hint(turn: &mut Turn<'_>, kinds: Kinds, hint: &Hint) -> TurnResult<()> {
    match hint {
        Hint::Exited { unit, code, status, result } => {
            let (code, status, result) = (*code, *status, result.clone());
            let evidence = Evidence { code, status, result };
            look(turn, unit, Some(evidence)).map(drop)
        }
        // There was no process, and there is no unit: this is the only evidence.
        Hint::JobRemoved { unit, result } if result == DEPENDENCY => {
            let evidence = Evidence { code: 0, status: 0, result: result.clone() };
            look(turn, unit, Some(evidence)).map(drop)
        }
        Hint::JobRemoved { unit, result } if result != "done" => look(turn, unit, None).map(drop),
        Hint::JobRemoved { unit, .. } => match turn.tx.open_unit(unit)? {
            Some(run) => kinds.of(&run).came_up(turn, &run),
            None => Ok(()),
        },
        Hint::Removed { unit } => {
            if !look(turn, unit, None)? {
                turn.act(UnitAction::Forget(unit.clone()));
            }
            Ok(())
        }
        Hint::Reloaded => {
            turn.act(UnitAction::List);
            Ok(())
        }
        // Without systemd no work is possible; the service restarts and reconciles.
        Hint::Disconnected => {
            turn.act(LoopAction::Fail("lost the connection to systemd"));
            Ok(())
        }
    }
}

/// Queues the reading of a unit whose run has not ended. Returns whether there is such a run.
fn look(turn: &mut Turn<'_>, unit: &str, evidence: Option<Evidence>) -> TurnResult<bool> {
    let Some(run) = turn.tx.open_unit(unit)? else {
        return Ok(false);
    };
    turn.act(UnitAction::Read { run: run.id, unit: run.unit, evidence });
    Ok(true)
}

/// Queues the start of a unit whose run is recorded, with `stdin` as its standard input, and only
/// if `needs` is met then.
pub(crate) fn start(
    turn: &mut Turn<'_>,
    run: RunId,
    mut spec: UnitSpec,
    stdin: Option<Vec<u8>>,
    stdout: Output,
    needs: Option<Need>,
) {
    let has_input = stdin.is_some();
    spec.stdin = has_input.then(|| turn.engine.input_path(&spec.name, run));
    turn.act(UnitAction::Start { run, spec: Box::new(spec), stdin, stdout, needs });
}

pub(crate) fn started_unit(
    turn: &mut Turn<'_>,
    kinds: Kinds,
    id: RunId,
    result: &Result<(), ManagerError>,
) -> TurnResult<()> {
    let Some(run) = turn.tx.open_unit_by_id(id)? else {
        return Ok(());
    };
    let kind = kinds.of(&run);
    match started(start_answer(result)) {
        Started::Running => {
            turn.tx.set_run_running(id)?;
            kind.running(turn, &run)
        }
        Started::Waiting => Ok(()),
        Started::Reconcile => {
            turn.act(UnitAction::List);
            Ok(())
        }
        how @ (Started::Lost | Started::Failed | Started::Unable) => {
            let outcome = kind.not_started(how, reason(result));
            end(turn, kinds, &run, UnitEnd::without_unit(outcome), None)
        }
    }
}

pub(crate) fn read(
    turn: &mut Turn<'_>,
    kinds: Kinds,
    id: RunId,
    unit: &str,
    seen: &ReadingContext<'_>,
    result: &Result<Box<Reading>, ManagerError>,
) -> TurnResult<()> {
    let Some(run) = turn.tx.open_unit_by_id(id)? else {
        return Ok(());
    };
    let reading = match result {
        Ok(reading) => reading,
        // Without an answer there is no outcome: a lost connection is an event of its own.
        Err(error) => {
            let why = error.to_string();
            turn.log(move || tracing::warn!("{why}, ignoring"));
            return Ok(());
        }
    };
    let kind = kinds.of(&run);
    let unit_seen = UnitSeen {
        reading,
        evidence: seen.evidence,
        early: seen.early,
        stopping: seen.stopping && kind.outlasts_shutdown(),
        leftover: is_leftover(turn, unit, reading)?,
    };
    match unit_state(&unit_seen) {
        UnitState::Unknown => Ok(()),
        UnitState::NeverStarted => {
            end(turn, kinds, &run, UnitEnd::without_unit(Outcome::Lost), None)?;
            release(turn, unit, Release::for_reading(reading));
            Ok(())
        }
        UnitState::Running => {
            turn.tx.set_run_running(id)?;
            kind.running(turn, &run)
        }
        UnitState::Ended { outcome, reading, loaded } => {
            if kind.starts_again(turn, &run, &outcome)? {
                return Ok(turn.tx.requeue_run(id)?);
            }
            let unit_end = UnitEnd { outcome, reading: *reading, loaded };
            match kind.files(turn, &run)? {
                Some(read) => {
                    turn.act(FileAction::Run(Box::new(move |scope| {
                        Event::Collected(Box::new(Collected {
                            run: id,
                            end: unit_end,
                            contents: read(scope),
                        }))
                    })));
                    Ok(())
                }
                None => end(turn, kinds, &run, unit_end, None),
            }
        }
    }
}

pub(crate) fn collected(
    turn: &mut Turn<'_>,
    kinds: Kinds,
    collected: &Collected,
) -> TurnResult<()> {
    match turn.tx.open_unit_by_id(collected.run)? {
        Some(run) => end(turn, kinds, &run, collected.end.clone(), Some(&collected.contents)),
        None => Ok(()),
    }
}

/// Whether the unit is the invocation of an earlier run, whose outcome is recorded.
fn is_leftover(turn: &Turn<'_>, unit: &str, reading: &Reading) -> TurnResult<bool> {
    let before = turn.tx.ended_invocation(unit)?;
    Ok(before.is_some_and(|before| before == reading.invocation))
}

fn end(
    turn: &mut Turn<'_>,
    kinds: Kinds,
    run: &UnitRow,
    mut end: UnitEnd,
    contents: Option<&Contents>,
) -> TurnResult<()> {
    let kind = kinds.of(run);
    end.outcome = kind.recorded(turn, run, &end)?;
    if !turn.tx.end_run(run.id, &end.outcome, &end.reading, turn.now)? {
        return Ok(());
    }
    let input = turn.engine.input_path(&run.unit, run.id);
    turn.act(FileAction::Remove(input));
    if end.loaded {
        if run.frozen {
            turn.act(UnitAction::Thaw(run.unit.clone()));
        }
        release(turn, &run.unit, Release::for_reading(&end.reading));
    } else {
        turn.act(UnitAction::Forget(run.unit.clone()));
    }
    kind.ended(turn, run, &end, contents)
}

fn release(turn: &mut Turn<'_>, unit: &str, how: Release) {
    let unit = unit.to_owned();
    turn.act(UnitAction::Release { unit, how });
}

/// Compares open runs with loaded units.
pub(crate) fn listed(
    turn: &mut Turn<'_>,
    kinds: Kinds,
    result: &Result<Vec<LoadedUnit>, ManagerError>,
) -> TurnResult<()> {
    let listed = match result {
        Ok(listed) => listed,
        Err(error) => {
            let why = error.to_string();
            turn.log(move || tracing::error!("{why}"));
            let why = "failed to compare runs with units";
            turn.act(LoopAction::Fail(why));
            return Ok(());
        }
    };
    let open = turn.tx.open_units()?;
    let runs: Vec<OpenRun> = open
        .iter()
        .map(|run| OpenRun {
            id: run.id,
            unit: run.unit.clone(),
            unanswered: turn.unanswered.contains(&run.id),
            boot: run.boot.clone(),
        })
        .collect();
    let live: Vec<LiveUnit> = listed
        .iter()
        .filter(|unit| turn.engine.names.kind_of(&unit.name).is_some())
        .map(|unit| LiveUnit { unit: unit.name.clone(), active_state: unit.active_state.clone() })
        .collect();
    let inputs = open.iter().map(|run| turn.engine.input_path(&run.unit, run.id)).collect();
    turn.act(FileAction::KeepInputs(inputs));
    let (mut adopted, mut lost, mut stray) = (0, 0, 0);
    let row_of = |id: RunId| open.iter().find(|run| run.id == id);
    for repair in reconcile(&runs, &live, &turn.engine.boot) {
        match repair {
            Repair::Adopt(id) | Repair::Check(id) => {
                match repair {
                    Repair::Adopt(_) => adopted += 1,
                    _ => lost += 1,
                }
                if let Some(run) = row_of(id) {
                    turn.act(UnitAction::Read { run: id, unit: run.unit.clone(), evidence: None });
                }
            }
            Repair::Lose(id) => {
                lost += 1;
                if let Some(run) = row_of(id) {
                    kinds.of(run).lost(turn, run)?;
                    end(turn, kinds, run, UnitEnd::without_unit(Outcome::Lost), None)?;
                }
            }
            Repair::Release(unit) => {
                stray += 1;
                turn.act(UnitAction::Thaw(unit.clone()));
                release(turn, &unit, Release::Stop);
                release(turn, &unit, Release::Reset);
            }
        }
    }
    for kind in kinds.all() {
        kind.reconciled(turn, listed)?;
    }
    if adopted + lost + stray > 0 {
        turn.log(move || {
            tracing::info!(
                message_id = message::RECOVERED,
                archivist_adopted = adopted,
                archivist_lost = lost,
                archivist_stray = stray,
                "recovered: adopted {adopted} running units, lost {lost}, released {stray} unknown units"
            )
        });
    }
    Ok(())
}
