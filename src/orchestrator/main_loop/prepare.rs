//! Preparing the start of a unit: its standard input and output. Files are made here, after the
//! commit.

use crate::engine::input_files;
use crate::machine::private_file;
use crate::main_loop::starts::{Output, Start};
use archivist_config::Scope;
use archivist_shared::systemd::{ErrorKind, ManagerError};
use std::os::fd::OwnedFd;

/// The standard output of a start. What it needs is looked at on a thread.
pub async fn prepared(start: &Start, scope: Scope) -> Result<Option<OwnedFd>, ManagerError> {
    if start.needs.is_none() {
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
/// If what it needs is not there any more, or a file cannot be made.
pub fn prepare(start: &Start, scope: &Scope) -> Result<Option<OwnedFd>, ManagerError> {
    let unit = &start.spec.name;
    let failed = |why: String| not_prepared(unit, why, ErrorKind::Machine);
    if let Some(needs) = &start.needs {
        needs(scope).map_err(|why| not_prepared(unit, why, ErrorKind::Refused))?;
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
        Output::Record(path) => match private_file::create(path) {
            Ok(file) => Ok(Some(OwnedFd::from(file))),
            Err(error) => Err(failed(format!("failed to create '{}': {error}", path.display()))),
        },
    }
}
