//! Streams that compute the SHA-256 of what passes.

use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Size and SHA-256 of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

pub struct Summed<S> {
    inner: S,
    hash: Sha256,
    size: u64,
}

impl<S> Summed<S> {
    /// Wraps a stream from which or to which nothing has passed yet.
    pub fn new(inner: S) -> Summed<S> {
        Summed { inner, hash: Sha256::new(), size: 0 }
    }

    pub fn sum(self) -> Sum {
        let hash = self.hash.finalize();
        Sum { size: self.size, sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.count(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub fn sum_of(reader: impl Read) -> io::Result<Sum> {
    let mut reader = Summed::new(reader);
    io::copy(&mut reader, &mut io::sink())?;
    Ok(reader.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_sha256sum() {
        let sum = sum_of(&b"abc"[..]).unwrap();
        assert_eq!(sum.size, 3);
        assert!(sum.sha256.starts_with("ba7816bf8f01cfea"), "{sum:?}");
        let mut writer = Summed::new(Vec::new());
        writer.write_all(b"abc").unwrap();
        assert_eq!(writer.sum(), sum);
    }
}
