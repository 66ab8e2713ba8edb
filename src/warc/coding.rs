//! Content codings (RFC 9110, section 8.4.1): the one decoder for bodies that hooks, checks and
//! readers of recordings have.
//!
//! Servers send codings that the request did not ask for, so all that browsers know are decoded:
//! gzip, deflate, br (RFC 7932) and zstd (RFC 8878). The memory of a decoder is bounded by its
//! window, and the reader of a decoded body decides how many bytes it takes: a few hundred bytes may
//! stand for gigabytes.

use brotli_decompressor::{
    BrotliDecoderParameter, BrotliDecompressStream, BrotliResult, BrotliState, Decompressor,
    StandardAlloc,
};
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Largest window of zstd in bytes, as browsers have it (RFC 9659).
const WINDOW_MAX_BYTES: u64 = 8 << 20;
/// Codings of one body, each applied to the result of the previous one.
const CODINGS_MAX: usize = 3;
/// Bytes that decide whether a body has the coding br, which has no mark of its own.
const PROBE_BYTES: u64 = 4 << 10;
const BUFFER_BYTES: usize = 16 << 10;
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: [&[u8]; 2] = [b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"];

/// What happens to a body that is not encoded as its headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The body is returned as it is.
    Keep,
    /// Reading it fails.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn of(name: &str) -> Option<Coding> {
        Some(match name {
            "gzip" | "x-gzip" => Coding::Gzip,
            "deflate" => Coding::Deflate,
            "br" => Coding::Brotli,
            "zstd" => Coding::Zstd,
            _ => return None,
        })
    }
}

/// Whether the value of `Content-Encoding` names a coding.
pub fn is_encoded(value: &str) -> bool {
    names(value).next().is_some()
}

/// Whether all codings in the value of `Content-Encoding` can be decoded.
pub fn is_known(value: &str) -> bool {
    names(value).all(|name| Coding::of(&name).is_some()) && names(value).count() <= CODINGS_MAX
}

/// Whether a body that starts like this can have the codings in the value of `Content-Encoding`.
/// `is_whole` says that nothing follows `start`.
pub fn fits(value: &str, start: &[u8], is_whole: bool) -> bool {
    let last = names(value).next_back().and_then(|name| Coding::of(&name));
    let (Some(last), false) = (last, start.is_empty()) else {
        return true;
    };
    match last {
        Coding::Gzip => start.starts_with(GZIP),
        Coding::Deflate => true,
        Coding::Brotli => {
            let is_known = is_whole || start.len() as u64 >= PROBE_BYTES;
            !is_known || is_brotli(start)
        }
        Coding::Zstd => is_zstd(start),
    }
}

/// Names of the codings in the order in which the server applied them.
fn names(value: &str) -> impl DoubleEndedIterator<Item = String> {
    let names = value.split(',').map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty() && name != "identity")
}

/// Returns a reader of what a body stands for. `value` is that of `Content-Encoding`. An empty body
/// needs no coding.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] for codings that are not known, and for too many of them; then
/// nothing of the body was read. Other errors are those of `body`.
pub fn decoded<'a>(
    body: impl Read + Send + 'a,
    value: &str,
    mismatch: Mismatch,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let unsupported = |name: &str| {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
        io::Error::new(io::ErrorKind::Unsupported, format!("content encoding '{shown}'"))
    };
    let codings: Result<Vec<_>, _> = names(value)
        .rev()
        .map(|name| Coding::of(&name).ok_or_else(|| unsupported(&name)))
        .collect();
    let codings = codings?;
    if codings.len() > CODINGS_MAX {
        return Err(unsupported(value));
    }
    let mut body: Box<dyn Read + Send + 'a> = Box::new(body);
    for coding in codings {
        body = undone(body, coding, mismatch)?;
    }
    Ok(body)
}

