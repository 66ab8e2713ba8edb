//! The rows of both databases in one form.

use archivist_core::fleet::{LeasedPage, NodeRefusal, NodeReply, NodeRequest, Order, PageEnd};
use archivist_core::model::{Owner, SnapshotId};
use archivist_fleet_model::ledger::{CrawlState, DbTime, Ledger as Model, PageState};
use std::collections::BTreeMap;
use tokio_postgres::{Client, Row};

/// Ids of pages in PostgreSQL, which have gaps, by those of the ledger, and the reverse.
#[derive(Default)]
pub struct Ids {
    real: BTreeMap<SnapshotId, SnapshotId>,
    model: BTreeMap<SnapshotId, SnapshotId>,
}

impl Ids {
    pub async fn of(client: &Client, model: &Model) -> Ids {
        let rows = client.query("SELECT id, crawl, url FROM archivist.page", &[]).await.unwrap();
        let by_url: BTreeMap<(i64, String), i64> =
            rows.iter().map(|row| ((row.get(1), row.get(2)), row.get(0))).collect();
        let mut ids = Ids::default();
        for (id, page) in &model.pages {
            if let Some(real) = by_url.get(&(page.crawl.0, page.page.url.clone())) {
                ids.real.insert(*id, SnapshotId(*real));
                ids.model.insert(SnapshotId(*real), *id);
            }
        }
        ids
    }

    pub fn request(&self, request: &NodeRequest) -> NodeRequest {
        let real = |id: SnapshotId| self.real[&id];
        let mut request = request.clone();
        match &mut request {
            NodeRequest::Record(record) => record.page = real(record.page),
            NodeRequest::GiveBack { page, .. } => *page = real(*page),
            NodeRequest::Command(command) => {
                if let Owner::Snapshot(page) = command.target {
                    command.target = Owner::Snapshot(real(page));
                }
            }
            _ => {}
        }
        request
    }

    pub fn reply(&self, mut reply: NodeReply) -> NodeReply {
        match &mut reply {
            NodeReply::Claimed(claimed) => {
                let pages = claimed.hosts.iter_mut().flat_map(|grant| &mut grant.pages);
                pages.for_each(|page| self.page(page));
            }
            NodeReply::Renewed(renewed) => {
                let pages = renewed.leases.iter_mut().flat_map(|lease| &mut lease.pages);
                pages.for_each(|page| self.page(page));
                // The ids of the two differ.
                renewed.given.snapshot = SnapshotId(0);
                for (page, _) in &mut renewed.orders.pages {
                    *page = self.model[&*page];
                }
            }
            _ => {}
        }
        reply
    }

    pub fn refusal(&self, refusal: NodeRefusal) -> NodeRefusal {
        match refusal {
            NodeRefusal::UnknownPage { page } => {
                NodeRefusal::UnknownPage { page: self.model.get(&page).copied().unwrap_or(page) }
            }
            refusal => refusal,
        }
    }

    fn page(&self, page: &mut LeasedPage) {
        page.id = self.model[&page.id];
        page.parent = page.parent.map(|parent| self.model[&parent]);
        // The database stores no NUL.
        let title = page.page.title.take();
        page.page.title = title.map(|title| title.replace('\u{fffd}', "\0"));
    }
}

/// Every row as text, by table and key.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Rows(BTreeMap<String, String>);

const QUERIES: [&str; 6] = [
    "SELECT 'fleet', format('generation=%s claims_from=%s next_crawl=%s lease=%s', generation, ms(claims_from),
         next_crawl, lease_ms)
     FROM archivist.fleet",
    "SELECT 'node ' || id, format('%s %s %s incarnation=%s seen=%s ended=%s draining=%s wanting=%s drains=%s',
         coalesce(name, '-'), machine, boot, incarnation, ms(seen), ended, draining, wanting, drains) FROM archivist.node",
    "SELECT 'crawl ' || c.id, format('%s %s depth=%s most=%s pages=%s open=%s cancelled=%s', wanted, document, max_depth,
         coalesce(urls_max::text, '-'), coalesce(sum(t.pages), 0), coalesce(sum(t.open), 0),
         coalesce(sum(t.cancelled), 0))
     FROM archivist.crawl c LEFT JOIN archivist.tally t ON t.crawl = c.id GROUP BY c.id",
    "SELECT format('part %s %s', crawl, node), is_closed::text FROM archivist.part",
    "SELECT 'host ' || key, format('owner=%s epoch=%s lease_until=%s next_at=%s blocked_until=%s delay=%s ready_at=%s',
         coalesce(owner::text, '-'), epoch, ms(lease_until), ms(next_at), ms(blocked_until), delay_ms, ms(ready_at))
     FROM archivist.host",
    "SELECT p.id::text, format('%s %s depth=%s parent=', p.crawl, p.url, p.depth), p.parent,
         format('%s epoch=%s attempts=%s %s copies=%s',
             CASE WHEN p.status <> 'open' THEN p.status || ' ' || coalesce(p.node::text, '-')
                 WHEN p.node = h.owner AND p.epoch = h.epoch THEN 'open ' || p.node ELSE 'queued' END,
             p.epoch, p.attempts, p.wanted, ARRAY(SELECT unnest(p.copies) ORDER BY 1)::text)
     FROM archivist.page p JOIN archivist.host h ON h.key = p.host",
];

