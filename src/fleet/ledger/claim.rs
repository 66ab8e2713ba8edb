//! Claiming hosts.

use super::row::{SPECS, crawls, leased_page, page_columns, spec};
use super::*;
use archivist_core::fleet::{Claim, Claimed, CrawlSpecs, Epoch, Grant, HostKey};

/// Changes a row if no node of the fleet has looked for expired leases within this time.
const SWEEP: &str = "
    UPDATE archivist.fleet f
    SET swept_at = archivist.clock(),
        due_floor = coalesce((SELECT min(due_at) FROM archivist.host WHERE due_at IS NOT NULL), '-infinity')
    FROM (
        SELECT one FROM archivist.fleet WHERE swept_at <= archivist.clock() - $1::bigint * interval '1 ms'
        FOR UPDATE SKIP LOCKED
    ) chosen
    WHERE f.one = chosen.one";

/// Marks hosts whose lease has expired as due.
const EXPIRE: &str = "
    UPDATE archivist.host h SET due_at = greatest(h.ready_at, h.next_at, h.blocked_until)
    FROM (
        SELECT key FROM archivist.host
        WHERE due_at IS NULL AND lease_until <= archivist.clock()
        ORDER BY key FOR UPDATE SKIP LOCKED
    ) expired
    WHERE h.key = expired.key
    RETURNING h.key";

/// Ends the cancelled pages of owners that lost their leases: no node will record them. The command
/// has ended all that no owner had, so only those of the lease are read.
const CANCEL_LOST: &str = "
    WITH ended AS (
        UPDATE archivist.page p
        SET status = 'cancelled', wanted = 'run', node = NULL, ended_at = archivist.clock()
        FROM archivist.host h, archivist.crawl c
        WHERE h.key = ANY($1) AND p.host = h.key AND p.id BETWEEN h.from_page AND h.last_page
            AND p.status = 'open' AND c.id = p.crawl AND (p.wanted = 'cancel' OR c.wanted = 'cancel')
        RETURNING p.crawl
    )
    INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
    SELECT crawl, 0, -count(*), 0, count(*) FROM ended GROUP BY crawl";

/// Returns a row for each page, and a row without an epoch for each due host that has no page to
/// hand out. With `$6`, hosts that became due earlier than expected are left out.
const CLAIM: &str = concat!(
    "
    WITH me AS (
        UPDATE archivist.node SET seen = archivist.clock()
        WHERE ",
    holds_session!(),
    "
        RETURNING draining
    ), fleet AS MATERIALIZED (
        SELECT lease_ms, $5::bigint AS least_delay, generation << 32 AS floor, generation > 0 AS has_failed_over, claims_from, due_floor,
            archivist.clock() AS now
        FROM archivist.fleet
    ), chosen AS MATERIALIZED (
        SELECT h.key, h.due_at, h.from_page FROM archivist.host h
        WHERE h.due_at <= archivist.clock()
            AND h.due_at >= (SELECT CASE WHEN $6 THEN due_floor ELSE '-infinity' END FROM fleet)
            AND EXISTS (SELECT FROM me WHERE NOT draining)
            AND (SELECT claims_from <= now FROM fleet)
        ORDER BY h.due_at, h.key LIMIT $3
        FOR UPDATE SKIP LOCKED
    ), picked AS MATERIALIZED (
        SELECT c.key, q.id FROM chosen c CROSS JOIN LATERAL (
            SELECT p.id FROM archivist.page p JOIN archivist.crawl w ON w.id = p.crawl
            WHERE p.host = c.key AND p.id >= c.from_page
                AND p.status = 'open' AND p.wanted = 'run' AND w.wanted = 'run'
            ORDER BY p.id LIMIT $4
        ) q
    ), taken AS (
        UPDATE archivist.host h
        SET owner = $1, epoch = greatest(h.epoch, f.floor) + 1, due_at = NULL,
            lease_until = f.now + f.lease_ms * interval '1 ms', last_page = k.last_page, delay_ms = greatest(h.delay_ms, f.least_delay),
            next_at = greatest(h.next_at,
                CASE WHEN h.owner IS NOT NULL
                    THEN least(h.lease_until, f.now) + greatest(h.delay_ms, f.least_delay) * interval '1 ms' END,
                CASE WHEN f.has_failed_over AND h.epoch <= f.floor
                    THEN f.claims_from + greatest(h.delay_ms, f.least_delay) * interval '1 ms' END)
        FROM fleet f, (SELECT key, max(id) AS last_page FROM picked GROUP BY key) k
        WHERE h.key = k.key
        RETURNING h.key, h.epoch, h.delay_ms,
            CASE WHEN greatest(h.next_at, h.blocked_until) > f.now THEN
                ceil(extract(epoch FROM greatest(h.next_at, h.blocked_until) - f.now) * 1000)::bigint
            ELSE 0 END AS due_in, f.lease_ms
    ), handed AS (
        UPDATE archivist.page p SET node = $1, epoch = t.epoch, attempts = p.attempts + 1
        FROM picked k JOIN taken t ON t.key = k.key
        WHERE p.id = k.id AND p.status = 'open'
        RETURNING ",
    page_columns!(),
    "
    ), parts AS (
        INSERT INTO archivist.part AS a (node, crawl)
        SELECT DISTINCT $1::bigint, h.crawl FROM handed h
        WHERE NOT EXISTS (SELECT FROM archivist.part o WHERE o.node = $1 AND o.crawl = h.crawl AND NOT o.is_closed)
        ON CONFLICT (node, crawl) DO UPDATE SET is_closed = false
    )
    SELECT EXISTS (SELECT FROM me), c.key, t.epoch, t.lease_ms, t.due_in, t.delay_ms, ",
    page_columns!(),
    "
    FROM (SELECT 1) one
    LEFT JOIN chosen c ON true
    LEFT JOIN taken t ON t.key = c.key
    LEFT JOIN handed p ON p.host = c.key
    ORDER BY c.due_at, c.key, p.id"
);

