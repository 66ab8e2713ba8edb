//! `NAME.watch`: the sites to check, the schedules, and the alerts. Pure; the generator makes
//! timers from it, and the orchestrator checks.

mod cron;
mod keys;
mod probe;
mod schedule;

pub use keys::{KEYS, SECTION, TEXTS};
pub use schedule::{Schedule, When};

use crate::alert::Alert;
use crate::declare::reader::Reader;
use crate::declare::{Declaration, Kind};
use archivist_core::model::{CheckKind, Probe, Task, shown_setting, without_userinfo};
use archivist_core::text::Problem;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What happens to runs that were missed while the machine was off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// They are dropped.
    Skip,
    /// All missed runs become one.
    One,
}

/// Pages that `Archive=` archives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archiving {
    /// Links to follow from the given pages.
    pub depth: u32,
    /// Tags of the pages.
    pub tags: Vec<String>,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    /// Settings of the crawls, including persona and limits.
    pub settings: BTreeMap<String, String>,
    /// Skip pages that are archived already: with a depth of 0 the given ones, otherwise those that
    /// links lead to.
    pub only_new: bool,
}

/// A watch: one file with its drop-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name of the file without `.watch`.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// Lines of text for people.
    pub notes: Vec<String>,
    /// Sites that are checked, normalised.
    pub urls: Vec<String>,
    /// File with further URLs, one per line.
    pub url_file: Option<PathBuf>,
    schedules: BTreeMap<CheckKind, Schedule>,
    /// Missed runs (`Missed=`).
    pub missed: Missed,
    /// A stable part of this time is added to every run, so that many watches do not start at once.
    pub spread: Duration,
    /// How long results are stored, of kinds that differ from the default.
    retention: BTreeMap<CheckKind, Duration>,
    /// Failed status checks in a row after which a site is down.
    pub down_after: u32,
    /// What runs when a site goes down.
    pub on_down: Option<Alert>,
    /// What runs when a site comes back.
    pub on_recovery: Option<Alert>,
    /// How status checks ask, and what they expect.
    pub probe: Probe,
    /// How pages are archived.
    pub archiving: Archiving,
}

impl Watch {
    /// Returns a watch with the default of every key and without sites.
    pub fn new(name: &str) -> Watch {
        Watch {
            name: name.to_owned(),
            label: String::new(),
            notes: Vec::new(),
            urls: Vec::new(),
            url_file: None,
            schedules: BTreeMap::new(),
            missed: Missed::One,
            spread: Duration::ZERO,
            retention: BTreeMap::new(),
            down_after: 2,
            on_down: None,
            on_recovery: None,
            probe: Probe::default(),
            archiving: Archiving::default(),
        }
    }

    /// Reads the `[Watch]` section; unknown keys and other sections are not looked at. A bad value
    /// is a problem of `reader`, and the key keeps its default.
    pub fn read(reader: &mut Reader<'_>) -> Watch {
        keys::read(reader)
    }

    /// Reads a declaration, and returns the problems of its `[Watch]` section next to the watch.
    pub fn of(declaration: &Declaration) -> (Watch, Vec<Problem>) {
        let mut reader = Reader::new(declaration);
        let watch = Watch::read(&mut reader);
        (watch, reader.finish())
    }

    /// Returns whether the watch updates the archive on schedule (`URL=archivebox://update`), instead
    /// of watching sites.
    pub fn updates(&self) -> bool {
        self.urls.iter().any(|url| *url == Task::Update.url())
    }

    /// Returns the schedule for checks of this kind, or its default.
    pub fn schedule(&self, kind: CheckKind) -> Schedule {
        let built_in = || match kind {
            _ if self.updates() => Schedule::off(),
            CheckKind::Status => Schedule::every(Duration::from_secs(180)),
            CheckKind::Lighthouse => Schedule::calendar("daily"),
            CheckKind::Crawl => Schedule::calendar("weekly"),
            CheckKind::Archive | CheckKind::Alert => Schedule::off(),
        };
        self.schedules.get(&kind).cloned().unwrap_or_else(built_in)
    }

    /// Returns how long to keep results of this kind. Those of frequent checks expire sooner.
    pub fn retention(&self, kind: CheckKind) -> Duration {
        let built_in = match kind {
            CheckKind::Status | CheckKind::Alert => Duration::from_secs(3 * 86_400),
            CheckKind::Lighthouse | CheckKind::Crawl | CheckKind::Archive => {
                Duration::from_secs(90 * 86_400)
            }
        };
        self.retention.get(&kind).copied().unwrap_or(built_in)
    }

    /// Returns whether the file of the watch should be readable by its owner alone: it has a secret
    /// in a header, a body, a URL or a setting.
    pub fn has_secret(&self) -> bool {
        let in_url = |url: &String| without_userinfo(url) != *url;
        let in_setting = |(name, value): (&String, &String)| shown_setting(name, value) != *value;
        self.probe.has_secret()
            || self.urls.iter().any(in_url)
            || self.archiving.settings.iter().any(in_setting)
    }

    /// Returns what the scheduled checks leave out of the file, one sentence each.
    pub fn left_out(&self) -> Vec<String> {
        let kinds = self.kinds();
        let keys = self.probe.keys_of_status();
        let mut sentences = Vec::new();
        for kind in [CheckKind::Lighthouse, CheckKind::Crawl] {
            if kinds.contains(&kind) && !keys.is_empty() {
                sentences.push(format!("{kind} checks do not use {}", keys.join(", ")));
            }
        }
        let closed = self.probe.closed_to_lighthouse();
        let closed = closed.filter(|_| kinds.contains(&CheckKind::Lighthouse));
        sentences.extend(
            closed.map(|why| format!("lighthouse checks are skipped, set Lighthouse=no: {why}")),
        );
        sentences
    }

    /// Returns the kinds that have a timer.
    pub fn kinds(&self) -> Vec<CheckKind> {
        let on = |kind: &CheckKind| self.schedule(*kind).when != When::Never;
        CheckKind::SCHEDULED.into_iter().filter(on).collect()
    }
}

/// Allowed names, for messages.
pub const NAME_ALLOWED: &str =
    "a letter or digit followed by letters, digits, '_', '.' and '-' (100 at most)";

/// Returns whether a watch can have this name. It becomes part of unit names, where it is not
/// escaped.
pub fn is_name(name: &str) -> bool {
    Kind::Watch.allows(name)
}

#[cfg(test)]
mod tests;
