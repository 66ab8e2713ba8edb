//! Recordings of the archive: which one an argument names, and those that answer the requests of a replay.

pub mod archive;
pub mod finder;
pub mod recordings;
