//! Lists of rows, newest first. They are documents of the bus, which are for users: without user names and
//! passwords in URLs, and without secret settings.

mod hosts;
mod metrics;
mod tags;
mod timeline;

use super::{Counts, DatabaseError, Result, Tx};
use crate::database::RunState;
use crate::database::column::{Columns, FromRow, column, columns};
use crate::database::rows::complete::{INCOMPLETE, PARTIAL, SAVED, UNSAVED};
use crate::database::rows::directory::row_of;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{Accounting, Lifecycle, Owner, RECORDER, Uses};
use archivist_core::model::{shown_setting, without_userinfo};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::report::{
    ANSWER_BYTES, Crawl, Filter, HookResult, Run, Snapshot, Version,
};
use rusqlite::Row;
use rusqlite::types::Value;
use std::collections::BTreeMap;

/// Builds `WHERE … ORDER BY … LIMIT …` of a list.
pub(crate) struct ListQuery {
    pub sql: String,
    pub values: Vec<Value>,
}

impl ListQuery {
    pub fn new(sql: String) -> ListQuery {
        ListQuery { sql: format!("{sql} WHERE 1"), values: Vec::new() }
    }

    pub fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.sql.push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    /// Results or runs of a crawl and its snapshots, or of a snapshot.
    fn of_owner(&mut self, owner: Option<Owner>) {
        match owner {
            Some(Owner::Crawl(id)) => self.and("crawl_id =", id.0),
            Some(owner) => self.and("owner =", owner.to_string()),
            None => {}
        }
    }

