//! New crawls and pages.

use super::row::{Columns, signed, text};
use super::*;
use archivist_core::fleet::{NewPage, Submit};
use archivist_core::model::{CrawlId, SnapshotId};

const RESERVE: &str = concat!(
    "
    UPDATE archivist.fleet SET next_crawl = next_crawl + $3
    WHERE EXISTS (SELECT FROM archivist.node WHERE ",
    holds_session!(),
    ")
    RETURNING next_crawl - $3"
);

pub(super) const CREATE: &str = "
    INSERT INTO archivist.crawl (id, max_depth, urls_max, document, only_new, created_at)
    VALUES ($1, $2, $3, $4, $5, archivist.clock()) ON CONFLICT (id) DO NOTHING";

/// A command locks the crawl for update, so pages that are inserted concurrently do not miss it.
pub(super) const CRAWL: &str = "SELECT urls_max FROM archivist.crawl WHERE id = $1 FOR KEY SHARE";
/// Inserts into a crawl with a limit wait for each other; the next statement sees what the others did.
pub(super) const LIMITED: &str = "SELECT FROM archivist.crawl WHERE id = $1 FOR NO KEY UPDATE";

/// Queues the pages that a crawl did not have, within its limit, and counts those that it leaves out because
/// another crawl has them. `target` has the row of the crawl, if
/// pages can be queued. A host without waiting pages becomes due. It is locked first: a release or
/// claim that found no page cannot miss those of this transaction.
macro_rules! insert_into_target {
    () => {
        "
    incoming AS MATERIALIZED (
        SELECT DISTINCT ON (i.url_key) i.*, t.only_new AND EXISTS (
            SELECT FROM archivist.page k WHERE k.url_key = i.url_key AND k.crawl <> $1 AND (
                k.status = 'open' OR k.status = 'sealed' AND k.reason IS NULL AND EXISTS (
                    SELECT FROM archivist.result r WHERE r.page = k.id AND r.state = 'succeeded'))
        ) AS is_known
        FROM unnest($3::text[], $4::bytea[], $5::text[], $6::int[], $7::text[], $8::text[], $9::text[],
                $10::bool[])
            WITH ORDINALITY AS i (url, url_key, host, depth, title, bookmarked_at, tags, given, place)
        JOIN target t ON t.wanted <> 'cancel' AND i.depth <= t.max_depth
        WHERE NOT EXISTS (SELECT FROM archivist.page p WHERE p.crawl = $1 AND p.url_key = i.url_key)
        ORDER BY i.url_key, i.place
    ), fresh AS (
        INSERT INTO archivist.page (crawl, parent, url, url_key, host, depth, title, bookmarked_at, tags, given)
        SELECT $1, $2, url, url_key, host, depth, title, bookmarked_at, tags, given
        FROM incoming WHERE NOT is_known ORDER BY place
        LIMIT (
            SELECT CASE WHEN t.urls_max IS NULL THEN NULL ELSE greatest(0, t.urls_max - (
                SELECT coalesce(sum(y.pages), 0)::bigint FROM archivist.tally y WHERE y.crawl = $1
            )) END
            FROM target t
        )
        ON CONFLICT (crawl, url_key) DO NOTHING
        RETURNING host, id
    ), hosts AS (
        SELECT host AS key, min(id) AS first FROM fresh GROUP BY host
    ), known AS MATERIALIZED (
        SELECT h.key, h.due_at, h.from_page FROM archivist.host h WHERE h.key IN (SELECT key FROM hosts)
        ORDER BY h.key FOR KEY SHARE
    ), woken AS (
        UPDATE archivist.host h
        SET from_page = least(h.from_page, n.first), due_at = CASE WHEN h.due_at = 'infinity'
            THEN greatest(h.ready_at, h.next_at, h.blocked_until) ELSE h.due_at END
        FROM known k JOIN hosts n ON n.key = k.key
        WHERE h.key = k.key AND (k.due_at = 'infinity' OR k.from_page > n.first)
    ), created AS (
        INSERT INTO archivist.host AS h (key, ready_at, due_at, from_page)
        SELECT key, archivist.clock(), archivist.clock(), first FROM hosts
        WHERE NOT EXISTS (SELECT FROM archivist.host k WHERE k.key = hosts.key) ORDER BY key
        ON CONFLICT (key) DO UPDATE
        SET from_page = least(h.from_page, excluded.from_page), due_at = CASE WHEN h.due_at = 'infinity'
            THEN greatest(h.ready_at, h.next_at, h.blocked_until) ELSE h.due_at END
        WHERE h.due_at = 'infinity' OR h.from_page > excluded.from_page
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, known)
        SELECT $1, f.pages, f.pages, 0, k.pages
        FROM (SELECT count(*) AS pages FROM fresh) f, (SELECT count(*) AS pages FROM incoming WHERE is_known) k
        WHERE f.pages > 0 OR k.pages > 0
    )"
    };
}

