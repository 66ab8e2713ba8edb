//! Calls of the fleet service, and what the orchestrator holds and wants.

use crate::bus::call::{Answer, Reply};
use crate::database::rows::lease::LeaseRow;
use crate::fleet;
use crate::main_loop;
use crate::main_loop::action::ReplyAction;
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::orders::crawls;
use crate::orders::crawls::LINGER;
use crate::orders::deliver;
use crate::orders::recall;
use crate::orders::release;
use archivist_core::fleet::{Claim, Delivery, Held, Holdings, NodeRequest, OutboxEntry, Pace};
use archivist_core::plan::pressure;
use std::sync::Arc;
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

/// A call of the fleet service.
#[derive(Clone)]
pub enum NodeCall {
    /// Gets the JSON of [`Holdings`](archivist_core::fleet::Holdings).
    Holdings,
    /// Store a reply of the fleet's database.
    Deliver { delivery: Arc<Delivery> },
    /// Release the hosts that have no running page.
    Stop,
    /// Forget the fleet.
    Leave,
    /// Wait until the outbox has a new entry.
    /// Answered then.
    Await,
}

impl Order for NodeCall {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        node_call(turn, self, reply)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        None
    }

    fn is_heavy(&self) -> bool {
        matches!(self, NodeCall::Deliver { .. })
    }
}

fn node_call(turn: &mut Turn<'_>, call: &NodeCall, reply: &Reply) -> TurnResult<Option<Answer>> {
    match call {
        NodeCall::Holdings => {
            // Crawls without pages keep no slot that another one waits for.
            let is_short = turn.tx.has_waiting_fleet_crawl()?;
            crawls::close_idle_crawls(turn, if is_short { Duration::ZERO } else { LINGER })?;
            request_crawl_ids(turn)?;
            return Ok(Some(Answer::json(&holdings(turn)?)?));
        }
        NodeCall::Deliver { delivery } => deliver::deliver(turn, delivery)?,
        NodeCall::Stop => release::release_unused(turn)?,
        NodeCall::Leave => leave_fleet(turn)?,
        NodeCall::Await => {
            turn.act(ReplyAction::Await(fleet::outbox(), reply.clone()));
            return Ok(None);
        }
    }
    Ok(Some(Answer::Done))
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
    let has_outage = turn.engine.network.borrow().outage().is_some();
    let claim = Claim {
        // Without a page, nothing would show that the network is back.
        hosts: if has_outage { room.min(1) } else { room.min(slots) },
        pages_per_host: PAGES_PER_HOST,
        delay: turn.engine.settings.host_delay,
    };
    let is_blocked = pressure(&turn.engine.load, 0, &turn.engine.load_limits()).is_some()
        || (has_outage && !leases.is_empty());
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

/// Forgets the fleet. What this node archived stays as history of the machine.
///
/// # Errors
/// If the node holds a lease, has something to send, or a crawl of the fleet is open here.
fn leave_fleet(turn: &mut Turn<'_>) -> TurnResult<()> {
    let leases = turn.tx.leases(&turn.engine.boot)?.len() + turn.tx.released_leases()?.len();
    if leases > 0 {
        return Err(invalid(format!("{leases} hosts of the fleet are leased")));
    }
    if !turn.tx.unanswered_entries(1)?.is_empty() {
        return Err(invalid("not everything was sent to the fleet yet"));
    }
    if let Some(crawl) = turn.tx.open_fleet_crawl()? {
        return Err(invalid(format!("crawl {crawl} of the fleet has not ended here")));
    }
    Ok(turn.tx.leave_fleet()?)
}
