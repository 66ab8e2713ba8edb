//! Rows as people see them.

mod timeline;
mod watches;

use super::{Result, StoreError, Tx};
use crate::store::rows::crawl::parse_status;
use crate::store::rows::result;
use archivist_core::model::{Accounting, CrawlId, Lifecycle, Owner, RunId};
use archivist_core::model::{SnapshotId, Time, shown_setting, without_userinfo};
use archivist_shared::bus::documents::report::{
    ANSWER_BYTES, Counts, Crawl, Filter, HookResult, Run, Snapshot,
};
use rusqlite::Row;
use rusqlite::types::Value;
use std::collections::BTreeMap;

/// Builds `WHERE … ORDER BY … LIMIT …` of a list.
struct Query {
    sql: String,
    values: Vec<Value>,
}

impl Query {
    fn new(sql: String) -> Query {
        Query {
            sql: format!("{sql} WHERE 1"),
            values: Vec::new(),
        }
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.sql
            .push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    fn newest_first(&mut self, filter: &Filter) {
        if let Some(before) = filter.before {
            self.and("id <", before);
        }
        self.sql.push_str(" ORDER BY id DESC");
        if filter.limit > 0 {
            self.sql.push_str(&format!(" LIMIT {}", filter.limit));
        }
    }
}

/// Room that the rows of one answer have left, by the lengths of their texts: an answer has as many
/// rows as were asked for or [`ANSWER_BYTES`] of them, and one at least. Where all rows are asked for
/// they are not for an answer.
struct Room(usize);

impl Room {
    fn of(filter: &Filter) -> Room {
        Room(match filter.limit {
            0 => usize::MAX,
            _ => ANSWER_BYTES,
        })
    }

    /// Takes a row of so many bytes; false once the answer has enough.
    fn take(&mut self, size: usize) -> bool {
        self.0 = self.0.saturating_sub(size);
        self.0 > 0
    }
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn lengths<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(String::len).sum()
}

/// The rest of a long list is found along the ids, from where the last piece ended: by way of the crawl's index all of its rows
/// would be sorted for each piece.
fn of_crawl(filter: &Filter) -> &'static str {
    match filter.before {
        Some(_) => "+crawl_id =",
        None => "crawl_id =",
    }
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Time))
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .and_then(|value| u64::try_from(value).ok()))
}

