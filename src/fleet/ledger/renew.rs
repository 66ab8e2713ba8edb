//! Extending leases, with further pages and orders.

use super::hello::QUIET;
use super::row::{SPECS, crawls, leased_page, page_columns, signed};
use super::*;
use archivist_core::fleet::{CrawlUse, LeasedPage, Order, Orders, Renew, Renewal, Renewed};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use std::collections::BTreeMap;

const SEEN: &str = concat!(
    "
    UPDATE archivist.node SET seen = archivist.clock(), wanting = $3, drains = $4
    WHERE ",
    holds_session!(),
    "
    RETURNING draining, (SELECT next_crawl - 1 FROM archivist.fleet),
        (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM archivist.page_id_seq)"
);

/// Changes no indexed column, unless the lease had expired.
const RENEW: &str = "
    UPDATE archivist.host h
    SET owner = $1, epoch = r.epoch, due_at = NULL, delay_ms = r.delay,
        lease_until = greatest(h.lease_until, f.now + f.lease_ms * interval '1 ms'),
        next_at = greatest(h.next_at, f.now + r.next_in * interval '1 ms'),
        blocked_until = CASE WHEN r.blocked_for > 0
            THEN greatest(h.blocked_until, f.now + r.blocked_for * interval '1 ms')
            ELSE h.blocked_until END
    FROM (SELECT lease_ms, claims_from, archivist.clock() AS now FROM archivist.fleet) f,
        unnest($2::text[], $3::bigint[], $4::bool[], $5::bigint[], $6::bigint[], $7::bigint[])
            AS r (key, epoch, live, next_in, blocked_for, delay)
    WHERE h.key = r.key AND (
        (h.epoch = r.epoch AND h.owner = $1 AND (h.lease_until > f.now OR f.claims_from <= f.now))
        OR (h.epoch < r.epoch AND r.live AND f.claims_from > f.now))
    RETURNING h.key, f.lease_ms, CASE WHEN greatest(h.next_at, h.blocked_until) > f.now THEN
        ceil(extract(epoch FROM greatest(h.next_at, h.blocked_until) - f.now) * 1000)::bigint ELSE 0 END";

const REFILL: &str = concat!(
    "
    WITH held AS MATERIALIZED (
        SELECT h.key, h.epoch, h.from_page, $3 - (
            SELECT count(*) FROM archivist.page p
            WHERE p.host = h.key AND p.id BETWEEN h.from_page AND h.last_page AND p.status = 'open'
                AND p.node = $1 AND p.epoch = h.epoch
        ) AS room
        FROM archivist.host h WHERE h.key = ANY($2) AND h.owner = $1
    ), picked AS MATERIALIZED (
        SELECT h.key, h.epoch, q.id FROM held h CROSS JOIN LATERAL (
            SELECT p.id FROM archivist.page p JOIN archivist.crawl w ON w.id = p.crawl
            WHERE p.host = h.key AND p.id >= h.from_page
                AND p.status = 'open' AND p.wanted = 'run' AND w.wanted = 'run'
                AND (p.node IS NULL OR p.node <> $1 OR p.epoch < h.epoch)
            ORDER BY p.id LIMIT greatest(0, h.room)
        ) q
    ), noted AS (
        UPDATE archivist.host h SET last_page = greatest(h.last_page, k.last_page)
        FROM (SELECT key, max(id) AS last_page FROM picked GROUP BY key) k WHERE h.key = k.key
    ), handed AS (
        UPDATE archivist.page p SET node = $1, epoch = k.epoch, attempts = p.attempts + 1
        FROM picked k WHERE p.id = k.id AND p.status = 'open'
        RETURNING ",
    page_columns!(),
    "
    ), parts AS (
        INSERT INTO archivist.part AS a (node, crawl)
        SELECT DISTINCT $1::bigint, h.crawl FROM handed h
        WHERE NOT EXISTS (SELECT FROM archivist.part o WHERE o.node = $1 AND o.crawl = h.crawl AND NOT o.is_closed)
        ON CONFLICT (node, crawl) DO UPDATE SET is_closed = false
    )
    SELECT ",
    page_columns!(),
    " FROM handed p ORDER BY p.id"
);

/// With what was used of the limits of each crawl (bytes, and milliseconds since it was added), and
/// whether all its pages are recorded.
const CRAWL_ORDERS: &str = "
    SELECT c.id, c.wanted, t.bytes, floor(extract(epoch FROM archivist.clock() - c.created_at) * 1000)::bigint,
        t.pages > 0 AND t.open = 0
    FROM archivist.part a JOIN archivist.crawl c ON c.id = a.crawl CROSS JOIN LATERAL (
        SELECT coalesce(sum(bytes), 0)::bigint AS bytes, coalesce(sum(pages), 0) AS pages,
            coalesce(sum(open), 0) AS open
        FROM archivist.tally WHERE crawl = c.id
    ) t
    WHERE a.node = $1 AND NOT a.is_closed ORDER BY c.id";
/// Pages that are open on the node, and for which the order of their crawl does not hold.
const PAGE_ORDERS: &str = "
    SELECT p.id, p.wanted
    FROM archivist.page p
    JOIN archivist.crawl c ON c.id = p.crawl
    JOIN archivist.host h ON h.key = p.host
    WHERE p.status = 'open' AND p.wanted <> 'run' AND p.node = $1
        AND h.owner = $1 AND h.epoch = p.epoch
        AND (c.wanted = 'run' OR (c.wanted = 'pause' AND p.wanted = 'cancel'))
    ORDER BY p.id";

