//! Writes a WACZ while its pages are recorded.

use super::package::{self, Contents};
use crate::WarcError;
use crate::cdxj::{Line, Record};
use crate::exchange::Exchange;
use crate::head::{self, Fields};
use crate::member::Output;
use crate::record::{self, Head, Ids, RESPONSE, safe_url};
use crate::{posted, surt};
use flate2::Crc;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Program and version that record.
    pub software: String,
    pub title: String,
    /// URL of the page that a viewer opens first.
    pub main_url: String,
    /// Begin of the recording.
    pub created: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub url: String,
    /// Title of the page, or an empty text.
    pub title: String,
    /// When the page was requested.
    pub time: Timestamp,
    /// Visible text, for search.
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Bytes of the file.
    pub bytes: u64,
    /// Exchanges and resources.
    pub entries: u64,
}

/// A WACZ that is being written. Each record is in the file as soon as the call that adds it
/// returns, so a killed process loses nothing but index and list of pages, which
/// [`recover`](super::recover) adds.
pub struct Recording {
    about: About,
    output: Output,
    ids: Ids,
    lines: Vec<Line>,
    pages: Vec<Page>,
    sums: Sums,
}

/// CRC-32 and SHA-256 of the WARC file up to an offset of the whole file.
pub(super) struct Sums {
    pub(super) crc: Crc,
    pub(super) sha256: Sha256,
    end: u64,
}

impl Sums {
    fn from(begin: u64) -> Sums {
        Sums { crc: Crc::new(), sha256: Sha256::new(), end: begin }
    }

