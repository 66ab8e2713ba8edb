//! Files with the standard input of units: assignments of workers, requests of checks, and what the
//! launcher executes for hooks and alerts. systemd opens them as root, so only the orchestrator's
//! user may read them. They last until the run has ended, because a unit may still wait for others
//! when the orchestrator is killed.

use crate::machine::private_file;
use archivist_config::Scope;
use archivist_core::model::RunId;
use archivist_core::unit::Names;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

fn directory(scope: &Scope) -> PathBuf {
    scope.runtime_dir().join("input")
}

pub fn path(scope: &Scope, unit: &str, run: RunId) -> PathBuf {
    directory(scope).join(format!("{unit}.{}", run.0))
}

/// Writes the file of a run.
///
/// # Errors
/// If it cannot be written, with the reason.
pub fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    private_file::create(path)
        .and_then(|mut file| file.write_all(content))
        .map_err(|error| format!("failed to write '{}': {error}", path.display()))
}

/// Removes the files that a killed orchestrator left: those of units of `names`, except `kept`.
pub fn remove_except(scope: &Scope, names: &Names, kept: &BTreeSet<PathBuf>) {
    let entries = std::fs::read_dir(directory(scope)).into_iter().flatten();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let unit = path.file_stem().and_then(|name| name.to_str());
        if unit.and_then(|unit| names.kind_of(unit)).is_some() && !kept.contains(&path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const UNIT: &str = "archivist-hook-wget-s3.service";

    #[test]
    fn no_other_user_can_read_a_file() {
        let root = tempfile::tempdir().unwrap();
        let file = path(&Scope::system(root.path()), UNIT, RunId(7));
        write(&file, b"long secret").unwrap();
        write(&file, b"secret").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"secret");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn files_of_open_runs_and_of_other_instances_stay() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let file = |unit: &str, run| path(&scope, unit, RunId(run));
        let (open, ended) = (file(UNIT, 8), file(UNIT, 7));
        let other = file("archivist-second-hook-wget-s3.service", 7);
        let names = Names::new("archivist");
        remove_except(&scope, &names, &BTreeSet::new());
        for file in [&open, &ended, &other] {
            write(file, b"").unwrap();
        }
        remove_except(&scope, &names, &BTreeSet::from([open.clone()]));
        assert_eq!([open, ended, other].map(|file| file.exists()), [true, false, true]);
    }
}
