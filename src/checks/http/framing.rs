//! Where the body of an answer ends (RFC 9112, section 6), as Chromium decides it.

use super::head::Head;
use std::io::{self, BufRead, Read};

/// Longest line with the size of a chunk, in bytes.
const SIZE_LINE: u64 = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Empty,
    /// The body has this many bytes.
    Length(u64),
    Chunked,
    Close,
}

impl Framing {
    /// Returns how the body of an answer ends, or what is wrong with its headers.
    pub fn of(head: &Head, is_head_request: bool) -> Result<Framing, String> {
        if is_head_request || matches!(head.status, 100..200 | 204 | 205 | 304) {
            return Ok(Framing::Empty);
        }
        if head.is_modern && head.lists("transfer-encoding", "chunked") {
            return Ok(Framing::Chunked);
        }
        let mut lengths = head
            .values("content-length")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .filter_map(|part| number(part.trim_ascii()));
        match lengths.next() {
            None => Ok(Framing::Close),
            Some(first) if lengths.any(|other| other != first) => {
                Err("the answer has two different lengths".to_owned())
            }
            Some(0) => Ok(Framing::Empty),
            Some(length) => Ok(Framing::Length(length)),
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Reads one body, and nothing after it.
pub struct Body<'a> {
    from: &'a mut (dyn BufRead + Send),
    framing: Framing,
    /// Bytes that remain of the chunk.
    chunk: u64,
    is_first: bool,
    /// Whether the whole body was read.
    pub is_over: bool,
}

impl<'a> Body<'a> {
    /// Returns a reader of the body that comes next.
    pub fn new(from: &'a mut (dyn BufRead + Send), framing: Framing) -> Body<'a> {
        Body { from, framing, chunk: 0, is_first: true, is_over: framing == Framing::Empty }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        (&mut *self.from).take(SIZE_LINE).read_until(b'\n', &mut line)?;
        match line.last() {
            Some(b'\n') => Ok(line.trim_ascii().to_vec()),
            Some(_) if line.len() as u64 >= SIZE_LINE => Err(no_size()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads the line before a chunk; the last chunk has the size 0, and trailers follow it.
    fn begin_chunk(&mut self) -> io::Result<()> {
        if !self.is_first {
            self.line()?;
        }
        self.is_first = false;
        let line = self.line()?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size.trim_ascii()).map_err(|_| no_size())?;
        if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(no_size());
        }
        self.chunk = u64::from_str_radix(size, 16).map_err(|_| no_size())?;
        if self.chunk == 0 {
            self.is_over = true;
            // Trailers do not matter; a connection that ends before them is over as well.
            for _ in 0..100 {
                match self.line() {
                    Ok(line) if !line.is_empty() => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    fn piece(&mut self, into: &mut [u8], most: u64) -> io::Result<usize> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(into.len());
        match self.from.read(&mut into[..most])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

fn no_size() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a chunk of the body has no valid size")
}

impl Read for Body<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.framing == Framing::Chunked && self.chunk == 0 && !self.is_over {
            self.begin_chunk()?;
        }
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        match self.framing {
            Framing::Empty => Ok(0),
            Framing::Length(left) => {
                let read = self.piece(into, left)?;
                self.framing = Framing::Length(left - read as u64);
                self.is_over = left == read as u64;
                Ok(read)
            }
            Framing::Chunked => {
                let read = self.piece(into, self.chunk)?;
                self.chunk -= read as u64;
                Ok(read)
            }
            Framing::Close => {
                let read = self.from.read(into)?;
                self.is_over = read == 0;
                Ok(read)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;
    use proptest::prelude::*;

    fn of(headers: &str) -> Result<Framing, String> {
        let head = parse(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").as_bytes()).unwrap();
        Framing::of(&head, false)
    }

    fn read(framing: Framing, bytes: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let (mut from, mut all) = (bytes, Vec::new());
        let mut body = Body::new(&mut from, framing);
        body.read_to_end(&mut all)?;
        Ok((all, body.is_over))
    }

    #[test]
    fn lengths_are_read_as_browsers_read_them() {
        assert_eq!(of("Content-Length: 52\r\nContent-Length: 52"), Ok(Framing::Length(52)));
        assert_eq!(of("Content-Length: 52, 52"), Ok(Framing::Length(52)));
        assert_eq!(of("Content-Length : 7"), Ok(Framing::Length(7)));
        assert_eq!(of("Content-Length: x"), Ok(Framing::Close));
        assert_eq!(of("Content-Length: +5"), Ok(Framing::Close));
        assert_eq!(of("Content-Length: 0"), Ok(Framing::Empty));
        assert!(of("Content-Length: 1\r\nContent-Length: 2").is_err());
        let both = "Content-Length: 1\r\nTransfer-Encoding: gzip, Chunked";
        assert_eq!(of(both), Ok(Framing::Chunked));
        let old = parse(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        assert_eq!(Framing::of(&old, false), Ok(Framing::Close));
    }

    #[test]
    fn chunks_end_where_they_say() {
        let chunks = b"5;x=y\r\nhello\r\n1 \n!\n0\r\nTrailer: x\r\n\r\nnext";
        let (all, is_over) = read(Framing::Chunked, chunks).unwrap();
        assert_eq!((all.as_slice(), is_over), (&b"hello!"[..], true));
        for broken in [&b"x\r\n"[..], b"\r\n", b"5\r\nhel", b"-1\r\n", b""] {
            assert!(read(Framing::Chunked, broken).is_err(), "{broken:?}");
        }
        assert!(read(Framing::Length(5), b"hel").is_err());
        assert_eq!(read(Framing::Length(3), b"hello").unwrap(), (b"hel".to_vec(), true));
        assert_eq!(read(Framing::Close, b"hel").unwrap(), (b"hel".to_vec(), true));
    }

    proptest! {
        #[test]
        fn no_body_is_too_odd(bytes in "([0-9a-f]{1,17}|[\\r\\n;]|.){0,40}") {
            let _ = read(Framing::Chunked, bytes.as_bytes());
        }
    }
}
