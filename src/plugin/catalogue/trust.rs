//! Checks that only trusted users could have changed a file that is executed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// The users whose files may be executed as hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Only root: for the system instance.
    Root,
    /// Root and this user: for `archivist --user`.
    User(u32),
}

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;

/// Largest number of symbolic links in one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: u32 = 40;

impl Trust {
    fn owns(self, uid: u32) -> bool {
        uid == 0 || self == Trust::User(uid)
    }

    /// Checks owner and mode of one file or directory. Sticky directories such as /tmp are
    /// accepted: other users can add files but not replace them.
    fn judge(self, uid: u32, mode: u32, is_dir: bool) -> Result<(), String> {
        if !self.owns(uid) {
            return Err(match self {
                Trust::Root => format!("is owned by user {uid}, not by root"),
                Trust::User(own) => format!("is owned by user {uid}, not by root or user {own}"),
            });
        }
        if mode & OTHERS_WRITE != 0 && !(is_dir && mode & STICKY != 0) {
            return Err(format!("is writable by other users (mode {:03o})", mode & 0o777));
        }
        Ok(())
    }

    /// Checks one file or directory, but not its parent directories.
    pub fn check(self, path: &Path) -> Result<(), String> {
        let found = fs::metadata(path).map_err(|error| error.to_string())?;
        self.judge(found.uid(), found.mode(), found.is_dir())
    }

    /// Checks a path and all its parent directories from `/` on, following symbolic links. The
    /// error names the part that failed.
    pub fn check_path(self, path: &Path) -> Result<(), (PathBuf, String)> {
        let fail = |at: &Path, error: io::Error| (at.to_owned(), error.to_string());
        let start = std::path::absolute(path).map_err(|error| fail(path, error))?;
        let mut ahead = parts(&start);
        let mut here = PathBuf::from("/");
        let mut links = 0;
        self.check(&here).map_err(|what| (here.clone(), what))?;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let found = fs::symlink_metadata(&next).map_err(|error| fail(&next, error))?;
            if found.is_symlink() {
                links += 1;
                if links > LINKS_MAX {
                    return Err((next, "too many symbolic links".to_owned()));
                }
                let target = fs::read_link(&next).map_err(|error| fail(&next, error))?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                ahead.extend(parts(&target));
                continue;
            }
            self.judge(found.uid(), found.mode(), found.is_dir())
                .map_err(|what| (next.clone(), what))?;
            here = next;
        }
        Ok(())
    }

    /// Whether the user of hooks may execute a file with this owner and mode. In the system
    /// instance that user owns no files of plugins.
    pub fn can_execute(self, uid: u32, mode: u32) -> bool {
        match self {
            Trust::User(own) if own == uid => mode & 0o100 != 0,
            _ => mode & 0o011 != 0,
        }
    }
}

/// The components of a path in reverse order.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from_vec(b"..".to_vec())),
        _ => None,
    });
    let mut parts: Vec<OsString> = named.collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn me() -> Trust {
        Trust::User(nix::unistd::geteuid().as_raw())
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn owner_and_mode_decide() {
        assert!(Trust::Root.judge(0, 0o755, true).is_ok());
        assert!(Trust::Root.judge(1000, 0o755, true).is_err());
        assert!(Trust::User(1000).judge(1000, 0o755, true).is_ok());
        assert!(Trust::User(1000).judge(0, 0o755, true).is_ok());
        assert!(Trust::User(1000).judge(1001, 0o755, true).is_err());
        assert!(Trust::Root.judge(0, 0o775, true).is_err());
        assert!(Trust::Root.judge(0, 0o757, false).is_err());
        assert!(Trust::Root.judge(0, 0o1777, true).is_ok());
        assert!(Trust::Root.judge(0, 0o1777, false).is_err());
    }

    #[test]
    fn writable_parent_directory_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        chmod(&top.path().join("a"), 0o755);
        chmod(&deep, 0o755);
        assert_eq!(me().check_path(&deep), Ok(()));
        chmod(&top.path().join("a"), 0o777);
        let (at, what) = me().check_path(&deep).unwrap_err();
        assert_eq!(at, top.path().join("a").canonicalize().unwrap());
        assert_eq!(what, "is writable by other users (mode 777)");
    }

    #[test]
    fn parents_of_a_link_s_target_are_checked() {
        let top = tempfile::tempdir().unwrap();
        let open = top.path().join("open");
        fs::create_dir_all(open.join("plugins")).unwrap();
        chmod(&open.join("plugins"), 0o755);
        chmod(&open, 0o777);
        let link = top.path().join("link");
        symlink("open/plugins", &link).unwrap();
        assert_eq!(me().check_path(&link).unwrap_err().0.file_name(), open.file_name());
        let ring = top.path().join("ring");
        symlink("ring", &ring).unwrap();
        assert_eq!(me().check_path(&ring).unwrap_err().1, "too many symbolic links");
        assert!(me().check_path(&top.path().join("missing")).is_err());
    }

    #[test]
    fn execute_permission_depends_on_the_user() {
        assert!(Trust::Root.can_execute(0, 0o755));
        assert!(Trust::Root.can_execute(0, 0o750));
        assert!(!Trust::Root.can_execute(0, 0o744));
        assert!(Trust::User(7).can_execute(7, 0o700));
        assert!(!Trust::User(7).can_execute(0, 0o700));
    }
}
