//! All index lines and pages of a recording.

use super::documents::Documents;
use super::entry::Entry;
use super::index::Lines;
use super::read::Warc;
use super::write::Page;
use crate::Flaw;
use crate::cdxj;
use crate::record::Walk;
use crate::source::read_line;
use crate::zip::Member;
use archivist_core::model::{cut, is_web};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::io::{self, Read};

/// Largest index in bytes, unpacked, that is kept.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// Largest index in bytes, unpacked, that is checked.
const SURVEY_MAX_BYTES: u64 = 16 << 30;
/// Pages of a list that are read.
pub(super) const PAGES_MAX: usize = 200_000;
/// Longest line of a page in bytes.
const PAGE_MAX_BYTES: u64 = 32 << 20;
/// Texts of pages that are kept, in bytes.
pub(super) const TEXTS_MAX_BYTES: usize = 64 << 20;
/// Faults that are reported one by one.
pub(super) const FAULTS_MAX: usize = 100;

/// What of an index stays in memory.
#[derive(Clone, Copy)]
pub(super) enum Keeps<'a> {
    All,
    /// Entries for which this is true; of a file without an index, those of its pages.
    Of(&'a dyn Fn(&Entry) -> bool),
}

#[derive(Default)]
pub(super) struct Contents {
    pub(super) entries: Vec<Entry>,
    pub(super) pages: Vec<Page>,
    /// The entries of the documents of the pages, if these were found in records.
    pub(super) documents: Vec<Entry>,
    pub(super) faults: Vec<Flaw>,
    /// Of each WARC file whose records were read, the offset of the end of the last one.
    pub(super) ends: Vec<u64>,
}

/// Returns whether a member is an index, and whether that is compressed by itself.
pub(super) fn index_kind(member: &Member) -> Option<bool> {
    let name = member.name.strip_prefix("indexes/")?;
    let plain = name.trim_end_matches(".gz");
    let is_index = plain.ends_with(".cdx") || plain.ends_with(".cdxj");
    is_index.then(|| name.ends_with(".gz"))
}

pub(super) fn is_list(member: &Member) -> bool {
    member.name.starts_with("pages/") && member.name.ends_with(".jsonl")
}

impl Contents {
    /// Reads the indexes of a WACZ, whose entries are sorted by key and time afterwards.
    pub(super) fn of_indexes(members: &[Member], warcs: &[Warc], keeps: Keeps<'_>) -> Contents {
        let mut contents = Contents::default();
        for member in members {
            if let Some(is_packed) = index_kind(member) {
                contents.add_index(member, is_packed, warcs, keeps);
            }
        }
        contents.sort();
        contents
    }

    /// Makes the index of WARC files from their records, or, if not all is kept, a list of their documents.
    /// What ends a file that `is_complete` is a fault.
    pub(super) fn of_records(warcs: &[Warc], is_complete: bool, keeps: Keeps<'_>) -> Contents {
        let mut contents = Contents::default();
        let mut documents = Documents::default();
        for (number, warc) in warcs.iter().enumerate() {
            let mut walk = Walk::new(warc.data.clone());
            let mut lines = Lines::default();
            loop {
                match walk.next() {
                    Ok(Some(found)) => match keeps {
                        Keeps::All => lines.add(&found, &warc.name),
                        Keeps::Of(_) => documents.add(&found, warcs, number),
                    },
                    Ok(None) => break,
                    Err(stop) => {
                        if is_complete {
                            let part = format!("{} at byte {}", warc.name, stop.offset);
                            contents.fault(part, stop.reason);
                        }
                        break;
                    }
                }
            }
            contents.ends.push(walk.end);
            for line in lines.into_lines() {
                let offset = line.record.offset.unwrap_or_default();
                match Entry::of(line, warcs, Some(number)) {
                    Ok(entry) => contents.entries.extend(entry),
                    Err(reason) => {
                        contents.fault(format!("{} at byte {offset}", warc.name), reason);
                    }
                }
            }
        }
        documents.end(&mut contents);
        contents.sort();
        contents
    }

    /// Reads the lists of pages, and keeps so many bytes of their texts.
    pub(super) fn of_lists(members: &[Member], texts: usize) -> Contents {
        let mut contents = Contents::default();
        for member in members.iter().filter(|member| is_list(member)) {
            contents.add_pages(member, texts);
        }
        contents
    }

    fn sort(&mut self) {
        let order = |entry: &Entry| (entry.key.clone(), entry.time);
        self.entries.sort_by_cached_key(order);
    }

