//! What must hold, by true time and by the true history, which a failover does not change.

use crate::ledger::{Ledger, PageState};
use archivist_core::fleet::{
    Claimed, Epoch, Fate, HostKey, LeasedPage, NodeId, NodeReply, NodeRequest, Renewed, Session,
};
use archivist_core::model::{CrawlId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Largest difference of the speed of a clock, in parts per million.
pub(super) const DRIFT_PPM: u64 = 10_000;

/// What is true of the rows of the database; a failover takes it back.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    attempts: BTreeMap<SnapshotId, u32>,
    open: BTreeMap<SnapshotId, (HostKey, Epoch)>,
    recorded: BTreeSet<SnapshotId>,
    last_grant: BTreeMap<SnapshotId, (NodeId, Epoch)>,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) rows: Rows,
    owners: BTreeMap<(HostKey, Epoch), NodeId>,
    granted: BTreeMap<HostKey, Epoch>,
    last_start: BTreeMap<HostKey, u64>,
    last_grant: BTreeMap<SnapshotId, (NodeId, Epoch)>,
    urls: BTreeMap<SnapshotId, (CrawlId, String)>,
    /// Pages that a user was promised.
    pub(super) promised: BTreeSet<(CrawlId, String)>,
    /// Records that the database acknowledged, with the claim under which the page was open.
    acknowledged: BTreeMap<SnapshotId, (NodeId, Epoch)>,
    /// Ends of pages that a node has discarded, because the database answered that they are stale.
    pub(super) discarded: BTreeSet<(SnapshotId, NodeId, Epoch)>,
    pub(super) starts: u64,
    pub(super) handovers: u64,
    pub(super) stale: u64,
}

