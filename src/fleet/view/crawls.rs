//! Crawls of the fleet.

use super::*;
use archivist_core::model::{Uses, shown_setting, without_userinfo};
use archivist_shared::bus::documents::report::Counts;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const TEXTS: &[&str] = &[CRAWLS];

/// Crawls from `$1` to below `$2`, the newest first. The pages that nodes have are found by the hosts
/// that they lease.
const CRAWLS: &str = concat!(
    "
    WITH chosen AS MATERIALIZED (
        SELECT * FROM archivist.crawl WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3
    ), held AS MATERIALIZED (
        SELECT p.crawl, count(*) AS pages
        FROM archivist.host h JOIN archivist.page p ON p.host = h.key AND p.status = 'open'
            AND p.id BETWEEN h.from_page AND h.last_page AND p.node = h.owner AND p.epoch = h.epoch
        WHERE h.due_at IS NULL GROUP BY p.crawl
    )
    SELECT c.id, c.wanted, c.max_depth, c.document, ",
    ms!("c.created_at"),
    ", t.pages, t.open, t.cancelled, t.succeeded, t.failed,
        coalesce((SELECT h.pages FROM held h WHERE h.crawl = c.id), 0),
        ARRAY(SELECT coalesce(n.name, 'node ' || n.id) FROM archivist.part a JOIN archivist.node n ON n.id = a.node
            WHERE a.crawl = c.id ORDER BY 1),
        EXISTS (
            SELECT FROM archivist.part a WHERE a.crawl = c.id AND NOT a.is_closed AND EXISTS (
                SELECT FROM archivist.host h WHERE h.owner = a.node AND h.due_at IS NULL
                    AND h.lease_until > archivist.clock()))
    FROM chosen c CROSS JOIN LATERAL (
        SELECT coalesce(sum(pages), 0)::bigint AS pages, coalesce(sum(open), 0)::bigint AS open,
            coalesce(sum(cancelled), 0)::bigint AS cancelled, coalesce(sum(succeeded), 0)::bigint AS succeeded,
            coalesce(sum(failed), 0)::bigint AS failed
        FROM archivist.tally WHERE crawl = c.id
    ) t
    ORDER BY c.id DESC"
);

/// What orchestrators wrote about a crawl.
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
        let rows = self.rows(CRAWLS, &[&id.0, &(id.0 + 1), &1_i64]).await?;
        Ok(rows.first().map(crawl))
    }

    /// The state of a crawl is derived, so crawls of other states are left out here.
    pub(super) async fn crawls(&self, filter: &Filter) -> Answer<Vec<Crawl>> {
        let limit = filter.limit as usize;
        let (first, mut before) = match filter.owner {
            Some(Owner::Crawl(id)) => (id.0, id.0 + 1),
            // A page has no crawls.
            Some(Owner::Snapshot(_)) => return Ok(Vec::new()),
            None => (0, i64::MAX),
        };
        before = before.min(filter.before.unwrap_or(i64::MAX));
        let mut all = Vec::new();
        loop {
            let rows = self
                .rows(CRAWLS, &[&first, &before, &i64::from(ROWS_MAX)])
                .await?;
            let wanted = |crawl: &Crawl| match &filter.status {
                Some(status) => crawl.status.as_str() == status,
                None => true,
            };
            all.extend(rows.iter().map(crawl).filter(wanted));
            all.truncate(limit);
            let is_last = rows.len() < ROWS_MAX as usize;
            match rows.last() {
                Some(last) if !is_last && all.len() < limit => before = last.get(0),
                _ => return Ok(all),
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
    };
    let (status, reason) = facts.status();
    let results = counts([("succeeded", count(row, 8)), ("failed", count(row, 9))]);
    let config = document.config.into_iter().map(|(name, value)| {
        let value = shown_setting(&name, &value);
        (name, value)
    });
    Crawl {
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
        uses: Uses::of_results(&results),
        results,
        directory: None,
        nodes: row.get(11),
    }
}

/// What the state of a crawl follows from.
struct Facts<'a> {
    wanted: &'a str,
    pages: u64,
    open: u64,
    /// Open pages that nodes have.
    held: u64,
    cancelled: u64,
    /// A node took part.
    is_begun: bool,
    /// A node that took part has not run its last hooks.
    is_closing: bool,
}

impl Facts<'_> {
    fn status(&self) -> (Lifecycle, Option<&'static str>) {
        // The pages of a new crawl follow it.
        let is_over = self.open == 0 && !self.is_closing && self.pages > 0;
        match self.wanted {
            "cancel" if self.open == 0 => (Lifecycle::Cancelled, None),
            "cancel" => (Lifecycle::Started, Some("it is being cancelled")),
            _ if is_over => (Lifecycle::Sealed, None),
            "pause" => (Lifecycle::Paused, None),
            _ if self.is_begun => (Lifecycle::Started, None),
            _ => (Lifecycle::Queued, None),
        }
    }

    fn pages(&self) -> Counts {
        let waiting = if self.wanted == "pause" {
            "paused"
        } else {
            "queued"
        };
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
            };
            facts.status().0
        };
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
