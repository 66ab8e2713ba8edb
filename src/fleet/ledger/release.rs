//! The end of a lease.

use super::*;
use archivist_core::fleet::{Fate, Release};
use std::cmp::Ordering;

/// Waits for pages that are being queued for the host; the next statement sees them.
const LOCK: &str = "
    SELECT owner, epoch, delay_ms FROM archivist.host WHERE key = $1 FOR UPDATE";

/// Gives back the open pages of the owner without counting an attempt, and ends those that are
/// cancelled. Returns whether pages wait.
const RELEASE: &str = "
    WITH back AS (
        UPDATE archivist.page p
        SET node = NULL, attempts = greatest(0, p.attempts - 1),
            status = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN 'cancelled' ELSE p.status END,
            wanted = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN 'run' ELSE p.wanted END,
            ended_at = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN archivist.clock() END
        FROM archivist.crawl c, archivist.host h
        WHERE h.key = $1 AND p.host = h.key AND p.id BETWEEN h.from_page AND h.last_page AND p.status = 'open'
            AND p.node = h.owner AND p.epoch = h.epoch AND c.id = p.crawl
        RETURNING p.crawl, p.status
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
        SELECT crawl, 0, -count(*), 0, count(*) FROM back WHERE status <> 'open' GROUP BY crawl
    )
    UPDATE archivist.host h
    SET owner = NULL, epoch = $2, lease_until = least(h.lease_until, n.now), delay_ms = $5,
        next_at = greatest(h.next_at, n.next_at), blocked_until = greatest(h.blocked_until, n.blocked_until),
        ready_at = n.now, from_page = coalesce(n.first, greatest(h.from_page, h.last_page)),
        due_at = CASE WHEN n.first IS NOT NULL
            THEN greatest(n.now, h.next_at, h.blocked_until, n.next_at, n.blocked_until)
            ELSE 'infinity' END
    FROM (
        SELECT (
                SELECT p.id FROM archivist.host o JOIN archivist.page p ON p.host = o.key AND p.id >= o.from_page
                WHERE o.key = $1 AND p.status = 'open' ORDER BY p.id LIMIT 1
            ) AS first,
            archivist.clock() AS now, archivist.clock() + $3::bigint * interval '1 ms' AS next_at,
            CASE WHEN $4::bigint > 0 THEN archivist.clock() + $4::bigint * interval '1 ms' END AS blocked_until
    ) n
    WHERE h.key = $1
    RETURNING h.due_at <> 'infinity'";

impl Ledger {
    pub(super) async fn release(&mut self, session: Session, release: &Release) -> Answer<Fate> {
        let work = self.begin(&[SESSION_SHARED, LOCK, RELEASE]).await?;
        work.check(session).await?;
        let key = &release.host.0;
        let Some(row) = work.maybe_row(LOCK, &[key]).await? else {
            return Ok(Fate::Stale);
        };
        let owner: Option<i64> = row.get(0);
        match (release.epoch.0.cmp(&row.get(1)), owner) {
            (Ordering::Less, _) => return Ok(Fate::Stale),
            (Ordering::Equal, None) => return Ok(Fate::Already),
            (Ordering::Equal, Some(owner)) if owner != session.node.0 => return Ok(Fate::Stale),
            _ => {}
        }
        let delay: i64 = row.get(2);
        let (next, blocked, delay) = match &release.pace {
            None => (delay, 0, delay),
            Some(pace) => (millis(pace.next_in), millis(pace.blocked_for), millis(pace.delay)),
        };
        let values: Values<'_> = &[key, &release.epoch.0, &next, &blocked, &delay];
        let has_freed = work.row(RELEASE, values).await?.get(0);
        work.commit().await?;
        self.has_freed = has_freed;
        Ok(Fate::Done)
    }
}
