//! Preparing the start of a unit: its standard input and output. Files are made here, after the
//! commit.

use crate::engine::input_files;
use crate::machine::watch_files as files;
use crate::main_loop::starts::{Output, Start};
use archivist_config::Scope;
use archivist_shared::systemd::{ErrorKind, ManagerError};
use std::os::fd::OwnedFd;

/// The standard output of a start. Files of watches are read and made on a thread.
pub async fn prepared(start: &Start, scope: Scope) -> Result<Option<OwnedFd>, ManagerError> {
    if start.watch.is_none() {
        return prepare(start, &scope);
    }
    let (unit, start) = (start.spec.name.clone(), start.clone());
    let prepared = tokio::task::spawn_blocking(move || prepare(&start, &scope)).await;
    prepared.unwrap_or_else(|error| Err(not_prepared(&unit, error.to_string(), ErrorKind::Machine)))
}

fn not_prepared(unit: &str, why: String, kind: ErrorKind) -> ManagerError {
    ManagerError { verb: "prepare unit", object: unit.to_owned(), why, kind }
}

/// Writes the standard input of a start, and returns its standard output; `None` if its settings
/// say what that is.
///
/// # Errors
/// If its watch is not declared any more, or a file cannot be made.
pub fn prepare(start: &Start, scope: &Scope) -> Result<Option<OwnedFd>, ManagerError> {
    let unit = &start.spec.name;
    let failed = |why: String| not_prepared(unit, why, ErrorKind::Machine);
    let watch = start.watch.as_deref();
    if watch.is_some_and(|name| files::is_removed(scope, name)) {
        let why = "its watch was removed".to_owned();
        return Err(not_prepared(unit, why, ErrorKind::Refused));
    }
    if let (Some(path), Some(content)) = (&start.spec.stdin, &start.stdin) {
        input_files::write(path, content).map_err(failed)?;
    }
    match &start.stdout {
        Output::OfUnit => Ok(None),
        Output::Descriptor(stdout) => {
            let stdout = stdout.try_clone();
            stdout.map(Some).map_err(|error| failed(error.to_string()))
        }
        Output::Record(path) => files::make_record(path).map(Some).map_err(failed),
    }
}
