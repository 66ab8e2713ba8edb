//! Passing replies of the database to the orchestrator. The rows of the database decide how long a reply is
//! and which numbers it has, so a long one goes in parts, and a page that no message can carry, or that no
//! id can name, is recorded as failed instead.

use super::Running;
use archivist_core::fleet::service::Event;
use archivist_core::fleet::{
    CrawlSpecs, Delivery, Epoch, Grant, LeasedPage, NodeRequest, PageEnd, PageTimes, Record,
    Renewal,
};
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_shared::bus::documents::bounds::DELIVERY_MAX;
use std::collections::BTreeSet;

/// Reason of a page that the orchestrator cannot get.
const UNUSABLE: &str =
    "the row of the page or crawl in the fleet's database is too long, or its id is no id";

/// A page that was left out, with the epoch of its lease.
type LeftOut = (SnapshotId, Epoch);

impl Running<'_> {
    pub(super) async fn deliver(&mut self, delivery: Delivery) -> Event {
        if let Delivery::Refused { refusal, .. } = &delivery {
            let kind = std::mem::discriminant(refusal);
            let is_known = self.refused.as_ref().map(std::mem::discriminant) == Some(kind);
            if is_known {
                return Event::Delivered;
            }
            self.refused = Some(refusal.clone());
        }
        let mut left_out = Vec::new();
        let delivery = with_ids(delivery, &mut left_out);
        for part in parts(delivery, DELIVERY_MAX, &mut left_out) {
            let answer = self.orchestrator.deliver(&part).await;
            if self.answer(answer).is_none() {
                return Event::Failed;
            }
        }
        self.refuse(&left_out).await;
        Event::Delivered
    }

    /// Records pages as failed. Whatever is not recorded comes again with the next lease of its host.
    async fn refuse(&mut self, pages: &[LeftOut]) {
        let (Some(ledger), Some(session)) = (&mut self.ledger, self.session) else {
            return;
        };
        for (page, epoch) in pages {
            tracing::warn!("refused page {page} of the fleet: {UNUSABLE}");
            let record = Record {
                page: *page,
                epoch: *epoch,
                end: PageEnd::Sealed,
                reason: Some(UNUSABLE.to_owned()),
                directory: None,
                results: Vec::new(),
                children: Vec::new(),
                times: PageTimes::default(),
            };
            if let Err(fault) = ledger.apply(session, &NodeRequest::Record(record)).await {
                tracing::warn!("failed to record page {page} as refused: {fault}, ignoring");
            }
        }
    }
}

/// Whether a number is an id, which begins at 1.
fn is_id(number: i64) -> bool {
    number > 0
}

/// Leaves out what has numbers that the orchestrator cannot read as ids.
fn with_ids(mut delivery: Delivery, left_out: &mut Vec<LeftOut>) -> Delivery {
    let mut checked = |pages: &mut Vec<LeasedPage>, epoch: Epoch| {
        pages.retain(|page| {
            let is_usable = is_id(page.id.0) && is_id(page.crawl.0);
            if !is_usable {
                left_out.push((page.id, epoch));
            }
            is_usable
        });
        for page in pages {
            page.parent = page.parent.filter(|parent| is_id(parent.0));
        }
    };
    match &mut delivery {
        Delivery::Claimed { claimed, .. } => {
            for grant in &mut claimed.hosts {
                checked(&mut grant.pages, grant.epoch);
            }
            claimed.crawls.retain(|(crawl, _)| is_id(crawl.0));
        }
        Delivery::Renewed { renewed, .. } => {
            for renewal in &mut renewed.leases {
                checked(&mut renewal.pages, renewal.epoch);
            }
            renewed.crawls.retain(|(crawl, _)| is_id(crawl.0));
            let orders = &mut renewed.orders;
            orders.crawls.retain(|(crawl, _)| is_id(crawl.0));
            orders.used.retain(|(crawl, _)| is_id(crawl.0));
            orders.pages.retain(|(page, _)| is_id(page.0));
        }
        _ => {}
    }
    delivery
}

