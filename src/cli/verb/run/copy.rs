//! `archivist run --output DIR`: copies what was archived. The output of hooks is not trusted: only
//! directories and regular files are copied, and no symbolic link is followed.

use crate::client::exit::Failure;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Deepest nesting that is copied.
const DEPTH_MAX: usize = 64;

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("failed to {verb} '{}': {error}", path.display()))
}

/// Creates `target` if it does not exist.
pub fn make(target: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(target).map_err(|error| failed("make", target, &error))
}

/// Copies the content of `source` into `target`, replacing existing files.
pub fn tree(source: &Path, target: &Path) -> Result<(), Failure> {
    tree_at(source, target, 0)
}

fn tree_at(source: &Path, target: &Path, depth: usize) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        let what = std::io::Error::other("nested too deeply");
        return Err(failed("copy", source, &what));
    }
    match std::fs::create_dir(target) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let kind =
                std::fs::symlink_metadata(target).map_err(|e| failed("look at", target, &e))?;
            if !kind.is_dir() {
                return Err(failed("make", target, &error));
            }
        }
        other => other.map_err(|error| failed("make", target, &error))?,
    }
    let entries = std::fs::read_dir(source).map_err(|error| failed("read", source, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", source, &error))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        let kind = entry
            .file_type()
            .map_err(|e| failed("look at", &from, &e))?;
        if kind.is_dir() {
            tree_at(&from, &to, depth + 1)?;
        } else if kind.is_file() {
            file(&from, &to)?;
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path) -> Result<(), Failure> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let mut source = File::options();
    let mut source = source
        .read(true)
        .custom_flags(flags)
        .open(from)
        .map_err(|error| failed("read", from, &error))?;
    match std::fs::remove_file(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(failed("replace", to, &error));
        }
        _ => {}
    }
    let target = File::create_new(to);
    let mut target = target.map_err(|error| failed("write", to, &error))?;
    std::io::copy(&mut source, &mut target).map_err(|error| failed("write", to, &error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_neither_copied_nor_written_through() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        std::fs::create_dir_all(path("from/wget")).unwrap();
        std::fs::write(path("from/wget/index.html"), "page").unwrap();
        symlink("/etc/passwd", path("from/link")).unwrap();
        std::fs::create_dir_all(path("to/wget")).unwrap();
        std::fs::write(path("mine"), "mine").unwrap();
        symlink(path("mine"), path("to/wget/index.html")).unwrap();

        tree(&path("from"), &path("to")).unwrap();
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("to/wget/index.html"), "page");
        assert_eq!(read("mine"), "mine");
        assert!(!path("to/link").exists());

        symlink(base.path(), path("elsewhere")).unwrap();
        assert!(tree(&path("from"), &path("elsewhere")).is_err());
    }
}
