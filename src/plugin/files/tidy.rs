//! Makes directories of hooks safe: removes links that leave them, and execute permissions.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use archivist_core::store::is_reserved;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, symlinkat};

use crate::catalogue::PathProblem;
use crate::files::beneath::{Directory, chmod};
use crate::files::output::BOUNDS;
use crate::files::walk::{
    DEPTH_MAX, EntryKind, Missed, MissedEntries, PATH_BYTES_MAX, Walk, WalkBounds, WalkEntry,
    WalkStep,
};

/// Suffix of the text file that replaces a link out of the page or crawl and contains its target.
const NOTE_SUFFIX: &str = ".broken-symlink.txt";
/// Execute, set-user-ID and set-group-ID bits.
const PROGRAM_BITS: u32 = 0o7111;
const READ_BITS: u32 = 0o440;
/// Bounds of [`sweep`]. A list of so many long names uses most of a worker's memory.
pub(crate) const SWEEP_BOUNDS: WalkBounds = WalkBounds { unlock: true, ..WalkBounds::SEALED };

/// What is nested too deeply, or has too long a path, for a sealed directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Directories and files; what is below a directory is not counted.
    pub count: usize,
    /// Path of the first, relative to the directory.
    pub first: String,
}

impl Beyond {
    pub fn note(&mut self, path: &Path) {
        if self.count == 0 {
            self.first = path.to_string_lossy().into_owned();
        }
        self.count += 1;
    }

    /// A sentence for the page; `None` if there is nothing.
    pub fn remark(&self) -> Option<String> {
        let what = match self.count {
            0 => return None,
            1 => "1 file or directory".to_owned(),
            count => format!("{count} files or directories"),
        };
        let first: String = self.first.chars().take(60).collect();
        Some(format!(
            "left out {what} below more than {DEPTH_MAX} directories, or with a path of more than {PATH_BYTES_MAX} \
            bytes: '{first}…'"
        ))
    }
}

/// What [`tidy`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Failures, at most one of each kind with a count: a hook may have made a directory unreadable, and
    /// without CAP_FOWNER files of other users keep their permissions.
    pub problems: Vec<PathProblem>,
    /// What [`sweep`] removes if it is still there at the end.
    pub beyond: Beyond,
}

/// Replaces links that leave `owner` by text files, and removes execute permissions. `dir` is the
/// directory of a plugin, and `owner` that of its page or crawl. Call this when the hook has ended,
/// before [`crate::scan`].
///
/// Links to files of other plugins of the page stay. Hooks that still run can change these files, so
/// nothing may follow a link before [`sweep`].
///
/// # Errors
/// If `dir` itself cannot be read.
pub fn tidy(dir: &Directory, owner: &Directory) -> io::Result<Tidied> {
    Ok(Tidy::of(dir, owner, BOUNDS)?.done())
}

/// Tidies `dir` completely when no hook can write to it any more: makes unreadable directories
/// readable, lets the group read all files, and removes pipes, sockets and devices, files
/// of hooks that have names of transfers to the store, and what is [`Beyond`] the bounds of a sealed
/// directory. Returns what could not be tidied; if there are no problems, everything below `dir` is safe.
///
/// The group can already read what hooks write with the umask of their units. Transfers to the store
/// belong to it, and cannot copy a file that a hook kept for itself.
///
/// # Errors
/// If `dir` itself cannot be read.
pub fn sweep(dir: &Directory) -> io::Result<Tidied> {
    let mut tidied = Tidy::of(dir, dir, SWEEP_BOUNDS)?.done();
    tidied.problems.extend(remove_reserved(dir, geteuid().as_raw())?);
    Ok(tidied)
}

