//! Counts and times for a monitoring system.

use crate::indexing;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::transfer;
use archivist_shared::bus::documents::report;

pub(crate) fn metrics(turn: &Turn<'_>) -> TurnResult<report::Metrics> {
    let (hosts_queued, hosts_delayed) = turn.tx.host_counts(turn.now)?;
    let due_since = turn.tx.due_since()?.filter(|since| *since <= turn.now);
    Ok(report::Metrics {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: turn.now,
        crawls: turn.tx.counts("crawl", None)?,
        snapshots: turn.tx.counts("snapshot", None)?,
        running: turn.tx.running_units()?,
        hooks: turn.tx.hook_ends()?,
        due_since,
        hosts_queued,
        hosts_delayed,
        hosts: turn.tx.busiest_hosts()?,
        free_bytes: turn.engine.load.free,
        min_free_bytes: turn.engine.settings.min_free_space,
        is_blocked: turn.rooms.due(turn)?.outlook.blocked.is_some(),
        sites: turn.tx.site_health(turn.now)?,
        store: transfer::store_status(turn)?,
        deleting: turn.tx.deletions()?,
        unfaithful: turn.tx.unfaithful_pages(0)?.pages,
        search: indexing::status(turn)?,
    })
}
