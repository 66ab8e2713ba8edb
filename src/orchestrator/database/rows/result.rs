//! Rows of results: one per owner, plugin and hook.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, Figures, OutputFile, Owner, SnapshotId, Time, Uses, Verdict};
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::staged::{SAVED_HOOK, STAGED_HOOK};
use std::collections::BTreeMap;

/// How a hook ended, as its result records it.
pub struct Finished<'a> {
    pub verdict: &'a Verdict,
    /// Output as the hook states it.
    pub output: Option<&'a str>,
    pub files: &'a [OutputFile],
    /// Bytes of all files.
    pub size: u64,
    pub figures: &'a Figures,
}

columns! {
    HookResult: owner, plugin, hook, status, output, error, files, size, attempts, started_at,
        ended_at, id, figures "coalesce(figures, '{}')"
}

/// SQL condition on a row: its hook was skipped for a program. The index `result_waits` has the same.
const WAITS: &str =
    "result.status = 'skipped' AND result.attempts = 0 AND error GLOB 'program ''*'";
/// The begin of the reason of such a row, up to the end of the name of the program, as that index has it.
const WAITS_FOR: &str = "substr(error, 1, instr(substr(error, 10), '''') + 10)";

/// SQL condition on the hook of a row: it can run again, so that its result may be queued for a retry.
fn is_repeatable(hook: &str) -> String {
    format!("({hook} NOT GLOB '{STAGED_HOOK}*' AND {hook} <> '{SAVED_HOOK}')")
}

pub(crate) const COLUMNS: &str = HookResult::COLUMNS;

fn ids(owner: Owner, crawl: CrawlId) -> (i64, Option<i64>) {
    match owner {
        Owner::Crawl(id) => (id.0, None),
        Owner::Snapshot(SnapshotId(id)) => (crawl.0, Some(id)),
    }
}

fn stored(figures: &Figures) -> Result<Option<String>> {
    let some = (!figures.is_empty()).then(|| serde_json::to_string(figures));
    Ok(some.transpose()?)
}

