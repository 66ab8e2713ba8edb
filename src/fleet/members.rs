//! The nodes of a fleet and the health of its database, as a machine without a connection of its
//! own sees them: each question opens one, so it never delays the renewal of a lease.

use crate::connect::{Hint, Link, Problem};
use crate::ledger::{END_SESSIONS, SKIPPED_IDS};
use archivist_shared::bus::documents::fleet::{Fleet, Member};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;
use tokio_postgres::Row;

/// A node is seen every 5 s; after this time without a sign of life it is not connected.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// Time between two looks at a node that drains, without a hint.
const LOOK: Duration = Duration::from_millis(500);

/// One row. The wall clock, not the start of the transaction.
const FLEET: &str = "
    SELECT f.lease_ms, f.generation, current_setting('server_version'),
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        (SELECT coalesce(sum(open), 0)::bigint FROM archivist.tally),
        CASE WHEN f.claims_from > archivist.clock()
            THEN (extract(epoch FROM f.claims_from - archivist.clock()) * 1000)::bigint ELSE 0 END
    FROM archivist.fleet f";

/// Nodes that have not left. The hosts of a node are found by the index of held hosts.
const MEMBERS: &str = "
    SELECT n.name, (extract(epoch FROM archivist.clock() - n.seen) * 1000)::bigint, n.ended, n.draining,
        (SELECT count(*) FROM archivist.host h
            WHERE h.owner = n.id AND h.due_at IS NULL AND h.lease_until > archivist.clock())
    FROM archivist.node n WHERE n.name IS NOT NULL ORDER BY n.name";

/// Rows that vacuum has not removed yet, as the statistics know them.
const DEAD: &str = "
    SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(n_live_tup), 0)::bigint
    FROM pg_stat_user_tables WHERE schemaname = 'archivist'";

/// Age of the oldest open transaction that keeps dead rows from being removed, in milliseconds. A
/// user without pg_monitor sees its own transactions only.
const OLDEST: &str = "
    SELECT coalesce((extract(epoch FROM max(clock_timestamp() - xact_start)) * 1000)::bigint, 0)
    FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()";

const DRAIN: &str = "UPDATE archivist.node SET draining = $2, drains = false WHERE name = $1";

/// Whether a node confirmed that it drains, and its latest sign of life.
const DRAINS: &str = "
    SELECT draining AND drains, (extract(epoch FROM archivist.clock() - seen) * 1000)::bigint, ended
    FROM archivist.node WHERE name = $1";

/// A node that is connected removes itself: this is for machines that are gone.
const REMOVE: &str = "
    UPDATE archivist.node SET name = NULL, former = name, draining = true
    WHERE name = $1 AND (ended OR seen + (SELECT lease_ms FROM archivist.fleet) * interval '1 ms' < archivist.clock())";
const EXISTS: &str = "SELECT true FROM archivist.node WHERE name = $1";

/// Begins a generation above all that nodes remember, as `tests/fleet-model/ledger/hello.rs` does.
const RESTORED: &str = "
    UPDATE archivist.fleet
    SET server = archivist.server(), went_back = false,
        generation = greatest(greatest(generation, known_generation) + 1, archivist.timeline()),
        claims_from = archivist.clock() + lease_ms * interval '1 ms',
        next_crawl = greatest(next_crawl, known_crawl + 1) + $1::bigint
    RETURNING known_page, lease_ms";
const SKIP_PAGES: &str = "
    SELECT setval('archivist.page_id_seq', greatest(last_value, $2::bigint) + $1::bigint)
    FROM archivist.page_id_seq";

/// Why a node was not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Done,
    /// It was seen within the duration of a lease.
    Alive,
    Unknown,
}

