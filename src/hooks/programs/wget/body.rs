//! Heads and bodies of HTTP messages as a WARC file has them: with the encodings of the transfer.

use crate::page::coding::{self, Mismatch};
use std::io::{self, BufRead, BufReader, Read};

/// Names (in lower case) and values of headers in their order.
pub type Headers = Vec<(String, String)>;

/// Longest line with the size of a chunk in bytes.
const CHUNK_LINE_MAX_BYTES: u64 = 4096;

/// Value of the first header with this name, which must be in lower case.
pub fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    headers
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// Parses the head of a message or record: the status code, 0 without one, and the headers.
pub fn parse_head(head: &[u8]) -> (u16, Headers) {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let status = first.split_whitespace().nth(1);
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    let status = status.and_then(|text| text.parse().ok());
    (status.unwrap_or(0), headers.collect())
}

/// The body without the encodings that the headers name. A body that is not encoded as its headers
/// say is returned as it is, as browsers do for gzip.
pub fn decoded(block: Box<dyn Read>, headers: &Headers) -> io::Result<Box<dyn Read>> {
    let body = if is_chunked(headers) {
        Box::new(Chunked::new(BufReader::new(block))) as Box<dyn Read>
    } else {
        block
    };
    coding::decoded(body, encoding(headers), Mismatch::Keep)
}

/// Value of `Content-Encoding`, which may be empty.
pub fn encoding(headers: &Headers) -> &str {
    header(headers, "content-encoding").unwrap_or_default()
}

/// Whether a body has the length that its headers say, or its last chunk.
pub fn is_whole(block: impl Read, headers: &Headers) -> io::Result<bool> {
    let mut block = BufReader::new(block);
    if is_chunked(headers) {
        let mut body = Chunked::new(block);
        io::copy(&mut body, &mut io::sink())?;
        return Ok(body.has_last_chunk);
    }
    let length = header(headers, "content-length").and_then(|text| text.parse().ok());
    let count = io::copy(&mut block, &mut io::sink())?;
    Ok(length.is_none_or(|length: u64| count >= length))
}

fn is_chunked(headers: &Headers) -> bool {
    header(headers, "transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
}

/// The body in a chunked message. A body that was cut off ends early, without an error.
struct Chunked<R> {
    inner: R,
    left: u64,
    is_over: bool,
    has_last_chunk: bool,
}

impl<R: BufRead> Chunked<R> {
    fn new(inner: R) -> Chunked<R> {
        Chunked {
            inner,
            left: 0,
            is_over: false,
            has_last_chunk: false,
        }
    }

    fn next_size(&mut self) -> io::Result<u64> {
        let mut line = Vec::new();
        // The line end of the chunk before comes first.
        for _ in 0..2 {
            line.clear();
            self.inner
                .by_ref()
                .take(CHUNK_LINE_MAX_BYTES)
                .read_until(b'\n', &mut line)?;
            if !line.trim_ascii().is_empty() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&line);
        let digits = text.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16);
        self.has_last_chunk = size == Ok(0);
        Ok(size.unwrap_or(0))
    }
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.is_over {
            self.left = self.next_size()?;
            self.is_over = self.left == 0;
        }
        if self.is_over {
            return Ok(0);
        }
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.inner.read(&mut buffer[..most])?;
        self.is_over = count == 0 && most > 0;
        self.left -= count as u64;
        Ok(count)
    }
}
