//! Copies of files. Files of one file system share their blocks, where it can do that (btrfs, XFS).

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Directory;
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
}
