//! Rows of crawls.

use crate::store::{Result, StoreError, Tx};
use archivist_core::model::{CrawlId, Lifecycle, SnapshotId, Step, Time};
use rusqlite::OptionalExtension;
use std::collections::{BTreeMap, BTreeSet};

/// A crawl to be queued.
pub struct NewCrawl<'a> {
    pub url: &'a str,
    pub max_depth: u32,
    pub plugins: &'a [String],
    pub config: &'a BTreeMap<String, String>,
    /// The user who adds it.
    pub user: u32,
    pub now: Time,
}

/// Ids of the users whose settings a crawl has: the user who added the crawl and those who amended it.
pub type Users = BTreeSet<u32>;

/// What its worker needs to know of a crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlWork {
    pub id: CrawlId,
    pub status: Lifecycle,
    pub url: String,
    pub max_depth: u32,
    pub plugins: Vec<String>,
    pub config: BTreeMap<String, String>,
    pub created_at: Time,
    pub attempts: u32,
    /// Its set-up is done, whether its pages may still be started or not.
    pub ready: bool,
    pub token: Option<String>,
    pub directory: Option<String>,
    /// Which of the hooks' users those of this crawl are; 0 is the one that belongs to no crawl.
    pub hook_user: u32,
    pub users: Users,
    /// Name of the persona with which it was begun last, empty if with none.
    pub persona: Option<String>,
}

