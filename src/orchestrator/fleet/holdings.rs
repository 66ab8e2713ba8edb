//! Calls of the fleet service, and what the orchestrator holds and wants.

use crate::fleet::crawls::LINGER;
use crate::main_loop::action::ReplyAction;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::rows::lease::LeaseRow;
use archivist_core::fleet::{Claim, Entry, Held, Holdings, Pace, Request};
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

impl Turn<'_> {
    /// Carries out a call of the fleet service.
    pub(crate) fn node_call(&mut self, call: &NodeCall) -> TurnResult<()> {
        match call {
            NodeCall::Holdings { reply } => {
                // Crawls without pages keep no slot that another one waits for.
                let is_short = self.tx.has_waiting_fleet_crawl()?;
                self.close_idle_crawls(if is_short { Duration::ZERO } else { LINGER })?;
                self.request_crawl_ids()?;
                let holdings = self.holdings()?;
                self.answer_text(reply, serde_json::to_string(&holdings)?);
            }
            NodeCall::Deliver { delivery, reply } => {
                self.deliver(delivery)?;
                self.answer(reply);
            }
            NodeCall::Stop { reply } => {
                self.release_unused()?;
                self.answer(reply);
            }
            NodeCall::Leave { reply } => {
                self.leave_fleet()?;
                self.answer(reply);
            }
            NodeCall::Await { reply } => {
                let reply = reply.clone();
                self.act(ReplyAction::AwaitOutbox(reply));
            }
        }
        Ok(())
    }

    fn holdings(&self) -> TurnResult<Holdings> {
        let node = self.tx.node()?;
        let leases = self.tx.leases(&self.engine.boot)?;
        let released = self.tx.released_leases()?;
        let entries = self.entries()?;
        let first = entries.first().map_or(u64::MAX, |entry| entry.number);
        let limits = self.engine.limits();
        let slots = limits.workers_per_kind.min(limits.workers_max);
        let taken = u32::try_from(leases.len() + released.len()).unwrap_or(u32::MAX);
        let room = slots.saturating_mul(HOSTS_PER_SLOT).saturating_sub(taken);
        let claim = Claim {
            hosts: room.min(slots),
            pages_per_host: PAGES_PER_HOST,
            delay: self.engine.settings.host_delay,
        };
        let is_blocked = pressure(&self.engine.load, 0, &self.engine.load_limits()).is_some();
        let orders = self.engine.node_orders.get();
        let draining = orders.is_some_and(|orders| orders.draining);
        let claims_none = orders.is_some_and(|orders| orders.claims_none);
        let takes_none = is_blocked || draining;
        let short = leases
            .iter()
            .filter(|lease| !lease.has_queued && !lease.leaves && !takes_none);
        let short = short.map(|lease| lease.name.clone()).collect();
        let mut held = Vec::new();
        for lease in &leases {
            held.push(self.held(lease)?);
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
            last_entry: self.tx.last_entry()?,
            releases: due.map(|lease| lease.release.clone()).collect(),
            releasing: released
                .into_iter()
                .map(|lease| (lease.release.host, lease.release.epoch))
                .collect(),
            slots: if takes_none { 0 } else { slots },
            drains: draining,
            memory: self.memory()?,
        })
    }

    /// Returns the first entries of the outbox. Records have the time since the end of their page:
    /// the database may not have been reachable then.
    fn entries(&self) -> TurnResult<Vec<Entry>> {
        if let Some(entry) = self.recall_entry()? {
            return Ok(vec![entry]);
        }
        let mut entries = self.tx.unanswered_entries(ENTRIES_PER_LOOK)?;
        for entry in &mut entries {
            if let Request::Record(record) = &mut entry.request
                && let Some(ended) = self.tx.snapshot_ended_at(record.page)?
            {
                record.times.ended_ago = self.now.until(ended);
            }
        }
        Ok(entries)
    }

    fn held(&self, lease: &LeaseRow) -> TurnResult<Held> {
        Ok(Held {
            host: lease.name.clone(),
            epoch: lease.epoch,
            live: lease.recorded.is_live(&self.leases()?.clocks),
            pace: self.pace_of(lease)?,
        })
    }

    /// Returns when the next page of a leased host may start. `blocked_for` is zero, because the row
    /// of the host has one time for both: `next_in` includes what the host asked for.
    pub(super) fn pace_of(&self, lease: &LeaseRow) -> TurnResult<Pace> {
        Ok(Pace {
            next_in: lease.next_at.until(self.now),
            blocked_for: Duration::ZERO,
            delay: self.host_view(lease.host)?.delay,
        })
    }

    /// Asks the fleet for ids, so that crawls can be added while its database is not reached.
    fn request_crawl_ids(&mut self) -> TurnResult<()> {
        let request = Request::ReserveCrawls { count: CRAWL_IDS };
        let is_short = self.tx.crawl_ids_left()? < CRAWL_IDS_MIN;
        if is_short && self.tx.node()?.is_some() && !self.tx.is_in_outbox(&request)? {
            self.send_to_fleet(&request)?;
        }
        Ok(())
    }
}
