//! Crawls of the fleet on this node: they begin with their first page here and end when all pages of
//! the fleet are recorded, or this node had none for a while. Users' commands about them go to the
//! fleet.

use crate::database::rows::fleet::{FleetCrawl, GivenCrawl};
use crate::fleet::submit::CrawlDocument;
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices;
use crate::orders::row_check;
use crate::work;
use archivist_core::fleet::{NodeRequest, Order, Orders};
use archivist_core::model::{CrawlId, FLEET, Lifecycle, Owner, Step, Time};
use archivist_core::plan::Notice;
use std::time::Duration;

/// How long a crawl without pages stays open on a node, so that its set-up (a browser, for example)
/// serves the next page.
pub(crate) const LINGER: Duration = Duration::from_secs(60);
/// Reason of crawls and pages that were cancelled on another node.
const CANCELLED_IN_FLEET: &str = "cancelled in the fleet";

/// Queues a crawl that came with pages. It has no user of this machine: every writer of the
/// database could name any.
pub(crate) fn add_given_crawl(
    turn: &mut Turn<'_>,
    id: CrawlId,
    max_depth: u32,
    document: &CrawlDocument,
) -> TurnResult<()> {
    turn.tx.add_given_crawl(
        &GivenCrawl {
            id,
            url: &document.url,
            max_depth,
            plugins: &document.plugins,
            config: &document.config,
            user: FLEET,
        },
        turn.now,
    )?;
    for tag in &document.tags {
        turn.tx.tag_crawl(id, tag)?;
    }
    if document.only_new {
        turn.tx.set_only_new(id)?;
    }
    notices::announce_crawl(turn, id, Notice::Added)
}

/// Closes the crawls that had no page on this node for this long, or since they were added for
/// [`LINGER`]: their last hooks run.
pub(crate) fn close_idle_crawls(turn: &mut Turn<'_>, linger: Duration) -> TurnResult<()> {
    let since = turn.now.before(linger);
    let added = turn.now.before(LINGER);
    for id in turn.tx.idle_fleet_crawls(since, added)? {
        close_in_fleet(turn, id)?;
    }
    Ok(())
}

/// Closes the crawls whose pages are all recorded: no more come, so their set-up serves none.
pub(crate) fn close_done_crawls(turn: &mut Turn<'_>, orders: &Orders) -> TurnResult<()> {
    let done = orders.used.iter().filter(|(_, used)| used.is_done);
    let done: Vec<CrawlId> = done.map(|(id, _)| *id).collect();
    for id in turn.tx.idle_fleet_crawls(turn.now, turn.now)? {
        if done.contains(&id) {
            close_in_fleet(turn, id)?;
        }
    }
    Ok(())
}

fn close_in_fleet(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    turn.tx.set_fleet_crawl(id, FleetCrawl::Closing)?;
    let crawl = main_loop::crawl_of(turn, id)?;
    if crawl.attempts == 0 && crawl.status == Lifecycle::Queued {
        // None of its pages came here: there is no set-up to undo.
        turn.tx.step_crawl(id, Step::Seal, None, None, turn.now)?;
    }
    work::tidy_crawl(turn, id)
}

/// A crawl has pages again: what was reported of its end is not true any more.
pub(crate) fn withdraw_close(turn: &mut Turn<'_>, crawl: CrawlId) -> TurnResult<()> {
    Ok(turn.tx.withdraw(&NodeRequest::CrawlClosed { crawl })?)
}

/// Brings crawls and pages into the state that the fleet wants.
pub(crate) fn obey(turn: &mut Turn<'_>, orders: &Orders) -> TurnResult<()> {
    for (crawl, used) in &orders.used {
        let began = Time(turn.now.0 - i64::try_from(used.age.as_millis()).unwrap_or(i64::MAX));
        turn.tx.set_fleet_use(*crawl, used.bytes, began)?;
    }
    let crawls = orders.crawls.iter();
    let crawls = crawls.map(|(id, order)| (Owner::Crawl(*id), *order));
    let pages = orders.pages.iter();
    let pages = pages.map(|(id, order)| (Owner::Snapshot(*id), *order));
    for (owner, order) in crawls.chain(pages) {
        let known = row_check::state_in_fleet(turn, owner)?;
        match (known, order) {
            (None, _) => {}
            (Some(status), Order::Cancel) if !status.is_final() => {
                cancel_for_fleet(turn, owner)?;
            }
            (Some(Lifecycle::Queued | Lifecycle::Started), Order::Pause) => {
                work::pause_owner(turn, owner)?;
            }
            (Some(Lifecycle::Paused), Order::Run) => work::resume_owner(turn, owner)?,
            (Some(_), _) => {}
        }
    }
    Ok(())
}

fn cancel_for_fleet(turn: &mut Turn<'_>, owner: Owner) -> TurnResult<()> {
    match owner {
        Owner::Crawl(id) => work::cancel_crawl_here(turn, id, CANCELLED_IN_FLEET),
        Owner::Snapshot(id) => {
            let crawl = main_loop::snapshot_of(turn, id)?.crawl;
            work::cancel_snapshot(turn, crawl, id, CANCELLED_IN_FLEET)?;
            work::tidy_crawl(turn, crawl)
        }
    }
}
