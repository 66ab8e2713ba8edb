//! Rows of snapshots.

use crate::database::column::{Columns, columns};
use crate::database::rows::fleet::FleetCrawl;
use crate::database::{Result, Tx};
use archivist_core::model::web::surt::page_key;
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, Step, Time, Unsaved};
use archivist_core::plan::{HostId, Judgement};
use archivist_shared::bus::documents::report::Snapshot;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Default)]
pub struct NewSnapshot<'a> {
    /// Its URL, with user name and password if it has any.
    pub url: &'a str,
    /// Name of the host, as in the URL.
    pub host: &'a str,
    /// Title of the page, if known.
    pub title: Option<&'a str>,
    /// As the list of bookmarks states it.
    pub bookmarked_at: Option<&'a str>,
    /// Number of links from a page that the user added.
    pub depth: u32,
    /// Whether a user gave the page; `false` for pages that hooks found.
    pub given: bool,
}

/// A snapshot as the orchestrator and its worker use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotWork {
    /// Number of its row, printed as `s345`.
    pub id: SnapshotId,
    pub crawl: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Why it has its status, if that is not the usual end.
    pub reason: Option<String>,
    /// What it lacks, if it has ended and was not saved.
    pub unsaved: Option<Unsaved>,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// Number of links from a page that the user added.
    pub depth: u32,
    /// When it was visited; before its first start, when it was queued.
    pub visited_at: Time,
    /// When it was queued.
    pub created_at: Time,
    pub attempts: u32,
    /// Token of its worker; `None` before the first start.
    pub token: Option<String>,
    /// Its directory; `None` before the first start.
    pub directory: Option<String>,
    /// Identity of its directory; `None` before the first start, and in rows of older versions.
    pub identity: Option<String>,
    /// Settings of the page alone, secrets included.
    pub config: BTreeMap<String, String>,
}

columns! {
    SnapshotWork: id, crawl "crawl_id", status, reason, unsaved, url, depth, visited_at, created_at, attempts, token,
        directory, identity, config "coalesce(config, '{}')"
}

/// SQL expression for the time at which another program saved a page of an imported crawl, in
/// milliseconds since 1970; NULL for all other pages, and for times before 1970 and after the import.
fn recorded_at(crawl: &str, bookmarked_at: &str, created_at: &str) -> String {
    format!(
        "(SELECT CAST(unixepoch({bookmarked_at}, 'subsec') * 1000 AS INTEGER) FROM crawl AS imported
          WHERE imported.id = {crawl} AND imported.plugins LIKE '[\"import\"%'
              AND {bookmarked_at} LIKE '____-__-__T%'
              AND unixepoch({bookmarked_at}, 'subsec') * 1000 BETWEEN 0 AND {created_at})"
    )
}

