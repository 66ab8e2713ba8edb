//! Takes bodies out of a recording that others of its owner have, or will have, too.
//!
//! The record of a response moves as it is, gzip member for gzip member, into a file of its own, whose
//! name is the SHA-256 of the body. Its place in the recording gets a revisit record (ISO 28500, 6.7) with
//! the headers of the response. The recording is written to another file, so that it stays whole until
//! the caller replaces it.

use super::entry::TEXT;
use super::index::Lines;
use super::package;
use super::read::Wacz;
use super::recover::about_of;
use super::write::{About, Recording};
use crate::WarcError;
use crate::digest;
use crate::head::{self, Fields};
use crate::member::{self, Member, Output};
use crate::record::{self, Body, Found, Head, Ids, RESPONSE, Walk};
use crate::source::Part;
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Shortest record in bytes of the file that is shared: a file of its own takes a block of 4 KiB and an
/// inode, and its revisit about 700 bytes.
const RECORD_MIN_BYTES: u64 = 2 << 10;
const CHUNK_BYTES: usize = 64 << 10;
const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const VIEW: &str = "urn:view:";

/// Where records of shared bodies are kept, by the 64 hex digits of the SHA-256 of the body.
pub trait Shelf {
    /// Returns the record that is kept already, and holds it for this recording.
    ///
    /// # Errors
    /// If nothing can be kept for this recording.
    fn find(&mut self, hex: &str) -> io::Result<Option<File>>;

    /// Keeps a record for this recording, in place of one that is damaged, and returns it.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    fn keep(&mut self, hex: &str, record: &mut dyn Read) -> io::Result<File>;
}

/// What [`share`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Records that became revisits.
    pub bodies: u64,
    /// Those whose body was kept already.
    pub known: u64,
    /// Bytes of the recording before.
    pub before: u64,
    /// Bytes of the recording now.
    pub after: u64,
}

/// Writes a recording of this program to another file, with its long bodies on the shelf. Returns
/// `None`, and leaves the other file empty, if it has no body to share. A response that sets cookies
/// stays in its recording, because the record on the shelf outlives it. The list of pages has no text
/// that is on the shelf: [`Wacz::text_of`].
///
/// The digest that a record claims is compared with its body, and so is a record on the shelf: no body
/// is given up for another one.
///
/// # Errors
/// If the file is no finished recording of this program, or cannot be read; if the other file cannot be
/// written; and errors of the shelf.
pub fn share(file: File, to: File, shelf: &mut dyn Shelf) -> Result<Option<Shared>, WarcError> {
    let before = file.metadata().map_err(failed)?.len();
    let wacz = Wacz::open(file)?;
    let ([warc], true, []) = (&wacz.warcs[..], wacz.is_complete(), wacz.faults()) else {
        let reason = "not a finished recording with one WARC file";
        return Err(WarcError::format("recording", reason));
    };
    if warc.name != package::DATA {
        return Err(WarcError::format(&warc.name, "not of this program"));
    }
    let mut sharing = Sharing {
        data: warc.data.clone(),
        output: Output::new(Arc::new(to), package::DATA_BEGIN),
        ids: Ids::new()?,
        replaced: HashMap::new(),
        shared_urls: HashSet::new(),
        shared: Shared::default(),
    };
    let mut about = About::default();
    let mut walk = Walk::new(warc.data.clone());
    loop {
        let found = walk.next().map_err(|stop| {
            let part = format!("{} at byte {}", warc.name, stop.offset);
            WarcError::format(&part, stop.reason)
        })?;
        let Some(found) = found else { break };
        if found.field("warc-type") == "warcinfo" {
            about = about_of(&found, &warc.data);
        }
        sharing.add(&found, shelf).map_err(failed)?;
    }
    if sharing.shared.bodies == 0 {
        sharing.output.truncate(0).map_err(failed)?;
        return Ok(None);
    }
    let Sharing { mut output, shared_urls, mut shared, .. } = sharing;
    output.flush().map_err(failed)?;
    let header = package::data_header(0, 0, about.created);
    output.replace(0, &header).map_err(failed)?;
    let end = output.position();
    let mut walk = Walk::new(Part::new(&output.file, package::DATA_BEGIN, end));
    let mut lines = Lines::default();
    while let Ok(Some(found)) = walk.next() {
        lines.add(&found, package::WARC);
    }
    let lines = lines.into_lines();
    let mut recording = Recording::resume(output, about, lines, package::DATA_BEGIN)?;
    for page in wacz.pages() {
        let mut page = page.clone();
        if shared_urls.contains(&format!("{}{}", TEXT, page.url)) {
            page.text = None;
        }
        recording.add_page(page);
    }
    (shared.before, shared.after) = (before, recording.finish()?.bytes);
    Ok(Some(shared))
}

