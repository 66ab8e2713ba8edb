//! `VerifyReplay=`: recordings of a share of the pages are replayed when no other unit runs, one at a time. A
//! table, which triggers of the database fill, has the pages with a recording that ended. They stay as they are:
//! what a replay showed is in the table alone.

pub(crate) mod files;
mod rows;

use crate::database::{CrawlWork, SnapshotWork, UnitRow};
use crate::main_loop;
use crate::main_loop::action::{CallerAction, FileAction, LoopAction};
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, Event, UnitEnd};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::reason;
use crate::units::{Kind, ReadFiles, life};
use archivist_core::model::{
    Lifecycle, Outcome, Owner, RECORDER, REPLAY_HOLDS, SnapshotId, VERIFIER, fidelity,
};
use archivist_core::plan::{Allowance, Outlook};
use archivist_core::unit::{Stdio, UnitKind, UnitSpec};
use archivist_plugin::settings::parse::boolean;
use archivist_plugin::{HookContext, HookTarget, argv, environment};
use archivist_shared::bus::documents::report::Reason;
use files::{Shown, record_path};
use std::path::Path;

/// Pages that one turn looks at.
const PAGES_PER_TURN: u32 = 100;
/// Replays that a page has before one that failed, or that does not hold, is believed: another program may have
/// used all of the processor meanwhile.
const ATTEMPTS: u32 = 2;
/// Whether the recordings of a crawl are replayed.
const SWITCH: &str = "VERIFY_ENABLED";

pub(crate) struct Verification;

impl Kind for Verification {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        let settings = &turn.engine.settings;
        let is_off = settings.verify_replay == 0 || settings.is_in_fleet();
        if is_off || !turn.tx.has_replays()? {
            return Ok(Due::default());
        }
        let is_idle = !allowance.is_outage
            && allowance.pressure.is_none()
            && turn.tx.running_units()?.is_empty();
        let start = || DueUnit::of("the replay of a recording", (), begin);
        Ok(Due {
            starts: is_idle.then(start).into_iter().collect(),
            outlook: Outlook { is_busy: true, blocked: None, next: None },
        })
    }

    fn files(&self, _turn: &Turn<'_>, run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        Ok(Some(files::of_replay(run.id)))
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        contents: Option<&Contents>,
    ) -> TurnResult<()> {
        turn.act(FileAction::Remove(record_path(&turn.engine.scope, run.id)));
        turn.act(CallerAction::StatusChanged);
        turn.tx.forget_runs_before(run.id)?;
        let Some((page, attempts)) = turn.tx.replayed_page(run.id)? else {
            return Ok(());
        };
        if matches!(end.outcome, Outcome::Lost | Outcome::Interrupted | Outcome::Stopped) {
            return Ok(turn.tx.repeat_replay(page, attempts)?);
        }
        let record = contents.and_then(|contents| contents.downcast_ref::<Option<Shown>>());
        let shown = match record.and_then(Option::as_ref) {
            Some(shown) => shown.clone(),
            None => Err(end.outcome.to_string()),
        };
        let attempts = attempts.saturating_add(1);
        if !holds(&shown) && attempts < ATTEMPTS {
            return Ok(turn.tx.repeat_replay(page, attempts)?);
        }
        Ok(turn.tx.end_replay(page, &shown)?)
    }
}

/// Adds why the recording of a page could not be replayed.
pub(crate) fn why(turn: &Turn<'_>, id: SnapshotId, to: &mut Vec<Reason>) -> TurnResult<()> {
    if let Some(problem) = turn.tx.replay_problem(id)? {
        to.push(reason("replay", format!("its recording could not be replayed: {problem}")));
    }
    Ok(())
}

fn holds(shown: &Shown) -> bool {
    shown.as_ref().is_ok_and(|figures| fidelity(figures).is_some_and(|share| share >= REPLAY_HOLDS))
}

/// Place of a page among hundred: those below the share are replayed.
pub(crate) fn place(id: SnapshotId) -> u32 {
    // The golden ratio spreads ids that follow one another evenly, and the same page is chosen each time.
    let spread = (id.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(spread) * 100) >> 64) as u32
}

