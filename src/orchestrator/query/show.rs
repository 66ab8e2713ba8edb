//! Everything about one crawl or snapshot.

use crate::bus::call::Refusal;
use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use crate::query::steps;
use archivist_core::model::{Owner, RunId};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::{Details, Filter, ROWS_MAX};

/// The refusal of a run that is not in the database. Other units have ids of the same kind.
pub(crate) fn no_such_run(id: RunId) -> TurnError {
    let what = format!("there is no run {id} of a crawl; for other units see: archivist why {id}");
    TurnError::Refused(Refusal::NoSuch(what))
}

pub(crate) fn details_of_run(turn: &Turn<'_>, id: RunId) -> TurnResult<Details> {
    let filter = Filter { before: Some(id.0.saturating_add(1)), limit: 1, ..Filter::default() };
    let runs = turn.tx.list_runs(&filter)?;
    let Some(run) = runs.into_iter().find(|run| run.id == id) else {
        return Err(no_such_run(id));
    };
    let result = match (&run.plugin, &run.hook) {
        (Some(plugin), Some(hook)) => turn.tx.result(run.owner, plugin, hook)?,
        _ => None,
    };
    let run = report::Run { environment: turn.tx.environment_of(id)?, ..run };
    Ok(Details::Run { run: Box::new(run), result: result.map(Box::new) })
}

pub(crate) fn details(turn: &Turn<'_>, id: Owner) -> TurnResult<Details> {
    turn.tx.status_of(id)?;
    let filter = Filter { limit: ROWS_MAX, ..Filter::of(id) };
    let none = || TurnError::Refused(Refusal::NoSuch(format!("there is no {id}")));
    let mut snapshots = steps::snapshots(turn, &filter)?;
    let mut results = turn.tx.list_results(&filter)?;
    let mut runs = turn.tx.list_runs(&filter)?;
    // The oldest first.
    snapshots.reverse();
    results.reverse();
    runs.reverse();
    let mut details = match id {
        Owner::Crawl(_) => {
            let crawl = turn.tx.list_crawls(&filter)?.into_iter().next().ok_or_else(none)?;
            Details::Crawl { crawl, snapshots, results, runs }
        }
        Owner::Snapshot(_) => {
            let snapshot = snapshots.pop().ok_or_else(none)?;
            Details::Snapshot { copy: None, snapshot, results, runs }
        }
    };
    for part in turn.rooms.parts().details {
        part(turn, &mut details)?;
    }
    Ok(details)
}