fn undone<'a>(
    body: Box<dyn Read + Send + 'a>,
    coding: Coding,
    mismatch: Mismatch,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut body = body;
    let mut start = Vec::new();
    // A reader of a stream gets its first bytes at once.
    let probe = match mismatch {
        Mismatch::Keep => PROBE_BYTES,
        Mismatch::Fail => 1,
    };
    match body.by_ref().take(probe).read_to_end(&mut start) {
        Err(error) if start.is_empty() => return Err(error),
        // What follows the part that was read fails again.
        _ => {}
    }
    let is_plain = mismatch == Mismatch::Keep
        && match coding {
            Coding::Gzip => !start.starts_with(GZIP),
            Coding::Deflate => false,
            Coding::Brotli => !is_brotli(&start),
            Coding::Zstd => !is_zstd(&start),
        };
    let first = start.first().copied();
    let body = BufReader::new(Cursor::new(start).chain(body));
    let Some(first) = first.filter(|_| !is_plain) else {
        return Ok(Box::new(body));
    };
    Ok(match coding {
        Coding::Gzip => Box::new(GzDecoder::new(body)),
        // With the header of zlib or without it: servers do both.
        Coding::Deflate if first & 15 == 8 => Box::new(ZlibDecoder::new(body)),
        Coding::Deflate => Box::new(DeflateDecoder::new(body)),
        Coding::Brotli => Box::new(brotli(body)),
        Coding::Zstd => Box::new(Zstd::new(body)),
    })
}

/// A decoder without the large windows of 1 GiB that only other uses of the format have.
fn brotli<R: Read>(body: R) -> Decompressor<R> {
    let mut decoder = Decompressor::new(body, BUFFER_BYTES);
    let large = BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW;
    decoder.set_parameter(large, 0);
    decoder
}

/// Whether a body that starts like this can have the coding br.
fn is_brotli(start: &[u8]) -> bool {
    let memory = StandardAlloc::default;
    let mut state = BrotliState::new(memory(), memory(), memory());
    let (mut unread, mut read, mut room, mut written, mut total) = (start.len(), 0, 1, 0, 0);
    let result = BrotliDecompressStream(
        &mut unread,
        &mut read,
        start,
        &mut room,
        &mut written,
        &mut [0],
        &mut total,
        &mut state,
    );
    match result {
        BrotliResult::ResultFailure => false,
        // A short text may look like the start of a body.
        BrotliResult::NeedsMoreInput => written > 0 || start.len() as u64 >= PROBE_BYTES,
        BrotliResult::ResultSuccess | BrotliResult::NeedsMoreOutput => true,
    }
}

/// Whether the bytes begin a frame of zstd, which may be one to skip.
fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(ZSTD[0]) || start.get(1..).is_some_and(|rest| rest.starts_with(ZSTD[1]))
}

/// The frames of a body, one after another. What follows the last one is ignored.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    has_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX_BYTES);
        Zstd { source, decoder, has_frame: false }
    }

    /// Begins the next frame. Returns whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let start = self.source.fill_buf()?;
            if start.is_empty() || self.has_frame && !is_zstd(start) {
                return Ok(false);
            }
            self.has_frame = true;
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.source.by_ref().take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                if !self.begin()? {
                    return Ok(0);
                }
                continue;
            }
            // A block at a time: at most 128 KiB.
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
        self.decoder.read(buffer)
    }
}

