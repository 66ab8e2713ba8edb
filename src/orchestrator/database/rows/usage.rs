//! What a crawl has used of its limits, and the cancelled pages that do not count. The sums are in the
//! table of counts and updated with each change, because summing over the rows takes too long.

use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Owner, Time};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    Pages,
    /// Bytes of output files.
    Bytes,
}

impl Sum {
    fn kind(self) -> &'static str {
        match self {
            Sum::Pages => "pages",
            Sum::Bytes => "bytes",
        }
    }
}

impl Tx<'_> {
    pub fn count_page(&self, crawl: CrawlId) -> Result<()> {
        self.execute(
            "INSERT INTO tally VALUES ('pages', ?1, '', 1) ON CONFLICT DO UPDATE SET n = n + 1",
            [crawl.0],
        )
    }

    /// Counts the bytes of a result that is about to be recorded, instead of those of its last
    /// attempt.
    pub fn count_bytes(
        &self,
        crawl: CrawlId,
        owner: Owner,
        key: (&str, &str),
        size: u64,
    ) -> Result<()> {
        let size = i64::try_from(size).unwrap_or(i64::MAX / 2);
        self.execute(
            "INSERT INTO tally SELECT 'bytes', ?1, '', ?5 - size FROM result
                 WHERE owner = ?2 AND plugin = ?3 AND hook = ?4
                     AND status IN ('queued', 'started', 'backoff')
             ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (crawl.0, owner.to_string(), key.0, key.1, size),
        )
    }

    /// Returns this sum of a crawl; 0 without rows.
    pub fn used(&self, crawl: CrawlId, sum: Sum) -> Result<u64> {
        let n = self.first(
            "SELECT n FROM tally WHERE kind = ?1 AND crawl_id = ?2 AND status = ''",
            (sum.kind(), crawl.0),
        )?;
        Ok(n.unwrap_or(0))
    }

    /// Returns the bytes of the output files of one crawl or snapshot.
    pub fn output_size(&self, owner: Owner) -> Result<u64> {
        self.one("SELECT sum(size) FROM result WHERE owner = ?1", [owner.to_string()])
    }

    /// Marks pages of these crawls that were cancelled for one of `reasons` as not retried, when
    /// other pages are retried: the end of the crawl then no longer depends on them. Only pages
    /// with ids above `after` and up to `to` are marked.
    pub fn leave_behind(
        &self,
        crawls: &BTreeSet<CrawlId>,
        reasons: &[&str],
        (after, to): (i64, i64),
    ) -> Result<()> {
        let crawls = crawls.iter().map(|crawl| crawl.0).collect::<Vec<_>>();
        // "+" makes SQLite search by id; with the index of crawls it reads all pages of the crawl.
        self.execute(
            "UPDATE snapshot SET reason = reason || ', and not retried'
             WHERE id > ?3 AND id <= ?4 AND +status = 'cancelled'
                 AND +crawl_id IN (SELECT value FROM json_each(?1))
                 AND reason IN (SELECT value FROM json_each(?2))",
            (serde_json::to_string(&crawls)?, serde_json::to_string(reasons)?, after, to),
        )
    }

    /// Records the persona of a crawl's attempt, an empty name for none.
    pub fn set_crawl_persona(&self, id: CrawlId, name: &str) -> Result<()> {
        self.execute("UPDATE crawl SET persona = ?2 WHERE id = ?1", (id.0, name))
    }

    pub fn set_crawl_users(&self, id: CrawlId, users: &BTreeSet<u32>) -> Result<()> {
        self.execute(
            "UPDATE crawl SET users = ?2 WHERE id = ?1",
            (id.0, serde_json::to_string(users)?),
        )
    }

    pub fn set_crawl_config(
        &self,
        crawl: CrawlId,
        config: &std::collections::BTreeMap<String, String>,
    ) -> Result<()> {
        self.execute(
            "UPDATE crawl SET config = ?2 WHERE id = ?1",
            (crawl.0, serde_json::to_string(config)?),
        )
    }

    /// Returns when a crawl was first started; of a crawl of a fleet, when it was added.
    pub fn crawl_began(&self, crawl: CrawlId) -> Result<Option<Time>> {
        self.one("SELECT coalesce(fleet_began, started_at) FROM crawl WHERE id = ?1", [crawl.0])
    }

    /// Returns the bytes of the output files of a crawl; of a crawl of a fleet those of all nodes, as
    /// far as this node knows.
    pub fn crawl_bytes(&self, crawl: CrawlId) -> Result<u64> {
        let here = self.used(crawl, Sum::Bytes)?;
        let everywhere = self.one("SELECT fleet_bytes FROM crawl WHERE id = ?1", [crawl.0])?;
        Ok(here.max(everywhere))
    }
}
