//! Rows that several parts of a turn read.

use crate::bus::call::Refusal;
use crate::database::rows::lease::Leases;
use crate::database::{CrawlWork, DatabaseError, SnapshotWork, Sum};
use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use archivist_core::model::{CrawlId, IdMarks, Lifecycle, Owner, PageUrl, ResultState, SnapshotId};
use archivist_core::plan::{Allowance, Clocks, Host, HostId, pressure};
use archivist_core::store::KeepLocal;
use std::path::PathBuf;

/// # Errors
/// If there is no such crawl.
pub(crate) fn crawl_of(turn: &Turn<'_>, id: CrawlId) -> TurnResult<CrawlWork> {
    let missing = || TurnError::Refused(Refusal::NoSuch(format!("there is no crawl {id}")));
    turn.tx.crawl(id)?.ok_or_else(missing)
}

/// # Errors
/// If there is no such snapshot.
pub(crate) fn snapshot_of(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<SnapshotWork> {
    let missing = || TurnError::Refused(Refusal::NoSuch(format!("there is no snapshot {id}")));
    turn.tx.snapshot(id)?.ok_or_else(missing)
}

pub(crate) fn crawl_of_owner(turn: &Turn<'_>, owner: Owner) -> TurnResult<CrawlWork> {
    match owner {
        Owner::Crawl(id) => crawl_of(turn, id),
        Owner::Snapshot(id) => crawl_of(turn, snapshot_of(turn, id)?.crawl),
    }
}

/// The crawl as the hooks of `owner` see it: with the settings of the page, if it has any.
pub(crate) fn crawl_for(turn: &Turn<'_>, owner: Owner) -> TurnResult<CrawlWork> {
    let Owner::Snapshot(id) = owner else {
        return crawl_of_owner(turn, owner);
    };
    let page = snapshot_of(turn, id)?;
    let mut crawl = crawl_of(turn, page.crawl)?;
    if !page.config.is_empty() {
        crawl.page = Some(id);
        crawl.config.extend(page.config);
    }
    Ok(crawl)
}

/// The state of a hook's result, if there is one.
pub(crate) fn result_state(
    turn: &Turn<'_>,
    owner: Owner,
    plugin: &str,
    hook: &str,
) -> TurnResult<Option<ResultState>> {
    let result = turn.tx.result(owner, plugin, hook)?;
    Ok(result.map(|result| result.status))
}

/// `archive/YYYYMMDD/DOMAIN/ID` for the day on which the owner was added.
pub(crate) fn directory(turn: &Turn<'_>, day: &str, url: &str, owner: Owner) -> PathBuf {
    let domain = PageUrl::parse(url).map_or_else(|_| "unknown".to_owned(), |url| url.domain());
    turn.engine.archive().join(day).join(domain).join(owner.to_string())
}

/// Whether the directory of a page that was archived is gone. A page whose files only the store has keeps
/// its directory.
pub(crate) fn has_lost_directory(
    turn: &Turn<'_>,
    page: Lifecycle,
    directory: Option<&str>,
) -> bool {
    let directory = directory.filter(|_| page == Lifecycle::Sealed);
    directory.is_some_and(|directory| has_lost(turn, vec![PathBuf::from(directory)]))
}

/// Whether none of these files of the archive is there although the archive is, which its marks of ids
/// prove: an empty mount point has none.
pub(crate) fn has_lost(turn: &Turn<'_>, files: Vec<PathBuf>) -> bool {
    let facts = &turn.engine.facts;
    let marks = turn.engine.archive().join(IdMarks::DIRECTORY);
    let are_gone = facts.are_gone(files);
    facts.has_file(&marks) && are_gone
}

pub(crate) fn crawl_directory(turn: &Turn<'_>, crawl: &CrawlWork) -> PathBuf {
    match &crawl.directory {
        Some(directory) => PathBuf::from(directory),
        None => directory(turn, &crawl.created_at.day(), &crawl.url, Owner::Crawl(crawl.id)),
    }
}

/// What the state of the machine allows to start.
pub(crate) fn allowance(turn: &Turn<'_>) -> Result<Allowance, DatabaseError> {
    let mut needed = 0u64;
    for (crawl, running) in turn.tx.snapshot_workers()? {
        let pages = turn.tx.used(crawl, Sum::Pages)?.max(1);
        let each = turn.tx.used(crawl, Sum::Bytes)? / pages;
        needed = needed.saturating_add(each.saturating_mul(u64::from(running)));
    }
    let load = &turn.engine.load;
    Ok(Allowance {
        pressure: pressure(load, needed, &turn.engine.load_limits()),
        is_outage: load.outage.is_some(),
    })
}

/// How long local files of stored pages stay; none without a store.
pub(crate) fn keep_local(turn: &Turn<'_>) -> Option<KeepLocal> {
    let store = turn.engine.settings.store.as_ref();
    store.map(|_| turn.engine.settings.keep_local)
}

/// Whether pages need leases now, and the clocks.
pub(crate) fn leases<'a>(turn: &'a Turn<'_>) -> Result<Leases<'a>, DatabaseError> {
    Ok(Leases {
        are_needed: turn.tx.node()?.is_some(),
        boot: &turn.engine.boot,
        clocks: Clocks { now: turn.now, machine: turn.boottime },
        orders: turn.engine.node_orders.get(),
    })
}

/// Returns a host with the configured delay.
pub(crate) fn host_view(turn: &Turn<'_>, id: HostId) -> TurnResult<Host> {
    let pace = turn.engine.settings.host_delay;
    let network = |name: &str| turn.engine.host_network(name, turn.now);
    Ok(turn.tx.host_view(id, pace, &leases(turn)?, &network)?)
}
