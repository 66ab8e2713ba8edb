//! Preparing the start of a unit: the descriptors that it gets. Files are made here, after the
//! commit.

use crate::main_loop::starts::{Output, Start};
use crate::watch::files;
use archivist_shared::config::Scope;
use archivist_shared::systemd::{ErrorKind, ManagerError, sealed};
use std::os::fd::OwnedFd;

/// The descriptors of a start. Files are read and made on a thread.
pub async fn prepared(start: &Start, scope: Scope) -> Result<Vec<OwnedFd>, ManagerError> {
    if start.watch.is_none() {
        return prepare(start, &scope);
    }
    let (unit, start) = (start.spec.name.clone(), start.clone());
    let prepared = tokio::task::spawn_blocking(move || prepare(&start, &scope)).await;
    prepared.unwrap_or_else(|error| Err(not_prepared(&unit, error.to_string())))
}

fn not_prepared(unit: &str, why: String) -> ManagerError {
    ManagerError {
        verb: "prepare unit",
        object: unit.to_owned(),
        why,
        kind: ErrorKind::Refused,
    }
}

/// The descriptors of a start, in the order stdin, stdout.
///
/// # Errors
/// If its watch is not declared any more, or a file cannot be made.
pub fn prepare(start: &Start, scope: &Scope) -> Result<Vec<OwnedFd>, ManagerError> {
    let failed = |why: String| not_prepared(&start.spec.name, why);
    let watch = start.watch.as_deref();
    if watch.is_some_and(|name| files::is_removed(scope, name)) {
        return Err(failed("its watch was removed".to_owned()));
    }
    let mut descriptors = Vec::new();
    if let Some(bytes) = &start.stdin {
        descriptors.push(sealed(bytes).map_err(|error| failed(error.to_string()))?);
    }
    match &start.stdout {
        Output::OfUnit => {}
        Output::Descriptor(stdout) => {
            let stdout = stdout.try_clone();
            descriptors.push(stdout.map_err(|error| failed(error.to_string()))?);
        }
        Output::Record(path) => descriptors.push(files::make_record(path).map_err(failed)?),
    }
    Ok(descriptors)
}
