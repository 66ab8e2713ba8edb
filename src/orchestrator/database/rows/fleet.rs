//! Rows about the fleet that the data directory belongs to: the node, reserved ids of crawls, and
//! the crawls and pages that the fleet gives to the node.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx};
use archivist_core::fleet::{Epoch, Generation, NodeId};
use archivist_core::model::web::surt::page_key;
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Time};
use archivist_core::plan::HostId;
use std::collections::BTreeMap;

/// SQL condition: the crawl of the row `crawl` has pages on this node that are not final.
pub(crate) const HAS_OPEN_PAGES: &str = "EXISTS (SELECT 1 FROM tally WHERE kind = 'snapshot'
    AND tally.crawl_id = crawl.id AND tally.status IN ('queued', 'started', 'paused') AND n > 0)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetCrawl {
    /// The crawl is of this machine alone.
    No,
    /// This node waits for more pages of it.
    Open,
    /// It ends with its last page on this node.
    Closing,
}

impl FleetCrawl {
    /// Returns the name in the database; none of a crawl of this machine.
    fn as_str(self) -> Option<&'static str> {
        match self {
            FleetCrawl::No => None,
            FleetCrawl::Open => Some("open"),
            FleetCrawl::Closing => Some("closing"),
        }
    }
}

/// This machine as a node of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Number of the node in the fleet's database.
    pub node: NodeId,
    /// Failovers of the database.
    pub generation: Generation,
}

pub struct GivenCrawl<'a> {
    /// Its id in the whole fleet.
    pub id: CrawlId,
    /// Its URL, with user name and password if it has any.
    pub url: &'a str,
    /// Links to follow from the given pages.
    pub max_depth: u32,
    /// Plugins that run; empty means all.
    pub plugins: &'a [String],
    /// Settings, secrets included.
    pub config: &'a BTreeMap<String, String>,
    /// The user who added it; [`FLEET`](archivist_core::model::FLEET) if it comes from the database.
    pub user: u32,
}

pub struct GivenPage<'a> {
    pub id: SnapshotId,
    pub crawl: CrawlId,
    pub url: &'a str,
    /// Title of the page, if known.
    pub title: Option<&'a str>,
    /// As the list of bookmarks states it.
    pub bookmarked_at: Option<&'a str>,
    /// Number of links from a page that a user added.
    pub depth: u32,
    /// Whether a user gave the page.
    pub given: bool,
    /// Attempts of other nodes.
    pub attempts: u32,
    pub epoch: Epoch,
}

columns! { NodeRow: node, generation }