    /// Adds bytes that will not change after they are written.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.sha256.update(bytes);
        self.end += bytes.len() as u64;
    }

    /// Reads what was written, because heads change after they were.
    pub(super) fn read_to(&mut self, file: &File, end: u64) -> io::Result<()> {
        let mut chunk = vec![0; 64 << 10];
        while self.end < end {
            let most = (end - self.end).min(chunk.len() as u64) as usize;
            file.read_exact_at(&mut chunk[..most], self.end)?;
            self.add(&chunk[..most]);
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> WarcError {
    WarcError::io("recording", error)
}

impl Recording {
    /// Begins a recording in an empty file, which must be open for reading, too.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(file: File, about: &About) -> Result<Recording, WarcError> {
        Recording::begin(Output::new(Arc::new(file), 0), about)
    }

    /// Writes what precedes the first exchange.
    pub(super) fn begin(mut output: Output, about: &About) -> Result<Recording, WarcError> {
        let header = package::data_header(0, 0, about.created);
        output.write(&header).map_err(failed)?;
        let begin = output.position();
        let mut recording = Recording::resume(output, about.clone(), Vec::new(), begin)?;
        let info = package::info(about);
        let head = Head {
            kind: "warcinfo",
            id: &recording.ids.next(),
            time: about.created,
            url: "",
            media_type: record::FIELDS,
            fields: vec![("WARC-Filename".to_owned(), package::WARC.to_owned())],
        };
        let length = info.len() as u64;
        let mut info = info.as_bytes();
        record::write(&mut recording.output, &head, &[], &mut info, length)?;
        recording.settle()?;
        Ok(recording)
    }

    /// Continues a recording whose WARC file begins at `begin` and has these index lines.
    pub(super) fn resume(
        output: Output,
        about: About,
        lines: Vec<Line>,
        begin: u64,
    ) -> Result<Recording, WarcError> {
        Ok(Recording {
            about,
            output,
            ids: Ids::new()?,
            lines,
            pages: Vec::new(),
            sums: Sums::from(begin),
        })
    }

    /// Adds a request and its response, whose body without codings has `length` bytes. If this
    /// fails, the recording is as it was before.
    ///
    /// # Errors
    /// If the body cannot be read or is shorter, a head is longer than 1 MiB, or the file cannot be
    /// written.
    pub fn add(
        &mut self,
        exchange: &Exchange,
        body: &mut dyn Read,
        length: u64,
    ) -> Result<(), WarcError> {
        self.whole(|recording| recording.add_both(exchange, body, length))
    }

    /// Adds a resource that no server sent, such as the screenshot with the URL `urn:view:URL`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_resource(
        &mut self,
        url: &str,
        media_type: &str,
        time: Timestamp,
        body: &[u8],
    ) -> Result<(), WarcError> {
        self.whole(|recording| {
            let url = safe_url(url);
            let head = Head {
                kind: "resource",
                id: &recording.ids.next(),
                time,
                url: &url,
                media_type,
                fields: Fields::new(),
            };
            let offset = recording.output.position();
            let length = body.len() as u64;
            let written = record::write(&mut recording.output, &head, &[], &mut &*body, length)?;
            Ok(Line {
                key: surt::key(&url),
                time,
                record: Record {
                    url,
                    mime: Some(record::essence(media_type)),
                    digest: Some(written.payload),
                    length: Some(written.length),
                    offset: Some(recording.in_warc(offset)),
                    filename: package::WARC.to_owned(),
                    date: Some(time.to_string()),
                    ..Record::default()
                },
            })
        })
    }

    pub fn add_page(&mut self, page: Page) {
        self.pages.push(page);
    }

    /// Returns the bytes of the file so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.output.position()
    }

    /// Writes index, list of pages and digests.
    ///
    /// # Errors
    /// If the file cannot be written. [`recover`](super::recover) can repeat it.
    pub fn finish(mut self) -> Result<Summary, WarcError> {
        self.settle()?;
        let mut lines: Vec<String> = self.lines.iter().map(Line::text).collect();
        lines.sort_unstable();
        let main_url = &self.about.main_url;
        let main = self.pages.iter().find(|page| page.url == *main_url);
        let has_text = self.pages.iter().any(|page| page.text.is_some());
        let contents = Contents {
            about: &self.about,
            lines: &mut lines.into_iter().map(Ok),
            pages: &mut |file| {
                file.write_all(package::pages_title(has_text).as_bytes())?;
                let mut lines = self.pages.iter().map(package::page_line);
                lines.try_for_each(|line| file.write_all(line.as_bytes()))
            },
            main_time: main.map(|page| page.time),
            sums: self.sums,
        };
        package::finish(contents, self.output)
    }

    /// The file, of which nothing but the first record is written.
    pub(super) fn into_parts(self) -> (Output, Sums) {
        (self.output, self.sums)
    }

    /// Adds all records of a call, or none.
    fn whole(
        &mut self,
        add: impl FnOnce(&mut Recording) -> Result<Line, WarcError>,
    ) -> Result<(), WarcError> {
        let start = self.output.position();
        let added = add(self).and_then(|line| {
            self.settle()?;
            Ok(line)
        });
        match added {
            Ok(line) => {
                self.lines.push(line);
                Ok(())
            }
            Err(error) => {
                // What follows the last whole record is no part of the recording in any case.
                let _ = self.output.truncate(start);
                Err(error)
            }
        }
    }

    /// Hands all records to the operating system.
    fn settle(&mut self) -> Result<(), WarcError> {
        self.output.flush().map_err(failed)?;
        let end = self.output.position();
        self.sums.read_to(&self.output.file, end).map_err(failed)
    }

    fn in_warc(&self, offset: u64) -> u64 {
        offset - package::DATA_BEGIN
    }

    fn add_both(
        &mut self,
        exchange: &Exchange,
        body: &mut dyn Read,
        length: u64,
    ) -> Result<Line, WarcError> {
        let url = safe_url(&exchange.url);
        let [response_id, request_id] = [self.ids.next(), self.ids.next()];
        let concurrent = |id: &str| ("WARC-Concurrent-To".to_owned(), id.to_owned());
        let mut shared = Fields::new();
        let protocols = exchange.protocols.iter();
        shared.extend(protocols.map(|value| ("WARC-Protocol".to_owned(), value.clone())));
        if let Some(address) = exchange.address {
            shared.push(("WARC-IP-Address".to_owned(), address.to_string()));
        }
        let mut fields = shared.clone();
        fields.push(concurrent(&request_id));
        if !exchange.kind.is_empty() {
            fields.push(("WARC-Resource-Type".to_owned(), exchange.kind.clone()));
        }
        if let Some(truncated) = exchange.truncated {
            fields.push(("WARC-Truncated".to_owned(), truncated.value().to_owned()));
        }
        let offset = self.output.position();
        let head = Head {
            kind: "response",
            id: &response_id,
            time: exchange.time,
            url: &url,
            media_type: RESPONSE,
            fields,
        };
        let http = response_head(exchange, length);
        let written = record::write(&mut self.output, &head, &http, body, length)?;

        let mut fields = shared;
        fields.push(concurrent(&response_id));
        let head = Head {
            kind: "request",
            id: &request_id,
            time: exchange.time,
            url: &url,
            media_type: record::REQUEST,
            fields,
        };
        let posted = exchange.posted.as_deref().unwrap_or_default();
        let http = request_head(exchange, &url);
        let length = posted.len() as u64;
        record::write(&mut self.output, &head, &http, &mut &*posted, length)?;
        let offset = self.in_warc(offset);
        Ok(response_line(exchange, url, &written, offset))
    }
}

