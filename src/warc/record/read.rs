//! Reads records: one whose place is known, or all of a file.

use crate::head::{self, Fields};
use crate::source::{Counted, Part};
use crate::{digest, posted};
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read};

/// Largest body of a request whose text is an argument of the index.
const POSTED_MAX_BYTES: u64 = 16 << 20;
/// First bytes of a body, which show whether it has the coding that its headers name.
const START_BYTES: usize = 4 << 10;
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that must all be there: a stream that ends before is an error.
pub(crate) struct Body<R> {
    inner: R,
    rest: u64,
}

impl<R> Body<R> {
    pub(crate) fn new(inner: R, length: u64) -> Body<R> {
        Body { inner, rest: length }
    }

    /// Bytes that were not read yet.
    pub(crate) fn rest(&self) -> u64 {
        self.rest
    }
}

impl<R> Body<Counted<R>> {
    /// Bytes that were consumed of the reader, the head of the record included.
    pub(crate) fn consumed(&self) -> u64 {
        self.inner.count
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.rest).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let count = self.inner.read(&mut buffer[..most])?;
        self.rest -= count as u64;
        match count {
            0 => Err(cut(self.rest)),
            count => Ok(count),
        }
    }
}

impl<R: BufRead> BufRead for Body<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let most = usize::try_from(self.rest).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(&[]);
        }
        let bytes = self.inner.fill_buf()?;
        if bytes.is_empty() {
            return Err(cut(self.rest));
        }
        Ok(&bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, count: usize) {
        self.rest -= count as u64;
        self.inner.consume(count);
    }
}

fn cut(rest: u64) -> io::Error {
    let reason = format!("record is cut off: {rest} bytes are missing");
    io::Error::new(io::ErrorKind::UnexpectedEof, reason)
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// The content of a record whose place is known.
pub(crate) fn open(part: Part) -> Box<dyn BufRead + Send> {
    if part.starts_with(&[0x1f, 0x8b]) {
        let packed = BufReader::with_capacity(BUFFER_BYTES, part);
        return Box::new(BufReader::new(GzDecoder::new(packed)));
    }
    Box::new(BufReader::with_capacity(BUFFER_BYTES, part))
}

/// The fields of a record and the length of its block. The reader is then at the block. `None` at
/// the end of the file.
pub(crate) fn block(source: &mut impl BufRead) -> io::Result<Option<(String, Fields, u64)>> {
    let bytes = head::read(source).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("no record begins here, or it has no end"),
        _ => error,
    })?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let (version, fields) = head::parse(&bytes);
    if !version.starts_with("WARC/") {
        return Err(invalid("no record begins here"));
    }
    let length = head::value(&fields, "content-length").map(str::parse);
    let Some(Ok(length)) = length else {
        return Err(invalid("record has no length"));
    };
    Ok(Some((version, fields, length)))
}

/// The head of a request or response in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http {
    pub(crate) first: String,
    pub(crate) fields: Fields,
    /// Bytes of the body as it is stored.
    pub(crate) length: u64,
    /// First bytes of the body.
    pub(crate) start: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) offset: u64,
    /// Bytes in the file.
    pub(crate) length: u64,
    pub(crate) version: String,
    pub(crate) fields: Fields,
    pub(crate) http: Option<Http>,
    /// Body of a request as text.
    pub(crate) posted: Option<String>,
    /// Digests of the block, and of what follows the head of a message in it.
    pub(crate) digests: (String, String),
}

impl Found {
    /// The value of a field, or an empty text.
    pub(crate) fn field(&self, name: &str) -> &str {
        head::value(&self.fields, name).unwrap_or_default()
    }

    /// `WARC-Target-URI`. wget puts it in angle brackets.
    pub(crate) fn url(&self) -> &str {
        self.field("warc-target-uri").trim_start_matches('<').trim_end_matches('>')
    }

    /// Media type of the block without parameters.
    pub(crate) fn media_type(&self) -> String {
        essence(self.field("content-type"))
    }
}

/// A media type without parameters, in lower case.
pub(crate) fn essence(value: &str) -> String {
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Why a walk ended before the end of the file: the offset of the record that cannot be read.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

/// Reads all records of a file, one after another.
pub(crate) struct Walk {
    source: Counted<BufReader<Part>>,
    is_packed: bool,
    /// End of the last whole record.
    pub(crate) end: u64,
}

impl Walk {
    pub(crate) fn new(part: Part) -> Walk {
        Walk {
            is_packed: part.starts_with(&[0x1f, 0x8b]),
            source: Counted::new(BufReader::with_capacity(BUFFER_BYTES, part)),
            end: 0,
        }
    }

    /// The next record. `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, Stop> {
        let offset = self.end;
        let found = self.record().map_err(|error| Stop { offset, reason: error.to_string() })?;
        self.end = self.source.count;
        Ok(found.map(|found| Found { offset, length: self.end - offset, ..found }))
    }

    fn record(&mut self) -> io::Result<Option<Found>> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(None);
        }
        if !self.is_packed {
            return found(&mut self.source);
        }
        let mut content = BufReader::with_capacity(BUFFER_BYTES, GzDecoder::new(&mut self.source));
        let found = found(&mut content)?;
        if !content.fill_buf()?.is_empty() {
            return Err(invalid("more than one record in a gzip member"));
        }
        found.map_or_else(|| Err(invalid("empty gzip member")), |found| Ok(Some(found)))
    }
}

/// Skips the end of a record: two line ends, but some programs write another number.
fn skip_end(source: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = source.fill_buf()?;
        let ends = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        match bytes.get(ends) {
            None if ends == 0 => return Ok(()),
            Some(next) if *next != b'W' => {
                return Err(invalid("record does not end after its length"));
            }
            next => {
                let is_over = next.is_some();
                source.consume(ends);
                if is_over {
                    return Ok(());
                }
            }
        }
    }
}

fn found(source: &mut impl BufRead) -> io::Result<Option<Found>> {
    let Some((version, fields, length)) = block(source)? else {
        return Ok(None);
    };
    let mut body = Body::new(source, length);
    let mut sum = Sha256::new();
    let mut http = None;
    let is_http = head::value(&fields, "content-type")
        .is_some_and(|value| essence(value) == "application/http");
    if is_http {
        let bytes = head::read(&mut body)?;
        sum.update(&bytes);
        let (first, fields) = head::parse(&bytes);
        http = Some(Http {
            first,
            fields,
            length: body.rest,
            start: body.fill_buf()?.iter().take(START_BYTES).copied().collect(),
        });
    }
    let mut payload = Sha256::new();
    let is_posted = head::value(&fields, "warc-type") == Some("request")
        && (1..=POSTED_MAX_BYTES).contains(&body.rest);
    let mut kept = Vec::new();
    loop {
        let bytes = body.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        sum.update(bytes);
        payload.update(bytes);
        if is_posted {
            kept.extend_from_slice(bytes);
        }
        let count = bytes.len();
        body.consume(count);
    }
    skip_end(body.inner)?;
    Ok(Some(Found {
        offset: 0,
        length: 0,
        version,
        fields,
        http,
        posted: is_posted.then(|| posted::text(&kept)),
        digests: (digest::text(sum), digest::text(payload)),
    }))
}