impl Tx<'_> {
    /// Returns this node; `None` if the data directory belongs to no fleet.
    pub fn node(&self) -> Result<Option<NodeRow>> {
        let sql = format!("SELECT {} FROM fleet", NodeRow::COLUMNS);
        self.first(&sql, [])
    }

    /// Makes the data directory one of a fleet.
    pub fn set_node(&self, row: NodeRow) -> Result<()> {
        self.execute(
            "INSERT INTO fleet (one, node, generation) VALUES (1, ?1, ?2)
             ON CONFLICT DO UPDATE SET node = excluded.node, generation = excluded.generation",
            (row.node.0, row.generation.0),
        )
    }

    /// Makes the data directory one of this machine alone again.
    pub fn leave_fleet(&self) -> Result<()> {
        self.inner.execute_batch(
            "DELETE FROM fleet; DELETE FROM crawl_ids; DELETE FROM lease; DELETE FROM outbox;
             DELETE FROM recall;
             UPDATE crawl SET fleet = 'left' WHERE fleet IN ('open', 'closing');",
        )?;
        Ok(())
    }

    /// Returns a crawl of the fleet that is not final here, if any.
    pub fn open_fleet_crawl(&self) -> Result<Option<CrawlId>> {
        self.first(
            "SELECT id FROM crawl WHERE fleet IN ('open', 'closing')
             AND status NOT IN ('sealed', 'cancelled') LIMIT 1",
            [],
        )
    }

    /// Adds ids for crawls that are added on this node, from `first` to `last`.
    pub fn reserve_crawl_ids(&self, first: CrawlId, last: CrawlId) -> Result<()> {
        self.execute(
            "INSERT OR IGNORE INTO crawl_ids (first, last) VALUES (?1, ?2)",
            (first.0, last.0),
        )
    }

    pub fn crawl_ids_left(&self) -> Result<u64> {
        self.one("SELECT sum(last - first + 1) FROM crawl_ids", [])
    }

    /// Takes the lowest reserved id; `None` if none is left.
    pub fn take_crawl_id(&self) -> Result<Option<CrawlId>> {
        let block: Option<(i64, i64)> =
            self.first("SELECT first, last FROM crawl_ids ORDER BY first LIMIT 1", [])?;
        let Some((first, last)) = block else {
            return Ok(None);
        };
        let sql = if first == last {
            "DELETE FROM crawl_ids WHERE first = ?1"
        } else {
            "UPDATE crawl_ids SET first = first + 1 WHERE first = ?1"
        };
        self.execute(sql, [first])?;
        Ok(Some(CrawlId(first)))
    }

    /// Inserts a crawl of the fleet as queued, unless the node has it.
    pub fn add_given_crawl(&self, new: &GivenCrawl<'_>, now: Time) -> Result<()> {
        self.execute(
            "INSERT INTO crawl
                 (id, url, max_depth, plugins, config, created_at, retry_at, users, fleet)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, 'open') ON CONFLICT DO NOTHING",
            (
                new.id.0,
                new.url,
                new.max_depth,
                serde_json::to_string(new.plugins)?,
                serde_json::to_string(new.config)?,
                now.0,
                serde_json::to_string(&[new.user])?,
            ),
        )
    }

    pub fn fleet_crawl(&self, id: CrawlId) -> Result<FleetCrawl> {
        let fleet: Option<String> = self.one("SELECT fleet FROM crawl WHERE id = ?1", [id.0])?;
        Ok(match fleet.as_deref() {
            Some("open") => FleetCrawl::Open,
            Some("closing") => FleetCrawl::Closing,
            _ => FleetCrawl::No,
        })
    }

    /// Whether a crawl of this machine was one of a fleet that the node has left.
    pub fn was_of_fleet(&self, id: CrawlId) -> Result<bool> {
        self.one("SELECT fleet IS 'left' FROM crawl WHERE id = ?1", [id.0])
    }

    pub fn set_fleet_crawl(&self, id: CrawlId, fleet: FleetCrawl) -> Result<()> {
        self.execute("UPDATE crawl SET fleet = ?2 WHERE id = ?1", (id.0, fleet.as_str()))
    }

    /// Records what all nodes have used of the limits of a crawl: bytes of output files, and the time
    /// since it `began`.
    pub fn set_fleet_use(&self, id: CrawlId, bytes: u64, began: Time) -> Result<()> {
        self.execute(
            "UPDATE crawl SET fleet_bytes = ?2, fleet_began = coalesce(fleet_began, ?3)
             WHERE id = ?1 AND fleet IN ('open', 'closing')
                 AND (fleet_bytes <> ?2 OR fleet_began IS NULL)",
            (id.0, i64::try_from(bytes).unwrap_or(i64::MAX), began.0),
        )
    }

    /// Queues a page that the fleet gives to this node, or gives again. Returns its state before;
    /// `None` if it is new to this node.
    pub fn add_given_page(
        &self,
        page: &GivenPage<'_>,
        host: HostId,
        now: Time,
    ) -> Result<Option<Lifecycle>> {
        let known = self.first("SELECT status FROM snapshot WHERE id = ?1", [page.id.0])?;
        self.execute(
            "INSERT INTO snapshot (id, crawl_id, created_at, retry_at, host_id, url, title,
                 bookmarked_at, depth, attempts, epoch, given, url_key, visited_at)
             VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                 ?11, ?12, ?3)
             ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, recorded = 0",
            (
                page.id.0,
                page.crawl.0,
                now.0,
                host.0,
                page.url,
                page.title,
                page.bookmarked_at,
                page.depth,
                page.attempts,
                page.epoch.0,
                page.given,
                page_key(page.url),
            ),
        )?;
        Ok(known)
    }

    /// Returns the page that has the URL of another one in its crawl, except the page `id`.
    pub fn page_of_url(
        &self,
        crawl: CrawlId,
        url: &str,
        id: SnapshotId,
    ) -> Result<Option<SnapshotId>> {
        self.first(
            "SELECT id FROM snapshot INDEXED BY snapshot_once
             WHERE crawl_id = ?1 AND url = ?2 AND replaced = 0 AND id <> ?3",
            (crawl.0, url, id.0),
        )
    }

    /// Records that the fleet knows the page under another id now.
    pub fn set_replaced(&self, id: SnapshotId) -> Result<()> {
        self.execute("UPDATE snapshot SET replaced = 1 WHERE id = ?1", [id.0])
    }

    /// Returns the epoch under which the fleet gave a page to this node, and its host; `None` if it
    /// did not, or the end of the page is in the outbox.
    pub fn page_epoch(&self, id: SnapshotId) -> Result<Option<(Epoch, HostId)>> {
        self.first("SELECT epoch, host_id FROM snapshot WHERE id = ?1 AND epoch > 0", [id.0])
    }

    /// Records that the end of a page is in the outbox, or that the page is not this node's any
    /// more.
    pub fn clear_page_epoch(&self, id: SnapshotId) -> Result<()> {
        self.execute("UPDATE snapshot SET epoch = 0 WHERE id = ?1", [id.0])
    }

    /// Records that a page of a crawl of the fleet came or ended now.
    pub fn set_paged_at(&self, crawl: CrawlId, now: Time) -> Result<()> {
        self.execute(
            "UPDATE crawl SET paged_at = ?2 WHERE id = ?1 AND fleet IN ('open', 'closing')",
            (crawl.0, now.0),
        )
    }

    /// Whether a crawl of the fleet has pages on this node and waits for its start.
    pub fn has_waiting_fleet_crawl(&self) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM crawl INDEXED BY crawl_of_fleet
             WHERE fleet = 'open' AND status = 'queued' AND {HAS_OPEN_PAGES})"
        );
        self.one(&sql, [])
    }

    /// Returns the crawls of the fleet that wait for pages on this node, have none, and had none
    /// since `since`; those that never had any, if they are older than `added`.
    pub fn idle_fleet_crawls(&self, since: Time, added: Time) -> Result<Vec<CrawlId>> {
        let sql = format!(
            "SELECT id FROM crawl INDEXED BY crawl_of_fleet
             WHERE fleet = 'open' AND iif(paged_at IS NULL, created_at <= ?2, paged_at <= ?1)
                 AND NOT {HAS_OPEN_PAGES}"
        );
        self.all(&sql, [since.0, added.0])
    }
}
