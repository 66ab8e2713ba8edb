//! What an import of a data directory of ArchiveBox found and took.

use super::files::Copied;
use super::survey::Found;
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::staging::copy::Tally;
use archivist_core::text::{clean, human_size};
use archivist_shared::archivebox::BoxSnapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Lines about single snapshots that are printed.
const LINES_MAX: usize = 100;

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// What the directory has, in one line.
pub fn description(found: &Found) -> String {
    let snapshots = &found.snapshots;
    let results: usize = snapshots.iter().map(|snapshot| snapshot.results.len()).sum();
    let tags: BTreeSet<&String> = snapshots.iter().flat_map(|snapshot| &snapshot.tags).collect();
    let mut text = format!(
        "ArchiveBox: {}, {}, {}",
        count(snapshots.len(), "snapshot"),
        count(results, "result"),
        count(tags.len(), "tag")
    );
    let times = || snapshots.iter().filter_map(|snapshot| snapshot.bookmarked_at.as_deref());
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        let day = |time: &str| clean(time.get(..10).unwrap_or(time));
        let _ = write!(text, ", from {} to {}", day(first), day(last));
    }
    if found.orphans > 0 {
        let _ = write!(text, ", {} of them without a row in the database", found.orphans);
    }
    text
}

pub struct Report {
    /// The directory, as it is printed.
    shown: String,
    has_faults: bool,
    pub queued: u64,
    snapshots: u64,
    refused: u64,
    without_directory: u64,
    with_damage: u64,
    files: u64,
    bytes: u64,
    by_extractor: BTreeMap<String, BTreeMap<Copied, u64>>,
    lines: usize,
}

impl Report {
    pub fn new(shown: String, has_faults: bool) -> Report {
        Report {
            shown,
            has_faults,
            queued: 0,
            snapshots: 0,
            refused: 0,
            without_directory: 0,
            with_damage: 0,
            files: 0,
            bytes: 0,
            by_extractor: BTreeMap::new(),
            lines: 0,
        }
    }

    /// Prints a line about a snapshot, unless there were too many.
    fn line(&mut self, snapshot: &BoxSnapshot, what: &str) {
        self.lines += 1;
        if self.lines <= LINES_MAX {
            let (shown, what) = (&self.shown, clean(what));
            eprintln!(
                "'{shown}': {} '{}': {what}",
                clean(&snapshot.timestamp),
                clean(&snapshot.url)
            );
        }
    }

    pub fn refuse(&mut self, snapshot: &BoxSnapshot, why: &str) {
        self.refused += 1;
        self.line(snapshot, &format!("refused: {why}"));
    }

    pub fn add(
        &mut self,
        snapshot: &BoxSnapshot,
        has_directory: bool,
        tally: &Tally,
        results: &[(String, Copied)],
    ) {
        self.snapshots += 1;
        self.files += tally.files;
        self.bytes += tally.bytes;
        for (extractor, copied) in results {
            let name = clean(extractor).chars().take(64).collect();
            let kinds: &mut BTreeMap<Copied, u64> = self.by_extractor.entry(name).or_default();
            *kinds.entry(*copied).or_default() += 1;
        }
        if !has_directory {
            self.without_directory += 1;
            self.line(snapshot, "it has no directory");
        }
        if tally.damaged + tally.left_out > 0 {
            self.with_damage += 1;
            let others = tally.damaged + tally.left_out;
            let what = format!(
                "{} left out: {}",
                count(usize::try_from(others).unwrap_or(usize::MAX), "file"),
                tally.faults.join("; ")
            );
            self.line(snapshot, &what);
        }
    }

    /// Prints the report. `known` is the number of snapshots that were imported before; `None` if none is
    /// imported now.
    pub fn print(self, known: Option<u64>) -> Result<Exit, Failure> {
        if let Some(more @ 1..) = self.lines.checked_sub(LINES_MAX) {
            eprintln!("'{}': {more} more lines", self.shown);
        }
        let mut text = String::new();
        for (extractor, kinds) in &self.by_extractor {
            let words = [
                (Copied::Whole, "taken"),
                (Copied::WithoutFiles, "without files"),
                (Copied::Damaged, "damaged"),
                (Copied::Unknown, "unknown"),
            ];
            let parts = words.iter().filter_map(|(kind, word)| {
                let number = kinds.get(kind)?;
                Some(format!("{number} {word}"))
            });
            let parts: Vec<String> = parts.collect();
            let _ = writeln!(text, "  {extractor}: {}", parts.join(", "));
        }
        let size = human_size(self.bytes);
        let _ = write!(text, "'{}': ", self.shown);
        match known {
            Some(known) => {
                let _ = write!(text, "{} taken, {known} known", self.queued);
            }
            None => {
                let _ = write!(text, "{} to take", self.snapshots);
            }
        }
        let _ = writeln!(
            text,
            ", {} without a directory, {} with files left out, {} refused; {} files, {size}",
            self.without_directory, self.with_damage, self.refused, self.files
        );
        style::print(&text)?;
        let is_whole = !self.has_faults && self.refused == 0 && self.with_damage == 0;
        Ok(if is_whole { Exit::Done } else { Exit::Partly })
    }
}
