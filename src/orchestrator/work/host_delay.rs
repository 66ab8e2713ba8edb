//! Delays of hosts: configured, and requested by the host.

use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_shared::bus::documents::work::Report;
use std::time::Duration;

/// Longest delay between two starts that a host can request.
const DELAY_MAX: Duration = Duration::from_secs(600);

/// Delays the next snapshot of this snapshot's host.
pub(super) fn pace(turn: &Turn<'_>, crawl: CrawlId, id: SnapshotId) -> TurnResult<()> {
    let host = turn.tx.host_of(id)?;
    let delay = main_loop::host_view(turn, host)?.delay;
    let next_at = if delay.is_zero() { Time(0) } else { turn.now.after(delay) };
    Ok(turn.tx.begin_on_host(crawl, host, next_at)?)
}

/// Applies what the host of a snapshot requested: Retry-After of an answer, Crawl-delay of its
/// robots.txt.
pub(super) fn apply_host_limits(
    turn: &mut Turn<'_>,
    id: SnapshotId,
    report: &Report,
) -> TurnResult<()> {
    if let Some(seconds) = report.retry_after {
        let host = turn.tx.host_of(id)?;
        let longest = turn.engine.settings.http_wait_max;
        let until = turn.now.after(Duration::from_secs(seconds).min(longest));
        turn.tx.set_asked(id, until)?;
        let said = format!("the host requested no further page before {until} (Retry-After)");
        turn.tx.host_until(host, until, &said, turn.now)?;
        turn.log(move || {
            tracing::info!("{id}: host requested no further page before {until} (Retry-After)")
        });
    }
    if let Some(millis) = report.crawl_delay {
        let delay = Duration::from_millis(millis).min(DELAY_MAX);
        let host = turn.tx.host_of(id)?;
        turn.tx.host_delay(host, delay, turn.now)?;
    }
    Ok(())
}