    /// Snapshots with a tag, of their own or of their crawl.
    fn tagged(&mut self, tag: &str) {
        self.values.push(tag.to_owned().into());
        self.sql.push_str(&format!(
            " AND (id IN (SELECT snapshot_id FROM snapshot_tag JOIN tag ON tag.id = tag_id WHERE name = ?{0})
             OR crawl_id IN (SELECT crawl_id FROM crawl_tag JOIN tag ON tag.id = tag_id WHERE name = ?{0}))",
            self.values.len()
        ));
    }

    fn oldest_first(&mut self, after: i64, filter: &Filter) {
        self.and("id >", after);
        self.sql.push_str(" ORDER BY id");
        self.limit(filter.limit);
    }

    /// Pages whose keys are in one of the ranges.
    fn of_pages(&mut self, pattern: &UrlPattern) {
        let mut ranges = Vec::new();
        for (from, to) in pattern.ranges() {
            self.values.push(from.clone().into());
            self.values.push(to.clone().into());
            let last = self.values.len();
            ranges.push(format!("url_key >= ?{} AND url_key < ?{last}", last - 1));
        }
        self.sql.push_str(&format!(" AND ({})", ranges.join(" OR ")));
    }

    /// As [`ListQuery::newest_first`], but by the indexes of the conditions: the order of ids would read
    /// all rows until a page matches.
    fn newest_first_by_index(&mut self, filter: &Filter, columns: &str) {
        if let Some(before) = filter.before {
            self.and("+id <", before);
        }
        self.sql.push_str(" ORDER BY +id DESC");
        self.limit(filter.limit);
        self.sql =
            format!("SELECT {columns} FROM snapshot WHERE id IN ({}) ORDER BY id DESC", self.sql);
    }

    fn newest_first(&mut self, filter: &Filter) {
        if let Some(before) = filter.before {
            self.and("id <", before);
        }
        self.sql.push_str(" ORDER BY id DESC");
        self.limit(filter.limit);
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
        self.limit(filter.limit);
    }

    pub fn limit(&mut self, limit: u32) {
        if limit > 0 {
            self.sql.push_str(&format!(" LIMIT {limit}"));
        }
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
        let mut query = ListQuery::new(format!("SELECT {} FROM crawl", Crawl::COLUMNS));
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        if let Some(Owner::Crawl(id)) = filter.owner {
            query.and("id =", id.0);
        }
        query.newest_crawls_first(filter);
        self.list(&query, filter, |crawl: &mut Crawl| {
            let id = crawl.id;
            crawl.url = without_userinfo(&crawl.url);
            crawl.tags = self.tags("crawl", id.0)?;
            hide_secrets(&mut crawl.config);
            crawl.snapshots = self.counts("snapshot", Some(id))?;
            crawl.incomplete = self.incomplete_pages(Some(id))?;
            crawl.errors = self.error_pages(id)?;
            crawl.partial = self.partial_pages(id)?;
            crawl.results = self.result_counts(Owner::Crawl(id))?;
            crawl.uses = Uses::of_results(&crawl.results);
            let settings = crawl.config.iter();
            let settings = settings.map(|(key, value)| key.len() + value.len());
            Ok(lengths(&crawl.plugins) + settings.sum::<usize>())
        })
    }

    /// Returns snapshots, the newest first.
    pub fn list_snapshots(&self, filter: &Filter) -> Result<Vec<Snapshot>> {
        let columns = match filter.url {
            Some(_) => "id",
            None => Snapshot::COLUMNS,
        };
        let mut query = ListQuery::new(format!("SELECT {columns} FROM snapshot"));
        match filter.status.as_deref() {
            Some("incomplete") => query.sql.push_str(&format!(" AND {INCOMPLETE}")),
            Some("partial") => query.sql.push_str(&format!(" AND {SAVED} AND {PARTIAL}")),
            Some("unsaved") => query.sql.push_str(&format!(" AND {UNSAVED}")),
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
        if let Some(tag) = &filter.tag {
            query.tagged(tag);
        }
        if let Some(url) = &filter.exact_url {
            query.and("url =", url.clone());
        }
        if let Some(prefix) = &filter.url_prefix {
            query.and("url >=", prefix.clone());
            // The last character of Unicode follows all that a URL has.
            query.and("url <", format!("{prefix}\u{10ffff}"));
        }
        match (&filter.url, filter.after_page) {
            (Some(pattern), _) => {
                query.of_pages(pattern);
                query.newest_first_by_index(filter, Snapshot::COLUMNS);
            }
            (None, Some(after)) => query.oldest_first(after, filter),
            (None, None) => query.newest_first(filter),
        }
        self.list(&query, filter, |page: &mut Snapshot| {
            page.url = without_userinfo(&page.url);
            page.tags = self.tags("snapshot", page.id.0)?;
            hide_secrets(&mut page.config);
            page.results = self.result_counts(Owner::Snapshot(page.id))?;
            page.uses = Uses::of_results(&page.results);
            page.recording = self.figures(Owner::Snapshot(page.id), RECORDER)?;
            page.replay = self.shown_by_replay(page.id)?;
            page.missing = self.missing_parts(page.crawl, page.id)?;
            let texts = lengths(&page.tags) + lengths(&page.missing);
            Ok(page.url.len() + length(&page.title) + texts)
        })
    }

    /// Returns snapshots with what was kept of them, the newest first.
    pub fn list_versions(&self, filter: &Filter) -> Result<Vec<Version>> {
        let version = |snapshot: Snapshot| {
            let kept: Vec<(String, u64)> = self.all(
                "SELECT plugin, sum(size) AS bytes FROM result WHERE owner = ?1
                 GROUP BY plugin HAVING bytes > 0 ORDER BY plugin",
                [Owner::Snapshot(snapshot.id).to_string()],
            )?;
            Ok(Version {
                snapshot,
                bytes: kept.iter().map(|(_, bytes)| bytes).sum(),
                plugins: kept.into_iter().map(|(plugin, _)| plugin).collect(),
            })
        };
        let snapshots = self.list_snapshots(filter)?;
        snapshots.into_iter().map(version).collect()
    }

    /// Returns results, the newest first.
    pub fn list_results(&self, filter: &Filter) -> Result<Vec<HookResult>> {
        let mut query = ListQuery::new(format!("SELECT {} FROM result", HookResult::COLUMNS));
        if let Some(status) = &filter.status {
            query.and("status =", status.clone());
        }
        query.of_owner(filter.owner);
        query.newest_first(filter);
        self.list(&query, filter, |result: &mut HookResult| {
            let paths = lengths(result.files.iter().map(|file| &file.path));
            Ok(length(&result.output) + length(&result.error) + paths + result.figures.bytes())
        })
    }

    /// Returns runs, the newest first.
    pub fn list_runs(&self, filter: &Filter) -> Result<Vec<Run>> {
        let mut query = ListQuery::new(
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
        query.of_owner(filter.owner);
        query.newest_first(filter);
        self.list(&query, filter, |run: &mut Run| Ok(lengths(&run.argv)))
    }

    /// Reads the rows of a list. A limited list is for an answer over the bus and ends at
    /// [`ANSWER_BYTES`], but has at least one row; an unlimited one is for the orchestrator itself.
    /// `complete` adds what is in other tables, and returns the bytes of the texts of a row.
    fn list<T: FromRow>(
        &self,
        query: &ListQuery,
        filter: &Filter,
        complete: impl Fn(&mut T) -> Result<usize>,
    ) -> Result<Vec<T>> {
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(&query.values))?;
        let mut list = Vec::new();
        let mut left = if filter.limit == 0 { usize::MAX } else { ANSWER_BYTES };
        while left > 0
            && let Some(row) = rows.next()?
        {
            let mut item = T::from_row(row)?;
            left = left.saturating_sub(complete(&mut item)?);
            list.push(item);
        }
        Ok(list)
    }

    /// Returns how many results of a snapshot, or of a crawl and its snapshots, have each status.
    pub fn result_counts(&self, owner: Owner) -> Result<Counts> {
        if let Owner::Crawl(id) = owner {
            return self.counts("result", Some(id));
        }
        self.all(
            "SELECT status, count(*) FROM result WHERE owner = ?1 GROUP BY status",
            [owner.to_string()],
        )
    }

    pub fn tags(&self, table: &str, id: i64) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT name FROM tag JOIN {table}_tag ON tag.id = tag_id
             WHERE {table}_id = ?1 ORDER BY name"
        );
        self.all(&sql, [id])
    }

    /// Returns the status of a crawl or snapshot.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuch`] if there is none.
    pub fn status_of(&self, owner: Owner) -> Result<Lifecycle> {
        let (table, id) = row_of(owner);
        let found = self.first(&format!("SELECT status FROM {table} WHERE id = ?1"), [id])?;
        found.ok_or_else(|| DatabaseError::NoSuch(format!("{table} {owner}")))
    }
}