    fn add_index(&mut self, member: &Member, is_packed: bool, warcs: &[Warc], keeps: Keeps<'_>) {
        let content: Box<dyn Read> = if is_packed {
            Box::new(MultiGzDecoder::new(io::BufReader::new(member.content())))
        } else {
            member.content()
        };
        let most = match keeps {
            Keeps::All => INDEX_MAX_BYTES,
            Keeps::Of(_) => SURVEY_MAX_BYTES,
        };
        let is_kept = |entry: &Entry| match keeps {
            Keeps::All => true,
            Keeps::Of(is_wanted) => is_wanted(entry),
        };
        let mut content = io::BufReader::new(content.take(most));
        let mut previous = Vec::new();
        for number in 1_u64.. {
            let mut line = Vec::new();
            let part = || format!("{} line {number}", member.name);
            match read_line(&mut content, cdxj::LINE_MAX_BYTES, &mut line) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => return self.fault(part(), reason),
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end();
            if text.is_empty() || text.starts_with('!') {
                continue;
            }
            let entry = cdxj::parse(text).and_then(|line| Entry::of(line, warcs, None));
            match entry {
                Ok(entry) => self.entries.extend(entry.filter(is_kept)),
                Err(reason) => self.fault(part(), reason),
            }
            if line < previous {
                self.fault(part(), "not in order");
            }
            previous = line;
        }
        if content.get_ref().limit() == 0 {
            let reason = format!("only the first {most} bytes are read");
            self.fault(member.name.clone(), reason);
        }
    }

    fn add_pages(&mut self, member: &Member, texts: usize) {
        let mut rest = texts;
        for page in pages_of(member) {
            if self.pages.len() >= PAGES_MAX {
                let reason = format!("only the first {PAGES_MAX} pages are read");
                return self.fault(member.name.clone(), reason);
            }
            match page {
                Ok(mut page) => {
                    let length = page.text.as_ref().map_or(0, String::len);
                    match usize::checked_sub(rest, length) {
                        Some(left) => rest = left,
                        None => page.text = None,
                    }
                    self.pages.push(page);
                }
                Err(flaw) => self.fault(flaw.part, flaw.reason),
            }
        }
    }

    fn fault(&mut self, part: String, reason: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Flaw::new(part, reason));
        }
    }
}

#[derive(Default)]
pub(super) struct Beginning {
    /// The first page.
    pub page: Option<Page>,
    /// Lines before it that are no page.
    pub faults: Vec<Flaw>,
}

/// Reads the lists up to the first page.
pub(super) fn beginning(members: &[Member]) -> Beginning {
    let mut contents = Contents::default();
    let mut lists = members.iter().filter(|member| is_list(member)).flat_map(pages_of);
    let page = lists.find_map(|page| match page {
        Ok(page) => Some(page),
        Err(flaw) => {
            contents.fault(flaw.part, flaw.reason);
            None
        }
    });
    Beginning { page, faults: contents.faults }
}

/// The pages of a list, and the lines that are none. A line that is too long ends it.
pub(super) fn pages_of(member: &Member) -> impl Iterator<Item = Result<Page, Flaw>> {
    let name = member.name.clone();
    let mut content = Some(io::BufReader::new(member.content()));
    let mut number = 0_u64;
    std::iter::from_fn(move || {
        loop {
            number += 1;
            let mut line = Vec::new();
            let flaw =
                |reason: String| Some(Err(Flaw::new(format!("{name} line {number}"), reason)));
            match read_line(content.as_mut()?, PAGE_MAX_BYTES, &mut line) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(reason) => {
                    content = None;
                    return flaw(reason.to_string());
                }
            }
            match page_of(&line) {
                Ok(Some(page)) => return Some(Ok(page)),
                Ok(None) => {}
                Err(reason) => return flaw(reason),
            }
        }
    })
}

/// The page of a line. `None` for the title of the list, and for an empty line. A list may name a file of
/// the reader's machine or a page of the browser itself.
fn page_of(line: &[u8]) -> Result<Option<Page>, String> {
    let line = String::from_utf8_lossy(line);
    if line.trim().is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let time = text("ts").and_then(|time| time.parse().ok());
    match (text("url"), time) {
        (Some(url), Some(_)) if !is_web(&url) => {
            Err(format!("'{}' is neither http nor https", cut(url)))
        }
        (Some(url), Some(time)) => Ok(Some(Page {
            url,
            title: text("title").unwrap_or_default(),
            time,
            text: text("text"),
        })),
        (None, _) if value.get("format").is_some() => Ok(None),
        _ => Err("no URL or no time".to_owned()),
    }
}
