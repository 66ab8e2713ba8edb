//! Reads the output and the files of hooks, all of which is untrusted input.

pub mod claims;
pub mod disk;
pub mod growth;
pub mod hook_records;
pub mod navigation;
pub mod report;
pub mod stderr;
pub mod stdout;
