//! Pages whose files the command line puts into the archive, and the recordings that have them.

pub mod copy;
pub mod reader;
pub mod recording;
pub mod stage;

use crate::client::exit::Failure;
use archivist_core::text::clean;
use std::io;
use std::path::Path;

pub fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let path = clean(&path.display().to_string());
    Failure::failed(format!("failed to {verb} '{path}': {error}"))
}

/// Prints the first `most` parts of a file that cannot be used, and the number of the others.
pub fn report_faults(file: &str, faults: &[String], most: usize) {
    for fault in faults.iter().take(most) {
        eprintln!("'{file}': {}, ignoring", clean(fault));
    }
    if let Some(more @ 1..) = faults.len().checked_sub(most) {
        eprintln!("'{file}': {more} more faults");
    }
}
