//! The highest ids, as empty files in the archive. Whichever database is used with the archive next, its
//! orchestrator finds there which ids it must not hand out again: an older copy of the database, a new
//! one, or that of a second data directory.
//!
//! Workers write the marks, because the orchestrator cannot write to the archive. Only names count, so
//! that no power cut leaves half a mark, and workers need no lock: each adds its mark and removes lower
//! ones. A worker writes its mark before the identity of its directory, which it syncs to disk.

use archivist_core::model::{IdMarks, Owner};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Mode of the directory, which hooks may only read.
const DIRECTORY_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;
/// Length of the name of a day, such as `20261125`.
const DAY_LENGTH: usize = 8;

/// Reads the highest ids of an archive. It costs one reading of a directory with three names. If an
/// older version made the archive, and it has no marks, the names of all hosts and pages are read
/// instead, and `progress` is called in between.
///
/// # Errors
/// If a directory cannot be read, except that of the archive itself, which may be missing.
pub fn read(archive: &Path, progress: impl FnMut()) -> io::Result<IdMarks> {
    match of_names(&names(&archive.join(IdMarks::DIRECTORY))?) {
        marks if marks == IdMarks::default() => of_directories(archive, progress),
        marks => Ok(marks),
    }
}

/// Returns the highest ids of the directories of an archive: `DAY/HOST/s345` or `DAY/HOST/c12`, also
/// with the end that a directory gets if its name is taken.
fn of_directories(archive: &Path, progress: impl FnMut()) -> io::Result<IdMarks> {
    let mut marks = IdMarks::default();
    let see = |_: &Path, name: &str| {
        if let Some(owner) = Owner::of_directory(name) {
            marks = marks.or_higher(IdMarks::of_owner(owner));
        }
    };
    each_entry(archive, see, progress)?;
    Ok(marks)
}

/// Calls `see` with the path `DAY/HOST` and the name of each entry of such a directory of an archive, or
/// of a store, which has the same layout; and `progress` after each day.
///
/// # Errors
/// If a directory cannot be read. One that is missing is empty.
pub fn each_entry(
    root: &Path,
    mut see: impl FnMut(&Path, &str),
    mut progress: impl FnMut(),
) -> io::Result<()> {
    for day in names(root)?.into_iter().filter(|name| is_day(name)) {
        for host in names(&root.join(&day))? {
            let host = Path::new(&day).join(host);
            for name in names(&root.join(&host))? {
                see(&host, &name);
            }
        }
        progress();
    }
    Ok(())
}

/// Returns whether a name in the archive is that of a day.
pub fn is_day(name: &str) -> bool {
    name.len() == DAY_LENGTH && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes those of the marks that are higher than what the archive has.
///
/// # Errors
/// If the archive cannot be read or written.
pub fn raise(archive: &Path, marks: IdMarks) -> io::Result<()> {
    let directory = make_directory(archive)?;
    let there = names(&directory)?;
    let wanted = of_names(&there).or_higher(marks).names();
    for name in wanted.iter().filter(|name| !there.contains(name)) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).mode(FILE_MODE);
        options.custom_flags(nix::libc::O_NOFOLLOW).open(directory.join(name))?;
    }
    let is_mark = |name: &str| IdMarks::of_names([name]) != IdMarks::default();
    for name in there.iter().filter(|name| is_mark(name)) {
        if wanted.contains(name) {
            continue;
        }
        match fs::remove_file(directory.join(name)) {
            // Another worker removed it.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the directory of the marks, if there is none, and returns its path.
pub(crate) fn make_directory(archive: &Path) -> io::Result<PathBuf> {
    let directory = archive.join(IdMarks::DIRECTORY);
    let mut builder = DirBuilder::new();
    match builder.mode(DIRECTORY_MODE).create(&directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(directory),
    }
}

fn of_names(names: &[String]) -> IdMarks {
    IdMarks::of_names(names.iter().map(String::as_str))
}

/// Returns the names in a directory that are UTF-8, as those of the orchestrator are; none if it is
/// missing or no directory.
///
/// # Errors
/// If it cannot be read.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, RunId, SnapshotId};

    fn marks(crawl: i64, snapshot: i64, run: i64) -> IdMarks {
        IdMarks { crawl: CrawlId(crawl), snapshot: SnapshotId(snapshot), run: RunId(run) }
    }

    fn sorted(archive: &Path) -> Vec<String> {
        let mut names = names(&archive.join(IdMarks::DIRECTORY)).unwrap();
        names.sort();
        names
    }

    #[test]
    fn marks_only_rise() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        raise(archive, marks(1, 9, 20)).unwrap();
        assert_eq!(sorted(archive), ["c1", "r20", "s9"]);
        raise(archive, marks(0, 12, 3)).unwrap();
        assert_eq!(sorted(archive), ["c1", "r20", "s12"]);
        fs::write(archive.join(".ids/README"), "of an operator").unwrap();
        raise(archive, marks(1, 3, 21)).unwrap();
        assert_eq!(sorted(archive), ["README", "c1", "r21", "s12"]);
        assert_eq!(read(archive, || ()).unwrap(), marks(1, 12, 21));
    }

    #[test]
    fn of_concurrent_workers_the_highest_mark_stays() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        std::thread::scope(|scope| {
            for n in 1..9 {
                scope.spawn(move || {
                    for run in 0..50 {
                        raise(archive, marks(n, 20 + n, 8 * run + n)).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(archive, || ()).unwrap(), marks(8, 28, 400));
    }

    #[test]
    fn directories_count_in_an_archive_without_marks() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        for page in [
            "20261124/a.test/s7",
            "20261124/a.test/c3",
            "20261125/b.test/s12-0a1b2c3d",
            "20261125/b.test/.new-00",
            ".run/c99/s99",
            "other/b.test/s50",
        ] {
            fs::create_dir_all(archive.join(page)).unwrap();
        }
        fs::write(archive.join("20261125/index.html"), "").unwrap();
        let mut days = 0;
        assert_eq!(read(archive, || days += 1).unwrap(), marks(3, 12, 0));
        assert_eq!(days, 2);
        raise(archive, marks(4, 13, 1)).unwrap();
        assert_eq!(read(archive, || days += 1).unwrap(), marks(4, 13, 1));
        assert_eq!(days, 2, "with marks, no other directory is read");
        assert_eq!(read(&archive.join("missing"), || ()).unwrap(), IdMarks::default());
    }
}
