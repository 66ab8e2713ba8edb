//! Removes what a hook wrote that was ended because the disk was nearly full.

use crate::files::beneath::{Directory, chmod};
use crate::files::output::{Listing, is_bookkeeping};
use crate::files::tidy::SWEEP_BOUNDS;
use crate::files::walk::{EntryKind, Walk, WalkEntry, WalkStep, walk};
use archivist_core::model::Time;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::time::UNIX_EPOCH;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files that were removed or cut to their earlier size.
    pub files: u64,
    /// Bytes that they had allocated.
    pub bytes: u64,
    /// Files that could not be removed.
    pub failed: u64,
}

impl Removed {
    fn note(&mut self, entry: &WalkEntry, result: io::Result<()>) {
        match result {
            Ok(()) => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(entry.allocated());
            }
            Err(_) => self.failed += 1,
        }
    }
}

impl std::ops::AddAssign for Removed {
    fn add_assign(&mut self, other: Removed) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.failed += other.failed;
    }
}

/// Removes what a hook that has ended wrote to the directory of its plugin since `since`. Files that
/// were created since then are emptied, so that no other name keeps their blocks, and removed. An
/// older file that grew gets the size that it had in `before`. Logs of the worker stay. What is nested too
/// deeply for a sealed directory is removed, whatever its age.
///
/// The time of creation decides, which no process can set (statx(2)). On a file system without it, a
/// file that is not in `before` is new.
///
/// # Errors
/// If the directory cannot be read.
pub fn remove_own(dir: &Directory, since: Time, before: Option<&Listing>) -> io::Result<Removed> {
    let worker = geteuid().as_raw();
    let mut removed = Removed::default();
    let mut walk = Walk::new(dir, SWEEP_BOUNDS)?;
    while let Some(step) = walk.step() {
        let entry = match step {
            WalkStep::Leaf(entry) => entry,
            WalkStep::Missed { dir, name, why, .. } if why.is_beyond_depth() => {
                match dir.remove(name) {
                    Ok(()) => removed.files += 1,
                    Err(_) => removed.failed += 1,
                }
                continue;
            }
            _ => continue,
        };
        let path = entry.path();
        let is_of_worker = entry.owner() == worker && is_bookkeeping(&path);
        if entry.kind != EntryKind::File || entry.changed() < since.0 || is_of_worker {
            continue;
        }
        let earlier = before.and_then(|before| before.size(&path));
        let is_new = match created(&entry) {
            Some(created) => created >= since.0,
            None => before.is_some() && earlier.is_none(),
        };
        if is_new {
            let done = cut(&entry, 0).and_then(|()| entry.unlink(true));
            removed.note(&entry, done);
        } else if let Some(size) = earlier.filter(|size| *size < entry.size()) {
            removed.note(&entry, cut(&entry, size));
        }
    }
    Ok(removed)
}

/// Which files in a directory that hooks share may be those of one hook.
pub struct Suspects<'a> {
    pub since: Time,
    /// Names of subdirectories that are those of other hooks.
    pub except: &'a BTreeSet<String>,
    /// User of the worker, whose files stay.
    pub worker: u32,
}

impl<'a> Suspects<'a> {
    /// The files of all users but this process's.
    pub fn new(since: Time, except: &'a BTreeSet<String>) -> Suspects<'a> {
        Suspects { since, except, worker: geteuid().as_raw() }
    }

    /// Returns what [`Suspects::remove`] would remove.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn measure(&self, dir: &Directory) -> io::Result<Removed> {
        self.each(dir, |_| Ok(()))
    }

    /// Removes the names of files that were created since the start. Unlike [`remove_own`], it does
    /// not empty them: another hook may have created one.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn remove(&self, dir: &Directory) -> io::Result<Removed> {
        self.each(dir, |entry| entry.unlink(true))
    }

    fn each(
        &self,
        dir: &Directory,
        mut act: impl FnMut(&WalkEntry) -> io::Result<()>,
    ) -> io::Result<Removed> {
        let mut removed = Removed::default();
        walk(dir, SWEEP_BOUNDS, &mut |entry| {
            let is_of_hook = entry.kind == EntryKind::File && entry.owner() != self.worker;
            if !is_of_hook || entry.changed() < self.since.0 {
                return;
            }
            let path = entry.path();
            let top = path.split_once('/').map_or("", |(top, _)| top);
            let is_new = || created(entry).is_some_and(|created| created >= self.since.0);
            if !self.except.contains(top) && is_new() {
                removed.note(entry, act(entry));
            }
        })?;
        Ok(removed)
    }
}

