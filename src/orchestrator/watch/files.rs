//! The files of watches and of their checks come to the turn as values in events.

use crate::main_loop::starts::Need;
use crate::units::ReadFiles;
use crate::watch::declared::{is_removed, read_named};
use archivist_config::Scope;
use archivist_config::declare::watch::Watch;
use archivist_core::model::{CheckKind, CheckRecord, RunId, without_userinfo};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest record of a check, in bytes.
const RECORD_MAX: u64 = 1 << 20;

/// A check is not started if its watch was removed meanwhile.
pub fn declared(watch: String) -> Need {
    Arc::new(move |scope| {
        if is_removed(scope, &watch) { Err("its watch was removed".to_owned()) } else { Ok(()) }
    })
}

#[derive(Clone, Debug, Default)]
pub struct CheckFiles {
    /// What the check printed; none if that is not a record.
    pub record: Option<CheckRecord>,
    /// The watch, if it is declared still.
    pub watch: Option<Watch>,
}

/// Reads the record of a check and the declaration of its watch, as [`CheckFiles`].
pub fn of_check(id: RunId, kind: CheckKind, watch: String) -> ReadFiles {
    Box::new(move |scope| {
        Arc::new(CheckFiles {
            record: read_record(&record_path(scope, id, kind)),
            watch: read_named(scope, &watch).ok().map(|found| found.watch),
        })
    })
}

/// Where a check writes its record. The file outlasts the orchestrator; the check has only its
/// descriptor. It is in memory, as the limits of those units keep it small; the unit with a browser
/// may write large files, so that its record is on the disk.
pub fn record_path(scope: &Scope, id: RunId, kind: CheckKind) -> PathBuf {
    let directory = match kind {
        CheckKind::Lighthouse => scope.data_dir(),
        _ => scope.runtime_dir(),
    };
    let name = format!("{}-{}.json", scope.unit_prefix(), id.0);
    directory.join("checks").join(name)
}

/// The last line that is a record: a document of archivist's own program, bounded in size, and read
/// as the report of a worker is. Pages never write it. Users see it: no URL in it has a user or
/// password.
fn read_record(path: &Path) -> Option<CheckRecord> {
    let file = File::open(path).ok()?;
    let mut text = Vec::new();
    file.take(RECORD_MAX + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > RECORD_MAX {
        return None;
    }
    let text = without_userinfo(&String::from_utf8_lossy(&text));
    let mut lines = text.rsplit('\n');
    lines.find_map(|line| serde_json::from_str(line).ok())
}
