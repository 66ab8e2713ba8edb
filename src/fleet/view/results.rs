//! Results of hooks. They have no number in the database: that of an answer is made of the page and
//! the place of the hook among its results.

use super::*;
use archivist_core::model::SnapshotId;
use archivist_shared::bus::documents::report::HookResult;

pub(super) const TEXTS: &[&str] = &[RESULTS, RESULTS_OF_CRAWL, FAILED];

/// Results of one page that have a number.
const PLACES: i64 = 10_000;

/// SQL expression: place of the result `r` among those of its page, from 1.
macro_rules! place {
    () => {
        "(SELECT count(*) FROM archivist.result q WHERE q.page = r.page AND (q.plugin, q.hook) <= (r.plugin, r.hook))"
    };
}

/// Beginning and end of the query: from rows `r` of results with their place.
macro_rules! query {
    ($from:expr, $end:literal) => {
        concat!(
            "SELECT r.page, r.place, r.plugin, r.hook, r.state, r.output, r.error, r.size, r.attempts, r.took_ms, (SELECT ",
            ms!("e.ended_at"),
            " FROM archivist.page e WHERE e.id = r.page) FROM ",
            $from,
            " ORDER BY r.page DESC, r.plugin DESC, r.hook DESC ",
            $end
        )
    };
}

/// Condition: results of pages from `$1` to `$2`, of page `$2` only those before place `$3`.
macro_rules! range {
    () => {
        concat!("r.page >= $1 AND r.page <= $2 AND (r.page < $2 OR ", place!(), " < $3)")
    };
}

/// Results of a range in state `$5` or any, the newest first.
const RESULTS: &str = query!(
    concat!(
        "(SELECT r.*, ",
        place!(),
        " AS place FROM archivist.result r WHERE ",
        range!(),
        " AND ($5::text IS NULL OR r.state = $5)
        ORDER BY r.page DESC, r.plugin DESC, r.hook DESC LIMIT $4) r"
    ),
    ""
);

/// The same of the ended pages of crawl `$6`.
const RESULTS_OF_CRAWL: &str = query!(
    concat!(
        "unnest('{sealed,cancelled}'::text[]) s (status) CROSS JOIN LATERAL (
        SELECT r.*, ",
        place!(),
        " AS place FROM archivist.page p JOIN archivist.result r ON r.page = p.id
        WHERE (p.crawl, p.status, p.id) <= ($6, s.status, $2) AND (p.crawl, p.status, p.id) >= ($6, s.status, $1)
            AND (p.id < $2 OR ",
        place!(),
        " < $3) AND ($5::text IS NULL OR r.state = $5)
        ORDER BY p.crawl DESC, p.status DESC, p.id DESC, r.plugin DESC, r.hook DESC LIMIT $4) r"
    ),
    "LIMIT $4"
);

/// Failed results, which are few, of all crawls or crawl `$5`.
const FAILED: &str = query!(
    concat!(
        "(SELECT r.*, ",
        place!(),
        " AS place FROM archivist.result r WHERE ",
        range!(),
        " AND r.state = 'failed' AND ($5::bigint IS NULL
            OR EXISTS (SELECT FROM archivist.page p WHERE p.id = r.page AND p.crawl = $5))
        ORDER BY r.page DESC, r.plugin DESC, r.hook DESC LIMIT $4) r"
    ),
    ""
);

impl Work<'_> {
    pub(super) async fn results(&self, filter: &Filter) -> Answer<Vec<HookResult>> {
        let before = filter.before.unwrap_or(i64::MAX);
        let (last, place) = (before / PLACES, before % PLACES);
        let (first, last, place) = match filter.owner {
            Some(Owner::Snapshot(page)) if page.0 < last => (page.0, page.0, PLACES),
            Some(Owner::Snapshot(page)) => (page.0, last, place),
            _ => (0, last, place),
        };
        let crawl = match filter.owner {
            Some(Owner::Crawl(crawl)) => Some(crawl.0),
            _ => None,
        };
        let (limit, state) = (i64::from(filter.limit), &filter.status);
        if state.as_deref() == Some(ResultState::Failed.as_str()) {
            let values: Values<'_> = &[&first, &last, &place, &limit, &crawl];
            self.documents(FAILED, values, result).await
        } else if let Some(crawl) = crawl {
            let values: Values<'_> = &[&first, &last, &place, &limit, state, &crawl];
            self.documents(RESULTS_OF_CRAWL, values, result).await
        } else {
            let values: Values<'_> = &[&first, &last, &place, &limit, state];
            self.documents(RESULTS, values, result).await
        }
    }
}

/// The database has only the duration of a hook: it is shown as if it ended with its page.
fn result(row: &Row) -> HookResult {
    let page: i64 = row.get(0);
    let place: i64 = row.get(1);
    let ended_at = time(row, 10);
    let took: Option<i64> = row.get(9);
    let started_at = ended_at.zip(took).map(|(ended, took)| Time(ended.0 - took));
    HookResult {
        id: Some(page * PLACES + place),
        owner: Owner::Snapshot(SnapshotId(page)),
        plugin: row.get(2),
        hook: row.get(3),
        status: ResultState::parse(row.get(4)).unwrap_or(ResultState::Failed),
        output: row.get(5),
        error: row.get(6),
        files: Vec::new(),
        size: count(row, 7),
        attempts: u32::try_from(row.get::<_, i32>(8)).unwrap_or_default(),
        ended_at: started_at.and(ended_at),
        started_at,
        figures: Default::default(),
    }
}
