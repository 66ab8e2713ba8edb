//! Makes a hook's output directory harmless: no links out of it, no programs in it.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use super::catalogue::Problem;
use super::output::{Entry, EntryKind, walk};

/// What a link that led out of the directory is replaced by: a text file of this name that holds
/// the target.
const SUFFIX: &str = ".broken-symlink.txt";

/// Replaces the links that leave `dir` by text files, and takes the execute bits off its files.
/// To be called when the hook has ended, before [`super::scan`].
///
/// What fails is survived and reported, once per kind: a hook may have locked a directory of its own,
/// and without CAP_FOWNER files of another user keep their bits.
///
/// # Errors
/// When `dir` itself cannot be opened.
pub fn tidy(dir: &Path) -> io::Result<Vec<Problem>> {
    let top = dir.canonicalize()?;
    let mut links = Failures::default();
    let mut bits = Failures::default();
    walk(&top, &mut |entry| match entry.kind {
        EntryKind::Link => links.note(&entry.path, neutralise(&top, entry)),
        EntryKind::File if entry.mode & 0o111 != 0 => bits.note(&entry.path, clear_bits(entry)),
        EntryKind::File => {}
    })?;
    Ok([
        links.report(dir, "link that leaves the directory cannot be replaced"),
        bits.report(dir, "execute bit cannot be cleared"),
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// The first failure of a kind, and how many there were.
#[derive(Default)]
struct Failures {
    first: Option<(String, io::Error)>,
    count: usize,
}

impl Failures {
    fn note(&mut self, path: &str, result: io::Result<()>) {
        if let Err(error) = result {
            self.count += 1;
            self.first.get_or_insert_with(|| (path.to_owned(), error));
        }
    }

    fn report(self, dir: &Path, what: &str) -> Option<Problem> {
        let (path, error) = self.first?;
        let more = match self.count {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Some(Problem {
            path: dir.join(path),
            what: format!("{what}: {error}{more}, ignoring"),
        })
    }
}

fn neutralise(top: &Path, entry: &Entry) -> io::Result<()> {
    let target = fs::read_link(&entry.handle)?;
    if stays_inside(top, &entry.path, &target) {
        return Ok(());
    }
    let mut name = entry.handle.file_name().unwrap_or_default().to_owned();
    name.push(SUFFIX);
    fs::remove_file(&entry.handle)?;
    let mut note = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o660)
        .open(entry.handle.with_file_name(name))?;
    note.write_all(target.as_os_str().as_bytes())?;
    note.write_all(b"\n")
}

/// Whether a link at `path` stays below `top`, by its words and by where it really leads. One
/// that leads to nothing yet is judged by its words.
fn stays_inside(top: &Path, path: &str, target: &Path) -> bool {
    let link = top.join(path);
    let parent = link.parent().unwrap_or(top);
    let Some(words) = plain(&parent.join(target)) else {
        return false;
    };
    words.starts_with(top)
        && link
            .canonicalize()
            .map_or(true, |real| real.starts_with(top))
}

/// The path without `.` and `..`, by words alone; `None` when it climbs above the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut words = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !words.pop() => return None,
            Component::ParentDir => {}
            other => words.push(other),
        }
    }
    Some(words)
}

fn clear_bits(entry: &Entry) -> io::Result<()> {
    // Which needs no right to read it.
    let flags = nix::libc::O_PATH | nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(&entry.handle)?;
    let found = file.metadata()?; // of what was opened, not of what was seen
    if !found.is_file() {
        return Ok(());
    }
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mode = found.permissions().mode();
    fs::set_permissions(opened, Permissions::from_mode(mode & 0o666))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::output::scan;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_out_become_text() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::create_dir_all(top.join("sub/deep")).unwrap();
        fs::write(top.join("sub/real.txt"), "x").unwrap();
        let keep = [
            ("sub/alias", "real.txt"),
            ("up", "sub/../sub/real.txt"),
            ("sub/later", "not-yet.txt"),
        ];
        let out = [
            ("passwd", "/etc/passwd"),
            ("sub/climb", "../../x"),
            ("nothing", "/no/such/file"),
            ("root", "../../../../../../../../../.."),
            ("sub/deep/twice", "../hop"),
        ];
        symlink("/etc", top.join("sub/hop")).unwrap();
        for (path, target) in keep.iter().chain(&out) {
            symlink(target, top.join(path)).unwrap();
        }
        symlink(
            top.canonicalize().unwrap().join("sub/real.txt"),
            top.join("absolute"),
        )
        .unwrap();

        assert_eq!(tidy(top).unwrap(), []);
        for (path, target) in keep {
            assert_eq!(fs::read_link(top.join(path)).unwrap(), Path::new(target));
        }
        assert!(fs::read_link(top.join("absolute")).is_ok());
        for (path, target) in &out[..4] {
            assert!(fs::symlink_metadata(top.join(path)).is_err(), "{path}");
            let note = fs::read_to_string(top.join(format!("{path}{SUFFIX}"))).unwrap();
            assert_eq!(note, format!("{target}\n"));
        }
        assert!(fs::symlink_metadata(top.join("sub/hop")).is_err());
        assert_eq!(tidy(top).unwrap(), [], "a second time finds nothing to do");
    }

    #[test]
    fn files_are_no_programs() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.sh");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        assert_eq!(tidy(dir.path()).unwrap(), []);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
        assert_eq!(scan(dir.path(), |_| false).unwrap().len(), 1);
    }

    #[test]
    fn a_failure_is_reported_and_the_rest_is_done() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("a")).unwrap();
        fs::write(dir.path().join(format!("a{SUFFIX}")), "taken").unwrap();
        symlink("/etc/passwd", dir.path().join("b")).unwrap();
        let problems = tidy(dir.path()).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0]
                .to_string()
                .contains("link that leaves the directory cannot be replaced")
        );
        assert!(problems[0].what.ends_with(", ignoring"));
        assert!(dir.path().join(format!("b{SUFFIX}")).exists());
        assert!(
            fs::symlink_metadata(dir.path().join("a")).is_err(),
            "the link is gone all the same"
        );
        assert!(tidy(&dir.path().join("missing")).is_err());
    }
}
