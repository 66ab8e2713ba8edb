//! What explains the state of a page or crawl.

use super::pages::state;
use super::reasons::{HostFacts, PageFacts, Standing, of_ended, of_page, reason};
use super::status::is_connected;
use super::*;
use archivist_core::model::SnapshotId;
use archivist_shared::bus::documents::report::{HookResult, Reason, Why};
use std::time::Duration;

pub(super) const TEXTS: &[&str] = &[STANDING, PAGE, HOSTS_OF_CRAWL];

/// Failed results that are listed individually.
const RESULTS_SHOWN: u32 = 20;
/// Hosts of a crawl that are listed individually.
const HOSTS_SHOWN: i64 = 5;
/// Hosts and pages that are counted.
const COUNT_MAX: i64 = 1000;

const STANDING: &str = concat!(
    "SELECT ",
    ms!("archivist.clock()"),
    ", ",
    ms!("greatest(f.claims_from, archivist.clock())"),
    ", f.claims_from > archivist.clock(),
        (SELECT count(*) FROM archivist.node n WHERE n.name IS NOT NULL AND ",
    is_connected!(),
    "), (SELECT count(*) FROM archivist.node n WHERE n.name IS NOT NULL AND n.draining AND ",
    is_connected!(),
    ") FROM archivist.fleet f"
);

/// Columns of a host `h`, for `host`.
macro_rules! host_columns {
    () => {
        concat!(
            "h.key, (SELECT coalesce(o.name, 'node ' || o.id) FROM archivist.node o WHERE o.id = h.owner),
            h.lease_until > archivist.clock(), ",
            ms!("h.lease_until"),
            ", ",
            ms!("greatest(h.next_at, h.blocked_until)"),
            ", h.delay_ms, (SELECT count(*) FROM (
                SELECT FROM archivist.host g WHERE g.due_at < h.due_at
                    AND g.due_at >= (SELECT due_floor FROM archivist.fleet) LIMIT "
        )
    };
}

/// Page `$1`; counts up to `$2`.
const PAGE: &str = concat!(
    "SELECT ",
    host_columns!(),
    "$2) g), p.crawl, ",
    state!(),
    ", p.reason, (SELECT coalesce(n.name, n.former || ' (left)', 'node ' || n.id) FROM archivist.node n WHERE n.id = p.node
            AND (p.status <> 'open' OR p.node = h.owner AND p.epoch = h.epoch)),
        'pause' IN (p.wanted, c.wanted), 'cancel' IN (p.wanted, c.wanted), c.wanted = 'pause',
        (SELECT count(*) FROM (
            SELECT FROM archivist.page q WHERE q.host = p.host AND q.status = 'open' AND q.id < p.id
                AND q.id >= h.from_page LIMIT $2) q)
    FROM archivist.page p JOIN archivist.crawl c ON c.id = p.crawl JOIN archivist.host h ON h.key = p.host
    WHERE p.id = $1"
);

/// Hosts of the first open pages of crawl `$1`; counts up to `$2`.
const HOSTS_OF_CRAWL: &str = concat!(
    "SELECT ",
    host_columns!(),
    "$2) g), w.pages FROM (
        SELECT o.host, count(*) AS pages FROM (
            SELECT p.host FROM archivist.page p
            WHERE (p.crawl, p.status, p.id) > ($1, 'open', 0) AND (p.crawl, p.status) <= ($1, 'open')
            ORDER BY p.crawl, p.status, p.id LIMIT $2
        ) o GROUP BY o.host ORDER BY 2 DESC, 1 LIMIT $3
    ) w JOIN archivist.host h ON h.key = w.host ORDER BY w.pages DESC, h.key"
);

