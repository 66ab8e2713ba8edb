//! Reads WACZ files and single WARC files, also those of other programs.

use super::documents::Documents;
use super::index::Lines;
use super::write::Page;
use crate::cdxj::{self, Line};
use crate::coding::{self, Mismatch};
use crate::digest;
use crate::head::{self, Fields};
use crate::record::{self, Body, Walk};
use crate::source::{Counted, Part};
use crate::zip::{self, Member, Method};
use crate::{Blocks, Flaw, WarcError};
use crate::{chunked, surt};
use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

/// Largest index in bytes, unpacked, that is kept.
const INDEX_MAX_BYTES: u64 = 512 << 20;
/// Largest index in bytes, unpacked, that is checked.
const SURVEY_MAX_BYTES: u64 = 16 << 30;
/// Pages of a list that are read.
pub(super) const PAGES_MAX: usize = 200_000;
/// Longest line of a page in bytes.
const PAGE_MAX_BYTES: u64 = 32 << 20;
/// Texts of pages that are kept, in bytes.
const TEXTS_MAX_BYTES: usize = 64 << 20;
/// Largest body that a content coding stands for.
const DECODED_MAX_BYTES: u64 = 1 << 30;
/// Media type of index lines of revisits.
pub(super) const REVISIT: &str = "warc/revisit";
/// Faults that are reported one by one.
const FAULTS_MAX: usize = 100;

/// An index line: where the record of a URL is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// URL of the request, or of a resource.
    pub url: String,
    /// The URL in sort-friendly form (SURT).
    pub key: String,
    /// Method of the request in upper case.
    pub method: String,
    /// When the request was sent.
    pub time: Timestamp,
    /// Status code, if the record is that of a response.
    pub status: Option<u16>,
    /// Media type without parameters.
    pub media_type: String,
    /// Digest of the body, such as `sha256:…`.
    pub digest: Option<String>,
    /// The posted body in the form that CDXJ files have.
    pub posted: Option<String>,
    /// Number of the WARC file within the WACZ.
    pub(crate) warc: usize,
    /// Offset of the record in the WARC file.
    pub(crate) offset: u64,
    /// Bytes of the record in the WARC file.
    pub(crate) length: u64,
}

/// What a server answered, or the resource of another record.
pub struct StoredAnswer {
    /// Status code; 200 for records that are not those of responses.
    pub status: u16,
    /// Reason phrase.
    pub reason: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body, if they are known before it is read.
    pub length: Option<u64>,
    /// Parts of the body, if it is stored without codings.
    pub blocks: Option<Blocks>,
    /// The body without codings. Reading it fails if the record is cut off.
    pub body: Box<dyn Read + Send>,
}

/// A WARC file.
pub(crate) struct Warc {
    pub(crate) name: String,
    pub(crate) data: Part,
    /// Offset of the end of the last record, if all were read; else that of the end of the file.
    pub(crate) end: u64,
}

/// Finds the file with the record of a body that a recording shares with others, by the 64 hex digits of
/// its SHA-256.
pub type Bodies = Arc<dyn Fn(&str) -> io::Result<Option<File>> + Send + Sync>;

/// A WACZ, or a single WARC file, that is open for reading.
pub struct Wacz {
    pub(crate) members: Vec<Member>,
    pub(crate) warcs: Vec<Warc>,
    entries: Vec<Entry>,
    pages: Vec<Page>,
    faults: Vec<Flaw>,
    is_complete: bool,
    keeps: Keeps,
    bodies: Option<Bodies>,
}

/// What of index and list of pages stays in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    All,
    /// Pages without their texts.
    Pages,
}

/// What a file has, for programs that keep the file and not its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The list of pages, without texts. If the file has none: HTML documents that no page embeds.
    pub pages: Vec<Page>,
    /// What of the file cannot be used.
    pub faults: Vec<Flaw>,
}

impl Wacz {
    /// Reads the index of a WACZ, or makes that of a WARC file or of a recording that is not
    /// complete.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn open(file: File) -> Result<Wacz, WarcError> {
        Wacz::read_all(file, Keeps::All)
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

