//! What failed health checks of pools leave for `archivist pool status`, because systemd forgets a
//! failed check at once: a file for the last fault of a check, and one for the last restart that a
//! check caused. archivist-unhealthy@.service writes them. `worker` is NAME-INDEX.

use archivist_config::Scope;
use archivist_core::model::Time;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Longest time between the end of a worker by its check and its next start.
const RESTART_MAX: Duration = Duration::from_secs(3600);

/// Path of the file with the last fault of a worker's check.
pub fn fault_path(worker: &str, scope: &Scope) -> PathBuf {
    directory(scope).join(worker)
}

/// Path of the file with the reason of a worker's newest restart by a check.
fn restart_path(worker: &str, scope: &Scope) -> PathBuf {
    directory(scope).join(format!("{worker}.restart"))
}

fn directory(scope: &Scope) -> PathBuf {
    scope.runtime_dir().join("pool-health")
}

/// Writes why a check says nothing about its worker.
///
/// # Errors
/// With path and reason.
pub fn record_fault(worker: &str, fault: &str, scope: &Scope) -> Result<(), String> {
    write(&fault_path(worker, scope), fault)
}

/// Writes why the worker is ended after this number of restarts.
///
/// # Errors
/// With path and reason.
pub fn record_restart(worker: &str, restarts: u64, why: &str, scope: &Scope) -> Result<(), String> {
    let text = format!("{restarts}\n{why}");
    write(&restart_path(worker, scope), &text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("failed to write '{}': {error}", path.display()))
}

/// Returns why a check caused the restart with this number, counted from 1, of a process that started
/// at `since`.
pub fn restart_reason(worker: &str, restarts: u64, since: Time, scope: &Scope) -> Option<String> {
    let path = restart_path(worker, scope);
    let modified = path.metadata().ok()?.modified().ok()?;
    let written = Time(0).after(modified.duration_since(UNIX_EPOCH).ok()?);
    let text = std::fs::read_to_string(path).ok()?;
    let (before, why) = text.split_once('\n')?;
    let is_of_this = before.parse::<u64>().ok()? + 1 == restarts;
    // systemd counts from 0 again after a manual start.
    let is_recent = written <= since && since.until(written) < RESTART_MAX;
    (is_of_this && is_recent).then(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_by_a_check_keeps_its_reason() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let path = restart_path("web-0", &scope);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        record_restart("web-0", 2, "its health check did not end in time", &scope).unwrap();
        let modified = path.metadata().unwrap().modified().unwrap();
        let written = Time(0).after(modified.duration_since(UNIX_EPOCH).unwrap());
        let reason = |restarts, seconds| {
            let since = written.after(Duration::from_secs(seconds));
            restart_reason("web-0", restarts, since, &scope)
        };
        assert_eq!(reason(3, 1).unwrap(), "its health check did not end in time");
        // Another restart, one of an earlier life of the pool, and another worker.
        assert_eq!(reason(4, 1), None);
        assert_eq!(reason(3, 7200), None);
        assert_eq!(restart_reason("web-1", 3, written, &scope), None);
    }
}
