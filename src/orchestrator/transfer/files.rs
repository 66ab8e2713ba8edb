//! The records of transfers. They are read outside the transaction, on a thread.

use crate::units::ReadFiles;
use archivist_config::Scope;
use archivist_core::model::RunId;
use archivist_core::store::Record;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest record, in bytes.
const RECORD_MAX: u64 = 1 << 16;

/// Where a transfer writes its record. The file outlasts the orchestrator.
pub fn record_path(scope: &Scope, run: RunId) -> PathBuf {
    let name = format!("{}-{}.json", scope.unit_prefix(), run.0);
    scope.runtime_dir().join("transfers").join(name)
}

/// Reads the record of a transfer, as an `Option<Record>`: none if what the program wrote is not one.
pub fn of_transfer(run: RunId) -> ReadFiles {
    Box::new(move |scope| Arc::new(read(&record_path(scope, run))))
}

fn read(path: &Path) -> Option<Record> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(RECORD_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines().rev();
    lines.find_map(|line| serde_json::from_str(line).ok())
}
