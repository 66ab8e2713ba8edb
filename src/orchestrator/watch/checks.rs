//! Checks of watches from the queue to their end: the record first, then the action, as for workers.

use crate::main_loop::action::Action;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::CheckRow;
use crate::work::units::Seen;
use archivist_core::model::{
    CheckKind, CheckRecord, Outcome, Reach, Reading, RunId, without_userinfo,
};
use archivist_core::plan::{conclude, prune_at};
use archivist_core::unit::{AddressFilter, CheckSpec, UnitSpec};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::systemd::{ErrorKind, ManagerError, Release};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest record that is read, in bytes.
const RECORD_MAX: u64 = 1 << 20;

/// What the start of an alert needs.
#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRequest {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub wants: Vec<String>,
}

impl Turn<'_> {
    pub(crate) fn begin_check(&mut self, id: RunId) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)? else {
            return Ok(());
        };
        let spec = self.check_spec(&check)?;
        self.tx
            .start_check(id, &spec.name, &self.engine.boot, self.now)?;
        if check.kind != CheckKind::Alert && self.is_gone(&check.watch) {
            let why = Outcome::NotStarted("its watch was removed".to_owned());
            return self.check_over(&check, &why, None);
        }
        let (stdin, stdout) = match check.kind {
            CheckKind::Alert => (spec.launch(), None),
            // An empty file does no harm should the commit fail.
            kind => match self.make_record(id, kind) {
                Ok(file) => (Some(check.request.clone().into_bytes()), Some(file)),
                Err(error) => {
                    let path = self.record_path(id, kind);
                    let why = format!("cannot make '{}': {error}", path.display());
                    let started = CheckRow {
                        unit: spec.name,
                        ..check
                    };
                    return self.check_over(&started, &Outcome::NotStarted(why), None);
                }
            },
        };
        self.actions.push(Action::Start {
            run: id,
            spec: Box::new(spec),
            stdin,
            stdout,
        });
        Ok(())
    }

    fn check_spec(&self, check: &CheckRow) -> TurnResult<UnitSpec> {
        let mut spec = CheckSpec {
            id: check.id,
            kind: check.kind,
            watch: &check.watch,
            url: &check.url,
            argv: vec![self.engine.programs.archivist.clone()],
            environment: Vec::new(),
            launcher: None,
            bind_read_only: Vec::new(),
            network: None,
            addresses: AddressFilter::default(),
            wants: Vec::new(),
        };
        if check.kind == CheckKind::Alert {
            let request: AlertRequest = serde_json::from_str(&check.request)?;
            spec.argv = request.argv;
            spec.environment = request.environment;
            spec.wants = request.wants;
            spec.launcher = self.engine.programs.launcher.clone();
        } else {
            let arguments = ["check", check.kind.as_str()];
            spec.argv.extend(arguments.map(str::to_owned));
            let way_out = self.engine.way_out_of_check(check.kind, &check.url);
            let mut reach = way_out.reach.clone();
            if way_out.is_own {
                reach = reach.and(&Reach::loopback());
            }
            let reach = reach.to_string();
            spec.environment.push(("ARCHIVIST_REACH".to_owned(), reach));
            spec.network = way_out.check_network(&self.engine.names);
            spec.addresses = way_out.filter(&self.engine.scope);
        }
        if check.kind == CheckKind::Lighthouse {
            let library = self.engine.scope.data_dir().join("lib");
            spec.bind_read_only
                .extend(Some(library).filter(|lib| lib.is_dir()));
        }
        Ok(UnitSpec::check(&self.engine.names, spec))
    }

    /// Where a check writes. The file outlasts us; the check has nothing but the descriptor. In memory, as
    /// the limits of those units keep the file small; that of a browser may write large files, and so
    /// on the disk.
    fn record_path(&self, id: RunId, kind: CheckKind) -> PathBuf {
        let name = format!("{}-{}.json", self.engine.scope.unit_prefix(), id.0);
        let scope = &self.engine.scope;
        let place = match kind {
            CheckKind::Lighthouse => scope.data_dir(),
            _ => scope.runtime_dir(),
        };
        place.join("checks").join(name)
    }

    fn make_record(&self, id: RunId, kind: CheckKind) -> std::io::Result<Arc<OwnedFd>> {
        let path = self.record_path(id, kind);
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        Ok(Arc::new(file.into()))
    }

    /// The last line that is a record. It is a document of our own program, bounded in size, read as a
    /// worker's report is; pages never get here. It is for people: no URL in it has a user or password.
    fn read_record(&self, id: RunId, kind: CheckKind) -> Option<CheckRecord> {
        let file = File::open(self.record_path(id, kind)).ok()?;
        let mut text = Vec::new();
        file.take(RECORD_MAX + 1).read_to_end(&mut text).ok()?;
        if text.len() as u64 > RECORD_MAX {
            return None;
        }
        let text = without_userinfo(&String::from_utf8_lossy(&text));
        let mut lines = text.rsplit('\n');
        lines.find_map(|line| serde_json::from_str(line).ok())
    }

    pub(crate) fn check_started(
        &mut self,
        id: RunId,
        result: &Result<(), ManagerError>,
    ) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)?.filter(|check| !check.queued) else {
            return Ok(());
        };
        match result.as_ref().map_err(|error| (error.kind, error)) {
            Ok(()) => Ok(self.tx.set_check_running(id)?),
            Err((ErrorKind::UnitExists, _)) => Ok(()),
            Err((ErrorKind::Unreachable, _)) => {
                self.actions.push(Action::List);
                Ok(())
            }
            Err((_, error)) => {
                self.check_over(&check, &Outcome::NotStarted(error.why.clone()), None)
            }
        }
    }

    pub(crate) fn check_read(
        &mut self,
        id: RunId,
        seen: &Seen<'_>,
        result: &Result<Box<Reading>, ManagerError>,
    ) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)?.filter(|check| !check.queued) else {
            return Ok(());
        };
        let mut reading = match result {
            Ok(reading) => Reading::clone(reading),
            Err(error) => {
                tracing::warn!("{error}, ignoring");
                return Ok(());
            }
        };
        let gone = reading.load_state == "not-found";
        if gone && seen.early {
            return Ok(());
        }
        if gone && let Some(evidence) = seen.evidence {
            reading.exec_main_code = evidence.code;
            reading.exec_main_status = evidence.status;
            reading.result = evidence.result.clone();
            reading.active_state = "failed".to_owned();
        }
        let Some(outcome) = Outcome::of(&reading) else {
            return Ok(self.tx.set_check_running(id)?);
        };
        // At a shutdown too it is over: what a check would have said is old after the next boot.
        self.check_over(&check, &outcome, Some(&reading))?;
        self.actions.push(if gone {
            Action::Forget(check.unit)
        } else {
            let how = Release::for_reading(&reading);
            let unit = check.unit;
            Action::Release { unit, how }
        });
        Ok(())
    }

    /// There is neither unit nor outcome.
    pub(crate) fn check_lost(&mut self, id: RunId) -> TurnResult<()> {
        match self.tx.open_check(id)? {
            Some(check) => self.check_over(&check, &Outcome::Lost, None),
            None => Ok(()),
        }
    }

    /// Records what a check found and what follows from it.
    fn check_over(
        &mut self,
        check: &CheckRow,
        outcome: &Outcome,
        reading: Option<&Reading>,
    ) -> TurnResult<()> {
        let said = match check.kind {
            CheckKind::Alert => None,
            kind => self.read_record(check.id, kind),
        };
        let (ok, record) = conclude(check.kind, outcome, said);
        let none = Reading::default();
        let reading = reading.unwrap_or(&none);
        let found = (ok, &record);
        if !self
            .tx
            .end_check(check.id, Some(outcome), reading, found, self.now)?
        {
            return Ok(());
        }
        if ok.is_none() || (check.kind == CheckKind::Alert && ok != Some(true)) {
            let url = without_userinfo(&check.url);
            tracing::warn!(
                archivist_watch = check.watch.as_str(),
                archivist_url = url,
                archivist_unit = check.unit.as_str(),
                "{} of watch {}, {}: {}",
                check.kind,
                check.watch,
                url,
                record.error.as_deref().unwrap_or("nothing is known")
            );
        }
        self.actions
            .push(Action::Remove(self.record_path(check.id, check.kind)));
        let ended = Ended {
            run: Some(check.id),
            unit: Some(check.unit.clone()),
            started_at: reading.started,
            ended_at: reading.ended.or(Some(self.now)),
            ..Ended::without_run(outcome.clone())
        };
        let run = check.id;
        self.actions.push(Action::Settle { run, ended });
        match (check.kind, ok) {
            (CheckKind::Status, Some(ok)) => self.note_health(check, ok, &record),
            _ => Ok(()),
        }
    }

    /// Deletes results that are kept no longer, all of a day at once, and says when to come back.
    pub(crate) fn prune_checks(&mut self) -> Result<(), crate::store::StoreError> {
        let Some(due) = prune_at(self.tx.oldest_check_until()?) else {
            return Ok(());
        };
        if due > self.now {
            self.actions.push(Action::WakeAt(due));
            return Ok(());
        }
        let count = self.tx.prune_checks(self.now)?;
        tracing::info!("deleted {count} results of checks that are kept no longer");
        if let Some(next) = prune_at(self.tx.oldest_check_until()?) {
            self.actions.push(Action::WakeAt(next));
        }
        Ok(())
    }
}
