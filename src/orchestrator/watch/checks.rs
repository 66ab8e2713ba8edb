//! Checks of watches, from the queue to their end: the record first, then the action, as for
//! workers.

use crate::crawl::announce::is_any_open;
use crate::main_loop::action::Action;
use crate::main_loop::event::ReadingContext;
use crate::main_loop::log::{LogEntry, Problem, WatchLog};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::CheckRow;
use crate::watch::files::{CheckEnd, Collected, record_path};
use crate::work::units::start_answer;
use archivist_core::model::{
    CheckKind, CheckRecord, ClientIdentity, CrawlId, Outcome, Probe, Reach, Reading, RunId,
    without_userinfo,
};
use archivist_core::plan::{Occasion, Started, UnitSeen, UnitState};
use archivist_core::plan::{conclude, prune_at, started, starts_again, unit_state};
use archivist_core::unit::{AddressFilter, CheckSpec, Subject, UnitSpec};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::declare::watch::Watch;
use archivist_shared::systemd::{ManagerError, Release};
use serde::{Deserialize, Serialize};

/// The contents of the files of a check.
#[derive(Default)]
struct Files<'a> {
    record: Option<CheckRecord>,
    watch: Option<&'a Watch>,
}

/// What the start of an alert requires.
#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRequest {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub wants: Vec<String>,
    /// The crawl that was sealed.
    #[serde(default)]
    pub crawl: Option<CrawlId>,
    /// Its URL.
    #[serde(default)]
    pub url: String,
}

/// What the start of a check needs of the request that its program reads.
#[derive(Deserialize)]
struct CheckRequest {
    settings: Probe,
}

/// Name of the watch of an alert that belongs to none. Its URL is the occasion.
pub(crate) const NO_WATCH: &str = "";

fn is_alert_of(check: &CheckRow, occasion: Occasion) -> bool {
    check.watch == NO_WATCH && check.url == occasion.as_str()
}

