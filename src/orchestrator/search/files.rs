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

/// Reads the answer of a search, as an `Option<String>`: none if it is too long, or is not there.
pub fn of_search(run: RunId) -> ReadFiles {
    Box::new(move |scope| Arc::new(read(&answer_path(scope, run))))
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    let bytes = file.take(ANSWER_MAX + 1).read_to_string(&mut text).ok()?;
    (bytes as u64 <= ANSWER_MAX).then(|| text.trim_end().to_owned())
}