/// Divides a reply into parts of at most `longest` bytes as JSON, which have the same effect one after
/// the other. A page whose row is longer is left out.
fn parts(delivery: Delivery, longest: usize, left_out: &mut Vec<LeftOut>) -> Vec<Delivery> {
    let length = serde_json::to_string(&delivery).map_or(usize::MAX, |text| text.len());
    if length <= longest {
        return vec![delivery];
    }
    match halves(delivery, left_out) {
        Halves::Two(first, second) => {
            let mut all = parts(*first, longest, left_out);
            all.extend(parts(*second, longest, left_out));
            all
        }
        Halves::One(smaller) => parts(*smaller, longest, left_out),
        // The orchestrator refuses it.
        Halves::Whole(delivery) => vec![*delivery],
    }
}

enum Halves {
    Two(Box<Delivery>, Box<Delivery>),
    /// Without its last page.
    One(Box<Delivery>),
    /// It has no pages.
    Whole(Box<Delivery>),
}

fn halves(delivery: Delivery, left_out: &mut Vec<LeftOut>) -> Halves {
    let two = |first, second| Halves::Two(Box::new(first), Box::new(second));
    match delivery {
        Delivery::Claimed { mut claimed, sent } => {
            let (first, second) = divide(&mut claimed.hosts, left_out);
            let of = |hosts: Vec<Grant>| {
                let crawls = crawls_of(hosts.iter().map(|grant| &grant.pages), &claimed.crawls);
                let claimed = archivist_core::fleet::Claimed { hosts, crawls };
                Delivery::Claimed { claimed, sent }
            };
            match (first, second) {
                (Some(first), Some(second)) => two(of(first), of(second)),
                (Some(smaller), None) => Halves::One(Box::new(of(smaller))),
                (None, _) => Halves::Whole(Box::new(Delivery::Claimed { claimed, sent })),
            }
        }
        Delivery::Renewed { mut renewed, sent, refilled } => {
            let (first, second) = divide(&mut renewed.leases, left_out);
            let of = |leases: Vec<Renewal>, is_last: bool| {
                let mut part = renewed.clone();
                part.crawls = crawls_of(leases.iter().map(|lease| &lease.pages), &renewed.crawls);
                part.leases = leases;
                if !is_last {
                    // Hosts are counted once, when all pages are there.
                    part.orders.hand_over = None;
                    part.lost = Vec::new();
                }
                Delivery::Renewed { renewed: part, sent, refilled }
            };
            match (first, second) {
                (Some(first), Some(second)) => two(of(first, false), of(second, true)),
                (Some(smaller), None) => Halves::One(Box::new(of(smaller, true))),
                (None, _) => Halves::Whole(Box::new(Delivery::Renewed { renewed, sent, refilled })),
            }
        }
        other => Halves::Whole(Box::new(other)),
    }
}

trait Host: Clone {
    fn pages(&mut self) -> &mut Vec<LeasedPage>;
    fn epoch(&self) -> Epoch;
}

impl Host for Grant {
    fn pages(&mut self) -> &mut Vec<LeasedPage> {
        &mut self.pages
    }
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}

impl Host for Renewal {
    fn pages(&mut self) -> &mut Vec<LeasedPage> {
        &mut self.pages
    }
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}

/// Divides hosts, or the pages of the only one. Returns one part without the page if there is one page,
/// and none if there is no page.
fn divide<H: Host>(
    hosts: &mut Vec<H>,
    left_out: &mut Vec<LeftOut>,
) -> (Option<Vec<H>>, Option<Vec<H>>) {
    if hosts.len() > 1 {
        let second = hosts.split_off(hosts.len() / 2);
        return (Some(std::mem::take(hosts)), Some(second));
    }
    let Some(host) = hosts.first_mut() else {
        return (None, None);
    };
    let epoch = host.epoch();
    let half = host.pages().len() / 2;
    let mut rest = host.clone();
    if half > 0 {
        *rest.pages() = host.pages().split_off(half);
        return (Some(std::mem::take(hosts)), Some(vec![rest]));
    }
    match host.pages().pop() {
        Some(page) => {
            left_out.push((page.id, epoch));
            (Some(std::mem::take(hosts)), None)
        }
        None => (None, None),
    }
}

