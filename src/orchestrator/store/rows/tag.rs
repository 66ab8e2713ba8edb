//! Tags of crawls and snapshots.

use crate::store::{Result, Tx};
use archivist_core::model::{CrawlId, PAGE_TAGS_MAX, SnapshotId};

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

    /// Adds a tag to a crawl.
    pub fn tag_crawl(&self, crawl: CrawlId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.inner
            .prepare_cached("INSERT INTO crawl_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((crawl.0, tag))?;
        Ok(())
    }

    /// Tags a snapshot, unless it has [`PAGE_TAGS_MAX`] tags: each hook can name tags, and each
    /// attempt others.
    pub fn tag_snapshot(&self, snapshot: SnapshotId, name: &str) -> Result<()> {
        let count: i64 = self
            .inner
            .prepare_cached("SELECT count(*) FROM snapshot_tag WHERE snapshot_id = ?1")?
            .query_row([snapshot.0], |row| row.get(0))?;
        if usize::try_from(count).is_ok_and(|count| count >= PAGE_TAGS_MAX) {
            return Ok(());
        }
        let tag = self.tag(name)?;
        self.inner
            .prepare_cached("INSERT INTO snapshot_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((snapshot.0, tag))?;
        Ok(())
    }
}
