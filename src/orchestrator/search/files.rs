//! The answers of searches. They are read outside the transaction, on a thread.

use crate::units::ReadFiles;
use archivist_config::Scope;
use archivist_core::model::RunId;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest answer in bytes: dbus-daemon takes messages of up to 32 MiB.
const ANSWER_MAX: u64 = 16 << 20;

/// Where a search writes its answer. The file outlasts the orchestrator.
pub fn answer_path(scope: &Scope, run: RunId) -> PathBuf {
    let name = format!("{}-{}.json", scope.unit_prefix(), run.0);
    scope.runtime_dir().join("searches").join(name)
}

/// Reads the answer of a search, as a [`Found`].
pub fn of_search(run: RunId) -> ReadFiles {
    Box::new(move |scope| Arc::new(read(&answer_path(scope, run))))
}

/// The answer, or why it is of no use.
pub type Found = Result<String, String>;

fn read(path: &Path) -> Found {
    let failed = |error| format!("failed to read '{}': {error}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let mut start = file.take(ANSWER_MAX + 1);
    let bytes = start.read_to_string(&mut text).map_err(failed)?;
    if bytes as u64 > ANSWER_MAX {
        return Err("the answer is too long: ask for fewer hits".to_owned());
    }
    Ok(text.trim_end().to_owned())
}
