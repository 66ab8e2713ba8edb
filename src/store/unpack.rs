//! Restores the files of an archive below a directory. The archive comes from the store, which may be
//! in other hands: only the types of entries that [`crate::pack`] writes are accepted, names and links
//! that lead out of the page are refused, no link is followed, and memory does not depend on what a
//! header says.

use crate::failure::{Result, TransferFailure, at};
use archivist_core::store::is_reserved;
use archivist_plugin::Directory;
use archivist_plugin::files::tidy::relative_target;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use tar::{Archive, Entry, EntryType};

/// Longest name and longest target of a link, in bytes: PATH_MAX of Linux, which bounds what can be
/// packed.
const NAME_BYTES_MAX: u64 = 4096;
/// Permissions of a restored directory, less the umask.
const MODE_OF_DIRECTORIES: u32 = 0o777;
/// Permissions that a restored file may have.
const MODE_KEPT: u32 = 0o666;

/// Restores the entries of an archive whose first part is `top`, without it, below `directory`, which
/// must be empty. The manifest is not restored: the sum of the whole archive says more.
///
/// # Errors
/// If the archive has an entry that no archive of a page has. What was restored before it stays, so
/// the caller removes `directory`.
pub fn unpack(archive: impl Read, top: &str, directory: &Directory) -> Result<()> {
    let mut archive = Archive::new(archive);
    let mut restored = Restored { directory, top, parent: None };
    // The name and the target that the entries before a file say; the crate would read them whole.
    let (mut long_name, mut long_target) = (None, None);
    for entry in archive.entries().map_err(bad)?.raw(true) {
        let mut entry = entry.map_err(bad)?;
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                long_name = Some(long(&mut entry)?);
                continue;
            }
            EntryType::GNULongLink => {
                long_target = Some(long(&mut entry)?);
                continue;
            }
            _ => {}
        }
        let own = || OsStr::from_bytes(&entry.header().path_bytes()).to_owned();
        let name = PathBuf::from(long_name.take().unwrap_or_else(own));
        let own = || {
            let target = entry.header().link_name_bytes().unwrap_or_default();
            OsStr::from_bytes(&target).to_owned()
        };
        let target = long_target.take().unwrap_or_else(own);
        restored.add(&mut entry, &name, &target)?;
    }
    Ok(())
}

fn bad(error: io::Error) -> TransferFailure {
    TransferFailure::new(format!("failed to read the archive: {error}"))
}

fn refused(name: &Path, why: &str) -> TransferFailure {
    let name = name.display();
    TransferFailure::differs(format!("failed to restore '{name}': {why}"))
}

/// Reads the name that is the content of an entry.
fn long(entry: &mut Entry<'_, impl Read>) -> Result<OsString> {
    if entry.size() > NAME_BYTES_MAX + 1 {
        let size = entry.size();
        return Err(TransferFailure::differs(format!(
            "failed to read the archive: a name has {size} bytes, at most {NAME_BYTES_MAX} are accepted"
        )));
    }
    let mut name = Vec::new();
    entry.read_to_end(&mut name).map_err(bad)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(OsString::from_vec(name))
}

struct Restored<'d> {
    directory: &'d Directory,
    top: &'d str,
    /// The directory of the last entry, which is that of the next one in most cases, and its path.
    parent: Option<(PathBuf, Directory)>,
}

impl Restored<'_> {
    fn add(&mut self, entry: &mut Entry<'_, impl Read>, name: &Path, target: &OsStr) -> Result<()> {
        let kind = entry.header().entry_type();
        let Some(below) = below(name, self.top)? else {
            return Ok(());
        };
        let Some(last) = below.file_name() else {
            return match kind {
                EntryType::Directory => Ok(()),
                _ => Err(refused(name, "the page itself is not a directory")),
            };
        };
        let path = self.directory.path().join(&below);
        let parents = below.parent().unwrap_or(Path::new(""));
        match kind {
            EntryType::Directory => {
                let parent = self.parent(parents)?;
                let made = parent.make(last, MODE_OF_DIRECTORIES);
                made.map_err(at("create", &path))
            }
            EntryType::Symlink => {
                let depth = parents.components().count();
                let to = Path::new(target);
                if to.is_absolute() || relative_target(Path::new("/"), depth, to).is_none() {
                    return Err(refused(name, "the link leads out of the page"));
                }
                let made = self.parent(parents)?.make_link(last, target);
                made.map_err(at("create", &path))
            }
            EntryType::Regular => {
                let mode = entry.header().mode().map_err(bad)? & MODE_KEPT;
                let mtime = entry.header().mtime().map_err(bad)?;
                let created = self.parent(parents)?.create(last, mode);
                let mut file = created.map_err(at("create", &path))?;
                let size = entry.size();
                if io::copy(entry, &mut file).map_err(at("write", &path))? != size {
                    return Err(bad(io::ErrorKind::UnexpectedEof.into()));
                }
                let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(mtime));
                match time {
                    Some(time) => file.set_modified(time).map_err(at("write", &path)),
                    None => Ok(()),
                }
            }
            other => {
                let why = format!("entries of type {} are not accepted", other.as_byte());
                Err(refused(name, &why))
            }
        }
    }

    /// Opens the directory `path` one part at a time, so that no link is followed.
    fn parent(&mut self, path: &Path) -> Result<&Directory> {
        if path.as_os_str().is_empty() {
            return Ok(self.directory);
        }
        if self.parent.as_ref().is_none_or(|(known, _)| known != path) {
            let mut opened: Option<Directory> = None;
            for part in path {
                let from = opened.as_ref().unwrap_or(self.directory);
                let full = from.path().join(part);
                opened = Some(from.enter(part).map_err(at("open", &full))?);
            }
            self.parent = opened.map(|directory| (path.to_owned(), directory));
        }
        Ok(self.parent.as_ref().map_or(self.directory, |(_, directory)| directory))
    }
}

/// The path below `top`; `None` for the manifest.
fn below(name: &Path, top: &str) -> Result<Option<PathBuf>> {
    let mut parts = name.components();
    let first = parts.next();
    let rest = parts.as_path().to_owned();
    let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    let is_taken = rest.iter().next().is_some_and(is_reserved);
    match first {
        Some(Component::Normal(first)) if first == top && is_plain && !is_taken => Ok(Some(rest)),
        Some(Component::Normal(first))
            if rest.as_os_str().is_empty() && first == &*format!("{top}.sha256") =>
        {
            Ok(None)
        }
        _ => Err(refused(name, &format!("the archive of {top} must not contain it"))),
    }
}

#[cfg(test)]
mod tests;
