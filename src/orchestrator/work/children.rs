//! The pages that hooks find. Those of a long report are queued in chunks, one in each turn, before
//! the result is recorded: if the orchestrator ends in between, the worker reports again, and no
//! page is queued twice.

use crate::database::rows::fleet::FleetCrawl;
use crate::database::{CrawlWork, NewSnapshot};
use crate::fleet;
use crate::main_loop;
use crate::main_loop::saved;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid, parts};
use crate::notices;
use archivist_core::fleet::{HostKey, NewPage};
use archivist_core::model::{Owner, PageUrl, SnapshotId};
use archivist_core::plan::{ReportStep, Reporter, report_step, takes_depth};
use archivist_shared::bus::documents::work::{Child, Report};
use std::collections::HashMap;

/// Pages and tags of one report that are queued in one turn.
const ROWS_PER_TURN: usize = 500;

/// Whether all of these are queued in the turn that records the result.
pub(crate) fn is_short(children: &[Child]) -> bool {
    piece(children) == children.len()
}

/// How many of these are queued in one turn: at least one.
fn piece(children: &[Child]) -> usize {
    let mut room = ROWS_PER_TURN;
    let fits = |child: &&Child| {
        let some = room > 0;
        room = room.saturating_sub(1 + child.tags.len());
        some
    };
    children.iter().take_while(fits).count()
}

/// Queues the next pages of a long report, of which `done` are queued already. Returns how many
/// are queued afterwards, or None if no page is left and the turn records the result.
pub(crate) fn add_some_children(
    turn: &mut Turn<'_>,
    owner: Owner,
    report: &Report,
    done: usize,
) -> TurnResult<Option<usize>> {
    let rest = report.children.get(done..).unwrap_or_default();
    let (plugin, hook) = parts(&report.key)?;
    let crawl = main_loop::crawl_of_owner(turn, owner)?;
    let reporter = Reporter::of(owner, crawl.ready);
    let known = main_loop::result_state(turn, owner, plugin, hook)?;
    let is_short = is_short(&report.children);
    if report_step(reporter, is_short, rest.is_empty(), known) == ReportStep::Record {
        return Ok(None);
    }
    let parent = match owner {
        Owner::Snapshot(id) => Some(id),
        Owner::Crawl(_) => None,
    };
    let count = piece(rest);
    add_children(turn, &crawl, parent, &rest[..count])?;
    Ok(Some(done + count))
}

/// Queues the pages that a hook found for which depth and filters leave a place.
pub(crate) fn add_children(
    turn: &mut Turn<'_>,
    crawl: &CrawlWork,
    parent: Option<SnapshotId>,
    children: &[Child],
) -> TurnResult<()> {
    let from = parent.map(|parent| main_loop::snapshot_of(turn, parent)).transpose()?;
    let depth = from.as_ref().map_or(0, |from| from.depth + 1);
    if children.is_empty() || !takes_depth(crawl.status, depth, crawl.max_depth) {
        return Ok(());
    }
    let plan = turn.engine.plan(crawl).map_err(invalid)?;
    let only_new = turn.tx.is_only_new(crawl.id)?;
    let mut wanted = Vec::with_capacity(children.len());
    for child in children {
        let Ok(url) = PageUrl::parse(&child.url) else {
            continue;
        };
        if !plan.filter.follows(url.as_str(), from.as_ref().map(|from| from.url.as_str())) {
            continue;
        }
        if only_new && saved::is_archived(turn, url.as_str(), crawl.id)? {
            continue;
        }
        let host = url.domain();
        wanted.push((url, host, child));
    }
    let pages: Vec<NewSnapshot<'_>> = wanted
        .iter()
        .map(|(url, host, child)| NewSnapshot {
            url: url.as_str(),
            host,
            title: child.title.as_deref(),
            bookmarked_at: child.bookmarked_at.as_deref(),
            depth,
            given: false,
        })
        .collect();
    if turn.tx.fleet_crawl(crawl.id)? != FleetCrawl::No {
        let found = wanted.iter().map(|(url, host, child)| NewPage {
            url: url.as_str().to_owned(),
            host: HostKey(host.clone()),
            depth,
            given: false,
            title: child.title.clone(),
            bookmarked_at: child.bookmarked_at.clone(),
            tags: child.tags.clone(),
        });
        return fleet::send_pages(turn, crawl.id, found.collect());
    }
    let added = turn.tx.add_snapshots(crawl.id, parent, &pages, turn.now)?;
    notices::announce_pages(turn, crawl.id, &added)?;
    let tags: HashMap<&str, &Vec<String>> =
        wanted.iter().rev().map(|(url, _, child)| (url.as_str(), &child.tags)).collect();
    for (id, url) in &added {
        for tag in tags.get(url.as_str()).copied().into_iter().flatten() {
            turn.tx.tag_snapshot(*id, tag)?;
        }
        turn.changes.insert(Change::Snapshot { crawl: crawl.id, id: *id });
    }
    Ok(())
}
