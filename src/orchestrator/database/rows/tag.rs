//! Tags of crawls and snapshots.

use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, PAGE_TAGS_MAX, SnapshotId};

impl Tx<'_> {
    fn tag(&self, name: &str) -> Result<i64> {
        self.execute("INSERT INTO tag (name) VALUES (?1) ON CONFLICT DO NOTHING", [name])?;
        self.one("SELECT id FROM tag WHERE name = ?1", [name])
    }

    pub fn tag_crawl(&self, crawl: CrawlId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.execute("INSERT INTO crawl_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING", (crawl.0, tag))
    }

    /// Tags a snapshot, unless it has [`PAGE_TAGS_MAX`] tags: each hook can name tags, and each
    /// attempt others. Returns whether the tag is new to it.
    pub fn tag_snapshot(&self, snapshot: SnapshotId, name: &str) -> Result<bool> {
        let count: i64 =
            self.one("SELECT count(*) FROM snapshot_tag WHERE snapshot_id = ?1", [snapshot.0])?;
        if usize::try_from(count).is_ok_and(|count| count >= PAGE_TAGS_MAX) {
            return Ok(false);
        }
        let tag = self.tag(name)?;
        let changed = self.change(
            "INSERT INTO snapshot_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (snapshot.0, tag),
        )?;
        Ok(changed > 0)
    }
}