impl Tx<'_> {
    pub fn list_crawls(&self, filter: &Filter) -> Result<Vec<Crawl>> {
        let mut query = Query::new(
            "SELECT id, status, reason, url, max_depth, plugins, config, created_at, started_at,
                    ended_at, retry_at, attempts, directory FROM crawl"
                .to_owned(),
        );
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        if let Some(Owner::Crawl(id)) = filter.owner {
            query.and("id =", id.0);
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut crawls = Vec::new();
        let mut room = Room::of(filter);
        while let Some(row) = rows.next()? {
            let id = CrawlId(row.get(0)?);
            let (status, plugins, config): (String, String, String) =
                (row.get(1)?, row.get(5)?, row.get(6)?);
            let size = plugins.len() + config.len();
            crawls.push(Crawl {
                id,
                status: parse_status(&status)?,
                reason: row.get(2)?,
                url: without_userinfo(&row.get::<_, String>(3)?),
                max_depth: row.get(4)?,
                tags: self.tags("crawl", id.0)?,
                plugins: serde_json::from_str(&plugins)?,
                config: shown_settings(&config)?,
                created_at: Time(row.get(7)?),
                started_at: time(row, 8)?,
                ended_at: time(row, 9)?,
                retry_at: time(row, 10)?,
                attempts: row.get(11)?,
                snapshots: self.counts("snapshot", Some(id))?,
                results: self.result_counts(Owner::Crawl(id))?,
                directory: row.get(12)?,
            });
            if !room.take(size) {
                break;
            }
        }
        Ok(crawls)
    }

    pub fn list_snapshots(&self, filter: &Filter) -> Result<Vec<Snapshot>> {
        let mut query = Query::new(
            "SELECT id, crawl_id, url, title, depth, parent_id, status, reason, created_at,
                    started_at, ended_at, retry_at, attempts, directory, bookmarked_at
             FROM snapshot"
                .to_owned(),
        );
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and(of_crawl(filter), id.0),
            Some(Owner::Snapshot(id)) => query.and("id =", id.0),
            None => {}
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut snapshots = Vec::new();
        let mut room = Room::of(filter);
        while let Some(row) = rows.next()? {
            let id = SnapshotId(row.get(0)?);
            let status: String = row.get(6)?;
            let snapshot = Snapshot {
                id,
                crawl: CrawlId(row.get(1)?),
                url: without_userinfo(&row.get::<_, String>(2)?),
                title: row.get(3)?,
                depth: row.get(4)?,
                parent: row.get::<_, Option<i64>>(5)?.map(SnapshotId),
                status: parse_status(&status)?,
                reason: row.get(7)?,
                tags: self.tags("snapshot", id.0)?,
                created_at: Time(row.get(8)?),
                started_at: time(row, 9)?,
                ended_at: time(row, 10)?,
                retry_at: time(row, 11)?,
                attempts: row.get(12)?,
                results: self.result_counts(Owner::Snapshot(id))?,
                directory: row.get(13)?,
                bookmarked_at: row.get(14)?,
                current_step: None,
            };
            let size = snapshot.url.len() + length(&snapshot.title) + lengths(&snapshot.tags);
            snapshots.push(snapshot);
            if !room.take(size) {
                break;
            }
        }
        Ok(snapshots)
    }

    pub fn list_results(&self, filter: &Filter) -> Result<Vec<HookResult>> {
        let mut query = Query::new(format!("SELECT {} FROM result", result::COLUMNS));
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and(of_crawl(filter), id.0),
            Some(owner) => query.and("owner =", owner.to_string()),
            None => {}
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(query.values), result::read)?;
        let mut results = Vec::new();
        let mut room = Room::of(filter);
        for row in rows {
            let result = result::complete(row?)?;
            let paths = lengths(result.files.iter().map(|file| &file.path));
            let size = length(&result.output) + length(&result.error) + paths;
            results.push(result);
            if !room.take(size) {
                break;
            }
        }
        Ok(results)
    }

    pub fn list_runs(&self, filter: &Filter) -> Result<Vec<Run>> {
        let mut query = Query::new(
            "SELECT id, unit, kind, owner, plugin, hook, attempt, status, outcome, invocation,
                    started_at, ended_at, argv, cpu_usec, memory_peak, io_read, io_write, ip_in,
                    ip_out FROM run"
                .to_owned(),
        );
        match filter.status.as_deref() {
            // A literal, so that the index of open runs can serve it.
            Some("open") => query.sql.push_str(" AND status <> 'ended'"),
            Some(status) => query.and("status =", status.to_owned()),
            None => {}
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and(of_crawl(filter), id.0),
            Some(owner) => query.and("owner =", owner.to_string()),
            None => {}
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut runs = Vec::new();
        let mut room = Room::of(filter);
        while let Some(row) = rows.next()? {
            let run = read_run(row)?;
            let size = lengths(&run.argv);
            runs.push(run);
            if !room.take(size) {
                break;
            }
        }
        Ok(runs)
    }

    /// How many results of a crawl, with those of its pages, or of a page have a status.
    pub fn result_counts(&self, owner: Owner) -> Result<Counts> {
        if let Owner::Crawl(id) = owner {
            return self.counts("result", Some(id));
        }
        let mut statement = self.inner.prepare_cached(
            "SELECT status, count(*) FROM result WHERE owner = ?1 GROUP BY status",
        )?;
        let rows = statement.query_map([owner.to_string()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0) as u64))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn tags(&self, table: &str, id: i64) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT name FROM tag JOIN {table}_tag ON tag.id = tag_id
             WHERE {table}_id = ?1 ORDER BY name"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map([id], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether there is such a crawl or snapshot, and where it stands.
    pub fn status_of(&self, owner: Owner) -> Result<Lifecycle> {
        let found = match owner {
            Owner::Crawl(id) => self.crawl(id)?.map(|crawl| crawl.status),
            Owner::Snapshot(id) => self.snapshot(id)?.map(|snapshot| snapshot.status),
        };
        found.ok_or_else(|| {
            StoreError::NoSuch(match owner {
                Owner::Crawl(id) => format!("crawl {id}"),
                Owner::Snapshot(id) => format!("snapshot {id}"),
            })
        })
    }
}

/// Settings of a crawl as people may read them.
fn shown_settings(config: &str) -> Result<BTreeMap<String, String>> {
    let mut config: BTreeMap<String, String> = serde_json::from_str(config)?;
    for (name, value) in &mut config {
        *value = shown_setting(name, value);
    }
    Ok(config)
}

/// The arguments of a run as people may read them.
pub(super) fn shown_arguments(argv: &str) -> Result<Vec<String>> {
    let argv: Vec<String> = serde_json::from_str(argv)?;
    Ok(argv.iter().map(|text| without_userinfo(text)).collect())
}