/// Removes what users other than `own` made under names of transfers to the store; a directory gets
/// another name.
fn remove_reserved(dir: &Directory, own: u32) -> io::Result<Vec<PathProblem>> {
    let mut problems = Vec::new();
    for name in dir.names()?.into_iter().filter(|name| is_reserved(name)) {
        let removed = match dir.stat(&name) {
            Ok(found) if found.st_uid == own => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            _ => dir.clear(&name),
        };
        problems.extend(removed.err().map(|error| PathProblem {
            path: dir.path().join(&name),
            what: format!("failed to remove a file with a reserved name: {error}, ignoring"),
        }));
    }
    Ok(problems)
}

struct Tidy<'d> {
    dir: &'d Directory,
    /// The directory that links must not leave.
    top: &'d Path,
    /// Number of directories between `top` and `dir`.
    above: usize,
    unlock: bool,
    links: Failures,
    bits: Failures,
    unread: Failures,
    specials: Failures,
    removals: Failures,
    missed: MissedEntries,
    beyond: Beyond,
}

impl<'d> Tidy<'d> {
    fn of(dir: &'d Directory, owner: &'d Directory, bounds: WalkBounds) -> io::Result<Tidy<'d>> {
        let (top, above) = match dir.path().strip_prefix(owner.path()) {
            Ok(below) => (owner.path(), below.components().count()),
            Err(_) => (dir.path(), 0),
        };
        let mut tidy = Tidy {
            dir,
            top,
            above,
            unlock: bounds.unlock,
            links: Failures::default(),
            bits: Failures::default(),
            unread: Failures::default(),
            specials: Failures::default(),
            removals: Failures::default(),
            missed: MissedEntries::default(),
            beyond: Beyond::default(),
        };
        let mut walk = Walk::new(dir, bounds)?;
        while let Some(step) = walk.step() {
            match step {
                WalkStep::Leaf(entry) => tidy.take(&entry),
                WalkStep::Missed { dir, name, path, why } => tidy.miss(dir, name, path, why),
                WalkStep::Enter(_) | WalkStep::Leave => {}
            }
        }
        Ok(tidy)
    }

    fn miss(&mut self, dir: &Directory, name: &OsStr, path: &Path, why: Missed) {
        if !why.is_beyond_depth() {
            self.missed.note(path, why);
            return;
        }
        self.beyond.note(path);
        if self.unlock {
            self.removals.note(path, dir.remove(name));
        }
    }

    fn take(&mut self, entry: &WalkEntry) {
        match entry.kind {
            EntryKind::Link => self.links.note(entry.below(), self.neutralise(entry)),
            EntryKind::File if entry.stat.st_mode & PROGRAM_BITS != 0 => {
                self.bits.note(entry.below(), self.set_mode(entry));
            }
            EntryKind::File if self.unlock && entry.stat.st_mode & READ_BITS != READ_BITS => {
                self.unread.note(entry.below(), self.set_mode(entry));
            }
            EntryKind::Special if self.unlock => {
                self.specials.note(entry.below(), entry.unlink(true))
            }
            EntryKind::File | EntryKind::Special | EntryKind::Directory => {}
        }
    }

    fn done(self) -> Tidied {
        let dir = self.dir.path();
        let missed = self.missed.first.map(|(path, why)| Failures {
            first: Some((path, io::Error::other(why.to_string()))),
            count: self.missed.count,
        });
        let problems = [
            self.links.report(dir, "failed to replace a symbolic link"),
            self.bits.report(dir, "failed to remove execute permission"),
            self.unread.report(dir, "failed to let the group read a file"),
            self.specials.report(dir, "failed to remove a special file"),
            self.removals.report(dir, "failed to remove what is nested too deeply"),
            missed.and_then(|missed| missed.report(dir, "failed to read a directory")),
        ];
        Tidied { problems: problems.into_iter().flatten().collect(), beyond: self.beyond }
    }

    fn neutralise(&self, entry: &WalkEntry) -> io::Result<()> {
        let target = match readlinkat(entry.dir, entry.name) {
            Err(Errno::ENOENT | Errno::EINVAL) => return Ok(()), // gone since
            other => other?,
        };
        let target = Path::new(&target);
        let depth = self.above + entry.depth;
        let kept = relative_target(self.top, depth, target).filter(|to| !is_hidden(depth, to));
        if kept.as_deref() == Some(target) {
            return Ok(());
        }
        entry.unlink(self.unlock)?;
        if let Some(relative) = kept {
            return Ok(symlinkat(&relative, entry.dir, entry.name)?);
        }
        let mut name = entry.name.to_owned();
        name.push(NOTE_SUFFIX);
        // The link is removed; a missing note is harmless.
        let _ = leave_note(entry.dir.as_fd(), &name, target.as_os_str().as_bytes());
        Ok(())
    }

    /// Removes the bits of programs; of a complete directory, adds those of readers.
    fn set_mode(&self, entry: &WalkEntry) -> io::Result<()> {
        let file = match entry.open_path() {
            Err(Errno::ENOENT) => return Ok(()), // gone since
            other => other?,
        };
        let found = file.metadata()?; // of the opened file, which may differ from the visited one
        if !found.is_file() {
            return Ok(());
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
        let added = if self.unlock { READ_BITS } else { 0 };
        chmod(file.as_fd(), mode & 0o666 | added)
    }
}

