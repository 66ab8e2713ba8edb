//! A database that is restored from a backup, once or several times, while nodes work, are away, or come
//! before the restoration is declared. Each node is a desk; messages arrive, because losing them is the
//! subject of the other simulation.
//!
//! `FLEET_SEED=N` runs this seed alone.

use super::number;
use super::random::Random;
use crate::ledger::{DbTime, Ledger, PageState};
use crate::{Desk, Room, Standing};
use archivist_core::fleet::{
    BootTime, CrawlSpec, Delivery, Hello, HostKey, NewPage, NodeRefusal, NodeReply, NodeRequest,
    PageEnd, PageTimes, Record, Renew, SCHEMA, Session, Submit,
};
use archivist_core::model::{CrawlId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SEEDS: u64 = 100;
const STEPS: u32 = 250;
const NODES: usize = 3;
const LEASE: Duration = Duration::from_secs(60);
const ROOM: Room = Room { hosts: 3, slots: 3, pages_per_host: 4, delay: Duration::ZERO };

type Address = (CrawlId, String);

struct Node {
    name: String,
    desk: Desk,
    session: Option<Session>,
    on: bool,
    /// It was connected since the restoration was declared.
    has_recalled: bool,
    /// It was connected since the backup. Without that, a node cannot notice that the database went back.
    knows: bool,
    reserved: Vec<CrawlId>,
    directories: BTreeMap<SnapshotId, Address>,
}

impl Node {
    /// Returns the page of this address that this node has archived and recorded. A node that came after
    /// the page was handed out again has it under an id that is not listed. No page of this simulation is
    /// retried.
    fn recorded(&self, (crawl, url): &Address) -> Option<SnapshotId> {
        let mut ends = self.desk.archived.values();
        let end = ends.find(|(page, _)| page.crawl == *crawl && page.page.url == *url);
        let (page, _) = end?;
        let is_unsent = self.desk.outbox.unanswered().any(
            |entry| matches!(&entry.request, NodeRequest::Record(record) if record.page == page.id),
        );
        (self.has_recalled && !is_unsent).then_some(page.id)
    }
}

struct Fleet {
    random: Random,
    now: u64,
    ledger: Ledger,
    backup: Option<Ledger>,
    nodes: Vec<Node>,
    promised: BTreeSet<Address>,
    urls: u64,
    /// A restored database waits for its declaration.
    undeclared: bool,
    refused: u64,
    restorations: u64,
    recalled: u64,
}

type Checked = Result<(), String>;

impl Fleet {
    fn new(seed: u64) -> Fleet {
        let node = |number: usize| Node {
            name: format!("web{number}"),
            desk: Desk::default(),
            session: None,
            on: true,
            has_recalled: true,
            knows: true,
            reserved: Vec::new(),
            directories: BTreeMap::new(),
        };
        Fleet {
            random: Random::new(seed),
            now: 1_000_000,
            ledger: Ledger::new(LEASE),
            backup: None,
            nodes: (0..NODES).map(node).collect(),
            promised: BTreeSet::new(),
            urls: 0,
            undeclared: false,
            refused: 0,
            restorations: 0,
            recalled: 0,
        }
    }

    fn boot_time(&self) -> BootTime {
        BootTime(self.now)
    }

    fn deliver(&mut self, node: usize, delivery: Delivery) {
        let now = self.boot_time();
        // No unit runs between two steps.
        drop(self.nodes[node].desk.deliver(now, delivery, ROOM));
    }

    /// Connects a node and lets it exchange everything with the database.
    fn sync(&mut self, node: usize) -> Checked {
        if self.nodes[node].session.is_none() && !self.hello(node)? {
            return Ok(());
        }
        self.renew(node, 0)?;
        while let Some(entry) = self.holdings(node).entries.first().cloned() {
            self.recalled += u64::from(matches!(entry.request, NodeRequest::Restore { .. }));
            let Some(reply) = self.send(node, &entry.request)? else {
                return Ok(());
            };
            if let Ok(NodeReply::CrawlIds { first, count }) = &reply {
                let ids = (0..i64::from(*count)).map(|more| CrawlId(first.0 + more));
                self.nodes[node].reserved.extend(ids);
            }
            if let (NodeRequest::Restore { pages }, Ok(NodeReply::Restored { refused })) =
                (&entry.request, &reply)
            {
                self.check_refused(node, pages.len(), refused)?;
            }
            let number = entry.number;
            self.deliver(node, Delivery::Answered { number, reply });
        }
        self.nodes[node].has_recalled = true;
        self.nodes[node].knows = true;
        while let Some(release) = self.holdings(node).releases.first().cloned() {
            let (host, epoch) = (release.host.clone(), release.epoch);
            match self.send(node, &NodeRequest::Release(release))? {
                Some(Ok(NodeReply::Released(fate))) => {
                    self.deliver(node, Delivery::Released { host, epoch, fate });
                }
                _ => return Ok(()),
            }
        }
        if let Some(claim) = self.holdings(node).claim
            && let Some(Ok(NodeReply::Claimed(claimed))) =
                self.send(node, &NodeRequest::Claim(claim))?
        {
            let sent = self.boot_time();
            self.deliver(node, Delivery::Claimed { claimed, sent });
        }
        self.renew(node, ROOM.pages_per_host)
    }

    fn holdings(&self, node: usize) -> archivist_core::fleet::Holdings {
        self.nodes[node].desk.holdings(self.boot_time(), ROOM)
    }

    fn hello(&mut self, node: usize) -> Result<bool, String> {
        let known = &self.nodes[node];
        let hello = Hello {
            name: known.name.clone(),
            machine: known.name.clone(),
            boot: "1".to_owned(),
            uptime: Duration::from_secs(900),
            schema: SCHEMA,
            lease: None,
            memory: known.desk.memory(),
        };
        let welcome = match self.ledger.hello(DbTime(self.now), &hello) {
            Ok(welcome) => welcome,
            // A node that was away may remember a later generation than the declared one: the administrator
            // has to declare again.
            Err(NodeRefusal::WentBack) => {
                self.refused += 1;
                self.undeclared = true;
                return Ok(false);
            }
            Err(refusal) => return Err(format!("{} is refused: {refusal}", hello.name)),
        };
        self.nodes[node].session = Some(welcome.session);
        let delivery = Delivery::Welcomed {
            node: welcome.session.node,
            generation: welcome.generation,
            forgot: welcome.forgot,
        };
        self.deliver(node, delivery);
        Ok(true)
    }

    fn renew(&mut self, node: usize, refill: u32) -> Checked {
        let renew = Renew { leases: self.holdings(node).leases, refill, ..Renew::default() };
        let sent = self.boot_time();
        if let Some(Ok(NodeReply::Renewed(renewed))) =
            self.send(node, &NodeRequest::Renew(renew))?
        {
            let refilled = refill > 0;
            let delivery = Delivery::Renewed { renewed, sent, refilled };
            self.deliver(node, delivery);
        }
        Ok(())
    }

    /// Sends a request. `None`: the node has to say hello again.
    fn send(
        &mut self,
        node: usize,
        request: &NodeRequest,
    ) -> Result<Option<Result<NodeReply, NodeRefusal>>, String> {
        let Some(session) = self.nodes[node].session else {
            return Ok(None);
        };
        match self.ledger.apply(DbTime(self.now), session, request) {
            Err(NodeRefusal::Superseded { .. } | NodeRefusal::UnknownNode { .. }) => {
                self.nodes[node].session = None;
                Ok(None)
            }
            Err(refusal) => Err(format!("{request:?} is refused: {refusal}")),
            reply => Ok(Some(reply)),
        }
    }

    /// The database has no room for a page only if it was handed out again meanwhile.
    fn check_refused(&self, node: usize, pages: usize, refused: &[SnapshotId]) -> Checked {
        for id in refused {
            let Some((page, _)) = self.nodes[node].desk.archived.get(id) else {
                continue;
            };
            let mut rows = self.ledger.pages.values();
            let is_listed =
                rows.any(|row| row.crawl == page.crawl && row.page.url == page.page.url);
            if !is_listed {
                return Err(format!("{id} is refused, one of {pages}, and not listed"));
            }
        }
        Ok(())
    }

    /// A user adds pages on a node, which need not be connected.
    fn add(&mut self, node: usize) {
        if self.nodes[node].reserved.len() < 3 {
            let outbox = &mut self.nodes[node].desk.outbox;
            outbox.push(NodeRequest::ReserveCrawls { count: 5 });
        }
        let Some(crawl) = self.nodes[node].reserved.pop() else {
            return;
        };
        let pages: Vec<_> = (0..self.random.range(1, 6))
            .map(|_| {
                self.urls += 1;
                let host = self.random.range(0, 6);
                NewPage {
                    url: format!("https://{host}.example/{}", self.urls),
                    host: HostKey(format!("{host}.example")),
                    depth: 0,
                    given: true,
                    title: None,
                    bookmarked_at: None,
                    tags: Vec::new(),
                }
            })
            .collect();
        let addresses = pages.iter().map(|page| (crawl, page.url.clone()));
        self.promised.extend(addresses);
        let spec = Some(CrawlSpec::default());
        let submit = Submit { crawl, spec, pages };
        let outbox = &mut self.nodes[node].desk.outbox;
        outbox.push(NodeRequest::Submit(submit));
    }

    /// A node archives one of its pages.
    fn archive(&mut self, node: usize) -> Checked {
        let now = self.boot_time();
        let desk = &self.nodes[node].desk;
        let waiting: Vec<SnapshotId> = desk.pages.keys().copied().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let id = waiting[self.random.index(waiting.len())];
        if !matches!(desk.standing(id, now), Some(Standing::Free { .. })) {
            return Ok(());
        }
        let page = desk.pages[&id].clone();
        let address = (page.leased.crawl, page.leased.page.url.clone());
        let is_listed = |id: SnapshotId| {
            let row = self.ledger.pages.get(&id);
            row.is_some_and(|row| row.state.is_final())
        };
        let mut others = self.nodes.iter();
        if let Some(other) = others.find(|other| other.recorded(&address).is_some_and(is_listed)) {
            let name = &other.name;
            return Err(format!("{address:?} is fetched again, {name} has it"));
        }
        for other in &self.nodes {
            let had = other.directories.get(&id);
            if had.is_some_and(|had| *had != address) {
                return Err(format!("{id} is {address:?}, and {had:?} on {}", other.name));
            }
        }
        let node = &mut self.nodes[node];
        node.directories.insert(id, address);
        node.desk.start(id, now);
        node.desk.started(id, now);
        let record = Record {
            page: id,
            epoch: page.epoch,
            end: PageEnd::Sealed,
            reason: None,
            directory: Some(format!("{id}")),
            results: Vec::new(),
            children: Vec::new(),
            times: PageTimes::default(),
        };
        node.desk.end(record, now);
        Ok(())
    }

    fn restore(&mut self) {
        let Some(backup) = self.backup.clone() else {
            return;
        };
        self.ledger = backup;
        self.undeclared = true;
        self.restorations += 1;
        for node in &mut self.nodes {
            node.session = None;
        }
    }

    /// The administrator says that the database was restored; the nodes that are on connect at once.
    fn declare(&mut self) -> Checked {
        self.ledger.restored(DbTime(self.now));
        self.undeclared = false;
        for node in &mut self.nodes {
            node.session = None;
            node.has_recalled = false;
        }
        for node in self.connected() {
            self.sync(node)?;
        }
        Ok(())
    }

    fn connected(&self) -> Vec<usize> {
        (0..NODES).filter(|node| self.nodes[*node].on).collect()
    }

    fn step(&mut self) -> Checked {
        self.now += self.random.range(1, 3_000);
        let node = self.random.index(NODES);
        let is_on = self.nodes[node].on;
        let may_connect = !self.undeclared || self.nodes[node].knows;
        match self.random.range(0, 100) {
            0..45 if is_on && may_connect => self.sync(node),
            45..60 if is_on => {
                self.add(node);
                Ok(())
            }
            60..88 if is_on => self.archive(node),
            88..91 => {
                self.now += self.random.range(10_000, 200_000);
                Ok(())
            }
            91..93 => {
                self.nodes[node].on = !is_on;
                self.nodes[node].session = None;
                Ok(())
            }
            93..95 if !self.undeclared => {
                self.backup = Some(self.ledger.clone());
                self.nodes.iter_mut().for_each(|node| node.knows = false);
                Ok(())
            }
            95..97 if !self.undeclared => {
                self.restore();
                Ok(())
            }
            97..100 if self.undeclared => self.declare(),
            _ => Ok(()),
        }
    }

    fn run(&mut self) -> Checked {
        for _ in 0..STEPS {
            self.step()?;
        }
        self.nodes.iter_mut().for_each(|node| node.on = true);
        for _ in 0..600 {
            if self.undeclared {
                self.declare()?;
            }
            if self.is_done() {
                break;
            }
            self.now += 20_000;
            for node in 0..NODES {
                self.sync(node)?;
                for _ in 0..6 {
                    self.archive(node)?;
                }
                self.sync(node)?;
            }
        }
        self.check_end()
    }

    fn is_done(&self) -> bool {
        let is_quiet = |node: &Node| {
            let has_entries = node.desk.outbox.unanswered().next().is_some();
            !has_entries && node.desk.recall.next().is_none() && node.session.is_some()
        };
        let mut pages = self.ledger.pages.values();
        self.nodes.iter().all(is_quiet) && pages.all(|row| row.state.is_final())
    }

    /// Everything that a user added is listed once and archived, and what a node has is listed.
    fn check_end(&self) -> Checked {
        let mut listed = BTreeMap::new();
        for (id, row) in &self.ledger.pages {
            let address = (row.crawl, row.page.url.clone());
            if !row.state.is_final() {
                return Err(format!("{id} is {:?}", row.state));
            }
            if let Some(former) = listed.insert(address, *id) {
                return Err(format!("{id} and {former} are one page"));
            }
        }
        if let Some(lost) = self.promised.iter().find(|page| !listed.contains_key(page)) {
            return Err(format!("{lost:?} is lost"));
        }
        for node in &self.nodes {
            for (id, (page, record)) in &node.desk.archived {
                let Some(row) = self.ledger.pages.get(id) else {
                    let address = (page.crawl, page.page.url.clone());
                    if !listed.contains_key(&address) {
                        return Err(format!("{id} of {} is not listed", node.name));
                    }
                    continue;
                };
                let is_here = row.state == PageState::Final(PageEnd::Sealed, node.desk.node);
                if row.page.url != page.page.url || !(is_here || row.epoch > record.epoch) {
                    return Err(format!("{id} of {} is {row:?}", node.name));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn restored_database_loses_and_repeats_nothing() {
    let seeds = number("FLEET_SEED").map_or(0..SEEDS, |seed| seed..seed + 1);
    let (mut failed, mut refused, mut restorations, mut recalled) = (Vec::new(), 0, 0, 0);
    for seed in seeds.clone() {
        let mut fleet = Fleet::new(seed);
        if let Err(broken) = fleet.run() {
            failed.push(format!("seed {seed}: {broken}"));
        }
        refused += fleet.refused;
        restorations += fleet.restorations;
        recalled += fleet.recalled;
    }
    println!("{restorations} restorations, {refused} refusals, {recalled} batches of pages");
    let first = &failed[..failed.len().min(5)];
    assert!(failed.is_empty(), "{} seeds failed: {first:#?}", failed.len());
    // The runs are about something.
    if seeds.end - seeds.start >= SEEDS {
        assert!(refused > 0 && restorations > SEEDS && recalled > SEEDS);
    }
}
