//! Content codings of a body.

use super::head::Head;
use archivist_hooks::page::coding::{self, Mismatch};
use std::io::{self, Read};

/// Returns a reader of what the body stands for. The client asks for gzip alone, and decodes what
/// else browsers know; a body with another coding stays as it is.
pub fn decoded<'a>(
    body: impl Read + Send + 'a,
    head: &Head,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let values: Vec<_> = head.values("content-encoding").map(String::from_utf8_lossy).collect();
    let codings = values.join(",");
    if !coding::is_known(&codings) {
        return Ok(Box::new(body));
    }
    coding::decoded(body, &codings, Mismatch::Fail)
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;
    use flate2::Compression;
    use flate2::read::GzEncoder;

    fn read(headers: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let head = parse(format!("HTTP/1.1 200\r\n{headers}\r\n").as_bytes());
        let mut all = Vec::new();
        decoded(bytes, &head.unwrap())?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn codings_are_those_of_all_headers() {
        let text = &b"hello"[..];
        let brotli = b"\x0b\x02\x80hello\x03";
        let mut gzip = Vec::new();
        GzEncoder::new(&brotli[..], Compression::fast()).read_to_end(&mut gzip).unwrap();
        let both = "Content-Encoding: br\r\nContent-Encoding: GZIP\r\n";
        assert_eq!(read(both, &gzip).unwrap(), text);
        assert_eq!(read("Content-Encoding: br\r\n", brotli).unwrap(), text);
        assert_eq!(read("Content-Encoding: compress\r\n", text).unwrap(), text);
        assert_eq!(read("Content-Encoding: identity\r\n", text).unwrap(), text);
        assert_eq!(read("", text).unwrap(), text);
        assert_eq!(read("Content-Encoding: gzip\r\n", b"").unwrap(), b"");
        assert!(read("Content-Encoding: gzip\r\n", b"not packed").is_err());
    }
}
