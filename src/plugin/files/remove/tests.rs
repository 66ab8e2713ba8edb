use super::*;
use crate::sample::{deep, depths, poor};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn trees_of_any_depth_are_removed_with_few_descriptors() {
    poor(module_path!(), "trees_of_any_depth_are_removed_with_few_descriptors", || {
        for (levels, name) in depths() {
            let top = tempfile::tempdir_in("/dev/shm").unwrap();
            let tree = top.path().join("tree");
            fs::create_dir(&tree).unwrap();
            deep(&tree, levels, &name);
            // Directories with entries of their own, above and below the level where none stays open.
            deep(&tree, levels.min(100), "m");
            deep(&tree.join("m"), levels.min(100), "k");
            remove_tree(&tree).unwrap();
            assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
        }
    });
}

#[test]
fn links_are_removed_and_not_followed() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    fs::create_dir_all(at("kept/below")).unwrap();
    fs::write(at("kept/below/file"), "x").unwrap();
    fs::create_dir_all(at("tree/a")).unwrap();
    symlink(at("kept"), at("tree/a/link")).unwrap();
    symlink(at("kept"), at("link")).unwrap();
    nix::unistd::mkfifo(&at("tree/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(at("file"), "x").unwrap();
    for name in ["tree", "link", "file", "missing", "missing/below"] {
        remove_tree(&at(name)).unwrap();
        assert!(at(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(at("kept/below/file").exists());
}

#[test]
fn directories_without_permissions_are_removed() {
    let top = tempfile::tempdir().unwrap();
    let tree = top.path().join("tree");
    fs::create_dir_all(tree.join("a/b/c")).unwrap();
    for path in ["a/b", "a", ""] {
        fs::set_permissions(tree.join(path), Permissions::from_mode(0o000)).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

/// Many directories of one directory: each is found without listing those before it.
#[test]
fn wide_trees_are_removed() {
    let top = tempfile::tempdir().unwrap();
    let tree = top.path().join("tree");
    for number in 0..3000 {
        fs::create_dir_all(tree.join(format!("{number}/below"))).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

/// procfs has directories that no process can remove.
#[test]
fn what_cannot_be_removed_is_an_error() {
    remove_tree(Path::new("/proc/self/task")).unwrap_err();
    let error = remove_tree(Path::new("/")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