/// Returns the number of hosts that node `$1` hands over, as the ledger in `core/fleet` defines it; no row
/// if the difference is less than two hosts. A node is alive if it was seen within `$2` milliseconds.
const HAND_OVER: &str = "
    WITH alive AS MATERIALIZED (
        SELECT n.id, n.wanting, (
                SELECT count(*) FROM archivist.host h
                WHERE h.owner = n.id AND h.due_at IS NULL AND h.lease_until > archivist.clock()
            ) AS hosts
        FROM archivist.node n
        WHERE n.name IS NOT NULL AND NOT n.ended AND NOT n.draining
            AND n.seen > archivist.clock() - $2::bigint * interval '1 ms'
    ), emptiest AS (
        SELECT hosts, wanting FROM alive WHERE hosts < wanting ORDER BY hosts, id LIMIT 1
    ), fullest AS (
        SELECT id FROM alive ORDER BY hosts DESC, id LIMIT 1
    )
    SELECT CASE WHEN f.id = a.id THEN least((a.hosts - e.hosts) / 2, e.wanting - e.hosts) ELSE 0 END
    FROM alive a, emptiest e, fullest f
    WHERE a.id = $1 AND a.hosts - e.hosts > 1";

impl Ledger {
    pub(super) async fn renew(&mut self, session: Session, renew: &Renew) -> Answer<Renewed> {
        let texts = [SEEN, RENEW, REFILL, CRAWL_ORDERS, PAGE_ORDERS, HAND_OVER, SPECS];
        let mark = self.mark(session);
        let work = self.begin(&texts).await?;
        let me = session.node.0;
        let wanting = signed(renew.wanting);
        let values: Values<'_> = &[&me, &mark, &wanting, &renew.drains];
        let seen = work.maybe_row(SEEN, values).await?;
        let Some(seen) = seen else {
            drop(work);
            return Err(self.stranger(session).await);
        };
        let draining: bool = seen.get(0);
        let given = IdMarks {
            crawl: CrawlId(seen.get(1)),
            snapshot: SnapshotId(seen.get(2)),
            ..IdMarks::default()
        };
        let kept = work.extend(me, renew).await?;
        let mut pages: BTreeMap<String, Vec<LeasedPage>> = BTreeMap::new();
        if renew.refill > 0 && !draining && !kept.is_empty() {
            let keys: Vec<&str> = kept.keys().map(String::as_str).collect();
            let most = i64::from(renew.refill);
            for row in work.rows(REFILL, &[&me, &keys, &most]).await? {
                let page = leased_page(&row, 0);
                pages.entry(page.page.host.0.clone()).or_default().push(page);
            }
        }
        let mut reply = Renewed { given, ..Renewed::default() };
        for held in &renew.leases {
            let (host, epoch) = (held.host.clone(), held.epoch);
            match kept.get(&host.0) {
                None => reply.lost.push((host, epoch)),
                Some((lease, due_in)) => reply.leases.push(Renewal {
                    pages: pages.remove(&host.0).unwrap_or_default(),
                    host,
                    epoch,
                    lease: *lease,
                    due_in: *due_in,
                }),
            }
        }
        let ids = crawls(reply.leases.iter().flat_map(|lease| &lease.pages));
        reply.crawls = work.specs(&ids).await?;
        reply.orders = work.orders(me, draining).await?;
        work.commit().await?;
        Ok(reply)
    }
}

impl Work<'_> {
    /// Extends leases; returns those that are still of the node, with their duration and the time
    /// until a page may start.
    async fn extend(
        &self,
        me: i64,
        renew: &Renew,
    ) -> Answer<BTreeMap<String, (Duration, Duration)>> {
        if renew.leases.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut leases: Vec<_> = renew.leases.iter().collect();
        leases.sort_by(|a, b| a.host.cmp(&b.host));
        let leases = leases.iter();
        let keys: Vec<&str> = leases.clone().map(|held| held.host.0.as_str()).collect();
        let epochs: Vec<i64> = leases.clone().map(|held| held.epoch.0).collect();
        let live: Vec<bool> = leases.clone().map(|held| held.live).collect();
        let next: Vec<i64> = leases.clone().map(|held| millis(held.pace.next_in)).collect();
        let blocked: Vec<i64> = leases.clone().map(|held| millis(held.pace.blocked_for)).collect();
        let delays: Vec<i64> = leases.map(|held| millis(held.pace.delay)).collect();
        let values: Values<'_> = &[&me, &keys, &epochs, &live, &next, &blocked, &delays];
        let rows = self.rows(RENEW, values).await?;
        Ok(rows.iter().map(|row| (row.get(0), (span(row.get(1)), span(row.get(2))))).collect())
    }

    async fn orders(&self, me: i64, draining: bool) -> Answer<Orders> {
        let crawls = self.rows(CRAWL_ORDERS, &[&me]).await?;
        let pages = self.rows(PAGE_ORDERS, &[&me]).await?;
        let hand_over = self.maybe_row(HAND_OVER, &[&me, &millis(QUIET)]).await?;
        let order = |row: &Row| match row.get::<_, &str>(1) {
            "cancel" => Order::Cancel,
            "pause" => Order::Pause,
            _ => Order::Run,
        };
        let used = |row: &Row| CrawlUse {
            bytes: row.get::<_, i64>(2).unsigned_abs(),
            age: span(row.get(3)),
            is_done: row.get(4),
        };
        let crawls = crawls.iter();
        let pages = pages.iter();
        Ok(Orders {
            used: crawls.clone().map(|row| (CrawlId(row.get(0)), used(row))).collect(),
            crawls: crawls.map(|row| (CrawlId(row.get(0)), order(row))).collect(),
            pages: pages.map(|row| (SnapshotId(row.get(0)), order(row))).collect(),
            draining,
            hand_over: hand_over.map(|row| u32::try_from(row.get::<_, i64>(0)).unwrap_or_default()),
        })
    }
}
