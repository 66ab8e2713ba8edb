//! Copies files of other programs to the archive. They are hostile: no link is followed, and only regular files
//! and directories are copied.

use crate::client::owner::as_owner;
use archivist_core::model::{ResultState, Time, Verdict};
use archivist_plugin::Directory;
use archivist_plugin::files;
use archivist_plugin::files::beneath::{is_file, is_foreign_link};
use archivist_shared::staged::{RECORD, SAVED_HOOK, StagedPage, StagedResult};
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Plugin of what belongs to no result, and of the files about the page.
pub const REST: &str = "import";
/// Mode of the directories of plugins, to which hooks may write, as in that of a page.
pub const PLUGIN_MODE: u32 = 0o770;
pub const DIRECTORY_MODE: u32 = 0o750;
pub const FILE_MODE: u32 = 0o640;
/// Entries of one snapshot that are copied.
const ENTRIES_MAX: u64 = 200_000;
/// Levels of directories that are copied.
const DEPTH_MAX: usize = 60;
/// Faults that are kept as texts.
const FAULTS_MAX: usize = 20;
/// Name of the file with the output of a hook.
const OUTPUT: &str = "stdout.log";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub files: u64,
    pub bytes: u64,
    /// Links, devices and pipes, which are left out.
    pub left_out: u64,
    /// Files that cannot be read.
    pub damaged: u64,
    /// Names of the first of both, with reasons.
    pub faults: Vec<String>,
    pub by_plugin: BTreeMap<String, u64>,
    /// Plugins of which a file could not be read.
    pub broken: BTreeSet<String>,
    entries: u64,
}

impl Tally {
    pub fn damaged(&mut self, path: &str, error: &io::Error) {
        self.damaged += 1;
        self.fault(path, &error.to_string());
    }

    pub fn left_out(&mut self, path: &str, why: &str) {
        self.left_out += 1;
        self.fault(path, why);
    }

    fn fault(&mut self, path: &str, why: &str) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("{path}: {why}"));
        }
    }
}

/// The directory in the archive that gets the files of a snapshot.
pub struct Target<'a> {
    /// Root directory of the archive, whose owner gets the files.
    pub archive: &'a Path,
    pub directory: &'a Directory,
}

/// Writes what hooks of other plugins read of a success: the last line of the output of its hook.
pub fn write_records(page: &StagedPage, target: &Target<'_>) -> io::Result<()> {
    for result in &page.results {
        let succeeded = result.verdict.state == ResultState::Succeeded;
        let output = result.output.as_deref().unwrap_or_default();
        let Some(path) = output.strip_prefix(&format!("{}/", result.plugin)) else {
            continue;
        };
        if !succeeded || !result.has_files {
            continue;
        }
        let record = json!({"type": "ArchiveResult", "status": "succeeded", "output_str": path});
        let directory = make(target, OsStr::new(&result.plugin), PLUGIN_MODE)?;
        as_owner(target.archive, || {
            match directory.create(OUTPUT, FILE_MODE) {
                // Versions since 0.9 have one of their own.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                file => writeln!(file?, "{record}"),
            }
        })?;
    }
    Ok(())
}

/// Writes the record of a page, which its worker reads, and, unless its hook does so, what is known of its
/// origin, for a reader of the archive: a file of this name.
///
/// # Errors
/// If the archive cannot be written.
pub fn finish(
    page: &StagedPage,
    origin: Option<(&str, &serde_json::Value)>,
    target: &Target<'_>,
) -> io::Result<()> {
    let page = serde_json::to_vec(page)?;
    if let Some((name, origin)) = origin {
        let rest = make(target, OsStr::new(REST), PLUGIN_MODE)?;
        as_owner(target.archive, || {
            let mut file = rest.create(name, FILE_MODE)?;
            file.write_all(format!("{origin:#}\n").as_bytes())
        })?;
    }
    as_owner(target.archive, || {
        // The record is written last: without it, no worker takes anything.
        let mut record = target.directory.create(RECORD, FILE_MODE)?;
        record.write_all(&page)
    })
}

/// Copies what a directory has. `depth` is its number of directories above it.
///
/// # Errors
/// If the archive cannot be written.
pub fn copy_content(
    source: &Directory,
    target: Option<&Target<'_>>,
    depth: usize,
    tally: &mut Tally,
) -> io::Result<()> {
    let names = match source.names() {
        Ok(names) => names,
        Err(error) => {
            tally.damaged(&source.path().to_string_lossy(), &error);
            return Ok(());
        }
    };
    for name in names {
        copy(source, &name, target, depth, tally)?;
    }
    Ok(())
}

