//! Bodies that are being received: in memory while they are short, then in files without a name.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a body that are kept in memory.
const MEMORY_MAX_BYTES: usize = 100 << 10;

#[derive(Default)]
pub struct Spool {
    memory: Vec<u8>,
    /// Has all of the body, once it exists.
    file: Option<File>,
    length: u64,
}

impl Spool {
    /// Adds bytes. The file, if it needs one, is made in `directory` and is gone with its last
    /// descriptor.
    pub fn append(&mut self, bytes: &[u8], directory: &Path) -> io::Result<()> {
        if self.file.is_none() && self.memory.len() + bytes.len() > MEMORY_MAX_BYTES {
            let mut file = unnamed(directory)?;
            file.write_all(&std::mem::take(&mut self.memory))?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The first `length` bytes of a file that is complete.
    pub fn of(file: File, length: u64) -> Spool {
        Spool { memory: Vec::new(), file: Some(file), length }
    }

    /// Bytes of the body.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn into_reader(self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self.file {
            Some(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                // A failed write may have left more than what counts.
                Box::new(file.take(self.length))
            }
            None => Box::new(Cursor::new(self.memory)),
        })
    }
}

fn unnamed(directory: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_TMPFILE)
        .mode(0o600)
        .open(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_any_length_are_read_as_they_were_added() {
        let top = tempfile::tempdir().unwrap();
        for length in [0, 1, MEMORY_MAX_BYTES, MEMORY_MAX_BYTES + 1, 3 * MEMORY_MAX_BYTES] {
            let whole: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let mut spool = Spool::default();
            for piece in whole.chunks(40_000) {
                spool.append(piece, top.path()).unwrap();
            }
            assert!(spool.memory.len() <= MEMORY_MAX_BYTES);
            assert_eq!(spool.length(), length as u64);
            let mut read = Vec::new();
            spool.into_reader().unwrap().read_to_end(&mut read).unwrap();
            assert!(read == whole, "{length}");
        }
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
