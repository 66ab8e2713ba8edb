//! The files of watches and of their checks come to the turn as values in events.

use crate::machine::watch_files::{is_removed, read_named, read_record, record_path};
use crate::main_loop::starts::Need;
use crate::units::ReadFiles;
use archivist_config::declare::watch::Watch;
use archivist_core::model::{CheckKind, CheckRecord, RunId};
use std::sync::Arc;

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
