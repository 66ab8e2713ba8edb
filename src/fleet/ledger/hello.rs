//! The begin of a connection: names, clones, failovers.

use super::*;
use archivist_core::fleet::service::HEARTBEAT;
use archivist_core::fleet::{Epoch, Generation, Hello, HostKey, SCHEMA, Welcome};

/// How far ids skip ahead with each generation, more than are given within the transactions that a
/// replica can have lost.
const SKIPPED_IDS: i64 = 1_000_000;
/// A node without a request for this long is not connected. A machine that booted faster cannot be
/// told from a clone, and waits.
pub(super) const QUIET: Duration = HEARTBEAT.saturating_mul(3);
/// What clocks may differ by when uptime and the last sign of life of a node are compared, next to
/// 2 % of the uptime.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

const FLEET: &str = "
    SELECT lease_ms, server = archivist.server() FROM archivist.fleet FOR UPDATE";
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
        SELECT $1, $2, '', archivist.clock() WHERE NOT EXISTS (SELECT FROM former)
        RETURNING id
    )
    SELECT id FROM former UNION ALL SELECT id FROM new";
const BEGIN: &str = "
    UPDATE archivist.node
    SET lease_ms = $3, incarnation = incarnation + 1, boot = $2, seen = archivist.clock(), ended = false, wanting = 0, drains = false
    WHERE id = $1 RETURNING incarnation";
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
            return Err(Refusal::Schema {
                database: SCHEMA,
                program: hello.schema,
            }
            .into());
        }
        let texts = [
            FLEET, FAILOVER, SKIP_PAGES, FIND, JOIN, BEGIN, LEASE, GRACE, OWNED,
        ];
        let work = self.begin(&texts).await?;
        let fleet = work.row(FLEET, &[]).await?;
        let lease = span(fleet.get(0));
        if !fleet.get::<_, bool>(1) {
            let row = work.row(FAILOVER, &[&SKIPPED_IDS]).await?;
            let skipped: i64 = row.get(0);
            work.run(SKIP_PAGES, &[&skipped]).await?;
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
        let row = work.row(BEGIN, &[&node, &hello.boot, &configured]).await?;
        let lease = span(work.row(LEASE, &[]).await?.get(0));
        let grace = work.row(GRACE, &[]).await?;
        let owned = work.rows(OWNED, &[&node]).await?;
        work.commit().await?;
        let owned = owned.iter();
        Ok(Welcome {
            session: session(node, row.get(0)),
            generation: Generation(grace.get(0)),
            lease,
            claims_in: span(grace.get(1)),
            owned: owned
                .map(|row| (HostKey(row.get(0)), Epoch(row.get(1))))
                .collect(),
        })
    }
}

/// Returns without an error if a machine is that of a node: it has its identity, and the earlier
/// boot was not seen after the present one began, nor just now.
fn admit(hello: &Hello, row: &Row, lease: Duration) -> Result<(), Refusal> {
    let name = hello.name.clone();
    if row.get::<_, &str>(1) != hello.machine {
        return Err(Refusal::NameTaken { name });
    }
    let quiet = span(row.get(4));
    let slack = hello.uptime / 50 + CLOCK_SLACK;
    let wait = if quiet + slack < hello.uptime {
        lease
    } else {
        QUIET.min(lease)
    };
    if row.get::<_, &str>(2) == hello.boot || row.get(3) || quiet >= wait {
        return Ok(());
    }
    let retry_in = wait.saturating_sub(quiet);
    Err(Refusal::Cloned { name, retry_in })
}
