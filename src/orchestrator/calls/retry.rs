//! What failed, or is missing, is retried: a page, a crawl, or the whole archive. Of very many
//! pages one turn takes a piece, so that others are answered in between. A crawl of many pages that
//! is over is reopened with the first of them and begun after the last; should we end in between,
//! the caller has no answer and asks again.

use crate::database::{DatabaseError, SnapshotWork, Tx};
use crate::machine::library::installed_names;
use crate::machine::notify::beat;
use crate::main_loop;
use crate::main_loop::rooms::Which;
use crate::main_loop::saved::{has_failed_to_open, page_roles};
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::notices;
use crate::programs;
use crate::work::ends::WITH_CRAWL;
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, Step, Time};
use archivist_core::plan::{
    Notice, lacks, may_retry, reopens_crawl, retries_whole_page, retry, with_plugin,
};
use archivist_plugin::{HookFamily, Plugin, Skip};
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::HookTask;
use std::collections::BTreeSet;
use std::time::Duration;

const PAGES_PER_TURN: usize = 100;
const IDS_PER_TURN: i64 = 1_000;
/// How long a crawl waits for the next chunk of its list. Chunks follow each other at once.
const NEXT_CHUNK_TIMEOUT: Duration = Duration::from_secs(600);
/// Why a crawl waits whose pages are being queued.
const RETRYING: &str = "its pages are being queued again";

/// A retry of very many pages that is being queued in parts.
#[derive(Clone, Debug, Default)]
pub struct Retrying {
    pub count: u32,
    /// Ids of the affected pages: above the first, up to and including the second.
    pub range: (i64, i64),
    /// Pages up to this id are processed.
    pub after: i64,
    /// Crawls to start again when all pages are processed.
    pub reopened: BTreeSet<CrawlId>,
    /// All pages are queued; next come the crawls of `reopened` without such pages.
    pub leaving: bool,
}

pub(crate) enum Retried {
    /// So many results and pages are queued again.
    All(u32),
    /// The next turn continues.
    Some(Box<Retrying>),
}

/// Whether `name` is that of the plugin, or of a hook that it has for pages.
fn is_of_pages(plugin: &Plugin, name: &str) -> bool {
    let mut hooks = plugin.hooks.iter();
    hooks.any(|hook| {
        let is_of_page = hook.name.family == HookFamily::Snapshot;
        is_of_page && (plugin.name == name || hook.id == name)
    })
}

/// Queues results of `id` again, see [`Which`]. Without `id`: of every sealed page that has a
/// failed result of that kind, or lacks one. What was cancelled, or is not over, is left alone
/// then.
pub(crate) fn retry_some(
    turn: &mut Turn<'_>,
    id: Option<Owner>,
    which: &Which,
    so_far: Option<&Retrying>,
) -> TurnResult<Retried> {
    let mut so_far = match so_far {
        Some(so_far) => so_far.clone(),
        None => retry_first(turn, id, which)?,
    };
    forget_cancelled(turn, id, &mut so_far.reopened)?;
    let last = so_far.range.1;
    if !so_far.leaving {
        retry_window(turn, id, which, &mut so_far)?;
        if so_far.after >= last {
            check_count(turn, id, which, so_far.count)?;
            (so_far.leaving, so_far.after) = (true, so_far.range.0);
        }
    }
    if so_far.leaving && !so_far.reopened.is_empty() {
        let to = so_far.after.saturating_add(IDS_PER_TURN);
        let window = (so_far.after, to);
        turn.tx.leave_behind(&so_far.reopened, &WITH_CRAWL, window)?;
        so_far.after = to;
    }
    let is_over = so_far.leaving && (so_far.reopened.is_empty() || so_far.after >= last);
    for crawl in &so_far.reopened {
        if is_over {
            turn.tx.put_off_crawl(*crawl, turn.now, None)?;
        } else {
            let until = turn.now.after(NEXT_CHUNK_TIMEOUT);
            turn.tx.put_off_crawl(*crawl, until, Some(RETRYING))?;
        }
    }
    if is_over { Ok(Retried::All(so_far.count)) } else { Ok(Retried::Some(Box::new(so_far))) }
}

