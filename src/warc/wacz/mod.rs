//! WACZ: a ZIP file with WARC files, their index, a list of pages, and digests of all of them.

#[cfg(test)]
pub(crate) mod bed;
mod documents;
mod index;
mod merge;
mod package;
mod read;
mod recover;
mod share;
mod sorter;
mod write;

pub(crate) use index::Lines;
pub use merge::Merge;
pub use read::{Bodies, Entry, StoredAnswer, Survey, Wacz};
pub use recover::recover;
pub use share::{Shared, Shelf, share};
pub use write::{About, Page, Recording, Summary};
