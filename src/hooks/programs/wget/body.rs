//! Heads and bodies of HTTP messages as a WARC file has them: with the encodings of the transfer.

use crate::page::coding::{self, Mismatch};
use archivist_warc::chunked::Chunked;
use archivist_warc::head;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Names (in lower case) and values of headers in their order.
pub type Headers = head::Fields;

/// Parses the head of a message or record: the status code, 0 without one, and the headers.
pub fn parse_head(head: &[u8]) -> (u16, Headers) {
    let (first, fields) = head::parse(head);
    let status = head::status(&first).map_or(0, |(status, _)| status);
    let in_lower_case = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
    (status, fields.into_iter().map(in_lower_case).collect())
}

/// The body without the encodings that the headers name. A body that is not encoded as its headers
/// say is returned as it is, as browsers do for gzip.
pub fn decoded(block: Box<dyn Read + Send>, headers: &Headers) -> io::Result<Box<dyn Read + Send>> {
    let body = if is_chunked(headers) {
        Box::new(Arrived::new(BufReader::new(block))) as Box<dyn Read + Send>
    } else {
        block
    };
    coding::decoded(body, encoding(headers), Mismatch::Keep)
}

/// Value of `Content-Encoding`, which may be empty.
pub fn encoding(headers: &Headers) -> &str {
    head::value(headers, "content-encoding").unwrap_or_default()
}

/// Whether a body has the length that its headers say, or its last chunk.
pub fn is_whole(block: impl Read, headers: &Headers) -> io::Result<bool> {
    let mut block = BufReader::new(block);
    if is_chunked(headers) {
        let mut body = Arrived::new(block);
        let count = io::copy(&mut body, &mut io::sink())?;
        let is_plain = count > 0 && !body.is_cut_off;
        return Ok(body.chunks.has_ended() || is_plain);
    }
    let length = head::value(headers, "content-length").and_then(|text| text.parse().ok());
    let count = io::copy(&mut block, &mut io::sink())?;
    Ok(length.is_none_or(|length: u64| count >= length))
}

fn is_chunked(headers: &Headers) -> bool {
    head::value(headers, "transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
}

/// The part of a chunked body that arrived: one that was cut off ends early, without an error.
struct Arrived<R> {
    chunks: Chunked<R>,
    is_cut_off: bool,
}

impl<R: BufRead> Arrived<R> {
    fn new(source: R) -> Arrived<R> {
        Arrived { chunks: Chunked::new(source), is_cut_off: false }
    }
}

impl<R: BufRead> Read for Arrived<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_cut_off {
            return Ok(0);
        }
        match self.chunks.read(buffer) {
            Err(error)
                if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) =>
            {
                self.is_cut_off = true;
                Ok(0)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_bodies_are_whole_with_their_last_chunk() {
        let headers = vec![("transfer-encoding".to_owned(), "chunked".to_owned())];
        for (body, text, whole) in [
            ("3\r\nabc\r\n0\r\n\r\n", "abc", true),
            ("3\r\nabc\r\n", "abc", false),
            ("40\r\nabc", "abc", false),
            ("0\r\n\r\n", "", true),
            ("", "", false),
            ("<p>no chunks", "<p>no chunks", true),
        ] {
            let block = || Box::new(io::Cursor::new(body.as_bytes().to_vec()));
            let mut read = String::new();
            let mut decoded = decoded(block(), &headers).unwrap();
            decoded.read_to_string(&mut read).unwrap();
            assert_eq!(read, text, "{body:?}");
            assert_eq!(is_whole(block(), &headers).unwrap(), whole, "{body:?}");
        }
    }
}
