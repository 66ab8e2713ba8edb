//! Counts and times for a monitoring system.

use crate::main_loop::turn::{Turn, TurnResult};
use archivist_shared::bus::documents::report;

pub(crate) fn metrics(turn: &Turn<'_>) -> TurnResult<report::Metrics> {
    let (hosts_queued, hosts_delayed) = turn.tx.host_counts(turn.now)?;
    let due_since = turn.tx.due_since()?.filter(|since| *since <= turn.now);
    let mut metrics = report::Metrics {
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
        deleting: turn.tx.deletions()?,
        unfaithful: turn.tx.unfaithful_pages(0)?.pages,
        ..report::Metrics::default()
    };
    for part in turn.rooms.parts().metrics {
        part(turn, &mut metrics)?;
    }
    Ok(metrics)
}
