//! Commands of users.

use super::pieces::{self, SET_CRAWL};
use super::row::again;
use super::*;
use archivist_core::fleet::{Command, CommandVerb};
use archivist_core::model::{Owner, SnapshotId};

const WAKE_PAGE: &str = "
    WITH known AS MATERIALIZED (
        SELECT h.key FROM archivist.host h
        WHERE h.key = (SELECT host FROM archivist.page WHERE id = $1) FOR KEY SHARE
    )
    UPDATE archivist.host h
    SET from_page = 0, due_at = CASE WHEN h.due_at = 'infinity'
        THEN greatest(h.ready_at, h.next_at, h.blocked_until) ELSE h.due_at END
    FROM known k WHERE h.key = k.key";

const PAGE: &str = "
    SELECT p.status, p.wanted, c.wanted, c.id,
        coalesce(p.node = h.owner AND p.epoch = h.epoch AND h.lease_until > archivist.clock(), false)
    FROM archivist.page p
    JOIN archivist.crawl c ON c.id = p.crawl
    JOIN archivist.host h ON h.key = p.host
    WHERE p.id = $1 FOR UPDATE OF p, c";
const SET_PAGE: &str = "UPDATE archivist.page SET wanted = $2 WHERE id = $1";
const END_PAGE: &str = "
    WITH ended AS (
        UPDATE archivist.page
        SET status = 'cancelled', wanted = 'run', node = NULL, ended_at = archivist.clock() WHERE id = $1
        RETURNING crawl
    )
    INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled) SELECT crawl, 0, -1, 0, 1 FROM ended";
pub(super) const RETRY_PAGE: &str = concat!(
    "
    WITH again AS (
        UPDATE archivist.page SET ",
    again!(),
    "
        WHERE id = $1 RETURNING crawl
    ), gone AS (
        DELETE FROM archivist.result WHERE page = $1 RETURNING size, state
    )
    INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled, succeeded, failed)
    SELECT a.crawl, 0, 1, -r.bytes, -$2::bigint, -r.succeeded, -r.failed FROM again a, (
        SELECT coalesce(sum(size), 0) AS bytes, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
            count(*) FILTER (WHERE state = 'failed') AS failed
        FROM gone
    ) r"
);

impl Ledger {
    /// Carries out a command, or the next piece of it. Returns whether pages remain, for which the
    /// request must be sent again.
    pub(super) async fn command(&mut self, session: Session, command: Command) -> Answer<bool> {
        let texts = [SESSION_SHARED, SET_CRAWL, WAKE_PAGE, PAGE, SET_PAGE, END_PAGE, RETRY_PAGE];
        let texts = [&texts, pieces::TEXTS].concat();
        let rest = self.rest.filter(|rest| rest.command == command);
        let work = self.begin(&texts).await?;
        work.check(session).await?;
        let rest = match command.target {
            Owner::Crawl(id) => work.command_crawl(id, command, rest).await?,
            Owner::Snapshot(id) => {
                work.command_page(id, command.verb).await?;
                None
            }
        };
        work.commit().await?;
        self.rest = rest;
        Ok(rest.is_some())
    }
}

impl Work<'_> {
    async fn command_page(&self, page: SnapshotId, verb: CommandVerb) -> Answer<()> {
        let row = self.maybe_row(PAGE, &[&page.0]).await?;
        let row = row.ok_or(NodeRefusal::UnknownPage { page })?;
        let is_open = row.get::<_, &str>(0) == "open";
        if verb == CommandVerb::Retry {
            if is_open {
                return Ok(());
            }
            let was_cancelled = i64::from(row.get::<_, &str>(0) == "cancelled");
            self.run(RETRY_PAGE, &[&page.0, &was_cancelled]).await?;
            if row.get::<_, &str>(2) == "cancel" {
                self.run(SET_CRAWL, &[&row.get::<_, i64>(3), &"run"]).await?;
            }
            self.run(WAKE_PAGE, &[&page.0]).await?;
            return Ok(());
        }
        if !is_open {
            return Ok(());
        }
        let wanted = match (verb, row.get::<_, &str>(1)) {
            (_, "cancel") | (CommandVerb::Cancel, _) => "cancel",
            (CommandVerb::Pause, _) => "pause",
            _ => "run",
        };
        self.run(SET_PAGE, &[&page.0, &wanted]).await?;
        let is_cancelled = [wanted, row.get(2)].contains(&"cancel");
        if is_cancelled && !row.get::<_, bool>(4) {
            self.run(END_PAGE, &[&page.0]).await?;
        }
        if wanted == "run" {
            self.run(WAKE_PAGE, &[&page.0]).await?;
        }
        Ok(())
    }
}