pub(super) type Checked = Result<(), String>;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Oracle {
    /// I2: a unit began at this true time, in milliseconds.
    pub(super) fn started(&mut self, at: u64, host: &HostKey, delay: Duration) -> Checked {
        self.starts += 1;
        let Some(last) = self.last_start.insert(host.clone(), at) else {
            return Ok(());
        };
        let delay = delay.as_millis() as u64;
        // Every clock measures at most this much too fast; rounding adds a few milliseconds.
        let least = (delay * 1_000_000 / (1_000_000 + DRIFT_PPM)).saturating_sub(5);
        ensure(at - last >= least, || {
            format!("I2: {host} had starts at {last} and {at}, delay {delay}")
        })
    }

    /// The database carried out a request of this node.
    pub(super) fn carried_out(
        &mut self,
        ledger: &Ledger,
        from: Session,
        request: &NodeRequest,
        reply: &NodeReply,
    ) -> Checked {
        let me = from.node;
        match (request, reply) {
            (_, NodeReply::Claimed(claimed)) => self.claimed(me, claimed)?,
            (_, NodeReply::Renewed(renewed)) => self.renewed(me, renewed)?,
            (NodeRequest::Record(record), NodeReply::Recorded(fate)) => match fate {
                Fate::Done => self.recorded(me, record.page, record.epoch)?,
                Fate::Already => drop(self.acknowledged.insert(record.page, (me, record.epoch))),
                Fate::Stale => self.stale += 1,
            },
            (NodeRequest::GiveBack { page, .. }, NodeReply::GivenBack(Fate::Done)) => {
                self.given_back(*page)
            }
            (NodeRequest::Release(release), NodeReply::Released(Fate::Done)) => {
                let open = self.rows.open.iter();
                let open = open.filter(|(_, (host, _))| *host == release.host);
                let back: Vec<_> = open.map(|(id, _)| *id).collect();
                back.into_iter().for_each(|id| self.given_back(id));
            }
            _ => {}
        }
        // A cancelled page of a lost lease ends by itself.
        self.rows.open.retain(|id, _| !is_final(ledger, *id));
        self.check_rows(ledger)
    }

    fn claimed(&mut self, me: NodeId, claimed: &Claimed) -> Checked {
        for grant in &claimed.hosts {
            let former = self.granted.insert(grant.host.clone(), grant.epoch);
            let former = former.unwrap_or_default();
            self.handovers += 1;
            ensure(grant.epoch > former, || {
                format!("I1: {} had epoch {former}, then {}", grant.host, grant.epoch)
            })?;
            // What the former owner had open comes later or again.
            self.rows.open.retain(|_, (host, _)| *host != grant.host);
            self.handed(me, &grant.host, grant.epoch, &grant.pages)?;
        }
        Ok(())
    }

    fn renewed(&mut self, me: NodeId, renewed: &Renewed) -> Checked {
        for lease in &renewed.leases {
            self.handed(me, &lease.host, lease.epoch, &lease.pages)?;
        }
        Ok(())
    }

    /// I5 and I6: pages are handed to one node, and each time counts.
    fn handed(
        &mut self,
        me: NodeId,
        host: &HostKey,
        epoch: Epoch,
        pages: &[LeasedPage],
    ) -> Checked {
        for page in pages {
            let id = page.id;
            let open = self.rows.open.insert(id, (host.clone(), epoch));
            // After a failover, of a claim that another forgotten one had ended.
            let is_over = open.is_none_or(|(_, former)| former < epoch);
            ensure(is_over, || format!("I5: {id} was open when handed to {me}"))?;
            self.last_grant.insert(id, (me, epoch));
            self.rows.last_grant.insert(id, (me, epoch));
            // Archived again: the next end is another one.
            self.discarded.remove(&(id, me, epoch));
            let attempts = self.rows.attempts.entry(id).or_default();
            *attempts += 1;
            ensure(*attempts == page.attempts, || {
                format!("I6: {id} has {} attempts, not {attempts}", page.attempts)
            })?;
            let url = (page.crawl, page.page.url.clone());
            let known = self.urls.entry(id).or_insert_with(|| url.clone());
            ensure(*known == url, || format!("I3: {id} is {known:?} and {url:?}"))?;
        }
        Ok(())
    }

    fn given_back(&mut self, id: SnapshotId) {
        if self.rows.open.remove(&id).is_some()
            && let Some(attempts) = self.rows.attempts.get_mut(&id)
        {
            *attempts -= 1;
        }
    }

    /// I3: recorded once, by the node and epoch that had it last.
    fn recorded(&mut self, me: NodeId, id: SnapshotId, epoch: Epoch) -> Checked {
        // Either the database knows of no later claim, or it has forgotten the last one.
        let last = self.rows.last_grant.get(&id).copied();
        let is_last = [last, self.last_grant.get(&id).copied()].contains(&Some((me, epoch)));
        ensure(is_last, || {
            format!("I3: {id} recorded by {me} under {epoch}, but handed to {last:?}")
        })?;
        let is_discarded = self.discarded.contains(&(id, me, epoch));
        ensure(!is_discarded, || format!("I3: {id} recorded by {me}, which has discarded it"))?;
        self.rows.open.remove(&id);
        self.acknowledged.insert(id, (me, epoch));
        ensure(self.rows.recorded.insert(id), || format!("I3: {id} recorded twice"))
    }

    /// A user retried what was final.
    pub(super) fn retried(&mut self, ledger: &Ledger) {
        let queued = |id: &SnapshotId| !is_final(ledger, *id);
        let again: Vec<_> = self.rows.recorded.iter().copied().filter(queued).collect();
        for id in again {
            self.rows.recorded.remove(&id);
            self.rows.attempts.remove(&id);
            self.acknowledged.remove(&id);
        }
        let is_open = |id: &SnapshotId| {
            let page = ledger.pages.get(id);
            page.is_some_and(|page| matches!(page.state, PageState::Open(_)))
        };
        self.rows.open.retain(|id, _| is_open(id));
        let zero = |id: &SnapshotId| ledger.pages.get(id).is_none_or(|page| page.attempts > 0);
        self.rows.attempts.retain(|id, _| zero(id));
    }

    /// I1 and I6 for all rows.
    fn check_rows(&mut self, ledger: &Ledger) -> Checked {
        for (host, row) in &ledger.hosts {
            let Some(owner) = row.owner else { continue };
            let first = self.owners.entry((host.clone(), row.epoch)).or_insert(owner);
            ensure(*first == owner, || {
                format!("I1: epoch {} of {host} is of nodes {first} and {owner}", row.epoch)
            })?;
        }
        for (id, attempts) in &self.rows.attempts {
            let row = ledger.pages.get(id).map(|page| page.attempts);
            ensure(row == Some(*attempts), || {
                format!("I6: {id} has {row:?} attempts, not {attempts}")
            })?;
        }
        for id in &self.rows.recorded {
            ensure(is_final(ledger, *id), || format!("I3: {id} lost its end"))?;
        }
        Ok(())
    }

    /// I4: what was promised or acknowledged is in the database or in an outbox.
    pub(super) fn check_promises<'a>(
        &self,
        ledger: &Ledger,
        outboxes: impl Iterator<Item = &'a NodeRequest>,
    ) -> Checked {
        let mut submitted = BTreeSet::new();
        let mut records = BTreeSet::new();
        for request in outboxes {
            match request {
                NodeRequest::Submit(submit) => {
                    let urls = submit.pages.iter().map(|page| page.url.as_str());
                    submitted.extend(urls.map(|url| (submit.crawl, url)));
                }
                NodeRequest::Record(record) => drop(records.insert(record.page)),
                _ => {}
            }
        }
        let rows = ledger.pages.values();
        let rows: BTreeSet<_> = rows.map(|page| (page.crawl, page.page.url.as_str())).collect();
        for (crawl, url) in &self.promised {
            let key = (*crawl, url.as_str());
            ensure(rows.contains(&key) || submitted.contains(&key), || {
                format!("I4: {url} of {crawl} is lost")
            })?;
        }
        for (id, grant) in &self.acknowledged {
            // After a failover, the page may have been handed to another node before its record came.
            let page = ledger.pages.get(id);
            let host = page.and_then(|page| self.granted.get(page.host()));
            let moved = self.last_grant.get(id) != Some(grant) || host > Some(&grant.1);
            let kept = records.contains(id) || is_final(ledger, *id);
            let unknown = !ledger.pages.contains_key(id);
            ensure(kept || moved || unknown, || format!("I4: the record of {id} is lost"))?;
        }
        Ok(())
    }
}

fn is_final(ledger: &Ledger, id: SnapshotId) -> bool {
    let page = ledger.pages.get(&id);
    page.is_some_and(|page| matches!(page.state, PageState::Final(..)))
}
