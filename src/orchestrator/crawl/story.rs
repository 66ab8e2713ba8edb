//! What the journal tells of ends. The message catalog explains the events with an id, from the
//! fields that are logged here.

use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::{RunRow, SnapshotWork};
use archivist_core::model::{Outcome, Owner, Reading, ResultState, Step, without_userinfo};
use archivist_core::unit::UnitKind;
use archivist_shared::journal::message;

impl Turn<'_> {
    /// The end of a unit, where it is not the one that everybody expects.
    pub(crate) fn log_end(
        &self,
        run: &RunRow,
        outcome: &Outcome,
        reading: &Reading,
    ) -> TurnResult<()> {
        let id = match outcome {
            Outcome::Lost => message::RUN_LOST,
            Outcome::TimeLimit if run.kind == UnitKind::Hook => message::HOOK_TIME_LIMIT,
            Outcome::OutOfMemory if run.kind == UnitKind::Hook => message::HOOK_OUT_OF_MEMORY,
            Outcome::Exit(0) => return Ok(()),
            _ if run.kind == UnitKind::Hook => return Ok(()),
            _ => message::WORKER_DIED,
        };
        let (snapshot, url) = match run.owner {
            Owner::Snapshot(id) => (Some(id.0), self.snapshot_of(id)?.url),
            Owner::Crawl(id) => (None, self.crawl_of(id)?.url),
        };
        tracing::warn!(
            message_id = id,
            archivist_crawl_id = run.crawl.0,
            archivist_snapshot_id = snapshot,
            archivist_url = without_userinfo(&url),
            archivist_plugin = run.plugin.as_deref(),
            archivist_hook = run.hook.as_deref(),
            archivist_unit = run.unit.as_str(),
            archivist_outcome = %outcome,
            archivist_attempt = run.attempt,
            archivist_memory_peak = reading.accounting.memory_peak,
            "{}: {outcome}",
            run.unit
        );
        Ok(())
    }

    /// What the end of its worker means for a snapshot.
    pub(crate) fn log_snapshot(
        &self,
        snapshot: &SnapshotWork,
        step: Step,
        reason: Option<&str>,
    ) -> TurnResult<()> {
        let (id, crawl) = (snapshot.id, snapshot.crawl.0);
        let url = without_userinfo(&snapshot.url);
        let results = self.tx.results(Owner::Snapshot(id))?;
        let failed = results
            .iter()
            .filter(|result| result.status == ResultState::Failed);
        match (step, reason, failed.count()) {
            (Step::Seal, None, 0) => tracing::info!(
                archivist_crawl_id = crawl,
                archivist_snapshot_id = id.0,
                "snapshot {id} is sealed"
            ),
            (Step::Seal, None, failed) => tracing::warn!(
                message_id = message::SNAPSHOT_FAILURES,
                archivist_crawl_id = crawl,
                archivist_snapshot_id = id.0,
                archivist_url = url,
                archivist_failed = failed,
                archivist_hooks = results.len(),
                "snapshot {id} is sealed, {failed} of {} hooks failed",
                results.len()
            ),
            (Step::Seal, Some(reason), _) => tracing::error!(
                message_id = message::SNAPSHOT_QUARANTINED,
                archivist_crawl_id = crawl,
                archivist_snapshot_id = id.0,
                archivist_url = url,
                archivist_attempt = snapshot.attempts,
                "snapshot {id} is put aside: {reason}"
            ),
            (_, reason, _) => tracing::warn!(
                archivist_crawl_id = crawl,
                archivist_snapshot_id = id.0,
                "snapshot {id}: {}",
                reason.unwrap_or("its worker ended")
            ),
        }
        Ok(())
    }
}
