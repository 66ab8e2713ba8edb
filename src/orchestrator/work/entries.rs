//! Entries of lists that are kept without a visit (`archivist import --keep-only`). No hook has to run for them, so
//! one unit writes the directories of many, and they are sealed after its end. The pages stay queued
//! until then: a unit that is killed leaves nothing but directories, which the next one completes.

use crate::database::{CrawlWork, SnapshotWork, UnitRow};
use crate::engine::crawl_plan::{CrawlPlan, PlannedHook};
use crate::main_loop;
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use crate::notices;
use crate::units::{Kind, life};
use crate::work::begin;
use crate::work::ends;
use crate::work::limits;
use archivist_core::model::{CrawlId, Outcome, Owner, ResultState, kept_entry};
use archivist_core::plan::{Allowance, Notice, Outlook};
use archivist_core::unit::{UnitKind, UnitSpec};
use archivist_shared::archive::{IMPORT_KEEP, IMPORT_PLUGIN, IMPORT_SOURCE};
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::{
    Assignment, DIRECTORY_TAKEN, EntriesToWrite, HookTask,
};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// Pages of one unit. All are sealed in one transaction.
const PAGES_PER_UNIT: u32 = 200;
/// `RuntimeMaxSec=` of the unit.
const LIMIT: Duration = Duration::from_secs(600);
/// Failed attempts in a row after which each page gets a worker of its own, which finds the cause.
const ATTEMPTS: u32 = 3;

/// The unit that writes the directories of entries. There is one at a time.
pub(crate) struct Entries;

impl Kind for Entries {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        let Some(crawl) = turn.tx.crawl_with_entries()? else {
            return Ok(Due::default());
        };
        let may_start = !allowance.is_outage
            && allowance.pressure.is_none()
            && !turn.leaving_out.contains(&crawl)
            && !turn.tx.is_writing_entries()?;
        let start = || DueUnit::of(crawl, crawl, begin);
        Ok(Due {
            starts: may_start.then(start).into_iter().collect(),
            outlook: Outlook { is_busy: true, blocked: None, next: None },
        })
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        match end.outcome {
            Outcome::Exit(0) => return seal(turn, run, end),
            Outcome::Lost | Outcome::Interrupted | Outcome::Stopped => {
                let attempts = turn.tx.entry_attempts(run.id)?;
                return Ok(turn.tx.repeat_entries(run.id, attempts)?);
            }
            _ => {}
        }
        let attempts = turn.tx.entry_attempts(run.id)?.saturating_add(1);
        let is_taken = end.outcome == Outcome::Exit(DIRECTORY_TAKEN);
        let is_last = is_taken || attempts >= ATTEMPTS;
        if is_last {
            turn.tx.end_entries(run.id)?;
        } else {
            turn.tx.repeat_entries(run.id, attempts)?;
        }
        let (unit, reason) = (run.unit.clone(), end.outcome.clone());
        turn.log(move || {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to record entries of a list: {reason}; {}",
                if is_last { "each gets a worker" } else { "trying again" }
            )
        });
        Ok(())
    }
}

/// The one hook of pages that are kept without a visit, and its output. `None` if the crawl has other
/// hooks, or its settings were changed: each page gets a worker then.
fn hook(plan: &CrawlPlan) -> Option<(&PlannedHook, String)> {
    let [hook] = plan.snapshot.as_slice() else {
        return None;
    };
    let keeps = hook.values.get(IMPORT_KEEP)?.as_bool()?;
    let is_alone = plan.snapshot_end.is_empty() && plan.skipped.is_empty();
    let source = hook.values.get(IMPORT_SOURCE)?.as_str()?;
    let is_kept = keeps && is_alone && hook.task.plugin == IMPORT_PLUGIN;
    is_kept.then(|| (hook, kept_entry(source)))
}

/// The plan of a crawl of entries, their hook, and its output.
fn hook_of(turn: &Turn<'_>, crawl: &CrawlWork) -> Option<(Rc<CrawlPlan>, HookTask, String)> {
    let plan = turn.engine.plan(crawl).ok()?;
    let (hook, output) = hook(&plan)?;
    let task = hook.task.clone();
    Some((plan, task, output))
}

