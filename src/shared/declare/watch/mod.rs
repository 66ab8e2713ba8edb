//! `NAME.watch`: what is to be looked at, how often, and whom to tell. Pure; the generator makes
//! timers of it and the orchestrator checks.

mod alert;
mod keys;
mod schedule;

pub use alert::Alert;
pub use keys::{KEYS, SECTION};
pub use schedule::{Schedule, When};

use crate::config::ini::{Entry, Place};
use archivist_core::model::CheckKind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What is said of a file that makes no sense in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, if it is about a line.
    pub place: Option<Place>,
    pub what: String,
}

/// What becomes of runs that were missed because the machine was off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    Skip,
    /// All of them together are one.
    One,
}

/// Which pages an archive takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archiving {
    /// Steps from the given pages.
    pub depth: u32,
    pub tags: Vec<String>,
    pub plugins: Vec<String>,
    /// Pass over pages that the archive has: with a depth of 0 the given ones, else those that
    /// links lead to.
    pub only_new: bool,
}

/// One file with its drop-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub name: String,
    pub urls: Vec<String>,
    /// A file with more of them, one a line.
    pub url_file: Option<PathBuf>,
    schedules: BTreeMap<CheckKind, Schedule>,
    pub missed: Missed,
    /// A stable part of this is added to every time, so that many watches do not start at once.
    pub spread: Duration,
    /// How long results are kept.
    pub retention: Duration,
    /// Failed status checks in a row that make it down.
    pub down_after: u32,
    pub on_down: Option<Alert>,
    pub on_recovery: Option<Alert>,
    pub archiving: Archiving,
}

impl Watch {
    pub fn new(name: &str) -> Watch {
        Watch {
            name: name.to_owned(),
            urls: Vec::new(),
            url_file: None,
            schedules: BTreeMap::new(),
            missed: Missed::One,
            spread: Duration::ZERO,
            retention: Duration::from_secs(3 * 86_400),
            down_after: 2,
            on_down: None,
            on_recovery: None,
            archiving: Archiving::default(),
        }
    }

    /// Reads the `[Watch]` section; unknown keys and other sections are passed over. What makes no sense
    /// is named and has its default.
    pub fn read<'a>(
        name: &str,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> (Watch, Vec<Problem>) {
        let mut watch = Watch::new(name);
        let mut problems = Vec::new();
        if !is_name(name) {
            problems.push(Problem {
                place: None,
                what: format!("'{name}' cannot be the name of a watch: {NAME_ALLOWED}"),
            });
        }
        for entry in entries {
            if entry.section == SECTION
                && let Err(what) = keys::set(&mut watch, entry)
            {
                problems.push(Problem {
                    place: Some(entry.place.clone()),
                    what,
                });
            }
        }
        if problems.is_empty() && watch.urls.is_empty() && watch.url_file.is_none() {
            problems.push(Problem {
                place: None,
                what: "nothing to watch: neither URL= nor URLFile= is set in [Watch]".to_owned(),
            });
        }
        (watch, problems)
    }

    /// When checks of this kind are due: as the file says, or as it is where it says nothing.
    pub fn schedule(&self, kind: CheckKind) -> Schedule {
        let built_in = || match kind {
            CheckKind::Status => Schedule::every(Duration::from_secs(180)),
            CheckKind::Lighthouse => Schedule::calendar("daily"),
            CheckKind::Crawl => Schedule::calendar("weekly"),
            CheckKind::Archive | CheckKind::Alert => Schedule::off(),
        };
        self.schedules.get(&kind).cloned().unwrap_or_else(built_in)
    }

    /// The kinds that have a timer.
    pub fn kinds(&self) -> Vec<CheckKind> {
        let on = |kind: &CheckKind| self.schedule(*kind).when != When::Never;
        CheckKind::SCHEDULED.into_iter().filter(on).collect()
    }
}

/// What a watch may be called, for messages.
pub const NAME_ALLOWED: &str =
    "a letter or digit followed by letters, digits, '_', '.' and '-' (100 at most)";

/// It becomes part of unit names, where it is never escaped.
pub fn is_name(name: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(fine)
}

#[cfg(test)]
mod tests;