impl Turn<'_> {
    pub(crate) fn begin_check(&mut self, id: RunId) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)? else {
            return Ok(());
        };
        if is_alert_of(&check, Occasion::Idle) && is_any_open(&self.tx.counts("crawl", None)?) {
            // Another crawl was added in the meantime: its end is the next occasion.
            return Ok(self.tx.drop_check(id)?);
        }
        let spec = self.check_spec(&check)?;
        self.tx
            .start_check(id, &spec.name, &self.engine.boot, self.now)?;
        let (stdin, stdout, watch) = match check.kind {
            CheckKind::Alert => (spec.launch(), Output::OfUnit, None),
            kind => {
                let record = record_path(&self.engine.scope, id, kind);
                let stdin = Some(check.request.into_bytes());
                (stdin, Output::Record(record), Some(check.watch))
            }
        };
        self.start(id, spec, stdin, stdout, watch);
        Ok(())
    }

    fn check_spec(&self, check: &CheckRow) -> TurnResult<UnitSpec> {
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
            argv: vec![self.engine.programs.archivist.clone()],
            environment: Vec::new(),
            launcher: None,
            bind_read_only: Vec::new(),
            credentials: Vec::new(),
            network: None,
            addresses: AddressFilter::default(),
            wants: Vec::new(),
        };
        if let Some(alert) = &alert {
            spec.argv.clone_from(&alert.argv);
            spec.environment.clone_from(&alert.environment);
            spec.wants.clone_from(&alert.wants);
            spec.launcher = self.engine.programs.launcher.clone();
        } else {
            if check.kind != CheckKind::Lighthouse {
                let written: CheckRequest = serde_json::from_str(&check.request)?;
                let identity = written.settings.identity.iter();
                spec.credentials = identity.flat_map(ClientIdentity::credentials).collect();
            }
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
            spec.addresses = self.engine.filter_of_check(&way_out);
        }
        if check.kind == CheckKind::Lighthouse {
            spec.bind_read_only.extend(self.engine.library_directory());
        }
        Ok(UnitSpec::check(&self.engine.names, spec))
    }

    pub(crate) fn check_started(
        &mut self,
        id: RunId,
        result: &Result<(), ManagerError>,
    ) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)?.filter(|check| !check.queued) else {
            return self.transfer_started(id, result);
        };
        match started(start_answer(result)) {
            Started::Running => Ok(self.tx.set_check_running(id)?),
            Started::Waiting => Ok(()),
            Started::Reconcile => {
                self.actions.push(Action::List);
                Ok(())
            }
            // A check is not repeated after a boot: it would be out of date.
            Started::Lost | Started::Failed | Started::Unable => {
                let error = result.as_ref().err().map(|error| error.why.clone());
                let why = Outcome::NotStarted(error.unwrap_or_default());
                self.check_over(&check, &why, &Reading::default(), &Files::default())
            }
        }
    }

    pub(crate) fn check_read(
        &mut self,
        id: RunId,
        seen: &ReadingContext<'_>,
        result: &Result<Box<Reading>, ManagerError>,
    ) -> TurnResult<()> {
        let Some(check) = self.tx.open_check(id)?.filter(|check| !check.queued) else {
            return self.transfer_read(id, seen, result);
        };
        let reading = match result {
            Ok(reading) => reading,
            Err(error) => {
                self.log_problem(Problem::UnitNotRead(error.to_string()));
                return Ok(());
            }
        };
        // A check is over at a shutdown as well: its record would be out of date after the next
        // boot.
        let unit_seen = UnitSeen {
            reading,
            evidence: seen.evidence,
            early: seen.early,
            stopping: false,
            leftover: false,
        };
        let (outcome, reading, loaded) = match unit_state(&unit_seen) {
            UnitState::Unknown | UnitState::NeverStarted => return Ok(()),
            UnitState::Running => return Ok(self.tx.set_check_running(id)?),
            UnitState::Ended {
                outcome,
                reading,
                loaded,
            } => (outcome, *reading, loaded),
        };
        if starts_again(check.kind, &outcome, !check.starting) {
            return Ok(self.tx.requeue_check(id)?);
        }
        self.actions.push(Action::CollectCheck(Box::new(CheckEnd {
            id,
            kind: check.kind,
            watch: check.watch,
            outcome,
            reading,
            loaded,
        })));
        Ok(())
    }

    /// The unit of a check has ended, and its files were read.
    pub(crate) fn check_collected(&mut self, collected: &Collected) -> TurnResult<()> {
        let end = &collected.end;
        let Some(check) = self.tx.open_check(end.id)? else {
            return Ok(());
        };
        let files = Files {
            record: collected.record.clone(),
            watch: collected.watch.as_ref(),
        };
        self.check_over(&check, &end.outcome, &end.reading, &files)?;
        let unit = check.unit;
        self.actions.push(if end.loaded {
            let how = Release::for_reading(&end.reading);
            Action::Release { unit, how }
        } else {
            Action::Forget(unit)
        });
        Ok(())
    }

    /// The run of a check is lost.
    pub(crate) fn check_lost(&mut self, id: RunId) -> TurnResult<()> {
        match self.tx.open_check(id)? {
            Some(check) => self.check_over(
                &check,
                &Outcome::Lost,
                &Reading::default(),
                &Files::default(),
            ),
            None => Ok(()),
        }
    }

    /// Records the end of a check, and what follows from it.
    fn check_over(
        &mut self,
        check: &CheckRow,
        outcome: &Outcome,
        reading: &Reading,
        files: &Files<'_>,
    ) -> TurnResult<()> {
        let (ok, mut record) = conclude(check.kind, outcome, files.record.clone());
        // The request says what the unit had; the file of the watch may have changed.
        let request = serde_json::from_str::<CheckRequest>(&check.request).ok();
        let identity = request.and_then(|request| request.settings.identity);
        if let Some(own) = identity.filter(|_| outcome.lacks_credentials()) {
            record.error = Some(format!(
                "the service manager failed to read ClientCertificate='{}' or ClientKey='{}'",
                own.certificate, own.key
            ));
        }
        let found = (ok, &record);
        if !self
            .tx
            .end_check(check.id, Some(outcome), reading, found, self.now)?
        {
            return Ok(());
        }
        let is_failure = ok.is_none() || (check.kind == CheckKind::Alert && ok != Some(true));
        if is_failure && check.watch == NO_WATCH {
            self.log_problem(Problem::AlertFailed {
                occasion: check.url.clone(),
                unit: check.unit.clone(),
                why: record.error.clone().unwrap_or_default(),
            });
        } else if is_failure {
            let log = WatchLog::CheckFailed {
                kind: check.kind,
                url: without_userinfo(&check.url),
                unit: check.unit.clone(),
                error: record.error.clone(),
            };
            self.log(LogEntry::Watch(check.watch.clone(), log));
        }
        let output = record_path(&self.engine.scope, check.id, check.kind);
        let input = self.engine.input_path(&check.unit, check.id);
        self.actions.extend([output, input].map(Action::Remove));
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
            (CheckKind::Status, Some(ok)) => self.note_health(check, ok, &record, files.watch),
            _ => Ok(()),
        }
    }

    /// Deletes expired results, all of a day together, and schedules the next time.
    pub(crate) fn prune_checks(&mut self) -> Result<(), crate::store::StoreError> {
        let Some(due) = prune_at(self.tx.oldest_check_until()?) else {
            return Ok(());
        };
        if due > self.now {
            self.actions.push(Action::WakeAt(due));
            return Ok(());
        }
        let count = self.tx.prune_checks(self.now)?;
        self.log(LogEntry::ChecksPruned(count));
        if let Some(next) = prune_at(self.tx.oldest_check_until()?) {
            self.actions.push(Action::WakeAt(next));
        }
        Ok(())
    }
}