impl Tx<'_> {
    /// Returns how often hooks of each plugin succeeded and failed, also in attempts that were
    /// retried.
    pub fn uses(&self) -> Result<BTreeMap<String, Uses>> {
        let rows: Vec<(String, u64, u64)> =
            self.all("SELECT plugin, succeeded, failed FROM plugin_use", [])?;
        let uses = rows
            .into_iter()
            .map(|(plugin, succeeded, failed)| (plugin, Uses { succeeded, failed }));
        Ok(uses.collect())
    }

    /// Returns all results of a crawl or snapshot.
    pub fn results(&self, owner: Owner) -> Result<Vec<HookResult>> {
        let sql = format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 ORDER BY id");
        self.all(&sql, [owner.to_string()])
    }

    pub fn result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<Option<HookResult>> {
        let sql =
            format!("SELECT {COLUMNS} FROM result WHERE owner = ?1 AND plugin = ?2 AND hook = ?3");
        self.first(&sql, (owner.to_string(), plugin, hook))
    }

    /// Returns the figures of a hook of the plugin that succeeded.
    pub fn figures(&self, owner: Owner, plugin: &str) -> Result<Option<Figures>> {
        self.first(
            "SELECT coalesce(figures, '{}') FROM result
             WHERE owner = ?1 AND plugin = ?2 AND status = 'succeeded' ORDER BY hook LIMIT 1",
            (owner.to_string(), plugin),
        )
    }

    /// Records a result as started and counts the attempt, before the hook starts. Returns the
    /// number of attempts.
    pub fn start_result(
        &self,
        owner: Owner,
        crawl: CrawlId,
        plugin: &str,
        hook: &str,
        now: Time,
    ) -> Result<u32> {
        let (crawl, snapshot) = ids(owner, crawl);
        self.one(
            "INSERT INTO result
                 (owner, crawl_id, snapshot_id, plugin, hook, status, attempts, started_at, visit)
             VALUES (?1, ?2, ?3, ?4, ?5, 'started', 1, ?6,
                 coalesce((SELECT visit FROM snapshot WHERE id = ?3), 0))
             ON CONFLICT DO UPDATE SET status = 'started', attempts = attempts + 1,
                 visit = excluded.visit, started_at = ?6, ended_at = NULL, error = NULL,
                 output = NULL, figures = NULL
             RETURNING attempts",
            (owner.to_string(), crawl, snapshot, plugin, hook, now.0),
        )
    }

    /// Records a result without a run, such as that of a skipped plugin.
    pub fn note_result(
        &self,
        owner: Owner,
        crawl: CrawlId,
        plugin: &str,
        hook: &str,
        verdict: &Verdict,
        now: Time,
    ) -> Result<()> {
        let (crawl, snapshot) = ids(owner, crawl);
        self.execute(
            "INSERT INTO result
                 (owner, crawl_id, snapshot_id, plugin, hook, status, error, ended_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET status = ?6, error = ?7, ended_at = ?8",
            (
                owner.to_string(),
                crawl,
                snapshot,
                plugin,
                hook,
                verdict.state.as_str(),
                verdict.error.as_deref(),
                now.0,
            ),
        )
    }

    /// Records how a hook ended. Returns `false` if the result was final already; it stays as it
    /// is.
    pub fn finish_result(
        &self,
        owner: Owner,
        plugin: &str,
        hook: &str,
        finished: &Finished<'_>,
        now: Time,
    ) -> Result<bool> {
        let rows = self.change(
            "UPDATE result SET status = ?4, error = ?5, output = ?6, files = ?7, size = ?8,
                 ended_at = ?9, figures = ?10
             WHERE owner = ?1 AND plugin = ?2 AND hook = ?3
                 AND status IN ('queued', 'started', 'backoff')",
            (
                owner.to_string(),
                plugin,
                hook,
                finished.verdict.state.as_str(),
                finished.verdict.error.as_deref(),
                finished.output,
                serde_json::to_string(finished.files)?,
                i64::try_from(finished.size).unwrap_or(i64::MAX),
                now.0,
                stored(finished.figures)?,
            ),
        )?;
        Ok(rows == 1)
    }

    /// Schedules another attempt for a started result.
    pub fn put_off_result(&self, owner: Owner, plugin: &str, hook: &str) -> Result<()> {
        self.execute(
            "UPDATE result SET status = 'backoff'
             WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            (owner.to_string(), plugin, hook),
        )
    }

    /// Schedules another run for a started result, and takes back its attempt: the hook was not
    /// executed.
    pub fn put_off_uncounted(&self, owner: Owner, plugin: &str, hook: &str) -> Result<()> {
        self.execute(
            "UPDATE result SET status = 'backoff', attempts = max(attempts - 1, 0)
             WHERE owner = ?1 AND plugin = ?2 AND hook = ?3 AND status = 'started'",
            (owner.to_string(), plugin, hook),
        )
    }

    /// Schedules another attempt for all started results of an owner: no worker gets the end of
    /// their latest run.
    pub fn put_off_results(&self, owner: Owner) -> Result<()> {
        self.execute(
            "UPDATE result SET status = 'backoff' WHERE owner = ?1 AND status = 'started'",
            [owner.to_string()],
        )
    }

    /// Fails all results of an owner that are not final. Returns how many these were.
    pub fn fail_open_results(&self, owner: Owner, error: &str, now: Time) -> Result<usize> {
        self.change(
            "UPDATE result SET status = 'failed', error = ?2, ended_at = ?3
             WHERE owner = ?1 AND status IN ('queued', 'started', 'backoff')",
            (owner.to_string(), error, now.0),
        )
    }

    /// Queues all results of an owner again. Returns how many these were.
    pub fn requeue_all_results(&self, owner: Owner) -> Result<usize> {
        let repeatable = is_repeatable("hook");
        let sql = format!(
            "UPDATE result SET status = 'queued', error = NULL, output = NULL, figures = NULL,
                 started_at = NULL, ended_at = NULL, attempts = 0
             WHERE owner = ?1 AND {repeatable}"
        );
        self.change(&sql, [owner.to_string()])
    }

    /// Returns sealed pages of the window of ids with a result that was skipped for a program, at most `limit`.
    /// `begin` is that of the reason (`Skip::begin_for`).
    pub fn snapshots_skipped_for(
        &self,
        begin: &str,
        (after, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<(CrawlId, SnapshotId)>> {
        let sql = format!(
            "SELECT DISTINCT page.crawl_id, page.id FROM result INDEXED BY result_waits
             JOIN snapshot AS page ON page.id = snapshot_id JOIN crawl ON crawl.id = page.crawl_id
             WHERE {WAITS_FOR} = ?1 AND snapshot_id > ?2 AND snapshot_id <= ?3 AND {WAITS}
                 AND page.status = 'sealed' AND crawl.status <> 'cancelled'
             ORDER BY snapshot_id LIMIT ?4"
        );
        self.all(&sql, (begin, after, to, i64::try_from(limit).unwrap_or(i64::MAX)))
    }

    /// Returns snapshots that a retry may apply to, in the order of their ids: at most `limit` of
    /// those with ids above `after` and up to `to`. Of a crawl: its final snapshots. Without a
    /// crawl: the sealed snapshots, except those of cancelled crawls; of these, if `failed`, only
    /// those that are incomplete or have a failed result, and those that were cancelled because their
    /// crawl was given up. `hook`, the name of a plugin or hook, limits it to results of that; a hook
    /// that ran and was skipped counts as failed if one of the plugins `loading`, which load pages,
    /// failed.
    pub fn snapshots_to_retry(
        &self,
        crawl: Option<CrawlId>,
        (failed, hook): (bool, Option<&str>),
        loading: &[&str],
        (after, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<(CrawlId, SnapshotId)>> {
        // "+" makes SQLite search by id; with an index of crawl or status it reads all of their
        // rows.
        let repeatable = is_repeatable("r.hook");
        let sql = format!(
            "SELECT s.crawl_id, s.id FROM snapshot s
             WHERE s.id > ?3 AND s.id <= ?4 AND CASE WHEN ?1 IS NULL
                 THEN (+s.status = 'sealed'
                         AND (SELECT status FROM crawl WHERE id = s.crawl_id) <> 'cancelled'
                         AND (NOT ?6 OR (?2 IS NULL AND s.reason IS NOT NULL)
                             OR EXISTS (SELECT 1 FROM result r
                                 WHERE r.owner = 's' || s.id AND {repeatable}
                                     AND (?2 IS NULL OR r.plugin = ?2 OR r.hook = ?2)
                                     AND (r.status = 'failed'
                                         OR (r.status = 'skipped' AND r.attempts > 0
                                             AND EXISTS (SELECT 1 FROM result l
                                                 WHERE l.owner = r.owner AND l.status = 'failed'
                                                     AND l.plugin IN
                                                         (SELECT value FROM json_each(?7))))))))
                     OR (+s.status = 'cancelled' AND ?6 AND ?2 IS NULL
                         AND s.reason = (SELECT reason FROM crawl
                             WHERE id = s.crawl_id AND status = 'sealed'))
                 ELSE +s.crawl_id = ?1 AND +s.status IN ('sealed', 'cancelled') END
             ORDER BY s.id LIMIT ?5"
        );
        self.all(
            &sql,
            (
                crawl.map(|crawl| crawl.0),
                hook,
                after,
                to,
                i64::try_from(limit).unwrap_or(i64::MAX),
                failed,
                serde_json::to_string(loading)?,
            ),
        )
    }

    /// Queues failed and skipped results of an owner again, or all results of `hook`, the name of a
    /// plugin or hook. Returns how many these were.
    pub fn requeue_results(&self, owner: Owner, hook: Option<&str>) -> Result<usize> {
        let repeatable = is_repeatable("hook");
        let sql = format!(
            "UPDATE result SET status = 'queued', error = NULL, output = NULL, figures = NULL,
                 started_at = NULL, ended_at = NULL, attempts = 0
             WHERE owner = ?1 AND {repeatable} AND (?2 IS NULL OR plugin = ?2 OR hook = ?2)
                 AND (status IN ('failed', 'skipped') OR ?2 IS NOT NULL)
                 AND status NOT IN ('queued', 'started')"
        );
        self.change(&sql, (owner.to_string(), hook))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, NewCrawl, NewSnapshot};
    use archivist_core::model::ResultState;

    #[test]
    fn results_of_another_program_are_not_queued_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let new_crawl = NewCrawl {
            url: "http://a.test/",
            max_depth: 0,
            plugins: &[],
            config: &BTreeMap::new(),
            user: 0,
            now: Time(1),
        };
        let crawl = tx.add_crawl(&new_crawl).unwrap();
        let page = NewSnapshot { url: "http://a.test/", host: "a.test", ..NewSnapshot::default() };
        let added = tx.add_snapshots(crawl, None, &[page], Time(1)).unwrap();
        let owner = Owner::Snapshot(added[0].0);
        let failed = Verdict { state: ResultState::Failed, error: Some("why".to_owned()) };
        let second = format!("{STAGED_HOOK}-2");
        for hook in [STAGED_HOOK, &second, SAVED_HOOK] {
            tx.note_result(owner, crawl, "wget", hook, &failed, Time(2)).unwrap();
        }
        for hook in [None, Some("wget"), Some(STAGED_HOOK), Some(SAVED_HOOK)] {
            assert_eq!(tx.requeue_results(owner, hook).unwrap(), 0, "{hook:?}");
        }
        assert_eq!(tx.requeue_all_results(owner).unwrap(), 0);
        tx.note_result(owner, crawl, "wget", "on_Snapshot__06_wget", &failed, Time(2)).unwrap();
        assert_eq!(tx.requeue_results(owner, None).unwrap(), 1);
    }
}