impl Rows {
    pub async fn of_database(client: &Client, ids: &Ids) -> Rows {
        let mut all = Rows::default();
        for query in QUERIES {
            let query = query.replace("ms(", "archivist_test.ms(");
            for row in client.query(&query, &[]).await.unwrap() {
                all.add(&row, ids);
            }
        }
        all
    }

    fn add(&mut self, row: &Row, ids: &Ids) {
        if row.len() == 2 {
            self.0.insert(row.get(0), row.get(1));
            return;
        }
        let id: i64 = row.get::<_, &str>(0).parse().unwrap();
        let id = ids.model.get(&SnapshotId(id));
        let parent: Option<i64> = row.get(2);
        let parent = parent.map(|parent| ids.model[&SnapshotId(parent)]);
        let (head, tail): (&str, &str) = (row.get(1), row.get(3));
        self.0.insert(format!("page {id:?}"), format!("{head}{parent:?} {tail}"));
    }

    pub fn of_model(model: &Model) -> Rows {
        let mut all = BTreeMap::new();
        let (generation, from, next) = (model.generation, model.claims_from.0, model.next_crawl);
        let lease = model.lease.as_millis();
        let fleet =
            format!("generation={generation} claims_from={from} next_crawl={next} lease={lease}");
        all.insert("fleet".to_owned(), fleet);
        for (id, node) in &model.nodes {
            let name = node.name.as_deref().unwrap_or("-");
            let flags = format!(
                "ended={} draining={} wanting={} drains={}",
                bit(node.ended),
                bit(node.draining),
                node.wanting,
                bit(node.drains)
            );
            let (machine, boot, incarnation, seen) =
                (&node.machine, &node.boot, node.incarnation, node.seen.0);
            let text =
                format!("{name} {machine} {boot} incarnation={incarnation} seen={seen} {flags}");
            all.insert(format!("node {id}"), text);
        }
        for (id, crawl) in &model.crawls {
            let pages = model.pages.values().filter(|page| page.crawl == *id);
            let open = pages.clone().filter(|page| !page.state.is_final());
            let cancelled =
                pages.filter(|page| matches!(page.state, PageState::Final(PageEnd::Cancelled, _)));
            let (open, cancelled) = (open.count(), cancelled.count());
            let state = match crawl.state {
                CrawlState::Running => "run",
                CrawlState::Paused => "pause",
                CrawlState::Cancelled => "cancel",
            };
            let most = crawl.spec.urls_max.map_or("-".to_owned(), |most| most.to_string());
            let (document, depth, pages) =
                (&crawl.spec.document, crawl.spec.max_depth, crawl.pages);
            let text = format!(
                "{state} {document} depth={depth} most={most} pages={pages} open={open} cancelled={cancelled}"
            );
            all.insert(format!("crawl {}", id.0), text);
        }
        for ((crawl, node), closed) in &model.parts {
            all.insert(format!("part {} {node}", crawl.0), closed.to_string());
        }
        for (key, host) in &model.hosts {
            let owner = host.owner.map_or("-".to_owned(), |owner| owner.to_string());
            let at = |time: DbTime| time.0;
            let text = format!(
                "owner={owner} epoch={} lease_until={} next_at={} blocked_until={} delay={} ready_at={}",
                host.epoch,
                at(host.lease_until),
                at(host.next_at),
                at(host.blocked_until),
                host.delay.as_millis(),
                at(host.ready_at),
            );
            all.insert(format!("host {key}"), text);
        }
        for (id, page) in &model.pages {
            let host = &model.hosts[page.host()];
            let state = match page.state {
                PageState::Open(node) if host.owner == Some(node) && host.epoch == page.epoch => {
                    format!("open {node}")
                }
                PageState::Open(_) | PageState::Queued => "queued".to_owned(),
                PageState::Final(end, node) => {
                    let end = if end == PageEnd::Sealed { "sealed" } else { "cancelled" };
                    format!("{end} {}", node.map_or("-".to_owned(), |node| node.to_string()))
                }
            };
            let order = match page.order {
                Order::Run => "run",
                Order::Pause => "pause",
                Order::Cancel => "cancel",
            };
            let parent = page.parent;
            let head = format!(
                "{} {} depth={} parent={parent:?}",
                page.crawl.0, page.page.url, page.page.depth
            );
            let copies: Vec<_> = page.copies.iter().map(ToString::to_string).collect();
            let text = format!(
                "{head} {state} epoch={} attempts={} {order} copies={{{}}}",
                page.epoch,
                page.attempts,
                copies.join(",")
            );
            all.insert(format!("page {:?}", Some(id)), text);
        }
        Rows(all)
    }
}

/// As PostgreSQL writes it.
fn bit(value: bool) -> char {
    if value { 't' } else { 'f' }
}
