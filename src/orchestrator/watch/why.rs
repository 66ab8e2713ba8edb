//! Why the checks of a watch wait or fail: from their rows and the rules of the plan for pools.
//! systemd knows the next times.

use crate::database::RunState;
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::reason;
use crate::watch::answers::without_details;
use archivist_core::model::{CheckKind, Outcome, RunId};
use archivist_core::plan::against_check;
use archivist_shared::bus::documents::report::{Reason, WhyRun, WhyWatch};
use archivist_shared::bus::documents::watches::{Check, Site, Watch};

/// Reasons that are listed individually.
const REASONS_MAX: usize = 100;

pub(crate) fn why_watch(turn: &Turn<'_>, watch: &Watch) -> TurnResult<WhyWatch> {
    let problems = watch.problems.iter();
    let mut reasons: Vec<_> = problems.map(|problem| reason("file", problem.clone())).collect();
    for site in &watch.sites {
        reasons.extend(down(site));
        for check in &site.open {
            reasons.push(why_open(turn, check)?);
        }
        let known = |check: &&Check| !site.open.iter().any(|open| open.kind == check.kind);
        let bad = site.last.iter().filter(|check| check.ok != Some(true));
        reasons.extend(bad.map(|check| why_bad(check, known(&check))));
    }
    if reasons.is_empty() {
        reasons.push(nothing(watch));
    }
    let more = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    if more > 0 {
        let text = format!("{more} more; see: archivist watch show {}", watch.name);
        reasons.push(reason("more", text));
    }
    Ok(WhyWatch { watch: watch.name.clone(), reasons })
}

/// Why a single check or alert has not ended, or how it ended. `None` if the run is that of another unit.
pub(crate) fn why_run(turn: &Turn<'_>, id: RunId) -> TurnResult<Option<WhyRun>> {
    let Some(check) = turn.tx.check(id)?.map(without_details) else {
        return Ok(None);
    };
    let reason = if check.state != RunState::Ended.as_str() {
        why_open(turn, &check)?
    } else if check.ok == Some(true) {
        let at = check.ended_at.unwrap_or(check.queued_at);
        reason("done", format!("{} of {} succeeded at {at}", check.kind, check.url))
    } else {
        why_bad(&check, true)
    };
    Ok(Some(WhyRun { run: check.id, status: check.state, reasons: vec![reason] }))
}

/// Why a check is queued, or since when it runs.
fn why_open(turn: &Turn<'_>, check: &Check) -> TurnResult<Reason> {
    let what = format!("{} of {}", check.kind, check.url);
    if check.state != "queued" {
        let unit = check.unit.as_deref().unwrap_or("its unit");
        let since = check.started_at.unwrap_or(check.queued_at);
        return Ok(reason("running", format!("{what}: {unit} has been running since {since}")));
    }
    let (limits, pool) = (turn.engine.limits(), check.kind.pool());
    let checks = turn.tx.check_pool(pool, 0)?;
    let blocker = against_check(pool, &checks, &limits, &main_loop::allowance(turn)?);
    let since = check.queued_at;
    Ok(match blocker {
        Some(blocker) => {
            reason(blocker.code(), format!("{what} has been queued since {since}: {blocker}"))
        }
        None => reason(
            "turn",
            format!("{what} has been queued since {since}: others are ahead in the queue"),
        ),
    })
}

fn down(site: &Site) -> Option<Reason> {
    let since = site.down_since?;
    let text = format!(
        "{} is down since {since}: {} status checks in a row failed",
        site.url, site.failures
    );
    Some(reason("down", text))
}

/// Why a check failed. `alone`: no other check of this kind is open, so that the command for
/// another is shown.
fn why_bad(check: &Check, alone: bool) -> Reason {
    let at = check.ended_at.unwrap_or(check.queued_at);
    let what = format!("{} of {}", check.kind, check.url);
    let record = &check.record;
    let found = match (&record.error, &check.outcome) {
        (Some(error), _) => error.clone(),
        (None, Some(outcome)) if *outcome != Outcome::Exit(0) => outcome.to_string(),
        (None, _) => match record.status_code {
            Some(code) if check.kind == CheckKind::Status => format!("the answer was {code}"),
            _ => "the check found problems".to_owned(),
        },
    };
    let again = if alone {
        format!("; to check again: archivist watch run --kind {} {}", check.kind, check.watch)
    } else {
        String::new()
    };
    match (check.ok, record.skipped) {
        (Some(_), _) => reason("failed", format!("{what} failed at {at}: {found}")),
        (None, true) => reason("not-run", format!("{what} was skipped at {at}: {found}")),
        (None, false) => reason("unknown", format!("{what} has no result at {at}: {found}{again}")),
    }
}

/// The reason if nothing waits and nothing has failed.
fn nothing(watch: &Watch) -> Reason {
    let name = &watch.name;
    if watch.sites.iter().any(|site| !site.last.is_empty()) {
        reason("done", "the last check of each kind succeeded".to_owned())
    } else {
        reason(
            "never",
            format!(
                "no check has run yet; for the next times: systemctl list-timers 'archivist-watch-{name}-*'"
            ),
        )
    }
}
