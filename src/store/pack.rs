//! Packs the directory of a snapshot into a tar archive. The same files give the same bytes: names in
//! order, no owners, no time of packing. The last entry is a manifest that sha256sum(1) checks.

use crate::digest::Summed;
use crate::failure::{Result, TransferFailure, at};
use archivist_core::store::is_reserved;
use archivist_plugin::Directory;
use archivist_plugin::files::tidy::{Beyond, relative_target};
use archivist_plugin::files::walk::{EntryKind, Walk, WalkBounds, WalkEntry, WalkStep};
use nix::fcntl::readlinkat;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Permissions that an archive keeps.
const MODE_KEPT: u32 = 0o666;
const MODE_OF_DIRECTORIES: u32 = 0o770;

/// Writes the archive of a directory, whose entries begin with the last part of its path. Returns what it leaves
/// out because no sealed snapshot can have it; older versions left such directories.
///
/// # Errors
/// If a file cannot be read, or changes its size meanwhile. Sockets, pipes and devices, which no
/// sealed snapshot has, are left out, and so are names of transfers.
pub fn pack(directory: &Path, to: impl Write) -> Result<Beyond> {
    let top = directory.file_name().map(PathBuf::from);
    let top = top.ok_or_else(|| TransferFailure::new("failed to pack '/': it is no snapshot"))?;
    let mut packer = Packer { tar: Builder::new(to), manifest: Vec::new() };
    packer.directory(&top)?;
    let opened = Directory::open(directory).and_then(|own| Walk::new(&own, WalkBounds::SEALED));
    let mut walk = opened.map_err(at("read", directory))?;
    let mut beyond = Beyond::default();
    while let Some(step) = walk.step() {
        match step {
            WalkStep::Enter(found) | WalkStep::Leaf(found)
                if found.below().iter().next().is_some_and(is_reserved) => {}
            WalkStep::Enter(found) => packer.directory(&top.join(found.below()))?,
            WalkStep::Leaf(entry) => packer.leaf(directory, &top, &entry)?,
            WalkStep::Missed { path, .. } if path.iter().next().is_some_and(is_reserved) => {}
            WalkStep::Missed { path, why, .. } if why.is_beyond_depth() => beyond.note(path),
            WalkStep::Missed { path, why, .. } => {
                let error = std::io::Error::other(why.to_string());
                return Err(at("read", &directory.join(path))(error));
            }
            WalkStep::Leave => {}
        }
    }
    packer.finish(&top)?;
    Ok(beyond)
}

struct Packer<W: Write> {
    tar: Builder<W>,
    manifest: Vec<u8>,
}

fn header(kind: EntryType, mode: u32, mtime: i64, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(mtime).unwrap_or(0));
    header.set_size(size);
    header
}

/// The error of the archive, which is that of the stream behind it.
fn not_written(error: std::io::Error) -> TransferFailure {
    TransferFailure::new(format!("failed to write the archive: {error}"))
}

impl<W: Write> Packer<W> {
    /// Without its time, which changes with the files that are restored in it.
    fn directory(&mut self, name: &Path) -> Result<()> {
        // A trailing slash makes tar(1) and others see a directory.
        let mut name = name.as_os_str().to_owned();
        name.push("/");
        let mut header = header(EntryType::Directory, MODE_OF_DIRECTORIES, 0, 0);
        self.tar.append_data(&mut header, name, std::io::empty()).map_err(not_written)
    }

    fn leaf(&mut self, page: &Path, top: &Path, entry: &WalkEntry<'_>) -> Result<()> {
        let (path, name) = (page.join(entry.below()), top.join(entry.below()));
        match entry.kind {
            EntryKind::Link => self.link(page, &path, &name, entry),
            EntryKind::File => self.file(&path, &name, entry),
            EntryKind::Directory | EntryKind::Special => Ok(()),
        }
    }

    /// A target that is an absolute path of a file of the page becomes a relative one, which is right
    /// wherever the page is restored.
    fn link(&mut self, page: &Path, path: &Path, name: &Path, entry: &WalkEntry<'_>) -> Result<()> {
        let target = readlinkat(entry.dir, entry.name).map_err(std::io::Error::from);
        let target = PathBuf::from(target.map_err(at("read", path))?);
        let Some(target) = relative_target(page, entry.depth, &target) else {
            return Err(TransferFailure::new(format!(
                "failed to copy '{}': the link leads out of the page",
                path.display()
            )));
        };
        let mut header = header(EntryType::Symlink, MODE_KEPT, 0, 0);
        self.tar.append_link(&mut header, name, target).map_err(not_written)
    }

    fn file(&mut self, path: &Path, name: &Path, entry: &WalkEntry<'_>) -> Result<()> {
        let file = entry.dir.read(entry.name).map_err(at("read", path))?;
        let size = entry.size();
        let mode = entry.stat.st_mode & MODE_KEPT;
        let mut header = header(EntryType::Regular, mode, entry.stat.st_mtime, size);
        let mut content = Summed::new(file.take(size));
        self.tar.append_data(&mut header, name, &mut content).map_err(not_written)?;
        let sum = content.sum();
        if sum.size != size {
            let path = path.display();
            return Err(TransferFailure::new(format!(
                "failed to read '{path}': it became shorter meanwhile"
            )));
        }
        self.manifest.extend(line(&sum.sha256, name));
        Ok(())
    }

    fn finish(mut self, top: &Path) -> Result<()> {
        let mut name = top.as_os_str().to_owned();
        name.push(".sha256");
        let size = self.manifest.len() as u64;
        let mut header = header(EntryType::Regular, 0o644, 0, size);
        self.tar.append_data(&mut header, name, &self.manifest[..]).map_err(not_written)?;
        let mut inner = self.tar.into_inner().map_err(not_written)?;
        inner.flush().map_err(not_written)
    }
}

/// A line of sha256sum(1), which escapes names with a newline or a backslash.
fn line(sha256: &str, name: &Path) -> Vec<u8> {
    let name = name.as_os_str().as_bytes();
    let is_escaped = name.iter().any(|byte| b"\n\r\\".contains(byte));
    let mut line = Vec::new();
    if is_escaped {
        line.push(b'\\');
    }
    line.extend(sha256.bytes());
    line.extend(b"  ");
    for byte in name {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            b'\\' => line.extend(br"\\"),
            other => line.push(*other),
        }
    }
    line.push(b'\n');
    line
}
