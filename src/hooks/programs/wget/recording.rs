//! The recording of a page that no browser has recorded: what is in wget's WARC file, in the form of the
//! recordings of the browser, so that replay and verify read both alike. It is in wget's own directory:
//! what a retry loses returns with the files of its plugin.

use super::warc::Warc;
use crate::chromium::recorder::{self, FILE, PLUGIN, RECORDING, Spool, Writer};
use crate::chromium::view::look::Look;
use crate::page;
use crate::page::secrets::LeftOut;
use crate::process::files;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::visit::recording::{Description, Row};
use archivist_warc::exchange::{Exchange, Truncated};
use archivist_warc::wacz::{Entry, StoredAnswer, Wacz};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use tokio::time::Instant;

/// Value of `recorder` in the description.
const WGET: &str = "wget";
/// Why a request is not in the recording.
const LATE: &str = "the time limit of the hook ended the recording";
/// Bytes of a body that are read at once.
const PIECE_BYTES: usize = 256 << 10;

pub struct WgetRecording<'a> {
    invocation: &'a Invocation,
    warc: &'a Path,
    limits: RecordingLimits,
}

#[derive(Clone, Copy)]
pub struct RecordingLimits {
    /// Most bytes.
    pub bytes: u64,
    /// What has not been written by then is named.
    pub until: Instant,
}

impl<'a> WgetRecording<'a> {
    /// The recording of this page, if the browser has left none.
    pub fn of(
        invocation: &'a Invocation,
        warc: &'a Path,
        limits: RecordingLimits,
    ) -> Option<WgetRecording<'a>> {
        let known = Description::read(&invocation.sibling(PLUGIN, RECORDING));
        let is_of_browser = known.is_some_and(|known| known.has_answers());
        let is_wanted = invocation.settings.flag("WACZ_ENABLED") && !is_of_browser;
        is_wanted.then_some(WgetRecording { invocation, warc, limits })
    }

    /// Writes the recording. `title` is that of the page.
    pub async fn write(&self, title: String) -> Result<Description, Finding> {
        let fail = |error: &dyn std::fmt::Display| {
            Finding::failed(format!("failed to record the page as {FILE}: {error}"))
        };
        let warc = File::open(self.warc).map_err(|error| fail(&error))?;
        let wacz = Wacz::open(warc).map_err(|error| fail(&error))?;
        let requests = Warc::read(self.warc).map_err(|error| fail(&error))?;
        let file = create().map_err(|error| fail(&error))?;
        let url = &self.invocation.url;
        let mut begun = Description::begun(url, FILE);
        begun.recorder = WGET.to_owned();
        recorder::write(Path::new("."), &begun)?;
        let writer = Writer::start(file, FILE, url, self.limits.bytes, None, Arc::default())
            .map_err(|error| fail(&error))?;
        let mut entries: Vec<&Entry> = wacz.entries().iter().collect();
        entries.retain(|entry| entry.status.is_some());
        entries.sort_by_key(|entry| entry.time);
        for entry in entries {
            let kind = if entry.url == *url { "document" } else { "other" };
            let row = Row {
                url: entry.url.clone(),
                method: entry.method.clone(),
                status: entry.status,
                kind: kind.to_owned(),
                mime: entry.media_type.clone(),
                ..Row::default()
            };
            match wacz.read(entry) {
                _ if Instant::now() >= self.limits.until => writer.name(named(row, &LATE)).await,
                Ok(answer) => self.add(&writer, &requests, entry, answer, row).await,
                Err(error) => writer.name(named(row, &error)).await,
            }
        }
        let look = Look { title, ..Look::default() };
        writer.look(Ok(look)).await;
        let mut description = writer.end(0).await;
        description.recorder = WGET.to_owned();
        recorder::write(Path::new("."), &description)?;
        Ok(description)
    }

    async fn add(
        &self,
        writer: &Writer,
        requests: &Warc,
        entry: &Entry,
        answer: StoredAnswer,
        mut row: Row,
    ) {
        let announced =
            header(&answer.headers, "content-length").and_then(|text| text.parse().ok());
        let (body, error) = match self.spooled(answer.body) {
            Ok(read) => read,
            Err(error) => return writer.name(named(row, &error)).await,
        };
        let is_short = announced.is_some_and(|length: u64| length > body.length());
        let reason = match error {
            Some(error) => Some(error.to_string()),
            None => is_short.then(|| "the answer ended early".to_owned()),
        };
        row.reason.clone_from(&reason);
        let left_out = LeftOut::of_recording(&self.invocation.settings);
        let headers = |mut headers: Vec<(String, String)>| {
            headers.retain(|(name, _)| !left_out.has(name));
            headers
        };
        let exchange = Exchange {
            url: entry.url.clone(),
            method: entry.method.clone(),
            time: entry.time,
            request: headers(requests.request(&entry.url)),
            posted: None,
            status: answer.status,
            reason: answer.reason,
            response: headers(answer.headers),
            protocols: vec!["http/1.1".to_owned()],
            address: None,
            kind: row.kind.clone(),
            truncated: reason.map(|_| Truncated::Disconnect),
        };
        writer.add(Box::new(exchange), body, row).await;
    }

    /// The body, as far as it can be read, and why not to its end.
    fn spooled(&self, mut body: impl Read) -> io::Result<(Spool, Option<io::Error>)> {
        let mut spool = Spool::default();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match body.read(&mut piece) {
                Ok(0) => return Ok((spool, None)),
                Ok(_) if Instant::now() >= self.limits.until => {
                    return Ok((spool, Some(io::Error::other(LATE))));
                }
                Ok(count) => spool.append(&piece[..count], Path::new("."))?,
                Err(error) => return Ok((spool, Some(error))),
            }
        }
    }
}

/// The file, in place of an earlier one.
fn create() -> io::Result<File> {
    match fs::remove_file(FILE) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.read(true).write(true).create_new(true).open(FILE)
}

fn named(row: Row, error: &dyn std::fmt::Display) -> Row {
    Row { reason: Some(error.to_string()), ..row }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut own = headers.iter();
    let (_, value) = own.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
    Some(value)
}

/// The title of a saved document; empty if it has none.
pub fn title_of(file: &Path, most: u64) -> String {
    let bytes = files::read_start(file, most).unwrap_or_default();
    let decoded = page::charset::decode(&bytes, "text/html", None);
    let html = page::html::parse(&decoded.text, page::html::PARSING_TIMEOUT);
    page::html::title(&html).unwrap_or_default()
}
