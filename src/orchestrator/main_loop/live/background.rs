//! Work on threads.

use crate::machine::inspect;
use crate::main_loop::effects::{Background, Inspection, Job};
use crate::main_loop::event::Event;
use crate::main_loop::live::Live;
use crate::main_loop::measure::{HookDirs, measured};
use archivist_config::Scope;
use archivist_core::plan::LoadLimits;
use std::path::{Path, PathBuf};

impl Background for Live {
    fn send(&mut self, event: Event) {
        let _ = self.events.send(event);
    }

    fn run(&mut self, job: Job, scope: &Scope) {
        let (events, scope) = (self.events.clone(), scope.clone());
        tokio::task::spawn_blocking(move || {
            let _ = events.send(job(&scope));
        });
    }

    fn measure(&mut self, hooks: Vec<HookDirs>, rate: u64) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let _ = events.send(Event::Measured(measured(&hooks), rate));
        });
    }

    fn inspect(&mut self, programs: Vec<(String, PathBuf)>, then: Inspection) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let inspected = inspect::look(&programs, Path::new(inspect::DPKG));
            let _ = events.send(then(inspected));
        });
    }

    fn watch_disk(&mut self, watched: Option<(PathBuf, LoadLimits)>) {
        match watched {
            Some((archive, limits)) => self.disk.begin(archive, limits, &self.events),
            None => self.disk.end(),
        }
    }
}
