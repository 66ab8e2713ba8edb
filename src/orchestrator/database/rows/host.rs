//! Rows of hosts: how many snapshots of a host are running, and when the next one may start.

use crate::database::rows::lease::Leases;
use crate::database::rows::pause::AWAKE;
use crate::database::{Result, Tx};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_core::plan::{Host, HostId, HostNetwork};
use std::time::Duration;

/// What the network of the machine means for the host of this name.
pub type NetworkOf<'a> = &'a dyn Fn(&str) -> HostNetwork;

impl Tx<'_> {
    /// Returns a host. Its delay between two starts is `pace`, or longer if the host asks for that.
    pub fn host_view(
        &self,
        id: HostId,
        pace: Duration,
        leases: &Leases<'_>,
        network: NetworkOf<'_>,
    ) -> Result<Host> {
        let sql = format!(
            "SELECT name, next_at, crawl_delay,
                 (SELECT count(*) FROM run INDEXED BY run_open
                     JOIN snapshot ON snapshot.id = run.snapshot_id
                     WHERE run.status IN ('starting', 'running') AND run.kind = 'snapshot'
                         AND snapshot.host_id = host.id AND {AWAKE})
             FROM host WHERE id = ?1"
        );
        let lease = self.host_lease(id, leases)?;
        let (name, next_at, asked, running): (String, _, _, _) = self.one(&sql, [id.0])?;
        Ok(Host {
            network: network(&name),
            name,
            next_at,
            delay: pace.max(Duration::from_millis(asked)),
            running,
            lease,
        })
    }

    pub fn host_of(&self, id: SnapshotId) -> Result<HostId> {
        self.one("SELECT host_id FROM snapshot WHERE id = ?1", [id.0])
    }

    /// Returns the reason for which a host was delayed last.
    pub fn host_asked(&self, id: HostId) -> Result<Option<String>> {
        self.one("SELECT asked FROM host WHERE id = ?1", [id.0])
    }

    /// Delays the next start on a host until `until`, with the reason.
    pub fn host_until(&self, id: HostId, until: Time, reason: &str, now: Time) -> Result<()> {
        self.execute(
            "UPDATE host SET next_at = max(next_at, ?2), asked = ?3, asked_at = ?4
             WHERE id = ?1",
            (id.0, until.0, reason, now.0),
        )
    }

    /// Sets the delay between two starts that a host asks for; zero if it asks for none any more.
    pub fn host_delay(&self, id: HostId, delay: Duration, now: Time) -> Result<()> {
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.execute(
            "UPDATE host SET crawl_delay = ?2, asked_at = ?3, next_at = max(next_at, ?2 + ?3)
             WHERE id = ?1",
            (id.0, millis, now.0),
        )
    }

    /// Records that a snapshot starts on a host: the host had its turn in the crawl, and the next
    /// snapshot starts at `next_at` at the earliest.
    pub fn begin_on_host(&self, crawl: CrawlId, host: HostId, next_at: Time) -> Result<()> {
        self.execute("UPDATE crawl SET last_host = ?2 WHERE id = ?1", (crawl.0, host.0))?;
        self.execute(
            "UPDATE host SET next_at = max(next_at, ?2) WHERE id = ?1",
            (host.0, next_at.0),
        )
    }
}
