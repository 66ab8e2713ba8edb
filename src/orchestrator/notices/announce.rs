//! Signals about crawls and pages: actions, so that they are sent after the commit.

use crate::database::Counts;
use crate::main_loop;
use crate::main_loop::action::CallerAction;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, public_url, without_userinfo};
use archivist_core::plan::{Notice, is_announced};
use archivist_shared::bus::documents::notice::{CrawlNotice, PagesNotice, SnapshotNotice};
use archivist_shared::bus::signals::Signal;

/// Whether a crawl is queued, started or paused; `crawls`: how many have each status.
pub(crate) fn is_any_open(crawls: &Counts) -> bool {
    let open = Lifecycle::ALL.iter().filter(|status| !status.is_final());
    open.map(|status| crawls.get(status.as_str()))
        .any(|count| count.is_some_and(|count| *count > 0))
}

/// Returns whether this turn sends this signal, and counts it.
fn counts_notice(turn: &mut Turn<'_>, owner: Owner, notice: Notice) -> bool {
    let sent = is_announced(owner, notice, turn.announced, turn.is_subscribed);
    turn.announced += usize::from(sent);
    sent
}

pub(crate) fn announce_crawl(turn: &mut Turn<'_>, id: CrawlId, notice: Notice) -> TurnResult<()> {
    if !counts_notice(turn, Owner::Crawl(id), notice) {
        return Ok(());
    }
    let (status, reason, url) = turn.tx.crawl_state(id)?;
    let document = serde_json::to_string(&CrawlNotice {
        id,
        status,
        reason: reason.as_deref().map(without_userinfo),
        url: public_url(&url),
        snapshots: turn.tx.counts("snapshot", Some(id))?,
        results: turn.tx.counts("result", Some(id))?,
        at: turn.now,
    })?;
    turn.act(CallerAction::Announce(Signal::Crawl { notice, id, document }));
    Ok(())
}

/// Queues a signal about a page, if a client requested these.
pub(crate) fn announce_snapshot(
    turn: &mut Turn<'_>,
    id: SnapshotId,
    notice: Notice,
) -> TurnResult<()> {
    let owner = Owner::Snapshot(id);
    if !counts_notice(turn, owner, notice) {
        return Ok(());
    }
    let snapshot = main_loop::snapshot_of(turn, id)?;
    let mut results = Counts::new();
    for result in turn.tx.results(owner)? {
        *results.entry(result.status.as_str().to_owned()).or_default() += 1;
    }
    let document = serde_json::to_string(&SnapshotNotice {
        id,
        crawl: snapshot.crawl,
        status: snapshot.status,
        reason: snapshot.reason.as_deref().map(without_userinfo),
        url: public_url(&snapshot.url),
        results,
        at: turn.now,
    })?;
    turn.act(CallerAction::Announce(Signal::Snapshot { notice, id, document }));
    Ok(())
}

/// Queues one signal about pages that were queued together, if a client requested these.
pub(crate) fn announce_pages(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    added: &[(SnapshotId, String)],
) -> TurnResult<()> {
    let ids = || added.iter().map(|(id, _)| *id);
    let (Some(first), Some(last)) = (ids().min(), ids().max()) else {
        return Ok(());
    };
    if !counts_notice(turn, Owner::Snapshot(first), Notice::Added) {
        return Ok(());
    }
    let document = serde_json::to_string(&PagesNotice {
        crawl,
        count: added.len() as u64,
        first,
        last,
        at: turn.now,
    })?;
    turn.act(CallerAction::Announce(Signal::Pages { crawl, document }));
    Ok(())
}
