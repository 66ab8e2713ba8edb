//! Lists of rows, newest first. They are documents of the bus, which are for users: without user names and
//! passwords in URLs, and without secret settings.

mod checks;
mod hosts;
mod timeline;

use super::column::{column, counter, json, optional, optional_json};
use super::{Counts, Result, StoreError, Tx};
use crate::store::RunState;
use crate::store::rows::complete::INCOMPLETE;
use crate::store::rows::result::{self, ResultRow};
use archivist_core::model::{Accounting, CrawlId, Lifecycle, Owner, SnapshotId, Uses};
use archivist_core::model::{shown_setting, without_userinfo};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::report::{ANSWER_BYTES, Crawl, Filter, Run, Snapshot};
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
        self.limit(filter);
    }

    /// The newest crawls first. In a fleet, each node reserves ids in blocks, so their order is not that of
    /// time.
    fn newest_crawls_first(&mut self, filter: &Filter) {
        if let Some(before) = filter.before {
            self.values.push(before.into());
            self.sql.push_str(&format!(
                " AND (created_at, id) < ((SELECT created_at FROM crawl WHERE id = ?{0}), ?{0})",
                self.values.len()
            ));
        }
        self.sql.push_str(" ORDER BY created_at DESC, id DESC");
        self.limit(filter);
    }

    fn limit(&mut self, filter: &Filter) {
        if filter.limit > 0 {
            self.sql.push_str(&format!(" LIMIT {}", filter.limit));
        }
    }
}

/// Bytes of text that a list may still grow by. It has at least one row.
struct BytesLeft(usize);

impl BytesLeft {
    /// A limited list is for an answer over the bus and ends at [`ANSWER_BYTES`]; an unlimited one is for
    /// the orchestrator itself.
    fn of(filter: &Filter) -> BytesLeft {
        BytesLeft(if filter.limit == 0 {
            usize::MAX
        } else {
            ANSWER_BYTES
        })
    }