/// When a file was created, in milliseconds since 1970; `None` if the file system does not say.
fn created(entry: &WalkEntry) -> Option<i64> {
    let created = entry.open_path().ok()?.metadata().ok()?.created().ok()?;
    let since_1970 = created.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_millis()).ok()
}

/// Cuts a file to `size` bytes, also if its mode forbids to write.
fn cut(entry: &WalkEntry, size: u64) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let open = || openat(entry.dir, entry.name, flags, Mode::empty());
    let file = match open() {
        Err(Errno::EACCES) => {
            let found = entry.open_path()?;
            let mode = found.metadata()?.permissions().mode();
            chmod(found.as_fd(), mode & 0o777 | 0o220)?;
            open()?
        }
        other => other?,
    };
    File::from(file).set_len(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    fn now() -> Time {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Time(since_1970.as_millis() as i64)
    }

    /// Waits until the kernel's clock for files, a tick behind, has passed `time`.
    fn after(dir: &Path, time: Time) {
        let probe = dir.join("probe");
        loop {
            let file = File::create_new(&probe).unwrap();
            let seen = file.metadata().unwrap();
            fs::remove_file(&probe).unwrap();
            if seen.ctime() * 1000 + seen.ctime_nsec() / 1_000_000 >= time.0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn new_files_are_removed_and_older_ones_cut_to_their_size() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for name in ["kept", "grown", "stdout.log"] {
            fs::write(at(name), "before").unwrap();
        }
        let dir = Directory::open(top.path()).unwrap();
        let before = Listing::of(&dir);
        let since = now().after(Duration::from_millis(2));
        after(top.path(), since);
        fs::write(at("stdout.log"), "a log of the worker").unwrap();
        fs::write(at("grown"), vec![1; 1 << 20]).unwrap();
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::write(at("sub/deep/new"), vec![1; 1 << 20]).unwrap();
        fs::set_permissions(at("sub/deep/new"), Permissions::from_mode(0o0)).unwrap();
        // Another name outside keeps no blocks.
        let outside = tempfile::tempdir().unwrap();
        fs::hard_link(at("sub/deep/new"), outside.path().join("other")).unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link")).unwrap();

        let removed = remove_own(&dir, since, Some(&before)).unwrap();
        assert_eq!((removed.files, removed.failed), (2, 0));
        assert!(removed.bytes >= 2 << 20, "{removed:?}");
        assert!(!at("sub/deep/new").exists());
        assert_eq!(fs::metadata(outside.path().join("other")).unwrap().len(), 0);
        assert_eq!(fs::metadata(at("grown")).unwrap().len(), 6);
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "before");
        let log = fs::read_to_string(at("stdout.log")).unwrap();
        assert_eq!(log, "a log of the worker");

        let again = remove_own(&dir, since, Some(&before)).unwrap();
        assert_eq!(again, Removed::default(), "nothing is left to remove");
    }

    #[test]
    fn file_that_grew_stays_if_its_earlier_size_is_unknown() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("grown"), "before").unwrap();
        let since = now().after(Duration::from_millis(2));
        after(top.path(), since);
        fs::write(top.path().join("grown"), "before and after").unwrap();
        fs::write(top.path().join("new"), "after").unwrap();
        let dir = Directory::open(top.path()).unwrap();
        assert_eq!(remove_own(&dir, since, None).unwrap().files, 1);
        assert!(top.path().join("grown").exists());
    }

    #[test]
    fn files_of_other_hooks_and_of_the_worker_stay_in_shared_directories() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for plugin in ["other", "ended"] {
            fs::create_dir(at(plugin)).unwrap();
            fs::write(at(plugin).join("before"), "x").unwrap();
        }
        let since = now().after(Duration::from_millis(2));
        after(top.path(), since);
        for path in ["other/new", "ended/new", "new", "ended/before"] {
            fs::write(at(path), vec![1; 4096]).unwrap();
        }
        let dir = Directory::open(top.path()).unwrap();
        let except = BTreeSet::from(["other".to_owned()]);
        let own = Suspects::new(since, &except);
        assert_eq!(own.remove(&dir).unwrap(), Removed::default(), "all are the worker's");
        let hooks = Suspects { worker: own.worker + 1, ..own };
        let measured = hooks.measure(&dir).unwrap();
        assert_eq!((measured.files, measured.bytes >= 8192), (2, true));
        assert_eq!(hooks.remove(&dir).unwrap(), measured);
        assert!(at("other/new").exists() && at("ended/before").exists());
        assert!(!at("ended/new").exists() && !at("new").exists());
    }
}
