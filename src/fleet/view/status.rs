//! The fleet as a whole.

use super::*;
use archivist_core::model::Uses;
use archivist_shared::bus::documents::report::{Fleet, FleetNode};
use std::collections::BTreeMap;

pub(super) const TEXTS: &[&str] = &[NODES, TOTALS, CRAWL_STATES, DEAD];

/// A node that renews its leases is seen every 5 s. The time is that of `CONNECTED_WITHIN` in `members`.
macro_rules! is_connected {
    () => {
        "(NOT n.ended AND n.seen > archivist.clock() - interval '10 s')"
    };
}
pub(super) use is_connected;

const NODES: &str = concat!(
    "SELECT n.name, ",
    is_connected!(),
    ", n.draining, ",
    ms!("n.seen"),
    ", l.hosts, l.pages, NOT n.ended
        AND n.seen + (SELECT lease_ms FROM archivist.fleet) * interval '1 ms' <= archivist.clock()
    FROM archivist.node n CROSS JOIN LATERAL (
        SELECT count(*) AS hosts, coalesce(sum(p.pages), 0)::bigint AS pages
        FROM archivist.host h CROSS JOIN LATERAL (
            SELECT count(*) AS pages FROM archivist.page p
            WHERE p.host = h.key AND p.status = 'open' AND p.id BETWEEN h.from_page AND h.last_page
                AND p.node = h.owner AND p.epoch = h.epoch
        ) p
        WHERE h.owner = n.id AND h.due_at IS NULL
    ) l
    WHERE n.name IS NOT NULL ORDER BY n.name"
);

/// Hosts that wait are counted up to `$1`.
const TOTALS: &str = concat!(
    "SELECT ",
    ms!("archivist.clock()"),
    ", ",
    ms!("greatest(f.claims_from, archivist.clock())"),
    ", f.claims_from > archivist.clock(), t.pages, t.open, t.cancelled, t.succeeded, t.failed,
        (SELECT count(*) FROM (
            SELECT FROM archivist.host h WHERE h.due_at <= archivist.clock() AND h.due_at >= f.due_floor LIMIT $1) d),
        (SELECT ",
    ms!("min(a.xact_start)"),
    " FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid())
    FROM archivist.fleet f, (
        SELECT coalesce(sum(pages), 0)::bigint AS pages, coalesce(sum(open), 0)::bigint AS open,
            coalesce(sum(cancelled), 0)::bigint AS cancelled, coalesce(sum(succeeded), 0)::bigint AS succeeded,
            coalesce(sum(failed), 0)::bigint AS failed
        FROM archivist.tally
    ) t"
);

/// Number of the newest crawls by what is wanted and whether pages are open.
const CRAWL_STATES: &str = "
    SELECT c.wanted, c.is_open, c.is_begun, count(*) FROM (
        SELECT w.wanted,
            (SELECT coalesce(sum(t.open), 0) > 0 OR coalesce(sum(t.pages), 0) + coalesce(sum(t.known), 0) = 0
                FROM archivist.tally t WHERE t.crawl = w.id) AS is_open,
            EXISTS (SELECT FROM archivist.part a WHERE a.crawl = w.id) AS is_begun
        FROM archivist.crawl w ORDER BY w.id DESC LIMIT $1
    ) c GROUP BY 1, 2, 3";

const DEAD: &str = "
    SELECT relname::text, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'archivist' AND n_dead_tup > 0";

/// Hosts and crawls that are counted.
const COUNT_MAX: i64 = 10_000;

impl Work<'_> {
    pub(super) async fn status(&self, node: String, server: String) -> Answer<Fleet> {
        let nodes: Vec<FleetNode> = self.rows(NODES, &[]).await?.iter().map(of_node).collect();
        let totals = self.row(TOTALS, &[&COUNT_MAX]).await?;
        let has_failed_over: bool = totals.get(2);
        let open = count(&totals, 4);
        let held = nodes.iter().map(|node| node.pages).sum::<u64>().min(open);
        let (ended, cancelled) = (count(&totals, 3).saturating_sub(open), count(&totals, 5));
        let mut crawls = BTreeMap::new();
        for row in self.rows(CRAWL_STATES, &[&COUNT_MAX]).await? {
            let status = match (row.get(0), row.get(1), row.get(2)) {
                ("cancel", _, _) => "cancelled",
                (_, false, _) => "sealed",
                ("pause", ..) => "paused",
                (_, true, true) => "started",
                (_, true, false) => "queued",
            };
            *crawls.entry(status.to_owned()).or_default() += count(&row, 3);
        }
        let dead = self.rows(DEAD, &[]).await?;
        let dead = dead.iter().map(|row| (row.get(0), count(row, 1)));
        Ok(Fleet {
            node,
            server,
            now: time(&totals, 0).unwrap_or_default(),
            nodes,
            crawls,
            snapshots: counts([
                ("queued", open - held),
                ("started", held),
                ("sealed", ended.saturating_sub(cancelled)),
                ("cancelled", cancelled),
            ]),
            uses: Uses { succeeded: count(&totals, 6), failed: count(&totals, 7) },
            due_hosts: count(&totals, 8),
            claims_from: time(&totals, 1).filter(|_| has_failed_over),
            dead_rows: dead.collect(),
            oldest_transaction: time(&totals, 9),
        })
    }
}

fn of_node(row: &Row) -> FleetNode {
    FleetNode {
        name: row.get(0),
        connected: row.get(1),
        lost: row.get(6),
        draining: row.get(2),
        seen_at: time(row, 3).unwrap_or_default(),
        hosts: count(row, 4),
        pages: count(row, 5),
    }
}
