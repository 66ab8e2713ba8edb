//! Disk space that the files of a directory use.

use crate::files::beneath::Directory;
use crate::files::output::BOUNDS;
use crate::files::walk::{EntryKind, walk};
use std::path::Path;

/// Time of a file's last change in milliseconds since 1970, and its allocated bytes.
pub type Allocation = (i64, u64);

/// The files below `dir`, or below its subdirectory `part`, within the bounds of [`walk`]. Empty if
/// the directory cannot be read. Hooks must not be able to write to the parents of `dir`.
pub fn allocations(dir: &Path, part: Option<&str>) -> Vec<Allocation> {
    let mut files = Vec::new();
    let top = Directory::open(dir).and_then(|top| match part {
        Some(part) => top.enter(part),
        None => Ok(top),
    });
    if let Ok(top) = top {
        let _ = walk(&top, BOUNDS, &mut |entry| {
            if entry.kind == EntryKind::File {
                files.push((entry.changed(), entry.allocated()));
            }
        });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn holes_use_no_space_and_times_are_from_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let hole = fs::File::create(dir.path().join("hole")).unwrap();
        hole.set_len(1 << 40).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/full"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        hole.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
        let found = allocations(dir.path(), None);
        assert_eq!(found.len(), 2);
        let bytes: u64 = found.iter().map(|(_, bytes)| bytes).sum();
        assert!((100_000..1 << 20).contains(&bytes), "{bytes}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!(found.iter().all(|(changed, _)| now - changed < 60_000), "{found:?}");
        assert_eq!(allocations(dir.path(), Some("sub")).len(), 1);
        assert_eq!(allocations(dir.path(), Some("link")), []);
        assert_eq!(allocations(Path::new("/nonexistent"), None), []);
    }
}
