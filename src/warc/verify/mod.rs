//! Compares all parts of a recording with each other. A file that has passed is one in which every
//! reader finds the same.

mod package;
mod records;

use crate::WarcError;
use crate::digest;
use crate::surt;
use crate::wacz::{Bodies, Wacz};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::sync::Arc;

pub use crate::error::Flaw;

/// Flaws that are named; more add nothing.
const FLAWS_MAX: usize = 1000;

/// What [`check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub records: u64,
    /// Digests of records that were compared.
    pub compared: u64,
    /// Digests with an algorithm other than SHA-256, which were not.
    pub uncompared: u64,
    /// All contradictions, at most 1000.
    pub flaws: Vec<Flaw>,
}

impl Report {
    fn add(&mut self, part: impl Into<String>, reason: impl Into<String>) {
        if self.flaws.len() < FLAWS_MAX {
            self.flaws.push(Flaw::new(part, reason));
        }
    }
}

/// Reads all of a recording, and returns what is wrong with it.
///
/// # Errors
/// If the file cannot be read. One of another format has a flaw.
pub fn check(file: File) -> Result<Report, WarcError> {
    check_with(file, Arc::new(|_| Ok(None)))
}

/// Reads all of a recording and of the bodies that it shares with others, and returns what is wrong with
/// them.
///
/// # Errors
/// If the file cannot be read. One of another format has a flaw.
pub fn check_with(file: File, bodies: Bodies) -> Result<Report, WarcError> {
    let mut report = Report::default();
    let wacz = match Wacz::open_with(file, bodies) {
        Ok(wacz) => wacz,
        Err(WarcError::Format { part, reason }) => {
            report.add(part, reason);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    if !wacz.is_complete() {
        report.add("file", "was not finished");
    }
    for fault in wacz.faults() {
        report.add(fault.part.clone(), fault.reason.clone());
    }
    if !wacz.members.is_empty() {
        package::check(&wacz.members, &mut report);
    }
    let lines = records::check(&wacz, &mut report);
    check_index(&wacz, lines, &mut report);
    check_shared(&wacz, &mut report);
    check_pages(&wacz, &mut report);
    Ok(report)
}

/// Compares the index with the lines that the records would have.
fn check_index(wacz: &Wacz, lines: records::Lines, report: &mut Report) {
    let mut entries: HashMap<(usize, u64), Vec<_>> = HashMap::new();
    for entry in wacz.entries() {
        let place = (entry.warc, entry.offset);
        entries.entry(place).or_default().push(entry);
    }
    for (warc, line) in lines {
        let record = line.record;
        let offset = record.offset.unwrap_or_default();
        let part = format!("{} at byte {offset}", wacz.warcs[warc].name);
        let Some(found) = entries.remove(&(warc, offset)) else {
            let reason = format!("record of '{}' has no index line", record.url);
            report.add(part, reason);
            continue;
        };
        for entry in found {
            let mut differs = |name: &str, indexed: &str, own: &str| {
                let reason = format!("index line says {name} '{indexed}', the record '{own}'");
                report.add(part.clone(), reason);
            };
            if entry.url != record.url {
                differs("URL", &entry.url, &record.url);
            }
            if entry.key != line.key && entry.key != surt::key(&record.url) {
                differs("key", &entry.key, &line.key);
            }
            if entry.time.as_second() != line.time.as_second() {
                differs("time", &entry.time.to_string(), &line.time.to_string());
            }
            if Some(entry.length) != record.length {
                let own = record.length.unwrap_or_default().to_string();
                differs("length", &entry.length.to_string(), &own);
            }
            let status =
                |status: Option<u64>| status.map_or("-".to_owned(), |code| code.to_string());
            if entry.status.map(u64::from) != record.status {
                differs("status", &status(entry.status.map(u64::from)), &status(record.status));
            }
            let media_type = record.mime.as_deref().unwrap_or_default();
            if !entry.media_type.is_empty() && !entry.media_type.eq_ignore_ascii_case(media_type) {
                differs("type", &entry.media_type, media_type);
            }
            if let (Some(indexed), Some(own)) = (&entry.digest, &record.digest)
                && indexed != own
            {
                differs("digest", indexed, own);
            }
            let method = record.method.as_deref().unwrap_or("GET");
            // Other programs index requests without their methods, too.
            if entry.method != method && entry.method != "GET" {
                differs("method", &entry.method, method);
            }
        }
    }
    let mut rest: Vec<_> = entries.into_values().flatten().collect();
    rest.sort_by_key(|entry| (entry.warc, entry.offset));
    for entry in rest {
        let reason = format!("index line of '{}' points to no such record", entry.url);
        report.add(wacz.part(entry), reason);
    }
}

/// Reads the bodies that are in other files.
fn check_shared(wacz: &Wacz, report: &mut Report) {
    let mut known: HashMap<&str, Option<String>> = HashMap::new();
    for (entry, listed) in wacz.shared() {
        let flaw = known.entry(listed).or_insert_with(|| {
            let own = match wacz.read(entry).map(|answer| digest::read(answer.body)) {
                Ok(Ok(own)) => own,
                Ok(Err(error)) => return Some(error.to_string()),
                Err(WarcError::Format { reason, .. }) => return Some(reason),
                Err(WarcError::Io { error, .. }) => return Some(error.to_string()),
            };
            match digest::agree(&own, listed) {
                Some(false) => {
                    Some(format!("WARC-Payload-Digest is {listed}, that of the bytes {own}"))
                }
                Some(true) | None => None,
            }
        });
        match flaw {
            None => report.compared += 1,
            Some(reason) => {
                report.add(wacz.part(entry), format!("body of '{}': {reason}", entry.url))
            }
        }
    }
}

fn check_pages(wacz: &Wacz, report: &mut Report) {
    let urls: BTreeSet<_> = wacz.entries().iter().map(|entry| &entry.url).collect();
    for page in wacz.pages() {
        if !urls.contains(&page.url) {
            let reason = format!("page '{}' was not recorded", page.url);
            report.add("list of pages", reason);
        }
    }
}

#[cfg(test)]
mod tests;
