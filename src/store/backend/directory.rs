//! A directory as a store. It may be on a network file system: no owners are changed, no links made,
//! and only a rename within one directory is atomic.

use super::{Content, Entry, Reader, Store, Watched, split};
use crate::failure::{Failure, Result, at};
use crate::files;
use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A store in a directory of this machine.
pub struct Directory {
    root: PathBuf,
}

/// Bytes per write, so that a network file system gets large requests.
const CHUNK_BYTES: usize = 1 << 20;

impl Directory {
    /// Opens the store at `root`, which is not created: a file system that is not mounted would be
    /// mistaken for an empty store.
    pub fn open(root: PathBuf) -> Result<Directory> {
        match fs::metadata(&root) {
            Ok(about) if about.is_dir() => Ok(Directory { root }),
            Ok(_) => Err(Failure::new(format!(
                "failed to open store '{}': it is not a directory",
                root.display()
            ))),
            Err(error) => Err(at("open store", &root)(error)),
        }
    }
}

/// Moves to the end of a file that an interrupted transfer began, and returns its size in bytes. One
/// that is longer than the content becomes empty.
fn seek_to_end(mut file: &File, size: u64) -> io::Result<u64> {
    match file.seek(SeekFrom::End(0))? {
        kept if kept <= size => Ok(kept),
        _ => {
            file.set_len(0)?;
            file.rewind()?;
            Ok(0)
        }
    }
}

/// Writes what follows the bytes that the file has.
struct Rest<W> {
    inner: W,
    kept: u64,
}

impl<W: Write> Write for Rest<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kept == 0 {
            return self.inner.write(bytes);
        }
        let skipped = bytes
            .len()
            .min(usize::try_from(self.kept).unwrap_or(usize::MAX));
        self.kept -= skipped as u64;
        Ok(skipped)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Store for Directory {
    fn list(&self, directory: &str) -> Result<Vec<Entry>> {
        let path = self.root.join(directory);
        let list = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            list => list.map_err(at("list", &path))?,
        };
        let mut entries = Vec::new();
        for entry in list {
            let entry = entry.map_err(at("list", &path))?;
            let about = entry.metadata().map_err(at("list", &path))?;
            if about.is_file() {
                entries.push(Entry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    size: about.len(),
                });
            }
        }
        Ok(entries)
    }

    fn resumes(&self) -> bool {
        true
    }

    fn write(&self, name: &str, size: u64, content: Content<'_>) -> Result<()> {
        let path = self.root.join(name);
        let parent = self.root.join(split(name).0);
        DirBuilder::new()
            .recursive(true)
            .create(&parent)
            .map_err(at("create", &parent))?;
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&path)
            .map_err(at("create", &path))?;
        let kept = seek_to_end(&file, size).map_err(at("read", &path))?;
        let buffer = BufWriter::with_capacity(CHUNK_BYTES, &file);
        let mut writer = Watched::new(Rest {
            inner: buffer,
            kept,
        });
        let written =
            content(&mut writer).and_then(|()| writer.flush().map_err(at("write", &path)));
        if let Some(error) = writer.error.take() {
            return Err(at("write", &path)(error));
        }
        drop(writer);
        written?;
        file.sync_all().map_err(at("write", &path))
    }

    fn read(&self, name: &str, reader: Reader<'_>) -> Result<()> {
        let path = self.root.join(name);
        let mut file = File::open(&path).map_err(at("read", &path))?;
        // The content must come from the disk or the server.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        reader(&mut file)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.root.join(to);
        fs::rename(self.root.join(from), &path).map_err(at("create", &path))?;
        let parent = self.root.join(split(to).0);
        files::sync(&parent).map_err(at("write", &parent))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        files::remove(&path).map_err(at("remove", &path))
    }
}