fn response_line(exchange: &Exchange, url: String, written: &record::Written, offset: u64) -> Line {
    let is_get = exchange.method == "GET";
    let posted = exchange.posted.as_deref().map(posted::text);
    let posted = posted.filter(|text| !is_get && !text.is_empty());
    let key = if is_get {
        surt::key(&url)
    } else {
        surt::key(&posted::url_with(&url, &exchange.method, posted.as_deref()))
    };
    let media_type = head::value(&exchange.response, "content-type").map(record::essence);
    Line {
        key,
        time: exchange.time,
        record: Record {
            url,
            mime: media_type.filter(|value| !value.is_empty()),
            status: Some(exchange.status.into()),
            digest: Some(written.payload.clone()),
            length: Some(written.length),
            offset: Some(offset),
            filename: package::WARC.to_owned(),
            method: (!is_get).then(|| exchange.method.clone()),
            posted,
            date: Some(exchange.time.to_string()),
        },
    }
}

/// Headers that describe how a body was sent.
const FRAMING: [&str; 3] = ["content-encoding", "content-length", "transfer-encoding"];

/// Appends headers, those of the framing under other names unless they fit the stored body.
fn push_all(head: &mut Vec<u8>, fields: &[(String, String)], framing: &[&str], length: &str) {
    for (name, value) in fields {
        // Pseudo-headers of HTTP/2 are in the first line.
        if name.is_empty() || name.starts_with(':') {
            continue;
        }
        let lower = name.to_ascii_lowercase();
        if lower == "content-length" && value.trim() == length {
            continue;
        }
        if framing.contains(&lower.as_str()) {
            head::push(head, &format!("X-Archive-Orig-{name}"), value)
        } else {
            head::push(head, name, value)
        }
    }
}

fn response_head(exchange: &Exchange, length: u64) -> Vec<u8> {
    let reason: String = exchange.reason.chars().filter(|c| !c.is_control()).collect();
    let status = exchange.status;
    let line = format!("HTTP/1.1 {status} {reason}");
    let mut head = line.trim_end().as_bytes().to_vec();
    if reason.trim().is_empty() {
        // The blank belongs to the line also without a reason (RFC 9112, section 4).
        head.push(b' ');
    }
    head.extend_from_slice(b"\r\n");
    let length = length.to_string();
    push_all(&mut head, &exchange.response, &FRAMING, &length);
    // These have no body and no length of one (RFC 9110, section 8.6).
    let is_empty = status < 200 || status == 204 || status == 304;
    if !is_empty || length != "0" {
        head::push(&mut head, "Content-Length", &length);
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn request_head(exchange: &Exchange, url: &str) -> Vec<u8> {
    let parsed = url::Url::parse(url).ok();
    let target = parsed.as_ref().map_or(url.to_owned(), |parsed| match parsed.query() {
        Some(query) => format!("{}?{query}", parsed.path()),
        None => parsed.path().to_owned(),
    });
    let is_token = |c: &char| c.is_ascii_alphanumeric() || "-_.!#$%&'*+^`|~".contains(*c);
    let method: String = exchange.method.chars().filter(is_token).collect();
    let mut head = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    if head::value(&exchange.request, "host").is_none()
        && let Some(host) = parsed.as_ref().and_then(url::Url::host_str)
    {
        let port = parsed.as_ref().and_then(url::Url::port);
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        head::push(&mut head, "Host", &format!("{host}{port}"));
    }
    let length = exchange.posted.as_ref().map(|posted| posted.len().to_string());
    let framing = &FRAMING[1..];
    push_all(&mut head, &exchange.request, framing, length.as_deref().unwrap_or_default());
    if let Some(length) = &length {
        head::push(&mut head, "Content-Length", length);
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests;
