//! Web hosts with the results of their newest pages.

use crate::database::column::{FromRow, column};
use crate::database::{Result, Tx};
use archivist_core::model::{Owner, Uses};
use archivist_shared::bus::documents::report::{Filter, Host};
use rusqlite::Row;
use rusqlite::types::Value;

/// Results that count: the newest of the archive, or of one crawl or snapshot. Counting them takes
/// about 20 ms, however many the archive has.
const RESULTS_COUNTED: u32 = 10_000;

impl FromRow for Host {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Host> {
        Ok(Host {
            name: column(row, 0)?,
            pages: column(row, 1)?,
            uses: Uses { succeeded: column(row, 2)?, failed: column(row, 3)? },
            used_at: column(row, 4)?,
            last_result: column(row, 5)?,
            delay_ms: column(row, 6)?,
            asked: column(row, 7)?,
            open: None,
            node: None,
            leased_until: None,
        })
    }
}

impl Tx<'_> {
    /// Returns the hosts of the newest results, the one that was used last first.
    pub fn list_hosts(&self, filter: &Filter) -> Result<Vec<Host>> {
        let (of, id) = match filter.owner {
            Some(Owner::Crawl(id)) => ("WHERE crawl_id = ?1", Value::from(id.0)),
            Some(owner) => ("WHERE owner = ?1", Value::from(owner.to_string())),
            None => ("WHERE ?1 IS NULL", Value::Null),
        };
        let limit = match filter.limit {
            0 => -1,
            limit => i64::from(limit),
        };
        let sql = format!(
            "SELECT host.name, count(DISTINCT snapshot.id),
                    sum(r.status IN ('succeeded', 'noresults')), sum(r.status = 'failed'),
                    max(r.started_at), max(r.id) AS last, host.crawl_delay, host.asked
             FROM (SELECT id, snapshot_id, status, started_at FROM result {of}
                   ORDER BY id DESC LIMIT {RESULTS_COUNTED}) r
             JOIN snapshot ON snapshot.id = r.snapshot_id JOIN host ON host.id = snapshot.host_id
             GROUP BY host.id HAVING last < ?2 ORDER BY last DESC LIMIT ?3"
        );
        let before = filter.before.unwrap_or(i64::MAX);
        self.all(&sql, (id, before, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Finished, NewCrawl, NewSnapshot};
    use archivist_core::model::{CrawlId, ResultState, Time, Verdict};

    /// Adds a page of a host with the result of one hook.
    fn page(tx: &Tx<'_>, crawl: CrawlId, (host, url): (&str, &str), state: ResultState) {
        let page = NewSnapshot { url, host, ..NewSnapshot::default() };
        let added = tx.add_snapshots(crawl, None, &[page], Time(0)).unwrap();
        let owner = Owner::Snapshot(added[0].0);
        tx.start_result(owner, crawl, "wget", "hook", Time(7)).unwrap();
        let verdict = Verdict { state, error: None };
        let finished = Finished {
            verdict: &verdict,
            output: None,
            files: &[],
            size: 0,
            figures: &Default::default(),
        };
        tx.finish_result(owner, "wget", "hook", &finished, Time(8)).unwrap();
    }

    #[test]
    fn hosts_of_the_newest_results_with_their_counts() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let add = || {
            let new = NewCrawl {
                url: "https://a/",
                max_depth: 0,
                plugins: &[],
                config: &Default::default(),
                user: 0,
                now: Time(0),
            };
            tx.add_crawl(&new).unwrap()
        };
        let (first, second) = (add(), add());
        page(&tx, first, ("a", "https://a/1"), ResultState::Succeeded);
        page(&tx, first, ("b", "https://b/1"), ResultState::Failed);
        page(&tx, second, ("a", "https://a/2"), ResultState::Failed);
        page(&tx, second, ("c", "https://c/1"), ResultState::Skipped);
        let list = |filter: Filter| {
            let hosts = tx.list_hosts(&filter).unwrap().into_iter();
            let line = |host: Host| {
                let uses = host.uses;
                format!(
                    "{} {} {}/{} {}",
                    host.name, host.pages, uses.succeeded, uses.failed, host.last_result
                )
            };
            hosts.map(line).collect::<Vec<_>>()
        };
        let all = Filter::default();
        assert_eq!(list(all.clone()), ["c 1 0/0 4", "a 2 1/1 3", "b 1 0/1 2"]);
        let of = |owner| Filter { owner: Some(owner), ..Filter::default() };
        assert_eq!(list(of(Owner::Crawl(first))), ["b 1 0/1 2", "a 1 1/0 1"]);
        assert_eq!(list(of("s3".parse().unwrap())), ["a 1 0/1 3"]);
        let next = Filter { before: Some(3), limit: 1, ..all };
        assert_eq!(list(next), ["b 1 0/1 2"]);
    }
}
