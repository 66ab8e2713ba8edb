//! Output directories: written by the worker and by hooks, two users that share a group.

use crate::WorkerError;
use archivist_plugin::Directory;
use archivist_shared::bus::documents::work::Assignment;
use nix::libc::{S_IFDIR, S_IFMT};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Mode of the directories on the way: hooks pass through.
const WAY: u32 = 0o750;
/// Mode of directories that hooks write.
const SHARED: u32 = 0o770;
/// Mode of an owner's directory: with the sticky bit hooks make files of their own there, but rename and remove none of ours.
const OWN: u32 = 0o1770;

/// Makes the directory of a crawl or snapshot, and opens it. The set-group-ID bit comes from the archive's directory; setting
/// it here is what RestrictSUIDSGID= forbids.
pub fn make(path: &Path) -> Result<Directory, WorkerError> {
    make_way(path)?;
    build(path, OWN, false)?;
    Directory::open(path).map_err(failed("open", path))
}

/// Makes a directory for temporary files, where hooks do what they want.
pub fn make_shared(path: &Path) -> Result<(), WorkerError> {
    make_way(path)?;
    build(path, SHARED, false)
}

/// Makes the directories of all plugins of the assignment, before there is a hook that could put anything in their place.
pub fn make_plugins(own: &Directory, assignment: &Assignment) -> Result<(), WorkerError> {
    for hook in assignment.hooks.iter().chain(&assignment.last_hooks) {
        make_plugin(own, &hook.plugin).map_err(failed("make", &own.path().join(&hook.plugin)))?;
    }
    Ok(())
}

fn make_plugin(own: &Directory, plugin: &str) -> std::io::Result<()> {
    match own.make(plugin, SHARED) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other,
    }
    if own.look(plugin)?.st_mode & S_IFMT == S_IFDIR {
        return Ok(());
    }
    let path = own.path().join(plugin);
    tracing::warn!(
        "removing '{}', which a hook put in place of a plugin directory",
        path.display()
    );
    own.clear(plugin)?;
    own.make(plugin, SHARED)
}

/// Opens the directory of a plugin, which is made if it is missing.
pub fn enter(own: &Directory, plugin: &str) -> Result<Directory, WorkerError> {
    let path = own.path().join(plugin);
    match own.make(plugin, SHARED) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(failed("make", &path)(error));
        }
        _ => {}
    }
    own.enter(plugin).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory => WorkerError::Replaced(path),
        _ => failed("open", &path)(error),
    })
}

/// Removes a directory that hooks have emptied. What is left in one goes with its age:
/// tmpfiles.d(5).
pub fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir(path) {
        tracing::debug!("cannot remove '{}': {error}, ignoring", path.display());
    }
}

fn make_way(path: &Path) -> Result<(), WorkerError> {
    path.parent().map_or(Ok(()), |way| build(way, WAY, true))
}

fn build(path: &Path, mode: u32, recursive: bool) -> Result<(), WorkerError> {
    match DirBuilder::new()
        .mode(mode)
        .recursive(recursive)
        .create(path)
    {
        Err(error) if !(error.kind() == ErrorKind::AlreadyExists && path.is_dir()) => {
            Err(failed("make", path)(error))
        }
        _ => Ok(()),
    }
}

fn failed(verb: &'static str, path: &Path) -> impl Fn(std::io::Error) -> WorkerError {
    move |source| WorkerError::File {
        verb,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_plugin_directory_is_no_link() {
        let top = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let own = make(&top.path().join("day/host/s1")).unwrap();
        let mode = std::fs::metadata(own.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o1000, 0o1000, "sticky");
        symlink(outside.path(), own.path().join("title")).unwrap();
        let error = enter(&own, "title").unwrap_err().to_string();
        assert!(
            error.ends_with("s1/title' is not a directory of its own: a hook replaced it"),
            "{error}"
        );
        // A retry begins with what is to be there.
        make_plugin(&own, "title").unwrap();
        assert_eq!(
            enter(&own, "title").unwrap().path(),
            own.path().join("title")
        );
        make_plugin(&own, "title").unwrap();
        for bad in ["..", ".", "", "/etc", "a/b", "../s2"] {
            assert!(enter(&own, bad).is_err(), "{bad}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
