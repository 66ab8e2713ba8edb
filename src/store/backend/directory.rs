//! A directory as a store. Others may write to it, so nothing in it is opened through a link, and only
//! regular files are read. It may be on a network file system: no owners are changed, no links made,
//! and only a rename within one directory is atomic.

use super::{Content, Reader, Store, StoredEntry, Watched, split};
use crate::failure::{Result, TransferFailure, at};
use archivist_plugin::Directory as Beneath;
use archivist_plugin::files::beneath::is_file;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::PathBuf;

pub struct Directory {
    root: PathBuf,
    opened: Beneath,
}

/// Bytes per write, so that a network file system gets large requests.
const CHUNK_BYTES: usize = 1 << 20;
/// Permissions of directories, less the umask.
const MODE_OF_DIRECTORIES: u32 = 0o777;
/// Permissions of objects, less the umask.
const MODE_OF_FILES: u32 = 0o666;

impl Directory {
    /// Opens the store at `root`, which is not created: a file system that is not mounted would be
    /// mistaken for an empty store.
    pub fn open(root: PathBuf) -> Result<Directory> {
        match fs::metadata(&root) {
            Ok(about) if about.is_dir() => {
                let opened = Beneath::open(&root).map_err(at("open store", &root))?;
                Ok(Directory { root, opened })
            }
            Ok(_) => Err(TransferFailure::new(format!(
                "failed to open store '{}': it is not a directory",
                root.display()
            ))),
            Err(error) => Err(at("open store", &root)(error)),
        }
    }

    /// Opens a directory below the root, one part of its name at a time.
    fn enter(&self, name: &str) -> io::Result<Beneath> {
        let mut opened = self.opened.here()?;
        for part in name.split('/').filter(|part| !part.is_empty()) {
            opened = opened.enter(part)?;
        }
        Ok(opened)
    }

    /// The same, and creates what is missing.
    fn make(&self, name: &str) -> io::Result<Beneath> {
        let mut opened = self.opened.here()?;
        for part in name.split('/').filter(|part| !part.is_empty()) {
            match opened.make(part, MODE_OF_DIRECTORIES) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => opened = opened.enter(part)?,
            }
        }
        Ok(opened)
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
        let skipped = bytes.len().min(usize::try_from(self.kept).unwrap_or(usize::MAX));
        self.kept -= skipped as u64;
        Ok(skipped)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Store for Directory {
    fn list(&self, directory: &str) -> Result<Vec<StoredEntry>> {
        let path = self.root.join(directory);
        let opened = match self.enter(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(at("list", &path))?,
        };
        let mut entries = Vec::new();
        for name in opened.names().map_err(at("list", &path))? {
            let found = match opened.stat(&name) {
                // Another transfer has renamed it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                found => found.map_err(at("list", &path))?,
            };
            if is_file(&found) {
                entries.push(StoredEntry {
                    name: name.to_string_lossy().into_owned(),
                    size: u64::try_from(found.st_size).unwrap_or(0),
                });
            }
        }
        Ok(entries)
    }

    fn resumes(&self) -> bool {
        true
    }

    fn is_mounted(&self) -> bool {
        true
    }

    fn write(&self, name: &str, size: u64, content: Content<'_>) -> Result<()> {
        let path = self.root.join(name);
        let parent = self.root.join(split(name).0);
        let (directory, file) = split(name);
        let opened = self.make(directory).map_err(at("create", &parent))?;
        // In append mode, so that what is kept is never written over.
        let file = match opened.append(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => opened.create(file, MODE_OF_FILES),
            opened => opened,
        }
        .map_err(at("create", &path))?;
        let kept = seek_to_end(&file, size).map_err(at("read", &path))?;
        let buffer = BufWriter::with_capacity(CHUNK_BYTES, &file);
        let mut writer = Watched::new(Rest { inner: buffer, kept });
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
        let (directory, file) = split(name);
        let opened = self.enter(directory).and_then(|opened| opened.read(file));
        let mut file = opened.map_err(at("read", &path))?;
        // The content must come from the disk or the server.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        reader(&mut file)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.root.join(to);
        let ((directory, old), new) = (split(from), split(to).1);
        let opened = self.enter(directory).map_err(at("create", &path))?;
        opened.rename(old, new).map_err(at("create", &path))?;
        nix::unistd::fsync(&opened).map_err(at("write", opened.path()))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        let (directory, file) = split(name);
        match self.enter(directory).and_then(|opened| opened.unlink(file)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at("remove", &path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_pipes_in_the_store_are_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("store"), place.path().join("outside"));
        fs::create_dir_all(root.join("day")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.tar"), "secret").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("a.tar"), root.join("day/a.tar")).unwrap();
        nix::unistd::mkfifo(&root.join("day/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let store = Directory::open(root).unwrap();
        for name in ["link/a.tar", "day/a.tar", "day/pipe"] {
            let read = store.read(name, &mut |_| panic!("{name} is opened"));
            read.unwrap_err();
            let written = store.write(name, 1, &mut |_| panic!("{name} is opened"));
            written.unwrap_err();
        }
        store.rename("link/a.tar", "link/b.tar").unwrap_err();
        store.remove("link/a.tar").unwrap_err();
        store.list("link").unwrap_err();
        assert_eq!(store.list("day").unwrap(), []);
        assert_eq!(fs::read(outside.join("a.tar")).unwrap(), b"secret");
    }
}
