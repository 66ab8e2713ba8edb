//! Pages of the fleet, which users know as snapshots.

use super::*;
use archivist_core::model::{SnapshotId, Uses, without_userinfo};
use archivist_shared::bus::documents::report::{Counts, Snapshot};

pub(super) const TEXTS: &[&str] = &[PAGES, PAGES_OF_CRAWL];

/// SQL expression: the state of a page `p` of crawl `c` on host `h`. A page that a node has counts as
/// started, also while it waits there.
macro_rules! state {
    () => {
        "CASE WHEN p.status <> 'open' THEN p.status
            WHEN 'pause' IN (p.wanted, c.wanted) AND 'cancel' NOT IN (p.wanted, c.wanted) THEN 'paused'
            WHEN p.node = h.owner AND p.epoch = h.epoch THEN 'started' ELSE 'queued' END"
    };
}
pub(super) use state;

/// Beginning of a query: from rows `p` of pages with their state.
macro_rules! columns {
    () => {
        concat!(
            "SELECT p.id, p.crawl, p.url, p.title, p.depth, p.parent, p.state, p.reason, p.tags, p.bookmarked_at, ",
            ms!("p.created_at"),
            ", ",
            ms!("p.ended_at"),
            ", p.took_ms, p.attempts, coalesce(n.name, n.former || ' (left)', 'node ' || n.id),
                (SELECT json_object_agg(r.state, r.n)::text FROM (
                    SELECT state, count(*) AS n FROM archivist.result WHERE page = p.id GROUP BY state) r),
                p.directory, ARRAY(
                    SELECT coalesce(o.name, o.former || ' (left)', 'node ' || o.id) FROM archivist.node o
                    WHERE o.id = ANY (p.copies) ORDER BY 1)
            "
        )
    };
}
pub(super) use columns;

/// Pages from `$1` to below `$2`, the newest first.
const PAGES: &str = concat!(
    columns!(),
    "FROM (
        SELECT p.*, ",
    state!(),
    " AS state
        FROM archivist.page p JOIN archivist.crawl c ON c.id = p.crawl JOIN archivist.host h ON h.key = p.host
        WHERE p.id >= $1 AND p.id < $2 AND p.status = ANY ($4::text[]) AND ($5::text IS NULL OR $5 = ",
    state!(),
    ")
        ORDER BY p.id DESC LIMIT $3
    ) p LEFT JOIN archivist.node n ON n.id = p.node AND p.state <> 'queued'
    ORDER BY p.id DESC"
);

/// Pages of crawl `$1` below `$2`, the newest first: of each state in the order of the index. The
/// conditions compare rows, because the planner prefers the primary key where it can.
const PAGES_OF_CRAWL: &str = concat!(
    columns!(),
    "FROM unnest($4::text[]) s (status) CROSS JOIN LATERAL (
        SELECT p.*, ",
    state!(),
    " AS state
        FROM archivist.page p JOIN archivist.crawl c ON c.id = $1 JOIN archivist.host h ON h.key = p.host
        WHERE (p.crawl, p.status, p.id) < ($1, s.status, $2) AND (p.crawl, p.status, p.id) >= ($1, s.status, 0)
            AND ($5::text IS NULL OR $5 = ",
    state!(),
    ")
        ORDER BY p.crawl DESC, p.status DESC, p.id DESC LIMIT $3
    ) p LEFT JOIN archivist.node n ON n.id = p.node AND p.state <> 'queued'
    ORDER BY p.id DESC LIMIT $3"
);

impl Work<'_> {
    pub(super) async fn pages(&self, filter: &Filter) -> Answer<Vec<Snapshot>> {
        let limit = i64::from(filter.limit);
        let before = filter.before.unwrap_or(i64::MAX);
        let statuses = match filter.status.as_deref() {
            None => vec!["open", "sealed", "cancelled"],
            Some(status @ ("sealed" | "cancelled")) => vec![status],
            Some(_) => vec!["open"],
        };
        let state = &filter.status;
        match filter.owner {
            Some(Owner::Crawl(crawl)) => {
                let values: Values<'_> = &[&crawl.0, &before, &limit, &statuses, state];
                self.documents(PAGES_OF_CRAWL, values, page).await
            }
            owner => {
                let (first, last) = match owner {
                    Some(Owner::Snapshot(page)) => (page.0, before.min(page.0 + 1)),
                    _ => (0, before),
                };
                let values: Values<'_> = &[&first, &last, &limit, &statuses, state];
                self.documents(PAGES, values, page).await
            }
        }
    }
}

pub(super) fn page(row: &Row) -> Snapshot {
    let results: Counts = row
        .get::<_, Option<&str>>(15)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let ended_at = time(row, 11);
    let took: Option<i64> = row.get(12);
    let started_at = ended_at.zip(took).map(|(ended, took)| Time(ended.0 - took));
    Snapshot {
        // The fleet does not record it.
        http_status: None,
        unsaved: None,
        config: Default::default(),
        id: SnapshotId(row.get(0)),
        crawl: CrawlId(row.get(1)),
        url: without_userinfo(row.get(2)),
        title: row.get(3),
        depth: u32::try_from(row.get::<_, i32>(4)).unwrap_or_default(),
        parent: row.get::<_, Option<i64>>(5).map(SnapshotId),
        status: Lifecycle::parse(row.get(6)).unwrap_or(Lifecycle::Queued),
        reason: row.get(7),
        tags: serde_json::from_str(row.get(8)).unwrap_or_default(),
        bookmarked_at: row.get(9),
        visited_at: started_at.or(time(row, 10)).unwrap_or_default(),
        created_at: time(row, 10).unwrap_or_default(),
        started_at,
        ended_at,
        retry_at: None,
        attempts: u32::try_from(row.get::<_, i32>(13)).unwrap_or_default(),
        uses: Uses::of_results(&results),
        results,
        directory: row.get(16),
        current_step: None,
        node: row.get(14),
        older_copies: row.get(17),
        pinned: false,
        recording: None,
        replay: None,
        missing: Vec::new(),
    }
}
