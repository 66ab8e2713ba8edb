//! Why a single run has not ended, or how it ended and what followed.

use crate::database::{RunRow, RunState};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::reason;
use crate::query::documents::without_details;
use crate::query::show::no_such_run;
use crate::query::why::of_result;
use crate::query::why_watch;
use crate::query::why_watch::why_bad;
use archivist_core::model::{Lifecycle, Outcome, Owner, RunId};
use archivist_shared::bus::documents::report::{Reason, WhyRun};
use archivist_shared::bus::documents::watches::Check;

/// A run of a worker or hook, or a check, which has an id of the same kind.
pub(crate) fn why_run(turn: &Turn<'_>, id: RunId) -> TurnResult<WhyRun> {
    let Some(run) = turn.tx.run(id)? else {
        let check = turn.tx.check(id)?;
        return why_check(turn, check.ok_or_else(|| no_such_run(id))?);
    };
    let (status, reasons) = match &run.outcome {
        Some(outcome) => (RunState::Ended, why_ended_run(turn, &run, outcome)?),
        None if run.starting => (RunState::Starting, why_open_run(turn, &run)?),
        None => (RunState::Running, why_open_run(turn, &run)?),
    };
    Ok(WhyRun { run: id, status: status.as_str().to_owned(), reasons })
}

fn why_open_run(turn: &Turn<'_>, run: &RunRow) -> TurnResult<Vec<Reason>> {
    let (unit, owner) = (&run.unit, run.owner);
    let mut reasons = Vec::new();
    let crawl = Owner::Crawl(run.crawl);
    for owner in [Some(owner), Some(crawl).filter(|crawl| *crawl != owner)] {
        if let Some(owner) = owner
            && turn.tx.status_of(owner)? == Lifecycle::Paused
        {
            let text = format!("{owner} is paused; to continue: archivist resume {owner}");
            reasons.push(reason("paused", text));
        }
    }
    if run.interrupted {
        reasons.push(reason("interrupted", format!("{unit} was interrupted and is ending")));
    } else if run.short_of_disk {
        let text = format!("{unit} is being ended, because the disk is nearly full");
        reasons.push(reason("disk", text));
    } else if run.starting {
        reasons.push(reason("starting", format!("systemd has not started {unit} yet")));
    } else {
        let since = run.started_at.map(|time| format!(" since {time}")).unwrap_or_default();
        reasons.push(reason("running", format!("{unit} has been running{since}")));
    }
    Ok(reasons)
}

fn why_ended_run(turn: &Turn<'_>, run: &RunRow, outcome: &Outcome) -> TurnResult<Vec<Reason>> {
    let at = run.ended_at.map(|time| format!(" at {time}")).unwrap_or_default();
    let mut reasons = vec![reason(code(outcome), format!("{}{at}: {outcome}", run.unit))];
    let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook) else {
        reasons.push(of_worker(turn, run)?);
        return Ok(reasons);
    };
    match turn.tx.last_hook_run(run.owner, plugin, hook)? {
        Some(last) if last.id != run.id => {
            let text = format!("a later run of the hook is {0}; see: archivist why {0}", last.id);
            reasons.push(reason("later", text));
        }
        _ => {
            let result = turn.tx.result(run.owner, plugin, hook)?;
            reasons.extend(result.map(|result| of_result(&result, &run.id.to_string())));
        }
    }
    Ok(reasons)
}

/// What became of the crawl or snapshot of a worker.
fn of_worker(turn: &Turn<'_>, run: &RunRow) -> TurnResult<Reason> {
    let owner = run.owner;
    let status = turn.tx.status_of(owner)?;
    let text =
        format!("it was the worker of {owner}, which is {status}; see: archivist why {owner}");
    Ok(reason("worker", text))
}

fn why_check(turn: &Turn<'_>, check: Check) -> TurnResult<WhyRun> {
    let check = without_details(check);
    let reasons = if check.state != RunState::Ended.as_str() {
        vec![why_watch::why_open(turn, &check)?]
    } else if check.ok == Some(true) {
        let at = check.ended_at.unwrap_or(check.queued_at);
        let text = format!("{} of {} succeeded at {at}", check.kind, check.url);
        vec![reason("done", text)]
    } else {
        vec![why_bad(&check, true)]
    };
    Ok(WhyRun { run: check.id, status: check.state, reasons })
}

fn code(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Exit(0) => "done",
        Outcome::Exit(_) => "exit",
        Outcome::Signal(_) => "signal",
        Outcome::TimeLimit => "time-limit",
        Outcome::Watchdog => "watchdog",
        Outcome::OutOfMemory => "out-of-memory",
        Outcome::DiskLimit => "disk",
        Outcome::Interrupted => "interrupted",
        Outcome::Stopped => "stopped",
        Outcome::Killed => "killed",
        Outcome::Late => "late",
        Outcome::NotStarted(_) => "not-started",
        Outcome::Lost => "lost",
    }
}
