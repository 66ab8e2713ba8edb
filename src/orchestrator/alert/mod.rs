//! Alerts when a crawl is sealed, when no crawl is left, and what other rooms have to say, such as that a site is
//! down: a unit, so that it has a time limit, a row and a journal, and starts even if the orchestrator is killed
//! after the commit.

pub(crate) mod occasion;
mod retention;
mod rows;

pub(crate) use occasion::{crawl_sealed, queue_idle_alert};
pub(crate) use rows::{CheckRow, NewCheck};

use crate::database::{RunState, UnitRow};
use crate::main_loop::action::LoopAction;
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::announce::is_any_open;
use crate::units::{Kind, life};
use archivist_core::model::{CheckRecord, CrawlId, Outcome, Pool, RunId, without_userinfo};
use archivist_core::plan::{Allowance, Occasion, Started};
use archivist_core::plan::{conclude, due_checks, prune_at, starts_again};
use archivist_core::unit::{AddressFilter, CheckSpec, Subject, UnitSpec};
use archivist_shared::bus::documents::work::Ended;
use serde::{Deserialize, Serialize};

/// Name of the watch of an alert that belongs to none. Its URL is the occasion.
const NO_WATCH: &str = "";

/// What the unit of an alert starts.
#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRequest {
    argv: Vec<String>,
    environment: Vec<(String, String)>,
    wants: Vec<String>,
    crawl: Option<CrawlId>,
    #[serde(default)]
    url: String,
}

pub(crate) struct AlertUnit;

impl Kind for AlertUnit {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        due_in(turn, Pool::Alerts, allowance, begin)
    }

    /// It would be out of date after the next boot.
    fn outlasts_shutdown(&self) -> bool {
        false
    }

    fn not_started(&self, _started: Started, why: String) -> Outcome {
        Outcome::NotStarted(why)
    }

    fn starts_again(&self, turn: &Turn<'_>, run: &UnitRow, outcome: &Outcome) -> TurnResult<bool> {
        let alert = turn.tx.open_check(run.id)?;
        Ok(alert.is_some_and(|alert| starts_again(alert.kind, outcome, !run.starting)))
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let Some(alert) = turn.tx.open_check(run.id)? else {
            return Ok(());
        };
        let (ok, record) = conclude(alert.kind, &end.outcome, None);
        turn.tx.note_check(alert.id, (ok, &record))?;
        if ok != Some(true) && alert.watch == NO_WATCH {
            let (occasion, unit) = (alert.url.clone(), run.unit.clone());
            let why = record.error.clone().unwrap_or_default();
            turn.log(move || {
                tracing::warn!(
                    archivist_unit = unit.as_str(),
                    "failed to run the alert '{occasion}' as unit '{unit}': {why}, ignoring"
                )
            });
        } else if ok != Some(true) {
            log_failed(turn, &alert, &run.unit, &record);
        }
        settle(turn, &run.unit, run.id, end)
    }
}

/// The checks or alerts of a pool that may start now.
pub(crate) fn due_in(
    turn: &Turn<'_>,
    pool: Pool,
    allowance: &Allowance,
    begin: fn(&mut Turn<'_>, RunId) -> TurnResult<()>,
) -> DueResult {
    let limits = turn.engine.limits();
    let checks = turn.tx.check_pool(pool, limits.fast_checks.max(limits.slow_checks))?;
    let ids = due_checks(pool, &checks, &limits, allowance).into_iter();
    Ok(Due {
        starts: ids.map(|id| DueUnit::of(format!("check {id}"), id, begin)).collect(),
        outlook: checks.outlook(pool, allowance),
    })
}

fn begin(turn: &mut Turn<'_>, id: RunId) -> TurnResult<()> {
    let Some(alert) = queued(turn, id)? else {
        return Ok(());
    };
    let is_of_idleness = alert.watch == NO_WATCH && alert.url == Occasion::Idle.as_str();
    if is_of_idleness && is_any_open(&turn.tx.counts("crawl", None)?) {
        // Another crawl was added in the meantime: its end is the next occasion.
        return Ok(turn.tx.drop_check(id)?);
    }
    let spec = spec(turn, &alert)?;
    turn.tx.start_check(id, &spec.name, &turn.engine.boot, turn.now)?;
    let stdin = spec.launch();
    life::start(turn, id, spec, stdin, Output::OfUnit, None);
    Ok(())
}

/// The check or alert of this run, if it waits for its start.
pub(crate) fn queued(turn: &Turn<'_>, id: RunId) -> TurnResult<Option<CheckRow>> {
    Ok(turn.tx.open_check(id)?.filter(|check| check.status == RunState::Queued))
}

fn spec(turn: &Turn<'_>, alert: &CheckRow) -> TurnResult<UnitSpec> {
    let request: AlertRequest = serde_json::from_str(&alert.request)?;
    let is_of_watch = alert.watch != NO_WATCH;
    let spec = CheckSpec {
        id: alert.id,
        kind: alert.kind,
        subject: match request.crawl {
            _ if is_of_watch => Subject::Watch(&alert.watch),
            None => Subject::Idle,
            Some(crawl) => Subject::Crawl(crawl),
        },
        url: if is_of_watch { &alert.url } else { &request.url },
        argv: request.argv,
        environment: request.environment,
        launcher: turn.engine.programs.launcher.clone(),
        bind_read_only: Vec::new(),
        credentials: Vec::new(),
        network: None,
        addresses: AddressFilter::default(),
        wants: request.wants,
    };
    Ok(UnitSpec::check(&turn.engine.names, spec))
}

/// Logs that the unit of a check or alert of a watch failed.
pub(crate) fn log_failed(turn: &mut Turn<'_>, check: &CheckRow, unit: &str, record: &CheckRecord) {
    let (kind, watch, unit) = (check.kind, check.watch.clone(), unit.to_owned());
    let (url, error) = (without_userinfo(&check.url), record.error.clone());
    turn.log(move || {
        tracing::warn!(
            archivist_watch = watch.as_str(),
            archivist_url = url.as_str(),
            archivist_unit = unit.as_str(),
            "check {kind} of watch {watch}, {url}: {}",
            error.as_deref().unwrap_or("no reason is known")
        )
    });
}

/// Answers the callers that wait for the end of a check or alert.
pub(crate) fn settle(turn: &mut Turn<'_>, unit: &str, run: RunId, end: &UnitEnd) -> TurnResult<()> {
    let reading = &end.reading;
    let ended = Ended {
        run: Some(run),
        unit: Some(unit.to_owned()),
        started_at: reading.started,
        ended_at: reading.ended.or(Some(turn.now)),
        ..Ended::without_run(end.outcome.clone())
    };
    turn.settle(run, &ended)
}

/// Deletes expired results, all of a day together, and schedules the next time.
pub(crate) fn prune(turn: &mut Turn<'_>) -> TurnResult<()> {
    let Some(due) = prune_at(turn.tx.oldest_check_until()?) else {
        return Ok(());
    };
    if due > turn.now {
        turn.act(LoopAction::WakeAt(due));
        return Ok(());
    }
    let count = turn.tx.prune_checks(turn.now)?;
    turn.log(move || tracing::info!("deleted {count} expired results of checks"));
    if let Some(next) = prune_at(turn.tx.oldest_check_until()?) {
        turn.act(LoopAction::WakeAt(next));
    }
    Ok(())
}
