//! Files that systemd leaves of unloaded units. For `LogExtraFields=` PID 1 writes a file that
//! journald reads and every local user can read, and does not remove it with the unit (seen on 252
//! and 257; `unit_unlink_state_files()` in unit.c removes a file of another name). PID 1 writes the
//! file at each start, and not when it is reloaded or re-executed. A user's manager writes no such
//! file.

use archivist_core::unit::Names;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const UNITS: &str = "/run/systemd/units";
const FIELDS: &str = "log-extra-fields:";

/// The files with log fields of one instance's units.
#[derive(Clone, Debug)]
pub struct LogFieldFiles {
    directory: PathBuf,
    names: Names,
    /// Whether a failure was logged already; further ones are debug messages.
    warned: Arc<AtomicBool>,
}

impl LogFieldFiles {
    pub fn new(names: Names) -> LogFieldFiles {
        LogFieldFiles::below(UNITS.as_ref(), names)
    }

    fn below(directory: &Path, names: Names) -> LogFieldFiles {
        LogFieldFiles { directory: directory.to_owned(), names, warned: Arc::default() }
    }

    /// Removes the file of `unit`, which is not loaded any more, if there is one.
    pub fn remove(&self, unit: &str) {
        if self.names.kind_of(unit).is_none() {
            return;
        }
        let path = self.directory.join(format!("{FIELDS}{unit}"));
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if self.warned.swap(true, Ordering::Relaxed) => {
                tracing::debug!("failed to remove '{}': {error}, ignoring", path.display());
            }
            Err(error) => {
                tracing::warn!("failed to remove '{}': {error}, ignoring", path.display());
            }
        }
    }

    /// Returns the units, loaded or not, that have a file; none if the directory cannot be read.
    pub fn units(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.directory).into_iter().flatten();
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let units = names.filter_map(|name| Some(name.strip_prefix(FIELDS)?.to_owned()));
        units.filter(|unit| self.names.kind_of(unit).is_some()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_units_stay() {
        let directory = tempfile::tempdir().unwrap();
        let ours = "archivist-hook-wget-s3.service";
        let others = [
            "log-extra-fields:archivist-second-hook-wget-s3.service",
            "log-extra-fields:ssh.service",
            "invocation:archivist-hook-wget-s3.service",
            "log-extra-fields:archivist-orchestrator.service",
        ];
        let fields = format!("{FIELDS}{ours}");
        for name in others.iter().copied().chain([fields.as_str()]) {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let files = LogFieldFiles::below(directory.path(), Names::new("archivist"));
        assert_eq!(files.units(), [ours]);
        for unit in [ours, ours, "ssh.service", "../x"] {
            files.remove(unit);
        }
        assert_eq!(files.units(), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn unreadable_directory_counts_as_empty() {
        let files = LogFieldFiles::below(Path::new("/nonexistent"), Names::new("archivist"));
        files.remove("archivist-hook-wget-s3.service");
        assert!(files.units().is_empty());
    }
}
