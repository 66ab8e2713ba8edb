//! Creates output directories. The worker and the hooks, two users with a common group, write to
//! them.

use crate::WorkerError;
use archivist_plugin::Directory;
use archivist_shared::bus::documents::work::Assignment;
use nix::libc::{S_IFDIR, S_IFMT};
use nix::unistd::geteuid;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Mode of parent directories, which hooks may only traverse.
const PARENT_MODE: u32 = 0o750;
/// Mode of directories that hooks may write to.
const SHARED_MODE: u32 = 0o770;
/// Mode of directories that hooks may not enter.
const PRIVATE_MODE: u32 = 0o700;
/// Mode of the directory of a crawl or snapshot. The sticky bit lets hooks create files but not
/// rename or remove those of the worker.
pub(super) const OWNER_MODE: u32 = 0o1770;

/// Creates and opens the directory of a crawl or snapshot. It inherits the set-group-ID bit from
/// the archive's directory, because RestrictSUIDSGID= forbids to set it here.
pub fn make(path: &Path) -> Result<Directory, WorkerError> {
    make_parent(path)?;
    build(path, OWNER_MODE, false)?;
    Directory::open(path).map_err(failed("open", path))
}

/// Creates a directory for temporary files of hooks.
pub fn make_shared(path: &Path) -> Result<(), WorkerError> {
    make_parent(path)?;
    build(path, SHARED_MODE, false)
}

/// Creates the directories of all plugins of the assignment before any hook runs, so that no hook
/// can put something else in their place.
pub fn make_plugins(own: &Directory, assignment: &Assignment) -> Result<(), WorkerError> {
    for hook in assignment.hooks.iter().chain(&assignment.last_hooks) {
        make_plugin(own, &hook.plugin).map_err(failed("create", &own.path().join(&hook.plugin)))?;
    }
    Ok(())
}

fn make_plugin(own: &Directory, plugin: &str) -> std::io::Result<()> {
    match own.make(plugin, SHARED_MODE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other,
    }
    if own.stat(plugin)?.st_mode & S_IFMT == S_IFDIR {
        return Ok(());
    }
    let path = own.path().join(plugin);
    tracing::warn!(
        "removing '{}', which a hook put in place of a plugin directory",
        path.display()
    );
    own.clear(plugin)?;
    own.make(plugin, SHARED_MODE)
}

/// Opens the directory of a plugin, and creates it if it is missing.
pub fn enter(own: &Directory, plugin: &str) -> Result<Directory, WorkerError> {
    let path = own.path().join(plugin);
    match own.make(plugin, SHARED_MODE) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(failed("create", &path)(error));
        }
        _ => {}
    }
    own.enter(plugin).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory => WorkerError::Replaced(path),
        _ => failed("open", &path)(error),
    })
}

/// Opens a directory of the worker's own within that of a page, and creates it if it is missing. Hooks
/// can neither read it nor replace it; what they put there before is removed.
pub fn make_private(own: &Directory, name: &str) -> std::io::Result<Directory> {
    match own.make(name, PRIVATE_MODE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.and_then(|()| own.enter(name)),
    }
    let found = own.stat(name)?;
    let is_own = found.st_mode & S_IFMT == S_IFDIR && found.st_uid == geteuid().as_raw();
    if !is_own {
        own.clear(name)?;
        own.make(name, PRIVATE_MODE)?;
    }
    own.enter(name)
}

/// Removes a directory that hooks have emptied. systemd-tmpfiles(8) removes the files in other
/// directories by age.
pub fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir(path) {
        tracing::debug!("failed to remove '{}': {error}, ignoring", path.display());
    }
}

/// Removes the directory of a plugin, whose hooks have all ended. Hooks cannot replace the directory
/// above it, and links within are removed, not followed.
pub fn remove_plugin(own: &Directory, plugin: &str) {
    if let Err(error) = own.remove(plugin) {
        let path = own.path().join(plugin);
        tracing::warn!("failed to remove '{}': {error}, ignoring", path.display());
    }
}

pub(super) fn make_parent(path: &Path) -> Result<(), WorkerError> {
    path.parent().map_or(Ok(()), |parent| build(parent, PARENT_MODE, true))
}

pub(super) fn build(path: &Path, mode: u32, recursive: bool) -> Result<(), WorkerError> {
    match DirBuilder::new().mode(mode).recursive(recursive).create(path) {
        Err(error) if !(error.kind() == ErrorKind::AlreadyExists && path.is_dir()) => {
            Err(failed("create", path)(error))
        }
        _ => Ok(()),
    }
}

pub fn failed(verb: &'static str, path: &Path) -> impl Fn(std::io::Error) -> WorkerError {
    move |source| WorkerError::File { verb, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn plugin_directory_is_never_a_symbolic_link() {
        let top = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let own = make(&top.path().join("day/host/s1")).unwrap();
        let mode = std::fs::metadata(own.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o1000, 0o1000, "sticky");
        symlink(outside.path(), own.path().join("title")).unwrap();
        let error = enter(&own, "title").unwrap_err().to_string();
        assert!(error.ends_with("s1/title': a hook replaced it"), "{error}");
        // A retry replaces what a hook put there.
        make_plugin(&own, "title").unwrap();
        assert_eq!(enter(&own, "title").unwrap().path(), own.path().join("title"));
        make_plugin(&own, "title").unwrap();
        for bad in ["..", ".", "", "/etc", "a/b", "../s2"] {
            assert!(enter(&own, bad).is_err(), "{bad}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