/// Returns the fleet with its nodes.
///
/// # Errors
/// If the database cannot be reached.
pub async fn fleet(link: &Link) -> Result<Fleet, Problem> {
    let client = &link.client;
    let problem = |error| link.problem(&error);
    let asked = now();
    let row = client.query_one(FLEET, &[]).await.map_err(problem)?;
    let answered = now();
    let members = client.query(MEMBERS, &[]).await.map_err(problem)?;
    let dead = client.query_one(DEAD, &[]).await.map_err(problem)?;
    let oldest = client.query_one(OLDEST, &[]).await.map_err(problem)?;
    let lease = count(&row, 0);
    let server: i64 = row.get(3);
    Ok(Fleet {
        database: link.server(),
        server_version: row.get(2),
        lease_ms: lease,
        generation: count(&row, 1),
        claims_in_ms: count(&row, 5),
        // The server read its clock between these two.
        clock_ahead_ms: server - i64::midpoint(asked, answered),
        open_pages: count(&row, 4),
        dead_rows: count(&dead, 0),
        live_rows: count(&dead, 1),
        oldest_transaction_ms: count(&oldest, 0),
        nodes: members.iter().map(|row| member(row, lease)).collect(),
    })
}

fn member(row: &Row, lease: u64) -> Member {
    let seen = count(row, 1);
    let ended: bool = row.get(2);
    Member {
        name: row.get(0),
        seen_ms: seen,
        is_connected: !ended && seen < millis(CONNECTED_WITHIN),
        is_lost: !ended && seen >= lease,
        has_ended: ended,
        draining: row.get(3),
        hosts: count(row, 4),
    }
}

/// Stops or resumes giving hosts and pages to a node. Returns whether there is one of this name.
///
/// # Errors
/// If the database cannot be reached.
pub async fn drain(link: &Link, name: &str, draining: bool) -> Result<bool, Problem> {
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&name, &draining];
    let changed = link.client.execute(DRAIN, &values).await;
    let changed = changed.map_err(|error| link.problem(&error))?;
    if changed > 0 {
        link.announce(Hint::Orders).await?;
    }
    Ok(changed > 0)
}

/// Waits until a node that drains starts no page any more. Returns `false` if the node is not connected:
/// it may start pages until its leases end.
///
/// # Errors
/// If the database cannot be reached.
pub async fn until_drained(link: &Link, name: &str) -> Result<bool, Problem> {
    let problem = |error| link.problem(&error);
    loop {
        let row = link.client.query_opt(DRAINS, &[&name]).await;
        let Some(row) = row.map_err(problem)? else {
            return Ok(false);
        };
        let (is_done, has_ended): (bool, bool) = (row.get(0), row.get(2));
        if is_done || has_ended || count(&row, 1) > millis(CONNECTED_WITHIN) {
            return Ok(is_done);
        }
        // The look is the truth, the hint only makes it earlier.
        let _ = timeout(LOOK, link.hint()).await;
    }
}

/// Removes a node whose machine is gone.
///
/// # Errors
/// If the database cannot be reached.
pub async fn remove(link: &Link, name: &str) -> Result<Removal, Problem> {
    let problem = |error| link.problem(&error);
    let client = &link.client;
    if client.execute(REMOVE, &[&name]).await.map_err(problem)? > 0 {
        return Ok(Removal::Done);
    }
    let known = client.query_opt(EXISTS, &[&name]).await.map_err(problem)?;
    Ok(match known {
        Some(_) => Removal::Alive,
        None => Removal::Unknown,
    })
}

/// Declares that the database was restored from a backup: all nodes connect again, and send what it lacks.
/// Returns the time until hosts are leased again.
///
/// # Errors
/// If the database cannot be reached.
pub async fn restored(link: &mut Link) -> Result<Duration, Problem> {
    let done = async {
        let work = link.client.transaction().await?;
        let row = work.query_one(RESTORED, &[&SKIPPED_IDS]).await?;
        let known: i64 = row.get(0);
        work.query_one(SKIP_PAGES, &[&SKIPPED_IDS, &known]).await?;
        work.execute(END_SESSIONS, &[]).await?;
        work.commit().await?;
        Ok(Duration::from_millis(count(&row, 1)))
    };
    let done: Result<Duration, tokio_postgres::Error> = done.await;
    done.map_err(|error| link.problem(&error))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

/// Returns the wall clock, in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
