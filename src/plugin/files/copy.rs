//! Copies of files. Files of one file system share their blocks, where it can do that (btrfs, XFS).

use crate::files::beneath::Directory;
use crate::files::tidy::Beyond;
use crate::files::trail::Trail;
use crate::files::walk::{EntryKind, Walk, WalkBounds, WalkStep};
use nix::fcntl::{FcntlArg, OFlag, fcntl, readlinkat};
use nix::sys::stat::fstat;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

/// Permission to read and write for the group: hooks, which are other users of it, may change a copy.
const GROUP_BITS: u32 = 0o060;

/// Copies `from`, from its position to its end, to the position of `to`, and returns the number of bytes.
///
/// The kernel copies (copy_file_range(2)), also from one mount of a file system to another. Blocks are shared only
/// if both positions are multiples of their size, as at the start of both files.
///
/// # Errors
/// If `to` was opened for appending, because the kernel shares no blocks with such a file; if `from` cannot be
/// read or `to` not be written.
pub fn copy(mut from: &File, mut to: &File) -> io::Result<u64> {
    let flags = OFlag::from_bits_retain(fcntl(to, FcntlArg::F_GETFL)?);
    if flags.contains(OFlag::O_APPEND) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a copy must not be opened for appending",
        ));
    }
    // With files, not streams: only for these does io::copy ask the kernel to copy.
    io::copy(&mut from, &mut to)
}

/// Copies what is in `from`, to which no process writes, to the new directory `name` of `to`: links as links, no
/// special files. New directories inherit the set-group-ID bit, which RestrictSUIDSGID= forbids to set.
/// Returns what it leaves out because no sealed directory can have it.
///
/// # Errors
/// If something cannot be read or written. What was copied before stays.
pub fn copy_tree(from: &Directory, to: &Directory, name: &str) -> io::Result<Beyond> {
    to.make(name, fstat(from)?.st_mode & 0o777)?;
    let mut target = Trail::new(&to.enter(name)?)?;
    let mut walk = Walk::new(from, WalkBounds::SEALED)?;
    let mut beyond = Beyond::default();
    while let Some(step) = walk.step() {
        match step {
            WalkStep::Enter(dir) => {
                target.here()?.make(dir.name, dir.stat.st_mode & 0o777)?;
                target.enter(dir.name)?;
            }
            WalkStep::Leave => target.leave()?,
            WalkStep::Leaf(entry) if entry.kind == EntryKind::Link => {
                let text = readlinkat(entry.dir, entry.name)?;
                target.here()?.make_link(entry.name, &text)?;
            }
            WalkStep::Leaf(entry) if entry.kind == EntryKind::File => {
                let source = entry.dir.read(entry.name)?;
                let made = target.here()?.create_for_writing(entry.name, 0o600)?;
                copy(&source, &made)?;
                let mode = source.metadata()?.permissions().mode() & 0o777 | GROUP_BITS;
                made.set_permissions(Permissions::from_mode(mode))?;
            }
            WalkStep::Leaf(_) => {}
            WalkStep::Missed { path, why, .. } if why.is_beyond_depth() => beyond.note(path),
            WalkStep::Missed { path, why, .. } => {
                return Err(io::Error::other(format!("'{}': {why}", path.display())));
            }
        }
    }
    Ok(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::remove::remove_tree;
    use crate::files::walk::{DEPTH_MAX, PATH_BYTES_MAX};
    use crate::sample::{deep, depths, poor};
    use std::fs;
    use std::io::{Seek, SeekFrom};
    use std::path::Path;

    /// Lengths around the size of a block.
    const LENGTHS: [usize; 7] = [0, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1];

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn copies(from: &Path, to: &Path) {
        let target = Directory::open(to).unwrap();
        for length in LENGTHS {
            let name = format!("f{length}");
            let source = from.join(format!("source-{length}"));
            fs::write(&source, content(length)).unwrap();
            let source = File::open(&source).unwrap();
            let file = target.create_for_writing(&name, 0o600).unwrap();
            assert_eq!(copy(&source, &file).unwrap(), length as u64);
            assert_eq!(fs::read(to.join(&name)).unwrap(), content(length), "{name}");
        }
    }

    #[test]
    fn copies_all_bytes_within_a_file_system() {
        let top = tempfile::tempdir().unwrap();
        let to = top.path().join("to");
        fs::create_dir(&to).unwrap();
        copies(top.path(), &to);
    }

    /// A tmpfs shares no blocks, neither with itself nor with the file system of temporary files.
    #[test]
    fn copies_all_bytes_where_blocks_cannot_be_shared() {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let disk = tempfile::tempdir().unwrap();
        let to = memory.path().join("to");
        fs::create_dir(&to).unwrap();
        copies(memory.path(), &to);
        let to = memory.path().join("from-disk");
        fs::create_dir(&to).unwrap();
        copies(disk.path(), &to);
    }

    /// Files of procfs have no length.
    #[test]
    fn copies_from_the_position_of_any_file() {
        let top = tempfile::tempdir().unwrap();
        let to = Directory::open(top.path()).unwrap();
        let file = to.create_for_writing("version", 0o600).unwrap();
        let mut source = File::open("/proc/version").unwrap();
        source.seek(SeekFrom::Start(6)).unwrap();
        copy(&source, &file).unwrap();
        let version = fs::read("/proc/version").unwrap();
        assert_eq!(fs::read(top.path().join("version")).unwrap(), version[6..]);
    }

    #[test]
    fn refuses_a_target_that_is_opened_for_appending() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("source"), "text").unwrap();
        let directory = Directory::open(top.path()).unwrap();
        let source = directory.read("source").unwrap();
        let file = directory.create("copy", 0o600).unwrap();
        let error = copy(&source, &file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read(top.path().join("copy")).unwrap(), b"");
    }

    #[test]
    fn trees_of_any_depth_are_copied_as_far_as_they_fit() {
        poor(module_path!(), "trees_of_any_depth_are_copied_as_far_as_they_fit", || {
            for (levels, name) in depths() {
                let top = tempfile::tempdir_in("/dev/shm").unwrap();
                fs::create_dir(top.path().join("from")).unwrap();
                deep(&top.path().join("from"), levels, &name);
                fs::create_dir(top.path().join("from/z")).unwrap();
                fs::write(top.path().join("from/z/file"), "kept").unwrap();
                std::os::unix::fs::symlink("file", top.path().join("from/z/link")).unwrap();
                let here = Directory::open(top.path()).unwrap();
                let beyond = copy_tree(&here.enter("from").unwrap(), &here, "to").unwrap();
                let fits = levels <= DEPTH_MAX && levels * (name.len() + 1) < PATH_BYTES_MAX - 5;
                assert_eq!(beyond.count, usize::from(!fits), "{levels}");
                for file in ["file", "link"] {
                    let copy = fs::read(top.path().join("to/z").join(file)).unwrap();
                    assert_eq!(copy, b"kept");
                }
                remove_tree(&top.keep()).unwrap();
            }
        });
    }
}
