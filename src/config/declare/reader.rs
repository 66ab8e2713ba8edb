//! Reads the keys of a declaration and collects problems.

use crate::declare::declaration::Declaration;
use crate::ini::IniEntry;
use archivist_core::text::{Location, Problem, SPAN_ALLOWED, did_you_mean, parse_span, similar};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// A declaration that is being read.
pub struct Reader<'a> {
    declaration: &'a Declaration,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Returns a reader. Malformed lines, and text that a unit file cannot contain, are errors.
    pub fn new(declaration: &'a Declaration) -> Reader<'a> {
        let mut reader = Reader { declaration, problems: declaration.malformed.clone() };
        for entry in &declaration.entries {
            let texts = [&entry.section, &entry.key, &entry.value];
            // systemd also ends a line at a carriage return or NUL.
            if texts.iter().any(|text| text.chars().any(|c| c.is_control() && c != '\t')) {
                reader.refuse(entry, "this line contains a control character; remove it");
            }
        }
        reader
    }

    /// Returns the name of the declaration.
    pub fn name(&self) -> &'a str {
        &self.declaration.name
    }

    /// Path of the main file.
    pub fn path(&self) -> &'a Path {
        &self.declaration.path
    }

    fn own(&self) -> impl DoubleEndedIterator<Item = &'a IniEntry> + use<'a> {
        let section = self.declaration.kind.section();
        self.section(section)
    }

    /// Returns the assignments of one section in order.
    pub fn section(
        &self,
        name: &'static str,
    ) -> impl DoubleEndedIterator<Item = &'a IniEntry> + use<'a> {
        let entries = self.declaration.entries.iter();
        entries.filter(move |entry| entry.section == name)
    }

    /// Warns of sections other than its own and those in `passed`, and of keys of its own section
    /// that are not in `keys`. Sections and keys that begin with `X-` are ignored.
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
                let what =
                    format!("[{own}] has no {key}={}", meant(key, keys.iter().copied(), "", "="));
                self.warn(entry, &what);
            }
        }
    }

    /// Returns the last assignment of a key; an empty one means the default.
    pub fn last(&self, key: &str) -> Option<&'a IniEntry> {
        let last = self.own().rfind(|entry| entry.key == key)?;
        (!last.value.is_empty()).then_some(last)
    }

    /// Returns the last assignment of a key without a default. `example` is a value for the error.
    pub fn required(&mut self, key: &str, example: &str) -> Option<&'a IniEntry> {
        let found = self.last(key);
        if found.is_none() {
            let section = self.declaration.kind.section();
            let what =
                format!("{key}= is missing; add a line like '{key}={example}' to [{section}]");
            self.refuse_all(&what);
        }
        found
    }

    /// Returns the location of the first assignment of its own section, otherwise line 1.
    fn beginning(&self) -> Location {
        let first = self.own().next().map(|entry| entry.location.clone());
        first.unwrap_or_else(|| Location { file: self.declaration.path.clone(), line: 1 })
    }

    /// Returns all assignments of a key since the last empty one.
    pub fn all(&self, key: &str) -> Vec<&'a IniEntry> {
        let mut found = Vec::new();
        for entry in self.own().filter(|entry| entry.key == key) {
            if entry.value.is_empty() { found.clear() } else { found.push(entry) }
        }
        found
    }

    /// Returns the last assignment of a key as `parse` reads it. Refuses the line with the error of
    /// `parse`.
    pub fn value<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let entry = self.last(key)?;
        parse(entry.value.trim()).inspect_err(|what| self.refuse(entry, what)).ok()
    }

    /// Returns a time span (systemd.time(7)).
    pub fn span(&mut self, key: &str) -> Option<Duration> {
        let entry = self.last(key)?;
        let span = parse_span(&entry.value);
        if span.is_none() {
            let what = format!("{key}= is '{}'; write {SPAN_ALLOWED}", entry.value);
            self.refuse(entry, &what);
        }
        span
    }

    /// Returns a whole number within a range.
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

    /// Returns a boolean in the spelling of systemd.
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

    /// Records an error in this line: the declaration is not used.
    pub fn refuse(&mut self, entry: &IniEntry, what: &str) {
        self.problems.push(Problem::at(&entry.location, what));
    }

    /// Records an error of the whole declaration.
    pub fn refuse_all(&mut self, what: &str) {
        let problem = Problem::at(&self.beginning(), what);
        self.problems.push(problem);
    }

    /// Records a warning: this line is ignored.
    pub fn warn(&mut self, entry: &IniEntry, what: &str) {
        let warning = Problem::at(&entry.location, what).ignored();
        self.problems.push(warning);
    }

    /// Returns whether anything refused so far keeps the declaration from being used.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.fatal)
    }

    /// Returns all problems found.
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
