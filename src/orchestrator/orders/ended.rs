//! What this node reports to the fleet's database about pages that have ended.

use crate::database::DatabaseError;
use crate::fleet;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::orders::release;
use archivist_core::fleet::{Epoch, HookResult, NodeRequest, PageEnd, PageTimes, Record};
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_shared::bus::documents::report;

/// Reports the pages of the fleet that became final in this turn, and releases hosts that waited for
/// them.
pub(crate) fn report_ended_pages(turn: &mut Turn<'_>) -> TurnResult<()> {
    let changed = turn.changes.iter().filter_map(|change| match change {
        Change::Snapshot { crawl, id } => Some((*crawl, *id)),
        _ => None,
    });
    let mut has_ended = false;
    for (crawl, id) in changed.collect::<Vec<_>>() {
        let Some((epoch, _)) = turn.tx.page_epoch(id)? else {
            continue;
        };
        let Some(record) = record_of(turn, id, epoch)? else {
            continue;
        };
        fleet::send_to_fleet(turn, &NodeRequest::Record(record))?;
        turn.tx.set_recorded(id, epoch)?;
        turn.tx.set_paged_at(crawl, turn.now)?;
        has_ended = true;
    }
    if has_ended {
        release::release_leaving(turn)?;
    }
    Ok(())
}

/// Returns the record of a page; `None` if the page is not final.
pub(super) fn record_of(
    turn: &Turn<'_>,
    id: SnapshotId,
    epoch: Epoch,
) -> Result<Option<Record>, DatabaseError> {
    let Some(page) = turn.tx.snapshot(id)? else {
        return Ok(None);
    };
    let end = match page.status {
        Lifecycle::Sealed => PageEnd::Sealed,
        Lifecycle::Cancelled => PageEnd::Cancelled,
        Lifecycle::Queued | Lifecycle::Started | Lifecycle::Paused => return Ok(None),
    };
    let results = turn.tx.results(Owner::Snapshot(id))?;
    let started = results.iter().filter_map(|result| result.started_at).min();
    let ended = turn.tx.snapshot_ended_at(id)?.unwrap_or(turn.now);
    let took = started.map(|started| ended.until(started));
    let took = took.unwrap_or_default();
    Ok(Some(Record {
        page: id,
        epoch,
        end,
        // The fleet has archived a page that is sealed without a reason.
        reason: page.reason.or(page.unsaved.map(|lack| lack.text().to_owned())),
        directory: page.directory,
        results: results.into_iter().map(result).collect(),
        children: Vec::new(),
        times: PageTimes { took, ..PageTimes::default() },
    }))
}

fn result(row: report::HookResult) -> HookResult {
    let took = row.ended_at.zip(row.started_at);
    HookResult {
        plugin: row.plugin,
        hook: row.hook,
        state: row.status,
        output: row.output,
        error: row.error,
        size: row.size,
        attempts: row.attempts,
        took: took.map(|(ended, started)| ended.until(started)),
    }
}
