//! Reads WACZ files and single WARC files, also those of other programs.

use super::contents::{self, Beginning, Contents, FAULTS_MAX, TEXTS_MAX_BYTES};
use super::entry::{Entry, REVISIT, TEXT, TEXT_MAX_BYTES};
use super::indexed::{Indexed, Reach, SORTED_MIN_BYTES, Sought};
use super::places::url_of;
use super::stored::{Stored, StoredAnswer, invalid, without_framing};
use super::write::Page;
use crate::digest;
use crate::head::{self, Fields};
use crate::source::Part;
use crate::surt;
use crate::zip::{self, Member, Method};
use crate::{Flaw, WarcError};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

/// Entries that a look-up in an index returns that is not in memory.
pub(crate) const FOUND_MAX: usize = 20_000;

/// Status of an answer without a body to a program that has the body.
const NOT_MODIFIED: u16 = 304;

pub(crate) struct Warc {
    pub(crate) name: String,
    pub(crate) data: Part,
}

/// Finds the file with the record of a body that a recording shares with others, by the 64 hex digits of
/// its SHA-256.
pub type Bodies = Arc<dyn Fn(&str) -> io::Result<Option<File>> + Send + Sync>;

/// A WACZ, or a single WARC file, that is open for reading.
pub struct Wacz {
    pub(crate) members: Vec<Member>,
    pub(crate) warcs: Arc<[Warc]>,
    pub(super) index: Indexed,
    /// The lists of pages, after they were read.
    lists: OnceLock<Contents>,
    /// Their beginning, if only that was read.
    beginning: OnceLock<Beginning>,
    /// Faults that were found when the file was opened.
    pub(super) opened: Vec<Flaw>,
    /// All faults, after all was read.
    faults: OnceLock<Vec<Flaw>>,
    is_complete: bool,
    bodies: Option<Bodies>,
}

