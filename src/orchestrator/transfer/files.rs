//! The records of transfers. They are read outside the transaction, on a thread.

use archivist_core::model::{Outcome, Reading, RunId};
use archivist_core::store::Record;
use archivist_shared::config::Scope;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest record, in bytes.
const RECORD_MAX: u64 = 1 << 16;

/// A transfer whose unit has ended, before its record is read.
#[derive(Clone, Debug)]
pub struct TransferEnd {
    pub run: RunId,
    pub outcome: Outcome,
    pub reading: Reading,
    /// Whether systemd has the unit still.
    pub loaded: bool,
}

/// The same with what the program wrote; none if that is not a record.
#[derive(Clone, Debug)]
pub struct CollectedTransfer {
    pub end: TransferEnd,
    pub record: Option<Record>,
}

/// Where a transfer writes its record. The file outlasts the orchestrator.
pub fn record_path(scope: &Scope, run: RunId) -> PathBuf {
    let name = format!("{}-{}.json", scope.unit_prefix(), run.0);
    scope.runtime_dir().join("transfers").join(name)
}

/// Reads the record of a transfer.
pub fn collect(scope: &Scope, end: TransferEnd) -> CollectedTransfer {
    let record = read_record(&record_path(scope, end.run));
    CollectedTransfer { end, record }
}

fn read_record(path: &Path) -> Option<Record> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(RECORD_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines().rev();
    lines.find_map(|line| serde_json::from_str(line).ok())
}
