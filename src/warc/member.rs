//! Writes gzip members (RFC 1952), also such whose beginning changes after it was written.
//!
//! The head of a record has the digests of its body, which is written as it arrives. The head is
//! therefore a block of its own in the deflate stream (RFC 1951), stored without compression, and
//! gets its digests at the end. Most records are short and need no such block: [`write_whole`].

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const BUFFER_BYTES: usize = 64 << 10;
const STORED_MAX_BYTES: usize = 0xffff;
/// Bytes of a body whose compression decides about the rest of it.
const PROBE_BYTES: usize = 16 << 10;
/// Level of zlib for bodies. Of 3 MB of source text, level 2 leaves 31 % in 9 ms a MB, level 3 28 % in
/// 16 ms, and level 6 27 % in 39 ms: the page waits for the program that writes.
const LEVEL: u32 = 2;
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes of a member before those of its head.
const PREFIX_BYTES: u64 = HEADER.len() as u64 + 5;

pub(crate) struct Output {
    pub(crate) file: Arc<File>,
    /// Offset of the buffer in the file.
    at: u64,
    buffer: Vec<u8>,
    /// Its 300 KB serve one member after another.
    deflate: Box<Compress>,
}

impl Output {
    pub(crate) fn new(file: Arc<File>, at: u64) -> Output {
        Output {
            file,
            at,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            deflate: Box::new(Compress::new(Compression::new(LEVEL), false)),
        }
    }

    /// Offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() > BUFFER_BYTES {
            self.file.write_all_at(bytes, self.at)?;
            self.at += bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Replaces bytes that were written.
    pub(crate) fn replace(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset < self.at {
            self.flush()?;
            return self.file.write_all_at(bytes, offset);
        }
        let begin = (offset - self.at) as usize;
        self.buffer[begin..begin + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Removes what was written after an offset.
    pub(crate) fn truncate(&mut self, offset: u64) -> io::Result<()> {
        self.buffer.clear();
        self.at = offset;
        self.file.set_len(offset)
    }
}

/// Writes a member whose bytes are all there.
pub(crate) fn write_whole(output: &mut Output, bytes: &[u8]) -> io::Result<()> {
    let mut crc = Crc::new();
    crc.update(bytes);
    // At worst, a byte is a literal of 9 bits (RFC 1951, 3.2.6).
    let mut packed = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 64);
    output.deflate.reset();
    let ended = output.deflate.compress_vec(bytes, &mut packed, FlushCompress::Finish);
    output.deflate.reset();
    if ended.map_err(io::Error::other)? != Status::StreamEnd {
        return Err(io::Error::other("compressed bytes are too long"));
    }
    output.write(&HEADER)?;
    output.write(&packed)?;
    output.write(&crc.sum().to_le_bytes())?;
    output.write(&crc.amount().to_le_bytes())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Nothing is known about it yet.
    Undecided,
    Deflate,
    /// As it is: it has a compression of its own.
    Stored,
}

pub(crate) struct Member<'a> {
    output: &'a mut Output,
    start: u64,
    head: Vec<u8>,
    crc: Crc,
    coding: Coding,
    packed: Vec<u8>,
}

impl<'a> Member<'a> {
    /// Begins a member. The first bytes of `head`, up to the size of a block, can be replaced.
    pub(crate) fn begin(output: &'a mut Output, head: Vec<u8>) -> io::Result<Member<'a>> {
        let start = output.position();
        output.write(&HEADER)?;
        for block in head.chunks(STORED_MAX_BYTES) {
            stored(output, block, false)?;
        }
        Ok(Member {
            output,
            start,
            head,
            crc: Crc::new(),
            coding: Coding::Undecided,
            packed: Vec::new(),
        })
    }

    /// Adds bytes of the body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        if self.coding == Coding::Undecided {
            self.coding = decide(bytes, &mut self.output.deflate);
        }
        self.code(bytes, FlushCompress::None)
    }

    fn code(&mut self, bytes: &[u8], flush: FlushCompress) -> io::Result<()> {
        if self.coding != Coding::Deflate {
            for block in bytes.chunks(STORED_MAX_BYTES) {
                stored(self.output, block, false)?;
            }
            return Ok(());
        }
        let before = self.output.deflate.total_in();
        loop {
            let deflate = &mut self.output.deflate;
            let done = (deflate.total_in() - before) as usize;
            self.packed.clear();
            self.packed.reserve(BUFFER_BYTES);
            let status = deflate
                .compress_vec(&bytes[done..], &mut self.packed, flush)
                .map_err(io::Error::other)?;
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => deflate.total_in() - before == bytes.len() as u64,
            };
            self.output.write(&self.packed)?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Ends the member with the last bytes of the body. `changes` replace bytes of the head.
    pub(crate) fn finish(mut self, last: &[u8], changes: &[(usize, String)]) -> io::Result<()> {
        self.crc.update(last);
        if self.coding == Coding::Deflate {
            self.code(last, FlushCompress::Finish)?;
        } else {
            stored(self.output, last, true)?;
        }
        for (offset, text) in changes {
            let at = self.start + PREFIX_BYTES + *offset as u64;
            self.output.replace(at, text.as_bytes())?;
            self.head[*offset..*offset + text.len()].copy_from_slice(text.as_bytes());
        }
        let mut crc = Crc::new();
        crc.update(&self.head);
        crc.combine(&self.crc);
        self.output.write(&crc.sum().to_le_bytes())?;
        self.output.write(&crc.amount().to_le_bytes())
    }
}

/// Bytes that do not shrink, such as those of pictures, are stored.
fn decide(bytes: &[u8], deflate: &mut Compress) -> Coding {
    let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
    let mut packed = Vec::with_capacity(probe.len() + 64);
    deflate.reset();
    let ended = deflate.compress_vec(probe, &mut packed, FlushCompress::Finish);
    deflate.reset();
    if matches!(ended, Ok(Status::StreamEnd)) && packed.len() < probe.len() / 20 * 19 {
        Coding::Deflate
    } else {
        Coding::Stored
    }
}

/// A block without compression (RFC 1951, 3.2.4).
fn stored(output: &mut Output, bytes: &[u8], is_last: bool) -> io::Result<()> {
    let length = bytes.len() as u16;
    output.write(&[u8::from(is_last)])?;
    output.write(&length.to_le_bytes())?;
    output.write(&(!length).to_le_bytes())?;
    output.write(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::noise;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn members_have_the_changed_head() {
        let text = b"the same words ".repeat(20_000);
        let noise = noise(200_000);
        for body in [&b""[..], b"short", &text, &noise] {
            for head_length in [40, 70_000, 200_000] {
                let file = Arc::new(tempfile::tempfile().unwrap());
                let mut output = Output::new(Arc::clone(&file), 7);
                let mut head = vec![b'h'; head_length];
                let mut member = Member::begin(&mut output, head.clone()).unwrap();
                for piece in body.chunks(10_000) {
                    member.write(piece).unwrap();
                }
                member.finish(b"\r\n", &[(3, "abc".to_owned())]).unwrap();
                output.flush().unwrap();
                head[3..6].copy_from_slice(b"abc");
                let mut packed = vec![0; (output.position() - 7) as usize];
                file.read_exact_at(&mut packed, 7).unwrap();
                let mut content = Vec::new();
                GzDecoder::new(&packed[..]).read_to_end(&mut content).unwrap();
                assert!(content == [&head[..], body, b"\r\n"].concat());
                assert_eq!(packed.len() < 100_000 + head_length, body != noise);
            }
        }
    }
}
