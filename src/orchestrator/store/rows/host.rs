//! What hosts are asked to bear: how many snapshots of a host are at work, and when the next one
//! may start.

use crate::store::rows::pause::AWAKE;
use crate::store::{Result, Tx};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_core::plan::{Host, HostId};
use std::time::Duration;

impl Tx<'_> {
    /// A host, with `pace` from one start to the next where it does not ask for more.
    pub fn host_view(&self, id: HostId, pace: Duration) -> Result<Host> {
        let sql = format!(
            "SELECT name, next_at, crawl_delay,
                 (SELECT count(*) FROM run INDEXED BY run_open
                     JOIN snapshot ON snapshot.id = run.snapshot_id
                     WHERE run.status <> 'ended' AND run.kind = 'snapshot'
                         AND snapshot.host_id = host.id AND {AWAKE})
             FROM host WHERE id = ?1"
        );
        Ok(self.inner.prepare_cached(&sql)?.query_row([id.0], |row| {
            let asked = Duration::from_millis(row.get::<_, i64>(2)?.max(0) as u64);
            Ok(Host {
                name: row.get(0)?,
                next_at: Time(row.get(1)?),
                delay: pace.max(asked),
                running: row.get(3)?,
            })
        })?)
    }

    /// The host of a snapshot.
    pub fn host_of(&self, id: SnapshotId) -> Result<HostId> {
        Ok(self
            .inner
            .prepare_cached("SELECT host_id FROM snapshot WHERE id = ?1")?
            .query_row([id.0], |row| row.get(0).map(HostId))?)
    }

    /// What a host asks for, in words: the last that it said, and between which starts.
    pub fn host_asked(&self, id: HostId) -> Result<Option<String>> {
        Ok(self
            .inner
            .prepare_cached("SELECT asked FROM host WHERE id = ?1")?
            .query_row([id.0], |row| row.get(0))?)
    }

    /// Leaves a host alone until then, for a reason in words.
    pub fn host_until(&self, id: HostId, until: Time, said: &str, now: Time) -> Result<()> {
        self.inner
            .prepare_cached(
                "UPDATE host SET next_at = max(next_at, ?2), asked = ?3, asked_at = ?4
                 WHERE id = ?1",
            )?
            .execute((id.0, until.0, said, now.0))?;
        Ok(())
    }

    /// What a host asks to have between two starts, from now on; zero when it asks for nothing any
    /// more.
    pub fn host_delay(&self, id: HostId, delay: Duration, now: Time) -> Result<()> {
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.inner
            .prepare_cached(
                "UPDATE host SET crawl_delay = ?2, asked_at = ?3, next_at = max(next_at, ?2 + ?3)
                 WHERE id = ?1",
            )?
            .execute((id.0, millis, now.0))?;
        Ok(())
    }

    /// Notes that a snapshot is begun on a host: it has had its turn in the crawl, and is left
    /// alone until `next_at`.
    pub fn begin_on_host(&self, crawl: CrawlId, host: HostId, next_at: Time) -> Result<()> {
        self.inner
            .prepare_cached("UPDATE crawl SET last_host = ?2 WHERE id = ?1")?
            .execute((crawl.0, host.0))?;
        self.inner
            .prepare_cached("UPDATE host SET next_at = max(next_at, ?2) WHERE id = ?1")?
            .execute((host.0, next_at.0))?;
        Ok(())
    }
}
