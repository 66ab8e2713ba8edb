//! Nodes that drain, leave and end, and crawls that end.

use super::*;
use archivist_core::model::CrawlId;

const DRAIN: &str = "UPDATE archivist.node SET draining = $2, drains = false WHERE id = $1";
const LEAVE: &str = "UPDATE archivist.node SET name = NULL, former = coalesce(name, former), draining = true WHERE id = $1";
const GOODBYE: &str = "UPDATE archivist.node SET ended = true WHERE id = $1";
const CLOSE: &str = "
    INSERT INTO archivist.part (node, crawl, is_closed) VALUES ($1, $2, true)
    ON CONFLICT (node, crawl) DO UPDATE SET is_closed = true";

/// No page waits or is open, and each node that took part has closed the crawl or holds no lease.
const SEALED: &str = "
    SELECT (SELECT coalesce(sum(open), 0) FROM archivist.tally WHERE crawl = $1) = 0
        AND NOT EXISTS (
            SELECT FROM archivist.part a WHERE a.crawl = $1 AND NOT a.is_closed AND EXISTS (
                SELECT FROM archivist.host h WHERE h.owner = a.node AND h.lease_until > archivist.clock()
                    AND h.due_at IS NULL))";

/// Replaces rows of the tally by their sums. Rows that another node sums are left out.
const FOLD: &str = "
    WITH chosen AS (
        SELECT ctid FROM archivist.tally ORDER BY crawl LIMIT $1 FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM archivist.tally t USING chosen c WHERE t.ctid = c.ctid
        RETURNING t.*
    ), sums AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled, succeeded, failed, known)
        SELECT crawl, sum(pages), sum(open), sum(bytes), sum(cancelled), sum(succeeded), sum(failed), sum(known)
        FROM gone GROUP BY crawl
    )
    SELECT count(*) FROM gone";

impl Ledger {
    pub(super) async fn drain(
        &mut self,
        session: Session,
        node: NodeId,
        draining: bool,
    ) -> Answer<NodeReply> {
        self.change_node(session, DRAIN, node, &[&node.0, &draining]).await
    }

    pub(super) async fn leave(&mut self, session: Session, node: NodeId) -> Answer<NodeReply> {
        self.change_node(session, LEAVE, node, &[&node.0]).await
    }

    pub(super) async fn goodbye(&mut self, session: Session) -> Answer<NodeReply> {
        let me = session.node;
        self.change_node(session, GOODBYE, me, &[&me.0]).await
    }

    async fn change_node(
        &mut self,
        session: Session,
        text: &'static str,
        node: NodeId,
        values: Values<'_>,
    ) -> Answer<NodeReply> {
        let work = self.begin(&[SESSION_SHARED, text]).await?;
        work.check(session).await?;
        if work.run(text, values).await? == 0 {
            return Err(NodeRefusal::UnknownNode { node: node.0 }.into());
        }
        work.commit().await?;
        Ok(NodeReply::Done)
    }

    pub(super) async fn crawl_closed(
        &mut self,
        session: Session,
        crawl: CrawlId,
    ) -> Answer<NodeReply> {
        let work = self.begin(&[SESSION_SHARED, CLOSE]).await?;
        work.check(session).await?;
        work.run(CLOSE, &[&session.node.0, &crawl.0]).await?;
        work.commit().await?;
        Ok(NodeReply::Done)
    }

    /// Returns whether a crawl is complete.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn is_sealed(&mut self, crawl: CrawlId) -> Result<bool, Fault> {
        let row = self.alone(SEALED, &[&crawl.0]).await;
        let row = row.map_err(|error| self.fault(error.into()))?;
        Ok(row.get(0))
    }

    /// Shortens the counters of crawls by up to this number of rows; returns how many it read. Each
    /// node does that now and then.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn fold(&mut self, most: u32) -> Result<u64, Fault> {
        let row = self.alone(FOLD, &[&i64::from(most)]).await;
        let row = row.map_err(|error| self.fault(error.into()))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
    }
}
