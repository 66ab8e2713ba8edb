//! Commands about crawls, which change many pages: in pieces.

use super::row::again;
use super::*;
use archivist_core::fleet::{Command, CommandVerb};
use archivist_core::model::CrawlId;

/// Pages that one transaction changes. A command about a larger crawl is carried out in pieces, so
/// that renewals never wait long for the connection, or for the row of a host.
const PIECE_PAGES: i64 = 2_000;

/// Pages that are inserted concurrently wait for the command, or the command for them.
const CRAWL: &str = "SELECT wanted FROM archivist.crawl WHERE id = $1 FOR UPDATE";
pub(super) const SET_CRAWL: &str = "UPDATE archivist.crawl SET wanted = $2 WHERE id = $1";

/// Ends the open pages above `$2` that no node works on. Returns, as all pieces do, the number of pages
/// that it looked at and the highest id of them. Ordered by a range of states, which only the index of
/// the crawl has, and not that of all pages: pages of other crawls are not read.
const CANCEL: &str = "
    WITH open AS MATERIALIZED (
        SELECT p.id,
            coalesce(p.node = h.owner AND p.epoch = h.epoch AND h.lease_until > archivist.clock(), false) AS runs
        FROM archivist.page p JOIN archivist.host h ON h.key = p.host
        WHERE p.crawl = $1 AND p.status BETWEEN 'open' AND 'open' AND p.id > $2
        ORDER BY p.status, p.id LIMIT $3
    ), ended AS (
        UPDATE archivist.page p
        SET status = 'cancelled', wanted = 'run', node = NULL, ended_at = archivist.clock()
        FROM open o WHERE p.id = o.id AND p.status = 'open' AND NOT o.runs
        RETURNING p.id
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
        SELECT $1, 0, -count(*), 0, count(*) FROM ended HAVING count(*) > 0
    )
    SELECT count(*), coalesce(max(id), $2) FROM open";

/// Removes the results of the pages in `again`. The next record of a page has all its results, so the
/// earlier ones no longer count, however often the page is retried.
macro_rules! withdraw_results {
    () => {
        "
    ), gone AS (
        DELETE FROM archivist.result r USING again a WHERE r.page = a.id RETURNING r.size, r.state
    ), withdrawn AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, succeeded, failed)
        SELECT $1, 0, 0, -sum(size), -count(*) FILTER (WHERE state = 'succeeded'),
            -count(*) FILTER (WHERE state = 'failed')
        FROM gone HAVING count(*) > 0
    )"
    };
}

/// Opens the cancelled pages of a crawl again.
const RETRY_CRAWL: &str = concat!(
    "
    WITH chosen AS MATERIALIZED (
        SELECT id FROM archivist.page
        WHERE crawl = $1 AND status BETWEEN 'cancelled' AND 'cancelled' AND id > $2
        ORDER BY status, id LIMIT $3
    ), again AS (
        UPDATE archivist.page p SET ",
    again!(),
    "
        FROM chosen c WHERE p.id = c.id AND p.status = 'cancelled'
        RETURNING p.id
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
        SELECT $1, 0, count(*), 0, -count(*) FROM again HAVING count(*) > 0",
    withdraw_results!(),
    "
    SELECT count(*), coalesce(max(id), $2) FROM chosen"
);

/// The same for the pages with a failed result. Looks at all sealed pages of the crawl.
const RETRY_FAILED: &str = concat!(
    "
    WITH seen AS MATERIALIZED (
        SELECT id FROM archivist.page
        WHERE crawl = $1 AND status BETWEEN 'sealed' AND 'sealed' AND id > $2
        ORDER BY status, id LIMIT $3
    ), again AS (
        UPDATE archivist.page p SET ",
    again!(),
    "
        FROM seen s WHERE p.id = s.id AND p.status = 'sealed'
            AND EXISTS (SELECT FROM archivist.result r WHERE r.page = s.id AND r.state = 'failed')
        RETURNING p.id
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes)
        SELECT $1, 0, count(*), 0 FROM again HAVING count(*) > 0",
    withdraw_results!(),
    "
    SELECT count(*), coalesce(max(id), $2) FROM seen"
);

/// Hosts of open pages become due, with pages of any id. They are locked first, as for pages that are
/// inserted.
const WAKE_CRAWL: &str = "
    WITH chosen AS MATERIALIZED (
        SELECT id, host FROM archivist.page
        WHERE crawl = $1 AND status BETWEEN 'open' AND 'open' AND id > $2
        ORDER BY status, id LIMIT $3
    ), known AS MATERIALIZED (
        SELECT h.key FROM archivist.host h WHERE h.key IN (SELECT host FROM chosen)
        ORDER BY h.key FOR KEY SHARE
    ), woken AS (
        UPDATE archivist.host h
        SET from_page = 0, due_at = CASE WHEN h.due_at = 'infinity'
            THEN greatest(h.ready_at, h.next_at, h.blocked_until) ELSE h.due_at END
        FROM known k WHERE h.key = k.key
    )
    SELECT count(*), coalesce(max(id), $2) FROM chosen";
pub(super) const TEXTS: &[&str] = &[CRAWL, CANCEL, RETRY_FAILED, RETRY_CRAWL, WAKE_CRAWL];

/// The rest of a command about a crawl. Kept for the connection: a command that is sent again over
/// another one begins again, which changes nothing that it changed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) command: Command,
    step: Piece,
    /// Highest id of a page that is done.
    after: i64,
}