    /// Counts the texts of a row, in bytes. Returns false once the list is full.
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

impl Tx<'_> {
    /// Returns crawls, the newest first.
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
        query.newest_crawls_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut crawls = Vec::new();
        let mut left = BytesLeft::of(filter);
        while let Some(row) = rows.next()? {
            let id: CrawlId = column(row, 0)?;
            let results = self.result_counts(Owner::Crawl(id))?;
            let crawl = Crawl {
                id,
                status: column(row, 1)?,
                reason: row.get(2)?,
                url: shown_url(row, 3)?,
                max_depth: row.get(4)?,
                tags: self.tags("crawl", id.0)?,
                plugins: json(row, 5)?,
                config: shown_settings(json(row, 6)?),
                created_at: column(row, 7)?,
                started_at: optional(row, 8)?,
                ended_at: optional(row, 9)?,
                retry_at: optional(row, 10)?,
                attempts: row.get(11)?,
                snapshots: self.counts("snapshot", Some(id))?,
                incomplete: self.incomplete_pages(Some(id))?,
                uses: Uses::of_results(&results),
                results,
                directory: row.get(12)?,
                nodes: Vec::new(),
            };
            let settings = crawl
                .config
                .iter()
                .map(|(key, value)| key.len() + value.len());
            let size = lengths(&crawl.plugins) + settings.sum::<usize>();
            crawls.push(crawl);
            if !left.take(size) {
                break;
            }
        }
        Ok(crawls)
    }

    /// Returns snapshots, the newest first.
    pub fn list_snapshots(&self, filter: &Filter) -> Result<Vec<Snapshot>> {
        let mut query = Query::new(
            "SELECT id, crawl_id, url, title, depth, parent_id, status, reason, created_at,
                    started_at, ended_at, retry_at, attempts, directory, bookmarked_at,
                    http_status, config
             FROM snapshot"
                .to_owned(),
        );
        match filter.status.as_deref() {
            Some("incomplete") => query.sql.push_str(&format!(" AND {INCOMPLETE}")),
            Some(status) => query.and("status =", status.to_owned()),
            None => {}
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and("crawl_id =", id.0),
            Some(Owner::Snapshot(id)) => query.and("id =", id.0),
            None => {}
        }
        if let Some(http) = filter.http {
            query.and("http_status >=", i64::from(http.from));
            query.and("http_status <=", i64::from(http.to));
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut snapshots = Vec::new();
        let mut left = BytesLeft::of(filter);
        while let Some(row) = rows.next()? {
            let id: SnapshotId = column(row, 0)?;
            let results = self.result_counts(Owner::Snapshot(id))?;
            let snapshot = Snapshot {
                id,
                crawl: column(row, 1)?,
                url: shown_url(row, 2)?,
                title: row.get(3)?,
                depth: row.get(4)?,
                parent: optional(row, 5)?,
                status: column(row, 6)?,
                reason: row.get(7)?,
                tags: self.tags("snapshot", id.0)?,
                created_at: column(row, 8)?,
                started_at: optional(row, 9)?,
                ended_at: optional(row, 10)?,
                retry_at: optional(row, 11)?,
                attempts: row.get(12)?,
                uses: Uses::of_results(&results),
                results,
                directory: row.get(13)?,
                bookmarked_at: row.get(14)?,
                http_status: row.get(15)?,
                config: shown_settings(optional_json(row, 16)?.unwrap_or_default()),
                current_step: None,
                node: None,
                older_copies: Vec::new(),
            };
            let size = snapshot.url.len() + length(&snapshot.title) + lengths(&snapshot.tags);
            snapshots.push(snapshot);
            if !left.take(size) {
                break;
            }
        }
        Ok(snapshots)
    }

    /// Returns results, the newest first.
    pub fn list_results(&self, filter: &Filter) -> Result<Vec<ResultRow>> {
        let mut query = Query::new(format!("SELECT {} FROM result", result::COLUMNS));
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and("crawl_id =", id.0),
            Some(owner) => query.and("owner =", owner.to_string()),
            None => {}
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(query.values), result::read)?;
        let mut results = Vec::new();
        let mut left = BytesLeft::of(filter);
        for row in rows {
            let result = row?;
            let paths = lengths(result.files.iter().map(|file| &file.path));
            let size = length(&result.output) + length(&result.error) + paths;
            results.push(result);
            if !left.take(size) {
                break;
            }
        }
        Ok(results)
    }

    /// Returns runs, the newest first.
    pub fn list_runs(&self, filter: &Filter) -> Result<Vec<Run>> {
        let mut query = Query::new(
            "SELECT id, unit, kind, owner, plugin, hook, attempt, status, outcome, invocation,
                    started_at, ended_at, argv, cpu_usec, memory_peak, io_read, io_write, ip_in,
                    ip_out, parent_id, directory, time_limit FROM run"
                .to_owned(),
        );
        // Checks have a list of their own.
        query.sql.push_str(" AND crawl_id IS NOT NULL");
        match filter.status.as_deref() {
            // A literal, so that the index of open runs can serve it.
            Some("open") => query.sql.push_str(" AND status IN ('starting', 'running')"),
            Some(status) => query.and("status =", status.to_owned()),
            None => {}
        }
        match filter.owner {
            Some(Owner::Crawl(id)) => query.and("crawl_id =", id.0),
            Some(owner) => query.and("owner =", owner.to_string()),
            None => {}
        }
        query.newest_first(filter);
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(query.values))?;
        let mut runs = Vec::new();
        let mut left = BytesLeft::of(filter);
        while let Some(row) = rows.next()? {
            let run = read_run(row)?;
            let size = lengths(&run.argv);
            runs.push(run);
            if !left.take(size) {
                break;
            }
        }
        Ok(runs)
    }

    /// Returns how many results of a snapshot, or of a crawl and its snapshots, have each status.
    pub fn result_counts(&self, owner: Owner) -> Result<Counts> {
        if let Owner::Crawl(id) = owner {
            return self.counts("result", Some(id));
        }
        let mut statement = self.inner.prepare_cached(
            "SELECT status, count(*) FROM result WHERE owner = ?1 GROUP BY status",
        )?;
        let rows = statement.query_map([owner.to_string()], |row| {
            Ok((row.get(0)?, counter(row, 1)?.unwrap_or(0)))
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

    /// Returns the status of a crawl or snapshot.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] if there is none.
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

/// A URL without user name and password.
fn shown_url(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    Ok(without_userinfo(&row.get::<_, String>(index)?))
}

/// Settings without secrets.
fn shown_settings(config: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = config.into_iter().map(|(name, value)| {
        let value = shown_setting(&name, &value);
        (name, value)
    });
    shown.collect()
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let argv: Vec<String> = json(row, 12)?;
    Ok(Run {
        id: column(row, 0)?,
        unit: row.get(1)?,
        kind: column::<UnitKind>(row, 2)?.as_str().to_owned(),
        owner: column(row, 3)?,
        plugin: row.get(4)?,
        hook: row.get(5)?,
        attempt: row.get(6)?,
        status: column::<RunState>(row, 7)?.as_str().to_owned(),
        outcome: optional_json(row, 8)?,
        invocation: row.get(9)?,
        started_at: optional(row, 10)?,
        ended_at: optional(row, 11)?,
        argv: argv.iter().map(|text| without_userinfo(text)).collect(),
        accounting: Accounting {
            cpu_usec: counter(row, 13)?,
            memory_peak: counter(row, 14)?,
            io_read: counter(row, 15)?,
            io_write: counter(row, 16)?,
            ip_in: counter(row, 17)?,
            ip_out: counter(row, 18)?,
        },
        parent: optional(row, 19)?,
        directory: row.get(20)?,
        limit: counter(row, 21)?.map(|millis| millis / 1000),
        environment: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rows::fleet::GivenCrawl;
    use crate::store::{NewCrawl, NewRun, NewSnapshot, Store};
    use archivist_core::model::{PAGE_TAGS_MAX, Time};

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
    fn list_is_newest_first_and_continues_before_an_id() {
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
    fn documents_of_crawls_pages_and_runs_have_no_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        let url = "https://user:secret@a.example/";
        let config = [("API_KEY", "secret"), ("TIMEOUT", "30")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let crawl = NewCrawl {
            url,
            max_depth: 0,
            plugins: &[],
            config: &config.into(),
            user: 0,
            now: Time(0),
        };
        let crawl = tx.add_crawl(&crawl).unwrap();
        let page = NewSnapshot {
            url,
            host: "a.example",
            ..NewSnapshot::default()
        };
        let page = tx.add_snapshots(crawl, None, &[page], Time(0)).unwrap()[0].0;
        tx.record_run(&NewRun {
            kind: UnitKind::Hook,
            owner: Owner::Snapshot(page),
            crawl,
            plugin: Some("wget"),
            hook: Some("wget"),
            attempt: 1,
            unit: "archivist-hook-wget-s1.service",
            boot: "boot",
            argv: &["wget".to_owned(), url.to_owned()],
            parent: None,
            directory: None,
            limit: None,
            environment: Default::default(),
            not_after: None,
            now: Time(0),
        })
        .unwrap();
        let all = Filter::default();
        let crawls = tx.list_crawls(&all).unwrap();
        let (pages, runs) = (
            tx.list_snapshots(&all).unwrap(),
            tx.list_runs(&all).unwrap(),
        );
        let text = serde_json::to_string(&(&crawls, &pages, &runs)).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(crawls[0].config["TIMEOUT"], "30");
        assert_eq!((&*runs[0].kind, &*runs[0].status), ("hook", "starting"));
        assert_eq!(runs[0].argv, ["wget", "https://a.example/"]);
    }

    #[test]
    fn crawls_are_listed_by_time_and_not_by_id() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        // Nodes of a fleet reserve ids in blocks.
        for (now, id) in [201, 7, 202, 8].into_iter().enumerate() {
            let given = GivenCrawl {
                id: CrawlId(id),
                url: "https://a/",
                max_depth: 0,
                plugins: &[],
                config: &BTreeMap::new(),
                user: 0,
            };
            tx.add_given_crawl(&given, Time(now as i64)).unwrap();
        }
        let list = |before| {
            let filter = Filter {
                before,
                limit: 2,
                ..Filter::default()
            };
            let crawls = tx.list_crawls(&filter).unwrap();
            crawls.iter().map(|crawl| crawl.id.0).collect::<Vec<_>>()
        };
        assert_eq!(list(None), [8, 202]);
        assert_eq!(list(Some(202)), [7, 201]);
        assert_eq!(list(Some(201)), [0i64; 0]);
    }

    #[test]
    fn list_ends_when_it_has_enough_bytes() {
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
    fn list_of_a_crawl_has_only_its_snapshots() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let tx = store.begin().unwrap();
        let crawls = [crawl(&tx, "https://a/"), crawl(&tx, "https://b/")];
        // The first crawl has the odd ids, the second one the even ids.
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
