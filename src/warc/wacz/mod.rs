//! WACZ: a ZIP file with WARC files, their index, a list of pages, and digests of all of them.

#[cfg(test)]
pub(crate) mod bed;
mod contents;
mod documents;
mod entry;
mod index;
mod indexed;
mod merge;
mod package;
mod parts;
mod places;
mod read;
mod recover;
mod share;
mod sorted;
mod sorter;
mod stored;
mod survey;
mod write;

pub use entry::Entry;
pub(crate) use index::Lines;
pub(crate) use indexed::Reach;
pub use merge::Merge;
pub(crate) use places::url_of;
pub(crate) use read::FOUND_MAX;
pub use read::{Bodies, Wacz};
pub use recover::recover;
pub use share::{Shared, Shelf, share};
pub use stored::StoredAnswer;
pub use survey::Parts;
pub use write::{About, Page, Recording, Summary};
