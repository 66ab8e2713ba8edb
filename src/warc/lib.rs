//! Recordings of pages: files in the formats WARC 1.1 (ISO 28500) and WACZ 1.1.1, which other
//! programs for web archives read, too. Processes, network, paths and clock are those of callers,
//! who pass open files and times.

mod blocks;
mod cdxj;
pub mod chunked;
pub mod coding;
pub mod digest;
pub mod error;
pub mod exchange;
#[cfg(test)]
#[path = "fuzz/tests.rs"]
mod fuzz;
pub mod head;
pub mod lookup;
mod member;
mod posted;
mod record;
#[cfg(test)]
mod sample;
mod source;
pub mod verify;
pub mod wacz;
mod zip;

use archivist_core::model::web::surt;

pub use blocks::Blocks;
pub use error::{Flaw, WarcError};
pub use zip::PackedFiles;
