//! Rows of crawls.

use crate::database::column::{Columns, columns};
use crate::database::rows::directory::row_of;
use crate::database::{DatabaseError, Result, Tx};
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, Step, Time};
use std::collections::{BTreeMap, BTreeSet};

pub struct NewCrawl<'a> {
    /// Its URL, with user name and password if it has any.
    pub url: &'a str,
    /// Links to follow from the given pages.
    pub max_depth: u32,
    /// Plugins that run; empty means all.
    pub plugins: &'a [String],
    /// Settings, secrets included.
    pub config: &'a BTreeMap<String, String>,
    pub user: u32,
    pub now: Time,
}

/// Ids of the users whose settings a crawl has: the user who added the crawl and those who amended
/// it.
pub type Users = BTreeSet<u32>;

/// A crawl as the orchestrator and its worker use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlWork {
    /// Number of its row, printed as `c12`.
    pub id: CrawlId,
    /// Queued, started, paused, sealed or cancelled.
    pub status: Lifecycle,
    /// Its URL, with user name and password if it has any.
    pub url: String,
    pub max_depth: u32,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    /// Settings, secrets included.
    pub config: BTreeMap<String, String>,
    /// When it was queued.
    pub created_at: Time,
    pub attempts: u32,
    /// Whether its setup hooks are done; stays true after its last snapshot.
    pub ready: bool,
    /// Token of its worker; `None` before the first start.
    pub token: Option<String>,
    /// Its directory; `None` before the first start.
    pub directory: Option<String>,
    /// Identity of its directory; `None` before the first start, and in rows of older versions.
    pub identity: Option<String>,
    /// N of the user `archivist-hook-N` that its hooks run as; 0 is `archivist-hook`.
    pub hook_user: u32,
    /// Users whose settings it has.
    pub users: Users,
    /// The page whose own settings `config` includes; `None` for the crawl as a whole.
    pub page: Option<SnapshotId>,
    /// Name of the persona of its latest attempt, empty if it had none; `None` before the first
    /// attempt.
    pub persona: Option<String>,
}

columns! {
    CrawlWork: id, status, url, max_depth, plugins, config, created_at, attempts,
        ready "phase <> 'setup'", token, directory, identity, hook_user, users, persona;
        page: None
}

