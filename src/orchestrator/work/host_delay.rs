//! Delays of hosts: configured, and requested by the host.

use crate::main_loop::log::LogEntry;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CrawlId, SnapshotId, Time};
use archivist_shared::bus::documents::work::Report;
use std::time::Duration;

/// Longest delay between two starts that a host can request.
const DELAY_MAX: Duration = Duration::from_secs(600);

impl Turn<'_> {
    /// Delays the next snapshot of this snapshot's host.
    pub(crate) fn pace(&self, crawl: CrawlId, id: SnapshotId) -> TurnResult<()> {
        let host = self.tx.host_of(id)?;
        let delay = self.host_view(host)?.delay;
        let next_at = if delay.is_zero() {
            Time(0)
        } else {
            self.now.after(delay)
        };
        Ok(self.tx.begin_on_host(crawl, host, next_at)?)
    }

    /// Applies what the host of a snapshot requested: Retry-After of an answer, Crawl-delay of its
    /// robots.txt.
    pub(crate) fn apply_host_limits(&mut self, id: SnapshotId, report: &Report) -> TurnResult<()> {
        if let Some(seconds) = report.retry_after {
            let host = self.tx.host_of(id)?;
            let longest = self.engine.settings.http_wait_max;
            let until = self.now.after(Duration::from_secs(seconds).min(longest));
            self.tx.set_asked(id, until)?;
            let said = format!("the host requested no further page before {until} (Retry-After)");
            self.tx.host_until(host, until, &said, self.now)?;
            self.log(LogEntry::HostDelayed { id, until });
        }
        if let Some(millis) = report.crawl_delay {
            let delay = Duration::from_millis(millis).min(DELAY_MAX);
            let host = self.tx.host_of(id)?;
            self.tx.host_delay(host, delay, self.now)?;
        }
        Ok(())
    }
}
