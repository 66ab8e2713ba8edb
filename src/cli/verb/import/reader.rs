//! What a foreign file has, as a process without rights finds it (`archivist survey`).

use super::Surveyed;
use crate::client::exit::Failure;
use crate::client::reader::Reader;
use archivist_core::text::clean;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Bytes that the reader may print about a file.
const SURVEY_MAX_BYTES: u64 = 256 << 20;

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("failed to read the file: {error}"))
}

/// Lets a process without rights read the file (`archivist survey`), and passes on what it found.
pub fn read(
    file: &File,
    arguments: &[&str],
    mut found: impl FnMut(Surveyed),
) -> Result<(), Failure> {
    // Opened again, so that the descriptor of the reader is for reading alone, and begins at the start.
    let input = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let input = input.map_err(|error| failed(&error))?;
    let mut unusable = None;
    Reader::survey(arguments, input.into())?.lines(SURVEY_MAX_BYTES, drop, |line| match line {
        Surveyed::Unusable(reason) => unusable = Some(reason),
        line => found(line),
    })?;
    unusable.map_or(Ok(()), |reason| Err(failed(&clean(&reason))))
}