/// Retries what is not a page, and finds the range of pages to retry.
fn retry_first(turn: &mut Turn<'_>, id: Option<Owner>, which: &Which) -> TurnResult<Retrying> {
    let mut so_far = Retrying::default();
    let crawl = match id {
        None => None,
        Some(Owner::Crawl(crawl)) => {
            admit_plugin(turn, crawl, which)?;
            so_far.count = programs::retry_install(turn, crawl, which)?;
            Some(crawl)
        }
        Some(Owner::Snapshot(snapshot)) => {
            let page = main_loop::snapshot_of(turn, snapshot)?;
            admit_plugin(turn, page.crawl, which)?;
            let is_lost =
                main_loop::has_lost_directory(turn, page.status, page.directory.as_deref());
            turn.require_facts()?;
            so_far.count = retry_snapshot(turn, snapshot, which, is_lost)?;
            Some(page.crawl)
        }
    };
    if let Some(crawl) = crawl.filter(|_| so_far.count > 0) {
        reopen(turn, crawl, true, &mut so_far.reopened)?;
    }
    so_far.range = turn.tx.snapshot_range(crawl)?;
    so_far.after = so_far.range.0;
    Ok(so_far)
}

/// Queues the next pages again, and reopens their crawls.
fn retry_window(
    turn: &mut Turn<'_>,
    id: Option<Owner>,
    which: &Which,
    so_far: &mut Retrying,
) -> TurnResult<()> {
    let crawl = match id {
        None => None,
        Some(Owner::Crawl(crawl)) => Some(crawl),
        Some(Owner::Snapshot(_)) => {
            so_far.after = so_far.range.1;
            return Ok(());
        }
    };
    let to = so_far.after.saturating_add(IDS_PER_TURN);
    let window = (so_far.after, to);
    let with_failed = match which {
        Which::Hook(hook) => (true, Some(hook.as_str())),
        which => (*which != Which::Missing, None),
    };
    let roles = page_roles(turn);
    let opening = roles.iter().filter(|(_, role)| role.opens_page);
    let opening: Vec<&str> = opening.map(|(plugin, _)| plugin.as_str()).collect();
    let pages = match which {
        Which::Waiting(program) => {
            turn.tx.snapshots_skipped_for(&Skip::begin_for(program), window, PAGES_PER_TURN)?
        }
        _ => turn.tx.snapshots_to_retry(crawl, with_failed, &opening, window, PAGES_PER_TURN)?,
    };
    so_far.after = match pages.last() {
        Some((_, last)) if pages.len() == PAGES_PER_TURN => last.0,
        _ => to,
    };
    let mut crawls = BTreeSet::new();
    for (crawl, page) in pages {
        let count = retry_snapshot(turn, page, which, false)?;
        so_far.count = so_far.count.saturating_add(count);
        if count > 0 {
            crawls.insert(crawl);
        } else if !crawls.contains(&crawl) && main_loop::crawl_of(turn, crawl)?.status.is_final() {
            // Its plan was derived for the question alone.
            turn.engine.forget(crawl);
        }
    }
    for crawl in crawls {
        reopen(turn, crawl, id.is_some(), &mut so_far.reopened)?;
    }
    Ok(())
}

fn check_count(turn: &Turn<'_>, id: Option<Owner>, which: &Which, count: u32) -> TurnResult<()> {
    let Some(id) = id.filter(|_| count == 0) else {
        return Ok(());
    };
    let what = match which {
        Which::Failed => "failed or skipped result".to_owned(),
        Which::Hook(hook) => format!("'{hook}' result"),
        Which::All => "result".to_owned(),
        Which::Missing | Which::Waiting(_) => return Ok(()),
    };
    // The transaction is rolled back, with the plugin that the plan may have been given.
    turn.engine.forget(match id {
        Owner::Crawl(crawl) => crawl,
        Owner::Snapshot(page) => main_loop::snapshot_of(turn, page)?.crawl,
    });
    let is_open = match id {
        Owner::Crawl(crawl) => turn.tx.has_open_snapshots(crawl)?,
        Owner::Snapshot(_) => false,
    };
    let of = if is_open {
        " of a page that has ended; retry is possible when its pages have"
    } else {
        ""
    };
    Err(invalid(format!("{id} has no {what} to retry{of}")))
}

