//! Reads and writes rows; one file for each table or subject.

pub mod binary;
pub mod cancel;
pub mod complete;
pub mod copy;
pub mod crawl;
pub mod deletion;
pub mod directory;
pub mod ended;
pub mod entry;
pub mod fleet;
pub mod host;
pub mod lease;
pub mod outbox;
pub mod pause;
pub mod recall;
pub mod result;
pub mod run;
pub mod snapshot;
pub mod tag;
pub mod unit;
pub mod usage;
pub mod verification;
pub mod visit;
