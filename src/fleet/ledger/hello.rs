//! The begin of a connection: names, clones, failovers.

use super::*;
use archivist_core::fleet::service::HEARTBEAT;
use archivist_core::fleet::{Epoch, Found, Generation, Hello, HostKey, Memory, SCHEMA, Welcome};

/// How far ids skip ahead with each generation, more than are given within the transactions that a
/// replica can have lost.
pub(crate) const SKIPPED_IDS: i64 = 1_000_000;
/// A node without a request for this long is not connected. A machine that booted faster cannot be
/// told from a clone, and waits.
pub(super) const QUIET: Duration = HEARTBEAT.saturating_mul(3);
/// What clocks may differ by when uptime and the last sign of life of a node are compared, next to
/// 2 % of the uptime.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

const FLEET: &str = "
    SELECT lease_ms, server = archivist.server(), went_back FROM archivist.fleet FOR UPDATE";
const FAILOVER: &str = "
    WITH next AS (
        SELECT generation AS before, greatest(generation + 1, archivist.timeline()) AS now FROM archivist.fleet
    )
    UPDATE archivist.fleet f
    SET server = archivist.server(), generation = next.now,
        claims_from = archivist.clock() + lease_ms * interval '1 ms',
        next_crawl = next_crawl + $1::bigint * (next.now - next.before)
    FROM next
    RETURNING $1::bigint * (next.now - next.before)";
const SKIP_PAGES: &str = "
    SELECT setval(s, nextval(s) + $1) FROM pg_get_serial_sequence('archivist.page', 'id') s";
/// What the database has of what a node remembers: [`Found`], and whether the node `$1` is the machine `$2`.
const FOUND: &str = "
    SELECT f.generation, EXISTS (SELECT FROM archivist.node WHERE id = $1), f.next_crawl,
        (SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM archivist.page_id_seq),
        $3::bigint IS NULL OR EXISTS (SELECT FROM archivist.crawl WHERE id = $3),
        $4::bigint IS NULL OR EXISTS (
            SELECT FROM archivist.page p
            WHERE p.id = $4 AND (p.epoch > $5 OR p.epoch = $5
                AND NOT (p.status = 'open' AND p.node IS NOT DISTINCT FROM $1 AND $1 <> ALL (p.copies)))),
        NOT EXISTS (
            SELECT FROM unnest($6::text[], $7::bigint[]) AS r (key, epoch)
            LEFT JOIN archivist.host h ON h.key = r.key WHERE h.key IS NULL OR h.epoch < r.epoch),
        EXISTS (SELECT FROM archivist.node WHERE id = $1 AND machine = $2)
    FROM archivist.fleet f";
/// Ends the sessions of all nodes: each must say hello again.
pub(crate) const END_SESSIONS: &str = "UPDATE archivist.node SET incarnation = incarnation + 1";
const WENT_BACK: &str = "
    UPDATE archivist.fleet
    SET went_back = went_back OR $1, known_generation = greatest(known_generation, $2),
        known_crawl = greatest(known_crawl, $3), known_page = greatest(known_page, $4)";
/// No id up to these is given.
const RAISE_CRAWLS: &str =
    "UPDATE archivist.fleet SET next_crawl = $1::bigint + 1 WHERE next_crawl <= $1";
const RAISE_PAGES: &str = "
    SELECT setval('archivist.page_id_seq', $1::bigint) FROM archivist.page_id_seq
    WHERE last_value < $1 OR last_value = $1 AND NOT is_called";
const FIND: &str = "
    SELECT id, machine, boot, ended, (extract(epoch FROM archivist.clock() - seen) * 1000)::bigint
    FROM archivist.node WHERE name = $1 FOR UPDATE";
/// A machine that has left is the node that it was: its pages name it.
const JOIN: &str = "
    WITH former AS (
        UPDATE archivist.node SET name = $1, draining = false
        WHERE id = (SELECT max(id) FROM archivist.node WHERE name IS NULL AND machine = $2)
        RETURNING id
    ), new AS (
        INSERT INTO archivist.node (name, machine, boot, seen)
        SELECT $1, $2, '', to_timestamp(0) WHERE NOT EXISTS (SELECT FROM former)
        RETURNING id
    )
    SELECT id FROM former UNION ALL SELECT id FROM new";
/// `$4`: the generation that the node remembers.
const BEGIN: &str = "
    UPDATE archivist.node n
    SET lease_ms = $3, incarnation = incarnation + 1, boot = $2, seen = archivist.clock(), ended = false, wanting = 0,
        drains = false,
        lost_from = CASE WHEN $4::bigint <> f.generation THEN coalesce(n.lost_from, n.seen) END
    FROM archivist.fleet f
    WHERE n.id = $1
    RETURNING n.incarnation, (extract(epoch FROM archivist.clock() - n.lost_from) * 1000)::bigint, n.tableoid::bigint";
/// The longest lease that a node is configured for; without any, the duration stays.
const LEASE: &str = "
    UPDATE archivist.fleet f
    SET lease_ms = coalesce((SELECT max(n.lease_ms) FROM archivist.node n WHERE n.name IS NOT NULL), f.lease_ms)
    RETURNING f.lease_ms";
const GRACE: &str = "
    SELECT generation, CASE WHEN claims_from > archivist.clock()
        THEN (extract(epoch FROM claims_from - archivist.clock()) * 1000)::bigint ELSE 0 END
    FROM archivist.fleet";
const OWNED: &str = "SELECT key, epoch FROM archivist.host WHERE owner = $1 ORDER BY key";

