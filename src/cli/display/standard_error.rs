//! Files with the end of what failed hooks wrote to standard error, which outlast the journal.

use archivist_core::model::stderr_file;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::Run;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files that are printed.
const SHOWN_MAX: usize = 20;

/// Returns the file of a run of a hook. `None` if its newest run has left none, or if this user may not
/// read the archive.
pub fn file(run: &Run) -> Option<PathBuf> {
    let path = Path::new(run.directory.as_deref()?).join(stderr_file(run.hook.as_deref()?));
    let found = path.symlink_metadata().ok()?;
    found.is_file().then_some(path)
}

/// Returns a line for the file of each run, under a head; empty if there is none.
pub fn lines(runs: &[Run]) -> String {
    let files: BTreeSet<PathBuf> = runs.iter().filter_map(file).collect();
    if files.is_empty() {
        return String::new();
    }
    let shown = files.iter().take(SHOWN_MAX);
    let shown: String =
        shown.map(|path| format!("  {}\n", clean(&path.display().to_string()))).collect();
    let more = match files.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    format!("end of the standard error of failed hooks:\n{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn files_that_are_there_are_named_once_and_bounded() {
        let top = tempfile::tempdir().unwrap();
        let run = |id, hook: &str| Run {
            directory: Some(top.path().to_str().unwrap().to_owned()),
            ..sample::run(id, "bad", hook)
        };
        let runs = [run(1, "on_Snapshot__50_bad"), run(2, "on_Snapshot__50_bad")];
        assert_eq!(lines(&runs), "");
        let path = top.path().join("on_Snapshot__50_bad.stderr.log");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(lines(&runs), "", "a link of a hook");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "reason").unwrap();
        let named = format!("end of the standard error of failed hooks:\n  {}\n", path.display());
        assert_eq!(lines(&runs), named);
        let many: Vec<Run> = (0..25).map(|n| run(n, &format!("on_{n}"))).collect();
        for run in &many {
            let name = stderr_file(run.hook.as_deref().unwrap());
            std::fs::write(top.path().join(name), "").unwrap();
        }
        let said = lines(&many);
        assert_eq!(said.lines().count(), 22);
        assert!(said.ends_with("  and 5 more\n"), "{said}");
    }
}
