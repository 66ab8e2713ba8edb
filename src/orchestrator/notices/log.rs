//! Log entries about the ends of units and workers.

use crate::database::{RunRow, SnapshotWork};
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{
    CrawlId, Outcome, Owner, Reading, ResultState, Step, without_userinfo,
};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::report::{HookResult, sum_up};
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

/// The field `archivist_snapshot_id`: crawls have none.
pub(crate) fn snapshot_id(owner: Owner) -> Option<i64> {
    match owner {
        Owner::Snapshot(id) => Some(id.0),
        Owner::Crawl(_) => None,
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
    let (run, outcome, url) = (run.clone(), outcome.clone(), without_userinfo(&url));
    let memory_peak = reading.accounting.memory_peak;
    turn.log(move || {
        tracing::warn!(
            message_id = message,
            archivist_crawl_id = run.crawl.0,
            archivist_snapshot_id = snapshot_id(run.owner),
            archivist_url = url.as_str(),
            archivist_plugin = run.plugin.as_deref(),
            archivist_hook = run.hook.as_deref(),
            archivist_unit = run.unit.as_str(),
            archivist_outcome = %outcome,
            archivist_attempt = run.attempt,
            archivist_memory_peak = memory_peak,
            "{}: {outcome}",
            run.unit
        )
    });
    Ok(())
}

/// Logs the result of a hook.
pub(crate) fn log_result(turn: &mut Turn<'_>, crawl: CrawlId, result: &HookResult) {
    let result = result.clone();
    turn.log(move || {
        let owner = result.owner;
        tracing::info!(
            archivist_crawl_id = crawl.0,
            archivist_snapshot_id = snapshot_id(owner),
            archivist_plugin = result.plugin.as_str(),
            archivist_hook = result.hook.as_str(),
            "{owner} {}: {}{}",
            result.plugin,
            result.status,
            result.error.iter().map(|why| format!(": {why}")).collect::<String>()
        )
    });
}

/// Logs the hooks that a worker skipped, when it has ended: most have the same reason. `reason` is that of
/// the page, which is logged as well.
pub(crate) fn log_skipped(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    owner: Owner,
    reason: Option<&str>,
) -> TurnResult<()> {
    let mut skipped = turn.tx.results(owner)?;
    // The others are of plugins that the crawl does not run.
    let is_by_worker =
        |result: &HookResult| result.status == ResultState::Skipped && result.started_at.is_some();
    skipped.retain(is_by_worker);
    let (alone, sums) = sum_up(&skipped);
    alone.into_iter().for_each(|result| log_result(turn, crawl, result));
    for sum in sums {
        let text = sum.text("", reason);
        turn.log(move || {
            tracing::info!(
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = snapshot_id(owner),
                "{owner}: {text}"
            )
        });
    }
    Ok(())
}

/// Logs what the end of its worker means for a snapshot.
pub(crate) fn log_snapshot(
    turn: &mut Turn<'_>,
    snapshot: &SnapshotWork,
    step: Step,
    reason: Option<&str>,
) -> TurnResult<()> {
    let (id, crawl, attempts) = (snapshot.id, snapshot.crawl, snapshot.attempts);
    let url = without_userinfo(&snapshot.url);
    log_skipped(turn, crawl, Owner::Snapshot(id), reason)?;
    let said = reason.map(str::to_owned);
    match (step, said) {
        (Step::Seal, None) => {
            let results = turn.tx.results(Owner::Snapshot(id))?;
            let failed = results.iter().filter(|result| result.status == ResultState::Failed);
            let (failed, hooks) = (failed.count(), results.len());
            turn.log(move || match failed {
                0 => tracing::info!(
                    archivist_crawl_id = crawl.0,
                    archivist_snapshot_id = id.0,
                    "snapshot {id} is sealed"
                ),
                _ => tracing::warn!(
                    message_id = message::SNAPSHOT_FAILURES,
                    archivist_crawl_id = crawl.0,
                    archivist_snapshot_id = id.0,
                    archivist_url = url.as_str(),
                    archivist_failed = failed,
                    archivist_hooks = hooks,
                    "snapshot {id} is sealed, {failed} of {hooks} hooks failed"
                ),
            });
        }
        (Step::Seal, Some(reason)) => turn.log(move || {
            tracing::error!(
                message_id = message::SNAPSHOT_QUARANTINED,
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                archivist_url = url.as_str(),
                archivist_attempt = attempts,
                "snapshot {id} is quarantined: {reason}"
            )
        }),
        (_, reason) => turn.log(move || {
            tracing::warn!(
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                "snapshot {id}: {}",
                reason.as_deref().unwrap_or("its worker ended")
            )
        }),
    }
    Ok(())
}
