//! Checks of watches, from the queue to their end: the record first, then the action, as for
//! workers.

use crate::alert;
use crate::alert::CheckRow;
use crate::database::{RunState, UnitRow};
use crate::engine::state::Engine;
use crate::engine::way_out::{MachineAddresses, WayOut};
use crate::main_loop::action::{FileAction, UnitAction};
use crate::main_loop::due::DueResult;
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::units::{Kind, ReadFiles, life};
use crate::watch::files::{self, CheckFiles, record_path};
use crate::watch::health::note_health;
use archivist_core::model::{CheckKind, ClientIdentity, Outcome, Pool, Probe, Reach, RunId};
use archivist_core::plan::{Allowance, Ending, Started, conclude, recorded_outcome};
use archivist_core::unit::{AddressFilter, CheckSpec, Names, Network, Subject, UnitSpec};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::Release;
use serde::Deserialize;
use std::time::Duration;

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

pub(crate) struct Check;

impl Kind for Check {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        let of = |pool| alert::due_in(turn, pool, allowance, begin);
        Ok(of(Pool::Fast)?.and(of(Pool::Slow)?))
    }

    /// The record of a check would be out of date after the next boot.
    fn outlasts_shutdown(&self) -> bool {
        false
    }

    fn not_started(&self, _started: Started, why: String) -> Outcome {
        Outcome::NotStarted(why)
    }

    fn recorded(&self, turn: &Turn<'_>, run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        let interrupted = turn.tx.is_interrupted(run.id)?;
        Ok(recorded_outcome(&end.outcome, Ending { interrupted, ..Ending::default() }))
    }

    fn files(&self, turn: &Turn<'_>, run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        let check = turn.tx.open_check(run.id)?;
        Ok(check.map(|check| files::of_check(check.id, check.kind, check.watch)))
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

fn begin(turn: &mut Turn<'_>, id: RunId) -> TurnResult<()> {
    let Some(check) = alert::queued(turn, id)? else {
        return Ok(());
    };
    let spec = spec(turn, &check)?;
    turn.tx.start_check(id, &spec.name, &turn.engine.boot, turn.now)?;
    let stdin = Some(check.request.into_bytes());
    let stdout = Output::Record(record_path(&turn.engine.scope, id, check.kind));
    life::start(turn, id, spec, stdin, stdout, Some(files::declared(check.watch)));
    Ok(())
}

fn spec(turn: &Turn<'_>, check: &CheckRow) -> TurnResult<UnitSpec> {
    let engine = turn.engine;
    let written: CheckRequest = serde_json::from_str(&check.request)?;
    let answer = Duration::from_secs(written.settings.read_s.unwrap_or_default().into());
    let has_browser = check.kind == CheckKind::Lighthouse;
    let identity = written.settings.probe.identity.filter(|_| !has_browser);
    let way_out = way_out(engine, check.kind, &check.url);
    let mut reach = way_out.reach.clone();
    if way_out.is_own {
        reach = reach.and(&Reach::loopback());
    }
    let library = engine.library_directory().filter(|_| has_browser);
    let mut unit = UnitSpec::check(
        &engine.names,
        CheckSpec {
            id: check.id,
            kind: check.kind,
            subject: Subject::Watch(&check.watch),
            url: &check.url,
            argv: vec![
                engine.programs.archivist.clone(),
                "check".to_owned(),
                check.kind.as_str().to_owned(),
            ],
            environment: vec![("ARCHIVIST_REACH".to_owned(), reach.to_string())],
            launcher: None,
            bind_read_only: library.into_iter().collect(),
            credentials: identity.iter().flat_map(ClientIdentity::credentials).collect(),
            network: network(&way_out, &engine.names),
            addresses: filter(engine, &way_out),
            wants: Vec::new(),
        },
    );
    unit.limit = unit.limit.map(|limit| limit + answer * SLOW_ANSWERS);
    Ok(unit)
}

/// The networks that a check of this URL reaches. Checks run in the machine's network, except
/// lighthouse, whose browser listens on the loopback interface: if hooks cannot reach the
/// machine's, it gets its own.
fn way_out(engine: &Engine, kind: CheckKind, url: &str) -> WayOut {
    let way_out = engine.way_out([url]);
    let browses = kind == CheckKind::Lighthouse && !way_out.reach.loopback;
    WayOut { is_own: way_out.is_own && browses, ..way_out }
}

/// The network of a check with a browser, if it is not in the machine's.
fn network(way_out: &WayOut, names: &Names) -> Option<Network> {
    let neighbours = !way_out.reach.is_without_private();
    way_out.is_own.then(|| names.check_network(neighbours))
}

/// The addresses that checks with this way out refuse. Checks reach all public addresses, because
/// a watch may be about a site of this machine, by a name that only its name servers know.
fn filter(engine: &Engine, way_out: &WayOut) -> AddressFilter {
    if engine.scope.user {
        return AddressFilter::default();
    }
    let addresses = engine.start_facts.addresses.clone();
    way_out.filter(&MachineAddresses { local: Vec::new(), ..addresses })
}

/// Records what a check found that has ended, and what follows from it.
fn check_ended(
    turn: &mut Turn<'_>,
    check: &CheckRow,
    unit: &str,
    end: &UnitEnd,
    files: &CheckFiles,
) -> TurnResult<()> {
    let (ok, mut record) = conclude(check.kind, &end.outcome, files.record.clone());
    // The request says what the unit had; the file of the watch may have changed.
    let request = serde_json::from_str::<CheckRequest>(&check.request).ok();
    let identity = request.and_then(|request| request.settings.probe.identity);
    if let Some(own) = identity.filter(|_| end.outcome.lacks_credentials()) {
        record.error = Some(format!(
            "the service manager failed to read ClientCertificate='{}' or ClientKey='{}'",
            own.certificate, own.key
        ));
    }
    turn.tx.note_check(check.id, (ok, &record))?;
    if ok.is_none() {
        alert::log_failed(turn, check, unit, &record);
    }
    let output = record_path(&turn.engine.scope, check.id, check.kind);
    turn.act(FileAction::Remove(output));
    alert::settle(turn, unit, check.id, end)?;
    match (check.kind, ok) {
        (CheckKind::Status, Some(ok)) => {
            note_health(turn, check, ok, &record, files.watch.as_ref())
        }
        _ => Ok(()),
    }
}

/// Ends the checks of a watch that wait or run. Returns their number.
pub(super) fn cancel_checks(turn: &mut Turn<'_>, watch: &str) -> TurnResult<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_check_has_its_own_loopback() {
        let names = Names::new("archivist");
        let unit = |reach: &str, is_own| {
            let reach = Reach::parse(reach).unwrap();
            let way_out = WayOut { reach, opened: Reach::default(), is_own };
            network(&way_out, &names).map(|it| it.unit)
        };
        assert_eq!(unit("public", false), None);
        assert_eq!(unit("public", true).as_deref(), Some("archivist-network@check-slow.service"));
        assert_eq!(
            unit("private", true).as_deref(),
            Some("archivist-network-local@check-slow.service")
        );
    }
}