fn crawls_of<'a>(
    pages: impl Iterator<Item = &'a Vec<LeasedPage>>,
    crawls: &CrawlSpecs,
) -> CrawlSpecs {
    let used: BTreeSet<CrawlId> = pages.flatten().map(|page| page.crawl).collect();
    let crawls = crawls.iter().filter(|(id, _)| used.contains(id));
    crawls.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::fleet::{
        BootTime, Claimed, CrawlSpec, CrawlUse, HostKey, NewPage, Order, Orders, Renewed,
    };
    use std::time::Duration;

    fn page(id: i64, crawl: i64) -> LeasedPage {
        LeasedPage {
            id: SnapshotId(id),
            crawl: CrawlId(crawl),
            parent: None,
            page: NewPage {
                url: format!("http://a.test/{id}"),
                host: HostKey("a.test".into()),
                depth: 0,
                given: true,
                title: None,
                bookmarked_at: None,
                tags: Vec::new(),
            },
            attempts: 1,
        }
    }

    fn grant(epoch: i64, pages: Vec<LeasedPage>) -> Grant {
        Grant {
            host: HostKey(format!("{epoch}.test")),
            epoch: Epoch(epoch),
            lease: Duration::from_secs(300),
            due_in: Duration::ZERO,
            delay: Duration::ZERO,
            pages,
        }
    }

    fn crawl(id: i64, length: usize) -> (CrawlId, CrawlSpec) {
        let document = "d".repeat(length);
        let spec = CrawlSpec { document, ..CrawlSpec::default() };
        (CrawlId(id), spec)
    }

    fn claimed(hosts: Vec<Grant>, crawls: CrawlSpecs) -> Delivery {
        Delivery::Claimed { claimed: Claimed { hosts, crawls }, sent: BootTime(7) }
    }

    fn renewed(leases: Vec<Renewal>, crawls: CrawlSpecs, orders: Orders) -> Delivery {
        Delivery::Renewed {
            renewed: Renewed {
                leases,
                lost: vec![(HostKey("lost.test".into()), Epoch(9))],
                crawls,
                orders,
                given: Default::default(),
            },
            sent: BootTime(7),
            refilled: true,
        }
    }

    fn renewal(grant: Grant) -> Renewal {
        Renewal {
            host: grant.host,
            epoch: grant.epoch,
            lease: grant.lease,
            due_in: grant.due_in,
            pages: grant.pages,
        }
    }

    /// Pages and crawls of the parts, each of which fits and has the crawls of its pages.
    fn content(parts: &[Delivery], longest: usize) -> (Vec<i64>, BTreeSet<CrawlId>) {
        let (mut pages, mut crawls) = (Vec::new(), BTreeSet::new());
        for part in parts {
            assert!(serde_json::to_string(part).unwrap().len() <= longest);
            let (here, specs): (Vec<_>, _) = match part {
                Delivery::Claimed { claimed, .. } => {
                    let hosts = claimed.hosts.iter();
                    (hosts.flat_map(|host| &host.pages).collect(), &claimed.crawls)
                }
                Delivery::Renewed { renewed, .. } => {
                    let hosts = renewed.leases.iter();
                    (hosts.flat_map(|host| &host.pages).collect(), &renewed.crawls)
                }
                other => panic!("{other:?}"),
            };
            let ids: BTreeSet<_> = specs.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, here.iter().map(|page| page.crawl).collect());
            pages.extend(here.iter().map(|page| page.id.0));
            crawls.extend(ids);
        }
        (pages, crawls)
    }

    #[test]
    fn long_claim_is_divided_and_loses_nothing() {
        let hosts =
            (0..9).map(|n| grant(n, (0..5).map(|i| page(1 + 5 * n + i, 1 + n + i)).collect()));
        let crawls: CrawlSpecs = (1..=13).map(|id| crawl(id, 4_000)).collect();
        let mut left_out = Vec::new();
        let whole = claimed(hosts.collect(), crawls);
        let undivided = parts(whole.clone(), 1 << 20, &mut left_out);
        assert_eq!(undivided, std::slice::from_ref(&whole));
        let divided = parts(whole, 10_000, &mut left_out);
        assert!(divided.len() > 5, "{}", divided.len());
        let (pages, crawls) = content(&divided, 10_000);
        assert_eq!(pages, (1..=45).collect::<Vec<_>>());
        assert_eq!(crawls.len(), 13);
        assert!(left_out.is_empty());
    }

    #[test]
    fn long_renewal_is_divided_and_its_orders_count_hosts_once() {
        let grants = (1..5).map(|n| grant(n, vec![page(n, n), page(10 + n, n)]));
        let crawls: CrawlSpecs = (1..5).map(|id| crawl(id, 4_000)).collect();
        let orders = Orders {
            hand_over: Some(2),
            crawls: vec![(CrawlId(1), Order::Pause)],
            ..Orders::default()
        };
        let mut left_out = Vec::new();
        let whole = renewed(grants.map(renewal).collect(), crawls, orders);
        let divided = parts(whole, 6_000, &mut left_out);
        let (pages, _) = content(&divided, 6_000);
        assert_eq!(pages, [1, 11, 2, 12, 3, 13, 4, 14]);
        let sums = divided.iter().map(|part| match part {
            Delivery::Renewed { renewed, refilled, .. } => {
                assert!(refilled);
                assert_eq!(renewed.orders.crawls.len(), 1);
                (renewed.orders.hand_over, renewed.lost.len())
            }
            other => panic!("{other:?}"),
        });
        let sums: Vec<_> = sums.collect();
        let (last, before) = sums.split_last().unwrap();
        assert_eq!(*last, (Some(2), 1));
        assert!(before.len() > 1 && before.iter().all(|sum| *sum == (None, 0)));
    }

    #[test]
    fn row_that_no_message_carries_is_left_out_alone() {
        let hosts = vec![grant(3, vec![page(1, 1), page(2, 2), page(3, 1)])];
        let mut left_out = Vec::new();
        let delivery = claimed(hosts, vec![crawl(1, 10), crawl(2, 50_000)]);
        let divided = parts(delivery, 10_000, &mut left_out);
        assert_eq!(content(&divided, 10_000).0, [1, 3]);
        assert_eq!(left_out, [(SnapshotId(2), Epoch(3))]);
    }

    #[test]
    fn numbers_that_are_no_ids_are_left_out() {
        let mut bad_parent = page(4, 1);
        bad_parent.parent = Some(SnapshotId(-1));
        let pages = vec![page(0, 1), page(i64::MIN, 1), page(3, -7), bad_parent];
        let crawls = vec![crawl(-7, 1), crawl(0, 1), crawl(1, 1)];
        let orders = Orders {
            crawls: vec![(CrawlId(-7), Order::Run), (CrawlId(1), Order::Run)],
            used: vec![(CrawlId(-7), CrawlUse::default())],
            pages: vec![(SnapshotId(0), Order::Cancel)],
            ..Orders::default()
        };
        for delivery in [
            claimed(vec![grant(3, pages.clone())], crawls.clone()),
            renewed(vec![renewal(grant(3, pages))], crawls, orders),
        ] {
            let mut left_out = Vec::new();
            let usable = with_ids(delivery, &mut left_out);
            let text = serde_json::to_string(&usable).unwrap();
            assert_eq!(serde_json::from_str::<Delivery>(&text).unwrap(), usable);
            assert_eq!(content(std::slice::from_ref(&usable), 1 << 20).0, [4]);
            assert_eq!(left_out, [0, i64::MIN, 3].map(|id| (SnapshotId(id), Epoch(3))));
        }
    }
}
