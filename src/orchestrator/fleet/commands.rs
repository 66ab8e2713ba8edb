//! Commands of users about crawls and pages of the fleet, which any node may have. They wait in the
//! outbox until the database gets them, after the requests that added what they are about.

use crate::database::rows::fleet::FleetCrawl;
use crate::fleet::send_to_fleet;
use crate::main_loop::rooms::Which;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use archivist_core::fleet::{Command, CommandVerb, NodeRequest};
use archivist_core::model::CrawlId;
use archivist_core::model::{Lifecycle, Owner};

/// Sends a command of a user to the fleet if its crawl or page is not of this machine alone.
/// Returns whether this node has something to do at once.
pub(crate) fn send_command(
    turn: &mut Turn<'_>,
    verb: CommandVerb,
    target: Owner,
) -> TurnResult<bool> {
    let Some(status) = known_in_fleet(turn, target)? else {
        return Ok(true);
    };
    let is_open_here = status.is_some_and(|status| !status.is_final());
    // A crawl that is cancelled here reports that by itself.
    let is_sent_later =
        is_open_here && verb == CommandVerb::Cancel && matches!(target, Owner::Crawl(_));
    if !is_sent_later {
        send_to_fleet(turn, &NodeRequest::Command(Command { verb, target }))?;
    }
    Ok(is_open_here && verb != CommandVerb::Retry)
}

/// Sends the retry of a crawl or page of the fleet, which comes back with the lease of its host.
/// Returns the number of queued items; `None` if the retry is about this machine alone.
///
/// # Errors
/// If the request is about single hooks, or about all crawls of a node.
pub(crate) fn retry_in_fleet(
    turn: &mut Turn<'_>,
    target: Option<Owner>,
    which: &Which,
) -> TurnResult<Option<u32>> {
    let Some(target) = target else {
        if turn.tx.node()?.is_none() {
            return Ok(None);
        }
        return Err(invalid(
            "this machine is a node of a fleet: name the crawls or pages; see: archivist list results --status failed",
        ));
    };
    if known_in_fleet(turn, target)?.is_none() {
        return Ok(None);
    }
    if !matches!(which, Which::Failed | Which::All) {
        return Err(invalid(format!(
            "{target} belongs to the fleet, which runs all hooks of a page again, not one of them"
        )));
    }
    send_command(turn, CommandVerb::Retry, target)?;
    Ok(Some(1))
}

/// Returns the state here of a crawl or page of the fleet, which is `None` if this node does not
/// know it; `None` if the crawl or page is of this machine alone.
fn known_in_fleet(turn: &Turn<'_>, target: Owner) -> TurnResult<Option<Option<Lifecycle>>> {
    let known = match target {
        Owner::Crawl(id) => turn.tx.crawl(id)?.map(|crawl| (id, crawl.status)),
        Owner::Snapshot(id) => turn.tx.snapshot(id)?.map(|page| (page.crawl, page.status)),
    };
    Ok(match known {
        None => turn.tx.node()?.map(|_| None),
        Some((crawl, status)) => {
            let is_of_fleet = turn.tx.fleet_crawl(crawl)? != FleetCrawl::No;
            is_of_fleet.then_some(Some(status))
        }
    })
}

/// Reports that the last hooks of a crawl of the fleet have run.
pub(crate) fn crawl_closed(turn: &mut Turn<'_>, crawl: CrawlId) -> TurnResult<()> {
    if turn.tx.fleet_crawl(crawl)? == FleetCrawl::No {
        return Ok(());
    }
    turn.tx.set_fleet_crawl(crawl, FleetCrawl::Closing)?;
    send_to_fleet(turn, &NodeRequest::CrawlClosed { crawl })
}

/// Reports that a user cancelled a crawl of the fleet on this node.
pub(crate) fn cancel_in_fleet(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    if turn.tx.fleet_crawl(id)? == FleetCrawl::No {
        return Ok(());
    }
    turn.tx.set_fleet_crawl(id, FleetCrawl::Closing)?;
    send_to_fleet(
        turn,
        &NodeRequest::Command(Command { verb: CommandVerb::Cancel, target: Owner::Crawl(id) }),
    )
}
