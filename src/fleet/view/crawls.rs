//! Crawls of the fleet.

use super::*;
use archivist_core::model::{Uses, shown_setting, without_userinfo};
use archivist_shared::bus::documents::report::Counts;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const TEXTS: &[&str] = &[CRAWL, CRAWLS];

/// The query for the crawls that a statement chooses, the newest first. The pages that nodes have are found
/// by the hosts that they lease.
macro_rules! crawls {
    ($chosen:literal) => {
        concat!(
    "
    WITH chosen AS MATERIALIZED (",
    $chosen,
    "), held AS MATERIALIZED (
        SELECT p.crawl, count(*) AS pages
        FROM archivist.host h JOIN archivist.page p ON p.host = h.key AND p.status = 'open'
            AND p.id BETWEEN h.from_page AND h.last_page AND p.node = h.owner AND p.epoch = h.epoch
        WHERE h.due_at IS NULL GROUP BY p.crawl
    )
    SELECT c.id, c.wanted, c.max_depth, c.document, ",
    ms!("c.created_at"),
    ", t.pages, t.open, t.cancelled, t.succeeded, t.failed,
        coalesce((SELECT h.pages FROM held h WHERE h.crawl = c.id), 0),
        ARRAY(SELECT coalesce(n.name, n.former || ' (left)', 'node ' || n.id) FROM archivist.part a JOIN archivist.node n ON n.id = a.node
            WHERE a.crawl = c.id ORDER BY 1),
        EXISTS (
            SELECT FROM archivist.part a WHERE a.crawl = c.id AND NOT a.is_closed AND EXISTS (
                SELECT FROM archivist.host h WHERE h.owner = a.node AND h.due_at IS NULL
                    AND h.lease_until > archivist.clock())), t.known
    FROM chosen c CROSS JOIN LATERAL (
        SELECT coalesce(sum(pages), 0)::bigint AS pages, coalesce(sum(open), 0)::bigint AS open,
            coalesce(sum(cancelled), 0)::bigint AS cancelled, coalesce(sum(succeeded), 0)::bigint AS succeeded,
            coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(known), 0)::bigint AS known
        FROM archivist.tally WHERE crawl = c.id
    ) t
    ORDER BY c.created_at DESC, c.id DESC"
        )
    };
}

/// Crawl `$1`.
const CRAWL: &str = crawls!("SELECT * FROM archivist.crawl WHERE id = $1");

/// At most `$2` crawls that are older than crawl `$1`; NULL for the newest.
const CRAWLS: &str = crawls!(
    "SELECT * FROM archivist.crawl
        WHERE (created_at, id) < (coalesce((SELECT b.created_at FROM archivist.crawl b WHERE b.id = $1), 'infinity'),
            coalesce($1::bigint, 9223372036854775807))
        ORDER BY created_at DESC, id DESC LIMIT $2"
);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    url: String,
    plugins: Vec<String>,
    config: BTreeMap<String, String>,
    tags: Vec<String>,
}

impl Work<'_> {
    pub(super) async fn crawl(&self, id: CrawlId) -> Answer<Option<Crawl>> {
        let rows = self.rows(CRAWL, &[&id.0]).await?;
        Ok(rows.first().map(crawl))
    }

    /// The state of a crawl is derived, so crawls of other states are left out here.
    pub(super) async fn crawls(&self, filter: &Filter) -> Answer<Vec<Crawl>> {
        let mut before = filter.before;
        let wanted = |crawl: &Crawl| match &filter.status {
            Some(status) => crawl.status.as_str() == status,
            None => true,
        };
        match filter.owner {
            Some(Owner::Crawl(id)) if before.is_none_or(|before| id.0 < before) => {
                return Ok(self.crawl(id).await?.into_iter().filter(wanted).collect());
            }
            // A page has no crawls.
            Some(_) => return Ok(Vec::new()),
            None => {}
        }
        let mut all = Documents::new(filter.limit);
        loop {
            let (older_than, mut count) = (before, 0);
            let read = |row: &Row| {
                before = Some(row.get(0));
                count += 1;
                Some(crawl(row)).filter(wanted)
            };
            let values: Values<'_> = &[&older_than, &i64::from(ROWS_MAX)];
            self.fill(&mut all, CRAWLS, values, read).await?;
            if all.is_full() || count < ROWS_MAX {
                return Ok(all.list);
            }
        }
    }
}