/// Returns the number of pages that the crawl did not have.
pub(super) const INSERT: &str = concat!(
    "
    WITH target AS (
        SELECT max_depth, wanted, urls_max, only_new FROM archivist.crawl WHERE id = $1
    ),",
    insert_into_target!(),
    "
    SELECT count(*) FROM fresh"
);

/// The same in one statement, for a crawl that exists and has no limit. Returns whether the session
/// holds, whether the crawl is such a one, and the number of pages. Both rows are locked as by
/// `SESSION_SHARED` and `CRAWL`; a statement that waits for a lock sees the row of after the wait.
const SUBMIT: &str = concat!(
    "
    WITH me AS MATERIALIZED (
        SELECT FROM archivist.node WHERE ",
    holds_session!("$11", "$12"),
    " FOR SHARE
    ), target AS MATERIALIZED (
        SELECT max_depth, wanted, urls_max, only_new FROM archivist.crawl
        WHERE id = $1 AND urls_max IS NULL AND EXISTS (SELECT FROM me) FOR KEY SHARE
    ),",
    insert_into_target!(),
    "
    SELECT EXISTS (SELECT FROM me), EXISTS (SELECT FROM target), count(*) FROM fresh"
);

impl Ledger {
    pub(super) async fn reserve_crawls(
        &mut self,
        session: Session,
        count: u32,
    ) -> Answer<NodeReply> {
        let statement = self.prepared(RESERVE).await?;
        let values: Values<'_> = &[&session.node.0, &self.mark(session), &i64::from(count)];
        match self.link.client.query_opt(&statement, values).await? {
            None => Err(self.stranger(session).await),
            Some(row) => Ok(NodeReply::CrawlIds { first: CrawlId(row.get(0)), count }),
        }
    }

    pub(super) async fn submit(&mut self, session: Session, submit: &Submit) -> Answer<NodeReply> {
        if submit.spec.is_none() && self.limited != Some(submit.crawl) {
            if let Some(inserted) = self.submit_alone(session, submit).await? {
                return Ok(NodeReply::Submitted { inserted });
            }
            self.limited = Some(submit.crawl);
        }
        let texts = [SESSION_SHARED, CREATE, CRAWL, LIMITED, INSERT];
        let work = self.begin(&texts).await?;
        work.check(session).await?;
        let crawl = submit.crawl;
        if let Some(spec) = &submit.spec {
            let most = spec.urls_max.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
            let document = text(&spec.document);
            let depth = signed(spec.max_depth);
            let values: Values<'_> = &[&crawl.0, &depth, &most, &document, &spec.only_new];
            work.run(CREATE, values).await?;
        }
        let inserted = work.insert(crawl, None, &submit.pages).await?;
        let inserted = inserted.ok_or(NodeRefusal::UnknownCrawl { crawl })?;
        work.commit().await?;
        Ok(NodeReply::Submitted { inserted })
    }

    /// Returns the number of queued pages; `None` if the crawl has a limit or does not exist.
    async fn submit_alone(&mut self, session: Session, submit: &Submit) -> Answer<Option<u64>> {
        let columns = Columns::of(&submit.pages);
        let parent: Option<i64> = None;
        let (node, mark) = (&session.node.0, &self.mark(session));
        let mut values = values(&submit.crawl.0, &parent, &columns).to_vec();
        values.extend([node as &(dyn ToSql + Sync), mark]);
        let row = self.alone(SUBMIT, &values).await?;
        if !row.get::<_, bool>(0) {
            return Err(self.stranger(session).await);
        }
        let inserted = row.get::<_, i64>(2).unsigned_abs();
        Ok(row.get::<_, bool>(1).then_some(inserted))
    }
}

/// Returns the first ten values of [`INSERT`] and [`SUBMIT`].
fn values<'a>(
    crawl: &'a i64,
    parent: &'a Option<i64>,
    columns: &'a Columns,
) -> [&'a (dyn ToSql + Sync); 10] {
    [
        crawl,
        parent,
        &columns.urls,
        &columns.keys,
        &columns.hosts,
        &columns.depths,
        &columns.titles,
        &columns.bookmarks,
        &columns.tags,
        &columns.given,
    ]
}

impl Work<'_> {
    /// Queues the pages that a crawl does not have, within its limits. Returns their number, or
    /// `None` if there is no such crawl.
    pub(super) async fn insert(
        &self,
        crawl: CrawlId,
        parent: Option<SnapshotId>,
        pages: &[NewPage],
    ) -> Answer<Option<u64>> {
        let Some(row) = self.maybe_row(CRAWL, &[&crawl.0]).await? else {
            return Ok(None);
        };
        if row.get::<_, Option<i64>>(0).is_some() {
            self.run(LIMITED, &[&crawl.0]).await?;
        }
        let parent = parent.map(|parent| parent.0);
        let columns = Columns::of(pages);
        let values = values(&crawl.0, &parent, &columns);
        let inserted: i64 = self.row(INSERT, &values).await?.get(0);
        Ok(Some(u64::try_from(inserted).unwrap_or_default()))
    }
}
