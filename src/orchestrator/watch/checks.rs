//! Checks of watches, from the queue to their end: the record first, then the action, as for
//! workers.

use crate::database::{CheckRow, RunState, UnitRow};
use crate::machine::watch_files::record_path;
use crate::main_loop::action::{FileAction, LoopAction, UnitAction};
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices::announce::is_any_open;
use crate::units::{Kind, ReadFiles, life};
use crate::watch::alerts;
use crate::watch::files::{self, CheckFiles};
use archivist_core::model::{
    CheckKind, ClientIdentity, CrawlId, Outcome, Pool, Probe, Reach, RunId, without_userinfo,
};
use archivist_core::plan::{Allowance, Ending, Occasion, Started};
use archivist_core::plan::{conclude, due_checks, prune_at, recorded_outcome, starts_again};
use archivist_core::unit::{AddressFilter, CheckSpec, Subject, UnitSpec};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::Release;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRequest {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub wants: Vec<String>,
    pub crawl: Option<CrawlId>,
    #[serde(default)]
    pub url: String,
}

/// What the start of a check needs of the request that its program reads.
#[derive(Deserialize)]
struct CheckRequest {
    settings: CheckSettings,
}

#[derive(Deserialize)]
struct CheckSettings {
    #[serde(flatten)]
    probe: Probe,
    /// Time in seconds for an answer, if it is set.
    read_s: Option<u32>,
}

/// Answers, each as slow as may be, for which a unit has time in addition to that of its kind: one before
/// the last redirect, and head and body of the last.
const SLOW_ANSWERS: u32 = 3;

/// Name of the watch of an alert that belongs to none. Its URL is the occasion.
pub(crate) const NO_WATCH: &str = "";

fn is_alert_of(check: &CheckRow, occasion: Occasion) -> bool {
    check.watch == NO_WATCH && check.url == occasion.as_str()
}

/// The checks of watches, or alerts: those of these pools.
pub(crate) struct Check(pub &'static [Pool]);

impl Kind for Check {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        let limits = turn.engine.limits();
        let heads = limits.fast_checks.max(limits.slow_checks);
        let mut due = Due::default();
        for pool in self.0 {
            let checks = turn.tx.check_pool(*pool, heads)?;
            let ids = due_checks(*pool, &checks, &limits, allowance).into_iter();
            due = due.and(Due {
                starts: ids.map(|id| DueUnit::of(format!("check {id}"), id, begin_check)).collect(),
                outlook: checks.outlook(*pool, allowance),
            });
        }
        Ok(due)
    }

    /// The record of a check would be out of date after the next boot.
    fn outlasts_shutdown(&self) -> bool {
        false
    }

    fn not_started(&self, _started: Started, why: String) -> Outcome {
        Outcome::NotStarted(why)
    }

    fn starts_again(&self, turn: &Turn<'_>, run: &UnitRow, outcome: &Outcome) -> TurnResult<bool> {
        let check = turn.tx.open_check(run.id)?;
        Ok(check.is_some_and(|check| starts_again(check.kind, outcome, !run.starting)))
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        let interrupted = turn.tx.is_interrupted(run.id)?;
        Ok(recorded_outcome(&end.outcome, Ending { interrupted, ..Ending::default() }))
    }

    fn files(&self, turn: &Turn<'_>, run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        let check = turn.tx.open_check(run.id)?;
        let Some(check) = check.filter(|check| check.kind != CheckKind::Alert) else {
            return Ok(None);
        };
        Ok(Some(files::of_check(check.id, check.kind, check.watch)))
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let Some(check) = turn.tx.open_check(run.id)? else {
            return Ok(());
        };
        let files = contents.and_then(|contents| contents.downcast_ref::<CheckFiles>());
        let none = CheckFiles::default();
        check_ended(turn, &check, &run.unit, end, files.unwrap_or(&none))
    }
}

fn begin_check(turn: &mut Turn<'_>, id: RunId) -> TurnResult<()> {
    let queued = |check: &CheckRow| check.status == RunState::Queued;
    let Some(check) = turn.tx.open_check(id)?.filter(queued) else {
        return Ok(());
    };
    if is_alert_of(&check, Occasion::Idle) && is_any_open(&turn.tx.counts("crawl", None)?) {
        // Another crawl was added in the meantime: its end is the next occasion.
        return Ok(turn.tx.drop_check(id)?);
    }
    let spec = check_spec(turn, &check)?;
    turn.tx.start_check(id, &spec.name, &turn.engine.boot, turn.now)?;
    let (stdin, stdout, needs) = match check.kind {
        CheckKind::Alert => (spec.launch(), Output::OfUnit, None),
        kind => {
            let record = record_path(&turn.engine.scope, id, kind);
            let stdin = Some(check.request.into_bytes());
            (stdin, Output::Record(record), Some(files::declared(check.watch)))
        }
    };
    life::start(turn, id, spec, stdin, stdout, needs);
    Ok(())
}

