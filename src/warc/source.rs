//! Parts of open files.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A range of a file. Readers of several parts do not disturb each other, because none moves the
/// offset of the file.
#[derive(Clone)]
pub(crate) struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Part {
    /// The range from `at` to `end`, which are offsets in the file.
    pub(crate) fn new(file: &Arc<File>, at: u64, end: u64) -> Part {
        Part { file: Arc::clone(file), at, end: end.max(at) }
    }

    /// Bytes that were not read yet.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.at
    }

    /// At most `length` bytes from an offset in this part.
    pub(crate) fn slice(&self, offset: u64, length: u64) -> Part {
        let at = self.at.saturating_add(offset).min(self.end);
        let end = at.saturating_add(length).min(self.end);
        Part::new(&self.file, at, end)
    }

    /// Whether the part starts with these bytes.
    pub(crate) fn starts_with(&self, bytes: &[u8]) -> bool {
        let mut start = vec![0; bytes.len()];
        self.clone().read_exact(&mut start).is_ok() && start == bytes
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.len()).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Counts the bytes that a reader consumes.
pub(crate) struct Counted<R> {
    pub(crate) inner: R,
    pub(crate) count: u64,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R) -> Counted<R> {
        Counted { inner, count: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count += count as u64;
        self.inner.consume(count);
    }
}

/// Reads the next line into `line`, with its end, and returns whether there is one.
///
/// # Errors
/// The reason why it cannot be read, for example because it is longer than `most` bytes.
pub(crate) fn read_line(
    content: &mut dyn BufRead,
    most: u64,
    line: &mut Vec<u8>,
) -> Result<bool, String> {
    line.clear();
    let mut limited = content.take(most);
    match limited.read_until(b'\n', line) {
        Ok(0) => Ok(false),
        Ok(_) if line.ends_with(b"\n") || limited.limit() > 0 => Ok(true),
        Ok(_) => Err(format!("longer than {most} bytes")),
        Err(error) => Err(error.to_string()),
    }
}
