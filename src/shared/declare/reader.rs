//! Asks a declaration for its keys, and keeps what is wrong with the answers.

use crate::config::ini::{Entry, Place};
use crate::declare::declaration::{Declaration, Kind, Problem};
use archivist_core::text::{SPAN_ALLOWED, did_you_mean, parse_span, similar};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// One declaration while units are made of it.
pub struct Reader<'a> {
    declaration: &'a Declaration,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Lines that make no sense, and text that no unit file can hold, are errors from the outset.
    pub fn new(declaration: &'a Declaration) -> Reader<'a> {
        let mut reader = Reader {
            declaration,
            problems: Vec::new(),
        };
        for bad in &declaration.malformed {
            reader
                .problems
                .push(Problem::at(&bad.place, &bad.what, true));
        }
        for entry in &declaration.entries {
            let texts = [&entry.section, &entry.key, &entry.value];
            // systemd ends a line at a carriage return or NUL as well.
            if texts
                .iter()
                .any(|text| text.chars().any(|c| c.is_control() && c != '\t'))
            {
                reader.refuse(
                    entry,
                    "there is a control character in this line; remove it",
                );
            }
        }
        reader
    }

    pub fn name(&self) -> &'a str {
        &self.declaration.name
    }

    /// The main file.
    pub fn path(&self) -> &'a Path {
        &self.declaration.path
    }

    fn own(&self) -> impl DoubleEndedIterator<Item = &'a Entry> + use<'a> {
        let section = self.declaration.kind.section();
        self.section(section)
    }

    /// The assignments of one section in order, to be passed through.
    pub fn section(
        &self,
        name: &'static str,
    ) -> impl DoubleEndedIterator<Item = &'a Entry> + use<'a> {
        let entries = self.declaration.entries.iter();
        entries.filter(move |entry| entry.section == name)
    }

    /// Complains of sections that are neither its own nor in `passed`, and of keys of its own
    /// section that are not in `keys`. Sections and keys that begin with `X-` are for others.
    pub fn know(&mut self, keys: &[&str], passed: &[&str]) {
        let own = self.declaration.kind.section();
        let mut told = Vec::new();
        for entry in &self.declaration.entries {
            let (section, key) = (entry.section.as_str(), entry.key.as_str());
            if section.starts_with("X-") || key.starts_with("X-") || passed.contains(&section) {
                continue;
            }
            if section != own {
                if !told.contains(&section) {
                    told.push(section);
                    let known = passed.iter().copied().chain([own]);
                    let what = format!(
                        "[{section}] is not a section of this file{}",
                        meant(section, known, "[", "]")
                    );
                    self.warn(entry, &what);
                }
            } else if !keys.contains(&key) {
                let what = format!(
                    "[{own}] has no {key}={}",
                    meant(key, keys.iter().copied(), "", "=")
                );
                self.warn(entry, &what);
            }
        }
    }

    /// The last assignment of a key; an empty one means the default.
    pub fn last(&self, key: &str) -> Option<&'a Entry> {
        let last = self.own().rfind(|entry| entry.key == key)?;
        (!last.value.is_empty()).then_some(last)
    }

    /// The same, where there is no default. `example` shows what it could look like.
    pub fn required(&mut self, key: &str, example: &str) -> Option<&'a Entry> {
        let found = self.last(key);
        if found.is_none() {
            let section = self.declaration.kind.section();
            let what =
                format!("{key}= is missing; add a line like '{key}={example}' to [{section}]");
            self.problems
                .push(Problem::at(&self.beginning(), &what, true));
        }
        found
    }

    /// Where its own section begins, as far as that can be told.
    fn beginning(&self) -> Place {
        let first = self.own().next().map(|entry| entry.place.clone());
        first.unwrap_or_else(|| Place {
            file: self.declaration.path.clone(),
            line: 1,
        })
    }

    /// All assignments of a key since the last empty one.
    pub fn all(&self, key: &str) -> Vec<&'a Entry> {
        let mut found = Vec::new();
        for entry in self.own().filter(|entry| entry.key == key) {
            if entry.value.is_empty() {
                found.clear()
            } else {
                found.push(entry)
            }
        }
        found
    }

    /// A time span (systemd.time(7)).
    pub fn span(&mut self, key: &str) -> Option<Duration> {
        let entry = self.last(key)?;
        let span = parse_span(&entry.value);
        if span.is_none() {
            let what = format!("{key}= is '{}'; write {SPAN_ALLOWED}", entry.value);
            self.refuse(entry, &what);
        }
        span
    }

    /// A whole number within a range.
    pub fn number(&mut self, key: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let entry = self.last(key)?;
        let number = entry.value.parse().ok().filter(|n| range.contains(n));
        if number.is_none() {
            let what = format!(
                "{key}= is '{}'; write a number from {} to {}",
                entry.value,
                range.start(),
                range.end()
            );
            self.refuse(entry, &what);
        }
        number
    }

    /// `yes` or `no`, in the words of systemd.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let entry = self.last(key)?;
        match entry.value.to_ascii_lowercase().as_str() {
            "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
            "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
            _ => {
                let what = format!("{key}= is '{}'; write yes or no", entry.value);
                self.refuse(entry, &what);
                None
            }
        }
    }

    /// An error in this line: nothing is made of the declaration.
    pub fn refuse(&mut self, entry: &Entry, what: &str) {
        self.problems.push(Problem::at(&entry.place, what, true));
    }

    /// Nothing is made of the declaration, for a reason that is in no line of it.
    pub fn refuse_all(&mut self, what: &str) {
        let problem = Problem::at(&self.beginning(), what, true);
        self.problems.push(problem);
    }

    /// This line is ignored.
    pub fn warn(&mut self, entry: &Entry, what: &str) {
        self.problems.push(Problem::at(&entry.place, what, false));
    }

    pub fn kind(&self) -> Kind {
        self.declaration.kind
    }

    pub fn finish(self) -> Vec<Problem> {
        self.problems
    }
}

/// Returns `; did you mean Workers=?`, or the list of all known names if none is similar.
fn meant<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str>,
    before: &str,
    after: &str,
) -> String {
    let known: Vec<&str> = known.collect();
    let written = |names: &[&str]| -> Vec<String> {
        let names = names.iter();
        names.map(|name| format!("{before}{name}{after}")).collect()
    };
    match similar(word, known.iter().copied()).first() {
        None => format!("; there are {}", written(&known).join(" ")),
        Some(nearest) => did_you_mean(&written(&[nearest])),
    }
}
