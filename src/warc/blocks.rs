//! Bytes from the middle of a gzip member, without reading what precedes them.

use crate::source::Part;
use std::io::{self, Read};

/// Bytes of the header of a member without optional fields (RFC 1952, 2.3).
const HEADER_BYTES: u64 = 10;
/// Bytes of the head of a block without compression, which begins at a whole byte (RFC 1951, 3.2.4).
const HEAD_BYTES: u64 = 5;

/// The body of a record. What has a compression of its own, such as video, is written in blocks
/// without compression, whose places follow from their lengths.
pub struct Blocks {
    member: Part,
    /// Offset of the body in the content of the member.
    begin: u64,
}

impl Blocks {
    /// The bytes of a member after the first `begin` of its content.
    pub(crate) fn new(member: Part, begin: u64) -> Blocks {
        Blocks { member, begin }
    }

    /// Returns `length` bytes from an offset in the body on; `None` if a byte up to their end is
    /// compressed, or does not exist. Takes one read(2) for each 64 KiB up to there. The sum of the
    /// member is not compared.
    ///
    /// # Errors
    /// If read(2) fails.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let header: [u8; HEADER_BYTES as usize] = match self.head(0)? {
            Some(header) => header,
            None => return Ok(None),
        };
        if header[..4] != [0x1f, 0x8b, 8, 0] {
            return Ok(None);
        }
        let from = self.begin.saturating_add(offset);
        let to = from.saturating_add(length as u64);
        let mut found = Vec::new();
        // Places of the block in the member, and of its bytes in the content.
        let (mut place, mut at) = (HEADER_BYTES, 0_u64);
        while at < to {
            let Some([kind, low, high, not_low, not_high]) = self.head(place)? else {
                return Ok(None);
            };
            let count = u16::from_le_bytes([low, high]);
            let is_stored = kind & 0b110 == 0 && !count == u16::from_le_bytes([not_low, not_high]);
            if !is_stored {
                return Ok(None);
            }
            let end = at + u64::from(count);
            if end > from {
                let skipped = from.saturating_sub(at);
                let wanted = end.min(to) - at - skipped;
                let bytes = place + HEAD_BYTES + skipped;
                let before = found.len();
                self.member.slice(bytes, wanted).read_to_end(&mut found)?;
                if (found.len() - before) as u64 != wanted {
                    return Ok(None);
                }
            }
            let is_last = kind & 1 == 1;
            if is_last && end < to {
                return Ok(None);
            }
            place += HEAD_BYTES + u64::from(count);
            at = end;
        }
        Ok(Some(found))
    }

    fn head<const N: usize>(&self, place: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        match self.member.slice(place, N as u64).read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{Member, Output};
    use crate::sample::noise;
    use proptest::prelude::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    const HEAD: &[u8] = b"WARC/1.1 head\r\n\r\n";

    fn file() -> Arc<File> {
        Arc::new(tempfile::tempfile().unwrap())
    }

    /// The blocks of a member with this body, as recordings have it.
    fn written(body: &[u8]) -> Blocks {
        let file = file();
        let mut output = Output::new(Arc::clone(&file), 0);
        let mut member = Member::begin(&mut output, HEAD.to_vec()).unwrap();
        for piece in body.chunks(64 << 10) {
            member.write(piece).unwrap();
        }
        member.finish(b"\r\n\r\n", &[]).unwrap();
        output.flush().unwrap();
        let end = output.position();
        Blocks::new(Part::new(&file, 0, end), HEAD.len() as u64)
    }

    #[test]
    fn bytes_of_a_body_that_does_not_shrink_are_found() {
        let body = noise(300_000);
        let blocks = written(&body);
        for (offset, length) in [(0, 1), (0, 300_000), (65_530, 20), (131_071, 70_000)] {
            let found = blocks.read(offset as u64, length).unwrap().unwrap();
            assert!(found == body[offset..offset + length], "{offset} {length}");
        }
        let end = body.len() as u64 + 4;
        assert_eq!(blocks.read(end - 4, 4).unwrap().unwrap(), b"\r\n\r\n");
        assert_eq!(blocks.read(end - 3, 4).unwrap(), None);
        assert_eq!(blocks.read(u64::MAX, usize::MAX).unwrap(), None);
    }

    #[test]
    fn compressed_body_is_left_to_the_decoder() {
        let blocks = written(&b"the same words ".repeat(20_000));
        assert_eq!(blocks.read(0, 10).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>, offset: u64, length in 0_usize..100_000) {
            let file = file();
            let member = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], &bytes[..]].concat();
            file.write_all_at(&member, 0).unwrap();
            let blocks = Blocks::new(Part::new(&file, 0, member.len() as u64), 0);
            for offset in [0, offset % 100, offset] {
                let found = blocks.read(offset, length).unwrap();
                prop_assert!(found.is_none_or(|found| found.len() == length));
            }
        }
    }
}
