//! Output files of hooks: reads those of other hooks, and writes own ones atomically.

use super::finding::Finding;
use archivist_plugin::files::whole::{Survives, replace};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Entries of a directory among which a file with a name in another encoding is looked for.
const DIRECTORY_ENTRIES_MAX: usize = 10_000;

/// The file below `directory` that a record names. Records are text: in names in other encodings,
/// U+FFFD stands for each byte that is not UTF-8. `None` if the name leads out of the directory, or
/// if several files have it.
pub fn named(directory: &Path, name: &Path) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for part in name.components() {
        let Component::Normal(part) = part else {
            return None;
        };
        let next = path.join(part);
        let text = part.to_string_lossy();
        if !text.contains(char::REPLACEMENT_CHARACTER) || fs::symlink_metadata(&next).is_ok() {
            path = next;
            continue;
        }
        let entries = fs::read_dir(&path).ok()?.take(DIRECTORY_ENTRIES_MAX);
        let mut same = entries
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|own| own.to_string_lossy() == text);
        path = path.join(same.next()?);
        if same.next().is_some() {
            return None;
        }
    }
    Some(path)
}

/// The first `most` bytes of a regular file. `None` if the file is empty or cannot be read.
pub fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Permissions of output, less the umask.
pub const MODE: u32 = 0o666;

/// Writes a file of the output directory atomically: a run that fails leaves the previous file in
/// place. The worker brings the output of all hooks to the disk at once.
pub fn write(name: &str, bytes: &[u8]) -> Result<(), Finding> {
    replace(Path::new(name), bytes, MODE, Survives::Kill)
        .map_err(|error| Finding::failed(format!("failed to write '{name}': {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn files_with_names_in_other_encodings_are_found() {
        let top = tempfile::tempdir().unwrap();
        let file = |name: &[u8]| top.path().join("a").join(OsStr::from_bytes(name));
        fs::create_dir(top.path().join("a")).unwrap();
        fs::write(file(b"caf\xe9.html"), "x").unwrap();
        fs::write(file(b"\x93\xfa.html"), "x").unwrap();
        let find = |name: &str| named(top.path(), Path::new(name));
        assert_eq!(find("a/caf\u{fffd}.html"), Some(file(b"caf\xe9.html")));
        let both = String::from_utf8_lossy(b"a/\x93\xfa.html").into_owned();
        assert_eq!(find(&both), Some(file(b"\x93\xfa.html")));
        assert_eq!(find("a/\u{fffd}.html"), None);
        fs::write(file(b"caf\xe8.html"), "x").unwrap();
        assert_eq!(find("a/caf\u{fffd}.html"), None);
    }
}
