//! The operations that every kind of store has. Names have slashes and are below the location.

mod directory;
mod remote;

use crate::failure::{Result, TransferFailure};
use archivist_core::store::Location;
use std::io::{self, Read, Write};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Name without directories.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
}

pub type Content<'c> = &'c mut dyn FnMut(&mut dyn Write) -> Result<()>;
pub type Reader<'r> = &'r mut dyn FnMut(&mut dyn Read) -> Result<()>;

pub trait Store {
    /// Returns the files in a directory; a missing directory has none.
    ///
    /// # Errors
    /// If the store cannot be reached.
    fn list(&self, directory: &str) -> Result<Vec<StoredEntry>>;
    /// Whether [`Store::write`] keeps the bytes of a file that exists, and writes the missing ones.
    /// Otherwise it writes all.
    fn resumes(&self) -> bool;
    /// Whether it is a directory of this machine.
    fn is_mounted(&self) -> bool {
        false
    }
    /// Writes a file and waits until the store has it. `size` is that of the content, in bytes.
    fn write(&self, name: &str, size: u64, content: Content<'_>) -> Result<()>;
    /// Reads a file from the store, not from a cache.
    fn read(&self, name: &str, reader: Reader<'_>) -> Result<()>;
    /// Renames a file within its directory: the new name is complete or missing.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    fn remove(&self, name: &str) -> Result<()>;
}

pub fn open(location: &str) -> Result<Box<dyn Store>> {
    match Location::parse(location) {
        Some(Location::Directory(path)) => Ok(Box::new(directory::Directory::open(path)?)),
        Some(Location::Ssh(ssh)) => Ok(Box::new(remote::Remote::ssh(&ssh)?)),
        Some(Location::S3(s3)) => Ok(Box::new(remote::Remote::s3(&s3)?)),
        None => Err(TransferFailure::new(format!("'{location}' is not a store"))),
    }
}

/// Splits a name into its directory, which may be empty, and its file.
pub fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// A writer that keeps the first error of the stream behind it. What wrote through it reports a
/// consequence, such as a broken archive.
pub struct Watched<W> {
    inner: W,
    /// The first error.
    pub error: Option<io::Error>,
}

impl<W> Watched<W> {
    pub fn new(inner: W) -> Watched<W> {
        Watched { inner, error: None }
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.inner.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                let copy = match error.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(error.kind(), error.to_string()),
                };
                self.error.get_or_insert(error);
                Err(copy)
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