/// Copies an entry of a directory, with all that it has.
///
/// # Errors
/// If the archive cannot be written.
pub fn copy(
    source: &Directory,
    name: &OsStr,
    target: Option<&Target<'_>>,
    depth: usize,
    tally: &mut Tally,
) -> io::Result<()> {
    let path = source.path().join(name);
    let shown = path.to_string_lossy();
    tally.entries += 1;
    if tally.entries > ENTRIES_MAX || depth > DEPTH_MAX {
        tally.left_out(&shown, "too many files or levels");
        return Ok(());
    }
    let found = match source.stat(name) {
        Ok(found) => found,
        Err(error) => {
            tally.damaged(&shown, &error);
            return Ok(());
        }
    };
    if is_file(&found) {
        return match copy_file(source, name, target) {
            Ok(Some(bytes)) => {
                tally.files += 1;
                tally.bytes += bytes;
                Ok(())
            }
            Ok(None) => {
                tally.left_out(&shown, "a hard link to a file of another user");
                Ok(())
            }
            Err(error) if is_of_archive(&error) => Err(error),
            Err(error) => {
                tally.damaged(&shown, &error);
                Ok(())
            }
        };
    }
    if found.st_mode & S_IFMT != S_IFDIR {
        let is_link = found.st_mode & S_IFMT == S_IFLNK;
        tally.left_out(&shown, if is_link { "a symbolic link" } else { "no regular file" });
        return Ok(());
    }
    let inner = match source.enter(name) {
        Ok(inner) => inner,
        Err(error) => {
            tally.damaged(&shown, &error);
            return Ok(());
        }
    };
    let Some(target) = target else {
        return copy_content(&inner, None, depth + 1, tally);
    };
    let directory = make(target, name, DIRECTORY_MODE)?;
    let into = Target { archive: target.archive, directory: &directory };
    copy_content(&inner, Some(&into), depth + 1, tally)
}

/// Copies a file with its time, and returns its size. `None` for the file of another user.
fn copy_file(
    source: &Directory,
    name: &OsStr,
    target: Option<&Target<'_>>,
) -> io::Result<Option<u64>> {
    let file = source.read(name)?;
    if is_foreign_link(&file, source)? {
        return Ok(None);
    }
    let Some(target) = target else {
        return Ok(Some(file.metadata()?.len()));
    };
    copy_open(&file, name, target).map(Some)
}

/// Copies an open file from where it is, as [`copy_file`].
pub fn copy_open(file: &File, name: &OsStr, target: &Target<'_>) -> io::Result<u64> {
    let metadata = file.metadata()?;
    as_owner(target.archive, || {
        let copy = target.directory.create_for_writing(name, FILE_MODE)?;
        match files::copy::copy(file, &copy) {
            Ok(bytes) => {
                copy.set_modified(metadata.modified()?)?;
                Ok(bytes)
            }
            Err(error) => {
                target.directory.unlink(name)?;
                Err(error)
            }
        }
    })
}

/// Whether the archive cannot be written, so that no other file can.
fn is_of_archive(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
    )
}

/// Makes a directory, unless it is there, and opens it.
pub fn make(target: &Target<'_>, name: &OsStr, mode: u32) -> io::Result<Directory> {
    as_owner(target.archive, || match target.directory.make(name, mode) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => target.directory.enter(name),
    })
}

/// The result of a page that another program saved.
pub fn result(plugin: &str, output: String, time: Option<Time>) -> StagedResult {
    StagedResult {
        plugin: plugin.to_owned(),
        hook: SAVED_HOOK.to_owned(),
        verdict: Verdict { state: ResultState::Succeeded, error: None },
        output: Some(output),
        started_at: time,
        ended_at: time,
        has_files: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, chown, geteuid};

    #[test]
    fn hard_links_to_files_of_other_users_are_left_out() {
        if !geteuid().is_root() {
            println!("skipped: only root makes files of other users");
            return;
        }
        let top = tempfile::tempdir().unwrap();
        let [secret, tree, into] = ["secret", "tree", "into"].map(|name| top.path().join(name));
        std::fs::write(&secret, "of root").unwrap();
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&into).unwrap();
        std::fs::hard_link(&secret, tree.join("linked.txt")).unwrap();
        std::fs::write(tree.join("own.txt"), "own").unwrap();
        std::fs::hard_link(tree.join("own.txt"), tree.join("twice.txt")).unwrap();
        let user = Some(Uid::from_raw(3_000_000));
        for path in [&tree, &tree.join("own.txt")] {
            chown(path, user, None).unwrap();
        }
        let (source, directory) =
            (Directory::open(&tree).unwrap(), Directory::open(&into).unwrap());
        let target = Target { archive: &into, directory: &directory };
        let mut tally = Tally::default();
        copy_content(&source, Some(&target), 0, &mut tally).unwrap();
        assert_eq!((tally.files, tally.left_out), (2, 1), "{tally:?}");
        assert!(tally.faults[0].ends_with("linked.txt: a hard link to a file of another user"));
        assert!(into.join("own.txt").exists() && into.join("twice.txt").exists());
        assert!(!into.join("linked.txt").exists());
    }
}