impl Tx<'_> {
    pub fn set_crawl_plugins(&self, id: CrawlId, plugins: &[String]) -> Result<()> {
        self.execute(
            "UPDATE crawl SET plugins = ?2 WHERE id = ?1",
            (id.0, serde_json::to_string(plugins)?),
        )
    }

    /// Inserts a crawl as queued.
    pub fn add_crawl(&self, new: &NewCrawl<'_>) -> Result<CrawlId> {
        self.execute(
            "INSERT INTO crawl (url, max_depth, plugins, config, created_at, retry_at, users)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
            (
                new.url,
                new.max_depth,
                serde_json::to_string(new.plugins)?,
                serde_json::to_string(new.config)?,
                new.now.0,
                serde_json::to_string(&[new.user])?,
            ),
        )?;
        Ok(CrawlId(self.inner.last_insert_rowid()))
    }

    /// Records that a command in the foreground added a crawl; the same command, of the same
    /// `digest`, joins it. `None`: no command joins it any more.
    pub fn set_foreground(&self, id: CrawlId, digest: Option<&[u8]>) -> Result<()> {
        self.execute("UPDATE crawl SET foreground = ?2 WHERE id = ?1", (id.0, digest))
    }

    /// Returns the open crawl that a command in the foreground of this `digest` added, and when. A
    /// paused crawl is not among them: a user has to resume it.
    pub fn foreground_crawl(&self, digest: &[u8]) -> Result<Option<(CrawlId, Time)>> {
        self.first(
            "SELECT id, created_at FROM crawl
             WHERE foreground = ?1 AND status IN ('queued', 'started') LIMIT 1",
            [digest],
        )
    }

    /// Delays a queued crawl until `until`.
    pub fn put_off_crawl(&self, id: CrawlId, until: Time, reason: Option<&str>) -> Result<()> {
        self.execute(
            "UPDATE crawl SET retry_at = ?2, reason = ?3 WHERE id = ?1 AND status = 'queued'",
            (id.0, until.0, reason),
        )
    }

    /// Returns the queued crawls that are delayed for this reason.
    pub fn crawls_put_off(&self, reason: &str) -> Result<Vec<CrawlId>> {
        self.all(
            "SELECT id FROM crawl WHERE status = 'queued' AND reason = ?1 ORDER BY id",
            [reason],
        )
    }

    pub fn crawl(&self, id: CrawlId) -> Result<Option<CrawlWork>> {
        let sql = format!("SELECT {} FROM crawl WHERE id = ?1", CrawlWork::COLUMNS);
        self.first(&sql, [id.0])
    }

    /// Returns the status of a crawl, the reason for it, and the URL of the crawl.
    pub fn crawl_state(&self, id: CrawlId) -> Result<(Lifecycle, Option<String>, String)> {
        let state = self.first("SELECT status, reason, url FROM crawl WHERE id = ?1", [id.0])?;
        state.ok_or_else(|| DatabaseError::NoSuch(format!("crawl {id}")))
    }

    /// Returns the URLs that a user gave to a crawl in their order, at most `most` of them.
    pub fn crawl_urls(&self, id: CrawlId, most: u32) -> Result<Vec<String>> {
        self.all(
            "SELECT url FROM snapshot WHERE crawl_id = ?1 AND given
             ORDER BY id LIMIT ?2",
            (id.0, most),
        )
    }

    /// Returns one URL for each host of the pages that a user gave to a crawl. Pages that other
    /// pages or hooks name are not among them.
    pub fn start_hosts(&self, id: CrawlId) -> Result<Vec<String>> {
        self.all(
            "SELECT min(url) FROM snapshot INDEXED BY snapshot_given
             WHERE crawl_id = ?1 AND given GROUP BY host_id",
            [id.0],
        )
    }

    /// Returns the oldest snapshot of a crawl.
    pub fn first_snapshot(&self, id: CrawlId) -> Result<Option<SnapshotId>> {
        self.one("SELECT min(id) FROM snapshot WHERE crawl_id = ?1", [id.0])
    }

    /// Applies a step to a crawl and sets `retry_at` and `reason`. Returns the new status.
    pub fn step_crawl(
        &self,
        id: CrawlId,
        step: Step,
        retry_at: Option<Time>,
        reason: Option<&str>,
        now: Time,
    ) -> Result<Lifecycle> {
        self.step(Owner::Crawl(id), step, retry_at, reason, now)
    }

    /// Records that the setup of a crawl is done, so that its snapshots may start.
    pub fn set_crawl_ready(&self, id: CrawlId) -> Result<()> {
        self.execute("UPDATE crawl SET phase = 'snapshots' WHERE id = ?1", [id.0])
    }

    /// Records that all snapshots of a crawl are final and its background hooks end now. A snapshot
    /// that is retried later waits for the next worker of the crawl.
    pub fn release_crawl(&self, id: CrawlId) -> Result<()> {
        self.execute("UPDATE crawl SET phase = 'end' WHERE id = ?1 AND phase = 'snapshots'", [id.0])
    }

    /// Whether the background hooks of a crawl have ended with its worker, because all its snapshots
    /// were final.
    pub fn is_released(&self, id: CrawlId) -> Result<bool> {
        self.one("SELECT phase = 'end' FROM crawl WHERE id = ?1", [id.0])
    }

    /// Records the token of a crawl's worker and the directory of the crawl.
    pub fn equip_crawl(&self, id: CrawlId, token: &str, directory: &str) -> Result<()> {
        self.execute(
            "UPDATE crawl SET token = ?2, directory = ?3, phase = 'setup' WHERE id = ?1",
            (id.0, token, directory),
        )
    }

    /// Chooses the user for the hooks of a crawl that starts: the one of `users` that the fewest
    /// running crawls have. The choice is final, because that user owns the files of the hooks.
    pub fn choose_hook_user(&self, id: CrawlId, users: u32) -> Result<()> {
        self.execute(
            "UPDATE crawl SET hook_user = (
                 WITH RECURSIVE user (n) AS
                     (SELECT 1 UNION ALL SELECT n + 1 FROM user WHERE n < ?2),
                 busy (id) AS
                     (SELECT id FROM crawl WHERE hook_user > 0 AND attempts > 0
                          AND status IN ('queued', 'started', 'paused')
                      UNION SELECT crawl_id FROM run WHERE status IN ('starting', 'running')),
                 taken (n) AS
                     (SELECT other.hook_user FROM busy JOIN crawl other USING (id))
                 SELECT n FROM user ORDER BY
                     (SELECT count(*) FROM taken WHERE taken.n = user.n),
                     (n + ?2 - ?1 % ?2) % ?2
                 LIMIT 1)
             WHERE id = ?1",
            (id.0, users),
        )
    }

    /// Shared by crawls and snapshots, whose columns have the same names.
    pub(super) fn step(
        &self,
        owner: Owner,
        step: Step,
        retry_at: Option<Time>,
        reason: Option<&str>,
        now: Time,
    ) -> Result<Lifecycle> {
        let (table, id) = row_of(owner);
        let next = self.status_of(owner)?.apply(step);
        let next = next.map_err(|source| DatabaseError::Illegal {
            what: format!("{table} {owner}"),
            source,
        })?;
        let sql = match step {
            Step::Start => {
                "SET status = ?2, retry_at = ?3, reason = ?4, attempts = attempts + 1,
                 started_at = coalesce(started_at, ?5), ended_at = NULL, changed_at = ?5"
            }
            // `retry_at` stays, which is the place in the queue.
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
        self.execute(
            &format!("UPDATE {table} {sql} WHERE id = ?1"),
            (id, next.as_str(), crate::database::millis(retry_at), reason, now.0),
        )?;
        Ok(next)
    }

    pub fn set_only_new(&self, crawl: CrawlId) -> Result<()> {
        self.execute("UPDATE crawl SET only_new = 1 WHERE id = ?1", [crawl.0])
    }

    /// Returns whether a crawl leaves out pages that the archive has.
    pub fn is_only_new(&self, crawl: CrawlId) -> Result<bool> {
        self.one("SELECT only_new FROM crawl WHERE id = ?1", [crawl.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, NewRun};
    use archivist_core::model::Owner;
    use archivist_core::unit::UnitKind;

    #[test]
    fn running_crawls_have_different_hook_users() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        let tx = database.begin().unwrap();
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
        assert_eq!(of(crawls[3]), 0, "a queued crawl has none");

        // A sealed crawl passes its user on, and so does one that waits for a retry.
        step(crawls[1], Step::Seal);
        step(crawls[0], Step::Seal);
        step(crawls[0], Step::Retry);
        let mut free = [of(crawls[0]), of(crawls[1])];
        let mut next = [begin(crawls[3]), begin(crawls[4])];
        free.sort();
        next.sort();
        assert_eq!(next, free);

        // Hooks of a cancelled crawl may still be ending.
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
            parent: None,
            directory: None,
            limit: None,
            environment: Default::default(),
            not_after: None,
            now: Time(3),
        };
        tx.record_run(&run).unwrap();
        step(crawls[3], Step::Seal);
        assert_eq!(begin(last), of(crawls[3]));
    }
}
