//! The step of a page: the tens digit of the number in front of its first foreground hook that is
//! not done, as older plugins count.

use crate::engine::crawl_plan::PlannedHook;
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{Lifecycle, Owner};
use archivist_plugin::step;
use archivist_shared::bus::documents::report::{Filter, HookResult, Snapshot};
use archivist_shared::bus::documents::work::HookMode;

/// The snapshots of a list; those that run with their step.
pub(super) fn snapshots(turn: &Turn<'_>, filter: &Filter) -> TurnResult<Vec<Snapshot>> {
    let mut snapshots = turn.tx.list_snapshots(filter)?;
    let under_way = snapshots.iter_mut();
    for snapshot in under_way.filter(|it| it.status == Lifecycle::Started) {
        let crawl = main_loop::crawl_for(turn, Owner::Snapshot(snapshot.id))?;
        // Plugins may have been removed; the results of the page remain.
        if let Ok(plan) = turn.engine.plan(&crawl) {
            let results = turn.tx.results(Owner::Snapshot(snapshot.id))?;
            snapshot.current_step = current(&plan.snapshot, &results);
        }
    }
    Ok(snapshots)
}

/// None when nothing in the foreground is left.
fn current(hooks: &[PlannedHook], results: &[HookResult]) -> Option<u32> {
    let is_done = |hook: &PlannedHook| {
        results.iter().any(|result| {
            let same = result.plugin == hook.task.plugin && result.hook == hook.task.hook;
            same && result.status.is_final()
        })
    };
    let mut foreground = hooks.iter().filter(|hook| hook.task.mode == HookMode::Foreground);
    let next = foreground.find(|hook| !is_done(hook))?;
    Some(step(next.hook.file_name()))
}
