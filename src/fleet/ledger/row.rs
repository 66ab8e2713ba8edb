//! Rows as values of the protocol.

use archivist_core::fleet::{CrawlSpec, HostKey, LeasedPage, NewPage, bounds};
use archivist_core::model::{CrawlId, SnapshotId, cut};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

/// Columns of a page that is handed to a node, in the order of `leased_page`.
macro_rules! page_columns {
    () => {
        "p.id, p.crawl, p.parent, p.attempts, p.url, p.host, p.depth, p.title, p.bookmarked_at, p.tags, p.given"
    };
}
pub(super) use page_columns;

/// Columns of a page that is queued again. The node that archived it keeps its files, as an older copy; the
/// newest [`COPIES_MAX`](bounds::COPIES_MAX) are known.
macro_rules! again {
    () => {
        "status = 'open', node = NULL, attempts = 0, reason = NULL, ended_at = NULL, directory = NULL,
            copies = CASE WHEN directory IS NULL OR node IS NULL THEN copies
                ELSE (array_remove(copies, node))[greatest(1, cardinality(array_remove(copies, node)) - 98):] || node END"
    };
}
pub(super) use again;

/// Returns a page whose columns begin at `first`.
pub(super) fn leased_page(row: &Row, first: usize) -> LeasedPage {
    let tags: &str = row.get(first + 9);
    LeasedPage {
        id: SnapshotId(row.get(first)),
        crawl: CrawlId(row.get(first + 1)),
        parent: row.get::<_, Option<i64>>(first + 2).map(SnapshotId),
        attempts: unsigned(row.get(first + 3)),
        page: NewPage {
            url: row.get(first + 4),
            host: HostKey(row.get(first + 5)),
            depth: unsigned(row.get(first + 6)),
            title: row.get(first + 7),
            bookmarked_at: row.get(first + 8),
            tags: serde_json::from_str(tags).unwrap_or_default(),
            given: row.get(first + 10),
        },
    }
}

pub(super) const SPECS: &str = "
    SELECT id, max_depth, urls_max, document, only_new FROM archivist.crawl WHERE id = ANY($1) ORDER BY id";

pub(super) fn spec(row: &Row) -> (CrawlId, CrawlSpec) {
    let urls_max: Option<i64> = row.get(2);
    let spec = CrawlSpec {
        max_depth: unsigned(row.get(1)),
        urls_max: urls_max.map(|most| u64::try_from(most).unwrap_or_default()),
        only_new: row.get(4),
        document: row.get(3),
    };
    (CrawlId(row.get(0)), spec)
}

/// Returns the crawls of pages, each once, in order.
pub(super) fn crawls<'a>(pages: impl Iterator<Item = &'a LeasedPage>) -> Vec<i64> {
    let mut ids: Vec<_> = pages.map(|page| page.crawl.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

pub(super) fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

pub(super) fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Pages as one array for each column. PostgreSQL stores no NUL in text.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) urls: Vec<String>,
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) hosts: Vec<String>,
    pub(super) depths: Vec<i32>,
    pub(super) titles: Vec<Option<String>>,
    pub(super) bookmarks: Vec<Option<String>>,
    pub(super) tags: Vec<String>,
    pub(super) given: Vec<bool>,
}

impl Columns {
    pub(super) fn of(pages: &[NewPage]) -> Columns {
        let mut columns = Columns::default();
        for page in pages {
            columns.urls.push(text(&page.url));
            columns.keys.push(Sha256::digest(&page.url)[..16].to_vec());
            columns.hosts.push(text(&page.host.0));
            columns.depths.push(signed(page.depth));
            columns.given.push(page.given);
            columns.titles.push(page.title.as_deref().map(shown));
            let time = page.bookmarked_at.as_deref().map(text);
            let time = time.filter(|time| time.len() <= bounds::TIME_MAX);
            columns.bookmarks.push(time);
            // JSON escapes NUL.
            columns.tags.push(bounds::tags(&page.tags));
        }
        columns
    }
}

/// Returns a text for display as the database stores it: without NUL, and not longer than it permits.
pub(super) fn shown(shown: &str) -> String {
    cut(text(shown))
}

/// Returns a text without NUL.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
