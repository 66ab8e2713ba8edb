//! Log entries about the ends of units and workers.

use crate::main_loop;
use crate::main_loop::log::{LogEntry, SnapshotLog, UnitEnd};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::{RunRow, SnapshotWork};
use archivist_core::model::{Outcome, Owner, Reading, ResultState, Step, without_userinfo};
use archivist_core::unit::UnitKind;
use archivist_shared::journal::message;

/// The message id for the end of a unit; none for an end that needs no attention.
fn message_of(kind: UnitKind, outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Lost => Some(message::RUN_LOST),
        Outcome::TimeLimit if kind == UnitKind::Hook => Some(message::HOOK_TIME_LIMIT),
        Outcome::OutOfMemory if kind == UnitKind::Hook => Some(message::HOOK_OUT_OF_MEMORY),
        Outcome::Exit(0) => None,
        _ if kind == UnitKind::Hook => None,
        _ => Some(message::WORKER_DIED),
    }
}

/// Logs the end of a unit that needs attention.
pub(crate) fn log_end(
    turn: &mut Turn<'_>,
    run: &RunRow,
    outcome: &Outcome,
    reading: &Reading,
) -> TurnResult<()> {
    let Some(message) = message_of(run.kind, outcome) else {
        return Ok(());
    };
    let url = match run.owner {
        Owner::Snapshot(id) => main_loop::snapshot_of(turn, id)?.url,
        Owner::Crawl(id) => main_loop::crawl_of(turn, id)?.url,
    };
    turn.log(LogEntry::UnitEnded(Box::new(UnitEnd {
        message,
        crawl: run.crawl,
        owner: run.owner,
        url: without_userinfo(&url),
        plugin: run.plugin.clone(),
        hook: run.hook.clone(),
        unit: run.unit.clone(),
        outcome: outcome.clone(),
        attempt: run.attempt,
        memory_peak: reading.accounting.memory_peak,
    })));
    Ok(())
}

/// Logs what the end of its worker means for a snapshot.
pub(crate) fn log_snapshot(
    turn: &mut Turn<'_>,
    snapshot: &SnapshotWork,
    step: Step,
    reason: Option<&str>,
) -> TurnResult<()> {
    let url = without_userinfo(&snapshot.url);
    let log = match (step, reason) {
        (Step::Seal, None) => {
            let results = turn.tx.results(Owner::Snapshot(snapshot.id))?;
            let failed = results.iter().filter(|result| result.status == ResultState::Failed);
            SnapshotLog::Sealed { url, failed: failed.count(), hooks: results.len() }
        }
        (Step::Seal, Some(reason)) => {
            SnapshotLog::Quarantined { url, attempts: snapshot.attempts, reason: reason.to_owned() }
        }
        (_, reason) => SnapshotLog::WorkerEnded(reason.map(str::to_owned)),
    };
    turn.log(LogEntry::Snapshot(snapshot.crawl, snapshot.id, log));
    Ok(())
}
