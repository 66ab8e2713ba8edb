//! Rows that several parts of a turn read.

use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use crate::store::{CrawlWork, SnapshotWork, Sum, ViewQuery};
use archivist_core::model::{CrawlId, IdMarks, Lifecycle, Owner, PageUrl, ResultState, SnapshotId};
use archivist_core::plan::{Limits, View, pressure};
use archivist_shared::bus::call::Refusal;
use std::path::{Path, PathBuf};

impl Turn<'_> {
    /// # Errors
    /// If there is no such crawl.
    pub(crate) fn crawl_of(&self, id: CrawlId) -> TurnResult<CrawlWork> {
        let missing = || TurnError::Refused(Refusal::NoSuch(format!("there is no crawl {id}")));
        self.tx.crawl(id)?.ok_or_else(missing)
    }

    /// # Errors
    /// If there is no such snapshot.
    pub(crate) fn snapshot_of(&self, id: SnapshotId) -> TurnResult<SnapshotWork> {
        let missing = || TurnError::Refused(Refusal::NoSuch(format!("there is no snapshot {id}")));
        self.tx.snapshot(id)?.ok_or_else(missing)
    }

    pub(crate) fn crawl_of_owner(&self, owner: Owner) -> TurnResult<CrawlWork> {
        match owner {
            Owner::Crawl(id) => self.crawl_of(id),
            Owner::Snapshot(id) => self.crawl_of(self.snapshot_of(id)?.crawl),
        }
    }

    /// The crawl as the hooks of `owner` see it: with the settings of the page, if it has any.
    pub(crate) fn crawl_for(&self, owner: Owner) -> TurnResult<CrawlWork> {
        let Owner::Snapshot(id) = owner else {
            return self.crawl_of_owner(owner);
        };
        let page = self.snapshot_of(id)?;
        let mut crawl = self.crawl_of(page.crawl)?;
        if !page.config.is_empty() {
            crawl.page = Some(id);
            crawl.config.extend(page.config);
        }
        Ok(crawl)
    }

    /// The state of a hook's result, if there is one.
    pub(crate) fn result_state(
        &self,
        owner: Owner,
        plugin: &str,
        hook: &str,
    ) -> TurnResult<Option<ResultState>> {
        let result = self.tx.result(owner, plugin, hook)?;
        Ok(result.map(|result| result.status))
    }

    /// `archive/YYYYMMDD/DOMAIN/ID` for the day on which the owner was added.
    pub(crate) fn directory(&self, day: &str, url: &str, owner: Owner) -> PathBuf {
        let domain = PageUrl::parse(url).map_or_else(|_| "unknown".to_owned(), |url| url.domain());
        self.engine
            .archive()
            .join(day)
            .join(domain)
            .join(owner.to_string())
    }

    /// Whether the directory of a page that was archived is gone, although the archive is there, which
    /// its marks of ids prove: an empty mount point has none. A page whose files only the store has keeps
    /// its directory.
    pub(crate) fn has_lost_directory(&self, page: Lifecycle, directory: Option<&str>) -> bool {
        let Some(directory) = directory.filter(|_| page == Lifecycle::Sealed) else {
            return false;
        };
        let facts = &self.engine.facts;
        let marks = self.engine.archive().join(IdMarks::DIRECTORY);
        facts.has_file(&marks) && !facts.has_file(Path::new(directory))
    }

    pub(crate) fn crawl_directory(&self, crawl: &CrawlWork) -> PathBuf {
        match &crawl.directory {
            Some(directory) => PathBuf::from(directory),
            None => self.directory(&crawl.created_at.day(), &crawl.url, Owner::Crawl(crawl.id)),
        }
    }

    /// What the plan decides from.
    pub(crate) fn view(&self, limits: &Limits) -> TurnResult<View> {
        let mut view = self.tx.view(&ViewQuery {
            limits,
            pace: self.engine.settings.host_delay,
            leases: self.leases()?,
            stores: self.keep_local(),
        })?;
        let deadline = self.next_deadline()?;
        view.next_due = [view.next_due, deadline].into_iter().flatten().min();
        for crawl in &mut view.open_crawls {
            if self.leaving_out.contains(&crawl.id) {
                crawl.due.clear();
            }
        }
        let mut needed = 0u64;
        for crawl in &view.open_crawls {
            let pages = self.tx.used(crawl.id, Sum::Pages)?.max(1);
            let each = self.tx.used(crawl.id, Sum::Bytes)? / pages;
            needed = needed.saturating_add(each.saturating_mul(u64::from(crawl.running)));
        }
        view.is_outage = self.engine.load.outage.is_some();
        view.pressure = pressure(&self.engine.load, needed, &self.engine.load_limits());
        Ok(view)
    }
}