    /// Reads a file, and keeps no more of it than its list of pages, so that memory does not grow with
    /// the file.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn survey(file: File) -> Result<Survey, WarcError> {
        let mut wacz = Wacz::read_all(file, Keeps::Pages)?;
        if wacz.pages.is_empty() && !wacz.members.is_empty() {
            wacz.walk();
        }
        if !wacz.is_complete {
            let reason = "was not finished; its whole records are used";
            wacz.fault("file".to_owned(), reason);
        }
        Ok(Survey {
            pages: wacz.pages,
            faults: wacz.faults,
        })
    }

    fn read_all(file: File, keeps: Keeps) -> Result<Wacz, WarcError> {
        let bytes = file
            .metadata()
            .map_err(|error| WarcError::io("file", error))?;
        let whole = Part::new(&Arc::new(file), 0, bytes.len());
        let mut wacz = Wacz {
            members: Vec::new(),
            warcs: Vec::new(),
            entries: Vec::new(),
            pages: Vec::new(),
            faults: Vec::new(),
            is_complete: true,
            keeps,
            bodies: None,
        };
        // What ends an unfinished file are bytes of the web, which may look like a directory.
        let first = zip::first_member(&whole).filter(|first| is_warc(&first.name));
        let is_open = first.as_ref().is_some_and(|first| first.is_open);
        if whole.starts_with(b"WARC/") || whole.starts_with(&[0x1f, 0x8b]) {
            wacz.add_warc("WARC file".to_owned(), whole);
            wacz.walk();
        } else if !whole.starts_with(b"PK") {
            return Err(WarcError::format("file", "neither a WACZ nor a WARC file"));
        } else if !is_open && let Some(members) = zip::directory(&whole)? {
            wacz.members = members;
            wacz.add_members()?;
        } else {
            wacz.is_complete = false;
            let Some(first) = first else {
                let reason = "has no directory and no WARC file at its begin";
                return Err(WarcError::format("file", reason));
            };
            wacz.add_warc(first.name, whole.slice(first.data, u64::MAX));
            wacz.walk();
        }
        let order = |entry: &Entry| (entry.key.clone(), entry.time);
        wacz.entries.sort_by_cached_key(order);
        Ok(wacz)
    }

    /// Returns the index, sorted by key and time.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the list of pages.
    #[must_use]
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// Returns what of the file cannot be used, such as index lines that lead out of it. The other
    /// parts can.
    #[must_use]
    pub fn faults(&self) -> &[Flaw] {
        &self.faults
    }

    /// Returns whether the file was finished. [`recover`](super::recover) completes one that was
    /// not.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
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

    fn answer(&self, entry: &Entry, may_refer: bool) -> io::Result<StoredAnswer> {
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
            Some(original) => self.answer(original, false)?,
            None => {
                let body = self.body(stored.field("warc-payload-digest"))?;
                let body = body.ok_or_else(|| invalid("record refers to a missing one"))?;
                Stored::open(body)?.answer()?
            }
        };
        Ok(if stored.headers.is_empty() {
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
        let own: HashSet<&str> = (self.entries.iter())
            .filter(|entry| entry.media_type != REVISIT)
            .filter_map(|entry| entry.digest.as_deref())
            .collect();
        let revisits = self.entries.iter();
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
    fn original(&self, fields: &Fields, revisit: &Entry) -> Option<&Entry> {
        let value = |name| head::value(fields, name);
        let url = value("warc-refers-to-target-uri").unwrap_or(&revisit.url);
        let time: Option<Timestamp> =
            value("warc-refers-to-date").and_then(|time| time.parse().ok());
        let digest = value("warc-payload-digest");
        let others = || {
            let others = self.entries.iter();
            others.filter(|entry| entry.media_type != REVISIT && *entry != revisit)
        };
        let same_time =
            |entry: &&Entry| time.is_some_and(|time| entry.time.as_second() == time.as_second());
        // A server may answer the same URL with several bodies in one second.
        let may_be_same = |entry: &&Entry| {
            let both = digest.zip(entry.digest.as_deref());
            both.is_none_or(|(wanted, own)| wanted == own || !is_comparable(wanted, own))
        };
        others()
            .find(|entry| {
                entry.url == url.trim_matches(['<', '>']) && same_time(entry) && may_be_same(entry)
            })
            .or_else(|| {
                others().find(|entry| digest.is_some() && entry.digest.as_deref() == digest)
            })
    }

    fn add_warc(&mut self, name: String, data: Part) {
        let end = data.len();
        self.warcs.push(Warc { name, data, end });
    }

    fn add_members(&mut self) -> Result<(), WarcError> {
        for member in self.members.clone() {
            if !is_warc(&member.name) {
                continue;
            }
            match member.method {
                Method::Store => self.add_warc(member.name.clone(), member.data),
                Method::Deflate => self.fault(
                    member.name.clone(),
                    "compressed by the ZIP file, so that its records cannot be read one by one",
                ),
            }
        }
        if self.warcs.is_empty() {
            return Err(WarcError::format("archive", "has no WARC file"));
        }
        let mut has_index = false;
        for member in self.members.clone() {
            if let Some(name) = member.name.strip_prefix("indexes/") {
                let is_packed = name.ends_with(".gz");
                let plain = name.trim_end_matches(".gz");
                if plain.ends_with(".cdx") || plain.ends_with(".cdxj") {
                    has_index = true;
                    self.add_index(&member, is_packed);
                }
            } else if member.name.starts_with("pages/") && member.name.ends_with(".jsonl") {
                self.add_pages(&member);
            }
        }
        if !has_index {
            self.fault("indexes".to_owned(), "missing");
            self.walk();
        }
        Ok(())
    }

    /// Makes the index of all WARC files from their records.
    fn walk(&mut self) {
        for number in 0..self.warcs.len() {
            let warc = &self.warcs[number];
            let name = warc.name.clone();
            let mut walk = Walk::new(warc.data.clone());
            let mut lines = Lines::default();
            let mut documents = Documents::default();
            loop {
                match walk.next() {
                    Ok(Some(found)) if self.keeps == Keeps::Pages => documents.add(&found),
                    Ok(Some(found)) => lines.add(&found, &name),
                    Ok(None) => break,
                    Err(stop) => {
                        if self.is_complete {
                            self.fault(format!("{name} at byte {}", stop.offset), stop.reason);
                        }
                        break;
                    }
                }
            }
            self.warcs[number].end = walk.end;
            self.pages.extend(documents.into_pages());
            for line in lines.into_lines() {
                let part = format!("{name} at byte {}", line.record.offset.unwrap_or_default());
                if let Err(reason) = self.add_line(line, Some(number)) {
                    self.fault(part, reason);
                }
            }
        }
    }

    fn add_index(&mut self, member: &Member, is_packed: bool) {
        let content: Box<dyn Read> = if is_packed {
            Box::new(MultiGzDecoder::new(io::BufReader::new(member.content())))
        } else {
            member.content()
        };
        let most = match self.keeps {
            Keeps::All => INDEX_MAX_BYTES,
            Keeps::Pages => SURVEY_MAX_BYTES,
        };
        let mut content = io::BufReader::new(content.take(most));
        let mut previous = Vec::new();
        for number in 1_u64.. {
            let mut line = Vec::new();
            let mut limited = content.by_ref().take(cdxj::LINE_MAX_BYTES);
            let read = limited.read_until(b'\n', &mut line);
            let part = || format!("{} line {number}", member.name);
            match read {
                Ok(0) => break,
                Ok(_) if line.ends_with(b"\n") || limited.limit() > 0 => {}
                Ok(_) => {
                    let reason = format!("longer than {} bytes", cdxj::LINE_MAX_BYTES);
                    return self.fault(part(), reason);
                }
                Err(error) => return self.fault(part(), error.to_string()),
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end();
            if text.is_empty() || text.starts_with('!') {
                continue;
            }
            let added = cdxj::parse(text).and_then(|line| self.add_line(line, None));
            if let Err(reason) = added {
                self.fault(part(), reason);
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

    /// Adds an index line.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn add_line(&mut self, line: Line, warc: Option<usize>) -> Result<(), String> {
        let record = line.record;
        if record.url.is_empty() {
            return Ok(());
        }
        let is_file = |warc: &Warc| {
            let name = record.filename.trim_start_matches("archive/");
            warc.name == record.filename || warc.name.strip_prefix("archive/") == Some(name)
        };
        let Some(warc) = warc.or_else(|| self.warcs.iter().position(is_file)) else {
            return Err(format!("no WARC file '{}'", record.filename));
        };
        let bytes = self.warcs[warc].data.len();
        let offset = record.offset.unwrap_or(u64::MAX);
        let length = record.length.unwrap_or(bytes.saturating_sub(offset));
        if length == 0 || offset.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(format!(
                "record at byte {offset} with {length} bytes is outside of its file, which has {bytes}"
            ));
        }
        if self.keeps == Keeps::Pages {
            return Ok(());
        }
        self.entries.push(Entry {
            url: record.url,
            key: line.key,
            method: record
                .method
                .map_or("GET".to_owned(), |name| name.to_ascii_uppercase()),
            time: line.time,
            status: record.status.and_then(|status| u16::try_from(status).ok()),
            media_type: record.mime.unwrap_or_default(),
            digest: record.digest,
            posted: record.posted,
            warc,
            offset,
            length,
        });
        Ok(())
    }

    fn add_pages(&mut self, member: &Member) {
        let mut content = io::BufReader::new(member.content());
        let mut rest = match self.keeps {
            Keeps::All => TEXTS_MAX_BYTES,
            Keeps::Pages => 0,
        };
        for number in 1_u64.. {
            let part = || format!("{} line {number}", member.name);
            let mut line = Vec::new();
            let mut limited = content.by_ref().take(PAGE_MAX_BYTES);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if line.ends_with(b"\n") || limited.limit() > 0 => {}
                Ok(_) => return self.fault(part(), format!("longer than {PAGE_MAX_BYTES} bytes")),
                Err(error) => return self.fault(part(), error.to_string()),
            }
            if self.pages.len() >= PAGES_MAX {
                return self.fault(part(), format!("only the first {PAGES_MAX} pages are read"));
            }
            match page_of(&line) {
                Ok(Some(mut page)) => {
                    let length = page.text.as_ref().map_or(0, String::len);
                    match usize::checked_sub(rest, length) {
                        Some(left) => rest = left,
                        None => page.text = None,
                    }
                    self.pages.push(page);
                }
                Ok(None) => {}
                Err(reason) => self.fault(part(), reason),
            }
        }
    }

    fn fault(&mut self, part: String, reason: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Flaw::new(part, reason));
        }
    }
}