impl Tx<'_> {
    /// Queues pages of a crawl in their order, except those that the crawl has already. Returns the
    /// ids and URLs of the new snapshots.
    ///
    /// It is one statement because each statement that fires a trigger opens a statement journal,
    /// which is most of the cost of a row: many pages in one statement cost a third of one page in
    /// each.
    pub fn add_snapshots(
        &self,
        crawl: CrawlId,
        parent: Option<SnapshotId>,
        pages: &[NewSnapshot<'_>],
        now: Time,
    ) -> Result<Vec<(SnapshotId, String)>> {
        let mut hosts = HashMap::new();
        let mut rows = Vec::with_capacity(pages.len());
        for page in pages {
            let host = match hosts.get(page.host) {
                Some(id) => *id,
                None => *hosts.entry(page.host).or_insert(self.host_number(page.host)?),
            };
            rows.push((
                host,
                page.url,
                page_key(page.url),
                page.title,
                page.depth,
                page.bookmarked_at,
                page.given,
            ));
        }
        let recorded_at = recorded_at("?1", "(value ->> 5)", "?3");
        // Rows that conflict take ids, too: those of a crawl would be ten times its pages.
        self.all(
            &format!(
                "INSERT INTO snapshot
                 (crawl_id, parent_id, created_at, retry_at, visited_at,
                  host_id, url, url_key, title, depth, bookmarked_at, given)
             SELECT ?1, ?2, ?3, ?3, coalesce({recorded_at}, ?3),
                    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                    value ->> 5, value ->> 6
             FROM json_each(?4)
             WHERE NOT EXISTS (SELECT 1 FROM snapshot
                 WHERE crawl_id = ?1 AND url = value ->> 1 AND replaced = 0)
             ORDER BY key
             ON CONFLICT DO NOTHING RETURNING id, url"
            ),
            (crawl.0, parent.map(|id| id.0), now.0, serde_json::to_string(&rows)?),
        )
    }

    fn host_number(&self, name: &str) -> Result<i64> {
        let known = self.first("SELECT id FROM host WHERE name = ?1", [name])?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.execute("INSERT INTO host (name) VALUES (?1)", [name])?;
        Ok(self.inner.last_insert_rowid())
    }

    pub fn snapshot(&self, id: SnapshotId) -> Result<Option<SnapshotWork>> {
        let sql = format!("SELECT {} FROM snapshot WHERE id = ?1", SnapshotWork::COLUMNS);
        self.first(&sql, [id.0])
    }

    pub fn set_snapshot_config(
        &self,
        id: SnapshotId,
        config: &BTreeMap<String, String>,
    ) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET config = ?2 WHERE id = ?1",
            (id.0, serde_json::to_string(config)?),
        )
    }

    /// Returns other snapshots of the page of a URL that have a directory and were not cancelled: the
    /// newest `count`, without their tags, results and figures.
    pub fn other_versions(&self, url: &str, id: SnapshotId, count: u32) -> Result<Vec<Snapshot>> {
        let columns = Snapshot::COLUMNS;
        self.all(
            &format!(
                "SELECT {columns} FROM snapshot INDEXED BY snapshot_key
                 WHERE url_key = ?1 AND id <> ?2 AND directory IS NOT NULL AND status <> 'cancelled'
                 ORDER BY visited_at DESC, id DESC LIMIT ?3"
            ),
            (page_key(url), id.0, count),
        )
    }

    /// Applies a step to a snapshot and sets `retry_at` and `reason`. Returns the new status.
    pub fn step_snapshot(
        &self,
        id: SnapshotId,
        step: Step,
        retry_at: Option<Time>,
        reason: Option<&str>,
        now: Time,
    ) -> Result<Lifecycle> {
        if step == Step::Start {
            self.date_visit(id, now)?;
        }
        self.step(Owner::Snapshot(id), step, retry_at, reason, now)
    }

    /// Dates the visit of a page that starts now, if nothing of an earlier visit stays: a retry of some
    /// hooks does not change the date, nor does a worker that continues.
    fn date_visit(&self, id: SnapshotId, now: Time) -> Result<()> {
        let recorded_at = recorded_at("crawl_id", "bookmarked_at", "created_at");
        self.execute(
            &format!(
                "UPDATE snapshot SET visited_at = coalesce({recorded_at}, ?2)
                 WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM result WHERE owner = ?3
                     AND status NOT IN ('queued', 'skipped'))"
            ),
            (id.0, now.0, Owner::Snapshot(id).to_string()),
        )
    }

    /// Seals a snapshot, and records whether it was saved.
    pub fn seal_snapshot(&self, id: SnapshotId, judgement: &Judgement, now: Time) -> Result<()> {
        let reason = judgement.reason.as_deref();
        self.step(Owner::Snapshot(id), Step::Seal, None, reason, now)?;
        self.set_unsaved(id, judgement.unsaved)
    }

    /// Records what a page lacks.
    pub fn set_unsaved(&self, id: SnapshotId, unsaved: Option<Unsaved>) -> Result<()> {
        let unsaved = unsaved.map(Unsaved::as_str);
        self.execute("UPDATE snapshot SET unsaved = ?2 WHERE id = ?1", (id.0, unsaved))
    }

    /// Records the token of a snapshot's worker and the directory of the snapshot.
    pub fn equip_snapshot(&self, id: SnapshotId, token: &str, directory: &str) -> Result<()> {
        self.execute(
            "UPDATE snapshot SET token = ?2, directory = ?3 WHERE id = ?1",
            (id.0, token, directory),
        )
    }

    /// Returns the host of this name, which is added if it is new.
    pub fn host(&self, name: &str) -> Result<HostId> {
        self.host_number(name).map(HostId)
    }

    /// Returns when a page ended; `None` before, or if there is no such page.
    pub fn snapshot_ended_at(&self, id: SnapshotId) -> Result<Option<Time>> {
        let ended: Option<Option<Time>> =
            self.first("SELECT ended_at FROM snapshot WHERE id = ?1", [id.0])?;
        Ok(ended.flatten())
    }

    pub fn set_title(&self, id: SnapshotId, title: &str) -> Result<()> {
        self.execute("UPDATE snapshot SET title = ?2 WHERE id = ?1", (id.0, title))
    }

    /// Gives a page the title and the date of a bookmark, if it has none. Returns whether it had none.
    pub fn complete_from_list(
        &self,
        id: SnapshotId,
        title: Option<&str>,
        bookmarked_at: Option<&str>,
    ) -> Result<bool> {
        let changed = self.change(
            "UPDATE snapshot SET title = coalesce(nullif(title, ''), ?2),
                 bookmarked_at = coalesce(bookmarked_at, ?3)
             WHERE id = ?1 AND (?2 IS NOT NULL AND coalesce(title, '') = ''
                 OR ?3 IS NOT NULL AND bookmarked_at IS NULL)",
            (id.0, title, bookmarked_at),
        )?;
        Ok(changed > 0)
    }

    /// The pages of a crawl, or all, have ids above the first of these and up to the second.
    pub fn snapshot_range(&self, crawl: Option<CrawlId>) -> Result<(i64, i64)> {
        match crawl {
            Some(crawl) => self.one(
                "SELECT coalesce((SELECT min(id) FROM snapshot WHERE crawl_id = ?1) - 1, 0),
                 coalesce((SELECT max(id) FROM snapshot WHERE crawl_id = ?1), 0)",
                [crawl.0],
            ),
            None => self.one("SELECT 0, coalesce(max(id), 0) FROM snapshot", []),
        }
    }

    /// Whether a crawl has a snapshot that is not final.
    pub fn has_open_snapshots(&self, crawl: CrawlId) -> Result<bool> {
        let open: i64 = self.one(
            "SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'snapshot' AND crawl_id = ?1
             AND status IN ('queued', 'started', 'paused')",
            [crawl.0],
        )?;
        Ok(open > 0)
    }

    /// Whether a crawl waits for pages: it has a snapshot that is not final, or the fleet may give
    /// it more.
    pub fn awaits_pages(&self, crawl: CrawlId) -> Result<bool> {
        Ok(self.has_open_snapshots(crawl)? || self.fleet_crawl(crawl)? == FleetCrawl::Open)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::database::{Database, NewCrawl, NewSnapshot, Tx};
    use archivist_core::model::{CrawlId, Owner, SnapshotId, Time};
    use archivist_shared::bus::documents::report::Filter;
    use std::collections::BTreeMap;

    /// A crawl with pages.
    pub fn fill(tx: &Tx<'_>, pages: usize) -> archivist_core::model::CrawlId {
        let new_crawl = NewCrawl {
            url: "http://a.test/",
            max_depth: 0,
            plugins: &[],
            config: &BTreeMap::new(),
            user: 0,
            now: Time(1),
        };
        let crawl = tx.add_crawl(&new_crawl).unwrap();
        let urls = (0..pages).map(|page| format!("http://a.test/{page}")).collect::<Vec<_>>();
        let page = |url| NewSnapshot { url, host: "a.test", given: true, ..NewSnapshot::default() };
        let pages = urls.iter().map(|url| page(url)).collect::<Vec<_>>();
        tx.add_snapshots(crawl, None, &pages, Time(1)).unwrap();
        crawl
    }

    #[test]
    fn pages_are_queued_once_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let crawl = fill(&tx, 2);
        let page = |url, host| NewSnapshot {
            url,
            host,
            title: Some("\u{1}\"Ünï\n'title"),
            bookmarked_at: Some("1999"),
            depth: 3,
            given: false,
        };
        let pages = [
            page("http://b.test/z", "b.test"),
            page("http://a.test/1", "a.test"),
            page("http://b.test/a", "b.test"),
            page("http://b.test/z", "b.test"),
        ];
        let parent = Some(SnapshotId(1));
        let added = tx.add_snapshots(crawl, parent, &pages, Time(7)).unwrap();
        let urls = added.iter().map(|(_, url)| url.as_str());
        assert_eq!(urls.collect::<Vec<_>>(), ["http://b.test/z", "http://b.test/a"]);
        assert!(added.is_sorted());
        let filter = Filter { limit: 1, ..Filter::default() };
        let row = tx.list_snapshots(&filter).unwrap().remove(0);
        assert_eq!((row.id, row.depth, row.parent), (added[1].0, 3, parent));
        assert_eq!(row.title.as_deref(), Some("\u{1}\"Ünï\n'title"));
        assert_eq!(row.bookmarked_at.as_deref(), Some("1999"));
        assert_eq!(tx.counts("snapshot", Some(crawl)).unwrap()["queued"], 4);
        assert_eq!(tx.add_snapshots(crawl, None, &[], Time(7)).unwrap(), []);
        let known = [page("http://b.test/z", "b.test"); 9];
        let next = ["http://b.test/b", "http://b.test/c"].map(|url| {
            assert_eq!(tx.add_snapshots(crawl, None, &known, Time(8)).unwrap(), []);
            tx.add_snapshots(crawl, None, &[page(url, "b.test")], Time(8)).unwrap()[0].0.0
        });
        assert_eq!(next[1], next[0] + 1, "known pages take no ids");
    }

    #[test]
    fn imported_pages_have_the_time_of_their_recording() {
        const ADDED: Time = Time(1_800_000_000_000);
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let recorded = |plugins: &[String], bookmarked_at| {
            let crawl = tx.add_crawl(&NewCrawl {
                url: "http://a.test/",
                max_depth: 0,
                plugins,
                config: &BTreeMap::new(),
                user: 0,
                now: ADDED,
            });
            let page = NewSnapshot {
                url: "http://a.test/",
                host: "a.test",
                bookmarked_at: Some(bookmarked_at),
                ..NewSnapshot::default()
            };
            let crawl = crawl.unwrap();
            tx.add_snapshots(crawl, None, &[page], ADDED).unwrap();
            let filter = Filter::of(Owner::Crawl(crawl));
            tx.list_snapshots(&filter).unwrap()[0].visited_at
        };
        let import = ["import".to_owned(), "text".to_owned()];
        let time = "2019-01-02T03:04:05.678Z";
        assert_eq!(recorded(&import, time), Time(1_546_398_245_678));
        for invented in
            ["1999", "1999-99-99T00:00:00Z", "1907-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]
        {
            assert_eq!(recorded(&import, invented), ADDED, "{invented}");
        }
        assert_eq!(recorded(&["wget".to_owned()], time), ADDED);
    }

    #[test]
    fn start_hosts_are_those_of_given_pages_whenever_they_were_added() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let crawl = fill(&tx, 3);
        let page = |url, host| NewSnapshot { url, host, ..NewSnapshot::default() };
        let found = [page("http://10.0.0.1/", "10.0.0.1")];
        let parent = Some(SnapshotId(1));
        tx.add_snapshots(crawl, parent, &found, Time(1)).unwrap();
        // Named by a setup hook of the crawl in the turn that added the crawl.
        let named = [page("http://127.0.0.1/", "127.0.0.1")];
        tx.add_snapshots(crawl, None, &named, Time(1)).unwrap();
        // The rest of a long list.
        let mut rest = [page("http://192.168.1.1/", "192.168.1.1")];
        rest[0].given = true;
        tx.add_snapshots(crawl, None, &rest, Time(2)).unwrap();
        let given = ["http://a.test/0", "http://192.168.1.1/"];
        assert_eq!(tx.start_hosts(crawl).unwrap(), given);
        assert_eq!(tx.crawl_urls(crawl, 9).unwrap().len(), 4);
    }

    /// Sorting or counting a million pages would hold up all callers.
    #[test]
    fn newest_pages_of_a_crawl_are_found_without_reading_all() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
        let crawl = fill(&tx, 3);
        let query = "EXPLAIN QUERY PLAN
             SELECT url, title FROM snapshot WHERE crawl_id = 1 ORDER BY id DESC LIMIT 2";
        let mut statement = tx.inner.prepare(query).unwrap();
        let plan = statement.query_map((), |row| row.get(3)).unwrap();
        let plan: Vec<String> = plan.map(|step| step.unwrap()).collect();
        assert_eq!(plan, ["SEARCH snapshot USING INDEX snapshot_crawl (crawl_id=?)"]);
        assert_eq!(tx.snapshot_range(Some(crawl)).unwrap(), (0, 3));
        assert_eq!(tx.snapshot_range(Some(CrawlId(9))).unwrap(), (0, 0));
    }
}