/// Makes a final crawl use the plugin that a retry names, which it did not select or which was
/// installed later.
fn admit_plugin(turn: &mut Turn<'_>, id: CrawlId, which: &Which) -> TurnResult<()> {
    let crawl = main_loop::crawl_of(turn, id)?;
    let Which::Hook(hook) = which else {
        return Ok(());
    };
    if !crawl.status.is_final() || installed_names(&crawl).is_some() {
        return Ok(());
    }
    let mut plugins = turn.engine.catalogue.plugins.iter();
    let Some(plugin) = plugins.find(|plugin| is_of_pages(plugin, hook)) else {
        return Ok(());
    };
    let general = &turn.engine.settings.plugins;
    if let Some(plugins) = with_plugin(&crawl.plugins, general, &plugin.name) {
        turn.tx.set_crawl_plugins(id, &plugins)?;
    }
    // What was derived while the crawl ran may be older than the plugin.
    turn.engine.forget(id);
    Ok(())
}

/// Queues the hooks that a page lacks, see [`lacks`], and for which `is_asked` is true. Returns their
/// number.
fn requeue_missing(
    turn: &Turn<'_>,
    page: &SnapshotWork,
    is_asked: impl Fn(&HookTask, Option<&HookResult>) -> bool,
) -> TurnResult<usize> {
    let owner = Owner::Snapshot(page.id);
    let crawl = main_loop::crawl_for(turn, owner)?;
    // A crawl whose plugins or settings do not exist any more has no hooks.
    let Ok(plan) = turn.engine.plan(&crawl) else {
        return Ok(0);
    };
    let results = turn.tx.results(owner)?;
    let mut count = 0;
    for task in plan.snapshot.iter().map(|hook| &hook.task) {
        let mut results = results.iter();
        let result = results.find(|r| r.plugin == task.plugin && r.hook == task.hook);
        if !is_asked(task, result) || !lacks(result.map(|result| (result.status, result.attempts)))
        {
            continue;
        }
        if result.is_some() {
            turn.tx.requeue_results(owner, Some(&task.hook))?;
        }
        count += 1;
    }
    Ok(count)
}

