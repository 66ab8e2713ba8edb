//! `archivist run --dir DIR` and `--output DIR`: copies archived pages to the caller. Hooks wrote
//! the files, and DIR may belong to another user: only directories, regular files and the links to
//! these are copied, each is opened relative to its parent, and no symbolic link below either directory
//! is followed.
//!
//! A file is complete or does not exist under its name: if the command is killed, it leaves at most
//! one file [`PARTIAL`], which the next copy removes.

use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_plugin::files;
use archivist_plugin::files::tidy::{Beyond, relative_target};
use archivist_plugin::files::trail::Trail;
use archivist_plugin::files::walk::{EntryKind, Walk, WalkBounds, WalkStep};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Name of a file while its content is being copied.
const PARTIAL: &str = ".archivist-partial";
/// Modes of new files and directories, before the umask of the caller.
const FILE_MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One page, whose plugins have their directories in DIR.
    OnePage,
    /// Each page in a directory that is named after its id.
    ById,
}

fn failed(verb: &str, path: &Path, error: impl Into<io::Error>) -> Failure {
    let error: io::Error = error.into();
    Failure::failed(format!("failed to {verb} '{}': {error}", path.display()))
}

fn open(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path).map_err(|error| failed("open directory", path, error))
}

fn enter(directory: &Directory, name: &OsStr) -> Result<Directory, Failure> {
    let failed = |error| failed("open directory", &directory.path().join(name), error);
    directory.enter(name).map_err(failed)
}

/// Creates a subdirectory if it does not exist, and opens it.
fn make(directory: &Directory, name: &OsStr) -> Result<Directory, Failure> {
    match directory.make(name, DIRECTORY_MODE) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            let path = directory.path().join(name);
            Err(failed("create directory", &path, error))
        }
        _ => enter(directory, name),
    }
}

/// Removes a partial file that a killed command left.
fn clear_partial(directory: &Directory) -> Result<(), Failure> {
    match directory.unlink(PARTIAL) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(failed("remove", &directory.path().join(PARTIAL), error))
        }
        _ => Ok(()),
    }
}

/// Creates the file whose content is about to be copied. Not `Whole`: a name may have all 255 bytes.
fn create_partial(directory: &Directory) -> Result<File, Failure> {
    clear_partial(directory)?;
    let failed = |error| failed("create a file in", directory.path(), error);
    directory.create_for_writing(PARTIAL, FILE_MODE).map_err(failed)
}

/// The directory that a command copies to. Another command cannot use it at the same time.
pub struct Target {
    directory: Directory,
    layout: Layout,
    /// Released by the kernel when the process ends.
    _lock: Option<Flock<OwnedFd>>,
}

impl Target {
    /// Creates the directory if it does not exist, and tests whether files can be created in it,
    /// before anything is archived for it.
    ///
    /// # Errors
    /// If the directory is part of the archive, if it cannot be created or written to, or if
    /// another command copies to it.
    pub fn open(path: &Path, layout: Layout, scope: &Scope) -> Result<Target, Failure> {
        refuse_archive(path, scope)?;
        std::fs::create_dir_all(path).map_err(|error| failed("create directory", path, error))?;
        refuse_archive(path, scope)?;
        let directory = open(path)?;
        let lock = lock(&directory)?;
        create_partial(&directory)?;
        clear_partial(&directory)?;
        Ok(Target { directory, layout, _lock: lock })
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Copies the directory of a page. Replaces existing files of the same name and leaves others.
    pub fn copy(&self, id: SnapshotId, source: &Path) -> Result<(), Failure> {
        let from = open(source)?;
        match self.layout {
            Layout::OnePage => tree(&from, &self.directory),
            Layout::ById => {
                let to = make(&self.directory, OsStr::new(&id.to_string()))?;
                tree(&from, &to)
            }
        }
    }
}

/// Locks the directory. None if its file system cannot lock directories.
fn lock(directory: &Directory) -> Result<Option<Flock<OwnedFd>>, Failure> {
    let path = directory.path();
    let fd = directory.as_fd().try_clone_to_owned();
    let fd = fd.map_err(|error| failed("open directory", path, error))?;
    match Flock::lock(fd, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(Failure::failed(format!(
            "failed to lock '{}': another command copies to it",
            path.display()
        ))),
        Err(_) => Ok(None),
    }
}

/// Where a path is, or would be created.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for ancestor in path.ancestors() {
        match ancestor.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                return Ok(real.join(rest));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Refuses a directory in the data directory: only the orchestrator and its units write there.
fn refuse_archive(path: &Path, scope: &Scope) -> Result<(), Failure> {
    let named = scope.data_dir();
    let data = named.canonicalize().unwrap_or(named);
    let real = resolved(path).map_err(|error| failed("resolve", path, error))?;
    if real.starts_with(&data) {
        return Err(Failure::usage(format!(
            "'{}' is in '{}', which only archivist writes to; name another directory",
            path.display(),
            data.display()
        )));
    }
    Ok(())
}

/// Other users cannot read the archive: report that before the work, not after it.
pub fn can_copy(scope: &Scope) -> Result<(), Failure> {
    let archive = scope.data_dir().join("archive");
    match std::fs::read_dir(&archive) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Failure::failed(format!(
            "failed to read '{}': {error}\n--dir and --output copy from there: run the command as root, or with --user",
            archive.display()
        ))),
        _ => Ok(()),
    }
}