fn failed(error: io::Error) -> WarcError {
    WarcError::io("recording", error)
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

struct Sharing {
    data: Part,
    output: Output,
    ids: Ids,
    /// The identifier of each revisit, by that of the response.
    replaced: HashMap<String, String>,
    shared_urls: HashSet<String>,
    shared: Shared,
}

/// The record that a revisit refers to.
struct Origin {
    id: String,
    url: String,
    date: String,
}

impl Sharing {
    fn add(&mut self, found: &Found, shelf: &mut dyn Shelf) -> io::Result<()> {
        if may_be_shared(found) {
            return self.replace(found, shelf);
        }
        let other = self.replaced.get(found.field("warc-concurrent-to"));
        match other.cloned() {
            Some(revisit) => self.refer(found, &revisit),
            None => self.copy(found),
        }
    }

    fn record(&self, found: &Found) -> Part {
        self.data.slice(found.offset, found.length)
    }

    fn copy(&mut self, found: &Found) -> io::Result<()> {
        let mut record = self.record(found);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match record.read(&mut chunk)? {
                0 => return Ok(()),
                count => self.output.write(&chunk[..count])?,
            }
        }
    }

    /// Writes a request that names the revisit instead of the response. Identifiers have one length.
    fn refer(&mut self, found: &Found, revisit: &str) -> io::Result<()> {
        let response = found.field("warc-concurrent-to").as_bytes();
        let mut content = record::open(self.record(found));
        let mut head = head::read(&mut content)?;
        let at = head.windows(response.len()).position(|id| id == response);
        let at = at.ok_or_else(|| invalid("request names no response"))?;
        head.splice(at..at + response.len(), revisit.bytes());
        let mut start = Vec::new();
        content.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut start)?;
        if start.len() < CHUNK_BYTES {
            head.extend_from_slice(&start);
            return member::write_whole(&mut self.output, &head);
        }
        let mut member = Member::begin(&mut self.output, head)?;
        member.write(&start)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match content.read(&mut chunk)? {
                0 => break,
                count => member.write(&chunk[..count])?,
            }
        }
        member.finish(b"", &[])
    }

    fn replace(&mut self, found: &Found, shelf: &mut dyn Shelf) -> io::Result<()> {
        let payload = &found.digests.1;
        let hex = digest::hex(payload).ok_or_else(|| invalid("digest is not SHA-256"))?;
        let known = shelf.find(hex)?;
        let known = known.and_then(|file| origin(file, payload));
        let origin = match known {
            Some(origin) => {
                self.shared.known += 1;
                origin
            }
            None => {
                let kept = shelf.keep(hex, &mut self.record(found))?;
                origin(kept, payload).ok_or_else(|| invalid("body is not the one that was kept"))?
            }
        };
        let mut content = record::open(self.record(found));
        let block = record::block(&mut content)?;
        let (_, fields, length) = block.ok_or_else(|| invalid("record is missing"))?;
        let http = match &found.http {
            Some(_) => head::read(&mut Body::new(content, length))?,
            None => Vec::new(),
        };
        let id = self.ids.next();
        let time: Timestamp =
            found.field("warc-date").parse().map_err(|_| invalid("record has no date"))?;
        let mut own = kept_fields(fields);
        for (name, value) in [
            ("WARC-Payload-Digest", payload.as_str()),
            ("WARC-Profile", PROFILE),
            ("WARC-Refers-To", &origin.id),
            ("WARC-Refers-To-Target-URI", &origin.url),
            ("WARC-Refers-To-Date", &origin.date),
        ] {
            own.push((name.to_owned(), value.to_owned()));
        }
        let head = Head {
            kind: "revisit",
            id: &id,
            time,
            url: found.url(),
            media_type: match &found.http {
                Some(_) => RESPONSE,
                None => found.field("content-type"),
            },
            fields: own,
        };
        record::write(&mut self.output, &head, &http, &mut io::empty(), 0)
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.replaced.insert(found.field("warc-record-id").to_owned(), id);
        self.shared_urls.insert(found.url().to_owned());
        self.shared.bodies += 1;
        Ok(())
    }
}

/// Whether the record is a whole body that others may share.
fn may_be_shared(found: &Found) -> bool {
    let is_known = found.field("warc-payload-digest") == found.digests.1;
    if found.length < RECORD_MIN_BYTES || !is_known || !found.field("warc-truncated").is_empty() {
        return false;
    }
    match (found.field("warc-type"), &found.http) {
        ("response", Some(http)) => {
            let has = |name| head::value(&http.fields, name).is_some();
            let is_plain = !has("content-encoding") && !has("transfer-encoding");
            let status = head::status(&http.first);
            is_plain && !has("set-cookie") && status.is_some_and(|(status, _)| status == 200)
        }
        ("resource", None) => [VIEW, TEXT].iter().any(|begin| found.url().starts_with(begin)),
        _ => false,
    }
}

/// What a record on the shelf says about itself, if it has the body with this digest.
fn origin(file: File, digest: &str) -> Option<Origin> {
    let bytes = file.metadata().ok()?.len();
    let mut walk = Walk::new(Part::new(&Arc::new(file), 0, bytes));
    let found = walk.next().ok()??;
    let has_others = !matches!(walk.next(), Ok(None));
    let is_body = ["response", "resource"].contains(&found.field("warc-type"));
    let is_same = found.digests.1 == digest && found.field("warc-payload-digest") == digest;
    (is_body && is_same && !has_others).then(|| Origin {
        id: found.field("warc-record-id").to_owned(),
        url: found.url().to_owned(),
        date: found.field("warc-date").to_owned(),
    })
}

/// The fields of a response that its revisit has, too, besides those that it writes itself.
fn kept_fields(fields: Fields) -> Fields {
    const OWN: [&str; 9] = [
        "warc-type",
        "warc-record-id",
        "warc-date",
        "warc-block-digest",
        "warc-payload-digest",
        "warc-target-uri",
        "warc-profile",
        "content-type",
        "content-length",
    ];
    let is_own = |name: &str| OWN.iter().any(|own| name.eq_ignore_ascii_case(own));
    let kept = fields.into_iter().filter(|(name, _)| !is_own(name));
    kept.collect()
}

#[cfg(test)]
mod tests;