impl Tx<'_> {
    pub fn add_crawl(&self, new: &NewCrawl<'_>) -> Result<CrawlId> {
        self.inner
            .prepare_cached(
                "INSERT INTO crawl (url, max_depth, plugins, config, created_at, retry_at, users)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
            )?
            .execute((
                new.url,
                new.max_depth,
                serde_json::to_string(new.plugins)?,
                serde_json::to_string(new.config)?,
                new.now.0,
                serde_json::to_string(&[new.user])?,
            ))?;
        Ok(CrawlId(self.inner.last_insert_rowid()))
    }

    /// A crawl that is queued is not to be begun before `until`.
    pub fn put_off_crawl(&self, id: CrawlId, until: Time, reason: Option<&str>) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE crawl SET retry_at = ?2, reason = ?3 WHERE id = ?1 AND status = 'queued'",
            )?
            .execute((id.0, until.0, reason))?;
        Ok(())
    }

    /// Crawls that are not over and that were put off for this reason.
    pub fn crawls_put_off(&self, reason: &str) -> Result<Vec<CrawlId>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT id FROM crawl WHERE status = 'queued' AND reason = ?1 ORDER BY id",
        )?;
        let rows = statement.query_map([reason], |row| row.get(0).map(CrawlId))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn crawl(&self, id: CrawlId) -> Result<Option<CrawlWork>> {
        let row = self
            .inner
            .prepare_cached(
                "SELECT status, url, max_depth, plugins, config, created_at, attempts, ready,
                        token, directory, hook_user, users, persona FROM crawl WHERE id = ?1",
            )?
            .query_row([id.0], |row| {
                let status: String = row.get(0)?;
                let plugins: String = row.get(3)?;
                let config: String = row.get(4)?;
                let users: String = row.get(11)?;
                let work = CrawlWork {
                    id,
                    status: Lifecycle::Queued,
                    url: row.get(1)?,
                    max_depth: row.get(2)?,
                    plugins: Vec::new(),
                    config: BTreeMap::new(),
                    created_at: Time(row.get(5)?),
                    attempts: row.get(6)?,
                    ready: row.get(7)?,
                    token: row.get(8)?,
                    directory: row.get(9)?,
                    hook_user: row.get(10)?,
                    users: Users::new(),
                    persona: row.get(12)?,
                };
                Ok((work, status, plugins, config, users))
            })
            .optional()?;
        let Some((work, status, plugins, config, users)) = row else {
            return Ok(None);
        };
        Ok(Some(CrawlWork {
            status: parse_status(&status)?,
            plugins: serde_json::from_str(&plugins)?,
            config: serde_json::from_str(&config)?,
            users: serde_json::from_str(&users)?,
            ..work
        }))
    }

    /// The URLs that a crawl was added with, in their order; at most so many.
    pub fn crawl_urls(&self, id: CrawlId, most: u32) -> Result<Vec<String>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT url FROM snapshot WHERE crawl_id = ?1 AND parent_id IS NULL
             ORDER BY id LIMIT ?2",
        )?;
        let rows = statement.query_map((id.0, most), |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// One start URL for each host of a crawl. Start URLs were added in the transaction that added
    /// the crawl; URLs that pages or hooks named came later.
    pub fn start_hosts(&self, id: CrawlId) -> Result<Vec<String>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT min(snapshot.url) FROM snapshot JOIN crawl ON crawl.id = crawl_id
             WHERE crawl_id = ?1 AND parent_id IS NULL
                 AND snapshot.created_at = crawl.created_at
             GROUP BY host_id",
        )?;
        let rows = statement.query_map([id.0], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn first_snapshot(&self, id: CrawlId) -> Result<Option<SnapshotId>> {
        Ok(self
            .inner
            .prepare_cached("SELECT min(id) FROM snapshot WHERE crawl_id = ?1")?
            .query_row([id.0], |row| row.get::<_, Option<i64>>(0))?
            .map(SnapshotId))
    }

    /// Takes a crawl one step further. `retry_at` and `reason` are what they are to be after it.
    pub fn step_crawl(
        &self,
        id: CrawlId,
        step: Step,
        retry_at: Option<Time>,
        reason: Option<&str>,
        now: Time,
    ) -> Result<Lifecycle> {
        self.step("crawl", id.0, &id.to_string(), step, retry_at, reason, now)
    }

    /// Snapshots of a crawl may start only after its own setup: 1 in the column. 0 is before that, 2 after it
    /// ([`Tx::release_crawl`]).
    pub fn set_crawl_ready(&self, id: CrawlId) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE crawl SET ready = 1 WHERE id = ?1")?
            .execute([id.0])?;
        Ok(())
    }

    /// Its pages are done, and what they lived on ends now: one that is retried waits for the next
    /// worker of the crawl.
    pub fn release_crawl(&self, id: CrawlId) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE crawl SET ready = 2 WHERE id = ?1 AND ready = 1")?
            .execute([id.0])?;
        Ok(())
    }

    /// Remembers how the worker of a crawl proves itself, and where its files are.
    pub fn equip_crawl(&self, id: CrawlId, token: &str, directory: &str) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE crawl SET token = ?2, directory = ?3, ready = 0 WHERE id = ?1")?
            .execute((id.0, token, directory))?;
        Ok(())
    }

    /// Chooses one of so many users for the hooks of a crawl that begins: one that the fewest crawls
    /// under way have. It has it for good, as owner of its files.
    pub fn choose_hook_user(&self, id: CrawlId, users: u32) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE crawl SET hook_user = (
                     WITH RECURSIVE user (n) AS
                         (SELECT 1 UNION ALL SELECT n + 1 FROM user WHERE n < ?2),
                     busy (id) AS
                         (SELECT id FROM crawl WHERE hook_user > 0 AND attempts > 0
                              AND status IN ('queued', 'started', 'paused')
                          UNION SELECT crawl_id FROM run WHERE status <> 'ended'),
                     taken (n) AS
                         (SELECT other.hook_user FROM busy JOIN crawl other USING (id))
                     SELECT n FROM user ORDER BY
                         (SELECT count(*) FROM taken WHERE taken.n = user.n),
                         (n + ?2 - ?1 % ?2) % ?2
                     LIMIT 1)
                 WHERE id = ?1",
            )?
            .execute((id.0, users))?;
        Ok(())
    }

    /// Shared by crawls and snapshots, whose columns have the same names.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn step(
        &self,
        table: &'static str,
        id: i64,
        shown: &str,
        step: Step,
        retry_at: Option<Time>,
        reason: Option<&str>,
        now: Time,
    ) -> Result<Lifecycle> {
        let status: Option<String> = self
            .inner
            .prepare_cached(&format!("SELECT status FROM {table} WHERE id = ?1"))?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let Some(status) = status else {
            return Err(StoreError::NoSuch(format!("{table} {shown}")));
        };
        let next = parse_status(&status)?
            .apply(step)
            .map_err(|source| StoreError::Illegal {
                what: format!("{table} {shown}"),
                source,
            })?;
        let sql = match step {
            Step::Start => {
                "SET status = ?2, retry_at = ?3, reason = ?4, attempts = attempts + 1,
                     started_at = coalesce(started_at, ?5), ended_at = NULL, changed_at = ?5"
            }
            // It keeps its place in the queue.
            Step::Pause => "SET status = ?2, reason = ?4, changed_at = ?5",
            Step::Resume => {
                "SET status = ?2, retry_at = coalesce(retry_at, ?3), reason = ?4, changed_at = ?5"
            }
            Step::Requeue | Step::Continue => {
                "SET status = ?2, retry_at = ?3, reason = ?4, ended_at = NULL, changed_at = ?5"
            }
            Step::Seal | Step::Cancel => {
                "SET status = ?2, retry_at = ?3, reason = ?4, ended_at = ?5,
                     changed_at = ?5, token = NULL"
            }
            Step::Retry => {
                "SET status = ?2, retry_at = ?3, reason = ?4, attempts = 0, started_at = NULL,
                     ended_at = NULL, changed_at = ?5"
            }
        };
        self.inner
            .prepare_cached(&format!("UPDATE {table} {sql} WHERE id = ?1"))?
            .execute((
                id,
                next.as_str(),
                crate::store::millis(retry_at),
                reason,
                now.0,
            ))?;
        Ok(next)
    }
}

