//! Everything about one crawl or snapshot.

use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use crate::query::documents::documents;
use archivist_core::model::Owner;
use archivist_shared::bus::call::Refusal;
use archivist_shared::bus::documents::report::{Details, Filter, ROWS_MAX};

impl Turn<'_> {
    pub(crate) fn details(&self, id: Owner) -> TurnResult<Details> {
        self.tx.status_of(id)?;
        let filter = Filter {
            owner: Some(id),
            limit: ROWS_MAX,
            ..Filter::default()
        };
        let none = || TurnError::Refused(Refusal::NoSuch(format!("there is no {id}")));
        let mut snapshots = self.snapshots(&filter)?;
        let mut results = documents(self.tx.list_results(&filter)?);
        let mut runs = documents(self.tx.list_runs(&filter)?);
        // The oldest first.
        snapshots.reverse();
        results.reverse();
        runs.reverse();
        Ok(match id {
            Owner::Crawl(_) => {
                let crawl = self
                    .tx
                    .list_crawls(&filter)?
                    .into_iter()
                    .next()
                    .ok_or_else(none)?;
                Details::Crawl {
                    crawl: crawl.into(),
                    snapshots,
                    results,
                    runs,
                }
            }
            Owner::Snapshot(_) => {
                let snapshot = snapshots.pop().ok_or_else(none)?;
                Details::Snapshot {
                    snapshot,
                    results,
                    runs,
                }
            }
        })
    }
}
