//! What this node reports to the fleet's database. A request is written in the transaction of the
//! change that it reports.

use crate::main_loop::action::ReplyAction;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::store::{ResultRow, StoreError};
use archivist_core::fleet::{Epoch, HookResult, PageEnd, PageTimes, Record, Request};
use archivist_core::model::{Lifecycle, Owner, SnapshotId};

impl Turn<'_> {
    /// Appends a request to the outbox.
    pub(super) fn send_to_fleet(&mut self, request: &Request) -> TurnResult<()> {
        self.tx.add_to_outbox(request)?;
        self.act(ReplyAction::OutboxChanged);
        Ok(())
    }

    /// Reports the pages of the fleet that became final in this turn, and releases hosts that waited for
    /// them.
    pub(crate) fn report_ended_pages(&mut self) -> TurnResult<()> {
        let changed = self.changes.iter().filter_map(|change| match change {
            Change::Snapshot { crawl, id } => Some((*crawl, *id)),
            _ => None,
        });
        let mut has_ended = false;
        for (crawl, id) in changed.collect::<Vec<_>>() {
            let Some((epoch, _)) = self.tx.page_epoch(id)? else {
                continue;
            };
            let Some(record) = self.record_of(id, epoch)? else {
                continue;
            };
            self.send_to_fleet(&Request::Record(record))?;
            self.tx.set_recorded(id, epoch)?;
            self.tx.set_paged_at(crawl, self.now)?;
            has_ended = true;
        }
        if has_ended {
            self.release_leaving()?;
        }
        Ok(())
    }

    /// Returns the record of a page; `None` if the page is not final.
    pub(super) fn record_of(
        &self,
        id: SnapshotId,
        epoch: Epoch,
    ) -> Result<Option<Record>, StoreError> {
        let Some(page) = self.tx.snapshot(id)? else {
            return Ok(None);
        };
        let end = match page.status {
            Lifecycle::Sealed => PageEnd::Sealed,
            Lifecycle::Cancelled => PageEnd::Cancelled,
            Lifecycle::Queued | Lifecycle::Started | Lifecycle::Paused => return Ok(None),
        };
        let results = self.tx.results(Owner::Snapshot(id))?;
        let started = results.iter().filter_map(|result| result.started_at).min();
        let ended = self.tx.snapshot_ended_at(id)?.unwrap_or(self.now);
        let took = started.map(|started| ended.until(started));
        let took = took.unwrap_or_default();
        Ok(Some(Record {
            page: id,
            epoch,
            end,
            reason: page.reason,
            directory: page.directory,
            results: results.into_iter().map(result).collect(),
            children: Vec::new(),
            times: PageTimes {
                took,
                ..PageTimes::default()
            },
        }))
    }
}

fn result(row: ResultRow) -> HookResult {
    let took = row.ended_at.zip(row.started_at);
    HookResult {
        plugin: row.plugin,
        hook: row.hook,
        state: row.status,
        output: row.output,
        error: row.error,
        size: row.size,
        attempts: row.attempts,
        took: took.map(|(ended, started)| ended.until(started)),
    }
}