/// The first failure of one kind, and the number of failures.
#[derive(Default)]
struct Failures {
    first: Option<(String, io::Error)>,
    count: usize,
}

impl Failures {
    fn note(&mut self, path: &Path, result: io::Result<()>) {
        if let Err(error) = result {
            self.count += 1;
            let path = || (path.to_string_lossy().into_owned(), error);
            self.first.get_or_insert_with(path);
        }
    }

    fn report(self, dir: &Path, what: &str) -> Option<PathProblem> {
        let (path, error) = self.first?;
        let more = match self.count {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Some(PathProblem { path: dir.join(path), what: format!("{what}: {error}{more}, ignoring") })
    }
}

fn leave_note(dir: BorrowedFd<'_>, name: &OsStr, target: &[u8]) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut note = File::from(openat(dir, name, flags, Mode::from_bits_truncate(0o660))?);
    note.write_all(target)?;
    note.write_all(b"\n")
}

/// The target of a link `depth` directories below `top`, relative to the directory of the link, so
/// that it is right wherever `top` is moved or restored; `None` if the link leaves `top`.
///
/// Only the text of the target decides, and nothing is resolved, so that hooks learn nothing about
/// other directories. A target may have `..` only at its start. As this holds for each link below
/// `top`, it also holds for links that lead to other links.
pub fn relative_target(top: &Path, depth: usize, target: &Path) -> Option<PathBuf> {
    if target.is_absolute() {
        let below = target.strip_prefix(top).ok()?;
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let up = (0..depth).map(|_| Path::new(".."));
        let relative: PathBuf = up.chain([below]).collect();
        let is_top = relative.as_os_str().is_empty();
        let relative = if is_top { ".".into() } else { relative };
        return below.components().all(is_plain).then_some(relative);
    }
    let (climbed, mut rest) = climb(target);
    let stays = climbed <= depth
        && rest.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays.then(|| target.to_owned())
}

/// Whether a relative target that stays inside is a hidden entry of the top, or below one: those
/// belong to the worker, which removes some of them after use.
fn is_hidden(depth: usize, target: &Path) -> bool {
    let (climbed, mut rest) = climb(target);
    let first = rest.find_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    climbed == depth && first.is_some_and(|name| name.as_bytes().starts_with(b"."))
}

/// Number of `..` at the start of a path, and what follows them.
fn climb(path: &Path) -> (usize, impl Iterator<Item = Component<'_>>) {
    let mut parts = path.components().peekable();
    let mut climbed = 0;
    while parts
        .next_if(|part| matches!(part, Component::ParentDir | Component::CurDir))
        .inspect(|part| climbed += usize::from(*part == Component::ParentDir))
        .is_some()
    {}
    (climbed, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::output::scan;
    use crate::sample::{deep, depths, poor};
    use proptest::prelude::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn tidied(top: &Path) -> Vec<PathProblem> {
        let top = Directory::open(top).unwrap();
        tidy(&top, &top).unwrap().problems
    }

    fn swept(top: &Path) -> Vec<PathProblem> {
        sweep(&Directory::open(top).unwrap()).unwrap().problems
    }

    #[test]
    fn links_that_leave_become_text_files() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::create_dir_all(top.join("sub/deep")).unwrap();
        fs::write(top.join("sub/real.txt"), "x").unwrap();
        let keep = [
            ("sub/alias", "real.txt"),
            ("sub/deep/up", "./../../sub/real.txt"),
            ("sub/top", ".."),
            ("sub/later", "not-yet.txt"),
        ];
        let out = [
            ("passwd", "/etc/passwd"),
            ("sub/climb", "../../x"),
            ("nothing", "/no/such/file"),
            ("root", "../../../../../../../../../.."),
            ("sub/around", "../sub/../sub/real.txt"),
        ];
        symlink("/etc", top.join("sub/hop")).unwrap();
        for (path, target) in keep.iter().chain(&out) {
            symlink(target, top.join(path)).unwrap();
        }
        symlink(top.join("sub/real.txt"), top.join("absolute")).unwrap();

        assert_eq!(tidied(top), []);
        for (path, target) in keep {
            assert_eq!(fs::read_link(top.join(path)).unwrap(), Path::new(target));
        }
        assert_eq!(fs::read_link(top.join("absolute")).unwrap(), Path::new("sub/real.txt"));
        for (path, target) in &out {
            assert!(fs::symlink_metadata(top.join(path)).is_err(), "{path}");
            let note = fs::read_to_string(top.join(format!("{path}{NOTE_SUFFIX}"))).unwrap();
            assert_eq!(note, format!("{target}\n"));
        }
        assert!(fs::symlink_metadata(top.join("sub/hop")).is_err());
        assert_eq!(tidied(top), [], "a second run changes nothing");
    }

    /// What links of the plugin `readability` become, by [`tidy`] after its hook and by [`sweep`]
    /// at the end.
    fn links_of_a_plugin(links: &[(&str, &str)]) -> Vec<(Option<PathBuf>, Option<PathBuf>)> {
        let base = tempfile::tempdir().unwrap();
        let page = base.path().join("s1");
        fs::create_dir_all(page.join("readability/images/example.com")).unwrap();
        fs::create_dir_all(page.join("responses/example.com")).unwrap();
        fs::write(page.join("responses/example.com/i.png"), "i").unwrap();
        for (path, target) in links {
            let target = target.replace("SNAP_DIR", page.to_str().unwrap());
            symlink(target, page.join("readability").join(path)).unwrap();
        }
        let owner = Directory::open(&page).unwrap();
        let plugin = owner.enter("readability").unwrap();
        let read = |path: &str| fs::read_link(plugin.path().join(path)).ok();
        assert_eq!(tidy(&plugin, &owner).unwrap(), Tidied::default());
        let early: Vec<_> = links.iter().map(|(path, _)| read(path)).collect();
        assert_eq!(sweep(&owner).unwrap(), Tidied::default());
        let late = links.iter().map(|(path, _)| read(path));
        early.into_iter().zip(late).collect()
    }

    #[test]
    fn links_to_other_plugins_of_the_page_stay() {
        let links = [
            ("images/example.com/i.png", "../../../responses/example.com/i.png"),
            ("top.png", "../responses/example.com/i.png"),
            ("dangling", "../responses/later.png"),
            ("loop", "../readability/loop"),
            ("through", "../readability/images/example.com/i.png"),
            ("page", ".."),
        ];
        for ((path, target), found) in links.iter().zip(links_of_a_plugin(&links)) {
            let kept = Some(PathBuf::from(target));
            assert_eq!(found, (kept.clone(), kept), "{path}");
        }
    }

    #[test]
    fn absolute_links_within_the_page_become_relative() {
        let links = [
            ("images/i.png", "SNAP_DIR/responses/example.com/i.png"),
            ("images/own", "SNAP_DIR/readability/images"),
            ("images/page", "SNAP_DIR"),
        ];
        let relative = ["../../responses/example.com/i.png", "../../readability/images", "../../"];
        for (found, target) in links_of_a_plugin(&links).into_iter().zip(relative) {
            let kept = Some(PathBuf::from(target));
            assert_eq!(found, (kept.clone(), kept));
        }
    }

    #[test]
    fn links_out_of_the_page_and_to_hidden_entries_of_it_are_replaced() {
        let links = [
            ("other", "../../s2/wget/index.html"),
            ("images/deep", "../../../s1/responses/example.com/i.png"),
            ("around", "../responses/../../s2"),
            ("absolute", "SNAP_DIR/../s2"),
            ("neighbour", "SNAP_DIR-2/x"),
            ("hidden", "../.earlier/wget/index.html"),
            ("images/hidden", ".././.././.stored.json"),
            ("named", "SNAP_DIR/.hooks/x"),
        ];
        for ((path, _), found) in links.iter().zip(links_of_a_plugin(&links)) {
            assert_eq!(found, (None, None), "{path}");
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_removed_and_named() {
        poor(module_path!(), "what_is_nested_too_deeply_is_removed_and_named", || {
            for (levels, name) in depths() {
                let top = tempfile::tempdir_in("/dev/shm").unwrap();
                fs::create_dir(top.path().join("wget")).unwrap();
                fs::write(top.path().join("wget/kept"), "x").unwrap();
                deep(&top.path().join("wget"), levels, &name);
                let plugin = Directory::open(&top.path().join("wget")).unwrap();
                let own = Directory::open(top.path()).unwrap();
                let fits = levels < DEPTH_MAX && levels * (name.len() + 1) < PATH_BYTES_MAX - 300;
                let found = tidy(&plugin, &own).unwrap();
                assert_eq!((found.problems, found.beyond.count), (vec![], usize::from(!fits)));
                assert_eq!(found.beyond.remark().is_none(), fits);
                let found = sweep(&own).unwrap();
                assert_eq!((found.problems, found.beyond.count), (vec![], usize::from(!fits)));
                assert_eq!(sweep(&own).unwrap(), Tidied::default(), "all that is left fits");
                assert!(top.path().join("wget/kept").exists());
                let longest = top.path().join("wget").join([name.as_str()].repeat(250).join("/"));
                assert!(fits || longest.as_os_str().len() > 4096 || longest.exists());
            }
        });
    }

    #[test]
    fn execute_permission_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.sh");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        assert_eq!(tidied(dir.path()), []);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
        assert_eq!(scan(&Directory::open(dir.path()).unwrap(), |_| false).unwrap().len(), 1);
    }

    #[test]
    fn sweep_lets_the_group_read_what_a_hook_kept_for_itself() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let found = fs::metadata(dir.path().join(name)).unwrap();
            found.permissions().mode() & 0o7777
        };
        let files = [
            ("private", 0o600, 0o640),
            ("locked", 0o000, 0o440),
            ("program", 0o4700, 0o640),
            ("open", 0o664, 0o664),
        ];
        for (name, before, _) in files {
            fs::write(dir.path().join(name), "x").unwrap();
            let permissions = Permissions::from_mode(before);
            fs::set_permissions(dir.path().join(name), permissions).unwrap();
        }
        assert_eq!(tidied(dir.path()), []);
        assert_eq!(mode("private"), 0o600, "the hook may still need it");
        assert_eq!(swept(dir.path()), []);
        for (name, _, after) in files {
            assert_eq!(mode(name), after, "{name}");
        }
    }

