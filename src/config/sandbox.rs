//! The sandbox of an instance: users, limits and sandbox of workers, hooks, checks and transfers are drop-ins,
//! found by the prefix of the unit's name. The package ships those of the first instance.

use super::Scope;
use std::path::{Path, PathBuf};

/// Directories in which systemd searches units of administrators and packages (systemd.unit(5)).
const UNIT_DIRS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Kinds of unit that must not run without their drop-ins.
const KINDS: [&str; 7] = ["crawl", "snapshot", "hook", "check", "store", "delete", "index"];

/// Returns the names of missing drop-in directories of the machine's orchestrator; without them its
/// workers would run as root. Empty in the user scope, where all units run as that user.
pub fn missing_drop_ins(scope: &Scope) -> Vec<String> {
    if scope.user {
        return Vec::new();
    }
    let prefix = scope.unit_prefix();
    let names = KINDS.map(|kind| format!("{prefix}-{kind}-.service.d"));
    let dirs = UNIT_DIRS.map(|dir| scope.rooted(dir));
    names.into_iter().filter(|name| !dirs.iter().any(|dir| has_drop_in(&dir.join(name)))).collect()
}

fn has_drop_in(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.any(|path: PathBuf| path.extension().is_some_and(|end| end == "conf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_needs_drop_ins_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let first = Scope::system(root.path());
        let second = Scope { instance: Some("second".to_owned()), ..first.clone() };
        assert_eq!(missing_drop_ins(&first).len(), KINDS.len());
        for kind in KINDS {
            let name = format!("usr/lib/systemd/system/archivist-{kind}-.service.d");
            let directory = root.path().join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("10-sandbox.conf"), "").unwrap();
        }
        assert_eq!(missing_drop_ins(&first), Vec::<String>::new());
        let missing = missing_drop_ins(&second);
        assert_eq!(missing[2], "archivist-second-hook-.service.d");

        let directory = root.path().join("etc/systemd/system").join(&missing[2]);
        std::fs::create_dir_all(&directory).unwrap();
        assert_eq!(missing_drop_ins(&second).len(), KINDS.len());
        std::fs::write(directory.join("10-sandbox.conf"), "").unwrap();
        assert_eq!(missing_drop_ins(&second).len(), KINDS.len() - 1);
        let user = Scope { user: true, ..second };
        assert_eq!(missing_drop_ins(&user), Vec::<String>::new());
    }
}