impl Wacz {
    /// Opens a WACZ, a WARC file, or a recording that is not complete. The index of a WACZ, and the
    /// records of other files, are read when something is looked up.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn open(file: File) -> Result<Wacz, WarcError> {
        Wacz::open_at_least(file, SORTED_MIN_BYTES)
    }

    /// Opens a recording whose bodies may be in other files, see [`share`](super::share).
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn open_with(file: File, bodies: Bodies) -> Result<Wacz, WarcError> {
        let mut wacz = Wacz::open(file)?;
        wacz.bodies = Some(bodies);
        Ok(wacz)
    }

    /// Opens a file, and reads only a part of its indexes for a look-up if they are sorted and have at
    /// least so many bytes.
    pub(crate) fn open_at_least(file: File, sorted_min_bytes: u64) -> Result<Wacz, WarcError> {
        let bytes = file.metadata().map_err(|error| WarcError::io("file", error))?;
        let whole = Part::new(&Arc::new(file), 0, bytes.len());
        // What ends an unfinished file are bytes of the web, which may look like a directory.
        let first = zip::first_member(&whole).filter(|first| is_warc(&first.name));
        let is_open = first.as_ref().is_some_and(|first| first.is_open);
        let mut faults = Vec::new();
        let (mut members, mut is_complete) = (Vec::new(), true);
        if is_arc(&whole) {
            let reason = "an ARC file, which is older than WARC: convert it, for example with 'warcio recompress'";
            return Err(WarcError::format("file", reason));
        }
        let warcs = if whole.starts_with(b"WARC/") || whole.starts_with(&[0x1f, 0x8b]) {
            vec![Warc { name: "WARC file".to_owned(), data: whole }]
        } else if !whole.starts_with(b"PK") {
            return Err(WarcError::format("file", "neither a WACZ nor a WARC file"));
        } else if !is_open && let Some(found) = zip::directory(&whole)? {
            members = found;
            warcs_of(&members, &mut faults)?
        } else {
            is_complete = false;
            let Some(first) = first else {
                let reason = "has no directory and no WARC file at its begin";
                return Err(WarcError::format("file", reason));
            };
            vec![Warc { name: first.name, data: whole.slice(first.data, u64::MAX) }]
        };
        let warcs: Arc<[Warc]> = warcs.into();
        let shared = Arc::clone(&warcs);
        let index = Indexed::new(members.clone(), shared, is_complete, sorted_min_bytes);
        if !members.is_empty() && !index.exists() {
            faults.push(Flaw::new("indexes", "missing"));
        }
        Ok(Wacz {
            members,
            warcs,
            index,
            lists: OnceLock::new(),
            beginning: OnceLock::new(),
            opened: faults,
            faults: OnceLock::new(),
            is_complete,
            bodies: None,
        })
    }

    /// Returns the index, sorted by key and time. All of it is read and kept then.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.index.all().entries
    }

    /// Returns the entries of a URL that are found by its key, without reading all others.
    #[must_use]
    pub fn of_url(&self, url: &str) -> Vec<Entry> {
        let key = surt::key(url);
        let found = self.find(url_of(url), &key, Reach::Place, &|entry| entry.url == url);
        found.into_iter().map(Cow::into_owned).collect()
    }

    /// Entries that a look-up finds and that are wanted.
    pub(crate) fn find(
        &self,
        url: &str,
        key: &str,
        reach: Reach,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Vec<Cow<'_, Entry>> {
        let sought = Sought { url, key };
        self.index.find(sought, reach, FOUND_MAX, wanted)
    }

    /// Entries that are wanted, of those whose key begins with the place of a directory.
    pub(crate) fn find_below(
        &self,
        place: &str,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Vec<Cow<'_, Entry>> {
        self.index.find_below(place, FOUND_MAX, wanted)
    }

    /// Whether a look-up reads only a part of the index, and whether it may find more with a farther
    /// reach therefore.
    pub(crate) fn is_sorted(&self) -> bool {
        self.index.is_sorted()
    }

    #[must_use]
    pub fn pages(&self) -> &[Page] {
        &self.lists().pages
    }

    fn lists(&self) -> &Contents {
        self.lists.get_or_init(|| Contents::of_lists(&self.members, TEXTS_MAX_BYTES))
    }

    fn beginning(&self) -> &Beginning {
        self.beginning.get_or_init(|| contents::beginning(&self.members))
    }

    /// Returns the first page of the list, without the others.
    #[must_use]
    pub fn first_page(&self) -> Option<Page> {
        match self.lists.get() {
            Some(lists) => lists.pages.first().cloned(),
            None => self.beginning().page.clone(),
        }
    }

    /// Returns what of the file cannot be used, such as index lines that lead out of it. The other
    /// parts can. All of the index is read and kept then.
    #[must_use]
    pub fn faults(&self) -> &[Flaw] {
        self.faults.get_or_init(|| {
            let found = [&self.index.all().faults[..], &self.lists().faults];
            let mut faults = [&self.opened[..], &found.concat()].concat();
            faults.truncate(FAULTS_MAX);
            faults
        })
    }

    /// Returns the faults that are known by now, because look-ups found them.
    #[must_use]
    pub fn noticed(&self) -> Vec<Flaw> {
        let lists = match (self.lists.get(), self.beginning.get()) {
            (Some(lists), _) => &lists.faults[..],
            (None, Some(beginning)) => &beginning.faults,
            (None, None) => &[],
        };
        let own = self.opened.iter().chain(lists).cloned();
        own.chain(self.index.noticed()).take(FAULTS_MAX).collect()
    }

    /// Offset of the end of the last record of a WARC file, if all were read; else that of the end of
    /// the file.
    pub(crate) fn end(&self, warc: usize) -> u64 {
        let read = self.index.all().ends.get(warc);
        read.copied().unwrap_or_else(|| self.warcs[warc].data.len())
    }

    /// Returns whether the file was finished. [`recover`](super::recover) completes one that was
    /// not.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The text of a page, at most 16 MiB: that of the list of pages, or that of its record
    /// `urn:text:URL`.
    pub fn text_of(&self, page: &Page) -> Option<String> {
        if page.text.is_some() {
            return page.text.clone();
        }
        let name = format!("{}{}", TEXT, page.url);
        let answer = self.read(self.of_url(&name).last()?).ok()?;
        let mut text = Vec::new();
        let mut body = answer.body.take(TEXT_MAX_BYTES);
        body.read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the record is not where the index says, or cannot be read.
    pub fn read(&self, entry: &Entry) -> Result<StoredAnswer, WarcError> {
        let part = self.part(entry);
        let answer = self.answer(entry, true);
        answer.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                WarcError::format(&part, error.to_string())
            }
            _ => WarcError::io(&part, error),
        })
    }

    /// Where the record of an entry is, for messages.
    pub(crate) fn part(&self, entry: &Entry) -> String {
        let name = self.warcs.get(entry.warc).map_or("file", |warc| &warc.name);
        format!("{name} at byte {}", entry.offset)
    }

    pub(super) fn answer(&self, entry: &Entry, may_refer: bool) -> io::Result<StoredAnswer> {
        let warc = self.warcs.get(entry.warc);
        let warc = warc.ok_or_else(|| invalid("no such WARC file"))?;
        let stored = Stored::open(warc.data.slice(entry.offset, entry.length))?;
        let url = stored.field("warc-target-uri").trim_matches(['<', '>']);
        if surt::key(url) != surt::key(&entry.url) {
            return Err(invalid("record has another URL than its index line"));
        }
        if stored.field("warc-type") != "revisit" {
            return stored.answer();
        }
        if !may_refer {
            return Err(invalid("record refers to another one that has no body"));
        }
        let answer = match self.original(&stored.fields, entry) {
            Some(original) => self.answer(&original, false)?,
            None => {
                let body = self.body(stored.field("warc-payload-digest"))?;
                let body = body.ok_or_else(|| invalid("record refers to a missing one"))?;
                Stored::open(body)?.answer()?
            }
        };
        Ok(if stored.status == NOT_MODIFIED {
            StoredAnswer { headers: updated(answer.headers, stored.headers), ..answer }
        } else if stored.headers.is_empty() {
            answer
        } else {
            StoredAnswer {
                status: stored.status,
                reason: stored.reason,
                headers: without_framing(stored.headers),
                ..answer
            }
        })
    }

    /// The record of a body that is in another file.
    pub(crate) fn body(&self, payload: &str) -> io::Result<Option<Part>> {
        let (Some(bodies), Some(hex)) = (&self.bodies, digest::hex(payload)) else {
            return Ok(None);
        };
        let Some(file) = bodies(hex)? else {
            return Ok(None);
        };
        let bytes = file.metadata()?.len();
        let record = Part::new(&Arc::new(file), 0, bytes);
        let stored = Stored::open(record.clone())?;
        let is_body = stored.field("warc-type") != "revisit";
        if !is_body || stored.field("warc-payload-digest") != payload {
            return Err(invalid("the file of a shared body has another one"));
        }
        Ok(Some(record))
    }

    /// Revisits whose body is in none of the WARC files, with its digest.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (&Entry, &str)> {
        let own: HashSet<&str> = (self.entries().iter())
            .filter(|entry| entry.media_type != REVISIT)
            .filter_map(|entry| entry.digest.as_deref())
            .collect();
        let revisits = self.entries().iter();
        let revisits = revisits.filter(|entry| entry.media_type == REVISIT);
        revisits
            .filter_map(|entry| Some((entry, entry.digest.as_deref()?)))
            .filter(move |(_, digest)| !own.contains(digest))
    }

    /// Returns the digests, in hex digits, of the bodies that are in other files.
    #[must_use]
    pub fn shared_bodies(&self) -> BTreeSet<String> {
        let digests = self.shared().filter_map(|(_, digest)| digest::hex(digest));
        digests.map(str::to_owned).collect()
    }

    /// Returns the records whose body is neither in the file nor among the shared ones.
    #[must_use]
    pub fn missing_bodies(&self) -> Vec<Flaw> {
        let mut missing = Vec::new();
        for (entry, digest) in self.shared() {
            let reason = match self.body(digest) {
                Ok(Some(_)) => continue,
                Ok(None) => format!("a shared body is missing: that of '{}'", entry.url),
                Err(error) => format!("the body of '{}': {error}", entry.url),
            };
            missing.push(Flaw::new(self.part(entry), reason));
        }
        missing.truncate(FAULTS_MAX);
        missing
    }

    /// The entry whose body a revisit repeats.
    fn original(&self, fields: &Fields, revisit: &Entry) -> Option<Cow<'_, Entry>> {
        let value = |name| head::value(fields, name);
        let url = value("warc-refers-to-target-uri").unwrap_or(&revisit.url);
        let url = url.trim_matches(['<', '>']);
        let time: Option<Timestamp> =
            value("warc-refers-to-date").and_then(|time| time.parse().ok());
        let digest = value("warc-payload-digest");
        let is_other = |entry: &Entry| entry.media_type != REVISIT && entry != revisit;
        let same_time =
            |entry: &Entry| time.is_some_and(|time| entry.time.as_second() == time.as_second());
        // A server may answer the same URL with several bodies in one second.
        let may_be_same = |entry: &Entry| {
            let both = digest.zip(entry.digest.as_deref());
            both.is_none_or(|(wanted, own)| wanted == own || !is_comparable(wanted, own))
        };
        let is_named = |entry: &Entry| {
            is_other(entry) && entry.url == url && same_time(entry) && may_be_same(entry)
        };
        let key = surt::key(url_of(url));
        let by_url = |reach| {
            let mut found = self.find(url_of(url), &key, reach, &is_named);
            (!found.is_empty()).then(|| found.swap_remove(0))
        };
        let by_digest = || {
            let digest = digest?;
            let has_body =
                |entry: &Entry| is_other(entry) && entry.digest.as_deref() == Some(digest);
            self.index.with_text(digest, &has_body)
        };
        by_url(Reach::Key).or_else(|| by_url(Reach::All)).or_else(by_digest)
    }
}

