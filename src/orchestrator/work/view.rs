//! Which workers are due to start.

use crate::database::{DatabaseError, ViewQuery};
use crate::main_loop;
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::turn::Turn;
use crate::work::begin::{begin_crawl, begin_snapshot};
use archivist_core::plan::{Allowance, Decision, Limits, View, decide};

/// The workers of crawls and snapshots that may start now.
pub(super) fn due(turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
    let limits = turn.engine.limits();
    let view = view(turn, &limits, allowance)?;
    let starts = decide(&view, &limits).into_iter();
    Ok(Due {
        starts: starts
            .map(|decision| match decision {
                Decision::StartCrawl(id) => DueUnit::of(id, id, begin_crawl),
                Decision::StartSnapshot(id) => DueUnit::of(id, id, begin_snapshot),
            })
            .collect(),
        outlook: view.outlook(),
    })
}

pub(crate) fn view(
    turn: &Turn<'_>,
    limits: &Limits,
    allowance: &Allowance,
) -> Result<View, DatabaseError> {
    let leases = main_loop::leases(turn)?;
    let network = |name: &str| turn.engine.host_network(name, turn.now);
    let mut view = turn.tx.view(&ViewQuery {
        limits,
        pace: turn.engine.settings.host_delay,
        leases,
        network: &network,
    })?;
    let deadline = turn.tx.next_deadline(&turn.engine.boot, turn.boottime)?;
    let deadline = deadline.map(|deadline| leases.clocks.wall(deadline));
    view.next_due = [view.next_due, deadline].into_iter().flatten().min();
    for crawl in &mut view.open_crawls {
        if turn.leaving_out.contains(&crawl.id) {
            crawl.due.clear();
        }
    }
    view.allowance = allowance.clone();
    Ok(view)
}
