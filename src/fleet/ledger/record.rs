//! The end of a page.

use super::insert::{CRAWL, INSERT, LIMITED};
use super::row::{shown, signed, text};
use super::*;
use archivist_core::fleet::{Epoch, Fate, HookResult, PageEnd, Record, bounds};
use archivist_core::model::{CrawlId, ResultState, SnapshotId};

/// Records a page that is open and meets a condition.
macro_rules! record {
    ($condition:literal) => {
        concat!(
            "
    WITH me AS (
        SELECT FROM archivist.node WHERE ",
            holds_session!(),
            "
    ), done AS (
        UPDATE archivist.page p
        SET status = $5, node = $1, epoch = $4, wanted = 'run', reason = $6, took_ms = $7, directory = $20,
            copies = array_remove(copies, $1),
            ended_at = archivist.clock() - $8::bigint * interval '1 ms'
        WHERE p.id = $3 AND p.status = 'open' AND EXISTS (SELECT FROM me)
            AND (
                ",
            $condition,
            ")
        RETURNING p.crawl
    ), results AS (
        INSERT INTO archivist.result (page, plugin, hook, state, output, error, size, attempts, took_ms)
        SELECT $3, r.* FROM done,
            unnest($9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::int[], $16::bigint[]) r
        ON CONFLICT (page, plugin, hook) DO UPDATE
        SET state = excluded.state, output = excluded.output, error = excluded.error, size = excluded.size,
            attempts = excluded.attempts, took_ms = excluded.took_ms
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled, succeeded, failed)
        SELECT crawl, 0, -1, $17, CASE WHEN $5 = 'cancelled' THEN 1 ELSE 0 END, $18, $19 FROM done
    )
    SELECT EXISTS (SELECT FROM me), (SELECT crawl FROM done),
        EXISTS (SELECT FROM archivist.page WHERE id = $3 AND status <> 'open' AND node = $1 AND epoch = $4)"
        )
    };
}

/// Returns whether the session holds, the crawl if the page was recorded now, and whether it was
/// recorded before. A page that another node claims concurrently has a later epoch as soon as that
/// claim is committed, so the row of the host need not be locked. Only a claim that was forgotten in
/// a failover leaves a page with an earlier epoch.
pub(super) const RECORD: &str = record!(
    "p.node = $1 AND p.epoch = $4 AND EXISTS (
                    SELECT FROM archivist.host h WHERE h.key = p.host AND h.owner = $1 AND h.epoch = $4)
                OR p.epoch < $4 AND EXISTS (
                    SELECT FROM archivist.host h
                    WHERE h.key = p.host AND (h.epoch < $4 OR h.epoch = $4 AND h.owner = $1))"
);

/// The same for a record that the database lost: the page was not handed to a node under a later epoch, as
/// `core/fleet/memory.rs` decides. Its host may have been claimed since.
pub(super) const RECORD_AGAIN: &str = record!("p.epoch < $4 OR p.epoch = $4 AND p.node = $1");

/// Returns whether the session holds, and whether the page was given back now, or waits already.
const GIVE_BACK: &str = concat!(
    "
    WITH me AS (
        SELECT FROM archivist.node WHERE ",
    holds_session!(),
    "
    ), back AS (
        UPDATE archivist.page p
        SET node = NULL, attempts = greatest(0, p.attempts - 1),
            status = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN 'cancelled' ELSE p.status END,
            wanted = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN 'run' ELSE p.wanted END,
            ended_at = CASE WHEN 'cancel' IN (p.wanted, c.wanted) THEN archivist.clock() END
        FROM archivist.crawl c
        WHERE p.id = $3 AND p.status = 'open' AND p.node = $1 AND p.epoch = $4 AND c.id = p.crawl
            AND EXISTS (SELECT FROM me)
            AND EXISTS (
                SELECT FROM archivist.host h WHERE h.key = p.host AND h.owner = $1 AND h.epoch = $4)
        RETURNING p.crawl, p.status
    ), counted AS (
        INSERT INTO archivist.tally (crawl, pages, open, bytes, cancelled)
        SELECT crawl, 0, -1, 0, 1 FROM back WHERE status <> 'open'
    )
    SELECT EXISTS (SELECT FROM me), EXISTS (SELECT FROM back), EXISTS (
        SELECT FROM archivist.page p JOIN archivist.host h ON h.key = p.host
        WHERE p.id = $3 AND p.status = 'open' AND p.epoch = $4
            AND (p.node IS NULL OR p.node IS DISTINCT FROM h.owner OR p.epoch <> h.epoch))"
);

/// Largest size in the database, as its schema says.
const BYTES_MAX: i64 = 1 << 53;

