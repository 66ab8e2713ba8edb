//! Compares the index of full text search with the rows.

use super::finding::{Finding, Kind, Repair};
use super::{Check, READ_AGAIN_MAX};
use crate::client::exit::Failure;
use crate::client::paging::Paging;
use crate::client::search_index::{self, INDEX};
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId};
use archivist_shared::bus::documents::report::{Filter, Snapshot, Status};
use std::collections::BTreeSet;

impl Check<'_> {
    /// Compares the search index with its checksums and with the rows. While the index is behind them, or
    /// is being built, only its files are compared, because it lacks what it is about to get.
    pub(super) async fn index(&mut self, scope: &Scope) -> Result<(), Failure> {
        let status: Status = self.server.ask(|| self.server.proxy().status()).await?;
        let Some(search) = status.search else {
            return Ok(());
        };
        let directory = scope.data_dir().join(INDEX);
        let path = directory.to_string_lossy().into_owned();
        let finding = |what: String| Finding {
            repair: Some(Repair::Index),
            ..Finding::new(Kind::Index, path.as_str(), what)
        };
        let known = match search_index::check(scope)? {
            Ok(known) => known,
            // The first build is not complete.
            Err(_) if search.is_building => {
                self.report.checked.index_is_behind = true;
                return Ok(());
            }
            Err(reason) => {
                self.report.add(finding(reason));
                return Ok(());
            }
        };
        if search.is_building || search.queued > 0 {
            self.report.checked.index_is_behind = true;
            return Ok(());
        }
        self.report.checked.indexed = Some(known.len() as u64);
        // Pages may have ended, been retried or deleted since their rows were read.
        let missing: Vec<SnapshotId> = self.ended.difference(&known).copied().collect();
        let unknown: Vec<SnapshotId> = known.difference(&self.ended).copied().collect();
        let lacking = self.still(&missing, true).await?;
        let deleted = self.still(&unknown, false).await?;
        if let Some(first) = lacking.first() {
            let what = described("it lacks", *first, lacking.len());
            self.report.add(finding(what));
        }
        if let Some(first) = deleted.first() {
            let what = described("it has the deleted page", *first, deleted.len());
            self.report.add(finding(what));
        }
        Ok(())
    }

    /// Returns the pages whose rows say now that they have ended, or, if `has_ended` is false, that have no
    /// row. At most [`READ_AGAIN_MAX`] rows are read; of further pages, the comparison before counts.
    async fn still(
        &self,
        ids: &[SnapshotId],
        has_ended: bool,
    ) -> Result<BTreeSet<SnapshotId>, Failure> {
        let mut still = BTreeSet::new();
        for id in ids.iter().take(READ_AGAIN_MAX) {
            let filter = Filter::of(Owner::Snapshot(*id));
            let rows: Vec<Snapshot> = Paging::new(self.server, filter).collect().await?;
            let is_so = match rows.first() {
                None => !has_ended,
                Some(row) => has_ended && row.status.is_final(),
            };
            if is_so {
                still.insert(*id);
            }
        }
        still.extend(ids.iter().skip(READ_AGAIN_MAX));
        Ok(still)
    }
}

fn described(what: &str, first: SnapshotId, count: usize) -> String {
    match count {
        1 => format!("{what} {first}"),
        2 => format!("{what} {first} and 1 other"),
        n => format!("{what} {first} and {} others", n - 1),
    }
}