impl Ledger {
    /// Begins a connection. Only the row of the node changes; its leases continue.
    ///
    /// # Errors
    /// If the name or machine is that of another node, or the database cannot be reached.
    pub async fn hello(&mut self, hello: &Hello) -> Result<Welcome, Fault> {
        let welcome = self.welcome(hello).await;
        welcome.map_err(|failure| self.fault(failure))
    }

    async fn welcome(&mut self, hello: &Hello) -> Answer<Welcome> {
        if hello.schema < SCHEMA {
            return Err(NodeRefusal::Schema { database: SCHEMA, program: hello.schema }.into());
        }
        let texts = [
            FLEET,
            FAILOVER,
            SKIP_PAGES,
            FOUND,
            WENT_BACK,
            END_SESSIONS,
            FIND,
            JOIN,
            BEGIN,
            LEASE,
            RAISE_CRAWLS,
            RAISE_PAGES,
            GRACE,
            OWNED,
        ];
        let work = self.begin(&texts).await?;
        let fleet = work.row(FLEET, &[]).await?;
        let lease = span(fleet.get(0));
        if !fleet.get::<_, bool>(1) {
            let row = work.row(FAILOVER, &[&SKIPPED_IDS]).await?;
            let skipped: i64 = row.get(0);
            work.run(SKIP_PAGES, &[&skipped]).await?;
        }
        let mut went_back = fleet.get(2);
        if let Some(memory) = &hello.memory {
            went_back |= work.went_back(memory, &hello.machine, went_back).await?;
        }
        if went_back {
            work.commit().await?;
            return Err(NodeRefusal::WentBack.into());
        }
        let found = work.maybe_row(FIND, &[&hello.name]).await?;
        let node: i64 = match found {
            None => {
                let row = work.row(JOIN, &[&hello.name, &hello.machine]).await?;
                row.get(0)
            }
            Some(row) => {
                if let Err(refusal) = admit(hello, &row, lease) {
                    // Keeps what was noted about a failover.
                    work.commit().await?;
                    return Err(refusal.into());
                }
                row.get(0)
            }
        };
        let configured = hello.lease.map(millis);
        let generation = hello.memory.as_ref().map(|memory| memory.generation.0);
        let values: Values<'_> = &[&node, &hello.boot, &configured, &generation];
        let row = work.row(BEGIN, values).await?;
        let lease = span(work.row(LEASE, &[]).await?.get(0));
        if let Some(memory) = &hello.memory {
            work.run(RAISE_CRAWLS, &[&memory.highest.crawl.0]).await?;
            work.run(RAISE_PAGES, &[&memory.highest.snapshot.0]).await?;
        }
        let grace = work.row(GRACE, &[]).await?;
        let owned = work.rows(OWNED, &[&node]).await?;
        work.commit().await?;
        self.table = row.get(2);
        let owned = owned.iter();
        Ok(Welcome {
            session: session(node, row.get(0)),
            generation: Generation(grace.get(0)),
            lease,
            claims_in: span(grace.get(1)),
            owned: owned.map(|row| (HostKey(row.get(0)), Epoch(row.get(1)))).collect(),
            forgot: row.get::<_, Option<i64>>(1).map(span),
        })
    }
}

impl Work<'_> {
    /// Returns whether the database went back behind what a node remembers, and notes that, and what the
    /// node remembers. `was_noticed`: another node noticed it before. A machine that the database does not
    /// know proves nothing about others.
    async fn went_back(&self, memory: &Memory, machine: &str, was_noticed: bool) -> Answer<bool> {
        let (found, is_known) = self.found(memory, machine).await?;
        if !was_noticed && !memory.contradicts(&found) {
            return Ok(false);
        }
        let highest = memory.highest;
        let values: Values<'_> =
            &[&is_known, &memory.generation.0, &highest.crawl.0, &highest.snapshot.0];
        self.run(WENT_BACK, values).await?;
        if is_known && !was_noticed {
            self.run(END_SESSIONS, &[]).await?;
        }
        Ok(true)
    }

    /// Returns what the database has, and whether it knows the machine as the node.
    async fn found(&self, memory: &Memory, machine: &str) -> Answer<(Found, bool)> {
        let submitted = memory.submitted.map(|crawl| crawl.0);
        let (page, epoch) = memory.recorded.unzip();
        let (page, epoch) = (page.map(|page| page.0), epoch.map(|epoch| epoch.0));
        let (hosts, epochs): (Vec<&str>, Vec<i64>) =
            memory.claims().map(|(host, epoch)| (host.0.as_str(), epoch.0)).unzip();
        let values: Values<'_> =
            &[&memory.node.0, &machine, &submitted, &page, &epoch, &hosts, &epochs];
        let row = self.row(FOUND, values).await?;
        let found = Found {
            generation: Generation(row.get(0)),
            has_node: row.get(1),
            next_crawl: row.get(2),
            next_page: row.get(3),
            has_submitted: row.get(4),
            has_recorded: row.get(5),
            has_claimed: row.get(6),
        };
        Ok((found, row.get(7)))
    }
}

/// Returns without an error if a machine is that of a node: it has its identity, and the earlier
/// boot was not seen after the present one began, nor just now.
fn admit(hello: &Hello, row: &Row, lease: Duration) -> Result<(), NodeRefusal> {
    let name = hello.name.clone();
    if row.get::<_, &str>(1) != hello.machine {
        return Err(NodeRefusal::NameTaken { name });
    }
    let quiet = span(row.get(4));
    let slack = hello.uptime / 50 + CLOCK_SLACK;
    let wait = if quiet + slack < hello.uptime { lease } else { QUIET.min(lease) };
    if row.get::<_, &str>(2) == hello.boot || row.get(3) || quiet >= wait {
        return Ok(());
    }
    let retry_in = wait.saturating_sub(quiet);
    Err(NodeRefusal::Cloned { name, retry_in })
}
