//! Free space of a file system.

use nix::sys::statvfs::{FsFlags, Statvfs, fstatvfs, statvfs};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// What a file system has left for an unprivileged process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Available bytes.
    pub bytes: u64,
    /// Available inodes. `None` if the file system does not limit their number (btrfs).
    pub inodes: Option<u64>,
    /// Whether it is mounted read-only.
    pub is_read_only: bool,
}

impl FreeSpace {
    /// Reads the free space of the file system that contains `path` (statvfs(3)).
    pub fn at(path: &Path) -> io::Result<FreeSpace> {
        Ok(statvfs(path)?.into())
    }

    /// Reads the free space of the file system that contains an open file.
    pub fn of(file: impl AsFd) -> io::Result<FreeSpace> {
        Ok(fstatvfs(file)?.into())
    }
}

impl From<Statvfs> for FreeSpace {
    fn from(found: Statvfs) -> FreeSpace {
        FreeSpace {
            bytes: found.blocks_available().saturating_mul(found.fragment_size()),
            inodes: Some(found.files_available()).filter(|_| found.files() > 0),
            is_read_only: found.flags().contains(FsFlags::ST_RDONLY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn path_and_descriptor_have_the_same_free_space() {
        let directory = tempfile::tempdir().unwrap();
        let space = FreeSpace::at(directory.path()).unwrap();
        assert!(space.bytes > 0 && !space.is_read_only);
        let file = File::open(directory.path()).unwrap();
        assert!(!FreeSpace::of(&file).unwrap().is_read_only);
        assert!(FreeSpace::at(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn file_system_without_blocks_has_no_free_bytes() {
        let proc = FreeSpace::at(Path::new("/proc/self")).unwrap();
        assert_eq!((proc.bytes, proc.inodes), (0, None));
    }
}
