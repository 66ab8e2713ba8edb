//! Tags of crawls and snapshots.

use super::{Result, Tx};
use crate::model::{CrawlId, SnapshotId};

impl Tx<'_> {
    fn tag(&self, name: &str) -> Result<i64> {
        self.inner
            .prepare_cached("INSERT INTO tag (name) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([name])?;
        let id = self
            .inner
            .prepare_cached("SELECT id FROM tag WHERE name = ?1")?
            .query_row([name], |row| row.get(0))?;
        Ok(id)
    }

    pub fn tag_crawl(&self, crawl: CrawlId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.inner
            .prepare_cached("INSERT INTO crawl_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((crawl.0, tag))?;
        Ok(())
    }

    pub fn tag_snapshot(&self, snapshot: SnapshotId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.inner
            .prepare_cached("INSERT INTO snapshot_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((snapshot.0, tag))?;
        Ok(())
    }
}
