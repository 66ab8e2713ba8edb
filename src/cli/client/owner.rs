//! Files that root writes to the archive for its owner: workers replace and remove them later.

use nix::unistd::{Gid, Uid, getegid, geteuid, setegid, seteuid};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Runs `work` as the owner of the archive, if this process is root and the archive is not root's.
///
/// # Errors
/// If the archive cannot be read, or `work` fails.
pub fn as_owner<T>(archive: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let owner = archive.metadata()?;
    let own = (geteuid(), getegid());
    if !own.0.is_root() || owner.uid() == 0 {
        return work();
    }
    setegid(Gid::from_raw(owner.gid()))?;
    seteuid(Uid::from_raw(owner.uid()))?;
    let done = work();
    seteuid(own.0)?;
    setegid(own.1)?;
    done
}