pub(crate) fn parse_status(text: &str) -> Result<Lifecycle> {
    Lifecycle::parse(text).ok_or_else(|| StoreError::Corrupt {
        what: "status",
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{NewRun, Store};
    use archivist_core::model::Owner;
    use archivist_core::unit::UnitKind;

    #[test]
    fn hooks_of_crawls_under_way_have_a_user_each() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(1)).unwrap();
        let tx = store.begin().unwrap();
        let add = || {
            let new = NewCrawl {
                url: "http://a.test/",
                max_depth: 0,
                plugins: &[],
                config: &BTreeMap::new(),
                user: 0,
                now: Time(1),
            };
            tx.add_crawl(&new).unwrap()
        };
        let step = |id, step| tx.step_crawl(id, step, None, None, Time(2)).unwrap();
        let begin = |id| {
            tx.choose_hook_user(id, 3).unwrap();
            step(id, Step::Start);
            tx.crawl(id).unwrap().unwrap().hook_user
        };
        let crawls: Vec<CrawlId> = (0..5).map(|_| add()).collect();
        let mut users: Vec<u32> = crawls[..3].iter().map(|id| begin(*id)).collect();
        users.sort();
        assert_eq!(users, [1, 2, 3]);
        let of = |id: CrawlId| tx.crawl(id).unwrap().unwrap().hook_user;
        assert_eq!(of(crawls[3]), 0, "one that waits has none");

        // One that is over gives its user to the next, and so does one that waits for a retry.
        step(crawls[1], Step::Seal);
        step(crawls[0], Step::Seal);
        step(crawls[0], Step::Retry);
        let mut free = [of(crawls[0]), of(crawls[1])];
        let mut next = [begin(crawls[3]), begin(crawls[4])];
        free.sort();
        next.sort();
        assert_eq!(next, free);

        // What is cancelled has hooks for a while yet.
        let last = add();
        step(crawls[2], Step::Cancel);
        let run = NewRun {
            kind: UnitKind::Hook,
            owner: Owner::Crawl(crawls[2]),
            crawl: crawls[2],
            plugin: Some("p"),
            hook: Some("h"),
            attempt: 1,
            unit: "archivist-hook-p-h-c3.service",
            boot: "boot",
            argv: &[],
            now: Time(3),
        };
        tx.record_run(&run).unwrap();
        step(crawls[3], Step::Seal);
        assert_eq!(begin(last), of(crawls[3]));
    }
}
