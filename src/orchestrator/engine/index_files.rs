//! Creating the directories of indexes. See [`crate::engine::index`].

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Mode of the directory of a plugin: the group of hooks may write, but not replace files of root.
/// Only root can enter the directory above it; PID 1 binds it for the hooks of its plugin.
const MODE: u32 = 0o1770;

/// Creates the directory of a plugin unless it exists; returns whether it does. tmpfiles.d(5)
/// creates `top`, whose group it inherits; in a user's own archive there is one user.
pub fn make(top: &Path, name: &str, user_scope: bool) -> bool {
    let path = top.join(name);
    let made = match path.symlink_metadata() {
        Ok(kind) if kind.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::other("it is not a directory")),
        Err(_) => create(&path, user_scope),
    };
    if let Err(error) = &made {
        tracing::debug!("failed to create '{}': {error}", path.display());
    }
    made.is_ok()
}

fn create(path: &Path, user_scope: bool) -> io::Result<()> {
    if user_scope {
        return DirBuilder::new().recursive(true).mode(0o700).create(path);
    }
    DirBuilder::new().create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(MODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_writable_for_the_group_and_no_link() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        for again in [false, true] {
            assert!(make(top.path(), "own", false), "again: {again}");
            let mode = path("own").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o1777, MODE);
        }
        std::os::unix::fs::symlink("/etc", path("link")).unwrap();
        assert!(!make(top.path(), "link", false));
        assert!(!make(&path("missing"), "own", false));
        assert!(make(&path("missing"), "own", true));
        let mode = path("missing/own").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
