//! The answer of a record, as its server meant it.

use crate::Blocks;
use crate::chunked;
use crate::coding::{self, Mismatch};
use crate::head::{self, Fields};
use crate::record::{self, Body};
use crate::source::{Counted, Part};
use std::io::{self, BufRead, Read};

/// Largest body that a content coding stands for.
const DECODED_MAX_BYTES: u64 = 1 << 30;

/// What a server answered, or the resource of another record.
pub struct StoredAnswer {
    /// Status code; 200 for records that are not those of responses.
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    /// Bytes of the body, if they are known before it is read.
    pub length: Option<u64>,
    /// Parts of the body, if it is stored without codings.
    pub blocks: Option<Blocks>,
    /// The body without codings. Reading it fails if the record is cut off.
    pub body: Box<dyn Read + Send>,
}

pub(super) struct Stored {
    member: Part,
    pub(super) fields: Fields,
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) headers: Fields,
    body: Body<Counted<Box<dyn BufRead + Send>>>,
    is_http: bool,
}

impl Stored {
    pub(super) fn open(member: Part) -> io::Result<Stored> {
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
        Ok(Stored { member, fields, status, reason, headers, body, is_http })
    }

    pub(super) fn field(&self, name: &str) -> &str {
        head::value(&self.fields, name).unwrap_or_default()
    }

    pub(super) fn answer(mut self) -> io::Result<StoredAnswer> {
        if !self.is_http {
            let media_type = self.field("content-type").to_owned();
            self.headers.push(("Content-Type".to_owned(), media_type));
        }
        let blocks = Blocks::new(self.member, self.body.consumed());
        plain(self.body, blocks, self.status, self.reason, self.headers)
    }
}

pub(super) fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Headers of a body that has neither codings nor chunks.
pub(super) fn without_framing(headers: Fields) -> Fields {
    let is_framing = |name: &str| {
        let names = ["content-encoding", "content-length", "transfer-encoding"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    headers.into_iter().filter(|(name, _)| !is_framing(name)).collect()
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
        whole = Box::new(Bounded { inner: decoded, rest: DECODED_MAX_BYTES });
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
pub(super) struct Bounded<R> {
    pub(super) inner: R,
    pub(super) rest: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let rest = self.rest.checked_sub(count as u64);
        self.rest = rest.ok_or_else(|| {
            invalid(&format!("body is longer than {DECODED_MAX_BYTES} bytes when decoded"))
        })?;
        Ok(count)
    }
}
