//! Creating the directories of the data directory that units need, in case they were removed after
//! tmpfiles.d(5) had made them. The directory of the archive is not among them: if that is missing, its
//! file system is not mounted. See [`crate::engine::index`] for those of indexes.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Mode of the directory of an index: the group of hooks may write, but not replace files of root. Only
/// root can enter the directory above it; PID 1 binds it for the hooks of its plugin.
const MODE: u32 = 0o1770;
/// Mode of the library of programs, which hooks install and every user may run.
const LIBRARY_MODE: u32 = 0o775;
/// Directories that only root can enter, and that pass the group of hooks on to what is made in them.
const INHERITED_FROM: [&str; 2] = ["personas", "index"];
/// Name of a directory before it is complete.
const NEW: &str = ".new";

pub struct Directories<'a> {
    pub data: &'a Path,
    /// Whether it is that of a user, whose hooks run as that user.
    pub of_user: bool,
}

impl Directories<'_> {
    /// Creates the directory of an index and that above it unless they exist; returns whether they do.
    pub fn make_index(&self, name: &str) -> bool {
        let top = self.data.join("index");
        let path = top.join(name);
        if self.of_user {
            return unless_there(&path, || {
                DirBuilder::new().recursive(true).mode(0o700).create(&path)
            });
        }
        unless_there(&top, || self.make("index", None))
            && unless_there(&path, || {
                DirBuilder::new().mode(0o700).create(&path)?;
                fs::set_permissions(&path, Permissions::from_mode(MODE))
            })
    }

    /// Creates the library of programs unless it exists; returns whether it does. That of a user is
    /// created with the first program.
    pub fn make_library(&self) -> bool {
        let path = self.data.join("lib");
        if self.of_user {
            return path.is_dir();
        }
        unless_there(&path, || self.make("lib", Some(LIBRARY_MODE)))
    }

    /// Creates a directory of the group of hooks. The filters of the service refuse chown(2) and the bit
    /// for set-gid, so it inherits both from another directory. Without that, its file system is not
    /// mounted, or systemd-tmpfiles(8) has to make all.
    fn make(&self, name: &str, mode: Option<u32>) -> io::Result<()> {
        let others = INHERITED_FROM.iter().map(|other| self.data.join(other));
        let other = others.into_iter().find(|other| other.is_dir());
        let new = other.ok_or(ErrorKind::NotFound)?.join(NEW);
        match fs::remove_dir(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => DirBuilder::new().mode(0o700).create(&new)?,
        }
        if let Some(mode) = mode {
            fs::set_permissions(&new, Permissions::from_mode(mode))?;
        }
        let path = self.data.join(name);
        fs::rename(&new, &path)?;
        tracing::info!("created '{}'", path.display());
        Ok(())
    }
}

fn unless_there(path: &Path, make: impl FnOnce() -> io::Result<()>) -> bool {
    let made = match path.symlink_metadata() {
        Ok(kind) if kind.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::other("it is not a directory")),
        Err(_) => make(),
    };
    if let Err(error) = &made {
        tracing::debug!("failed to create '{}': {error}", path.display());
    }
    made.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, chown};
    use std::path::PathBuf;

    /// A data directory of which all but the personas was removed.
    fn data() -> (tempfile::TempDir, [PathBuf; 3]) {
        let data = tempfile::tempdir().unwrap();
        let paths = ["personas", "index", "lib"].map(|name| data.path().join(name));
        fs::create_dir(&paths[0]).unwrap();
        let groups = nix::unistd::getgroups().unwrap();
        let group = groups.last().map(|group| group.as_raw());
        chown(&paths[0], None, group).unwrap();
        fs::set_permissions(&paths[0], Permissions::from_mode(0o2700)).unwrap();
        (data, paths)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn removed_directories_are_made_with_their_group_and_mode() {
        let (data, [personas, top, library]) = data();
        let own = Directories { data: data.path(), of_user: false };
        // Left by a process that was killed.
        fs::create_dir(personas.join(NEW)).unwrap();
        for again in [false, true] {
            assert!(own.make_index("search"), "again: {again}");
            assert_eq!(mode(&top), 0o2700);
            assert_eq!(mode(&top.join("search")) & 0o1777, MODE);
        }
        assert!(own.make_library());
        assert_eq!(mode(&library), LIBRARY_MODE);
        for path in [&top, &top.join("search"), &library] {
            let of = |path: &Path| path.metadata().unwrap().gid();
            assert_eq!(of(path), of(&personas), "{}", path.display());
        }
        assert_eq!(fs::read_dir(personas).unwrap().count(), 0);
    }

    #[test]
    fn link_and_missing_file_system_are_no_directory() {
        let (data, [personas, top, _]) = data();
        let mut own = Directories { data: data.path(), of_user: false };
        std::os::unix::fs::symlink("/etc", &top).unwrap();
        assert!(!own.make_index("search"));
        fs::remove_file(&top).unwrap();
        fs::remove_dir(&personas).unwrap();
        assert!(!own.make_index("search") && !top.exists() && !own.make_library());
        own.of_user = true;
        assert!(own.make_index("search") && !own.make_library());
        assert_eq!(mode(&top.join("search")), 0o700);
    }
}
