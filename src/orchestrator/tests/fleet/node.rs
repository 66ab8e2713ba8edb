//! A node under test, and replies of the database.

use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use crate::orders::holdings::NodeCall;
use crate::tests::bed::Bed;
use archivist_core::fleet::{
    BootTime, Claimed, CrawlSpec, CrawlUse, Delivery, Epoch, Generation, Grant, Holdings, HostKey,
    LeasedPage, NewPage, NodeId, NodeRequest, Order, Orders, PageEnd, Renewal, Renewed,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub const HOST: &str = "a.test";
pub const LEASE: Duration = Duration::from_secs(300);
/// From the departure of the request to the deadline: a tenth is the margin.
pub const LIVE_MS: u64 = 270_000;
pub const CRAWL: CrawlId = CrawlId(12);

impl Bed {
    pub fn deliver(&mut self, delivery: Delivery) -> Result<(), Refusal> {
        let delivery = Arc::new(delivery);
        self.request(NodeCall::Deliver { delivery }).unwrap().map(drop)
    }

    pub fn holdings(&mut self) -> Holdings {
        self.document(NodeCall::Holdings)
    }

    /// Unanswered requests, apart from that for ids of crawls.
    pub fn outbox(&mut self) -> Vec<NodeRequest> {
        let entries = self.look(|tx| tx.unanswered_entries(100)).into_iter();
        let requests = entries.map(|entry| entry.request);
        requests.filter(|request| !matches!(request, NodeRequest::ReserveCrawls { .. })).collect()
    }

    pub fn retry_in_fleet(&mut self, id: Owner) -> Result<u32, Refusal> {
        let retried = self.request(Request::Retry {
            id: Some(id),
            which: Which::Failed,
            user: 0,
            so_far: None,
        });
        retried.unwrap().map(|count| count.parse().unwrap())
    }

    pub fn status(&mut self, id: i64) -> Lifecycle {
        let owner = Owner::Snapshot(SnapshotId(id));
        self.look(|tx| tx.status_of(owner))
    }

    pub fn crawl_status(&mut self) -> Lifecycle {
        self.look(|tx| tx.status_of(Owner::Crawl(CRAWL)))
    }

    /// Everything runs until no unit is left but workers of crawls.
    pub fn run_units(&mut self) {
        while self.moves_on() {}
    }

    pub fn until_page_runs(&mut self, id: i64) {
        let worker = format!("archivist-snapshot-{id}.service");
        while !self.world.units.contains_key(&worker) {
            assert!(self.moves_on(), "page s{id} does not start");
        }
    }

    /// Returns the unit of the first hook of a page, which runs.
    pub fn until_hook_runs(&mut self, id: i64) -> String {
        let hook = format!("archivist-hook-alpha-s{id}.service");
        while !self.world.units.contains_key(&hook) {
            assert!(self.moves_on(), "no hook of page s{id} starts");
        }
        hook
    }

    /// The database leases the host with these pages.
    pub fn claim(&mut self, epoch: i64, pages: &[i64]) {
        let grant = self.grant(epoch, pages);
        self.claim_as(grant);
    }

    pub fn grant(&self, epoch: i64, pages: &[i64]) -> Grant {
        Grant {
            host: HostKey(HOST.into()),
            epoch: Epoch(epoch),
            lease: LEASE,
            due_in: Duration::ZERO,
            delay: Duration::ZERO,
            pages: pages.iter().map(|id| leased(*id)).collect(),
        }
    }

    pub fn claim_as(&mut self, grant: Grant) {
        // A page under another epoch is not the one that ended.
        self.finals.clear();
        let sent = BootTime(self.machine as u64);
        let claimed = Claimed { hosts: vec![grant], crawls: vec![(CRAWL, spec())] };
        self.deliver(Delivery::Claimed { claimed, sent }).unwrap();
    }

    /// The database leases the host with a page of this crawl.
    pub fn claim_of(&mut self, crawl: CrawlId, epoch: i64, page: i64) {
        self.finals.clear();
        let sent = BootTime(self.machine as u64);
        let mut grant = self.grant(epoch, &[page]);
        grant.pages[0].crawl = crawl;
        let claimed = Claimed { hosts: vec![grant], crawls: vec![(crawl, spec())] };
        self.deliver(Delivery::Claimed { claimed, sent }).unwrap();
    }

    pub fn renew(&mut self, renewed: Renewed, refilled: bool) {
        let sent = BootTime(self.machine as u64);
        self.deliver(Delivery::Renewed { renewed, sent, refilled }).unwrap();
    }

    pub fn use_limits(&mut self, used: CrawlUse) {
        let orders = Orders { used: vec![(CRAWL, used)], ..Orders::default() };
        let renewed = Renewed { orders, ..Renewed::default() };
        self.renew(renewed, false);
    }

    pub fn obey(&mut self, order: Order) {
        let orders = Orders { crawls: vec![(CRAWL, order)], ..Orders::default() };
        let renewed = Renewed { orders, ..Renewed::default() };
        self.renew(renewed, false);
    }
}

pub fn renewal(epoch: i64) -> Renewed {
    Renewed {
        leases: vec![Renewal {
            host: HostKey(HOST.into()),
            epoch: Epoch(epoch),
            lease: LEASE,
            due_in: Duration::ZERO,
            pages: Vec::new(),
        }],
        ..Renewed::default()
    }
}

pub fn lost(epoch: i64) -> Renewed {
    Renewed { lost: vec![(HostKey(HOST.into()), Epoch(epoch))], ..Renewed::default() }
}

pub fn node() -> Bed {
    let mut bed = Bed::new();
    bed.deliver(welcome(2, 0)).unwrap();
    bed
}

pub fn welcome(node: i64, generation: i64) -> Delivery {
    Delivery::Welcomed { node: NodeId(node), generation: Generation(generation), forgot: None }
}

pub fn spec() -> CrawlSpec {
    spec_with(&json!({}))
}

pub fn limited_spec(name: &str, value: &str) -> CrawlSpec {
    spec_with(&json!({ name: value }))
}

fn spec_with(config: &serde_json::Value) -> CrawlSpec {
    let document = json!({"url": format!("http://{HOST}/"), "plugins": ["alpha"], "config": config,
        "user": 0, "tags": ["news"]});
    CrawlSpec { max_depth: 1, urls_max: None, only_new: false, document: document.to_string() }
}

pub fn leased(id: i64) -> LeasedPage {
    LeasedPage {
        id: SnapshotId(id),
        crawl: CRAWL,
        parent: None,
        page: NewPage {
            url: format!("http://{HOST}/{id}"),
            host: HostKey(HOST.into()),
            depth: 0,
            given: true,
            title: None,
            bookmarked_at: None,
            tags: Vec::new(),
        },
        attempts: 1,
    }
}

pub fn recorded(request: &NodeRequest) -> (i64, i64, PageEnd) {
    let NodeRequest::Record(record) = request else {
        panic!("{request:?}");
    };
    (record.page.0, record.epoch.0, record.end)
}
