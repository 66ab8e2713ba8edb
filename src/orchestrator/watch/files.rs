//! The files of watches and of their checks come to the turn as values in events.

use crate::machine::watch_files::{WatchRequest, read_named, read_record, record_path};
use crate::main_loop::effects::Job;
use crate::main_loop::event::Event;
use crate::units::ReadFiles;
use archivist_config::declare::watch::Watch;
use archivist_core::model::{CheckKind, CheckRecord, RunId};
use archivist_shared::bus::call::{Reply, WatchCall};
use std::sync::Arc;

/// Makes the event of a call about watches, with the declarations that it is about.
pub fn with_watches(call: WatchCall, reply: Reply<String>) -> Job {
    Box::new(move |scope| Event::Watches(WatchRequest::read(scope, call, reply)))
}

/// What the files of a check say that has ended.
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
