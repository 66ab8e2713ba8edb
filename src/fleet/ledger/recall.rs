//! What nodes send again to a database of another generation: `tests/fleet-model/ledger/recall.rs` does
//! the same with values.

use super::command::RETRY_PAGE;
use super::insert::CRAWL;
use super::record::{End, RECORD_AGAIN};
use super::row::Columns;
use super::*;
use archivist_core::fleet::{Compare, Record, Restored};
use archivist_core::model::SnapshotId;

const LACKS_CRAWLS: &str = "
    SELECT r.id FROM unnest($1::bigint[]) AS r (id)
    WHERE NOT EXISTS (SELECT FROM archivist.crawl c WHERE c.id = r.id) ORDER BY r.id";

/// The pages that node `$1` has, and the database lacks.
const LACKS_PAGES: &str = "
    SELECT r.id FROM unnest($2::bigint[], $3::bigint[]) AS r (id, epoch)
    LEFT JOIN archivist.page p ON p.id = r.id
    WHERE p.id IS NULL OR p.epoch < r.epoch OR p.epoch = r.epoch AND p.status = 'open' AND p.node = $1
    ORDER BY r.id";

/// Removes a page that has the crawl and URL of one with another id, and was never handed to a node. Such a
/// page comes from a list that was sent again.
const MAKE_ROOM: &str = "
    WITH gone AS (
        DELETE FROM archivist.page
        WHERE crawl = $2 AND url_key = $3 AND id <> $1 AND node IS NULL AND epoch = 0
            AND NOT EXISTS (SELECT FROM archivist.page WHERE id = $1)
        RETURNING crawl, status
    )
    INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
    SELECT crawl, -1, -(status = 'open')::int, 0, -(status = 'cancelled')::int FROM gone";

/// Queues a page under its id, unless another one has the id or URL. Returns whether it is there.
const PUT_BACK: &str = "
    WITH fresh AS (
        INSERT INTO archivist.page (id, crawl, url_key, parent, url, host, depth, title, bookmarked_at, tags, given)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT DO NOTHING
        RETURNING crawl, host
    ), woken AS (
        INSERT INTO archivist.host AS h (key, ready_at, due_at, from_page)
        SELECT host, archivist.clock(), archivist.clock(), $1 FROM fresh
        ON CONFLICT (key) DO UPDATE
        SET from_page = least(h.from_page, excluded.from_page), due_at = CASE WHEN h.due_at = 'infinity'
            THEN greatest(h.ready_at, h.next_at, h.blocked_until) ELSE h.due_at END
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes) SELECT crawl, 1, 1, 0 FROM fresh
    )
    SELECT EXISTS (SELECT FROM fresh)
        OR EXISTS (SELECT FROM archivist.page WHERE id = $1 AND crawl = $2 AND url_key = $3)";

/// Returns the state of a page that ended under an earlier epoch.
const EARLIER_END: &str = "
    SELECT status FROM archivist.page WHERE id = $1 AND epoch < $2 AND status <> 'open' FOR UPDATE";

impl Ledger {
    /// Returns what the database lacks of the crawls and pages of a node.
    pub(super) async fn compare(
        &mut self,
        session: Session,
        compare: &Compare,
    ) -> Answer<NodeReply> {
        let work = self.begin(&[SESSION_SHARED, LACKS_CRAWLS, LACKS_PAGES]).await?;
        work.check(session).await?;
        let crawls: Vec<i64> = compare.crawls.iter().map(|id| id.0).collect();
        let pages = compare.pages.iter();
        let (pages, epochs): (Vec<i64>, Vec<i64>) =
            pages.map(|(id, epoch)| (id.0, epoch.0)).unzip();
        let crawls = work.rows(LACKS_CRAWLS, &[&crawls]).await?;
        let values: Values<'_> = &[&session.node.0, &pages, &epochs];
        let pages = work.rows(LACKS_PAGES, values).await?;
        work.commit().await?;
        Ok(NodeReply::Lacks {
            crawls: crawls.iter().map(|row| CrawlId(row.get(0))).collect(),
            pages: pages.iter().map(|row| SnapshotId(row.get(0))).collect(),
        })
    }

    /// Puts pages back with their ids, and their records. Names those that another page precludes.
    pub(super) async fn restore(
        &mut self,
        session: Session,
        pages: &[Restored],
    ) -> Answer<NodeReply> {
        let texts =
            [SESSION_SHARED, CRAWL, MAKE_ROOM, PUT_BACK, EARLIER_END, RETRY_PAGE, RECORD_AGAIN];
        let work = self.begin(&texts).await?;
        work.check(session).await?;
        let mut refused = Vec::new();
        for restored in pages {
            if !work.put_back(restored).await? {
                refused.push(restored.page.id);
            } else if let Some(record) = &restored.record {
                work.record_again(session, record).await?;
            }
        }
        work.commit().await?;
        Ok(NodeReply::Restored { refused })
    }
}

impl Work<'_> {
    /// Returns whether the page is there.
    async fn put_back(&self, restored: &Restored) -> Answer<bool> {
        let page = &restored.page;
        let (id, crawl) = (page.id.0, page.crawl.0);
        if self.maybe_row(CRAWL, &[&crawl]).await?.is_none() {
            return Ok(false);
        }
        let columns = Columns::of(std::slice::from_ref(&page.page));
        let parent = page.parent.map(|parent| parent.0);
        self.run(MAKE_ROOM, &[&id, &crawl, &columns.keys[0]]).await?;
        let values: Values<'_> = &[
            &id,
            &crawl,
            &columns.keys[0],
            &parent,
            &columns.urls[0],
            &columns.hosts[0],
            &columns.depths[0],
            &columns.titles[0],
            &columns.bookmarks[0],
            &columns.tags[0],
            &columns.given[0],
        ];
        Ok(self.row(PUT_BACK, values).await?.get(0))
    }

    /// Records the end of a page, unless it was handed out or recorded later.
    async fn record_again(&self, session: Session, record: &Record) -> Answer<()> {
        let (page, epoch) = (record.page.0, record.epoch.0);
        if let Some(row) = self.maybe_row(EARLIER_END, &[&page, &epoch]).await? {
            let was_cancelled = i64::from(row.get::<_, &str>(0) == "cancelled");
            self.run(RETRY_PAGE, &[&page, &was_cancelled]).await?;
        }
        let end = End::of(session.node, mark(self.table, session), record);
        self.row(RECORD_AGAIN, &end.values(record)).await?;
        Ok(())
    }
}
