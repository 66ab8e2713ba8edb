//! Bodies in chunks (RFC 9112, section 7.1), which some programs store as they were sent.

use std::io::{self, BufRead, Read};

/// Longest line with the size of a chunk.
const LINE_MAX_BYTES: u64 = 4 << 10;

enum State {
    /// Nothing was read.
    Begin,
    /// Bytes of the chunk that were not read.
    Chunk(u64),
    /// The body has no chunks, or they have ended.
    Plain,
    End,
}

/// The content of the chunks of a body. A body that does not begin with the size of one stays as it
/// is: other programs keep the header `Transfer-Encoding` without the chunks.
pub struct Chunked<R> {
    source: R,
    state: State,
}

impl<R: BufRead> Chunked<R> {
    /// The content of the chunks that `source` has.
    #[must_use]
    pub fn new(source: R) -> Chunked<R> {
        Chunked { source, state: State::Begin }
    }

    /// Returns whether the last chunk was read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::End)
    }

    fn size(&mut self) -> io::Result<State> {
        let mut line = Vec::new();
        let mut limited = self.source.by_ref().take(LINE_MAX_BYTES);
        limited.read_until(b'\n', &mut line)?;
        match size_of(&line) {
            Some(0) => Ok(State::End),
            Some(size) => Ok(State::Chunk(size)),
            None => {
                let reason = "chunk of the body has no size";
                Err(io::Error::new(io::ErrorKind::InvalidData, reason))
            }
        }
    }
}

pub(crate) fn has_chunks(start: &[u8]) -> bool {
    let end = start.iter().position(|byte| *byte == b'\n');
    end.and_then(|end| size_of(&start[..=end])).is_some()
}

/// The size in a line such as `1f;extension`.
fn size_of(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let size = line.split(';').next().unwrap_or_default().trim();
    let is_hex = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(size, 16).ok()).flatten()
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.state {
                State::Begin => {
                    let has_size = has_chunks(self.source.fill_buf()?);
                    self.state = if has_size { self.size()? } else { State::Plain };
                }
                State::Chunk(0) => {
                    let mut end = [0; 2];
                    self.source.read_exact(&mut end)?;
                    self.state = self.size()?;
                }
                State::Chunk(rest) => {
                    let most = buffer.len().min(usize::try_from(*rest).unwrap_or(usize::MAX));
                    let count = self.source.read(&mut buffer[..most])?;
                    *rest -= count as u64;
                    if count == 0 && most > 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    return Ok(count);
                }
                State::Plain => return self.source.read(buffer),
                State::End => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        Chunked::new(body).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn chunks_are_joined() {
        let body = b"3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        assert_eq!(read(body).unwrap(), b"abc0123456789");
        let has_ended = |body: &[u8]| {
            let mut chunked = Chunked::new(body);
            let _ = io::copy(&mut chunked, &mut io::sink());
            chunked.has_ended()
        };
        assert!(has_ended(body) && !has_ended(&body[..20]) && !has_ended(b"plain"));
        for plain in [&b"<html>\n"[..], b"", b"beef", b"\n"] {
            assert_eq!(read(plain).unwrap(), plain);
        }
        for broken in
            [&b"3\r\nab"[..], b"3\r\nabc\r\n", b"3\r\nabc\r\nx\r\n", b"ffffffffffffffff\n"]
        {
            assert!(read(broken).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
            let _ = read(&bytes);
            let _ = read(&[b"5\r\n", &bytes[..]].concat());
        }
    }
}
