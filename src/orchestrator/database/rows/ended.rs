//! Pages that have ended, and versions of them that are newer.

use crate::database::clock::latest;
use crate::database::column::{Columns, columns};
use crate::database::rows::complete::SAVED;
use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Time, Unsaved};
use archivist_core::plan::is_saved;

/// SQL condition on a snapshot `s`: it or its crawl has the tag ?4.
pub(crate) const TAGGED: &str = "(?4 IS NULL
    OR EXISTS (SELECT 1 FROM snapshot_tag JOIN tag ON tag.id = tag_id
        WHERE snapshot_id = s.id AND name = ?4)
    OR EXISTS (SELECT 1 FROM crawl_tag JOIN tag ON tag.id = tag_id
        WHERE crawl_tag.crawl_id = s.crawl_id AND name = ?4))";

/// A page that has ended, as rules that delete pages see it.
#[derive(Debug)]
pub struct EndedPage {
    pub id: SnapshotId,
    pub crawl: CrawlId,
    /// Whether its crawl has ended.
    pub is_over: bool,
    /// Whether it or its crawl is kept from deletion.
    pub pinned: bool,
    /// Whether no transfer to or from the store waits or runs.
    pub has_no_transfer: bool,
    pub(crate) url_key: String,
    pub(crate) visited_at: Time,
    created_at: Time,
    pub(crate) ended_at: Time,
    pub(crate) status: Lifecycle,
    unsaved: Option<Unsaved>,
    doubt: i64,
    /// Later times are in the future.
    pub(crate) latest: Time,
}

columns! {
    EndedPage: id, crawl "crawl_id",
        is_over "(SELECT o.status IN ('sealed', 'cancelled') FROM crawl AS o WHERE o.id = crawl_id)",
        pinned "(pinned OR (SELECT o.pinned FROM crawl AS o WHERE o.id = crawl_id))",
        has_no_transfer "NOT EXISTS (SELECT 1 FROM copy WHERE snapshot_id = snapshot.id AND copy.status <> 'idle')",
        url_key, visited_at, created_at, ended_at "max(visited_at, created_at)", status, unsaved, doubt;
        latest: Time(i64::MAX)
}

impl EndedPage {
    /// Whether its times can be believed: the clock was when it ended, and they are not in the future.
    pub fn is_dated(&self) -> bool {
        self.doubt == 0 && self.created_at <= self.latest && self.ended_at <= self.latest
    }

    pub fn is_saved(&self) -> bool {
        is_saved(self.status, self.unsaved)
    }

    fn counted_versions(&self) -> &'static str {
        if self.is_saved() { SAVED } else { "status = 'sealed'" }
    }

    /// Whether a setting may delete the page: its crawl has ended, it is not pinned, and no transfer needs its
    /// files.
    pub fn may_be_deleted(&self) -> bool {
        self.is_over && !self.pinned && self.has_no_transfer
    }
}

impl Tx<'_> {
    /// Returns a page if it has ended.
    pub fn ended_page(&self, id: SnapshotId, now: Time) -> Result<Option<EndedPage>> {
        let sql = format!(
            "SELECT {} FROM snapshot WHERE id = ?1 AND status IN ('sealed', 'cancelled')",
            EndedPage::COLUMNS
        );
        let page: Option<EndedPage> = self.first(&sql, [id.0])?;
        Ok(page.map(|page| EndedPage { latest: latest(now), ..page }))
    }

    /// Returns the newest versions that are newer than a page, among those with a tag, at most `count`. A
    /// version that was not saved does not count against one that was.
    pub fn newer_versions(
        &self,
        page: &EndedPage,
        tag: Option<&str>,
        count: u32,
    ) -> Result<Vec<SnapshotId>> {
        let counted = page.counted_versions();
        let sql = format!(
            "SELECT id FROM snapshot AS s
             WHERE url_key = ?1 AND (visited_at, id) > (?2, ?3) AND doubt = 0 AND created_at <= ?6
                 AND {counted} AND {TAGGED}
             ORDER BY visited_at DESC, id DESC LIMIT ?5"
        );
        let (time, id) = (page.visited_at.0, page.id.0);
        let latest = page.latest.0;
        self.all(&sql, (&page.url_key, time, id, tag, count, latest))
    }
}