fn begin(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    let crawl = main_loop::crawl_of(turn, id)?;
    let Some((plan, hook, output)) = hook_of(turn, &crawl) else {
        return Ok(turn.tx.end_entries_of(id)?);
    };
    let mut pages = Vec::new();
    for page in turn.tx.waiting_entries(id, PAGES_PER_UNIT)? {
        let page = main_loop::snapshot_of(turn, page)?;
        if !limits::admit(turn, &crawl, &page)? {
            break;
        }
        pages.push(page);
    }
    if pages.is_empty() {
        return Ok(());
    }
    let again = pages.iter().any(|page| page.directory.is_some());
    let ids = turn.tx.highest_ids()?;
    let mut to_write = Vec::with_capacity(pages.len());
    for page in &pages {
        let assignment = Assignment {
            ids,
            token: String::new(),
            hooks: vec![hook.clone()],
            ..assignment(turn, &crawl, &plan, page)?
        };
        to_write.push(assignment);
    }
    let run = turn.tx.queue_run(UnitKind::Entries, turn.now)?;
    let (names, programs) = (&turn.engine.names, &turn.engine.programs);
    let mut argv = vec![programs.worker.clone()];
    if turn.engine.scope.user {
        argv.push("--user".to_owned());
    }
    argv.push("entries".to_owned());
    let description = format!("Record {} entries of {id}", pages.len());
    let spec = UnitSpec {
        limit: Some(LIMIT),
        bind: vec![turn.engine.archive()],
        ..UnitSpec::of_run(UnitKind::Entries, names, run, description, argv)
    };
    turn.tx.start_queued(run, &spec.name, &turn.engine.boot, turn.now)?;
    let rows = pages.iter().zip(&to_write).map(|(page, assignment)| {
        let directory = assignment.directory.to_string_lossy().into_owned();
        let identity = assignment.identity.clone().unwrap_or_default();
        (page.id.0, directory, identity)
    });
    turn.tx.begin_entries(run, &rows.collect::<Vec<_>>())?;
    let request = EntriesToWrite { pages: to_write, output, again };
    let stdin = Some(serde_json::to_vec(&request)?);
    life::start(turn, run, spec, stdin, Output::OfUnit, None);
    Ok(())
}

/// What the unit has to know about a page. Its directory keeps the identity of an earlier attempt.
fn assignment(
    turn: &Turn<'_>,
    crawl: &CrawlWork,
    plan: &CrawlPlan,
    page: &SnapshotWork,
) -> TurnResult<Assignment> {
    let owner = Owner::Snapshot(page.id);
    let directory = match &page.directory {
        Some(directory) => PathBuf::from(directory),
        None => main_loop::directory(turn, &page.visited_at.day(), &page.url, owner),
    };
    let identity = match &page.identity {
        Some(identity) => identity.clone(),
        None => begin::draw()?,
    };
    Ok(Assignment {
        identity: Some(identity),
        about: begin::about(turn, plan, page)?,
        ..begin::assignment(turn, crawl, owner, &page.url, page.depth, &directory, &[])?
    })
}

/// The directories are written: seals the pages, with the result that a worker would have recorded.
fn seal(turn: &mut Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<()> {
    let Some(id) = turn.tx.crawl_of_entries(run.id)? else {
        return Ok(());
    };
    let crawl = main_loop::crawl_of(turn, id)?;
    let Some((_, hook, output)) = hook_of(turn, &crawl) else {
        return Ok(turn.tx.end_entries(run.id)?);
    };
    let result = HookResult {
        id: None,
        owner: Owner::Crawl(id),
        plugin: hook.plugin,
        hook: hook.hook,
        status: ResultState::NoResults,
        output: Some(output),
        error: None,
        files: Vec::new(),
        size: 0,
        attempts: 1,
        started_at: end.reading.started,
        ended_at: end.reading.ended,
        figures: Default::default(),
    };
    let pages = turn.tx.seal_entries(run.id, &result, turn.now)?;
    for page in &pages {
        ends::page_sealed(turn, *page)?;
        notices::announce_snapshot(turn, *page, Notice::Sealed)?;
    }
    let count = pages.len();
    turn.log(move || {
        tracing::info!(archivist_crawl_id = id.0, "crawl {id}: {count} entries are sealed")
    });
    turn.changes.insert(Change::Crawl(id));
    ends::tidy_crawl(turn, id)
}

/// The reason why a page that is an entry is still queued.
pub(crate) fn why(turn: &Turn<'_>) -> TurnResult<String> {
    let why = if turn.tx.is_writing_entries()? {
        "entries of lists are recorded one after another"
    } else {
        "waiting for the unit that records entries of lists"
    };
    Ok(why.to_owned())
}