/// What is done with the pages of a crawl, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Cancel,
    RetryFailed,
    Retry,
    Wake,
}

impl Piece {
    fn text(self) -> &'static str {
        match self {
            Piece::Cancel => CANCEL,
            Piece::RetryFailed => RETRY_FAILED,
            Piece::Retry => RETRY_CRAWL,
            Piece::Wake => WAKE_CRAWL,
        }
    }

    /// Returns the next step after the last page; `None` after the last step.
    fn next(self) -> Option<Piece> {
        match self {
            Piece::RetryFailed => Some(Piece::Retry),
            Piece::Retry => Some(Piece::Wake),
            Piece::Cancel | Piece::Wake => None,
        }
    }

    /// Returns whether the crawl still is in the state that this step is for: another command may have
    /// come between two pieces.
    fn is_wanted(self, wanted: &str) -> bool {
        match self {
            Piece::Cancel => wanted == "cancel",
            Piece::RetryFailed | Piece::Retry => wanted != "cancel",
            Piece::Wake => wanted == "run",
        }
    }
}

impl Work<'_> {
    /// Carries out a command about a crawl, or the next piece of it. Returns the rest, if any.
    pub(super) async fn command_crawl(
        &self,
        crawl: CrawlId,
        command: Command,
        rest: Option<Rest>,
    ) -> Answer<Option<Rest>> {
        let row = self.maybe_row(CRAWL, &[&crawl.0]).await?;
        let row = row.ok_or(NodeRefusal::UnknownCrawl { crawl })?;
        let wanted: &str = row.get(0);
        if let Some(rest) = rest {
            return self.pieces(crawl, wanted, rest).await;
        }
        let next = match (command.verb, wanted) {
            (CommandVerb::Cancel, _) => "cancel",
            (CommandVerb::Pause, "run") => "pause",
            (CommandVerb::Resume, "pause") | (CommandVerb::Retry, "cancel") => "run",
            _ => wanted,
        };
        if next != wanted {
            self.run(SET_CRAWL, &[&crawl.0, &next]).await?;
        }
        let step = match command.verb {
            CommandVerb::Cancel => Piece::Cancel,
            CommandVerb::Retry => Piece::RetryFailed,
            CommandVerb::Resume => Piece::Wake,
            CommandVerb::Pause => return Ok(None),
        };
        let rest = Rest { command, step, after: 0 };
        self.pieces(crawl, next, rest).await
    }

    /// Changes at most so many pages as one transaction may; returns the rest, if any.
    async fn pieces(&self, crawl: CrawlId, wanted: &str, rest: Rest) -> Answer<Option<Rest>> {
        let mut room = PIECE_PAGES;
        let mut step = Some(rest.step);
        let mut after = rest.after;
        while let Some(piece) = step.filter(|piece| piece.is_wanted(wanted)) {
            let row = self.row(piece.text(), &[&crawl.0, &after, &room]).await?;
            room -= row.get::<_, i64>(0);
            if room <= 0 {
                let after = row.get(1);
                return Ok(Some(Rest { step: piece, after, ..rest }));
            }
            (step, after) = (piece.next(), 0);
        }
        Ok(None)
    }
}