fn crawl(row: &Row) -> Crawl {
    let document: Document = serde_json::from_str(row.get(3)).unwrap_or_default();
    let facts = Facts {
        wanted: row.get(1),
        pages: count(row, 5),
        open: count(row, 6),
        held: count(row, 10).min(count(row, 6)),
        cancelled: count(row, 7),
        is_begun: !row.get::<_, Vec<String>>(11).is_empty(),
        is_closing: row.get(12),
        known: count(row, 13),
    };
    let (status, reason) = facts.status();
    let results = counts([("succeeded", count(row, 8)), ("failed", count(row, 9))]);
    let config = document.config.into_iter().map(|(name, value)| {
        let value = shown_setting(&name, &value);
        (name, value)
    });
    Crawl {
        pinned: false,
        users: BTreeSet::new(),
        id: CrawlId(row.get(0)),
        status,
        reason: reason.map(str::to_owned),
        url: without_userinfo(&document.url),
        max_depth: u32::try_from(row.get::<_, i32>(2)).unwrap_or_default(),
        tags: document.tags,
        plugins: document.plugins,
        config: config.collect(),
        created_at: time(row, 4).unwrap_or_default(),
        started_at: None,
        ended_at: None,
        retry_at: None,
        attempts: 1,
        snapshots: facts.pages(),
        // The database has no reasons of pages.
        incomplete: 0,
        errors: 0,
        partial: 0,
        uses: Uses::of_results(&results),
        results,
        directory: None,
        nodes: row.get(11),
    }
}

/// Reason of a crawl without pages.
const NOTHING_NEW: &str = "nothing new: the archive has all its pages";

struct Facts<'a> {
    wanted: &'a str,
    pages: u64,
    open: u64,
    /// Open pages that nodes have.
    held: u64,
    cancelled: u64,
    is_begun: bool,
    /// A node that took part has not run its last hooks.
    is_closing: bool,
    /// Pages that are left out because other crawls have them.
    known: u64,
}

impl Facts<'_> {
    fn status(&self) -> (Lifecycle, Option<&'static str>) {
        // The pages of a new crawl follow it.
        let is_over = self.open == 0 && !self.is_closing && (self.pages > 0 || self.known > 0);
        match self.wanted {
            "cancel" if self.open == 0 => (Lifecycle::Cancelled, None),
            "cancel" => (Lifecycle::Started, Some("it is being cancelled")),
            _ if is_over && self.pages == 0 => (Lifecycle::Sealed, Some(NOTHING_NEW)),
            _ if is_over => (Lifecycle::Sealed, None),
            "pause" => (Lifecycle::Paused, None),
            _ if self.is_begun => (Lifecycle::Started, None),
            _ => (Lifecycle::Queued, None),
        }
    }

    fn pages(&self) -> Counts {
        let waiting = if self.wanted == "pause" { "paused" } else { "queued" };
        let ended = self.pages.saturating_sub(self.open);
        counts([
            (waiting, self.open - self.held),
            ("started", self.held),
            ("sealed", ended.saturating_sub(self.cancelled)),
            ("cancelled", self.cancelled),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_a_crawl_follows_from_its_pages_and_nodes() {
        let state = |wanted, pages, open, is_begun, is_closing| {
            let facts = Facts {
                wanted,
                pages,
                open,
                held: 0,
                cancelled: 0,
                is_begun,
                is_closing,
                known: 0,
            };
            facts.status().0
        };
        let nothing_new = Facts {
            wanted: "run",
            pages: 0,
            open: 0,
            held: 0,
            cancelled: 0,
            is_begun: false,
            is_closing: false,
            known: 3,
        };
        assert_eq!(nothing_new.status(), (Lifecycle::Sealed, Some(NOTHING_NEW)));
        assert_eq!(state("run", 0, 0, false, false), Lifecycle::Queued);
        assert_eq!(state("run", 2, 2, false, false), Lifecycle::Queued);
        assert_eq!(state("run", 2, 1, true, true), Lifecycle::Started);
        assert_eq!(state("run", 2, 0, true, true), Lifecycle::Started);
        assert_eq!(state("run", 2, 0, true, false), Lifecycle::Sealed);
        assert_eq!(state("pause", 2, 1, true, true), Lifecycle::Paused);
        assert_eq!(state("cancel", 2, 1, true, true), Lifecycle::Started);
        assert_eq!(state("cancel", 2, 0, true, true), Lifecycle::Cancelled);
    }
}