fn read_run(row: &Row<'_>) -> Result<Run> {
    let (owner, argv): (String, String) = (row.get(3)?, row.get(12)?);
    let outcome: Option<String> = row.get(8)?;
    let corrupt = |_| StoreError::Corrupt {
        what: "id",
        text: owner.clone(),
    };
    Ok(Run {
        id: RunId(row.get(0)?),
        unit: row.get(1)?,
        kind: row.get(2)?,
        owner: owner.parse().map_err(corrupt)?,
        plugin: row.get(4)?,
        hook: row.get(5)?,
        attempt: row.get(6)?,
        status: row.get(7)?,
        outcome: outcome
            .map(|text| serde_json::from_str(&text))
            .transpose()?,
        invocation: row.get(9)?,
        started_at: time(row, 10)?,
        ended_at: time(row, 11)?,
        argv: shown_arguments(&argv)?,
        accounting: Accounting {
            cpu_usec: count(row, 13)?,
            memory_peak: count(row, 14)?,
            io_read: count(row, 15)?,
            io_write: count(row, 16)?,
            ip_in: count(row, 17)?,
            ip_out: count(row, 18)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{NewCrawl, NewSnapshot, Store};
    use archivist_core::model::{CrawlId, PAGE_TAGS_MAX};

    fn crawl(tx: &Tx<'_>, url: &str) -> CrawlId {
        let new = NewCrawl {
            url,
            max_depth: 0,
            plugins: &[],
            config: &Default::default(),
            user: 0,
            now: Time(0),
        };
        tx.add_crawl(&new).unwrap()
    }

    #[test]
    fn the_newest_first_and_the_rest_piece_by_piece() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        for url in ["https://a/", "https://b/", "https://c/", "https://d/"] {
            crawl(&tx, url);
        }
        let list = |before, limit| {
            let filter = Filter {
                before,
                limit,
                ..Filter::default()
            };
            let crawls = tx.list_crawls(&filter).unwrap();
            crawls.iter().map(|crawl| crawl.id.0).collect::<Vec<_>>()
        };
        assert_eq!(list(None, 0), [4, 3, 2, 1]);
        assert_eq!(list(None, 3), [4, 3, 2]);
        assert_eq!(list(Some(2), 3), [1]);
        assert_eq!(list(Some(1), 3), [0i64; 0]);
    }

    #[test]
    fn an_answer_ends_where_it_is_long_enough() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        let crawl = crawl(&tx, "https://a/");
        let title = "t".repeat(ANSWER_BYTES / 4);
        let urls: Vec<String> = (0..12).map(|n| format!("https://a/{n}")).collect();
        for url in &urls {
            let page = NewSnapshot {
                url,
                host: "a",
                title: Some(&title),
                ..NewSnapshot::default()
            };
            let added = tx.add_snapshots(crawl, None, &[page], Time(0)).unwrap();
            for n in 0..PAGE_TAGS_MAX + 9 {
                tx.tag_snapshot(added[0].0, &n.to_string()).unwrap();
            }
        }
        let mut filter = Filter {
            limit: 1000,
            ..Filter::default()
        };
        let mut sizes = Vec::new();
        loop {
            let piece = tx.list_snapshots(&filter).unwrap();
            let Some(last) = piece.last() else { break };
            assert_eq!(last.tags.len(), PAGE_TAGS_MAX);
            filter.before = Some(last.id.0);
            sizes.push(piece.len());
        }
        assert_eq!(sizes, [4, 4, 4]);
    }

    #[test]
    fn the_rest_of_a_crawl_has_none_of_another() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        let crawls = [crawl(&tx, "https://a/"), crawl(&tx, "https://b/")];
        // Of one crawl the odd ids, of the other the even ones.
        for n in 0..10 {
            let page = NewSnapshot {
                url: &format!("https://a/{n}"),
                host: "a",
                ..NewSnapshot::default()
            };
            let added = tx.add_snapshots(crawls[n % 2], None, &[page], Time(0));
            assert_eq!(added.unwrap().len(), 1);
        }
        let list = |before, limit| {
            let filter = Filter {
                owner: Some(Owner::Crawl(crawls[0])),
                before,
                limit,
                ..Filter::default()
            };
            let snapshots = tx.list_snapshots(&filter).unwrap();
            snapshots.iter().map(|s| s.id.0).collect::<Vec<_>>()
        };
        assert_eq!(list(None, 2), [9, 7]);
        assert_eq!(list(Some(7), 2), [5, 3]);
        assert_eq!(list(Some(3), 2), [1]);
    }
}