impl Work<'_> {
    pub(super) async fn why(&self, id: Owner) -> Answer<Why> {
        let standing = self.standing().await?;
        let (status, mut reasons, node) = match id {
            Owner::Snapshot(page) => self.why_page(page, &standing).await?,
            Owner::Crawl(crawl) => self.why_crawl(crawl, &standing).await?,
        };
        let filter = Filter {
            status: Some(ResultState::Failed.as_str().to_owned()),
            limit: RESULTS_SHOWN,
            ..Filter::of(id)
        };
        reasons.extend(self.results(&filter).await?.iter().map(of_result));
        Ok(Why { id, status, reasons, node })
    }

    async fn standing(&self) -> Answer<Standing> {
        let row = self.row(STANDING, &[]).await?;
        Ok(Standing {
            now: time(&row, 0).unwrap_or_default(),
            claims_from: time(&row, 1).filter(|_| row.get(2)),
            connected: count(&row, 3),
            draining: count(&row, 4),
        })
    }

    async fn why_page(
        &self,
        id: SnapshotId,
        standing: &Standing,
    ) -> Answer<(Lifecycle, Vec<Reason>, Option<String>)> {
        let owner = Owner::Snapshot(id);
        let rows = self.rows(PAGE, &[&id.0, &COUNT_MAX]).await?;
        let row = rows.first().ok_or(ViewFailure::NoSuch(owner))?;
        let status = Lifecycle::parse(row.get(8)).unwrap_or(Lifecycle::Queued);
        let node: Option<String> = row.get(10);
        if status.is_final() {
            let ended = of_ended(status, row.get(9), node.as_deref());
            return Ok((status, vec![ended], node));
        }
        let facts = PageFacts {
            node: node.clone(),
            is_paused: row.get(11),
            is_cancelled: row.get(12),
            is_crawl_paused: row.get(13),
            pages_ahead: count(row, 14),
            host: host(row),
        };
        let crawl = Owner::Crawl(CrawlId(row.get(7)));
        Ok((status, of_page(&facts, owner, crawl, standing), node))
    }

    async fn why_crawl(
        &self,
        id: CrawlId,
        standing: &Standing,
    ) -> Answer<(Lifecycle, Vec<Reason>, Option<String>)> {
        let owner = Owner::Crawl(id);
        let crawl = self.crawl(id).await?.ok_or(ViewFailure::NoSuch(owner))?;
        let status = crawl.status;
        if status.is_final() {
            return Ok((status, vec![of_ended(status, None, None)], None));
        }
        let facts = PageFacts {
            is_paused: status == Lifecycle::Paused,
            is_crawl_paused: true,
            ..PageFacts::default()
        };
        let mut reasons = Vec::new();
        if facts.is_paused {
            reasons.extend(of_page(&facts, owner, owner, standing));
        }
        reasons.extend(crawl.reason.map(|text| reason("cancelling", text)));
        let pages = |state| crawl.snapshots.get(state).copied().unwrap_or(0);
        let (waiting, held) = (pages("queued"), pages("started"));
        if held > 0 {
            let nodes = crawl.nodes.join(", ");
            reasons.push(reason("running", format!("nodes have {held} of its pages: {nodes}")));
        }
        if waiting > 0 {
            reasons.push(reason("waiting", format!("{waiting} pages wait for a node")));
            for row in self.rows(HOSTS_OF_CRAWL, &[&id.0, &COUNT_MAX, &HOSTS_SHOWN]).await? {
                reasons.extend(of_host(&row, owner, standing));
            }
        }
        if waiting + held == 0 && status == Lifecycle::Started && reasons.is_empty() {
            let nodes = crawl.nodes.join(", ");
            let text = format!("its last hooks have to run on its nodes: {nodes}");
            reasons.push(reason("closing", text));
        }
        Ok((status, reasons, None))
    }
}

fn host(row: &Row) -> HostFacts {
    HostFacts {
        name: row.get(0),
        owner: row.get(1),
        is_live: row.get(2),
        leased_until: time(row, 3),
        next_at: time(row, 4),
        delay: Duration::from_millis(count(row, 5)),
        hosts_ahead: count(row, 6),
    }
}

/// What the pages of a crawl at one host wait for.
fn of_host(row: &Row, crawl: Owner, standing: &Standing) -> Vec<Reason> {
    let facts = PageFacts { host: host(row), ..PageFacts::default() };
    of_page(&facts, crawl, crawl, standing)
}

/// The journal of a hook is on the node that ran it.
fn of_result(result: &HookResult) -> Reason {
    let why = result.error.as_deref().or(result.output.as_deref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let (plugin, hook, owner) = (&result.plugin, &result.hook, result.owner);
    reason("failed", format!("{plugin}/{hook} of {owner} failed{why}"))
}