fn check_spec(turn: &Turn<'_>, check: &CheckRow) -> TurnResult<UnitSpec> {
    let alert: Option<AlertRequest> = match check.kind {
        CheckKind::Alert => Some(serde_json::from_str(&check.request)?),
        _ => None,
    };
    let of_orchestrator = alert.as_ref().filter(|_| check.watch == NO_WATCH);
    let mut spec = CheckSpec {
        id: check.id,
        kind: check.kind,
        subject: match of_orchestrator.map(|alert| alert.crawl) {
            None => Subject::Watch(&check.watch),
            Some(None) => Subject::Idle,
            Some(Some(crawl)) => Subject::Crawl(crawl),
        },
        url: of_orchestrator.map_or(&check.url, |alert| &alert.url),
        argv: vec![turn.engine.programs.archivist.clone()],
        environment: Vec::new(),
        launcher: None,
        bind_read_only: Vec::new(),
        credentials: Vec::new(),
        network: None,
        addresses: AddressFilter::default(),
        wants: Vec::new(),
    };
    let mut longer = Duration::ZERO;
    if let Some(alert) = &alert {
        spec.argv.clone_from(&alert.argv);
        spec.environment.clone_from(&alert.environment);
        spec.wants.clone_from(&alert.wants);
        spec.launcher = turn.engine.programs.launcher.clone();
    } else {
        let written: CheckRequest = serde_json::from_str(&check.request)?;
        let answer = Duration::from_secs(written.settings.read_s.unwrap_or_default().into());
        longer = answer * SLOW_ANSWERS;
        if check.kind != CheckKind::Lighthouse {
            let identity = written.settings.probe.identity.iter();
            spec.credentials = identity.flat_map(ClientIdentity::credentials).collect();
        }
        let arguments = ["check", check.kind.as_str()];
        spec.argv.extend(arguments.map(str::to_owned));
        let way_out = turn.engine.way_out_of_check(check.kind, &check.url);
        let mut reach = way_out.reach.clone();
        if way_out.is_own {
            reach = reach.and(&Reach::loopback());
        }
        let reach = reach.to_string();
        spec.environment.push(("ARCHIVIST_REACH".to_owned(), reach));
        spec.network = way_out.check_network(&turn.engine.names);
        spec.addresses = turn.engine.filter_of_check(&way_out);
    }
    if check.kind == CheckKind::Lighthouse {
        spec.bind_read_only.extend(turn.engine.library_directory());
    }
    let mut unit = UnitSpec::check(&turn.engine.names, spec);
    unit.limit = unit.limit.map(|limit| limit + longer);
    Ok(unit)
}

/// Records what a check found that has ended, and what follows from it.
fn check_ended(
    turn: &mut Turn<'_>,
    check: &CheckRow,
    unit: &str,
    end: &UnitEnd,
    files: &CheckFiles,
) -> TurnResult<()> {
    let (outcome, reading) = (&end.outcome, &end.reading);
    let (ok, mut record) = conclude(check.kind, outcome, files.record.clone());
    // The request says what the unit had; the file of the watch may have changed.
    let request = serde_json::from_str::<CheckRequest>(&check.request).ok();
    let identity = request.and_then(|request| request.settings.probe.identity);
    if let Some(own) = identity.filter(|_| outcome.lacks_credentials()) {
        record.error = Some(format!(
            "the service manager failed to read ClientCertificate='{}' or ClientKey='{}'",
            own.certificate, own.key
        ));
    }
    turn.tx.note_check(check.id, (ok, &record))?;
    let is_failure = ok.is_none() || (check.kind == CheckKind::Alert && ok != Some(true));
    if is_failure && check.watch == NO_WATCH {
        let (occasion, unit) = (check.url.clone(), unit.to_owned());
        let why = record.error.clone().unwrap_or_default();
        turn.log(move || {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to run the alert '{occasion}' as unit '{unit}': {why}, ignoring"
            )
        });
    } else if is_failure {
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
    let output = record_path(&turn.engine.scope, check.id, check.kind);
    turn.act(FileAction::Remove(output));
    let ended = Ended {
        run: Some(check.id),
        unit: Some(unit.to_owned()),
        started_at: reading.started,
        ended_at: reading.ended.or(Some(turn.now)),
        ..Ended::without_run(outcome.clone())
    };
    let run = check.id;
    turn.settle(run, &ended)?;
    match (check.kind, ok) {
        (CheckKind::Status, Some(ok)) => {
            alerts::note_health(turn, check, ok, &record, files.watch.as_ref())
        }
        _ => Ok(()),
    }
}

/// Ends the checks of a watch that wait or run. Returns their number.
pub(crate) fn cancel_checks(turn: &mut Turn<'_>, watch: &str) -> TurnResult<usize> {
    let open = turn.tx.open_checks_of_watch(watch)?;
    let units = turn.tx.open_units()?;
    for check in &open {
        let run = check.id;
        if check.status == RunState::Queued {
            let outcome = Outcome::Interrupted;
            let (ok, record) = conclude(check.kind, &outcome, None);
            turn.tx.end_check_at_once(run, (ok, &record), turn.now)?;
            let ended_at = Some(turn.now);
            let ended = Ended { run: Some(run), ended_at, ..Ended::without_run(outcome) };
            turn.settle(run, &ended)?;
        } else if let Some(unit) = units.iter().find(|unit| unit.id == run) {
            turn.tx.interrupt_run(run)?;
            turn.act(UnitAction::Release { unit: unit.unit.clone(), how: Release::Stop });
        }
    }
    Ok(open.len())
}

/// Deletes expired results, all of a day together, and schedules the next time.
pub(crate) fn prune_checks(turn: &mut Turn<'_>) -> TurnResult<()> {
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
