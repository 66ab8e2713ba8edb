//! Output directories: written by the worker and by hooks, two users that share a group.

use super::WorkerError;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Mode of the directories on the way: hooks pass through.
const WAY: u32 = 0o750;
/// Mode of directories that hooks write.
const SHARED: u32 = 0o770;

/// Makes `path`, which hooks may write, and what is missing above it. The set-group-ID bit comes
/// from the archive's directory; setting it here is what RestrictSUIDSGID= forbids.
pub fn make(path: &Path) -> Result<(), WorkerError> {
    if let Some(parent) = path.parent() {
        build(parent, WAY, true)?;
    }
    build(path, SHARED, false)
}

/// Removes a directory that hooks have emptied. What is left in one goes with its age:
/// tmpfiles.d(5).
pub fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir(path) {
        tracing::debug!("cannot remove '{}': {error}, ignoring", path.display());
    }
}

fn build(path: &Path, mode: u32, recursive: bool) -> Result<(), WorkerError> {
    match DirBuilder::new()
        .mode(mode)
        .recursive(recursive)
        .create(path)
    {
        Err(error) if !(error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir()) => {
            Err(WorkerError::File {
                verb: "make",
                path: path.to_owned(),
                source: error,
            })
        }
        _ => Ok(()),
    }
}
