//! The time line of a crawl or snapshot: its runs in pieces, oldest first.

use crate::database::column::{FromRow, column};
use crate::database::{Result, RunState, Tx};
use archivist_core::model::{Owner, without_userinfo};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::report::{Filter, Span, SpanPage};
use rusqlite::Row;

const COLUMNS: &str = "run.id, run.unit, run.kind, run.owner, run.plugin, run.hook, run.attempt,
    run.status, run.outcome, run.recorded_at, run.started_at, run.ready_at, run.ended_at,
    run.cpu_usec, run.memory_peak, page.url, page.title, page.depth, page.created_at,
    CASE WHEN run.hook IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM run later WHERE later.owner = run.owner AND later.id > run.id
            AND later.plugin = run.plugin AND later.hook = run.hook)
    THEN (SELECT result.status FROM result WHERE result.owner = run.owner
            AND result.plugin = run.plugin AND result.hook = run.hook) END";

impl Tx<'_> {
    /// Returns the runs of a crawl and its snapshots, or of a snapshot, after `filter.after`, at
    /// most `filter.limit` of them.
    pub fn list_spans(&self, filter: &Filter) -> Result<Vec<Span>> {
        let after = filter.after.map_or(0, |run| run.0);
        let limit = match filter.limit {
            0 => i64::MAX,
            limit => i64::from(limit),
        };
        let (condition, owner): (&str, rusqlite::types::Value) = match filter.owner {
            Some(Owner::Crawl(id)) => ("run.crawl_id = ?1", id.0.into()),
            Some(owner) => ("run.owner = ?1", owner.to_string().into()),
            None => ("?1 IS NULL", rusqlite::types::Value::Null),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM run
             LEFT JOIN snapshot page ON run.kind = 'snapshot' AND page.id = run.snapshot_id
             WHERE {condition} AND run.id > ?2 ORDER BY run.id LIMIT ?3"
        );
        self.all(&sql, (owner, after, limit))
    }
}

impl FromRow for Span {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Span> {
        let url: Option<String> = column(row, 15)?;
        let page = match url {
            None => None,
            Some(url) => Some(SpanPage {
                url: without_userinfo(&url),
                title: column(row, 16)?,
                depth: column(row, 17)?,
                created_at: column(row, 18)?,
            }),
        };
        Ok(Span {
            id: column(row, 0)?,
            unit: column(row, 1)?,
            kind: column::<UnitKind>(row, 2)?.as_str().to_owned(),
            owner: column(row, 3)?,
            plugin: column(row, 4)?,
            hook: column(row, 5)?,
            attempt: column(row, 6)?,
            status: column::<RunState>(row, 7)?.as_str().to_owned(),
            outcome: column(row, 8)?,
            recorded_at: Some(column(row, 9)?),
            started_at: column(row, 10)?,
            ready_at: column(row, 11)?,
            ended_at: column(row, 12)?,
            cpu_usec: column(row, 13)?,
            memory_peak: column(row, 14)?,
            verdict: column(row, 19)?,
            page,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, NewCrawl, NewRun, NewSnapshot};
    use archivist_core::model::{CrawlId, Outcome, Reading, ResultState, RunId, SnapshotId, Time};
    use std::collections::BTreeMap;

    const PAGE: Owner = Owner::Snapshot(SnapshotId(1));

    fn run(kind: UnitKind, owner: Owner, hook: Option<&'static str>, now: i64) -> NewRun<'static> {
        NewRun {
            kind,
            owner,
            crawl: CrawlId(1),
            plugin: hook,
            hook,
            attempt: 1,
            unit: "u.service",
            boot: "b",
            argv: &[],
            parent: None,
            directory: None,
            limit: None,
            environment: Default::default(),
            not_after: None,
            now: Time(now),
        }
    }

    /// Records four runs: of a crawl's worker, of its snapshot's worker, and of two attempts of a
    /// hook.
    fn filled(tx: &Tx<'_>) -> Vec<RunId> {
        tx.add_crawl(&NewCrawl {
            url: "https://a/",
            max_depth: 0,
            plugins: &[],
            config: &BTreeMap::new(),
            user: 0,
            now: Time(5),
        })
        .unwrap();
        let page = NewSnapshot { url: "https://a/", host: "a", ..NewSnapshot::default() };
        tx.add_snapshots(CrawlId(1), None, &[page], Time(5)).unwrap();
        let of_crawl = run(UnitKind::CrawlWorker, Owner::Crawl(CrawlId(1)), None, 10);
        let hook = |now| run(UnitKind::Hook, PAGE, Some("wget"), now);
        let all = [of_crawl, run(UnitKind::SnapshotWorker, PAGE, None, 20), hook(30), hook(40)];
        let mut ids = Vec::new();
        for new in &all {
            let id = tx.record_run(new).unwrap();
            let reading = Reading {
                started: Some(Time(new.now.0 + 3)),
                ended: Some(Time(new.now.0 + 9)),
                ..Reading::default()
            };
            tx.end_run(id, &Outcome::Exit(0), &reading, Time(0)).unwrap();
            ids.push(id);
        }
        tx.start_result(PAGE, CrawlId(1), "wget", "wget", Time(30)).unwrap();
        tx.set_run_ready(PAGE, "wget", "wget", Time(45)).unwrap();
        ids
    }

    #[test]
    fn time_line_is_oldest_first_and_in_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let ids = filled(&tx);
        let list = |owner, after, limit| {
            let filter = Filter { owner: Some(owner), after, limit, ..Filter::default() };
            tx.list_spans(&filter).unwrap()
        };
        let crawl = Owner::Crawl(CrawlId(1));
        let first = list(crawl, None, 3);
        assert_eq!(first.iter().map(|s| s.id).collect::<Vec<_>>(), ids[..3]);
        assert_eq!(first[1].page.as_ref().unwrap().created_at, Time(5));
        assert!(first[0].page.is_none() && first[2].page.is_none());
        let rest = list(crawl, Some(ids[2]), 3);
        let last = &rest[0];
        assert_eq!((rest.len(), last.id), (1, ids[3]));
        let times = [last.recorded_at, last.started_at, last.ready_at, last.ended_at];
        assert_eq!(times, [40, 43, 45, 49].map(|ms| Some(Time(ms))));
        assert_eq!(last.verdict, Some(ResultState::Started));
        let of_page = list(PAGE, None, 0);
        assert_eq!(of_page.len(), 3);
        assert_eq!(of_page[1].verdict, None, "the result is that of the later attempt");
        assert_eq!(of_page[1].ready_at, None);
    }
}
