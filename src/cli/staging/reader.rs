//! What a foreign file has, as a process without rights finds it (`archivist survey`).

use crate::client::exit::Failure;
use crate::client::reader::{Reader, reopened};
use crate::survey::Surveyed;
use archivist_core::text::clean;
use std::fs::File;

/// Bytes that the reader may print about a list or a saved page, which are in memory then.
pub const LIST_MAX_BYTES: u64 = 256 << 20;
/// Bytes that it may print about a recording.
pub const RECORDING_MAX_BYTES: u64 = 1 << 30;

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("failed to read the file: {error}"))
}

/// Lets a process without rights read the file (`archivist survey`), and passes on what it found.
pub fn read(
    file: &File,
    arguments: &[&str],
    most: u64,
    mut found: impl FnMut(Surveyed),
) -> Result<(), Failure> {
    let input = reopened(file).map_err(|error| failed(&error))?;
    let mut unusable = None;
    Reader::survey(arguments, input.into())?.lines(most, drop, |line| match line {
        Surveyed::Unusable(reason) => unusable = Some(reason),
        line => found(line),
    })?;
    unusable.map_or(Ok(()), |reason| Err(failed(&clean(&reason))))
}