fn hide_secrets(config: &mut BTreeMap<String, String>) {
    for (name, value) in config {
        *value = shown_setting(name, value);
    }
}

columns! {
    Crawl: id, status, reason, url, max_depth, plugins, config, created_at, started_at, ended_at,
        retry_at, attempts, directory, pinned, users;
        tags: Vec::new(), snapshots: Counts::new(), incomplete: 0, errors: 0, partial: 0,
        results: Counts::new(), uses: Uses::default(), nodes: Vec::new()
}

columns! {
    Snapshot: id, crawl "crawl_id", url, title, depth, parent "parent_id", status, reason,
        visited_at, created_at, started_at, ended_at, retry_at, attempts, directory, bookmarked_at,
        http_status,
        config "coalesce(config, '{}')", unsaved "iif(status = 'sealed', unsaved, NULL)",
        pinned "(pinned OR (SELECT kept.pinned FROM crawl AS kept WHERE kept.id = crawl_id))";
        tags: Vec::new(), results: Counts::new(), uses: Uses::default(), current_step: None,
        node: None, older_copies: Vec::new(), recording: None, replay: None,
        missing: Vec::new()
}

impl FromRow for Run {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Run> {
        let argv: Vec<String> = column(row, 12)?;
        Ok(Run {
            id: column(row, 0)?,
            unit: column(row, 1)?,
            kind: column::<UnitKind>(row, 2)?.as_str().to_owned(),
            owner: column(row, 3)?,
            plugin: column(row, 4)?,
            hook: column(row, 5)?,
            attempt: column(row, 6)?,
            status: column::<RunState>(row, 7)?.as_str().to_owned(),
            outcome: column(row, 8)?,
            invocation: column(row, 9)?,
            started_at: column(row, 10)?,
            ended_at: column(row, 11)?,
            argv: argv.iter().map(|text| without_userinfo(text)).collect(),
            accounting: Accounting {
                cpu_usec: column(row, 13)?,
                memory_peak: column(row, 14)?,
                io_read: column(row, 15)?,
                io_write: column(row, 16)?,
                ip_in: column(row, 17)?,
                ip_out: column(row, 18)?,
            },
            parent: column(row, 19)?,
            directory: column(row, 20)?,
            limit: column::<Option<u64>>(row, 21)?.map(|millis| millis / 1000),
            environment: BTreeMap::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::rows::fleet::GivenCrawl;
    use crate::database::{Database, Finished, NewCrawl, NewRun, NewSnapshot};
    use archivist_core::model::{CrawlId, PAGE_TAGS_MAX, ResultState, SnapshotId, Time, Verdict};

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
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        for url in ["https://a/", "https://b/", "https://c/", "https://d/"] {
            crawl(&tx, url);
        }
        let list = |before, limit| {
            let filter = Filter { before, limit, ..Filter::default() };
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
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
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
        let page = NewSnapshot { url, host: "a.example", ..NewSnapshot::default() };
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
        let (pages, runs) = (tx.list_snapshots(&all).unwrap(), tx.list_runs(&all).unwrap());
        let text = serde_json::to_string(&(&crawls, &pages, &runs)).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(crawls[0].config["TIMEOUT"], "30");
        assert_eq!((&*runs[0].kind, &*runs[0].status), ("hook", "starting"));
        assert_eq!(runs[0].argv, ["wget", "https://a.example/"]);
    }

    #[test]
    fn crawls_are_listed_by_time_and_not_by_id() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
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
            let filter = Filter { before, limit: 2, ..Filter::default() };
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
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let crawl = crawl(&tx, "https://a/");
        let title = "t".repeat(ANSWER_BYTES / 4);
        let urls: Vec<String> = (0..12).map(|n| format!("https://a/{n}")).collect();
        for url in &urls {
            let page =
                NewSnapshot { url, host: "a", title: Some(&title), ..NewSnapshot::default() };
            let added = tx.add_snapshots(crawl, None, &[page], Time(0)).unwrap();
            for n in 0..PAGE_TAGS_MAX + 9 {
                tx.tag_snapshot(added[0].0, &n.to_string()).unwrap();
            }
        }
        let mut filter = Filter { limit: 1000, ..Filter::default() };
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

    /// Lists what matches a pattern, in batches of two.
    fn of_url(tx: &Tx<'_>, pattern: &str) -> Vec<i64> {
        let mut filter =
            Filter { url: Some(pattern.parse().unwrap()), limit: 2, ..Filter::default() };
        let mut ids = Vec::new();
        loop {
            let piece = tx.list_snapshots(&filter).unwrap();
            let Some(last) = piece.last() else { break ids };
            filter.before = Some(last.id.0);
            ids.extend(piece.iter().map(|snapshot| snapshot.id.0));
        }
    }

    #[test]
    fn versions_of_a_page_are_found_by_its_url() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        for url in [
            "https://a.test/docs/",
            "http://www.a.test/docs?utm_source=b#top",
            "https://a.test/docs/x",
            "https://b.a.test/docs",
            "https://a.test/docs2",
            "http://u:p@a.test/docs",
        ] {
            let crawl = crawl(&tx, url);
            let page = NewSnapshot { url, host: "a", ..NewSnapshot::default() };
            tx.add_snapshots(crawl, None, &[page], Time(0)).unwrap();
        }
        assert_eq!(of_url(&tx, "https://a.test/docs"), [6, 2, 1]);
        assert_eq!(of_url(&tx, "a.test/docs/*"), [6, 3, 2, 1]);
        assert_eq!(of_url(&tx, "*.a.test"), [6, 5, 4, 3, 2, 1]);
        assert_eq!(of_url(&tx, "https://a.test/none"), [0i64; 0]);

        let page = Owner::Snapshot(SnapshotId(6));
        for (plugin, size) in [("title", 0), ("wget", 70), ("dom", 7)] {
            tx.start_result(page, CrawlId(6), plugin, "hook", Time(7)).unwrap();
            let verdict = Verdict { state: ResultState::Succeeded, error: None };
            let finished = Finished {
                verdict: &verdict,
                output: None,
                files: &[],
                size,
                figures: &Default::default(),
            };
            tx.finish_result(page, plugin, "hook", &finished, Time(8)).unwrap();
        }
        let filter =
            Filter { url: Some(UrlPattern::of_page("http://a.test/docs")), ..Filter::default() };
        let versions = tx.list_versions(&filter).unwrap();
        let kept = versions.iter().map(|version| {
            let plugins = version.plugins.join(" ");
            (version.snapshot.id.0, version.bytes, plugins)
        });
        assert_eq!(
            kept.collect::<Vec<_>>(),
            [(6, 77, "dom wget".to_owned()), (2, 0, String::new()), (1, 0, String::new())]
        );
    }

    /// Reading a million rows would hold up all callers.
    #[test]
    fn pages_of_a_pattern_are_searched_in_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        for pattern in ["https://a.test/b", "https://a.test/b/*", "*.a.test"] {
            let filter = Filter {
                url: Some(pattern.parse().unwrap()),
                before: Some(7),
                limit: 9,
                ..Filter::default()
            };
            let mut query = ListQuery::new("SELECT id FROM snapshot".to_owned());
            query.of_pages(filter.url.as_ref().unwrap());
            query.newest_first_by_index(&filter, "url");
            let explain = format!("EXPLAIN QUERY PLAN {}", query.sql);
            let mut statement = tx.inner.prepare(&explain).unwrap();
            let values = rusqlite::params_from_iter(&query.values);
            let plan = statement.query_map(values, |row| row.get(3)).unwrap();
            let plan: Vec<String> = plan.map(|step| step.unwrap()).collect();
            let of_key =
                |step: &String| step.contains("INDEX snapshot_key (url_key>? AND url_key<?)");
            assert!(plan.iter().any(of_key), "{plan:?}");
            assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
        }
    }

