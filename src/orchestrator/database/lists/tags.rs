//! Tags with the number of their pages.

use crate::database::column::{FromRow, column};
use crate::database::{Result, Tx};
use archivist_shared::bus::documents::report::{Filter, Tag};
use rusqlite::Row;

impl FromRow for Tag {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Tag> {
        Ok(Tag { name: column(row, 0)?, pages: column(row, 1)?, row: column(row, 2)? })
    }
}

impl Tx<'_> {
    /// Returns the tags that crawls and pages have, or of them the one of this name, the newest first.
    pub fn list_tags(&self, filter: &Filter) -> Result<Vec<Tag>> {
        let limit = match filter.limit {
            0 => -1,
            limit => i64::from(limit),
        };
        let before = filter.before.unwrap_or(i64::MAX);
        self.all(
            "SELECT name, (SELECT count(*) FROM (
                 SELECT snapshot_id FROM snapshot_tag WHERE tag_id = tag.id
                 UNION SELECT snapshot.id FROM crawl_tag JOIN snapshot USING (crawl_id) WHERE tag_id = tag.id)), id
             FROM tag WHERE id < ?1 AND (?3 IS NULL OR name = ?3)
                 AND (EXISTS (SELECT 1 FROM snapshot_tag WHERE tag_id = tag.id)
                     OR EXISTS (SELECT 1 FROM crawl_tag WHERE tag_id = tag.id))
             ORDER BY id DESC LIMIT ?2",
            (before, limit, filter.tag.as_deref()),
        )
    }
}
