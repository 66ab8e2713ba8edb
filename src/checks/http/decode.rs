//! Content codings of a body.

use super::head::Head;
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Returns a reader of what the body stands for. The client asks for gzip alone; what it cannot
/// decode stays as it is. An empty body needs no coding.
pub fn decoded<'a>(body: impl Read + 'a, head: &Head) -> io::Result<Box<dyn Read + 'a>> {
    let coding = |name| head.lists("content-encoding", name);
    let (is_gzip, is_deflate) = (coding("gzip") || coding("x-gzip"), coding("deflate"));
    if !is_gzip && !is_deflate {
        return Ok(Box::new(body));
    }
    let mut body = BufReader::new(body);
    let first = body.fill_buf()?.first().copied();
    Ok(match first {
        None => Box::new(body),
        Some(_) if is_gzip => Box::new(GzDecoder::new(body)),
        // With the header of zlib or without it: servers do both.
        Some(byte) if byte & 15 == 8 => Box::new(ZlibDecoder::new(body)),
        Some(_) => Box::new(DeflateDecoder::new(body)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn read(coding: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let head = parse(format!("HTTP/1.1 200\r\nContent-Encoding: {coding}\r\n\r\n").as_bytes());
        let mut all = Vec::new();
        decoded(bytes, &head.unwrap())?.read_to_end(&mut all)?;
        Ok(all)
    }

    fn packed(mut encoder: impl Read) -> Vec<u8> {
        let mut all = Vec::new();
        encoder.read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn codings_of_servers_are_undone() {
        let (text, level) = (&b"hello"[..], Compression::fast());
        let gzip = packed(GzEncoder::new(text, level));
        assert_eq!(read("gzip", &gzip).unwrap(), text);
        // Chromium ignores what follows.
        assert_eq!(
            read("GZIP", &[&gzip[..], b"\0\0more"].concat()).unwrap(),
            text
        );
        assert_eq!(
            read("deflate", &packed(ZlibEncoder::new(text, level))).unwrap(),
            text
        );
        assert_eq!(
            read("deflate", &packed(DeflateEncoder::new(text, level))).unwrap(),
            text
        );
        assert_eq!(read("gzip", b"").unwrap(), b"");
        assert_eq!(read("br", b"x").unwrap(), b"x");
        assert!(read("gzip", b"not packed").is_err());
    }
}
