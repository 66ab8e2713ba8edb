//! `--repair`: what was printed, and nothing else.

use super::finding::{Repair, Report};
use super::page::Page;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Orders;
use crate::client::owner::as_owner;
use crate::client::search_index;
use crate::client::server::Server;
use crate::display::style;
use crate::staging::recording;
use archivist_config::Scope;
use archivist_core::model::{IdMarks, Owner};
use archivist_shared::id_marks;
use archivist_worker::WorkerError;
use archivist_worker::lists::Lists;
use std::collections::BTreeSet;
use std::path::Path;

/// Carries out the repairs of a report, and marks what is repaired. Pages are before the lists that name
/// them, and the list of the newest is after those that it is made of.
pub async fn repair(
    report: &mut Report,
    lists: &Lists,
    server: &Server,
    scope: &Scope,
    prints: bool,
) -> Result<(), Failure> {
    let orders = Orders::begin(scope).await;
    let archive = scope.data_dir().join("archive");
    let mut written = BTreeSet::new();
    for finding in &mut report.findings {
        let done = match &finding.repair {
            None => continue,
            Some(Repair::Retry(id)) => {
                orders.retry_all(Owner::Snapshot(*id), server).await?;
                format!("{id} queued again")
            }
            Some(Repair::Ids(ids)) => {
                as_owner(&archive, || id_marks::raise(&archive, *ids)).map_err(|error| {
                    let directory = archive.join(IdMarks::DIRECTORY);
                    Failure::failed(format!("failed to write '{}': {error}", directory.display()))
                })?;
                // The orchestrator compares its ids with those of the archive again.
                server.call(|| server.proxy().reload()).await?;
                format!("new ids are higher than {ids}")
            }
            Some(Repair::Page(id)) => {
                // It may be archived again by now, and gets its page at the end.
                if let Some(page) = Page::read(server, *id).await? {
                    write(&archive, || lists.write_page(&page.snapshot, &page.results))?;
                }
                format!("{} written", finding.path)
            }
            Some(Repair::Index) => {
                search_index::rebuild(server).await?;
                "the search index is built again".to_owned()
            }
            // The import prints what it takes in.
            Some(Repair::Import(_)) if !prints => continue,
            Some(Repair::Import(recording)) => {
                match recording::import(recording, &[], false, scope).await? {
                    Exit::Done => {}
                    _ => continue,
                }
                format!("the recording of '{}' is imported", finding.path)
            }
            Some(Repair::List(list)) => {
                // One list may have several damaged files.
                if written.insert(list.clone()) {
                    write(&archive, || lists.write(list))?;
                }
                format!("{} written", finding.path)
            }
        };
        finding.repaired = true;
        if prints {
            style::print(&format!("{done}\n"))?;
        }
    }
    Ok(())
}

fn write(archive: &Path, work: impl FnOnce() -> Result<(), WorkerError>) -> Result<(), Failure> {
    let written = as_owner(archive, || Ok(work()));
    let written = written.map_err(|error| {
        let archive = archive.display();
        Failure::failed(format!("failed to write to the archive '{archive}' as its owner: {error}"))
    })?;
    written.map_err(|error| Failure::failed(error.to_string()))
}
