//! Deliberate errors in the rules, to show that the simulation finds them. They change requests,
//! replies and rows on their way; the rules themselves have no switches.

use crate::Desk;
use crate::ledger::{DbTime, Ledger, PageState};
use archivist_core::fleet::{BootTime, Delivery, NodeRequest, Pace, Session, margin};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutation {
    /// A record is accepted under any epoch and from any node.
    RecordWithoutEpoch,
    /// The database ignores the pace in renewals and releases.
    PaceIsForgotten,
    /// The deadline is the end of the lease.
    NoMargin,
    /// The deadline counts from the receipt of the reply.
    DeadlineFromReceipt,
    /// An expired lease is claimed as if it had been released.
    ExpiryForgetsStarts,
    /// Units begin after the deadline if the orchestrator was stopped.
    NoCheckByUnit,
    /// Hosts are claimed at once after a failover.
    NoGrace,
    /// The outbox is not sent again after a failover.
    NoResend,
    /// Ids continue after a failover with those of the forgotten transactions.
    IdsRepeat,
    ClaimIgnoresLease,
    /// Renewals are accepted from every node.
    RenewWithoutOwner,
    /// A rebooted node does not wait for the delay.
    RebootForgetsStarts,
    ClonesAdmitted,
    /// A page that is given back has counted an attempt.
    GiveBackCounts,
    /// Pages of a lost lease are recorded by their node without the database.
    PagesVanish,
}

impl Mutation {
    pub(super) const ALL: [Mutation; 15] = [
        Mutation::RecordWithoutEpoch,
        Mutation::PaceIsForgotten,
        Mutation::NoMargin,
        Mutation::DeadlineFromReceipt,
        Mutation::ExpiryForgetsStarts,
        Mutation::NoCheckByUnit,
        Mutation::NoGrace,
        Mutation::NoResend,
        Mutation::IdsRepeat,
        Mutation::ClaimIgnoresLease,
        Mutation::RenewWithoutOwner,
        Mutation::RebootForgetsStarts,
        Mutation::ClonesAdmitted,
        Mutation::GiveBackCounts,
        Mutation::PagesVanish,
    ];

    /// A seed that found the mutation; it is tried first.
    pub(super) fn likely_seed(self) -> u64 {
        match self {
            Mutation::RenewWithoutOwner | Mutation::NoCheckByUnit => 1,
            Mutation::RecordWithoutEpoch => 7,
            Mutation::NoResend => 21,
            Mutation::IdsRepeat => 87,
            Mutation::NoMargin => 272,
            Mutation::NoGrace => 21,
            Mutation::RebootForgetsStarts => 18,
            Mutation::ExpiryForgetsStarts => 141,
            Mutation::DeadlineFromReceipt => 346,
            _ => 0,
        }
    }

    /// Changes a request, its sender and the rows before the database sees it.
    pub(super) fn before(
        self,
        now: DbTime,
        ledger: &mut Ledger,
        session: &mut Session,
        request: &mut NodeRequest,
    ) {
        match (self, request) {
            (Mutation::RecordWithoutEpoch, NodeRequest::Record(record)) => {
                let Some(page) = ledger.pages.get(&record.page) else {
                    return;
                };
                if let PageState::Open(node) = page.state {
                    record.epoch = page.epoch;
                    session.node = node;
                    session.incarnation = ledger.nodes[&node].incarnation;
                }
            }
            (Mutation::PaceIsForgotten, NodeRequest::Renew(renew)) => {
                let leases = renew.leases.iter_mut();
                leases.for_each(|held| held.pace.next_in = Duration::ZERO);
            }
            (Mutation::PaceIsForgotten, NodeRequest::Release(release)) => {
                let delay = release.pace.map_or(Duration::ZERO, |pace| pace.delay);
                release.pace = Some(Pace { delay, ..Pace::default() });
            }
            (Mutation::ExpiryForgetsStarts, NodeRequest::Claim(_)) => {
                let hosts = ledger.hosts.values_mut();
                for host in hosts.filter(|host| host.lease_until <= now) {
                    host.owner = None;
                }
            }
            (Mutation::ClaimIgnoresLease, NodeRequest::Claim(_)) => {
                for host in ledger.hosts.values_mut() {
                    host.lease_until = host.lease_until.min(now);
                }
            }
            (Mutation::RenewWithoutOwner, NodeRequest::Renew(renew)) => {
                for held in &renew.leases {
                    if let Some(host) = ledger.hosts.get_mut(&held.host) {
                        host.owner = Some(session.node);
                        host.epoch = held.epoch;
                    }
                }
            }
            (Mutation::PagesVanish, NodeRequest::Release(release)) => {
                let epoch = release.epoch;
                let is_its = |page: &crate::ledger::PageRow| {
                    page.epoch == epoch && *page.host() == release.host
                };
                ledger
                    .pages
                    .retain(|_, page| !(is_its(page) && matches!(page.state, PageState::Open(_))));
            }
            _ => {}
        }
    }

    /// Changes rows after the database carried out a request.
    pub(super) fn after(self, ledger: &mut Ledger, request: &NodeRequest) {
        if self == Mutation::GiveBackCounts
            && let NodeRequest::Release(release) = request
        {
            let pages = ledger.pages.values_mut();
            for page in pages.filter(|page| page.epoch == release.epoch) {
                let is_back = page.state == PageState::Queued && *page.host() == release.host;
                page.attempts += u32::from(is_back);
            }
        }
    }

    pub(super) fn delivery(self, now: BootTime, delivery: &mut Delivery) {
        match delivery {
            Delivery::Claimed { sent, .. } | Delivery::Renewed { sent, .. }
                if self == Mutation::DeadlineFromReceipt =>
            {
                *sent = now;
            }
            _ => {}
        }
    }

    /// Changes what the orchestrator keeps after a delivery.
    pub(super) fn desk(self, former: &Desk, desk: &mut Desk) {
        if self == Mutation::NoResend && former.generation != desk.generation {
            desk.outbox.clone_from(&former.outbox);
        }
        if self != Mutation::NoMargin {
            return;
        }
        for (host, lease) in &mut desk.leases {
            let before = former.leases.get(host).map(|lease| lease.deadline);
            if before != Some(lease.deadline) {
                lease.deadline = lease.deadline.after(margin(super::world::LEASE));
            }
        }
    }
}
