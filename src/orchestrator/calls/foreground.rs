//! Commands in the foreground: they hold their crawl, interrupt its hooks, and decide how it
//! continues.
//!
//! That a run was interrupted is in its row, and the decision is in its result: `backoff` to run
//! the hook again, `skipped` to continue without it. Until then the worker of a held crawl gets no
//! answer, so that it waits.

use crate::bus::call::Reply;
use crate::database::Finished;
use crate::main_loop;
use crate::main_loop::action::{CallerAction, UnitAction};
use crate::main_loop::turn::{Change, Turn, TurnResult, failed, invalid};
use crate::query::show::no_such_run;
use crate::work;
use crate::work::ends::ABANDONED;
use archivist_core::model::{
    CrawlId, Figures, Lifecycle, Outcome, Owner, ResultState, RunId, Verdict,
};
use archivist_core::plan::{EndRun, WaitedFor, end_run, interrupted, is_abandoned};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::{Filter, HookName, Interrupted};
use archivist_shared::bus::documents::work::HookMode;
use archivist_shared::systemd::Release;

pub(crate) fn hold(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    cancel: bool,
    claim: &Claim,
    reply: &Reply,
) -> TurnResult<()> {
    let status = main_loop::crawl_of(turn, crawl)?.status;
    turn.act(CallerAction::Hold { crawl, cancel, claim: claim.clone(), reply: reply.clone() });
    if status.is_final() && !turn.tx.has_open_runs(crawl)? {
        turn.act(CallerAction::ReleaseHolds(crawl));
    }
    Ok(())
}

/// A command that held a crawl has ended before the crawl, which others may hold.
pub(crate) fn abandoned(turn: &mut Turn<'_>, crawl: CrawlId, cancel: bool) -> TurnResult<()> {
    turn.remember(move |engine| engine.unhold(crawl));
    proceed(turn, crawl, false)?;
    let is_held = turn.engine.held.get(&crawl).is_some_and(|count| *count > 1);
    if is_abandoned(main_loop::crawl_of(turn, crawl)?.status, cancel, is_held) {
        work::abort_crawl(turn, crawl, ABANDONED)?;
    }
    Ok(())
}

/// Ends the hooks that the crawl waits for, see [`interrupted`].
pub(crate) fn interrupt(turn: &mut Turn<'_>, of: Owner) -> TurnResult<Interrupted> {
    let crawl = main_loop::crawl_of_owner(turn, of)?;
    let id = crawl.id;
    let asked = |owner| of == Owner::Crawl(id) || of == owner;
    if crawl.status != Lifecycle::Started {
        return Ok(Interrupted::default());
    }
    let mut waited_for = Vec::new();
    for run in turn.tx.open_runs()? {
        let (Some(plugin), Some(hook)) = (run.plugin.clone(), run.hook.clone()) else {
            continue;
        };
        if run.crawl != id || run.kind != UnitKind::Hook || !asked(run.owner) {
            continue;
        }
        let key = format!("{plugin}/{hook}");
        let plan = turn.engine.plan(&main_loop::crawl_for(turn, run.owner)?).map_err(failed)?;
        let wait = match plan.hook(run.owner, &key).map(|hook| hook.task.mode) {
            Some(HookMode::Foreground) => WaitedFor::Foreground,
            Some(HookMode::Finite) => WaitedFor::Finite,
            Some(HookMode::Daemon) | None => continue,
        };
        let owner = run.owner;
        let name = HookName { owner, plugin, hook };
        waited_for.push((wait, (run, name)));
    }
    let mut hooks = Vec::new();
    for (run, name) in interrupted(waited_for) {
        turn.tx.interrupt_run(run.id)?;
        work::thaw(turn, &run);
        let (unit, how) = (run.unit, Release::Stop);
        turn.act(UnitAction::Release { unit, how });
        hooks.push(name);
    }
    let waits = !hooks.is_empty() && work::is_held(turn, id);
    Ok(Interrupted { hooks, waits })
}

/// Ends the hook of a run. Its page continues with the next hook, also in the foreground, where
/// an interrupt waits for a decision.
pub(crate) fn cancel_run(turn: &mut Turn<'_>, id: RunId) -> TurnResult<()> {
    let run = turn.tx.run(id)?.ok_or_else(|| no_such_run(id))?;
    let is_hook = run.kind == UnitKind::Hook;
    match end_run(is_hook, run.outcome.as_ref(), run.interrupted) {
        EndRun::Already => return Ok(()),
        EndRun::Ended => {
            let what = format!("{id} has ended, there is nothing to cancel");
            return Err(invalid(what));
        }
        EndRun::Worker => {
            let owner = run.owner;
            let what = format!("{id} is the worker of {owner}; see: archivist cancel {owner}");
            return Err(invalid(what));
        }
        EndRun::Go => {}
    }
    turn.tx.interrupt_run(id)?;
    if let (true, Some(plugin), Some(hook)) =
        (work::is_held(turn, run.crawl), &run.plugin, &run.hook)
    {
        skip_interrupted(turn, run.owner, plugin, hook)?;
    }
    work::thaw(turn, &run);
    let (unit, how) = (run.unit, Release::Stop);
    turn.act(UnitAction::Release { unit, how });
    Ok(())
}

/// Applies a user's decision to the interrupted hooks of a crawl, and returns their number.
/// `again`: run them again.
pub(crate) fn proceed(turn: &mut Turn<'_>, crawl: CrawlId, again: bool) -> TurnResult<u32> {
    let started = Filter {
        status: Some(ResultState::Started.as_str().to_owned()),
        limit: 0,
        ..Filter::of(Owner::Crawl(crawl))
    };
    main_loop::crawl_of(turn, crawl)?;
    let mut count = 0;
    for result in turn.tx.list_results(&started)? {
        let (owner, plugin, hook) = (result.owner, result.plugin, result.hook);
        let last = turn.tx.last_hook_run(owner, &plugin, &hook)?;
        let Some(run) = last.filter(|run| run.interrupted) else {
            continue;
        };
        if again {
            turn.tx.put_off_result(owner, &plugin, &hook)?
        } else {
            skip_interrupted(turn, owner, &plugin, &hook)?
        }
        turn.changes.insert(Change::Hook { crawl, owner, plugin, hook });
        if run.outcome.is_some() {
            work::settle(turn, &run)?;
        }
        count += 1;
    }
    Ok(count)
}

fn skip_interrupted(turn: &Turn<'_>, owner: Owner, plugin: &str, hook: &str) -> TurnResult<()> {
    let verdict = Verdict::of(&Outcome::Interrupted, None, false);
    let finished = Finished {
        verdict: &verdict,
        output: None,
        files: &[],
        size: 0,
        figures: &Figures::default(),
    };
    turn.tx.finish_result(owner, plugin, hook, &finished, turn.now)?;
    Ok(())
}