/// Starts the unit for the first page that is chosen, and forgets those before it that are not.
fn begin(turn: &mut Turn<'_>, (): ()) -> TurnResult<()> {
    let share = turn.engine.settings.verify_replay;
    for (id, is_host_known) in turn.tx.waiting_replays(PAGES_PER_TURN)? {
        let is_chosen = place(id) < share || !is_host_known;
        if is_chosen
            && let Some((page, crawl)) = eligible(turn, id)?
            && start(turn, &page, &crawl)?
        {
            return Ok(());
        }
        turn.tx.drop_replay(id)?;
    }
    turn.act(LoopAction::Again(Event::Due));
    Ok(())
}

/// The page and its crawl, with the settings of both, if its files are there and replays are not turned off.
fn eligible(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<Option<(SnapshotWork, CrawlWork)>> {
    let page = main_loop::snapshot_of(turn, id)?;
    let crawl = main_loop::crawl_for(turn, Owner::Snapshot(id))?;
    let copy = turn.tx.copy(id)?;
    let is_here = page.status == Lifecycle::Sealed && copy.is_none_or(|copy| copy.is_usable());
    let is_off = crawl.config.get(SWITCH).and_then(|value| boolean(value)) == Some(false);
    Ok((is_here && !is_off).then_some((page, crawl)))
}

/// Returns `false` if the hook of the plugin cannot run.
fn start(turn: &mut Turn<'_>, page: &SnapshotWork, crawl: &CrawlWork) -> TurnResult<bool> {
    let mut config = crawl.config.clone();
    config.insert(SWITCH.to_owned(), "true".to_owned());
    let tmp = turn.engine.shared_tmp(crawl.id);
    let plan = turn.engine.page_plan(&[VERIFIER.to_owned()], &config, None, &tmp);
    turn.require_facts()?;
    let Some(directory) = page.directory.as_deref().map(Path::new) else {
        return Ok(false);
    };
    let Ok(plan) = plan else { return Ok(false) };
    let Some(planned) = plan.snapshot.iter().find(|hook| hook.task.plugin == VERIFIER) else {
        return Ok(false);
    };
    let (snapshot_id, crawl_id) = (page.id.to_string(), crawl.id.to_string());
    let places = turn.engine.places(directory, Some(directory), None);
    let context = HookContext {
        snapshot_id: snapshot_id.clone(),
        snapshot_depth: page.depth,
        crawl_id: crawl_id.clone(),
        plugin: &planned.task.plugin,
        hook_name: &planned.task.hook,
    };
    let (url, depth) = (page.url.as_str(), page.depth);
    let target =
        HookTarget { url, urls: &[], snapshot_id: &snapshot_id, crawl_id: &crawl_id, depth };
    let (_, mut bind_read_only) = turn.engine.library_binds(planned);
    bind_read_only.push(directory.join(RECORDER));
    let names = &turn.engine.names;
    let run = turn.tx.queue_run(UnitKind::Verify, turn.now)?;
    let description = format!("Replay the recording of {}", page.id);
    let argv = argv(&planned.hook, &target);
    let spec = UnitSpec {
        environment: environment(&planned.plugin, &planned.values, &places, &context),
        launcher: turn.engine.programs.launcher.clone(),
        working_directory: Some("/tmp".into()),
        stdout: Stdio::Descriptor,
        limit: Some(planned.task.limit),
        bind_read_only,
        ..UnitSpec::of_run(UnitKind::Verify, names, run, description, argv)
    };
    turn.tx.start_queued(run, &spec.name, &turn.engine.boot, turn.now)?;
    turn.tx.begin_replay(page.id, run)?;
    let (stdin, stdout) = (spec.launch(), Output::Record(record_path(&turn.engine.scope, run)));
    life::start(turn, run, spec, stdin, stdout, None);
    turn.act(CallerAction::StatusChanged);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_pages_is_chosen_evenly() {
        for percent in [1, 5, 50, 100] {
            let chosen = (1..=10_000).filter(|id| place(SnapshotId(*id)) < percent);
            let share = chosen.count() as u32 / 100;
            assert!(share.abs_diff(percent) <= 1, "{percent} % of pages: {share} %");
        }
    }
}