    /// Run with `cargo test --release -p archivist-orchestrator million -- --ignored --nocapture`.
    #[test]
    #[ignore = "writes a million rows"]
    fn versions_among_a_million_pages() {
        const ROWS: usize = 1_000_000;
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let url = |n: usize| format!("https://host{}.test/path/{}", n % 1000, n / 1000);
        // A tenth of the pages has ten versions.
        for start in (0..ROWS).step_by(10_000) {
            let crawl = crawl(&tx, "https://a/");
            let urls: Vec<String> = (start..start + 10_000).map(|n| url(n % (ROWS / 10))).collect();
            let page = |url| NewSnapshot { url, host: "a", ..NewSnapshot::default() };
            let pages: Vec<_> = urls.iter().map(|url| page(url)).collect();
            tx.add_snapshots(crawl, None, &pages, Time(start as i64)).unwrap();
        }
        tx.commit().unwrap();
        let tx = database.begin().unwrap();
        let time = |pattern: &dyn Fn(usize) -> String, versions: bool| {
            let mut times: Vec<_> = (0..200)
                .map(|n| {
                    let filter = Filter {
                        url: Some(pattern(n * 487 % (ROWS / 10)).parse().unwrap()),
                        limit: 1000,
                        ..Filter::default()
                    };
                    let start = std::time::Instant::now();
                    let found = if versions {
                        tx.list_versions(&filter).unwrap().len()
                    } else {
                        tx.list_snapshots(&filter).unwrap().len()
                    };
                    assert!(found >= 10);
                    start.elapsed()
                })
                .collect();
            times.sort();
            (times[100], times[198])
        };
        eprintln!("versions p50, p99: {:?}", time(&url, true));
        let of_host = |n: usize| format!("*.host{}.test", n % 1000);
        eprintln!("host p50, p99: {:?}", time(&of_host, false));
        let filter =
            Filter { url: Some("*.test".parse().unwrap()), limit: 50, ..Filter::default() };
        let start = std::time::Instant::now();
        assert_eq!(tx.list_snapshots(&filter).unwrap().len(), 50);
        eprintln!("the newest 50 of all: {:?}", start.elapsed());
    }

    #[test]
    fn list_of_a_crawl_has_only_its_snapshots() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
        let tx = database.begin().unwrap();
        let crawls = [crawl(&tx, "https://a/"), crawl(&tx, "https://b/")];
        // The first crawl has the odd ids, the second one the even ids.
        for n in 0..10 {
            let page =
                NewSnapshot { url: &format!("https://a/{n}"), host: "a", ..NewSnapshot::default() };
            let added = tx.add_snapshots(crawls[n % 2], None, &[page], Time(0));
            assert_eq!(added.unwrap().len(), 1);
        }
        let list = |before, limit| {
            let filter =
                Filter { owner: Some(Owner::Crawl(crawls[0])), before, limit, ..Filter::default() };
            let snapshots = tx.list_snapshots(&filter).unwrap();
            snapshots.iter().map(|s| s.id.0).collect::<Vec<_>>()
        };
        assert_eq!(list(None, 2), [9, 7]);
        assert_eq!(list(Some(7), 2), [5, 3]);
        assert_eq!(list(Some(3), 2), [1]);
    }
}
