//! Reads and writes rows; one file for each table.

pub mod binary;
pub mod check;
pub mod crawl;
pub mod host;
pub mod pause;
pub mod result;
pub mod retention;
pub mod run;
pub mod snapshot;
pub mod tag;
pub mod usage;
