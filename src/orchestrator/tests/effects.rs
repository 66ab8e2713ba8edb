//! The collaborators of the loop in the tests: PID 1 handles calls when a test lets it, threads and
//! callers answer at once.

use super::world::{Call, World};
use crate::bus::call::{Answer, Reply};
use crate::engine::commands::{Commands, RegisteredCommand};
use crate::main_loop::effects::{Background, Callers, Job, Systemd};
use crate::main_loop::event::Event;
use crate::main_loop::measure::HookDirs;
use crate::main_loop::prepare::prepare;
use crate::main_loop::starts::Start;
use archivist_config::Scope;
use archivist_core::model::{CrawlId, RunId};
use archivist_core::plan::{Evidence, LoadLimits};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::signals::Signal;
use archivist_shared::systemd::{Release, Whom};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

impl Systemd for World {
    fn start(&mut self, start: Start, scope: &Scope) {
        match prepare(&start, scope) {
            Ok(_) => self.calls.push_back(Call::Start(start)),
            Err(error) => self.answers.push(Event::Started {
                run: start.run,
                unit: start.spec.name.clone(),
                result: Err(error),
            }),
        }
    }

    fn read(&mut self, run: RunId, unit: String, early: bool, evidence: Option<Evidence>) {
        self.calls.push_back(Call::Read { run, unit, early, evidence });
    }

    fn release(&mut self, unit: String, how: Release) {
        self.calls.push_back(Call::Release(unit, how));
    }

    fn unblock(&mut self, unit: String) {
        self.calls.push_back(Call::Freezer(unit.clone(), false));
        self.calls.push_back(Call::Release(unit.clone(), Release::Stop));
        self.calls.push_back(Call::Release(unit.clone(), Release::Reset));
        self.calls.push_back(Call::Gone(unit));
    }

    fn signal(&mut self, unit: String, _whom: Whom, signal: i32) {
        self.calls.push_back(Call::Kill(unit, signal));
    }

    fn end(&mut self, unit: String, force: bool, reply: Reply) {
        self.calls.push_back(Call::Kill(unit, if force { 9 } else { 15 }));
        reply.send(Ok(Answer::Done));
    }

    fn freeze(&mut self, unit: String) {
        self.calls.push_back(Call::Freezer(unit, true));
    }

    fn thaw(&mut self, unit: String) {
        self.calls.push_back(Call::Freezer(unit, false));
    }

    fn thaw_at_shutdown(&mut self, _units: Vec<String>) {}

    fn stop_slice(&mut self, slice: String) {
        self.calls.push_back(Call::StopSlice(slice));
    }

    fn forget(&mut self, _unit: &str) {}

    fn list(&mut self) {
        self.calls.push_back(Call::List);
    }

    fn synchronize_journal(&mut self, invocation: String, reply: Reply) {
        reply.send(Ok(Answer::Text(invocation)));
    }
}

impl Background for World {
    fn send(&mut self, event: Event) {
        self.answers.push(event);
    }

    fn run(&mut self, job: Job, scope: &Scope) {
        match job(scope) {
            event @ Event::Call(_) => self.read.push(event),
            event => self.answers.push(event),
        }
    }

    fn measure(&mut self, hooks: Vec<HookDirs>, rate: u64) {
        self.measured = Some((hooks, rate));
    }

    fn inspect(
        &mut self,
        _programs: Vec<(String, PathBuf)>,
        _then: crate::main_loop::effects::Inspection,
    ) {
    }

    fn watch_disk(&mut self, _watched: Option<(PathBuf, LoadLimits)>) {}
}

impl Callers for World {
    fn followed(&self) -> BTreeSet<CrawlId> {
        BTreeSet::new()
    }

    fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    fn follow(&mut self, _crawl: CrawlId, _: Vec<String>, _: Claim, _: &Reply) {}

    fn follow_status(&mut self, _claim: Claim, _reply: &Reply) {}

    fn tell(&mut self, _crawl: CrawlId, _line: &str, _last: bool) {}

    fn tell_of_status(&mut self) {
        self.status_changes += 1;
    }

    fn status(&mut self, _line: &str) -> Option<Duration> {
        None
    }

    fn hold(&mut self, _crawl: CrawlId, _cancel: bool, _: Claim, _: &Reply) {}

    fn release_holds(&mut self, _crawl: CrawlId) {}

    fn register(
        &mut self,
        commands: &mut Commands,
        command: RegisteredCommand,
        _claim: Claim,
        _reply: &Reply,
    ) {
        commands.add(command);
    }

    fn announce(&mut self, signal: Signal) {
        self.announced.push(signal);
    }
}