/// Copies everything below the directory of a page. What no sealed page can have is left out and printed; older
/// versions left such directories.
fn tree(from: &Directory, to: &Directory) -> Result<(), Failure> {
    let (page, shown) = (from.path(), to.path());
    let reading = |error| failed("read", page, error);
    let writing = |error| failed("write to", shown, error);
    let mut walk = Walk::new(from, WalkBounds::SEALED).map_err(reading)?;
    let mut target = Trail::new(to).map_err(writing)?;
    let mut beyond = Beyond::default();
    clear_partial(to)?;
    while let Some(step) = walk.step() {
        let to = target.here().map_err(writing)?;
        match step {
            WalkStep::Enter(dir) => {
                clear_partial(&make(to, dir.name)?)?;
                target.enter(dir.name).map_err(writing)?;
            }
            WalkStep::Leave => target.leave().map_err(writing)?,
            WalkStep::Leaf(entry) => match entry.kind {
                EntryKind::File => file(entry.dir, to, entry.name)?,
                EntryKind::Link => link(entry.dir, to, entry.name, page, entry.depth)?,
                EntryKind::Directory | EntryKind::Special => {}
            },
            WalkStep::Missed { path, why, .. } if why.is_beyond_depth() => beyond.note(path),
            WalkStep::Missed { path, why, .. } => {
                return Err(failed("read", &page.join(path), io::Error::other(why.to_string())));
            }
        }
    }
    if let Some(remark) = beyond.remark() {
        eprintln!("'{}': {}", page.display(), clean(&remark));
    }
    Ok(())
}

fn file(from: &Directory, to: &Directory, name: &OsStr) -> Result<(), Failure> {
    let (source, target) = (from.path().join(name), to.path().join(name));
    let read = match from.read(name) {
        // It was replaced meanwhile.
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(()),
        opened => opened.map_err(|error| failed("read", &source, error))?,
    };
    let written = create_partial(to)?;
    files::copy::copy(&read, &written).map_err(|error| failed("write", &target, error))?;
    if let Ok(modified) = read.metadata().and_then(|found| found.modified()) {
        // A time that the file system of the target cannot store; ignoring.
        let _ = written.set_times(FileTimes::new().set_modified(modified));
    }
    let renamed = to.rename(PARTIAL, name);
    renamed.map_err(|error| failed("write", &target, error))
}

