//! Tags of crawls and snapshots.

use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Owner, PAGE_TAGS_MAX, SnapshotId};

impl Tx<'_> {
    fn tag(&self, name: &str) -> Result<i64> {
        self.execute("INSERT INTO tag (name) VALUES (?1) ON CONFLICT DO NOTHING", [name])?;
        self.one("SELECT id FROM tag WHERE name = ?1", [name])
    }

    pub fn tag_crawl(&self, crawl: CrawlId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.execute("INSERT INTO crawl_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING", (crawl.0, tag))
    }

    /// Tags the pages that users gave to a crawl, as far as they may have more tags.
    pub fn tag_given_pages(&self, crawl: CrawlId, name: &str) -> Result<()> {
        let tag = self.tag(name)?;
        self.execute(
            "INSERT INTO snapshot_tag SELECT id, ?2 FROM snapshot WHERE crawl_id = ?1 AND given
                 AND (SELECT count(*) FROM snapshot_tag WHERE snapshot_id = id) < ?3
             ON CONFLICT DO NOTHING",
            (crawl.0, tag, PAGE_TAGS_MAX as i64),
        )
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

    /// Takes a tag from a snapshot, or from a crawl and its pages. Returns whether there was one.
    pub fn untag(&self, id: Owner, name: &str) -> Result<bool> {
        let of_pages = "DELETE FROM snapshot_tag WHERE tag_id = (SELECT id FROM tag WHERE name = ?2) AND snapshot_id ";
        let removed = match id {
            Owner::Snapshot(page) => self.change(&format!("{of_pages} = ?1"), (page.0, name))?,
            Owner::Crawl(crawl) => {
                let in_crawl = "IN (SELECT id FROM snapshot WHERE crawl_id = ?1)";
                self.change(&format!("{of_pages} {in_crawl}"), (crawl.0, name))?
                    + self.change(
                        "DELETE FROM crawl_tag WHERE crawl_id = ?1
                         AND tag_id = (SELECT id FROM tag WHERE name = ?2)",
                        (crawl.0, name),
                    )?
            }
        };
        Ok(removed > 0)
    }

    /// Gives a tag another name, which no page or crawl has as a tag.
    pub fn rename_tag(&self, old: &str, new: &str) -> Result<()> {
        // It may be left of pages that are deleted.
        self.execute(
            "DELETE FROM stored WHERE scope = (SELECT 't' || id FROM tag WHERE name = ?1)",
            [new],
        )?;
        self.execute("DELETE FROM tag WHERE name = ?1", [new])?;
        self.execute("UPDATE tag SET name = ?2 WHERE name = ?1", (old, new))
    }
}