/// Hosts that have no page to hand out wait until one is queued or resumed. They are locked since the
/// claim, so no such page can be missed.
const IDLE: &str = "
    UPDATE archivist.host h SET due_at = 'infinity'
    WHERE h.key = ANY($1) AND NOT EXISTS (
        SELECT FROM archivist.page p JOIN archivist.crawl w ON w.id = p.crawl
        WHERE p.host = h.key AND p.id >= h.from_page
            AND p.status = 'open' AND p.wanted = 'run' AND w.wanted = 'run'
    )";

impl Ledger {
    /// Offers the hosts whose leases have expired to all nodes, if no node has done that for five
    /// seconds. It is not part of a claim, because it would delay the claim: while another transaction
    /// is open for long, it reads the old versions of all hosts that were claimed since.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn sweep(&mut self) -> Result<(), Fault> {
        self.swept().await.map_err(|failure| self.fault(failure))
    }

    async fn swept(&mut self) -> Answer<()> {
        let work = self.begin(&[SWEEP, EXPIRE, CANCEL_LOST]).await?;
        work.sweep(SWEEP_INTERVAL).await?;
        Ok(work.commit().await?)
    }

    pub(super) async fn claim(&mut self, session: Session, claim: Claim) -> Answer<Claimed> {
        let is_eager = self.is_eager;
        let mark = self.mark(session);
        let texts = [SWEEP, EXPIRE, CANCEL_LOST, CLAIM, IDLE, SPECS];
        let work = self.begin(&texts).await?;
        if is_eager {
            work.sweep(Duration::ZERO).await?;
        }
        let mut hosts: Vec<Grant> = Vec::new();
        // If the queue is short, a claim looks at all hosts.
        let mut has_floor = !is_eager;
        loop {
            let room = i64::from(claim.hosts) - i64::try_from(hosts.len()).unwrap_or(i64::MAX);
            let pages = i64::from(claim.pages_per_host);
            let (node, delay) = (session.node.0, millis(claim.delay));
            let values: Values<'_> = &[&node, &mark, &room, &pages, &delay, &has_floor];
            let rows = work.rows(CLAIM, values).await?;
            if !rows.first().is_some_and(|row| row.get(0)) {
                drop(work);
                return Err(self.stranger(session).await);
            }
            let before = hosts.len();
            let idle = grants(&rows, &mut hosts);
            let is_full = hosts.len() - before >= usize::try_from(room).unwrap_or_default();
            if is_full || pages == 0 {
                break;
            }
            if !idle.is_empty() {
                work.run(IDLE, &[&idle]).await?;
            } else if has_floor {
                has_floor = false;
            } else {
                break;
            }
        }
        let ids = crawls(hosts.iter().flat_map(|grant| &grant.pages));
        let specs = work.specs(&ids).await?;
        work.commit().await?;
        Ok(Claimed { hosts, crawls: specs })
    }
}

/// Adds the hosts of rows to `hosts`, and returns those that have no page.
fn grants(rows: &[Row], hosts: &mut Vec<Grant>) -> Vec<String> {
    let mut idle = Vec::new();
    for row in rows {
        let Some(key) = row.get::<_, Option<String>>(1) else {
            continue;
        };
        let Some(epoch) = row.get::<_, Option<i64>>(2) else {
            idle.push(key);
            continue;
        };
        if row.get::<_, Option<i64>>(6).is_none() {
            continue;
        }
        let page = leased_page(row, 6);
        match hosts.last_mut() {
            Some(grant) if grant.host.0 == key => grant.pages.push(page),
            _ => hosts.push(Grant {
                host: HostKey(key),
                epoch: Epoch(epoch),
                lease: span(row.get(3)),
                due_in: span(row.get(4)),
                delay: span(row.get(5)),
                pages: vec![page],
            }),
        }
    }
    idle
}

impl Work<'_> {
    /// Looks for expired leases if no node has within `interval`.
    async fn sweep(&self, interval: Duration) -> Answer<()> {
        if self.run(SWEEP, &[&millis(interval)]).await? == 0 {
            return Ok(());
        }
        let expired = self.rows(EXPIRE, &[]).await?;
        let expired: Vec<&str> = expired.iter().map(|row| row.get(0)).collect();
        if !expired.is_empty() {
            self.run(CANCEL_LOST, &[&expired]).await?;
        }
        Ok(())
    }

    pub(super) async fn specs(&self, ids: &[i64]) -> Answer<CrawlSpecs> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.rows(SPECS, &[&ids]).await?;
        Ok(rows.iter().map(spec).collect())
    }
}