/// The page of a line. `None` for the title of the list, and for an empty line.
fn page_of(line: &[u8]) -> Result<Option<Page>, String> {
    let line = String::from_utf8_lossy(line);
    if line.trim().is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let time = text("ts").and_then(|time| time.parse().ok());
    match (text("url"), time) {
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

fn is_warc(name: &str) -> bool {
    let name = name.strip_prefix("archive/");
    name.is_some_and(|name| name.ends_with(".warc") || name.ends_with(".warc.gz"))
}

/// Whether two digests have one notation.
fn is_comparable(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.split(':').next() == other.split(':').next()
}

/// A record whose head was read.
struct Stored {
    member: Part,
    fields: Fields,
    status: u16,
    reason: String,
    headers: Fields,
    body: Body<Counted<Box<dyn BufRead + Send>>>,
    is_http: bool,
}

impl Stored {
    fn open(member: Part) -> io::Result<Stored> {
        let mut content = Counted::new(record::open(member.clone()));
        let block = record::block(&mut content)?;
        let (_, fields, length) = block.ok_or_else(|| invalid("record is missing"))?;
        let mut body = Body::new(content, length);
        let (mut status, mut reason, mut headers) = (200, String::new(), Fields::new());
        let media_type = head::value(&fields, "content-type").unwrap_or_default();
        let is_http = record::essence(media_type) == "application/http";
        if is_http && length > 0 {
            let bytes = head::read(&mut body)?;
            let (first, fields) = head::parse(&bytes);
            let line = head::status(&first);
            (status, reason) = line.ok_or_else(|| invalid("record has no status line"))?;
            headers = fields;
        }
        Ok(Stored {
            member,
            fields,
            status,
            reason,
            headers,
            body,
            is_http,
        })
    }

    fn field(&self, name: &str) -> &str {
        head::value(&self.fields, name).unwrap_or_default()
    }

    fn answer(mut self) -> io::Result<StoredAnswer> {
        if !self.is_http {
            let media_type = self.field("content-type").to_owned();
            self.headers.push(("Content-Type".to_owned(), media_type));
        }
        let blocks = Blocks::new(self.member, self.body.consumed());
        plain(self.body, blocks, self.status, self.reason, self.headers)
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Headers of a body that has neither codings nor chunks.
fn without_framing(headers: Fields) -> Fields {
    let is_framing = |name: &str| {
        let names = ["content-encoding", "content-length", "transfer-encoding"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    headers
        .into_iter()
        .filter(|(name, _)| !is_framing(name))
        .collect()
}

/// The answer of a record, with the body as the server meant it: other programs store it with its
/// codings, and as chunks.
fn plain<R: BufRead + Send + 'static>(
    body: Body<R>,
    blocks: Blocks,
    status: u16,
    reason: String,
    headers: Fields,
) -> io::Result<StoredAnswer> {
    let is_chunked = head::value(&headers, "transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    let codings: Vec<_> = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"))
        .map(|(_, value)| value.as_str())
        .collect();
    let codings = codings.join(",");
    let is_encoded = coding::is_encoded(&codings) && coding::is_known(&codings);
    if !is_chunked && !is_encoded {
        return Ok(StoredAnswer {
            status,
            reason,
            headers,
            length: Some(body.rest()),
            blocks: Some(blocks),
            body: Box::new(body),
        });
    }
    let mut whole: Box<dyn Read + Send> = Box::new(body);
    if is_chunked {
        whole = Box::new(chunked::Chunked::new(io::BufReader::new(whole)));
    }
    if is_encoded {
        let decoded = coding::decoded(whole, &codings, Mismatch::Keep)?;
        whole = Box::new(Bounded {
            inner: decoded,
            rest: DECODED_MAX_BYTES,
        });
    }
    Ok(StoredAnswer {
        status,
        reason,
        headers: without_framing(headers),
        length: None,
        blocks: None,
        body: whole,
    })
}

/// A few bytes may stand for gigabytes.
struct Bounded<R> {
    inner: R,
    rest: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let rest = self.rest.checked_sub(count as u64);
        self.rest = rest.ok_or_else(|| {
            invalid(&format!(
                "body is longer than {DECODED_MAX_BYTES} bytes when decoded"
            ))
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
