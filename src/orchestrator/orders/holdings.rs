//! Calls of the fleet service, and what the orchestrator holds and wants.

use crate::fleet;
use crate::main_loop;
use crate::main_loop::action::ReplyAction;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::orders::crawls;
use crate::orders::crawls::LINGER;
use crate::orders::deliver;
use crate::orders::leave;
use crate::orders::recall;
use crate::orders::release;
use crate::store::rows::lease::LeaseRow;
use archivist_core::fleet::{Claim, Held, Holdings, NodeRequest, OutboxEntry, Pace};
use archivist_core::plan::pressure;
use archivist_shared::bus::call::NodeCall;
use std::time::Duration;

/// Entries of the outbox in one answer.
const ENTRIES_PER_LOOK: u32 = 16;
/// Leases for each slot of a worker: a host with a delay between its pages leaves its slot to others.
const HOSTS_PER_SLOT: u32 = 4;
/// Most pages of a host that wait on this node.
const PAGES_PER_HOST: u32 = 16;
/// Reserved ids for crawls below which the node asks for more.
const CRAWL_IDS_MIN: u64 = 50;
/// How many it asks for.
const CRAWL_IDS: u32 = 100;

/// Carries out a call of the fleet service.
pub(crate) fn node_call(turn: &mut Turn<'_>, call: &NodeCall) -> TurnResult<()> {
    match call {
        NodeCall::Holdings { reply } => {
            // Crawls without pages keep no slot that another one waits for.
            let is_short = turn.tx.has_waiting_fleet_crawl()?;
            crawls::close_idle_crawls(turn, if is_short { Duration::ZERO } else { LINGER })?;
            request_crawl_ids(turn)?;
            let holdings = holdings(turn)?;
            turn.answer_text(reply, serde_json::to_string(&holdings)?);
        }
        NodeCall::Deliver { delivery, reply } => {
            deliver::deliver(turn, delivery)?;
            turn.answer(reply);
        }
        NodeCall::Stop { reply } => {
            release::release_unused(turn)?;
            turn.answer(reply);
        }
        NodeCall::Leave { reply } => {
            leave::leave_fleet(turn)?;
            turn.answer(reply);
        }
        NodeCall::Await { reply } => {
            let reply = reply.clone();
            turn.act(ReplyAction::AwaitOutbox(reply));
        }
    }
    Ok(())
}

fn holdings(turn: &Turn<'_>) -> TurnResult<Holdings> {
    let node = turn.tx.node()?;
    let leases = turn.tx.leases(&turn.engine.boot)?;
    let released = turn.tx.released_leases()?;
    let entries = entries(turn)?;
    let first = entries.first().map_or(u64::MAX, |entry| entry.number);
    let limits = turn.engine.limits();
    let slots = limits.workers_per_kind.min(limits.workers_max);
    let taken = u32::try_from(leases.len() + released.len()).unwrap_or(u32::MAX);
    let room = slots.saturating_mul(HOSTS_PER_SLOT).saturating_sub(taken);
    let claim = Claim {
        hosts: room.min(slots),
        pages_per_host: PAGES_PER_HOST,
        delay: turn.engine.settings.host_delay,
    };
    let is_blocked = pressure(&turn.engine.load, 0, &turn.engine.load_limits()).is_some()
        || turn.engine.network.borrow().outage().is_some();
    let orders = turn.engine.node_orders.get();
    let draining = orders.is_some_and(|orders| orders.draining);
    let claims_none = orders.is_some_and(|orders| orders.claims_none);
    let takes_none = is_blocked || draining;
    let short = leases.iter().filter(|lease| !lease.has_queued && !lease.leaves && !takes_none);
    let short = short.map(|lease| lease.name.clone()).collect();
    let mut held = Vec::new();
    for lease in &leases {
        held.push(held_host(turn, lease)?);
    }
    let due = released.iter().filter(|lease| lease.after < first);
    Ok(Holdings {
        node: node.map(|row| row.node),
        generation: node.map(|row| row.generation).unwrap_or_default(),
        leases: held,
        short,
        refill: PAGES_PER_HOST,
        claim: Some(claim).filter(|claim| claim.hosts > 0 && !takes_none && !claims_none),
        entries,
        last_entry: turn.tx.last_entry()?,
        releases: due.map(|lease| lease.release.clone()).collect(),
        releasing: released
            .into_iter()
            .map(|lease| (lease.release.host, lease.release.epoch))
            .collect(),
        slots: if takes_none { 0 } else { slots },
        drains: draining,
        memory: recall::memory(turn)?,
    })
}

/// Returns the first entries of the outbox. Records have the time since the end of their page:
/// the database may not have been reachable then.
fn entries(turn: &Turn<'_>) -> TurnResult<Vec<OutboxEntry>> {
    if let Some(entry) = recall::recall_entry(turn)? {
        return Ok(vec![entry]);
    }
    let mut entries = turn.tx.unanswered_entries(ENTRIES_PER_LOOK)?;
    for entry in &mut entries {
        if let NodeRequest::Record(record) = &mut entry.request
            && let Some(ended) = turn.tx.snapshot_ended_at(record.page)?
        {
            record.times.ended_ago = turn.now.until(ended);
        }
    }
    Ok(entries)
}

fn held_host(turn: &Turn<'_>, lease: &LeaseRow) -> TurnResult<Held> {
    Ok(Held {
        host: lease.name.clone(),
        epoch: lease.epoch,
        live: lease.recorded.is_live(&main_loop::leases(turn)?.clocks),
        pace: pace_of(turn, lease)?,
    })
}

/// Returns when the next page of a leased host may start. `blocked_for` is zero, because the row
/// of the host has one time for both: `next_in` includes what the host asked for.
pub(crate) fn pace_of(turn: &Turn<'_>, lease: &LeaseRow) -> TurnResult<Pace> {
    Ok(Pace {
        next_in: lease.next_at.until(turn.now),
        blocked_for: Duration::ZERO,
        delay: main_loop::host_view(turn, lease.host)?.delay,
    })
}

/// Asks the fleet for ids, so that crawls can be added while its database is not reached.
fn request_crawl_ids(turn: &mut Turn<'_>) -> TurnResult<()> {
    let request = NodeRequest::ReserveCrawls { count: CRAWL_IDS };
    let is_short = turn.tx.crawl_ids_left()? < CRAWL_IDS_MIN;
    if is_short && turn.tx.node()?.is_some() && !turn.tx.is_in_outbox(&request)? {
        fleet::send_to_fleet(turn, &request)?;
    }
    Ok(())
}
