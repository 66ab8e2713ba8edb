//! Why a single run has not ended, or how it ended and what followed.

use crate::database::{RunRow, RunState};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::reason;
use crate::query::show::no_such_run;
use crate::query::why::of_result;
use archivist_core::model::{Lifecycle, Outcome, Owner, RunId};
use archivist_shared::bus::documents::report::{Reason, WhyRun};

/// A run of a worker or hook, or of a unit that only its room knows.
pub(crate) fn why_run(turn: &Turn<'_>, id: RunId) -> TurnResult<WhyRun> {
    let Some(run) = turn.tx.run(id)? else {
        for why in turn.rooms.parts().why_run {
            if let Some(why) = why(turn, id)? {
                return Ok(why);
            }
        }
        return Err(no_such_run(id));
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