/// Results as one array for each column.
#[derive(Default)]
struct Results {
    plugins: Vec<String>,
    hooks: Vec<String>,
    states: Vec<&'static str>,
    outputs: Vec<Option<String>>,
    errors: Vec<Option<String>>,
    sizes: Vec<i64>,
    attempts: Vec<i32>,
    took: Vec<Option<i64>>,
}

impl Results {
    fn of(results: &[HookResult]) -> Results {
        let mut columns = Results::default();
        for result in results {
            columns.plugins.push(text(&result.plugin));
            columns.hooks.push(text(&result.hook));
            columns.states.push(result.state.as_str());
            columns.outputs.push(result.output.as_deref().map(shown));
            columns.errors.push(result.error.as_deref().map(shown));
            columns.sizes.push(bytes(result.size));
            columns.attempts.push(signed(result.attempts));
            columns.took.push(result.took.map(millis));
        }
        columns
    }

    fn count(&self, state: ResultState) -> i64 {
        let of_state = self.states.iter().filter(|name| **name == state.as_str());
        i64::try_from(of_state.count()).unwrap_or(i64::MAX)
    }

    fn bytes(&self) -> i64 {
        self.sizes.iter().fold(0, |sum, size| bytes((sum + size).unsigned_abs()))
    }
}

/// Returns a size as the database stores it, at most [`BYTES_MAX`]: sparse files can have any.
fn bytes(size: u64) -> i64 {
    i64::try_from(size).map_or(BYTES_MAX, |size| size.min(BYTES_MAX))
}

/// The values of [`RECORD`].
pub(super) struct End {
    node: i64,
    mark: i64,
    status: &'static str,
    reason: Option<String>,
    directory: Option<String>,
    took: i64,
    ago: i64,
    results: Results,
    bytes: i64,
    succeeded: i64,
    failed: i64,
}

impl End {
    /// `mark`: that of the session.
    pub(super) fn of(node: NodeId, mark: i64, record: &Record) -> End {
        let results = Results::of(&record.results);
        let directory = record.directory.as_deref().map(text);
        End {
            node: node.0,
            mark,
            status: match record.end {
                PageEnd::Sealed => "sealed",
                PageEnd::Cancelled => "cancelled",
            },
            reason: record.reason.as_deref().map(shown),
            directory: directory.filter(|path| path.len() <= bounds::PATH_MAX),
            took: millis(record.times.took),
            ago: millis(record.times.ended_ago),
            bytes: results.bytes(),
            succeeded: results.count(ResultState::Succeeded),
            failed: results.count(ResultState::Failed),
            results,
        }
    }

    pub(super) fn values<'a>(&'a self, record: &'a Record) -> [&'a (dyn ToSql + Sync); 20] {
        [
            &self.node,
            &self.mark,
            &record.page.0,
            &record.epoch.0,
            &self.status,
            &self.reason,
            &self.took,
            &self.ago,
            &self.results.plugins,
            &self.results.hooks,
            &self.results.states,
            &self.results.outputs,
            &self.results.errors,
            &self.results.sizes,
            &self.results.attempts,
            &self.results.took,
            &self.bytes,
            &self.succeeded,
            &self.failed,
            &self.directory,
        ]
    }
}

impl Ledger {
    /// A page without children is one statement, which is its own transaction.
    pub(super) async fn record(&mut self, session: Session, record: &Record) -> Answer<Fate> {
        let end = End::of(session.node, self.mark(session), record);
        let values = end.values(record);
        let values: Values<'_> = &values;
        let row = if record.children.is_empty() {
            self.alone(RECORD, values).await?
        } else {
            let work = self.begin(&[RECORD, CRAWL, LIMITED, INSERT]).await?;
            let row = work.row(RECORD, values).await?;
            if let Some(crawl) = row.get::<_, Option<i64>>(1) {
                let children = &record.children;
                work.insert(CrawlId(crawl), Some(record.page), children).await?;
                work.commit().await?;
            }
            row
        };
        if !row.get::<_, bool>(0) {
            return Err(self.stranger(session).await);
        }
        let is_done = row.get::<_, Option<i64>>(1).is_some();
        Ok(fate(is_done, row.get(2)))
    }

    pub(super) async fn give_back(
        &mut self,
        session: Session,
        page: SnapshotId,
        epoch: Epoch,
    ) -> Answer<Fate> {
        let values: Values<'_> = &[&session.node.0, &self.mark(session), &page.0, &epoch.0];
        let row = self.alone(GIVE_BACK, values).await?;
        if !row.get::<_, bool>(0) {
            return Err(self.stranger(session).await);
        }
        Ok(fate(row.get(1), row.get(2)))
    }
}

fn fate(is_done: bool, was_done: bool) -> Fate {
    match (is_done, was_done) {
        (true, _) => Fate::Done,
        (false, true) => Fate::Already,
        (false, false) => Fate::Stale,
    }
}