/// Copies a link to a file or directory of the page. Others could lead to files that are in DIR already.
fn link(
    from: &Directory,
    to: &Directory,
    name: &OsStr,
    page: &Path,
    depth: usize,
) -> Result<(), Failure> {
    let (source, target) = (from.path().join(name), to.path().join(name));
    let is_of_page = || Some(source.canonicalize().ok()?.starts_with(page.canonicalize().ok()?));
    let leads = fs::read_link(&source).ok();
    let leads = leads.and_then(|leads| relative_target(page, depth, &leads));
    let Some(leads) = leads.filter(|_| is_of_page() == Some(true)) else {
        return Ok(());
    };
    clear_partial(to)?;
    match to.make_link(PARTIAL, leads.as_os_str()) {
        // The file system of DIR has no links (symlink(2)).
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        made => made
            .and_then(|()| to.rename(PARTIAL, name))
            .map_err(|error| failed("write", &target, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::files::remove::remove_tree;
    use archivist_plugin::sample::{deep, depths, poor};
    use std::os::unix::fs::symlink;

    /// A base directory with a page in `from`, and a scope whose archive is in `data`.
    fn bed() -> (tempfile::TempDir, Scope) {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("from/wget/deep")).unwrap();
        std::fs::write(path("from/index.jsonl"), "index").unwrap();
        std::fs::write(path("from/wget/index.html"), "page").unwrap();
        std::fs::write(path("from/wget/deep/style.css"), "style").unwrap();
        symlink("/etc/passwd", path("from/link")).unwrap();
        let scope = Scope::system(base.path());
        std::fs::create_dir_all(scope.data_dir().join("archive")).unwrap();
        (base, scope)
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn one_page_lands_in_the_directory_and_several_below_their_ids() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        let one = Target::open(&path("new/one"), Layout::OnePage, &scope).unwrap();
        one.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("new/one")), ["index.jsonl", "wget"]);
        assert_eq!(read("new/one/wget/deep/style.css"), "style");
        let several = Target::open(&path("several"), Layout::ById, &scope).unwrap();
        several.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("several")), ["s3"]);
        assert_eq!(names(&path("several/s3")), ["index.jsonl", "wget"]);
    }

    /// Older versions sealed such pages.
    #[test]
    fn page_of_any_depth_is_copied_as_far_as_it_fits() {
        poor(module_path!(), "page_of_any_depth_is_copied_as_far_as_it_fits", || {
            for (levels, name) in depths() {
                let base = tempfile::tempdir_in("/dev/shm").unwrap();
                let path = |name: &str| base.path().join(name);
                std::fs::create_dir_all(path("from/wget")).unwrap();
                std::fs::write(path("from/wget/z"), "page").unwrap();
                deep(&path("from/wget"), levels, &name);
                let scope = Scope::system(base.path());
                let target = Target::open(&path("to"), Layout::OnePage, &scope).unwrap();
                target.copy(SnapshotId(3), &path("from")).unwrap();
                assert_eq!(std::fs::read(path("to/wget/z")).unwrap(), b"page");
                let deepest = vec![name; levels.min(10)].join("/");
                assert!(path("to/wget").join(deepest).is_dir());
                remove_tree(base.path()).unwrap();
            }
        });
    }

    #[test]
    fn links_to_files_of_the_page_are_copied() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("to/private")).unwrap();
        std::fs::write(path("to/private/key"), "key").unwrap();
        for (name, target) in [
            ("from/wget/deep/page", "../index.html".into()),
            ("from/wget/copy", "deep".into()),
            ("from/wget/absolute", path("from/index.jsonl")),
            ("from/wget/dangling", "../private/key".into()),
            ("from/wget/outside", "../../mine".into()),
        ] {
            symlink(target, path(name)).unwrap();
        }
        std::fs::write(path("mine"), "mine").unwrap();
        let target = Target::open(&path("to"), Layout::OnePage, &scope).unwrap();
        for _ in ["new", "replaced"] {
            target.copy(SnapshotId(3), &path("from")).unwrap();
            let link = |name: &str| std::fs::read_link(path("to/wget").join(name)).unwrap();
            assert_eq!(link("deep/page"), Path::new("../index.html"));
            assert_eq!(link("copy"), Path::new("deep"));
            assert_eq!(link("absolute"), Path::new("../index.jsonl"));
            assert_eq!(names(&path("to/wget")), ["absolute", "copy", "deep", "index.html"]);
        }
        let read = std::fs::read_to_string(path("to/wget/copy/page")).unwrap();
        assert_eq!(read, "page");
    }

    #[test]
    fn links_that_leave_are_neither_copied_nor_written_through() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("to/wget")).unwrap();
        std::fs::write(path("mine"), "mine").unwrap();
        std::fs::write(path("to/kept"), "kept").unwrap();
        symlink(path("mine"), path("to/wget/index.html")).unwrap();
        symlink(path("mine"), path("to/wget").join(PARTIAL)).unwrap();
        // The directory itself may be a link: the caller named it.
        symlink(path("to"), path("linked")).unwrap();

        let target = Target::open(&path("linked"), Layout::OnePage, &scope).unwrap();
        target.copy(SnapshotId(3), &path("from")).unwrap();
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("to/wget/index.html"), "page");
        assert_eq!((read("mine"), read("to/kept")), ("mine".into(), "kept".into()));
        assert_eq!(names(&path("to")), ["index.jsonl", "kept", "wget"]);
        assert_eq!(names(&path("to/wget")), ["deep", "index.html"]);

        remove_tree(&path("to/wget")).unwrap();
        symlink(base.path(), path("to/wget")).unwrap();
        let refused = target.copy(SnapshotId(3), &path("from")).unwrap_err();
        assert!(refused.message().contains("linked/wget"), "{}", refused.message());
        drop(target);
        let target = Target::open(&path("to"), Layout::ById, &scope).unwrap();
        symlink(base.path(), path("to/s3")).unwrap();
        assert!(target.copy(SnapshotId(3), &path("from")).is_err());
    }

    #[test]
    fn a_killed_copy_is_completed_by_the_next() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("to/wget")).unwrap();
        std::fs::write(path("to/wget").join(PARTIAL), "pa").unwrap();
        let target = Target::open(&path("to"), Layout::OnePage, &scope).unwrap();
        target.copy(SnapshotId(3), &path("from")).unwrap();
        assert_eq!(names(&path("to/wget")), ["deep", "index.html"]);
    }

    #[test]
    fn unusable_directories_are_refused_before_the_work() {
        let (base, scope) = bed();
        let path = |name: &str| base.path().join(name);
        let refusal = |name: &Path| {
            let target = Target::open(name, Layout::OnePage, &scope);
            target.map(drop).unwrap_err().message().to_owned()
        };
        let archive = scope.data_dir().join("archive/mine");
        assert!(refusal(&archive).contains("name another directory"));
        assert!(!archive.exists());
        symlink(scope.data_dir(), path("aside")).unwrap();
        assert!(refusal(&path("aside/mine")).contains("name another directory"));
        std::fs::write(path("file"), "").unwrap();
        assert!(refusal(&path("file")).starts_with("failed to create directory"));
        symlink(path("nowhere"), path("dangling")).unwrap();
        assert!(refusal(&path("dangling")).starts_with("failed to create directory"));
        assert!(refusal(Path::new("/proc/self")).starts_with("failed to create a file in"));
        let first = Target::open(&path("to"), Layout::ById, &scope).unwrap();
        assert!(refusal(&path("to")).contains("another command copies to it"));
        drop(first);
        assert!(Target::open(&path("to"), Layout::ById, &scope).is_ok());
    }
}