    #[test]
    fn names_of_transfers_are_removed_if_a_hook_made_them() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::write(top.join(".stored.json"), "garbage").unwrap();
        symlink("index.html", top.join(".index.html.part")).unwrap();
        fs::create_dir_all(top.join(".restoring/sub")).unwrap();
        fs::write(top.join("kept.part"), "x").unwrap();
        let opened = Directory::open(top).unwrap();
        let own = geteuid().as_raw();
        assert_eq!(remove_reserved(&opened, own).unwrap(), []);
        assert_eq!(opened.names().unwrap().len(), 4, "those of transfers stay");
        assert_eq!(remove_reserved(&opened, own + 1).unwrap(), []);
        let names = opened.names().unwrap();
        assert!(!names.iter().any(|name| is_reserved(name)), "{names:?}");
        assert!(top.join("kept.part").exists());
    }

    #[test]
    fn link_is_removed_even_if_its_note_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let long = "l".repeat(250);
        for name in ["a", "b", &long] {
            symlink("/etc/passwd", dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join(format!("a{NOTE_SUFFIX}")), "taken").unwrap();
        assert_eq!(tidied(dir.path()), []);
        for name in ["a", "b", &long] {
            assert!(fs::symlink_metadata(dir.path().join(name)).is_err());
        }
        let note = |name| fs::read_to_string(dir.path().join(format!("{name}{NOTE_SUFFIX}")));
        assert_eq!(note("a").unwrap(), "taken");
        assert_eq!(note("b").unwrap(), "/etc/passwd\n");
    }

    #[test]
    fn sweep_covers_more_than_the_bounds_of_a_walk() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d/".repeat(DEPTH_MAX));
        fs::create_dir_all(&deep).unwrap();
        symlink("/etc", deep.join("out")).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        // chmod(1) of the execute bit alone would make this file a set-user-ID program.
        fs::set_permissions(deep.join("file"), Permissions::from_mode(0o4644)).unwrap();
        nix::unistd::mkfifo(&deep.join("pipe"), Mode::S_IRWXU).unwrap();
        let top = Directory::open(dir.path()).unwrap();
        let found = tidy(&top, &top).unwrap();
        assert_eq!((found.problems, found.beyond.count), (vec![], 1));
        assert!(fs::symlink_metadata(deep.join("out")).is_ok());
        assert_eq!(swept(dir.path()), []);
        let mut left: Vec<_> =
            fs::read_dir(&deep).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["file", "out.broken-symlink.txt"]);
        let mode = fs::metadata(deep.join("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
    }

    proptest! {
        /// For any combination of links, the remaining ones end below the top.
        #[test]
        fn no_chain_of_links_leaves_the_directory(links in prop::collection::vec(("[abc](/[abc]){0,2}", "(\\.\\./|\\./|[abc]/|/){0,5}(\\.\\.|[abc])"), 1..12)) {
            let outside = tempfile::tempdir().unwrap();
            let top = outside.path().canonicalize().unwrap().join("x/y/top");
            fs::create_dir_all(&top).unwrap();
            for (path, target) in links {
                let path = top.join(path);
                // Paths of later links may lead over earlier links, as for a hook.
                let inside = path.parent().unwrap().canonicalize().map_or(true, |real| real.starts_with(&top));
                if inside && fs::create_dir_all(path.parent().unwrap()).is_ok() {
                    let _ = symlink(target, path);
                }
            }
            prop_assert_eq!(swept(&top), []);
            let mut ahead: Vec<PathBuf> = vec![top.clone()];
            while let Some(directory) = ahead.pop() {
                for entry in fs::read_dir(directory).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_symlink() {
                        let real = path.canonicalize();
                        prop_assert!(real.as_ref().map_or(true, |real| real.starts_with(&top)), "{:?}: {:?}", path, real);
                    } else if path.is_dir() {
                        ahead.push(path);
                    }
                }
            }
        }
    }
}
