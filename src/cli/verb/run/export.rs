//! Which pages `--dir` and `--output` copy, and when: after they have ended.

use super::copy::{Layout, Target};
use super::input::Input;
use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::Server;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_shared::bus::documents::report::{Details, Filter, Snapshot};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::Signal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    pub crawl: CrawlId,
    /// Only these; empty means all.
    pub only: BTreeSet<SnapshotId>,
}

/// Whether the input names a single page. A crawl may have any number.
pub fn is_one_page(input: &Input) -> bool {
    let requeues = input.requeues.iter().map(|(id, _)| *id);
    let ids: Vec<Owner> = requeues.chain(input.claims.iter().map(|(_, claim)| claim.id)).collect();
    let crawls = input.crawls.len() + ids.iter().filter(|id| matches!(id, Owner::Crawl(_))).count();
    crawls == 0 && input.urls.len() + ids.len() == 1
}

/// Copies the directories of these pages, oldest page first. Returns [`Exit::Partly`] if `target`
/// has room for one page only, and [`Exit::Interrupted`] after Ctrl-C.
pub async fn copy(
    server: &Server,
    target: Target,
    pages: &[Pages],
    interrupts: &mut Signal,
) -> Result<Exit, Failure> {
    let mut found = BTreeSet::new();
    for pages in pages {
        found.extend(directories(server, pages).await?);
    }
    let mut exit = Exit::Done;
    let mut copied: Vec<(SnapshotId, PathBuf)> = found.into_iter().collect();
    if target.layout() == Layout::OnePage && copied.len() > 1 {
        let others: Vec<String> = copied.drain(1..).map(|(id, _)| id.to_string()).collect();
        eprintln!(
            "not copied: {}; --dir has room for one page, --output for several",
            others.join(", ")
        );
        exit = Exit::Partly;
    }
    let target = Arc::new(target);
    for (id, directory) in copied {
        let into = target.clone();
        let copying = tokio::task::spawn_blocking(move || into.copy(id, &directory));
        tokio::select! {
            biased;
            done = copying => {
                let done = done.map_err(|error| Failure::failed(format!("failed to copy {id}: {error}")))?;
                done.map_err(|failure| unfinished(&failure, id, &target))?;
            }
            _ = interrupts.recv() => return Ok(Exit::Interrupted),
        }
    }
    Ok(exit)
}

/// Adds to an error how the copy is repeated: the archive has the page.
fn unfinished(failure: &Failure, id: SnapshotId, target: &Target) -> Failure {
    let option = match target.layout() {
        Layout::OnePage => "--dir",
        Layout::ById => "--output",
    };
    let path = target.path().display();
    Failure::failed(format!(
        "{}\nthe archive has the page; to copy it again: archivist run --snapshot-id {id} {option} '{path}'",
        failure.message()
    ))
}

/// Returns the pages that have a directory.
async fn directories(
    server: &Server,
    pages: &Pages,
) -> Result<Vec<(SnapshotId, PathBuf)>, Failure> {
    let mut snapshots: Vec<Snapshot> = Vec::new();
    if pages.only.is_empty() {
        let filter = Filter::of(Owner::Crawl(pages.crawl));
        snapshots = Paging::new(server, filter).collect().await?;
    }
    for id in &pages.only {
        let id = id.to_string();
        let details: Details = server.ask(|| server.proxy().show(&id)).await?;
        if let Details::Snapshot { snapshot, .. } = details {
            snapshots.push(snapshot);
        }
    }
    let directory = |page: Snapshot| Some((page.id, PathBuf::from(page.directory?)));
    Ok(snapshots.into_iter().filter_map(directory).collect())
}
