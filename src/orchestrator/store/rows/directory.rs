//! The directories of crawls and snapshots, and the attempts that do not count.

use crate::store::{Result, Store, Tx};
use archivist_core::model::Owner;

impl Store {
    /// Whether a hook has ever succeeded, so that the archive has files.
    pub fn has_archived(&self) -> Result<bool> {
        Ok(self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM plugin_use WHERE succeeded > 0)")?
            .query_row([], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Records the identity that the directory of a crawl or snapshot must have.
    pub fn identify(&self, owner: Owner, identity: &str) -> Result<()> {
        let (sql, id) = match owner {
            Owner::Crawl(id) => ("UPDATE crawl SET identity = ?2 WHERE id = ?1", id.0),
            Owner::Snapshot(id) => ("UPDATE snapshot SET identity = ?2 WHERE id = ?1", id.0),
        };
        self.inner.prepare_cached(sql)?.execute((id, identity))?;
        Ok(())
    }

    /// Gives a crawl or snapshot another directory with another identity. Its results are queued
    /// again, because their files are not there.
    pub fn relocate(&self, owner: Owner, directory: &str, identity: &str) -> Result<()> {
        self.identify(owner, identity)?;
        let (sql, id) = match owner {
            Owner::Crawl(id) => ("UPDATE crawl SET directory = ?2 WHERE id = ?1", id.0),
            Owner::Snapshot(id) => ("UPDATE snapshot SET directory = ?2 WHERE id = ?1", id.0),
        };
        self.inner.prepare_cached(sql)?.execute((id, directory))?;
        self.requeue_all_results(owner)?;
        Ok(())
    }

    /// The last start is not counted as an attempt.
    pub fn take_back_attempt(&self, owner: Owner) -> Result<()> {
        let (sql, id) = match owner {
            Owner::Crawl(id) => (
                "UPDATE crawl SET attempts = max(attempts - 1, 0) WHERE id = ?1",
                id.0,
            ),
            Owner::Snapshot(id) => (
                "UPDATE snapshot SET attempts = max(attempts - 1, 0) WHERE id = ?1",
                id.0,
            ),
        };
        self.inner.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }
}
