use super::*;
use crate::sample::{deep, depths, poor};
use std::fs;
use std::os::fd::OwnedFd;

/// Creates nested directories, deeper than the longest possible path.
fn nest(top: &std::path::Path, depth: usize) -> OwnedFd {
    let flags = OFlag::O_DIRECTORY;
    let mut here = nix::fcntl::open(top, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        nix::sys::stat::mkdirat(&here, "d", Mode::S_IRWXU).unwrap();
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
    here
}

fn seen(top: &std::path::Path, entries: usize, depth: usize) -> (Vec<usize>, MissedEntries) {
    let bounds = WalkBounds { entries, depth, path: usize::MAX, unlock: true };
    let mut depths = Vec::new();
    let top = Directory::open(top).unwrap();
    let missed = walk(&top, bounds, &mut |entry| depths.push(entry.depth)).unwrap();
    depths.sort_unstable();
    (depths, missed)
}

#[test]
fn depth_uses_neither_stack_nor_descriptors() {
    let top = tempfile::tempdir().unwrap();
    let deepest = nest(top.path(), 3000);
    nix::unistd::symlinkat("/etc", &deepest, "link").unwrap();
    fs::create_dir(top.path().join("d/other")).unwrap();
    fs::write(top.path().join("d/other/file"), "x").unwrap();
    let (depths, missed) = seen(top.path(), usize::MAX, usize::MAX);
    assert_eq!((depths, missed.count), (vec![2, 3000], 0));
    let (depths, missed) = seen(top.path(), usize::MAX, 100);
    assert_eq!((depths, missed.count), (vec![2], 1));
    assert_eq!(missed.first.unwrap().1.to_string(), "too many levels of directories");
    let (_, missed) = seen(top.path(), 50, usize::MAX);
    assert_eq!(missed.count, 1);
}

#[test]
fn moved_directory_ends_the_walk_below_it() {
    let top = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    let deepest = nest(top.path(), 80);
    for name in ["here", "later"] {
        nix::sys::stat::mkdirat(&deepest, name, Mode::S_IRWXU).unwrap();
    }
    let file = nix::fcntl::openat(&deepest, "here/file", OFlag::O_CREAT, Mode::S_IRWXU);
    drop(file.unwrap());
    let bounds =
        WalkBounds { entries: usize::MAX, depth: usize::MAX, path: usize::MAX, unlock: true };
    let held = Directory::open(top.path()).unwrap();
    let mut names = Vec::new();
    let missed = walk(&held, bounds, &mut |entry| {
        names.push(entry.name.to_owned());
        // From the present directory of the walk, `..` leads outside.
        let _ = nix::fcntl::renameat(&deepest, "here", &held, "moved");
        let to = outside.path().join("moved");
        let _ = fs::rename(top.path().join("moved"), to);
    })
    .unwrap();
    assert_eq!(names, ["file"]);
    assert!(missed.count > 0, "{missed:?}");
}

/// The steps of a walk, as text: paths, `<` for a return, `!` for what is missed.
fn steps(top: &std::path::Path, bounds: WalkBounds) -> Vec<String> {
    let top = Directory::open(top).unwrap();
    let mut walk = Walk::new(&top, bounds).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = walk.step() {
        steps.push(match step {
            WalkStep::Leaf(entry) => entry.path(),
            WalkStep::Enter(entry) => format!("{}/", entry.path()),
            WalkStep::Leave => "<".to_owned(),
            WalkStep::Missed { path, why, .. } => format!("!{} {why}", path.display()),
        });
    }
    steps
}

#[test]
fn entries_come_in_the_order_of_names_with_what_is_below() {
    let top = tempfile::tempdir().unwrap();
    for path in ["b/c", "b/a", "e"] {
        fs::create_dir_all(top.path().join(path)).unwrap();
    }
    for path in ["a", "b/b", "b/c/x", "f"] {
        fs::write(top.path().join(path), "").unwrap();
    }
    let all = ["a", "b/", "b/a/", "<", "b/b", "b/c/", "b/c/x", "<", "<", "e/", "<", "f"];
    assert_eq!(steps(top.path(), WalkBounds::SEALED), all);
    let shallow = WalkBounds { depth: 1, path: 2, ..WalkBounds::SEALED };
    let missed =
        ["!b/a the path is too long", "!b/b the path is too long", "!b/c the path is too long"];
    let expected: Vec<&str> =
        ["a", "b/"].into_iter().chain(missed).chain(["<", "e/", "<", "f"]).collect();
    assert_eq!(steps(top.path(), shallow), expected);
}

#[test]
fn sealed_bounds_hold_for_trees_of_any_depth() {
    poor(module_path!(), "sealed_bounds_hold_for_trees_of_any_depth", || {
        for (levels, name) in depths() {
            let top = tempfile::tempdir_in("/dev/shm").unwrap();
            deep(top.path(), levels, &name);
            let steps = steps(top.path(), WalkBounds::SEALED);
            let missed = steps.iter().filter(|step| step.starts_with('!')).count();
            let fits = levels <= DEPTH_MAX && levels * (name.len() + 1) < PATH_BYTES_MAX;
            assert_eq!(missed, usize::from(!fits), "{levels} {}", name.len());
            assert!(steps.len() <= 2 * DEPTH_MAX + 1, "{}", steps.len());
            crate::files::remove::remove_tree(&top.keep()).unwrap();
        }
    });
}