fn requeue(turn: &Turn<'_>, page: &SnapshotWork, which: &Which) -> TurnResult<u32> {
    let owner = Owner::Snapshot(page.id);
    let count = match which {
        Which::Failed => turn.tx.requeue_results(owner, None)?,
        Which::All => turn.tx.requeue_all_results(owner)?,
        Which::Missing => requeue_missing(turn, page, |_, _| true)?,
        Which::Waiting(program) => {
            let begin = Skip::begin_for(program);
            requeue_missing(turn, page, |_, result| {
                let why = result.and_then(|result| result.error.as_ref());
                why.is_some_and(|why| why.starts_with(&begin))
            })?
        }
        Which::Hook(hook) => {
            let of_hook = |task: &HookTask| task.plugin == *hook || task.hook == *hook;
            requeue_missing(turn, page, |task, _| of_hook(task))?
                + turn.tx.requeue_results(owner, Some(hook))?
        }
    };
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Forgets crawls that were cancelled between two turns. If the retried crawl is one of them,
/// the retry ends.
fn forget_cancelled(
    turn: &Turn<'_>,
    id: Option<Owner>,
    reopened: &mut BTreeSet<CrawlId>,
) -> TurnResult<()> {
    let mut cancelled = Vec::new();
    for crawl in reopened.iter() {
        if turn.tx.status_of(Owner::Crawl(*crawl))?.is_final() {
            cancelled.push(*crawl);
        }
    }
    for crawl in cancelled {
        if id.is_some() {
            let what = format!("crawl {crawl} was cancelled while its pages were queued again");
            return Err(invalid(what));
        }
        reopened.remove(&crawl);
    }
    Ok(())
}

/// Queues a snapshot again for the results that it still owes. `is_lost`: its directory was removed,
/// with all files.
fn retry_snapshot(
    turn: &mut Turn<'_>,
    id: SnapshotId,
    which: &Which,
    is_lost: bool,
) -> TurnResult<u32> {
    let snapshot = main_loop::snapshot_of(turn, id)?;
    let state = snapshot.status;
    if !may_retry(state) {
        return Err(invalid(format!("{id} is {state}: retry is possible when it has ended")));
    }
    if matches!(which, Which::Missing | Which::Waiting(_)) && state != Lifecycle::Sealed {
        return Ok(0);
    }
    let has_failed_to_open = has_failed_to_open(turn, id)?;
    let status = turn.tx.visit(id)?.answer.map(|answer| answer.status);
    if state.is_final() && !is_lost {
        turn.tx.keep_earlier(id)?;
    }
    let mut requeued = requeue(turn, &snapshot, which)?;
    let of_all = matches!(which, Which::Failed | Which::All);
    let is_whole = retries_whole_page(status, has_failed_to_open, !of_all, requeued);
    if (is_whole && state.is_final()) || is_lost {
        let all = turn.tx.requeue_page(id)?;
        requeued = u32::try_from(all).unwrap_or(u32::MAX);
    }
    let retry = retry(state, requeued, of_all, snapshot.reason.is_some());
    if retry.requeue {
        turn.tx.begin_visit(id)?;
        turn.tx.step_snapshot(id, Step::Retry, Some(turn.now), None, turn.now)?;
        let crawl = snapshot.crawl;
        turn.changes.insert(Change::Snapshot { crawl, id });
        notices::announce_snapshot(turn, id, Notice::of(Step::Retry))?;
    } else if state.is_final() {
        turn.tx.end_retry(id, false)?;
    }
    Ok(retry.results)
}

/// Queues a final crawl again. `reopened` collects the crawls that have to wait: `alone`, for
/// all of its pages; with others, for those of its many pages that it leaves behind.
fn reopen(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    alone: bool,
    reopened: &mut BTreeSet<CrawlId>,
) -> TurnResult<()> {
    if !reopens_crawl(main_loop::crawl_of(turn, crawl)?.status) {
        return Ok(());
    }
    if turn.tx.is_being_deleted(crawl)? {
        return Err(invalid(format!("{crawl} is being deleted")));
    }
    // The processes of its setup have ended, so all of it runs again.
    turn.tx.requeue_all_results(Owner::Crawl(crawl))?;
    turn.tx.step_crawl(crawl, Step::Retry, Some(turn.now), None, turn.now)?;
    turn.changes.insert(Change::Crawl(crawl));
    notices::announce_crawl(turn, crawl, Notice::of(Step::Retry))?;
    let pages = turn.tx.counts("snapshot", Some(crawl))?;
    if alone {
        reopened.insert(crawl);
    } else if pages.contains_key("cancelled") {
        let range = turn.tx.snapshot_range(Some(crawl))?;
        if range.1 - range.0 > IDS_PER_TURN {
            reopened.insert(crawl);
        } else {
            turn.tx.leave_behind(&[crawl].into(), &WITH_CRAWL, range)?;
        }
    }
    Ok(())
}

/// Starts crawls whose pages were queued again in part when the orchestrator ended. Their callers
/// got an error.
pub(crate) fn begin_half_retried(tx: &Tx<'_>, now: Time) -> Result<(), DatabaseError> {
    for crawl in tx.crawls_put_off(RETRYING)? {
        let (mut after, last) = tx.snapshot_range(Some(crawl))?;
        while after < last {
            let to = after.saturating_add(IDS_PER_TURN);
            tx.leave_behind(&[crawl].into(), &WITH_CRAWL, (after, to))?;
            after = to;
            beat();
        }
        tx.put_off_crawl(crawl, now, None)?;
    }
    Ok(())
}