/// The headers of an answer that a server said to be unchanged (RFC 9111, 4.3.4).
fn updated(mut headers: Fields, newer: Fields) -> Fields {
    let newer = without_framing(newer);
    headers.retain(|(name, _)| head::value(&newer, name).is_none());
    [headers, newer].concat()
}

fn warcs_of(members: &[Member], faults: &mut Vec<Flaw>) -> Result<Vec<Warc>, WarcError> {
    let mut warcs = Vec::new();
    for member in members.iter().filter(|member| is_warc(&member.name)) {
        match member.method {
            Method::Store => {
                warcs.push(Warc { name: member.name.clone(), data: member.data.clone() })
            }
            Method::Deflate => faults.push(Flaw::new(
                member.name.clone(),
                "compressed by the ZIP file, so that its records cannot be read one by one",
            )),
        }
    }
    if warcs.is_empty() {
        return Err(WarcError::format("archive", "has no WARC file"));
    }
    Ok(warcs)
}

/// Whether a file, or its first gzip member, begins as those of the Internet Archive before WARC.
fn is_arc(whole: &Part) -> bool {
    const BEGIN: &[u8] = b"filedesc://";
    let mut begin = Vec::new();
    // What cannot be unpacked is none.
    let _ = GzDecoder::new(whole.clone()).take(BEGIN.len() as u64).read_to_end(&mut begin);
    begin == BEGIN || whole.starts_with(BEGIN)
}

fn is_warc(name: &str) -> bool {
    let name = name.strip_prefix("archive/");
    name.is_some_and(|name| name.ends_with(".warc") || name.ends_with(".warc.gz"))
}

/// Whether two digests have one notation.
fn is_comparable(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.split(':').next() == other.split(':').next()
}

#[cfg(test)]
mod tests;