/// The content of a file in gzip format, at most `most` bytes of it, and the error that ended it.
/// `None` if the file has another format.
pub fn unpacked(file: &[u8], most: u64) -> Option<(Vec<u8>, Option<io::Error>)> {
    if !file.starts_with(GZIP) {
        return None;
    }
    let mut content = Vec::new();
    let read = MultiGzDecoder::new(file).take(most).read_to_end(&mut content);
    Some((content, read.err()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const TEXT: &[u8] = b"hello";
    /// "hello", and 16 MiB of zeros.
    const BROTLI: &[u8] = b"\x0b\x02\x80hello\x03";
    const BROTLI_BOMB: &[u8] = b"\xcb\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x8f\xff\xff\x7f\xf0\x4f\x00\xc4\x61\x11\x80\xee\xfd\xdf";
    const ZSTD_FRAME: &[u8] = b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello";

    fn read(value: &str, bytes: &[u8], mismatch: Mismatch) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        decoded(bytes, value, mismatch)?.read_to_end(&mut all)?;
        Ok(all)
    }

    fn packed(mut encoder: impl Read) -> Vec<u8> {
        let mut all = Vec::new();
        encoder.read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn codings_of_servers_are_undone() {
        let level = Compression::fast();
        let gzip = packed(GzEncoder::new(TEXT, level));
        let zlib = packed(ZlibEncoder::new(TEXT, level));
        let skipped = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc";
        for (value, body) in [
            ("gzip", gzip.clone()),
            // Chromium ignores what follows.
            ("GZIP", [&gzip[..], b"\0\0more"].concat()),
            ("x-gzip, identity", gzip.clone()),
            ("deflate", zlib.clone()),
            ("deflate", packed(DeflateEncoder::new(TEXT, level))),
            ("br", BROTLI.to_vec()),
            ("zstd", ZSTD_FRAME.to_vec()),
            ("zstd", [skipped, ZSTD_FRAME, b"more"].concat()),
            ("deflate, gzip", packed(GzEncoder::new(&zlib[..], level))),
            (" Br ,gzip", packed(GzEncoder::new(BROTLI, level))),
            ("", TEXT.to_vec()),
            ("identity", TEXT.to_vec()),
        ] {
            for mismatch in [Mismatch::Fail, Mismatch::Keep] {
                assert_eq!(read(value, &body, mismatch).unwrap(), TEXT, "{value}");
            }
        }
        let twice = [ZSTD_FRAME, ZSTD_FRAME].concat();
        assert_eq!(read("zstd", &twice, Mismatch::Fail).unwrap(), b"hellohello");
        assert!(is_encoded("br") && !is_encoded("") && !is_encoded("identity"));
    }

    #[test]
    fn body_in_another_coding_than_its_headers_say_is_kept_or_fails() {
        for value in ["gzip", "br", "zstd"] {
            for body in [&b"<!doctype html>"[..], b"\n<p>", b"{}", b"\x89PNG"] {
                assert_eq!(read(value, body, Mismatch::Keep).unwrap(), body, "{value}");
                assert!(read(value, body, Mismatch::Fail).is_err(), "{value} {body:?}");
            }
            assert_eq!(read(value, b"", Mismatch::Fail).unwrap(), b"", "{value}");
        }
        for value in ["compress", "br, gzip, gzip, gzip"] {
            let error = read(value, TEXT, Mismatch::Keep).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{value}");
        }
    }

    #[test]
    fn start_of_a_body_that_was_cut_off_is_read() {
        let long: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let whole = packed(GzEncoder::new(&long[..], Compression::fast()));
        let mut reader = decoded(&whole[..whole.len() / 2], "gzip", Mismatch::Keep).unwrap();
        let mut start = Vec::new();
        assert!(reader.read_to_end(&mut start).is_err());
        assert!(start.len() > 10_000 && long.starts_with(&start));
        for (value, body) in [("br", BROTLI), ("zstd", ZSTD_FRAME)] {
            let cut = &body[..body.len() - 1];
            assert!(read(value, cut, Mismatch::Fail).is_err(), "{value}");
        }
    }

    /// A server may send the first bytes alone.
    #[test]
    fn body_that_arrives_byte_by_byte_is_decoded() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let most = buffer.len().min(1);
                self.0.read(&mut buffer[..most])
            }
        }
        let gzip = packed(GzEncoder::new(TEXT, Compression::fast()));
        for (value, body) in [("gzip", &gzip[..]), ("br", BROTLI), ("zstd", ZSTD_FRAME)] {
            for mismatch in [Mismatch::Fail, Mismatch::Keep] {
                let mut text = Vec::new();
                let mut reader = decoded(Slow(body), value, mismatch).unwrap();
                reader.read_to_end(&mut text).unwrap();
                assert_eq!(text, TEXT, "{value}");
            }
        }
    }

    /// A few bytes that stand for 16 and 200 MiB: as many are decoded as are read.
    #[test]
    fn bomb_is_decoded_as_far_as_it_is_read() {
        // A window of 8 MiB, and blocks that repeat a byte.
        let head = b"\x28\xb5\x2f\xfd\x00\x68";
        let zstd = [&head[..], &b"\x02\x00\x10\x00".repeat(1600)].concat();
        for (value, bomb) in [("br", BROTLI_BOMB), ("zstd", &zstd[..])] {
            let reader = decoded(bomb, value, Mismatch::Fail).unwrap();
            let count = io::copy(&mut reader.take(3 << 20), &mut io::sink()).unwrap();
            assert_eq!(count, 3 << 20, "{value}");
        }
        let large = b"\x28\xb5\x2f\xfd\x00\x70\x02\x00\x10\x00";
        assert!(read("zstd", large, Mismatch::Fail).is_err(), "a window of 16 MiB");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            value in "(gzip|deflate|br|zstd)(, (gzip|br|zstd))?"
        ) {
            let starts: [&[u8]; 4] = [b"", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08\x00", b"\x0b\x02"];
            for start in starts {
                let body = [start, &bytes].concat();
                for mismatch in [Mismatch::Keep, Mismatch::Fail] {
                    if let Ok(reader) = decoded(&body[..], &value, mismatch) {
                        let _ = io::copy(&mut reader.take(1 << 20), &mut io::sink());
                    }
                }
            }
        }
    }
}
